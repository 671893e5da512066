"""Two-phase commit as Gray and Lamport specify it ("Consensus on Transaction Commit", MSR-TR-2003-96), searched.

The messages that were sent are a set that only grows: nobody takes one out of it, so that each may be received any
number of times. The set is kept as a slot per message that says whether it is in it. See docs/use/your-own-protocol.md.
"""

from collections.abc import Iterable, Mapping

import attrs

from harness import model as m
from harness.model.spec import Change, action, each, processes

WORKING, PREPARED, COMMITTED, ABORTED, INIT = "working", "prepared", "committed", "aborted", "init"
COMMIT, ABORT = "Commit", "Abort"


@attrs.frozen
class Constants:
    rms: tuple[str, ...]  # the resource managers


def sent(view: m.View, message: str) -> bool:
    """Say whether a message is in the set: Commit, Abort, or Prepared of a resource manager, which is its name."""
    return bool(view.at("msgs", message))


def send(message: str) -> tuple[str, bool]:
    return m.slot("msgs", message), True


@action("TMRcvPrepared", each("rms"))
def tm_rcv_prepared(k: Constants, view: m.View, rm: str) -> Iterable[Change]:
    """The transaction manager receives a Prepared message."""
    if view["tmState"] == INIT and sent(view, rm):
        yield Change(((m.slot("tmPrepared", rm), True),))


@action("TMCommit")
def tm_commit(k: Constants, view: m.View) -> Iterable[Change]:
    """The transaction manager commits: every resource manager has prepared."""
    if view["tmState"] == INIT and all(view.at("tmPrepared", rm) for rm in k.rms):
        yield Change((("tmState", COMMITTED), send(COMMIT)))


@action("TMAbort")
def tm_abort(k: Constants, view: m.View) -> Iterable[Change]:
    """The transaction manager aborts spontaneously."""
    if view["tmState"] == INIT:
        yield Change((("tmState", ABORTED), send(ABORT)))


@action("RMPrepare", each("rms"))
def rm_prepare(k: Constants, view: m.View, rm: str) -> Iterable[Change]:
    if view.at("rmState", rm) == WORKING:
        yield Change(((m.slot("rmState", rm), PREPARED), send(rm)))


@action("RMChooseToAbort", each("rms"))
def rm_choose_to_abort(k: Constants, view: m.View, rm: str) -> Iterable[Change]:
    """A resource manager that has not prepared aborts on its own; it need not tell anybody."""
    if view.at("rmState", rm) == WORKING:
        yield Change(((m.slot("rmState", rm), ABORTED),))


@action("RMRcvCommitMsg", each("rms"))
def rm_rcv_commit_msg(k: Constants, view: m.View, rm: str) -> Iterable[Change]:
    if sent(view, COMMIT):
        yield Change(((m.slot("rmState", rm), COMMITTED),))


@action("RMRcvAbortMsg", each("rms"))
def rm_rcv_abort_msg(k: Constants, view: m.View, rm: str) -> Iterable[Change]:
    if sent(view, ABORT):
        yield Change(((m.slot("rmState", rm), ABORTED),))


NEXT = (
    tm_commit, tm_abort,
    (tm_rcv_prepared, rm_prepare, rm_choose_to_abort, rm_rcv_commit_msg, rm_rcv_abort_msg),
)


def build(sizes: Mapping[str, int], settings: Mapping[str, str], net: m.Network, faults: m.Faults, _: bool) -> m.Model:
    k = Constants(tuple(f"rm{n + 1}" for n in range(sizes["resource-managers"])))
    initial: dict[str, m.Value] = {"tmState": INIT, m.slot("msgs", COMMIT): False, m.slot("msgs", ABORT): False}
    for rm in k.rms:
        initial |= {m.slot("rmState", rm): WORKING, m.slot("tmPrepared", rm): False, m.slot("msgs", rm): False}

    def consistent(view: m.View, one: str, other: str) -> m.Reason:
        both = view.at("rmState", one), view.at("rmState", other)
        return f"{one} has {both[0]} and {other} has {both[1]}" if set(both) == {COMMITTED, ABORTED} else None

    def all_are(state: str, view: m.View) -> bool:
        return all(view.at("rmState", rm) == state for rm in k.rms)

    pairs = tuple((one, other) for n, one in enumerate(k.rms) for other in k.rms[n + 1 :])
    properties = (
        m.always("TCConsistent", lambda view, pair: consistent(view, *pair), over=pairs, source="TCommit"),
        m.sometimes("AllCommit", lambda view: all_are(COMMITTED, view)),
        m.sometimes("AllAbort", lambda view: all_are(ABORTED, view)),
    )
    return m.Model(
        "two-phase-commit", processes(NEXT, k), (initial,), properties=properties, sizes=sizes, symmetric=(k.rms,),
    )


def system() -> m.System:
    spec = m.ModelSpec(
        "two-phase-commit", "resource managers that commit or abort together", build,
        {"resource-managers": m.Size(3)},
    )
    return m.System("two-phase-commit", (spec,))
