"""Which state of the module `compaction` a state of its actors stands for.

The spec's bounds are lifted: messages as many as are sent, crashes and ledgers as many as there can be. Ledgers are
numbered as the spec numbers them, one more than the greatest that exists. The store's answer to the compactor counts
when it is served: a seal, or a deletion, whose answer is under way is taken for heard. A broker that has not loaded its
state stands for one that has, since the cursor decides what it will load; with S11 repaired, the ledgers that it will
collect count as gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

import attrs

from compaction import compactor, spec
from compaction.bookkeeper import BOOKKEEPER, Store
from compaction.broker import PulsarBroker
from compaction.clients import BROKER
from compaction.compactor import TRANSITIONS, CompactorState
from compaction.extensions import ACTIONS, EXTENSIONS
from compaction.messages import LedgerDeleted, LedgerSealed
from compaction.records import Cursor, PhaseOneResult
from compaction.spec import Constants
from compaction.versions import CompactionVersion
from harness.model import RELIABLE, UNORDERED_SET, Faults, FrozenMap, Message, Model, Refinement, Value, View, slot
from harness.model.faults import BUDGET
from harness.model.spec import processes

BY: Mapping[str, tuple[str, ...]] = {
    "Producer": ("AppendEntry",),
    **{action: (action,) for action in compactor.ACTIONS},
    "CompactorPhaseTwoWrite": ("SealLedger",),
    "CompactorPhaseTwoDeleteLedger": ("CompactorPhaseTwoDeleteLedger", "DeleteLedger"),
    "BrokerCrash": ("Crash",),
    "WriteAfterCrash": ("SealLedger",),
    "DeleteAfterCrash": ("DeleteLedger",),
    "DeleteReplacedLedger": ("CompactorPhaseTwoDeleteLedger", "DeleteLedger"),
}
"""For each action of the spec, the actions of the actors that may be such a step."""


def refinement(
    sizes: Mapping[str, int], settings: Mapping[str, str], version: CompactionVersion, faults: Faults
) -> Refinement:
    """Return the refinement of `compaction/pulsar/actors` to `compaction/pulsar` at a size."""
    crashes = crashes_in(faults.budget)
    lifted = {
        "messages": sizes["messages"], "compactions": sizes["messages"] + 2 * crashes + 1, "keys": sizes["keys"],
        "values": sizes["values"], "crashes": crashes, "consumptions": 0,
    }
    extensions = {} if version.collects else EXTENSIONS
    next_state = spec.NEXT if version.collects else (*spec.NEXT, *ACTIONS)
    chosen = {**settings, "producer": "true", "consumer": "false", "extend": ",".join(extensions)}
    k = spec.constants(lifted, chosen)
    model = Model(
        "compaction/pulsar", processes(next_state, k), tuple(spec.initial(k)), UNORDERED_SET,
        sizes=lifted, settings=chosen, types=(PhaseOneResult, Cursor), spec_variables=spec.spec_variables,
    )
    return Refinement(model, partial(abstract, k=k, crashes=crashes), extensions=extensions, by=BY)


def crashes_in(budget: Mapping[str, int]) -> int:
    """Return how many crashes a budget has."""
    return sum(left for kind, left in budget.items() if kind.partition("(")[0] == "crash")


Numbers = FrozenMap[int, int]
"""The spec's number of each ledger of the store that the spec has."""


def abstract(view: View, numbers: Numbers, k: Constants, crashes: int) -> tuple[Mapping[str, Value], Numbers]:
    """Return the state of the spec, and the numbers of its ledgers. `crashes` is the budget at the start."""
    local: PulsarBroker = view[BROKER]
    store: Store = view[BOOKKEEPER]
    numbers = numbered(numbers, local, store, k)
    horizon, context = (local.horizon, local.context) if local.loaded else compactor.recovered(local.cursor)
    state, result = compacting(local, RELIABLE.contents(view.at("inbox", BROKER, RELIABLE.name)))
    ledgers = {numbers[n]: tuple(m.id for e in store.ledgers[n].entries for m in e.messages) for n in numbers}
    return {
        **topic(local, k),
        **{slot("compactedLedgers", str(n)): ledgers.get(n) for n in k.ledgers},
        "cursor": local.cursor and attrs.evolve(
            local.cursor, compacted_topic_context=numbers.get(local.cursor.compacted_topic_context, 0)
        ),
        "compactorState": state,
        "phaseOneResult": result,
        "compactionHorizon": horizon,
        "compactedTopicContext": numbers.get(context, 0),
        "crashTimes": crashes - crashes_in(view[BUDGET]) if crashes else 0,
        "consumeTimes": 0,
    }, numbers


def topic(local: PulsarBroker, k: Constants) -> dict[str, Value]:
    """Return the slots of the messages."""
    slots: dict[str, Value] = {name: None for n in k.ids for name in spec.message_slots(n)}
    for entry in local.topic:
        for message in entry.messages:
            slots |= zip(spec.message_slots(message.id), (message.key, message.value), strict=True)
    return slots


def numbered(numbers: Numbers, local: PulsarBroker, store: Store, k: Constants) -> Numbers:
    """Return the numbers of the ledgers that the spec has: sealed, and not about to be collected by a broker that
    loads its state. A new one gets the number after the greatest."""
    kept = compactor.recovered(local.cursor)[1]
    there = [
        n for n in store.existing
        if store.sealed(n) is not None and (local.loaded or n == kept or not k.version.collects)
    ]
    after = {n: numbers[n] for n in there if n in numbers}
    for n in there:
        if n not in after:
            after[n] = max(after.values(), default=0) + 1
    return FrozenMap(after)


def compacting(local: PulsarBroker, answers: Iterable[Message]) -> tuple[CompactorState, PhaseOneResult | None]:
    """Return the compactor's state and what phase one found, when the store's answer under way is heard."""
    for answer in answers:
        if isinstance(answer, LedgerSealed) and answer.incarnation == local.incarnation and local.loaded:
            return TRANSITIONS[local.state]["CompactorPhaseTwoWrite"], local.phase_one_result
        if isinstance(answer, LedgerDeleted) and local.deleting:
            return TRANSITIONS[local.state]["CompactorPhaseTwoDeleteLedger"], None
    return local.state, local.phase_one_result
