"""The spec composition of diary 02 and the gist: their actions at the specs' granularity, over the specs' variables.

One slot per variable and index; messages travel on the specs' unordered set; a commit replicates to every broker at
once and a look-up of the coordinator is atomic. The modules `diary_02` and `gist` list which actions make up `Next`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import product

import attrs

from harness.model import Kind, Message, Op, Process, Step, Value, View, brief_value, slot
from kafka_proto.transactions.decisions import client as clients
from kafka_proto.transactions.decisions import election
from kafka_proto.transactions.decisions.outcome import Outcome
from kafka_proto.transactions.messages import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    Error,
    InitPidRequest,
    InitPidResponse,
    Request,
    Response,
)
from kafka_proto.transactions.records import ClientRecord, ClientState, Entry, LogMetadata, TxnMetadata
from kafka_proto.transactions.versions.version import Version


@attrs.frozen
class Names:
    """The constants of a model: who and what there is."""

    clients: tuple[str, ...]
    brokers: tuple[str, ...]
    txn_log_partitions: tuple[str, ...]
    topic_partitions: tuple[str, ...]
    transactional_ids: tuple[str, ...]
    elections: int
    extended: bool = False
    """Whether extension actions are on; then a leader may have stopped serving (`serving`)."""
    loads: bool = False
    """Whether an elected broker serves at once, or not before it has loaded its log (`loading`)."""


def names(sizes: Mapping[str, int], extended: bool = False, loads: bool = False) -> Names:
    """Return the constants for the given sizes: c1.., b1.., p1.., tp1.., tid1.."""

    def numbered(prefix: str, size: str) -> tuple[str, ...]:
        return tuple(f"{prefix}{n + 1}" for n in range(sizes.get(size, 0)))

    return Names(
        numbered("c", "clients"), numbered("b", "brokers"), numbered("p", "txn-log-partitions"),
        numbered("tp", "topic-partitions"), numbered("tid", "transactional-ids"), sizes.get("elections", 0),
        extended, loads,
    )


def symmetric(constants: Names) -> tuple[tuple[str, ...], ...]:
    """Return the symmetry sets of the specs' cfg: clients, brokers, log partitions, ids; each may be renamed."""
    return constants.clients, constants.brokers, constants.txn_log_partitions, constants.transactional_ids


def spread(items: tuple[str, ...], over: tuple[str, ...]) -> dict[str, str]:
    """Return the balanced mapping that the specs' CHOOSE stands for: round robin."""
    return {item: over[n % len(over)] for n, item in enumerate(items)}


def initial(constants: Names) -> dict[str, Value]:
    """The initial state of diary 02 and the gist (`Init`)."""
    leaders = spread(constants.txn_log_partitions, constants.brokers)
    state: dict[str, Value] = {slot("client", c): ClientRecord() for c in constants.clients}
    for b in constants.brokers:
        for tid in constants.transactional_ids:
            state[slot("tc_tid_metadata", b, tid)] = None
            state[slot("tc_tid_transition", b, tid)] = None
        for p, leader in leaders.items():
            state[slot("tc_log", b, p)] = ()
            state[slot("tc_log_hwm", b, p)] = 0
            state[slot("tc_log_metadata", b, p)] = LogMetadata(1, leader)
    for p, leader in leaders.items():
        state[slot("txn_log_leader", p)] = leader
        state[slot("txn_log_epoch", p)] = 1
    for tp in constants.topic_partitions:
        state[slot("topic_partitions", tp)] = ()
    for tid, p in spread(constants.transactional_ids, constants.txn_log_partitions).items():
        state[slot("t_to_p_mapping", tid)] = p
    return {**state, "pid_source": 0, "aux_coord_ctr": 0}


class SpecClient(Process):
    """A client of diary 02 and the gist."""

    has_inbox = True

    def __init__(self, name: str, constants: Names, version: Version) -> None:
        self.name = name
        self.slot = slot("client", name)
        self.constants = constants
        self.version = version

    def steps(self, view: View) -> Iterable[Step]:
        client = view[self.slot]
        yield from self.send_init_pid_request(view, client)
        yield from self.send_add_partitions(view, client)

    def receive(self, view: View, message: Message) -> Iterable[Step]:
        client = view[self.slot]
        match message:
            case InitPidResponse():
                yield from self.receive_init_pid_response(view, client, message)
            case AddPartitionsToTxnResponse():
                yield from self.receive_add_partitions_response(view, client, message)

    def send_init_pid_request(self, view: View, client: ClientRecord) -> Iterable[Step]:
        """ACTION SendInitPidRequest(c): to the current coordinator of the id, found atomically."""
        for tid in self.constants.transactional_ids:
            if clients.may_init(client, tid):
                yield self.ask_for_pid(view, client, tid, find_coordinator(view, tid), "SendInitPidRequest", tid)

    def ask_for_pid(
        self, view: View, client: ClientRecord, tid: str, broker: str, action: str, detail: str
    ) -> Step:
        """Return the step that sends an InitPidRequest for an id to a broker."""
        number, counted = self.numbered(view)
        request = InitPidRequest(tid, source=self.name, dest=broker, correlation=number)
        return Step(
            action, (self.name,), ((self.slot, clients.init_sent(client, tid)), *counted), (request,),
            detail=detail, op=Op(self.name, "init", "invoke", tid),
        )

    def numbered(self, view: View) -> tuple[int | None, tuple[tuple[str, Value], ...]]:
        """Return the number of the next request, and the write that counts it; the specs' requests have none."""
        return None, ()

    def awaits(self, view: View, client: ClientRecord, response: Response) -> bool:
        """Say whether the client takes a response; the specs' clients go by their own state alone."""
        if isinstance(response, InitPidResponse):
            return client.state is ClientState.SENT_INIT_PID_REQUEST
        return client.state is ClientState.BEGUN_TXN

    def receive_init_pid_response(
        self, view: View, client: ClientRecord, response: InitPidResponse
    ) -> Iterable[Step]:
        """ACTION ReceiveInitPidResponse(c, b)."""
        if not self.awaits(view, client, response):
            return
        after = self.version.init_answered(client, response)
        yield Step(
            "ReceiveInitPidResponse", (self.name, response.source), ((self.slot, after),),
            op=outcome(self.name, "init", response.code, (response.pid, response.pepoch)),
        )

    def send_add_partitions(self, view: View, client: ClientRecord) -> Iterable[Step]:
        """ACTION SendAddPartitionsToTxnRequest(c): one partition at a time."""
        for tp in self.constants.topic_partitions:
            if clients.may_add(client, tp):
                assert client.tid is not None and client.tc is not None
                number, counted = self.numbered(view)
                request = AddPartitionsToTxnRequest(
                    client.tid, client.pid, client.epoch, frozenset((tp,)),
                    source=self.name, dest=client.tc, correlation=number,
                )
                yield Step(
                    "SendAddPartitionsToTxnRequest", (self.name,),
                    ((self.slot, clients.add_sent(client, tp)), *counted),
                    (request,), detail=tp, op=Op(self.name, "add_partitions", "invoke", tp),
                )

    def receive_add_partitions_response(
        self, view: View, client: ClientRecord, response: AddPartitionsToTxnResponse
    ) -> Iterable[Step]:
        """ACTION ReceiveAddPartitionsToTxnResponse(c, b)."""
        if not self.awaits(view, client, response):
            return
        found = None
        if response.code is Error.NOT_COORDINATOR:
            assert client.tid is not None
            found = find_coordinator(view, client.tid)
        after = self.version.add_answered(client, response, found)
        yield Step(
            "ReceiveAddPartitionsToTxnResponse", (self.name, response.source), ((self.slot, after),),
            op=outcome(self.name, "add_partitions", response.code, brief_value(response.partitions)),
        )


def outcome(process: str, name: str, code: Error, value: Value) -> Op:
    """Return how an operation ended: every error code here is definite, so it is ok or fail."""
    return Op(process, name, "ok", value) if code is Error.OK else Op(process, name, "fail", str(code))


def find_coordinator(view: View, tid: str) -> str:
    """The atomic FindCoordinator of the specs."""
    leader: str = view.at("txn_log_leader", view.at("t_to_p_mapping", tid))
    return leader


class SpecBroker(Process):
    """The part of a transaction coordinator that answers requests."""

    has_inbox = True

    def __init__(self, name: str, version: Version) -> None:
        self.name = name
        self.version = version

    def receive(self, view: View, message: Message) -> Iterable[Step]:
        match message:
            case InitPidRequest():
                yield self.receive_init_pid_request(view, message)
            case AddPartitionsToTxnRequest():
                yield self.receive_add_partitions_request(view, message)

    def receive_init_pid_request(self, view: View, request: InitPidRequest) -> Step:
        """ACTION ReceiveInitPidRequest(b, c)."""
        leads = self.leads(view, request.tid)
        decided = self.version.init_producer_id(
            request,
            leads=leads,
            metadata=view.at("tc_tid_metadata", self.name, request.tid) if leads else None,
            pending=view.at("tc_tid_transition", self.name, request.tid) if leads else None,
            new_pid=view["pid_source"] + 1 if leads else None,
        )
        return self.carry_out(view, "ReceiveInitPidRequest", request, decided)

    def receive_add_partitions_request(self, view: View, request: AddPartitionsToTxnRequest) -> Step:
        """ACTION ReceiveAddPartitionsToTxnRequest(b, c)."""
        leads = self.leads(view, request.tid)
        decided = self.version.add_partitions(
            request,
            leads=leads,
            metadata=view.at("tc_tid_metadata", self.name, request.tid) if leads else None,
            pending=view.at("tc_tid_transition", self.name, request.tid) if leads else None,
        )
        return self.carry_out(view, "ReceiveAddPartitionsToTxnRequest", request, decided)

    def leads(self, view: View, tid: str) -> bool:
        p = view.at("t_to_p_mapping", tid)
        return bool(view.at("tc_log_metadata", self.name, p).leader == self.name)

    def carry_out(self, view: View, action: str, request: Request, decided: Outcome) -> Step:
        writes: list[tuple[str, Value]] = []
        if decided.metadata is not None:
            writes.append((slot("tc_tid_metadata", self.name, request.tid), decided.metadata))
            source = self.version.pid_source_after(view["pid_source"], decided.metadata.pid)
            writes.append(("pid_source", source))
        if decided.entry is not None:
            writes += append(view, self.name, decided.entry)
        return Step(action, (self.name, request.source), tuple(writes), decided.answers)


def append(view: View, broker: str, entry: Entry) -> list[tuple[str, Value]]:
    """Append an entry to a broker's local log and make its transition pending (`LocalTxnLogEntryAppend`)."""
    log = slot("tc_log", broker, view.at("t_to_p_mapping", entry.tid))
    return [(log, (*view[log], entry)), (slot("tc_tid_transition", broker, entry.tid), entry.transition)]


class Action(Process):
    """One action of the spec for one choice of its parameters, as a process of its own."""

    def __init__(self, name: str, steps: Callable[[View], Iterable[Step]]) -> None:
        self.name = name
        self._steps = steps

    def steps(self, view: View) -> Iterable[Step]:
        return self._steps(view)


def commit(b: str, p: str, constants: Names, version: Version) -> Action:
    """ACTION CommitTxnLogAppend(b, p): replicate one entry to every broker, advance every HWM, run the callback."""

    def steps(view: View) -> Iterable[Step]:
        entry = next_to_commit(view, b, p, constants)
        if entry is None or not serves(view, b, p, constants):
            return
        done = version.entry_committed(entry)
        writes = committed(view, b, p, entry, constants)
        writes += [
            (slot("tc_tid_metadata", b, entry.tid), entry.transition),
            (slot("tc_tid_transition", b, entry.tid), done.entry.transition if done.entry else None),
        ]
        if done.entry is not None:
            writes.append((slot("tc_log", b, p), (*view.at("tc_log", b, p), done.entry)))
        yield Step("CommitTxnLogAppend", (b, p), tuple(writes), done.answers)

    return Action(f"CommitTxnLogAppend[{b}][{p}]", steps)


def next_to_commit(view: View, b: str, p: str, constants: Names) -> Entry | None:
    """Return the entry that a leader may commit now: every broker has to be in its epoch."""
    offset = view.at("tc_log_hwm", b, p)
    log = view.at("tc_log", b, p)
    if offset >= len(log):
        return None
    if view.at("txn_log_leader", p) != b:
        return None
    cepoch = view.at("tc_log_metadata", b, p).cepoch
    if any(view.at("tc_log_metadata", other, p).cepoch != cepoch for other in constants.brokers):
        return None
    entry: Entry = log[offset]
    return entry


def committed(view: View, b: str, p: str, entry: Entry, constants: Names) -> list[tuple[str, Value]]:
    """Return the writes that put a leader's next entry below the high watermark of every broker."""
    writes: list[tuple[str, Value]] = []
    for other in constants.brokers:
        writes.append((slot("tc_log_hwm", other, p), view.at("tc_log_hwm", b, p) + 1))
        if other != b:
            writes.append((slot("tc_log", other, p), (*view.at("tc_log", other, p), entry)))
    return writes


def serves(view: View, b: str, p: str, constants: Names) -> bool:
    """Say whether a leader still does its work: always in the specs, not always with extension actions."""
    return not constants.extended or bool(view.at("serving", b, p))


def serving(b: str, p: str, now: bool, constants: Names) -> list[tuple[str, Value]]:
    """Return the writes that say whether a leader serves, with extension actions on; at first it may have to load."""
    if not constants.extended:
        return []
    return [(slot("serving", b, p), now), (slot("loading", b, p), now and constants.loads)]


def loads(view: View, b: str, p: str, constants: Names) -> bool:
    """Say whether a leader has yet to load its log: never in the specs."""
    return constants.extended and bool(view.at("loading", b, p))


def elect(b: str, p: str, constants: Names, version: Version) -> Action:
    """ACTION ElectLeader(b, p) of diary 02, BecomeLeader(b, p) of the gist: one atomic step with the controller's."""

    def steps(view: View) -> Iterable[Step]:
        elections = view["aux_coord_ctr"]
        if elections >= constants.elections:
            return
        if view.at("tc_log_metadata", b, p).leader == b:
            return
        deposed = view.at("txn_log_leader", p)
        if constants.extended and view.at("tc_log_metadata", deposed, p).cepoch != view.at("txn_log_epoch", p):
            return

        def loaded(tid: str) -> TxnMetadata | None:
            known: TxnMetadata | None = view.at("tc_tid_metadata", deposed, tid)
            return known

        writes = elected(view, b, p, loaded, constants, version)
        yield Step(version.election, (b, p), tuple(writes), kind=Kind.PERTURBATION)

    return Action(f"{version.election}[{b}][{p}]", steps)


def elected(
    view: View, b: str, p: str, loaded: Callable[[str], TxnMetadata | None], constants: Names, version: Version
) -> list[tuple[str, Value]]:
    """Return the writes that elect a broker; `loaded` gives what it loads of an id on the partition."""
    cepoch = view.at("txn_log_epoch", p) + 1
    writes: list[tuple[str, Value]] = [
        (slot("txn_log_leader", p), b),
        (slot("txn_log_epoch", p), cepoch),
        (slot("tc_log_metadata", b, p), LogMetadata(cepoch, b)),
        ("aux_coord_ctr", view["aux_coord_ctr"] + 1),
        *serving(b, p, True, constants),
    ]
    return writes + materialize(view, b, p, loaded, constants, version)


def materialize(
    view: View, b: str, p: str, loaded: Callable[[str], TxnMetadata | None], constants: Names, version: Version
) -> list[tuple[str, Value]]:
    """Return the writes by which a broker that leads a partition from now on knows its ids."""
    writes: list[tuple[str, Value]] = []
    for tid in constants.transactional_ids:
        on_partition = view.at("t_to_p_mapping", tid) == p
        own: TxnMetadata | None = view.at("tc_tid_metadata", b, tid)
        now = version.materialized(on_partition, loaded(tid) if on_partition else None, own)
        writes.append((slot("tc_tid_metadata", b, tid), now))
    return writes


def become_follower(b: str, p: str, constants: Names, version: Version) -> Action:
    """ACTION BecomeFollower(b, p): truncate, forget the ids of the partition, fail what was not committed."""

    def steps(view: View) -> Iterable[Step]:
        known = view.at("tc_log_metadata", b, p)
        leader, epoch = view.at("txn_log_leader", p), view.at("txn_log_epoch", p)
        if not version.must_follow(b, known.leader, known.cepoch, leader, epoch):
            return
        writes, responses = following(view, b, p, LogMetadata(epoch, leader), constants, version)
        yield Step("BecomeFollower", (b, p), writes, responses)

    return Action(f"BecomeFollower[{b}][{p}]", steps)


def following(
    view: View, b: str, p: str, now: LogMetadata, constants: Names, version: Version
) -> tuple[tuple[tuple[str, Value], ...], tuple[Response, ...]]:
    """Return the writes and responses of a broker that follows a leader from now on."""
    log, hwm = view.at("tc_log", b, p), view.at("tc_log_hwm", b, p)
    follows = version.follower_log(log, hwm, lambda: view.at("tc_log", now.leader, p))
    writes: list[tuple[str, Value]] = [
        (slot("tc_log_metadata", b, p), now),
        (slot("tc_log", b, p), follows),
        *serving(b, p, False, constants),
    ]
    for tid in constants.transactional_ids:
        if view.at("t_to_p_mapping", tid) == p:
            writes.append((slot("tc_tid_metadata", b, tid), None))
            writes.append((slot("tc_tid_transition", b, tid), None))
    given_up = election.uncommitted(log, hwm) if serves(view, b, p, constants) else ()
    return tuple(writes), election.failed_responses(given_up)


def complete_partial_txns(constants: Names, version: Version) -> Iterable[Action]:
    """Return the action for each broker and id, where the version has it (S5)."""
    if version.complete_partial_txn is None:
        return ()
    pairs = product(constants.brokers, constants.transactional_ids)
    return (complete_partial_txn(b, tid, constants, version.complete_partial_txn) for b, tid in pairs)


def complete_partial_txn(b: str, tid: str, constants: Names, decide: Callable[..., Entry | None]) -> Action:
    """ACTION CompletePartialTxn(b, tid): a new coordinator finishes what its predecessor prepared."""

    def steps(view: View) -> Iterable[Step]:
        p = view.at("t_to_p_mapping", tid)
        entry = decide(
            tid,
            leads=view.at("tc_log_metadata", b, p).leader == b,
            metadata=view.at("tc_tid_metadata", b, tid),
            pending=view.at("tc_tid_transition", b, tid),
        )
        if entry is not None and serves(view, b, p, constants) and not loads(view, b, p, constants):
            yield Step("CompletePartialTxn", (b, tid), tuple(append(view, b, entry)))

    return Action(f"CompletePartialTxn[{b}][{tid}]", steps)


def waits_for(constants: Names, view: View) -> tuple[str, ...]:
    """Say who waits for whom: clients for answers, partition leaders for replicas that do not know the epoch."""
    found = []
    for c in constants.clients:
        client: ClientRecord = view.at("client", c)
        if client.state is ClientState.SENT_INIT_PID_REQUEST and client.tid is not None:
            found.append(f"{c} waits for {find_coordinator(view, client.tid)} to answer its InitPidRequest")
        if client.pending_partitions:
            found.append(f"{c} waits for {client.tc} to answer its AddPartitionsToTxnRequest")
    for p in constants.txn_log_partitions:
        leader, epoch = view.at("txn_log_leader", p), view.at("txn_log_epoch", p)
        behind = [b for b in constants.brokers if view.at("tc_log_metadata", b, p).cepoch != epoch]
        if behind and view.at("tc_log_hwm", leader, p) < len(view.at("tc_log", leader, p)):
            found.append(f"{leader}, leader of {p} in epoch {epoch}, waits for {', '.join(behind)} to learn that epoch")
    return tuple(found)
