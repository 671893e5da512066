"""The actor composition of every version: replicas, a controller, producers and consumers, over messages.

The decisions are those of the spec compositions. What is added is what running replicas need: requests and answers,
time-outs, incarnations, crashes, ISR changes that are proposed and heard of later, and clients.
docs/models/replication.md says where it departs from the specs and from Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from harness.model import (
    Faults,
    LogEntry,
    LogMark,
    Model,
    Network,
    Process,
    Refinement,
    ShownLog,
    View,
    departed,
)
from harness.model.faults import BUDGET
from kafka_proto.replication import clients, controller, messages, replica_state
from kafka_proto.replication.actor_properties import UNCLEAN, ReplicaNames, properties
from kafka_proto.replication.clients import PartitionConsumer, PartitionProducer
from kafka_proto.replication.controller import CONTROLLER, Controller
from kafka_proto.replication.quorum import deaf
from kafka_proto.replication.refinement import async_isr_refinement, refinement
from kafka_proto.replication.replica import PartitionReplica
from kafka_proto.replication.replica_state import Replica, ReplicaState, ReplicaVersion
from kafka_proto.replication.specs.by_version import SPECS
from kafka_proto.replication.specs.names import replicas
from kafka_proto.replication.versions import CHANGES, COUNTS, DEPARTURES, of_spec

TYPES: tuple[type, ...] = (*messages.TYPES, *replica_state.TYPES, *controller.TYPES, *clients.TYPES)
ACKS = {"all": ("all",), "1": ("1",), "mixed": ("1", "all")}


def build(
    version: ReplicaVersion, sizes: Mapping[str, int], settings: Mapping[str, str], network: Network, faults: Faults,
    history_variables: bool,
) -> Model:
    """Build the actors of a version at a size."""
    rules = departed(version, DEPARTURES, COUNTS[settings.get("counts", "potential-isr")])
    rules = departed(rules, CHANGES.get(version.name, ()), settings.get("change", ""))
    names = replicas(sizes["replicas"])
    constants = [
        Replica(name, rules, sizes["min-insync-replicas"], settings["flush"] == "each") for name in names
    ]
    producers = tuple(f"p{n + 1}" for n in range(sizes["producers"]))
    consumers = tuple(f"c{n + 1}" for n in range(sizes["consumers"]))
    acks = ACKS[settings["acks"]]
    unclean = settings["election"] == "unclean"
    processes: list[Process] = [
        *(PartitionProducer(name, names, sizes["records"], acks) for name in producers),
        *(PartitionConsumer(name, names, sizes["polls"]) for name in consumers),
        *(PartitionReplica(k, names) for k in constants),
        Controller(names, sizes["elections"], sizes["fencings"], unclean, rules.are_eligible,
                   rules.take_out),
    ]
    known = ReplicaNames(tuple(constants), producers, consumers, partial(crashes, faults))
    return Model(
        f"replication/{version.name}/actors", tuple(processes), ({},), network, faults,
        tuple(p for p in properties(known) if unclean or p.name != UNCLEAN),
        history_variables=history_variables, sizes=sizes, settings=settings, types=TYPES,
        waits_for=partial(waits_for, known), symmetric=(names, producers, consumers),
        logs=lambda view: tuple(replica_log("partition", name, view[name]) for name in names),
        companions={p: tuple(f"{p}-{n + 1}" for n in range(sizes["records"])) for p in producers},
        refinement=held_against(version.name, sizes, settings, faults),
    )


def replica_log(partition: str, holder: str, state: ReplicaState) -> ShownLog:
    """Return a replica's log as a viewer sees it: its records with their leader epochs, and its high watermark."""
    entries = tuple(
        LogEntry(offset, str(entry.value), note=f"e{entry.epoch}", details=(("leader epoch", str(entry.epoch)),))
        for offset, entry in enumerate(state.log)
    )
    known = (("leader", state.leader or "nobody"), ("leader epoch", str(state.leader_epoch)),
             ("ISR", ", ".join(sorted(state.isr)) or "nobody"))
    marks = (LogMark("high watermark", "HW", state.high_watermark),)
    return ShownLog(partition, holder, state.end_offset, entries, marks, known, known)


def held_against(
    version: str, sizes: Mapping[str, int], settings: Mapping[str, str], faults: Faults
) -> Callable[[], Refinement] | None:
    """Return what builds the refinement, or None if there is no refinement: docs/reference/limits.md says why."""
    changed = filter(None, settings.get("change", "").split(","))
    if settings["flush"] != "each" or settings["election"] != "clean":
        return None
    if not {change.id for change in of_spec(version)}.issuperset(changed):
        return None
    if version == "async-isr":
        return partial(async_isr_refinement, sizes, settings)
    return partial(refinement, version, sizes, settings, faults) if version in SPECS else None


def crashes(faults: Faults, view: View) -> int:
    """Return how many of the crashes that the faults allow have happened."""
    if not faults.reaches("crash"):
        return 0
    left = view[BUDGET]
    return sum(allowed - left[kind] for kind, allowed in faults.budget.items() if kind.startswith("crash"))


def waits_for(names: ReplicaNames, view: View) -> tuple[str, ...]:
    """Say which actors wait for which: clients for answers, replicas for their leader or the controller."""
    found = []
    for name in (*names.producers, *names.consumers):
        if view[name].awaits:
            found.append(f"{name} waits for an answer")
    for name in names.names:
        local: ReplicaState = view[name]
        if local.becoming is not None:
            found.append(f"{name} waits for {local.becoming.leader} to say where to truncate")
        if local.proposal is not None:
            found.append(f"{name} waits for {CONTROLLER} to take its ISR")
    quorum = view[CONTROLLER].partition
    return (*found, *(f"{CONTROLLER} waits for {name} to hear of epoch {quorum.leader_epoch}" for name in deaf(quorum)))
