"""The models of the replication protocol, with their sizes and settings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from harness.model import Departure, Faults, Model, ModelSpec, Network, Setting, Size
from harness.model.spec import chosen, processes, reasons
from kafka_proto.replication.extensions import ACTIONS
from kafka_proto.replication.properties import CHECKED, properties
from kafka_proto.replication.records import LeaderAndIsrRequest, Record
from kafka_proto.replication.replica_state import ReplicaVersion
from kafka_proto.replication.specs import async_isr
from kafka_proto.replication.specs.by_version import SPECS, VersionSpec
from kafka_proto.replication.specs.names import initial, names, spec_variables
from kafka_proto.replication.versions import ASYNC_ISR, CHANGES, VERSIONS, of_spec

SIZES = {
    "replicas": Size(2, maximum=5, doc="replicas of the one partition"),
    "log-size": Size(2, maximum=6, doc="offsets of a log"),
    "max-records": Size(2, maximum=6, doc="records that are ever written"),
    "max-leader-epoch": Size(2, minimum=0, maximum=6, doc="the last leader epoch; the first is 0"),
}
SETTINGS = {"repair": Setting(("S8", "S10"), several=True, doc="flaws of the spec to repair")}
COUNTS = {
    "counts": Setting(
        ("potential-isr", "isr"), "potential-isr", doc="whom the high watermark is about: proposed members too, or not"
    )
}
ASYNC_ISR_SIZES = {
    "replicas": Size(2, maximum=5, doc="replicas of the one partition, the leader among them"),
    "max-version": Size(2, minimum=0, maximum=6, doc="constraint: the last version of the controller's ISR"),
    "max-offset": Size(1, maximum=6, doc="constraint: the last offset of any replica"),
}


def changes(known: tuple[Departure, ...]) -> Mapping[str, Setting]:
    """Return the setting that replaces decisions of a version, if it has departures."""
    doc = "what is done otherwise: " + "; ".join(f"{change.id}, {change.title}" for change in known)
    return {"change": Setting(tuple(change.id for change in known), several=True, doc=doc)} if known else {}


def beyond(extensions: Mapping[str, str]) -> Setting:
    """Return the setting that switches extension actions on."""
    return Setting(tuple(extensions), several=True, doc="behaviour that the spec abstracts from")


ACTOR_SIZES = {
    "replicas": Size(2, maximum=5, doc="replicas of the one partition"),
    "producers": Size(1, minimum=0, maximum=4, doc="producers"),
    "consumers": Size(0, minimum=0, maximum=4, doc="consumers"),
    "records": Size(1, maximum=20, doc="records that a producer sends"),
    "polls": Size(2, maximum=20, doc="polls of a consumer"),
    "elections": Size(1, minimum=0, maximum=9, doc="how often the controller replaces a leader that has not failed"),
    "fencings": Size(0, minimum=0, maximum=9, doc="how often the controller takes out a replica that has not failed"),
    "min-insync-replicas": Size(1, maximum=5, doc="how many must be in sync for acks=all"),
}
ACTOR_SETTINGS = {
    "acks": Setting(("all", "1", "mixed"), "all", doc="whose acknowledgement producers ask for"),
    "flush": Setting(("each", "lazy"), "each", doc="a log is on disk at once, or a crash loses its newest records"),
    "election": Setting(("clean", "unclean"), "clean", doc="whether a replica that is not in sync may be elected"),
}


def build_actors(version: ReplicaVersion, *wanted: Any) -> Model:
    from kafka_proto.replication import actors  # a search of a spec needs nothing of them

    return actors.build(version, *wanted)


def actor_model(version: ReplicaVersion) -> ModelSpec:
    """Return the model of a version's actors."""
    settings = {
        **ACTOR_SETTINGS, **(COUNTS if version is ASYNC_ISR else {}), **changes(CHANGES.get(version.name, ())),
    }
    return ModelSpec(
        f"replication/{version.name}/actors", f"{version.title}, as actors on a faulty network",
        partial(build_actors, version), ACTOR_SIZES, settings, ("bag", "fifo"), may_fault=True,
    )


def build(
    version: str, spec: VersionSpec, sizes: Mapping[str, int], settings: Mapping[str, str], network: Network,
    faults: Faults, history_variables: bool,
) -> Model:
    """Build a version of the base module at a size, with the extension actions that the settings name."""
    k = names(sizes, settings)
    whole = (*spec.next_state, *chosen(ACTIONS[version], settings["extend"].split(",")))
    return Model(
        f"replication/{version}", processes(whole, k), (initial(k),), network, faults, properties(k), spec.fairness,
        history_variables, sizes, settings, types=(Record, LeaderAndIsrRequest), symmetric=(k.replicas,),
        claimed=CHECKED, spec_variables=spec_variables,
    )


def build_async_isr(
    sizes: Mapping[str, int], settings: Mapping[str, str], network: Network, faults: Faults, history_variables: bool
) -> Model:
    """Build AsyncIsr at a size, with the extension actions that the settings name."""
    k = async_isr.constants(sizes, settings)
    whole = (*async_isr.NEXT, *chosen(ACTIONS["async-isr"], settings["extend"].split(",")))
    return Model(
        "replication/async-isr", processes(whole, k), (async_isr.initial(k),), network, faults, async_isr.properties(k),
        {}, history_variables, sizes, settings, types=(async_isr.IsrMessage,), symmetric=(k.followers,),
        constraint=async_isr.constraint(k), claimed=async_isr.CHECKED,
    )


MODELS: tuple[ModelSpec, ...] = (
    *(ModelSpec(f"replication/{version}", spec.title, partial(build, version, spec), SIZES,
                {**SETTINGS, **changes(of_spec(version)), "extend": beyond(reasons(ACTIONS[version]))})
      for version, spec in SPECS.items()),
    ModelSpec(
        "replication/async-isr", "ISR changes proposed to the controller (KIP-497)",
        build_async_isr, ASYNC_ISR_SIZES,
        {**COUNTS, "extend": beyond(reasons(ACTIONS["async-isr"]))},
    ),
    *map(actor_model, VERSIONS.values()),
)
