"""Members of a group that ask brokers which lead for good or are elected: what each was answered, now or later."""

from __future__ import annotations

from collections import deque
from typing import Any

from harness.model import Local, Message
from kafka_proto.broker.controller import ClusterController
from kafka_proto.broker.state import METADATA
from kafka_proto.broker.versions import KIP_890_4_4, BrokerVersion
from kafka_proto.conformance.cluster import PlayedCluster
from kafka_proto.replication.messages import FetchResponse
from kafka_proto.requests import (
    OFFSETS_PARTITION,
    Error,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    OffsetCommitRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)

SESSION, REBALANCE = 10_000, 30_000
GROUP = "g"


class Members(PlayedCluster):
    """Brokers with two partitions of `T`, and members of one group that ask them."""

    def __init__(self, brokers: int, version: BrokerVersion = KIP_890_4_4) -> None:
        self.holds_fetches = False
        """Whether followers are told nothing of the offsets log."""
        self.fetches: list[Message] = []
        super().__init__(version, ("T-0", "T-1"), brokers)

    def release(self) -> None:
        """Let followers go on."""
        self.holds_fetches, held, self.fetches = False, self.fetches, []
        self._settle(held)

    def _delivered(self, message: Message) -> tuple[Message, ...]:
        if self.holds_fetches and isinstance(message, FetchResponse) and message.partition == OFFSETS_PARTITION:
            self.fetches.append(message)
            return ()
        return super()._delivered(message)

    def leader(self, p: str) -> str:
        """Return who leads a partition now, as far as the controller has told."""
        elected: str = self._states[self.placement.brokers[0]][METADATA].known[p].leader
        return elected

    def elect(self, broker: str) -> None:
        """Let another broker coordinate the group."""
        (name, controller), = ((n, a) for n, a in self._actors.items() if isinstance(a, ClusterController))
        state: Local = self._states[name]
        turn = next(turn for turn in controller.elects(state) if turn.args == (broker, OFFSETS_PARTITION))
        self._states[name] = turn.local
        self._settle(turn.sent)

    def shrink(self) -> None:
        """Let the followers for which a record waits leave the ISR, one after the other; none comes back meanwhile."""
        name = self.leader(OFFSETS_PARTITION)
        while turn := next(iter(self._actors[name].timer_fired(self._states[name], "ReplicaLagTime")), None):
            self._states[name] = turn.local
            ahead = deque(turn.sent)
            while ahead:
                ahead.extend(self._delivered(ahead.popleft()))

    def wait(self, ms: int) -> None:
        """Let so many milliseconds pass."""
        self.pass_time(self.now + ms)

    def join(self, member: str = "", instance: str | None = None, version: int = 9, group: str = GROUP,
             session: int = SESSION, protocols: tuple[str, ...] = ("range",)) -> int:
        """Send a join, and return its number."""
        said = tuple((name, b"m-" + name.encode()) for name in protocols)
        return self.begin(
            JoinGroupRequest(version, group, session, REBALANCE, member, instance, "consumer", said, "client")
        )

    def joined(self, *member: str, **how: Any) -> JoinGroupResponse:
        """Return the answer to a join that does not wait."""
        found: JoinGroupResponse = self.answer(self.join(*member, **how))
        return found

    def new(self, **how: Any) -> tuple[str, int]:
        """Join as a new member does, first for an id and then with it; return the id and the number of the join."""
        promised = self.joined(**how)
        assert promised.error is Error.MEMBER_ID_REQUIRED
        return promised.member_id, self.join(promised.member_id, **how)

    def sync(self, member: str, generation: int, *assigned: str, version: int = 4, **how: Any) -> int:
        """Send a sync, the leader's with an assignment for each member, and return its number."""
        rows = tuple((each, each.encode()) for each in assigned)
        return self.begin(SyncGroupRequest(version, GROUP, generation, member, assignments=rows, **how))

    def synced(self, *member: Any, **how: Any) -> SyncGroupResponse:
        """Return the answer to a sync that does not wait."""
        found: SyncGroupResponse = self.answer(self.sync(*member, **how))
        return found

    def beat(self, member: str, generation: int, instance: str | None = None) -> Error:
        """Return what is said to a heartbeat."""
        found: Any = self.ask(HeartbeatRequest(4, GROUP, generation, member, instance))
        error: Error = found.error
        return error

    def leave(self, *members: str, version: int = 4) -> LeaveGroupResponse:
        """Return what is said to members that leave."""
        found: Any = self.ask(LeaveGroupRequest(version, GROUP, tuple(map(MemberIdentity, members))))
        left: LeaveGroupResponse = found
        return left

    def commit(self, member: str, generation: int, offset: int = 1) -> Error:
        """Return what is said to a commit."""
        found: Any = self.ask(OffsetCommitRequest(8, GROUP, "T-0", offset, generation, member))
        error: Error = found.error
        return error

    def pair(self) -> tuple[str, str]:
        """Return the ids of a stable group of two, in generation 2; the first one leads."""
        first, one = self.new()
        assert self.answer(one).generation_id == 1
        assert self.synced(first, 1, first).assignment == first.encode()
        second, two = self.new()
        one = self.join(first)
        assert self.answer(one).generation_id == self.answer(two).generation_id == 2
        waiting = self.sync(second, 2)
        assert self.synced(first, 2, first, second).assignment == first.encode()
        assert self.answer(waiting).assignment == second.encode()
        return first, second
