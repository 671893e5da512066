"""What running actors do beyond diary 02: named extension actions of its spec composition, each with its reason.

With any of them on, requests carry numbers, messages travel in a bag (copies count), and a leader may have stopped
serving: it neither answers as coordinator nor runs callbacks. Spurious steps (a crash, a lost message) are
paid for, so that a search ends; a model that recorded steps are held against has no bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from harness.model import BAG, Message, Process, Step, Value, View, canonical_sort, slot
from kafka_proto.transactions import spec
from kafka_proto.transactions.decisions import client as clients
from kafka_proto.transactions.decisions import election
from kafka_proto.transactions.messages import Error, InitPidRequest, InitPidResponse, Request, Response, answer
from kafka_proto.transactions.records import ClientRecord, ClientState, Entry, LogMetadata, TxnMetadata
from kafka_proto.transactions.spec import Names
from kafka_proto.transactions.versions.version import Version

EXTENSIONS: Mapping[str, str] = {
    "RequestTimeout": "a client gives a request up, since its answer may be lost; what became of it is unknown",
    "IgnoreResponse": "a client ignores the answer to a request that it gave up, or a copy of an answer",
    "StaleLookUp": "a client looks its coordinator up by request, and the answer is out of date",
    "RefuseRequest": "a broker that is elected and has not loaded, waits for producer ids, has stopped serving, or is "
                     "deposed and has not heard of a commit refuses with a retriable error and changes nothing",
    "ResignEarly": "a leader learns that it is deposed before the log fences it: what it appended may still commit",
    "Crash": "a broker forgets what is not on disk, and the messages to it are lost",
    "CommitUnanswered": "an entry commits whose leader crashed or resigned: nobody runs its callback",
    "DropUncommitted": "the log gives up the entries of a leader that has stopped serving",
    "LoadTxnLog": "a leader that crashed joins its own epoch again, over or not: what was not committed is given up",
    "ElectFromLog": "an elected broker loads the committed log, not its predecessor's memory; it may be gone before "
                    "the log hears of it, or elected anew, since the log may not hear of an election in between",
    "FinishLoading": "an elected broker does nothing but refuse before it has loaded its log",
    "TakeOverLate": "a broker learns of its election, and loads, when somebody else is elected already",
    "FollowLate": "a broker learns of an epoch, and follows, when the next one has begun already",
    "FailCommitted": "a deposed leader fails a request whose entry is committed, before it hears of that",
    "LoseMessage": "the network loses a message",
    "CopyMessage": "the network doubles a message",
}
"""The extension actions, and why the truth has each."""

OF_FAULTS = ("Crash", "LoseMessage", "CopyMessage")
"""Those that are faults themselves: a model that has no faults does not need them."""
ASKS = ("SendInitPidRequest", "SendAddPartitionsToTxnRequest")
IS_ASKED = ("ReceiveInitPidRequest", "ReceiveAddPartitionsToTxnRequest")
IS_ANSWERED = ("ReceiveInitPidResponse", "ReceiveAddPartitionsToTxnResponse")
SENDS = (*ASKS, *IS_ASKED, "ReceiveCommitted", "BecomeFollower")
"""Actions of actors that send requests or responses: faults by rule, cut links and dead receivers strike there."""
FOLLOWS = ("BecomeFollower", "JoinEpoch")
BY: Mapping[str, tuple[str, ...]] = {
    **{name: (name,) for name in (*ASKS, *IS_ASKED, *IS_ANSWERED, "CompletePartialTxn")},
    "CommitTxnLogAppend": ("CommitTxnLogAppend", "ReceiveCommitted", "JoinEpoch"),
    "ElectLeader": ("JoinEpoch",),
    "BecomeFollower": FOLLOWS,
    "RequestTimeout": ("RequestTimeout",),
    "IgnoreResponse": ("IgnoreResponse",),
    "StaleLookUp": ("SendInitPidRequest", "ReceiveFindCoordinatorResponse"),
    "RefuseRequest": IS_ASKED,
    "ResignEarly": ("BecomeFollower",),
    "Crash": ("Crash",),
    "CommitUnanswered": ("CommitTxnLogAppend", "BecomeFollower", "Crash"),
    "DropUncommitted": ("JoinEpoch", "BecomeFollower", "Crash"),
    "LoadTxnLog": ("JoinEpoch",),
    "ElectFromLog": ("JoinEpoch",),
    "FinishLoading": ("LoadTxnLog",),
    "TakeOverLate": ("JoinEpoch",),
    "FollowLate": FOLLOWS,
    "FailCommitted": ("BecomeFollower",),
    "LoseMessage": ("Drop", "Crash", *SENDS),
    "CopyMessage": ("Duplicate", *SENDS),
}
"""Which actions of the actors may be these steps: a step that leaves the same state by chance does not count."""

BUDGET = "aux_extension_ctr"
MORE_REQUESTS = 3
"""Requests of a client in a bounded model, besides one for each extension step that is paid for."""


@attrs.frozen
class Extensions:
    """Which extension actions are on, and how many spurious steps there may be; None means any number."""

    on: frozenset[str] = frozenset()
    bound: int | None = None

    def __contains__(self, name: str) -> bool:
        return name in self.on

    def paid(self, view: View) -> list[tuple[str, Value]] | None:
        """Return the write that pays for a step, or None when the bound is reached."""
        if self.bound is None:
            return []
        spent = view[BUDGET]
        return [(BUDGET, spent + 1)] if spent < self.bound else None

    def may_ask(self, number: int) -> bool:
        """Say whether a client may send one more request after so many."""
        return self.bound is None or number < self.bound + MORE_REQUESTS

    def initial(self, constants: Names, state: Mapping[str, Value]) -> dict[str, Value]:
        """Return the initial state with the variables that extension actions have."""
        after = dict(state)
        if self.on:
            for p in constants.txn_log_partitions:
                for b in constants.brokers:
                    after[slot("serving", b, p)] = state[slot("txn_log_leader", p)] == b
                    after[slot("loading", b, p)] = False
            for c in constants.clients:
                after[slot("correlation", c)] = 0
            for b in constants.brokers:
                after[slot("aux_crashes", b)] = 0
            if self.bound is not None:
                after[BUDGET] = 0
        return after


class ExtendedClient(spec.SpecClient):
    """A client that numbers its requests, gives them up, and looks its coordinator up by request."""

    def __init__(self, name: str, constants: Names, version: Version, extensions: Extensions) -> None:
        super().__init__(name, constants, version)
        self.extensions = extensions
        self.counter = slot("correlation", name)

    def numbered(self, view: View) -> tuple[int | None, tuple[tuple[str, Value], ...]]:
        number = view[self.counter] + 1
        return number, ((self.counter, number),)

    def awaits(self, view: View, client: ClientRecord, response: Response) -> bool:
        """Say whether a response answers the request that the client waits for."""
        if response.correlation != view[self.counter] or not super().awaits(view, client, response):
            return False
        return isinstance(response, InitPidResponse) or bool(client.pending_partitions)

    def steps(self, view: View) -> Iterable[Step]:
        client: ClientRecord = view[self.slot]
        if self.extensions.may_ask(view[self.counter]):
            yield from super().steps(view)
        if "RequestTimeout" in self.extensions:
            yield from self.request_timeout(view, client)
        if "StaleLookUp" in self.extensions:
            yield from self.stale_look_up(view, client)

    def receive(self, view: View, message: Message) -> Iterable[Step]:
        yield from super().receive(view, message)
        assert isinstance(message, Response)
        if "IgnoreResponse" in self.extensions and not self.awaits(view, view[self.slot], message):
            yield Step("IgnoreResponse", (self.name, message.source))

    def request_timeout(self, view: View, client: ClientRecord) -> Iterable[Step]:
        """EXTENSION RequestTimeout(c): give up the request under way; the coordinator is looked up anew."""
        if client.state is not ClientState.SENT_INIT_PID_REQUEST and not client.pending_partitions:
            return
        paid = self.extensions.paid(view)
        if paid is None:
            return
        after = self.version.given_up(client)
        if client.pid != -1:
            assert client.tid is not None
            after = attrs.evolve(after, tc=spec.find_coordinator(view, client.tid))
        yield Step("RequestTimeout", (self.name,), ((self.slot, after), *paid))

    def stale_look_up(self, view: View, client: ClientRecord) -> Iterable[Step]:
        """EXTENSION StaleLookUp(c): ask a broker that does not lead, or take it for the coordinator from now on."""
        paid = self.extensions.paid(view)
        if paid is None:
            return
        for b in self.constants.brokers:
            for tid in self.constants.transactional_ids:
                elsewhere = b != spec.find_coordinator(view, tid)
                if clients.may_init(client, tid) and elsewhere and self.extensions.may_ask(view[self.counter]):
                    step = self.ask_for_pid(view, client, tid, b, "StaleLookUp", f"{tid} {b}")
                    yield attrs.evolve(step, writes=(*step.writes, *paid))
            if client.pid != -1 and not client.pending_partitions and b != client.tc:
                yield Step("StaleLookUp", (self.name,), ((self.slot, attrs.evolve(client, tc=b)), *paid), detail=b)


class ExtendedBroker(spec.SpecBroker):
    """A coordinator that may have stopped serving, and refuses then."""

    def __init__(self, name: str, constants: Names, version: Version, extensions: Extensions) -> None:
        super().__init__(name, version)
        self.constants = constants
        self.extensions = extensions

    def receive(self, view: View, message: Message) -> Iterable[Step]:
        assert isinstance(message, Request)
        p = view.at("t_to_p_mapping", message.tid)
        stopped = self.leads(view, message.tid) and not spec.serves(view, self.name, p, self.constants)
        loading = spec.loads(view, self.name, p, self.constants)
        if not stopped and not loading:
            yield from super().receive(view, message)
        if "RefuseRequest" in self.extensions:
            yield from self.refuse(view, message, p, stopped, loading)

    def refuse(self, view: View, request: Request, p: str, stopped: bool, loading: bool) -> Iterable[Step]:
        """EXTENSION RefuseRequest(b, c): a retriable error, for one of the reasons that `excuses` gives."""
        paid = self.extensions.paid(view)
        if paid is None:
            return
        codes = [Error.COORDINATOR_LOAD_IN_PROGRESS] if loading else self.excuses(view, request, p, stopped)
        for code in codes:
            refusal = answer(request, code)
            yield Step("RefuseRequest", (self.name, request.source), tuple(paid), (refusal,), detail=code)

    def excuses(self, view: View, request: Request, p: str, stopped: bool) -> Iterable[Error]:
        """What a broker may say that does not load: the log has not heard of its election; it waits for producer ids;
        it has stopped serving; it is deposed, and of a commit of this id has not heard."""
        b, tid = self.name, request.tid
        serves = spec.serves(view, b, p, self.constants)
        needs_pid = isinstance(request, InitPidRequest) and view.at("tc_tid_metadata", b, tid) is None
        if not serves or needs_pid:
            yield Error.COORDINATOR_LOAD_IN_PROGRESS
        if stopped:
            yield Error.NOT_COORDINATOR
        elif serves and spec.find_coordinator(view, tid) != b:
            committed: tuple[Entry, ...] = view.at("tc_log", b, p)[: view.at("tc_log_hwm", b, p)]
            if any(entry.tid == tid for entry in committed):
                yield Error.CONCURRENT_TRANSACTIONS


def actions(constants: Names, version: Version, extensions: Extensions) -> list[Process]:
    """Return the extension actions of brokers, the log and the network that are on, as processes."""
    found: list[Process] = []
    for b in constants.brokers:
        for p in constants.txn_log_partitions:
            rows = {
                "ResignEarly": resign_early, "CommitUnanswered": commit_unanswered, "DropUncommitted": drop_uncommitted,
                "LoadTxnLog": load_txn_log, "FinishLoading": finish_loading, "FailCommitted": fail_committed,
            }
            found += [make(b, p, constants, extensions) for name, make in rows.items() if name in extensions]
            elections = {
                "ElectFromLog": elect_from_log, "TakeOverLate": take_over_late, "FollowLate": follow_late,
            }
            found += [make_(b, p, constants, version) for name, make_ in elections.items() if name in extensions]
        if "Crash" in extensions:
            found.append(crash(b, constants, extensions))
    for address in (*constants.clients, *constants.brokers):
        if "LoseMessage" in extensions or "CopyMessage" in extensions:
            found.append(network(address, extensions))
    return found


def ids_on(view: View, p: str, constants: Names) -> list[str]:
    """Return the transactional ids of a partition."""
    return [tid for tid in constants.transactional_ids if view.at("t_to_p_mapping", tid) == p]


def has_stopped(view: View, b: str, p: str, constants: Names) -> bool:
    """Say whether a broker leads a partition, as far as it and the others know, without serving it."""
    return bool(view.at("tc_log_metadata", b, p).leader == b) and not spec.serves(view, b, p, constants)


def given_up(view: View, b: str, p: str, constants: Names) -> list[tuple[str, Value]]:
    """Return the writes that drop what a broker has not committed, and its pending transitions."""
    kept = view.at("tc_log", b, p)[: view.at("tc_log_hwm", b, p)]
    return [
        (slot("tc_log", b, p), kept),
        *((slot("tc_tid_transition", b, tid), None) for tid in ids_on(view, p, constants)),
    ]


def stopped(view: View, b: str, p: str, constants: Names) -> list[tuple[str, Value]]:
    """Return the writes by which a leader stops serving: what it knew beyond the committed log is forgotten."""
    known = election.replay(view.at("tc_log", b, p)[: view.at("tc_log_hwm", b, p)])
    writes = spec.serving(b, p, False, constants)
    writes += [(slot("tc_tid_metadata", b, tid), known.get(tid)) for tid in ids_on(view, p, constants)]
    return writes if view.at("txn_log_leader", p) == b else writes + given_up(view, b, p, constants)


def resign_early(b: str, p: str, constants: Names, extensions: Extensions) -> spec.Action:
    """EXTENSION ResignEarly(b, p): fail what is not committed and stop serving; the log keeps the entries for now."""

    def steps(view: View) -> Iterable[Step]:
        paid = extensions.paid(view)
        if paid is None or view.at("txn_log_leader", p) != b or not spec.serves(view, b, p, constants):
            return
        pending = election.uncommitted(view.at("tc_log", b, p), view.at("tc_log_hwm", b, p))
        writes = stopped(view, b, p, constants)
        yield Step("ResignEarly", (b, p), (*writes, *paid), election.failed_responses(pending))

    return spec.Action(f"ResignEarly[{b}][{p}]", steps)


def crash(b: str, constants: Names, extensions: Extensions) -> spec.Action:
    """EXTENSION Crash(b): whatever it leads it no longer serves, and nothing is on its way to it."""

    def steps(view: View) -> Iterable[Step]:
        paid = extensions.paid(view)
        if paid is None:
            return
        writes = [(slot("inbox", b), BAG.empty), (slot("aux_crashes", b), view.at("aux_crashes", b) + 1), *paid]
        for p in constants.txn_log_partitions:
            if spec.serves(view, b, p, constants):
                writes += stopped(view, b, p, constants)
        yield Step("Crash", (b,), tuple(writes))

    return spec.Action(f"Crash[{b}]", steps)


def commit_unanswered(b: str, p: str, constants: Names, extensions: Extensions) -> spec.Action:
    """EXTENSION CommitUnanswered(b, p): as CommitTxnLogAppend, of a leader that has stopped serving; no callback."""

    def steps(view: View) -> Iterable[Step]:
        entry = spec.next_to_commit(view, b, p, constants)
        if entry is None or not has_stopped(view, b, p, constants):
            return
        writes = spec.committed(view, b, p, entry, constants)
        writes.append((slot("tc_tid_metadata", b, entry.tid), entry.transition))
        writes.append((slot("tc_tid_transition", b, entry.tid), None))
        yield Step("CommitUnanswered", (b, p), tuple(writes))

    return spec.Action(f"CommitUnanswered[{b}][{p}]", steps)


def drop_uncommitted(b: str, p: str, constants: Names, extensions: Extensions) -> spec.Action:
    """EXTENSION DropUncommitted(b, p): a leader that has stopped serving has nothing under way any more."""

    def steps(view: View) -> Iterable[Step]:
        if has_stopped(view, b, p, constants) and len(view.at("tc_log", b, p)) > view.at("tc_log_hwm", b, p):
            yield Step("DropUncommitted", (b, p), tuple(given_up(view, b, p, constants)))

    return spec.Action(f"DropUncommitted[{b}][{p}]", steps)


def load_txn_log(b: str, p: str, constants: Names, extensions: Extensions) -> spec.Action:
    """EXTENSION LoadTxnLog(b, p): a leader that has stopped serving starts over in its epoch."""

    def steps(view: View) -> Iterable[Step]:
        if has_stopped(view, b, p, constants):
            serving = spec.serving(b, p, True, constants)
            yield Step("LoadTxnLog", (b, p), (*given_up(view, b, p, constants), *serving))

    return spec.Action(f"LoadTxnLog[{b}][{p}]", steps)


def finish_loading(b: str, p: str, constants: Names, extensions: Extensions) -> spec.Action:
    """EXTENSION FinishLoading(b, p): from now on it answers as coordinator."""

    def steps(view: View) -> Iterable[Step]:
        if spec.loads(view, b, p, constants):
            yield Step("FinishLoading", (b, p), ((slot("loading", b, p), False),))

    return spec.Action(f"FinishLoading[{b}][{p}]", steps)


def elect_from_log(b: str, p: str, constants: Names, version: Version) -> spec.Action:
    """EXTENSION ElectFromLog(b, p): as ElectLeader, but loading the log, and open to a leader that has stopped."""

    def steps(view: View) -> Iterable[Step]:
        if view["aux_coord_ctr"] >= constants.elections:
            return
        if view.at("tc_log_metadata", b, p).leader == b and spec.serves(view, b, p, constants):
            return
        committed: tuple[Entry, ...] = view.at("tc_log", b, p)[: view.at("tc_log_hwm", b, p)]
        known: Mapping[str, TxnMetadata] = election.replay(committed)
        writes = given_up(view, b, p, constants)
        writes += spec.elected(view, b, p, known.get, constants, version)
        yield Step("ElectFromLog", (b, p), tuple(writes))
        yield Step("ElectFromLog", (b, p), (*writes, *spec.serving(b, p, False, constants)), detail="gone")

    return spec.Action(f"ElectFromLog[{b}][{p}]", steps)


def take_over_late(b: str, p: str, constants: Names, version: Version) -> spec.Action:
    """EXTENSION TakeOverLate(b, p): lead in an epoch that is over and that nobody else leads; nothing commits in it."""

    def steps(view: View) -> Iterable[Step]:
        known: LogMetadata = view.at("tc_log_metadata", b, p)
        if known.leader == b and spec.serves(view, b, p, constants):
            return
        others: list[LogMetadata] = [view.at("tc_log_metadata", other, p) for other in constants.brokers]
        led_by_others = [other.cepoch for other in others if other.leader != b]
        committed = view.at("tc_log", b, p)[: view.at("tc_log_hwm", b, p)]
        loaded = election.replay(committed)
        for epoch in range(known.cepoch + 1, view.at("txn_log_epoch", p)):
            if epoch in led_by_others:
                continue
            writes = [(slot("tc_log_metadata", b, p), LogMetadata(epoch, b)), *given_up(view, b, p, constants)]
            writes += spec.serving(b, p, True, constants)
            writes += spec.materialize(view, b, p, loaded.get, constants, version)
            yield Step("TakeOverLate", (b, p), tuple(writes), detail=str(epoch))

    return spec.Action(f"TakeOverLate[{b}][{p}]", steps)


def follow_late(b: str, p: str, constants: Names, version: Version) -> spec.Action:
    """EXTENSION FollowLate(b, p): as BecomeFollower, in an epoch that is over."""

    def steps(view: View) -> Iterable[Step]:
        known: LogMetadata = view.at("tc_log_metadata", b, p)
        for epoch in range(known.cepoch + 1, view.at("txn_log_epoch", p)):
            for leader in constants.brokers:
                if version.must_follow(b, known.leader, known.cepoch, leader, epoch):
                    now = LogMetadata(epoch, leader)
                    writes, responses = spec.following(view, b, p, now, constants, version)
                    yield Step("FollowLate", (b, p), writes, responses, detail=f"{leader} {epoch}")

    return spec.Action(f"FollowLate[{b}][{p}]", steps)


def fail_committed(b: str, p: str, constants: Names, extensions: Extensions) -> spec.Action:
    """EXTENSION FailCommitted(b, p): the answer on its way says NotCoordinator although the entry is committed."""

    def steps(view: View) -> Iterable[Step]:
        believed: LogMetadata = view.at("tc_log_metadata", b, p)
        if believed.leader != b or view.at("txn_log_leader", p) == b or not spec.serves(view, b, p, constants):
            return
        for n, entry in enumerate(view.at("tc_log", b, p)[: view.at("tc_log_hwm", b, p)]):
            said, instead = entry.callback.response, entry.callback.err
            if said is not None and instead is not None and said in view.at("inbox", said.dest):
                yield Step("FailCommitted", (b, p), (), (instead,), said, detail=str(n))

    return spec.Action(f"FailCommitted[{b}][{p}]", steps)


def network(address: str, extensions: Extensions) -> spec.Action:
    """EXTENSIONS LoseMessage and CopyMessage, of each message on its way to an address."""

    def steps(view: View) -> Iterable[Step]:
        paid = extensions.paid(view)
        if paid is None:
            return
        for message in canonical_sort(set(BAG.contents(view.at("inbox", address)))):
            if "LoseMessage" in extensions:
                yield Step("LoseMessage", (), tuple(paid), consumed=message, detail=message.brief())
            if "CopyMessage" in extensions:
                yield Step("CopyMessage", (), tuple(paid), (message,), detail=message.brief())

    return spec.Action(f"network[{address}]", steps)
