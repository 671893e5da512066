"""Pulsar's topic compaction as the module `compaction` has it: its actions over its variables.

Slots are finer than the variables: `messages[1][key]` and `messages[1][value]` (None until it is sent), and a ledger
`compactedLedgers[1]` is the ids of its messages, which never change. `spec_variables` is the way back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, product
from typing import cast

import attrs

from compaction import compactor
from compaction.compactor import TRANSITIONS, CompactorState
from compaction.records import NIL, NULL_KEY, NULL_VALUE, Cursor, Ledger, PhaseOneResult
from compaction.versions import AS_WRITTEN, DEPARTURES, CompactionVersion
from harness.model import FrozenMap, Kind, Model, State, Value, View, departed, slot
from harness.model.spec import Change, Next, Writes, action, once


@attrs.frozen
class Constants:
    """The constants of a model. `key_set` and `value_set` have the null key and the null value in them."""

    messages: int
    compactions: int
    key_set: tuple[int, ...]
    value_set: tuple[int, ...]
    crashes: int
    consumptions: int
    """`ConsumeTimesLimit`: how often the consumer has to have consumed before everything counts as done."""
    models_producer: bool
    models_consumer: bool
    retain_null_key: bool
    version: CompactionVersion

    @property
    def ids(self) -> range:
        """The ids that messages can have."""
        return range(1, self.messages + 1)

    @property
    def ledgers(self) -> range:
        """The ids that compacted ledgers can have."""
        return range(1, self.compactions + 1)


def constants(sizes: Mapping[str, int], settings: Mapping[str, str]) -> Constants:
    """Return the constants for the given sizes and settings: keys and values count from 1, 0 is null."""
    return Constants(
        sizes["messages"], sizes["compactions"], (NULL_KEY, *range(1, sizes["keys"] + 1)),
        (NULL_VALUE, *range(1, sizes["values"] + 1)), sizes["crashes"], sizes["consumptions"],
        settings["producer"] == "true", settings["consumer"] == "true", settings["retain-null-key"] == "true",
        departed(AS_WRITTEN, DEPARTURES, settings["repair"]),
    )


def initial(k: Constants) -> Iterable[dict[str, Value]]:
    """Yield the initial states (`Init`): one, or without a producer one for every choice of keys and values."""
    nothing: dict[str, Value] = {slot("compactedLedgers", str(n)): None for n in k.ledgers}
    nothing |= {
        "cursor": None, "compactorState": CompactorState.PHASE_ONE, "phaseOneResult": None, "compactionHorizon": 0,
        "compactedTopicContext": 0, "crashTimes": 0, "consumeTimes": 0,
    }
    if k.models_producer:
        yield {**{name: None for n in k.ids for name in message_slots(n)}, **nothing}
        return
    names = [name for n in k.ids for name in message_slots(n)]
    for chosen in product(product(k.key_set, k.value_set), repeat=k.messages):
        yield {**dict(zip(names, chain.from_iterable(chosen), strict=True)), **nothing}


def message_slots(n: int) -> tuple[str, str]:
    """Return the slots of the nth message: its key and its value."""
    return slot("messages", str(n), "key"), slot("messages", str(n), "value")


def keys_of(view: View, k: Constants) -> tuple[int, ...]:
    """Read the keys of the messages sent so far."""
    keys: list[int] = []
    for n in k.ids:
        key = view[message_slots(n)[0]]
        if key is None:
            break
        keys.append(key)
    return tuple(keys)


def ledger_of(view: View, ledger: int) -> Ledger | None:
    """Read a compacted ledger, None where it does not exist."""
    return cast("Ledger | None", view.at("compactedLedgers", str(ledger)))


def newest_ledger(view: View, k: Constants) -> int:
    """Read the greatest id of a compacted ledger that exists, 0 if there is none (`MaxCompactedLedgerId`)."""
    return next((n for n in reversed(k.ledgers) if ledger_of(view, n) is not None), 0)


@action("Producer", exists=lambda k: once(k) if k.models_producer else (), by="producer")
def producer(k: Constants, view: View) -> Iterable[Change]:
    """The next message, with any key and any value."""
    sent = len(keys_of(view, k))
    if sent >= k.messages:
        return
    names = message_slots(sent + 1)
    for key, value in product(k.key_set, k.value_set):
        yield Change(((names[0], key), (names[1], value)), f"key={key} value={value}")


def step_to(view: View, name: str) -> Writes | None:
    """The compactor's state after an action, or None where the action is not that of its state."""
    after = TRANSITIONS[view["compactorState"]].get(name)
    return None if after is None else (("compactorState", after),)


@action("CompactorPhaseOne", by="compactor")
def compactor_phase_one(k: Constants, view: View) -> Iterable[Change]:
    """Read all messages there are, and note the last one of each key."""
    step = step_to(view, "CompactorPhaseOne")
    if step is None or view["phaseOneResult"] is not None:
        return
    keys = keys_of(view, k)
    if keys:
        yield Change((("phaseOneResult", compactor.phase_one(keys)), *step))


@action("CompactorPhaseTwoWrite", by="compactor")
def compactor_phase_two_write(k: Constants, view: View) -> Iterable[Change]:
    """A new compacted ledger, as long as compactions are left."""
    step = step_to(view, "CompactorPhaseTwoWrite")
    if step is None:
        return
    result: PhaseOneResult | None = view["phaseOneResult"]
    if result is None:
        return
    new = compactor.next_ledger(newest_ledger(view, k), k.compactions)
    if new is None:
        return
    written = compactor.compacted(keys_of(view, k), result, k.retain_null_key)
    yield Change(((slot("compactedLedgers", str(new)), written), *step))


@action("CompactorPhaseTwoUpdateContext", by="compactor")
def compactor_phase_two_update_context(k: Constants, view: View) -> Iterable[Change]:
    """Readers use the new ledger from now on."""
    step = step_to(view, "CompactorPhaseTwoUpdateContext")
    if step is None:
        return
    writes: Writes = (("compactedTopicContext", newest_ledger(view, k)),)
    if k.version.horizon_with_context:
        writes = (*writes, ("compactionHorizon", read_position(view)))
    yield Change((*writes, *step))


def read_position(view: View) -> int:
    """Read how far phase one read."""
    return cast(int, view["phaseOneResult"].read_position)


@action("CompactorPhaseTwoUpdateHorizon", by="compactor")
def compactor_phase_two_update_horizon(k: Constants, view: View) -> Iterable[Change]:
    """Readers use it up to where phase one read."""
    step = step_to(view, "CompactorPhaseTwoUpdateHorizon")
    if step is not None:
        yield Change((("compactionHorizon", read_position(view)), *step))


@action("CompactorPhaseTwoPersistCusror", by="compactor")
def compactor_phase_two_persist_cursor(k: Constants, view: View) -> Iterable[Change]:
    """What readers use survives a crash."""
    step = step_to(view, "CompactorPhaseTwoPersistCusror")
    if step is not None:
        yield Change((("cursor", Cursor(view["compactionHorizon"], view["compactedTopicContext"])), *step))


@action("CompactorPhaseTwoDeleteLedger", by="compactor")
def compactor_phase_two_delete_ledger(k: Constants, view: View) -> Iterable[Change]:
    """The ledger that was replaced goes, if there was one."""
    step = step_to(view, "CompactorPhaseTwoDeleteLedger")
    if step is None:
        return
    writes: Writes = (("phaseOneResult", None),)
    old = compactor.obsolete_ledger(newest_ledger(view, k))
    if old is not None:
        writes = (*writes, (slot("compactedLedgers", str(old)), None))
    yield Change((*writes, *step))


@action("BrokerCrash", by="broker", kind=Kind.FAULT)
def broker_crash(k: Constants, view: View) -> Iterable[Change]:
    """The compactor forgets all but the ledgers and the cursor."""
    crashes = view["crashTimes"]
    if crashes >= k.crashes:
        return
    horizon, context = compactor.recovered(view["cursor"])
    writes: Writes = (
        ("crashTimes", crashes + 1), ("phaseOneResult", None), ("compactionHorizon", horizon),
        ("compactedTopicContext", context), ("compactorState", TRANSITIONS[view["compactorState"]]["BrokerCrash"]),
    )
    gone = compactor.unreferenced(k.ledgers, context) if k.version.collects else ()
    yield Change((*writes, *((slot("compactedLedgers", str(n)), None) for n in gone)))


@action("Consumer", exists=lambda k: once(k) if k.models_consumer else (), by="consumer")
def consumer(k: Constants, view: View) -> Iterable[Change]:
    """Changes nothing as written, not even `consumeTimes` (S13)."""
    if not k.version.counts_consumed:
        yield Change()
    elif (times := view["consumeTimes"]) < k.consumptions:
        yield Change((("consumeTimes", times + 1),))


@action("Terminating", by="everyone")
def terminating(k: Constants, view: View) -> Iterable[Change]:
    """When everything is done, nothing happens for ever."""
    if unfinished(view, k) is None:
        yield Change()


NEXT: Next = (
    producer,
    compactor_phase_one,
    compactor_phase_two_write,
    compactor_phase_two_update_context,
    compactor_phase_two_update_horizon,
    compactor_phase_two_persist_cursor,
    compactor_phase_two_delete_ledger,
    broker_crash,
    consumer,
    terminating,
)
"""The next-state relation: a step of any of these, of the producer and the consumer where they are modelled."""
FAIRNESS: Mapping[str, str] = {}


def unfinished(view: View, k: Constants) -> str | None:
    """Say what is still to be done, in the order of the spec, or return None."""
    if view[message_slots(k.messages)[0]] is None:
        return f"the producer has not sent message {k.messages} yet"
    if view["compactorState"] != CompactorState.WRITE:
        return f"the compactor is not about to write but in state {view['compactorState']}"
    if ledger_of(view, k.compactions) is None:
        return f"the compactor has not written compacted ledger {k.compactions} yet"
    if k.models_consumer and view["consumeTimes"] != k.consumptions:
        return f"the consumer has consumed {view['consumeTimes']} of {k.consumptions} times"
    return None


def waits_for(view: View, k: Constants) -> tuple[str, ...]:
    """Say who waits for whom: the compactor for messages, or for a compaction that it may still make."""
    if view["compactorState"] == CompactorState.PHASE_ONE and not keys_of(view, k):
        return ("the compactor waits for the producer to send a message",)
    if view["compactorState"] == CompactorState.WRITE and newest_ledger(view, k) == k.compactions:
        return (f"the compactor waits for a ledger to write: its {k.compactions} compactions are used up",)
    return ()


def spec_variables(model: Model, state: State) -> dict[str, Value]:
    """Return a state as the module's variables: messages as records, ledgers with their messages, Nil for None.

    `latestForKey` has text for keys where its domain is not 1..n, as functions have in the published state graphs.
    """
    k = constants(model.sizes, model.settings)
    keys = keys_of(View(state), k)
    messages = tuple(
        FrozenMap({"id": n, "key": key, "value": state[message_slots(n)[1]]}) for n, key in enumerate(keys, 1)
    )
    ledgers = (state[slot("compactedLedgers", str(n))] for n in k.ledgers)
    plain = ("compactionHorizon", "compactedTopicContext", "crashTimes", "consumeTimes")
    return {
        "messages": messages,
        "compactedLedgers": tuple(NIL if held is None else tuple(messages[n - 1] for n in held) for held in ledgers),
        "cursor": _cursor(state["cursor"]),
        "compactorState": state["compactorState"],
        "phaseOneResult": _phase_one_result(state["phaseOneResult"]),
        **{name: state[name] for name in plain},
    }


def _cursor(cursor: Cursor | None) -> Value:
    if cursor is None:
        return NIL
    return FrozenMap(
        {"compactionHorizon": cursor.compaction_horizon, "compactedTopicContext": cursor.compacted_topic_context}
    )


def _phase_one_result(result: PhaseOneResult | None) -> Value:
    if result is None:
        return NIL
    latest = result.latest_for_key
    is_sequence = set(latest) == set(range(1, len(latest) + 1))
    named: Value = latest if is_sequence else FrozenMap({str(key): latest[key] for key in latest})
    return FrozenMap({"readPosition": result.read_position, "latestForKey": named})
