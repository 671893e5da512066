"""The TLA+ modules of the replication specs: names, constants at a size, and the invariants that TLC can check.

`TypeOk` cannot be evaluated as written (S9), so `MCTypeOk` has no counterpart here.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.model.module import ModuleOf, TlaModule
from harness.model.spec import Next, flat
from kafka_proto.replication.specs import kip_101, kip_279
from kafka_proto.replication.specs.async_isr import LEADER
from kafka_proto.replication.specs.names import replicas

SOURCE = "https://github.com/hachikuji/kafka-specification"
OURS = {
    "LeaderInIsrOrNone": r"quorumState.leader = None \/ quorumState.leader \in quorumState.isr",
    "IsrNonEmpty": "quorumState.isr # {}",
    "NoneRequestNeverApplied": r"""
    \A replica \in Replicas :
        replicaState[replica].leaderEpoch = Nil \/ replicaState[replica].leader # None""",
}


def version(name: str, local_next: Next = ()) -> ModuleOf:
    """Return what gives the module of a version of the base module; `local_next` is its `Next` where that is LOCAL."""

    def module(sizes: Mapping[str, int], settings: Mapping[str, str]) -> TlaModule:
        plain = {
            "LogSize": str(sizes["log-size"]), "MaxRecords": str(sizes["max-records"]),
            "MaxLeaderEpoch": str(sizes["max-leader-epoch"]),
        }
        return TlaModule(
            name, {"Replicas": replicas(sizes["replicas"])}, plain, (), ("WeakIsr", "StrongIsr", "LeaderInIsr"), OURS,
            tuple(action.name for action in flat(local_next)), source=SOURCE,
            as_written=not settings["repair"] and not settings.get("extend"),
        )

    return module


def async_isr(sizes: Mapping[str, int], settings: Mapping[str, str]) -> TlaModule:
    """Return AsyncIsr. `MaxOffset` bounds nothing that happens; the model's bounds are a constraint beside it."""
    plain = {"Leader": LEADER, "MaxOffset": str(sizes["max-offset"])}
    return TlaModule(
        "AsyncIsr", {"Replicas": replicas(sizes["replicas"])}, plain, (), ("ValidHighWatermark",), source=SOURCE,
        as_written=not settings.get("extend"),
    )


MODULES: Mapping[str, ModuleOf] = {
    "replication/truncate-to-high-watermark": version("KafkaTruncateToHighWatermark"),
    "replication/kip-101": version("Kip101", kip_101.NEXT),
    "replication/kip-279": version("Kip279", kip_279.NEXT),
    "replication/kip-320-first-try": version("Kip320FirstTry"),
    "replication/kip-320": version("Kip320"),
    "replication/async-isr": async_isr,
}
