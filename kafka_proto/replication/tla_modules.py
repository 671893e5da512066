"""The TLA+ modules of the replication specs: names, constants at a size, and the invariants that TLC can check.

`TypeOk` cannot be evaluated as written (S9), so `MCTypeOk` has no counterpart here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from harness.model.module import ModuleOf, TlaModule
from harness.model.spec import flat
from kafka_proto.replication.specs.async_isr import LEADER
from kafka_proto.replication.specs.by_version import SPECS, VersionSpec
from kafka_proto.replication.specs.names import replicas

SOURCE = "https://github.com/hachikuji/kafka-specification"
OURS = {
    "LeaderInIsrOrNone": r"quorumState.leader = None \/ quorumState.leader \in quorumState.isr",
    "IsrNonEmpty": "quorumState.isr # {}",
    "NoneRequestNeverApplied": r"""
    \A replica \in Replicas :
        replicaState[replica].leaderEpoch = Nil \/ replicaState[replica].leader # None""",
}


def module(spec: VersionSpec, sizes: Mapping[str, int], settings: Mapping[str, str]) -> TlaModule:
    """Return the module of a version of the base module, with the actions of its `Next` where that is LOCAL."""
    plain = {
        "LogSize": str(sizes["log-size"]), "MaxRecords": str(sizes["max-records"]),
        "MaxLeaderEpoch": str(sizes["max-leader-epoch"]),
    }
    return TlaModule(
        spec.module, {"Replicas": replicas(sizes["replicas"])}, plain, (), ("WeakIsr", "StrongIsr", "LeaderInIsr"),
        OURS, tuple(action.name for action in flat(spec.next_state)) if spec.is_local else (), source=SOURCE,
        as_written=not settings["repair"] and not settings.get("extend"),
    )


def async_isr(sizes: Mapping[str, int], settings: Mapping[str, str]) -> TlaModule:
    """Return AsyncIsr. `MaxOffset` bounds nothing that happens; the model's bounds are a separate constraint."""
    plain = {"Leader": LEADER, "MaxOffset": str(sizes["max-offset"])}
    return TlaModule(
        "AsyncIsr", {"Replicas": replicas(sizes["replicas"])}, plain, (), ("ValidHighWatermark",), source=SOURCE,
        as_written=not settings.get("extend"),
    )


MODULES: Mapping[str, ModuleOf] = {
    **{f"replication/{name}": partial(module, spec) for name, spec in SPECS.items()},
    "replication/async-isr": async_isr,
}
