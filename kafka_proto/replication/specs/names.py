"""How a module of the spec becomes a model: its constants, its variables and what its actions range over.

One slot per field: `replicaState[r1][hw]`, `quorumState[isr]`, one request per leader epoch (`leaderAndIsrRequests[0]`,
None until it is sent), `replicaLog[r1][records]` without the offsets that are not written. `spec_variables` gathers the
spec's own variables from them. What the actions do is said in `kafka_replication` and in the modules of the versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import permutations, product
from typing import cast

import attrs

from harness.model import FrozenMap, Model, State, Value, View, departed, slot
from harness.model.spec import Index
from kafka_proto.replication.records import NIL, Isr, LeaderAndIsrRequest, Log
from kafka_proto.replication.versions.base import AS_WRITTEN, BaseVersion
from kafka_proto.replication.versions.departures import DEPARTURES

NOBODY = "NONE"
"""The string by which the spec says that nobody leads. In slots it is None."""
NONE = FrozenMap({"$str": NOBODY})
"""The same in the encoding of the published state graphs."""



@attrs.frozen
class ReplicationNames:
    """The constants of a model, and the version of the base module."""

    replicas: tuple[str, ...]
    log_size: int
    max_records: int
    max_leader_epoch: int
    version: BaseVersion = AS_WRITTEN

    @property
    def epochs(self) -> tuple[str, ...]:
        """The leader epochs, as indices of slots."""
        return tuple(str(epoch) for epoch in range(self.max_leader_epoch + 1))


def names(sizes: Mapping[str, int], settings: Mapping[str, str]) -> ReplicationNames:
    """Return the constants for the given sizes: replicas r1.., and the repairs that the settings name."""
    return ReplicationNames(
        replicas(sizes["replicas"]), sizes["log-size"], sizes["max-records"], sizes["max-leader-epoch"],
        departed(AS_WRITTEN, DEPARTURES, settings["repair"]),
    )


def replicas(number: int) -> tuple[str, ...]:
    return tuple(f"r{n + 1}" for n in range(number))


def initial(k: ReplicationNames) -> dict[str, Value]:
    """The initial state (`Init`): empty logs, nobody leads, every replica is in the quorum's ISR."""
    state: dict[str, Value] = {"nextLeaderEpoch": 0, "nextRecordId": 0}
    for replica in k.replicas:
        state[slot("replicaLog", replica, "endOffset")] = 0
        state[slot("replicaLog", replica, "records")] = ()
        state[slot("replicaState", replica, "hw")] = 0
        state[slot("replicaState", replica, "leaderEpoch")] = NIL
        state[slot("replicaState", replica, "leader")] = None
        state[slot("replicaState", replica, "isr")] = frozenset()
    for epoch in k.epochs:
        state[slot("leaderAndIsrRequests", epoch)] = None
    state[slot("quorumState", "leaderEpoch")] = NIL
    state[slot("quorumState", "leader")] = None
    state[slot("quorumState", "isr")] = frozenset(k.replicas)
    return state


def leader_of(view: View, replica: str) -> str | None:
    """Read in whom a replica believes."""
    return cast("str | None", view.at("replicaState", replica, "leader"))


def epoch_of(view: View, replica: str) -> int:
    """Read the leader epoch that a replica knows."""
    return cast(int, view.at("replicaState", replica, "leaderEpoch"))


def isr_of(view: View, replica: str) -> Isr:
    """Read the ISR that a replica knows."""
    return cast(Isr, view.at("replicaState", replica, "isr"))


def hw_of(view: View, replica: str) -> int:
    """Read a replica's high watermark."""
    return cast(int, view.at("replicaState", replica, "hw"))


def end_of(view: View, replica: str) -> int:
    """Read the end offset of a replica's log."""
    return cast(int, view.at("replicaLog", replica, "endOffset"))


def log_of(view: View, replica: str) -> Log:
    """Read the records of a replica's log."""
    return cast(Log, view.at("replicaLog", replica, "records"))


class Known:
    """What a replica knows, read when it is asked for."""

    def __init__(self, view: View, replica: str) -> None:
        self._view = view
        self._replica = replica

    @property
    def isr(self) -> Isr:
        return isr_of(self._view, self._replica)

    @property
    def high_watermark(self) -> int:
        return hw_of(self._view, self._replica)

    @property
    def log(self) -> Log:
        return log_of(self._view, self._replica)

    @property
    def end_offset(self) -> int:
        return end_of(self._view, self._replica)

    @property
    def leader_epoch(self) -> int:
        return epoch_of(self._view, self._replica)


def request_of(view: View, epoch: str) -> LeaderAndIsrRequest | None:
    """Read the LeaderAndIsr request of an epoch, None where there is none yet."""
    return cast("LeaderAndIsrRequest | None", view.at("leaderAndIsrRequests", epoch))


def two_replicas(k: ReplicationNames) -> Iterable[Index]:
    """Pairs of different replicas. With a replica and itself no action that is about two of them is ever possible."""
    return permutations(k.replicas, 2)


def follower_leader_epoch(k: ReplicationNames) -> Iterable[Index]:
    """A replica, another one that may lead it (S10: or nobody), and the epoch of a request."""
    leaders = k.version.leaders(k.replicas, NOBODY)
    return ((r, leader, epoch) for r, leader, epoch in product(k.replicas, leaders, k.epochs) if r != leader)


def spec_variables(model: Model, state: State) -> dict[str, Value]:
    """Return a state as the module's variables: records padded to the log size, requests as a set, NONE as a string."""
    variables = model.gathered(state)
    size = model.sizes["log-size"]
    variables["replicaLog"] = FrozenMap({r: log.update({"records": _padded(log["records"], size)})
                                         for r, log in variables["replicaLog"].items()})
    variables["replicaState"] = FrozenMap({r: _with_leader(known) for r, known in variables["replicaState"].items()})
    variables["quorumState"] = _with_leader(variables["quorumState"])
    requests = [request for request in variables["leaderAndIsrRequests"].values() if request is not None]
    variables["leaderAndIsrRequests"] = frozenset(
        _with_leader(FrozenMap({"leader": r.leader, "leaderEpoch": r.leader_epoch, "isr": r.isr})) for r in requests
    )
    return variables


def _padded(log: Log, size: int) -> FrozenMap[str, Value]:
    return FrozenMap({str(offset): log[offset] if offset < len(log) else NIL for offset in range(size)})


def _with_leader(known: FrozenMap[str, Value]) -> FrozenMap[str, Value]:
    return known.set("leader", NONE) if known["leader"] is None else known
