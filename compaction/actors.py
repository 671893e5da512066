"""The actor compositions of the spec's model and of a topic that is trimmed: a producer, a broker, a store and readers.

What is added is what running actors need: receipts and timeouts, a store that answers, a broker that loads its state
after a crash, and readers that read. A broker may crash between any two effects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from compaction import actor_properties, bookkeeper, broker, clients, messages, trimming_broker
from compaction.bookkeeper import BOOKKEEPER, Bookkeeper
from compaction.broker import CompactingBroker, TopicBroker, keys_of
from compaction.clients import BROKER, PRODUCER, CompactedReader, PulsarProducer
from compaction.compactor import CompactorState, first_lost, read_twice
from compaction.records import NULL_KEY, NULL_VALUE, TopicMessage
from compaction.refinement import refinement
from compaction.trimming_broker import TrimmingBroker
from compaction.versions import AS_WRITTEN, DEPARTURES, FLAWS, RIGHT
from harness.model import RELIABLE, Faults, Model, Network, Property, Reason, View, always, both_ways, departed

TYPES = (TopicMessage, *messages.TYPES, *bookkeeper.TYPES, *clients.TYPES, *broker.TYPES)
SPEC_INVARIANTS = ("CompactionHorizonCorrectness", "CompactedLedgerLeak", "DuplicateNullKeyMessage")


def composed(
    name: str, host: TopicBroker, sizes: Mapping[str, int], settings: Mapping[str, str], network: Network,
    faults: Faults, history_variables: bool, *, own: tuple[Property, ...], deletes: bool,
    types: tuple[type, ...] = (), witnesses: tuple[Property, ...] = (),
    refinement: Callable[[], Any] | None = None,
) -> Model:
    """Compose a broker with its producer, store and readers; `own` and `witnesses` are claimed of it besides.

    Clients reach the broker over the faulty network, the broker its store over a reliable one.
    """
    keys = (NULL_KEY, *range(1, sizes["keys"] + 1))
    values = (NULL_VALUE, *range(1, sizes["values"] + 1))
    names = tuple(f"r{n}" for n in range(1, sizes["readers"] + 1))
    readers = [CompactedReader(reader, sizes["messages"], sizes["disconnects"]) for reader in names]
    producer = PulsarProducer(sizes["messages"], keys, values, sizes.get("batch", 1))
    links = (*both_ways((PRODUCER, *names), (BROKER,)), *both_ways((BROKER,), (BOOKKEEPER,), RELIABLE))
    return Model(
        name, (producer, host, Bookkeeper(), *readers), ({BROKER: host.start},), network, faults,
        (
            *actor_properties.common(names, host.retain_null_key, deletes), *own, *actor_properties.witnesses(names),
            *witnesses,
        ),
        history_variables=history_variables, sizes=sizes, settings=settings, types=(*TYPES, *types),
        waits_for=lambda view: waits_for(view, names), links=links, symmetric=(names,), refinement=refinement,
    )


def build(sizes: Mapping[str, int], settings: Mapping[str, str], network: Network, faults: Faults, *rest: Any) -> Model:
    """Build `compaction/pulsar/actors`."""
    version = departed(AS_WRITTEN, DEPARTURES, settings["repair"])
    host = CompactingBroker(version, settings["retain-null-key"] == "true")
    return composed(
        "compaction/pulsar/actors", host, sizes, settings, network, faults, *rest,
        own=spec_invariants(host.retain_null_key), deletes=False,
        refinement=lambda: refinement(sizes, settings, version, faults),
    )


def build_trimming(sizes: Mapping[str, int], settings: Mapping[str, str], *rest: Any) -> Model:
    """Build `compaction/pulsar-trimming/actors`, which has no spec: it is judged by its properties only."""
    flaw = "" if settings["flaw"] == "none" else settings["flaw"]
    host = TrimmingBroker(settings["retain-null-key"] == "true", departed(RIGHT, FLAWS, flaw), sizes["reconnects"])
    return composed(
        "compaction/pulsar-trimming/actors", host, sizes, settings, *rest, own=(), deletes=True,
        types=trimming_broker.TYPES, witnesses=actor_properties.TRIMMING_WITNESSES,
    )


def spec_invariants(retain_null_key: bool) -> tuple[Property, ...]:
    """Return the spec's own invariants, as statements about the broker and the store."""

    def horizon_correctness(view: View) -> Reason:
        local = actor_properties.broker_of(view)
        held = actor_properties.store_of(view).sealed(local.context) or ()
        ids = tuple(entry.id for entry in held)
        lost = first_lost(keys_of(local.topic), local.horizon, ids, retain_null_key)
        if lost is None:
            return None
        return (
            f"readers skip the topic up to message {local.horizon}, but compacted ledger {local.context} neither has "
            f"message {lost} nor replaces it"
        )

    def ledger_leak(view: View) -> Reason:
        existing = actor_properties.store_of(view).existing
        return f"ledgers {', '.join(map(str, existing))} exist at once" if len(existing) > 2 else None

    def duplicate_null_key_message(view: View) -> Reason:
        local = actor_properties.broker_of(view)
        if not retain_null_key or local.contents is None:
            return None
        keys, ids = keys_of(local.topic), tuple(entry.id for entry in local.contents)
        for n in read_twice(ids, local.horizon, local.end):
            if keys[n - 1] == NULL_KEY:
                return f"a reader gets null-key message {n} from compacted ledger {local.context} and from the topic"
        return None

    checks = (horizon_correctness, ledger_leak, duplicate_null_key_message)
    return tuple(always(name, check, source="compaction") for name, check in zip(SPEC_INVARIANTS, checks, strict=True))


def waits_for(view: View, readers: tuple[str, ...]) -> tuple[str, ...]:
    """Say which actors wait for which: clients for the broker, the broker for the store."""
    found = []
    producer: clients.PulsarProducerState = view[PRODUCER]
    if producer.stored < producer.last:
        found.append(f"{PRODUCER} waits for the receipt of entry {producer.last}")
    for name in readers:
        reader: clients.CompactedReaderState = view[name]
        if reader.asked is not None:
            found.append(f"{name} waits for what comes after message {reader.position.last}")
    local = actor_properties.broker_of(view)
    if not local.loaded or local.state is CompactorState.WRITE or local.deleting:
        found.append(f"{BROKER} waits for {BOOKKEEPER}")
    return tuple(found)
