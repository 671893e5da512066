"""The actor composition on a topic that is trimmed: batches, tombstones, and a raw reader that reconnects.

There is no spec of it: it is judged by its properties only.
"""

from __future__ import annotations

from collections.abc import Mapping

from compaction import actor_properties, trimming_broker
from compaction.actor_properties import broker_of, messages_of
from compaction.actors import TYPES, keys_and_values, links, names_of_readers, waits_for
from compaction.bookkeeper import Bookkeeper
from compaction.clients import BROKER, CompactedReader, PulsarProducer
from compaction.records import NULL_KEY, NULL_VALUE
from compaction.trimming_broker import TrimmingBroker
from compaction.versions import FLAWS, RIGHT
from harness.model import Faults, Model, Network, Property, Step, View, departed, sometimes


def build(
    sizes: Mapping[str, int], settings: Mapping[str, str], network: Network, faults: Faults, history_variables: bool
) -> Model:
    """Build `compaction/pulsar-trimming/actors`."""
    retain_null_key = settings["retain-null-key"] == "true"
    flaw = "" if settings["flaw"] == "none" else settings["flaw"]
    host = TrimmingBroker(retain_null_key, departed(RIGHT, FLAWS, flaw), sizes["reconnects"])
    names = names_of_readers(sizes)
    readers = [CompactedReader(name, sizes["messages"], sizes["disconnects"]) for name in names]
    producer = PulsarProducer(sizes["messages"], *keys_and_values(sizes), most=sizes["batch"])
    return Model(
        "compaction/pulsar-trimming/actors", (producer, host, Bookkeeper(), *readers), ({BROKER: host.start},),
        network, faults,
        (
            *actor_properties.common(names, retain_null_key, deletes=True), *actor_properties.witnesses(names),
            *WITNESSES,
        ),
        history_variables=history_variables, sizes=sizes, settings=settings,
        types=(*TYPES, *trimming_broker.TYPES), waits_for=lambda view: waits_for(view, names),
        links=links(names), symmetric=(names,),
    )


def key_deleted(view: View) -> bool:
    """Say whether readers skip a tombstone that the ledger does not have."""
    local = broker_of(view)
    kept = {message.id for message in messages_of(local.contents or ())}
    return any(
        message.key != NULL_KEY and message.value == NULL_VALUE and message.id <= local.horizon
        and message.id not in kept
        for message in actor_properties.raw_messages(view, local.end)
    )


def batch_compacted(view: View) -> bool:
    """Say whether the ledger in use has an entry that lost some of its messages."""
    sent = {entry.id: entry for entry in view["producer"].sent}
    return any(entry.messages != sent[entry.id].messages for entry in broker_of(view).contents or ())


def previous_ledger_read(view: View, step: Step) -> bool:
    """Say whether phase one reads the ledger of the compaction before."""
    return step.action == "CompactorPhaseOne" and bool(broker_of(view).contents)


def topic_trimmed(view: View, step: Step) -> bool:
    """Say whether a step trims the topic."""
    return step.action == "TrimTopic"


def raw_reader_replays(view: View, step: Step) -> bool:
    """Say whether phase two reads an entry again that it has written."""
    local = broker_of(view)
    return step.action == "RawReaderReconnects" and bool(local.written)


WITNESSES: tuple[Property, ...] = (
    sometimes("KeyDeleted", key_deleted),
    sometimes("BatchCompacted", batch_compacted),
    sometimes("PreviousLedgerRead", previous_ledger_read, on="step"),
    sometimes("TopicTrimmed", topic_trimmed, on="step"),
    sometimes("RawReaderReplays", raw_reader_replays, on="step"),
)
