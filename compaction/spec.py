"""Pulsar's topic compaction as the module `compaction` (seed 002) has it: its actions over its variables.

    Init == no ledger, no cursor, the compactor in phase one; no message yet, or every choice of all of them
    Next == Producer (where one is modelled)
            CompactorPhaseOne, CompactorPhaseTwoWrite, CompactorPhaseTwoUpdateContext,
            CompactorPhaseTwoUpdateHorizon, CompactorPhaseTwoPersistCusror, CompactorPhaseTwoDeleteLedger
            BrokerCrash
            Consumer (where one is modelled)
            Terminating

Slots are finer than the variables: `messages[1][key]` and `messages[1][value]` (None until it is sent), and a ledger
`compactedLedgers[1]` is the ids of its messages, which never change. `spec_variables` is the way back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain, product
from typing import cast

import attrs

from compaction import compactor
from compaction.compactor import TRANSITIONS, CompactorState
from compaction.records import NIL, NULL_KEY, NULL_VALUE, Cursor, Ledger, PhaseOneResult
from compaction.variants import Rules, rules
from harness.model import FrozenMap, Kind, Model, Process, State, Step, Value, View, slot

CONSUME_TIMES_LIMIT = 2
"""`ConsumeTimesLimit`: how often the consumer has to have consumed before everything counts as done."""

Writes = tuple[tuple[str, Value], ...]


@attrs.frozen
class Constants:
    """The constants of a model. `key_set` and `value_set` have the null key and the null value in them."""

    messages: int
    compactions: int
    key_set: tuple[int, ...]
    value_set: tuple[int, ...]
    crashes: int
    models_producer: bool
    models_consumer: bool
    rules: Rules

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
        (NULL_VALUE, *range(1, sizes["values"] + 1)), sizes["crashes"], settings["producer"] == "true",
        settings["consumer"] == "true", rules(settings["retain-null-key"] == "true", settings["repair"]),
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


Change = tuple[Writes, str]
"""What an action writes for one choice of its witnesses, and the detail that tells this choice from others."""
Changes = Callable[[View, Constants], Iterable[Change]]


class Role(Process):
    """Somebody in the spec, and the actions that are theirs."""

    def __init__(self, name: str, actions: Mapping[str, Changes], k: Constants, kind: Kind = Kind.STEP) -> None:
        self.name = name
        self._actions = actions
        self._k = k
        self._kind = kind

    def steps(self, view: View) -> Iterable[Step]:
        for action, changes in self._actions.items():
            for writes, detail in changes(view, self._k):
                yield Step(action, (), writes, detail=detail, kind=self._kind)


class Compactor(Role):
    """The compactor takes the action of its state, which leads to the next one."""

    def steps(self, view: View) -> Iterable[Step]:
        for action, after in TRANSITIONS[view["compactorState"]].items():
            if action in self._actions:
                for writes, detail in self._actions[action](view, self._k):
                    yield Step(action, (), (*writes, ("compactorState", after)), detail=detail)


def producer(view: View, k: Constants) -> Iterable[Change]:
    """ACTION Producer: the next message, with any key and any value."""
    sent = len(keys_of(view, k))
    if sent >= k.messages:
        return
    names = message_slots(sent + 1)
    for key, value in product(k.key_set, k.value_set):
        yield ((names[0], key), (names[1], value)), f"key={key} value={value}"


def compactor_phase_one(view: View, k: Constants) -> Iterable[Change]:
    """ACTION CompactorPhaseOne: read all messages there are, and note the last one of each key."""
    if view["phaseOneResult"] is not None:
        return
    keys = keys_of(view, k)
    if not keys:
        return
    yield (("phaseOneResult", compactor.phase_one(keys)),), ""


def compactor_phase_two_write(view: View, k: Constants) -> Iterable[Change]:
    """ACTION CompactorPhaseTwoWrite: a new compacted ledger, as long as compactions are left."""
    result: PhaseOneResult | None = view["phaseOneResult"]
    if result is None:
        return
    new = compactor.next_ledger(newest_ledger(view, k), k.compactions)
    if new is None:
        return
    written = compactor.compacted(keys_of(view, k), result, k.rules.retain_null_key)
    yield ((slot("compactedLedgers", str(new)), written),), ""


def compactor_phase_two_update_context(view: View, k: Constants) -> Iterable[Change]:
    """ACTION CompactorPhaseTwoUpdateContext: readers use the new ledger from now on."""
    writes: Writes = (("compactedTopicContext", newest_ledger(view, k)),)
    if k.rules.installs_together:
        writes = (*writes, ("compactionHorizon", view["phaseOneResult"].read_position))
    yield writes, ""


def compactor_phase_two_update_horizon(view: View, k: Constants) -> Iterable[Change]:
    """ACTION CompactorPhaseTwoUpdateHorizon: readers use it up to where phase one read."""
    yield (("compactionHorizon", view["phaseOneResult"].read_position),), ""


def compactor_phase_two_persist_cursor(view: View, k: Constants) -> Iterable[Change]:
    """ACTION CompactorPhaseTwoPersistCusror: what readers use survives a crash."""
    yield (("cursor", Cursor(view["compactionHorizon"], view["compactedTopicContext"])),), ""


def compactor_phase_two_delete_ledger(view: View, k: Constants) -> Iterable[Change]:
    """ACTION CompactorPhaseTwoDeleteLedger: the ledger that was replaced, if there was one."""
    writes: Writes = (("phaseOneResult", None),)
    old = compactor.obsolete_ledger(newest_ledger(view, k))
    if old is not None:
        writes = (*writes, (slot("compactedLedgers", str(old)), None))
    yield writes, ""


def broker_crash(view: View, k: Constants) -> Iterable[Change]:
    """ACTION BrokerCrash: the compactor forgets all but the ledgers and the cursor."""
    crashes = view["crashTimes"]
    if crashes >= k.crashes:
        return
    horizon, context = compactor.recovered(view["cursor"])
    writes: Writes = (
        ("crashTimes", crashes + 1), ("phaseOneResult", None), ("compactionHorizon", horizon),
        ("compactedTopicContext", context), ("compactorState", TRANSITIONS[view["compactorState"]]["BrokerCrash"]),
    )
    if k.rules.collects_on_load:
        gone = compactor.unreferenced(k.ledgers, context)
        writes = (*writes, *((slot("compactedLedgers", str(n)), None) for n in gone))
    yield writes, ""


def consumer(view: View, k: Constants) -> Iterable[Change]:
    """ACTION Consumer: changes nothing as written, not even `consumeTimes` (S13)."""
    if not k.rules.counts_consuming:
        yield (), ""
    elif view["consumeTimes"] < CONSUME_TIMES_LIMIT:
        yield (("consumeTimes", view["consumeTimes"] + 1),), ""


def terminating(view: View, k: Constants) -> Iterable[Change]:
    """ACTION Terminating: when everything is done, nothing happens for ever."""
    if unfinished(view, k) is None:
        yield (), ""


def unfinished(view: View, k: Constants) -> str | None:
    """Say what is still to be done, in the order of the spec, or return None."""
    if view[message_slots(k.messages)[0]] is None:
        return f"the producer has not sent message {k.messages} yet"
    if view["compactorState"] != CompactorState.WRITE:
        return f"the compactor is not about to write but in state {view['compactorState']}"
    if ledger_of(view, k.compactions) is None:
        return f"the compactor has not written compacted ledger {k.compactions} yet"
    if k.models_consumer and view["consumeTimes"] != CONSUME_TIMES_LIMIT:
        return f"the consumer has consumed {view['consumeTimes']} of {CONSUME_TIMES_LIMIT} times"
    return None


COMPACTOR: Mapping[str, Changes] = {
    "CompactorPhaseOne": compactor_phase_one,
    "CompactorPhaseTwoWrite": compactor_phase_two_write,
    "CompactorPhaseTwoUpdateContext": compactor_phase_two_update_context,
    "CompactorPhaseTwoUpdateHorizon": compactor_phase_two_update_horizon,
    "CompactorPhaseTwoPersistCusror": compactor_phase_two_persist_cursor,
    "CompactorPhaseTwoDeleteLedger": compactor_phase_two_delete_ledger,
}


def next_state(k: Constants) -> Iterable[Process]:
    """Yield those whose actions make up `Next`."""
    if k.models_producer:
        yield Role("producer", {"Producer": producer}, k)
    yield Compactor("compactor", COMPACTOR, k)
    yield Role("broker", {"BrokerCrash": broker_crash}, k, Kind.FAULT)
    if k.models_consumer:
        yield Role("consumer", {"Consumer": consumer}, k)
    yield Role("everyone", {"Terminating": terminating}, k)


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
