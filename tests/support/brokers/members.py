"""Members of a group that ask brokers which lead for good or are elected: what each was answered, now or later."""

from __future__ import annotations

from collections import deque
from typing import Any

from harness.model import Local, Message
from kafka_proto import requests
from kafka_proto.broker.controller import ClusterController
from kafka_proto.broker.parts import METADATA
from kafka_proto.broker.versions import KIP_890_4_4, BrokerVersion
from kafka_proto.conformance.playing import PlayedCluster
from kafka_proto.replication.messages import FetchResponse
from kafka_proto.requests import OFFSETS_PARTITION, Error

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
            requests.JoinGroupRequest(version, group, session, REBALANCE, member, instance, "consumer", said, "client")
        )

    def joined(self, *member: str, **how: Any) -> requests.JoinGroupResponse:
        """Return the answer to a join that does not wait."""
        found: requests.JoinGroupResponse = self.answer(self.join(*member, **how))
        return found

    def new(self, **how: Any) -> tuple[str, int]:
        """Join as a new member does, first for an id and then with it; return the id and the number of the join."""
        promised = self.joined(**how)
        assert promised.error is Error.MEMBER_ID_REQUIRED
        return promised.member_id, self.join(promised.member_id, **how)

    def sync(self, member: str, generation: int, *assigned: str, version: int = 4, **how: Any) -> int:
        """Send a sync, the leader's with an assignment for each member, and return its number."""
        rows = tuple((each, each.encode()) for each in assigned)
        return self.begin(requests.SyncGroupRequest(version, GROUP, generation, member, assignments=rows, **how))

    def synced(self, *member: Any, **how: Any) -> requests.SyncGroupResponse:
        """Return the answer to a sync that does not wait."""
        found: requests.SyncGroupResponse = self.answer(self.sync(*member, **how))
        return found

    def beat(self, member: str, generation: int, instance: str | None = None) -> Error:
        """Return what is said to a heartbeat."""
        found: Any = self.ask(requests.HeartbeatRequest(4, GROUP, generation, member, instance))
        error: Error = found.error
        return error

    def leave(self, *members: str, version: int = 4) -> requests.LeaveGroupResponse:
        """Return what is said to members that leave."""
        found: Any = self.ask(requests.LeaveGroupRequest(version, GROUP, tuple(map(requests.MemberIdentity, members))))
        left: requests.LeaveGroupResponse = found
        return left

    def commit(self, member: str, generation: int, offset: int = 1) -> Error:
        """Return what is said to a commit."""
        found: Any = self.ask(requests.OffsetCommitRequest(8, GROUP, "T-0", offset, generation, member))
        error: Error = found.error
        return error

    def alone(self) -> str:
        """Return the id of the one member of a stable group, in generation 1."""
        first, one = self.new()
        assert self.answer(one).generation_id == 1
        assert self.synced(first, 1, first).assignment == first.encode()
        return first

    def static(self, **how: Any) -> str:
        """Return the id of the one member of a stable group, the instance `i`."""
        joined = self.joined(instance="i", **how)
        assert (joined.error, joined.generation_id) == (Error.NONE, 1)
        self.sync(joined.member_id, 1, joined.member_id, group_instance_id="i")
        return joined.member_id

    def pair(self) -> tuple[str, str]:
        """Return the ids of a stable group of two, in generation 2; the first one leads."""
        first = self.alone()
        second, two = self.new()
        one = self.join(first)
        assert self.answer(one).generation_id == self.answer(two).generation_id == 2
        waiting = self.sync(second, 2)
        assert self.synced(first, 2, first, second).assignment == first.encode()
        assert self.answer(waiting).assignment == second.encode()
        return first, second

    def third_generation(self) -> tuple[str, str]:
        """Return the ids of a pair that has joined again, and has not synced; the first one leads."""
        first, second = self.pair()
        waits = self.join(second, protocols=("range", "sticky"))
        self.join(first)
        assert self.answer(waits).generation_id == 3
        return first, second
