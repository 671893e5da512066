"""What diary 02 with extension actions has besides: bounds, and leaders that may have stopped serving."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import attrs

from harness.model import BAG, Model, Value, View, slot
from harness.model.spec import Change, Next, Writes, processes
from kafka_proto.transactions.correspondence import Entry, Request
from kafka_proto.transactions.decisions import election
from kafka_proto.transactions.properties import SpecState, properties
from kafka_proto.transactions.specs.names import Names, initial

BUDGET = "aux_extension_ctr"
MORE_REQUESTS = 3
"""Requests of a client in a bounded model, besides one for each extension step that is paid for."""


@attrs.frozen
class ExtendedNames(Names):
    """The constants of diary 02, which extension actions are on, and how many spurious steps there may be."""

    on: frozenset[str] = frozenset()
    bound: int | None = None
    """None means any number."""

    def paid(self, view: View) -> Writes | None:
        """Return the write that pays for a step, or None when the bound is reached."""
        if self.bound is None:
            return ()
        spent = view[BUDGET]
        return ((BUDGET, spent + 1),) if spent < self.bound else None

    def may_ask(self, number: int) -> bool:
        """Say whether a client may send one more request after so many."""
        return self.bound is None or number < self.bound + MORE_REQUESTS


class ExtendedState(SpecState):
    """The variables of diary 02, where a leader may have stopped serving."""

    def serves(self, view: View, b: str, p: str) -> bool:
        return serves(view, b, p)


def extended_initial(k: ExtendedNames) -> dict[str, Value]:
    """The initial state of diary 02 with the variables that extension actions have."""
    state = initial(k)
    for b, p in product(k.brokers, k.txn_log_partitions):
        state[slot("serving", b, p)] = state[slot("txn_log_leader", p)] == b
        state[slot("loading", b, p)] = False
    state |= {slot("correlation", c): 0 for c in k.clients} | {slot("aux_crashes", b): 0 for b in k.brokers}
    return state if k.bound is None else {**state, BUDGET: 0}


def with_actions(model: Model, k: ExtendedNames, relation: Next, start: Mapping[str, Value]) -> Model:
    """Return a model of diary 02 with another next-state relation, and the variables that it has besides."""
    return attrs.evolve(
        model, processes=processes(relation, k), initial=(start,), network=BAG,
        properties=properties(k, ExtendedState(), loads=True),
    )


def serves(view: View, b: str, p: str) -> bool:
    """Say whether a leader still does its work."""
    return bool(view.at("serving", b, p))


def has_to_load(view: View, b: str, p: str) -> bool:
    """Say whether a leader has yet to load its log."""
    return bool(view.at("loading", b, p))


def has_stopped(view: View, b: str, p: str) -> bool:
    """Say whether a broker leads a partition, as far as it and the others know, without serving it."""
    return bool(view.at("tc_log_metadata", b, p).leader == b) and not serves(view, b, p)


def committed_log(view: View, b: str, p: str) -> tuple[Entry, ...]:
    """Return a broker's log up to its high watermark."""
    log: tuple[Entry, ...] = view.at("tc_log", b, p)[: view.at("tc_log_hwm", b, p)]
    return log


def home(view: View, tid: str) -> str:
    """Return the partition of an id."""
    p: str = view.at("t_to_p_mapping", tid)
    return p


def tids_of(k: Names, view: View, p: str) -> list[str]:
    """Return the transactional ids of a partition."""
    return [tid for tid in k.transactional_ids if home(view, tid) == p]


def now_serving(k: ExtendedNames, b: str, p: str, now: bool) -> Writes:
    """Whether a leader serves from now on; at first it may have to load."""
    return (slot("serving", b, p), now), (slot("loading", b, p), now and "FinishLoading" in k.on)


def given_up(k: Names, view: View, b: str, p: str) -> Writes:
    """A broker's log without what it has not committed, and none of its transitions pending."""
    pending = ((slot("tc_tid_transition", b, tid), None) for tid in tids_of(k, view, p))
    return (slot("tc_log", b, p), committed_log(view, b, p)), *pending


def stopped(k: ExtendedNames, view: View, b: str, p: str) -> Writes:
    """A leader no longer serves: what it knew beyond the committed log is forgotten."""
    known = election.replay(committed_log(view, b, p))
    writes = now_serving(k, b, p, False)
    writes += tuple((slot("tc_tid_metadata", b, tid), known.get(tid)) for tid in tids_of(k, view, p))
    return writes if view.at("txn_log_leader", p) == b else writes + given_up(k, view, b, p)


def is_serving(k: ExtendedNames, view: View, b: str, p: str) -> bool:
    """GUARD of CommitTxnLogAppend: a leader that has stopped runs no callbacks."""
    return serves(view, b, p)


def is_coordinating(k: ExtendedNames, view: View, b: str, c: str, request: Request) -> bool:
    """GUARD of the requests: who has stopped, or has yet to load, does nothing but refuse."""
    p = home(view, request.tid)
    return not has_stopped(view, b, p) and not has_to_load(view, b, p)


def has_loaded(k: ExtendedNames, view: View, b: str, tid: str) -> bool:
    """GUARD of CompletePartialTxn: a coordinator completes what it has loaded, while it serves."""
    p = home(view, tid)
    return serves(view, b, p) and not has_to_load(view, b, p)


def deposes_who_knows(k: ExtendedNames, view: View, b: str, p: str) -> bool:
    """GUARD of ElectLeader: its predecessor's memory is that of the epoch which ends."""
    deposed = view.at("txn_log_leader", p)
    return bool(view.at("tc_log_metadata", deposed, p).cepoch == view.at("txn_log_epoch", p))


def begins_to_serve(k: ExtendedNames, view: View, b: str, p: str) -> Writes:
    """WRITES of ElectLeader."""
    return now_serving(k, b, p, True)


def ends_serving(change: Change, k: ExtendedNames, view: View, b: str, p: str) -> Change:
    """CHANGE of BecomeFollower: who has stopped serving has failed its requests before."""
    sent = change.sent if serves(view, b, p) else ()
    return attrs.evolve(change, writes=(*change.writes, *now_serving(k, b, p, False)), sent=sent)
