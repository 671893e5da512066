"""How a module of the spec becomes a model: its constants, its variables and what its actions range over.

One slot per field: `replicaState[r1][hw]`, `quorumState[isr]`, one request per leader epoch (`leaderAndIsrRequests[0]`,
None until it is sent), `replicaLog[r1][records]` without the offsets that are not written. `spec_variables` gathers the
spec's own variables from them. What the actions do is said in `kafka_replication` and in the modules of the versions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import permutations, product
from typing import Any, cast

import attrs

from harness.model import FrozenMap, Model, State, Value, View, departed, slot
from harness.model.spec import Index
from kafka_proto.replication.records import NIL, Isr, LeaderAndIsrRequest, Log
from kafka_proto.replication.versions import AS_WRITTEN, DEPARTURES, BaseVersion, of_spec

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
        departed(AS_WRITTEN, (*DEPARTURES, *of_spec("kip-320")), f"{settings['repair']},{settings.get('change', '')}"),
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


def of_replica(variable: str, field: str) -> Callable[[View, str], Any]:
    """Return what reads a field of a variable that is a function of the replicas."""
    return lambda view, replica: view.at(variable, replica, field)


leader_of: Callable[[View, str], str | None] = of_replica("replicaState", "leader")
"""In whom a replica believes."""
epoch_of: Callable[[View, str], int] = of_replica("replicaState", "leaderEpoch")
"""The leader epoch that a replica knows."""
isr_of: Callable[[View, str], Isr] = of_replica("replicaState", "isr")
"""The ISR that a replica knows."""
hw_of: Callable[[View, str], int] = of_replica("replicaState", "hw")
"""A replica's high watermark."""
end_of: Callable[[View, str], int] = of_replica("replicaLog", "endOffset")
"""The end offset of a replica's log."""
log_of: Callable[[View, str], Log] = of_replica("replicaLog", "records")
"""The records of a replica's log."""


def request_of(view: View, epoch: str) -> LeaderAndIsrRequest | None:
    """Read the LeaderAndIsr request of an epoch, None where there is none yet."""
    return cast("LeaderAndIsrRequest | None", view.at("leaderAndIsrRequests", epoch))


def two_replicas(k: ReplicationNames) -> Iterable[Index]:
    """Pairs of different replicas. With a replica and itself no action that is about two of them is ever possible."""
    return permutations(k.replicas, 2)


def follower_leader_epoch(k: ReplicationNames) -> Iterable[Index]:
    """A replica, another one that may lead it (S10: or nobody), and the epoch of a request."""
    leaders = (*k.replicas, NOBODY) if k.version.obeys_without_leader else k.replicas
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
