"""The models of the replication protocol, with their sizes and settings."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from harness.model import Faults, Model, ModelSpec, Network, Setting, Size
from harness.model.spec import Next, chosen, processes, reasons
from kafka_proto.replication.extensions import ACTIONS
from kafka_proto.replication.extensions import async_isr as async_isr_extensions
from kafka_proto.replication.properties import CHECKED, properties
from kafka_proto.replication.records import LeaderAndIsrRequest, Record
from kafka_proto.replication.replica_state import ReplicaVersion
from kafka_proto.replication.specs import (
    kip_101,
    kip_279,
    kip_320,
    kip_320_first_try,
    truncate_to_high_watermark,
)
from kafka_proto.replication.specs.names import initial, names, spec_variables
from kafka_proto.replication.versions import VERSIONS
from kafka_proto.replication.versions.async_isr import ASYNC_ISR

SIZES = {
    "replicas": Size(2, maximum=5, doc="replicas of the one partition"),
    "log-size": Size(2, maximum=6, doc="offsets of a log"),
    "max-records": Size(2, maximum=6, doc="records that are ever written"),
    "max-leader-epoch": Size(2, minimum=0, maximum=6, doc="the last leader epoch; the first is 0"),
}
SETTINGS = {"repair": Setting(("S8", "S10"), several=True, doc="flaws of the spec to repair, see docs/models.md")}
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


def beyond(extensions: Mapping[str, str]) -> Setting:
    """Return the setting that switches extension actions on."""
    return Setting(tuple(extensions), several=True, doc="behaviour that the spec abstracts from, see docs/models.md")


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
    settings = {**ACTOR_SETTINGS, **COUNTS} if version is ASYNC_ISR else ACTOR_SETTINGS
    return ModelSpec(
        f"replication/{version.name}/actors", f"{version.title}, as actors on a faulty network",
        partial(build_actors, version), ACTOR_SIZES, settings, ("bag", "fifo"), may_fault=True,
    )


def version(name: str, title: str, next_state: Next, fairness: Mapping[str, str]) -> ModelSpec:
    """Return the model of a version of the base module: its next-state relation and its fairness."""
    plain = name.removeprefix("replication/")

    def build(
        sizes: Mapping[str, int], settings: Mapping[str, str], network: Network, faults: Faults, history_variables: bool
    ) -> Model:
        k = names(sizes, settings)
        whole = (*next_state, *chosen(ACTIONS[plain], settings["extend"].split(",")))
        return Model(
            name, processes(whole, k), (initial(k),), network, faults, properties(k), fairness, history_variables,
            sizes, settings, types=(Record, LeaderAndIsrRequest), symmetric=(k.replicas,),
            claimed=CHECKED, spec_variables=spec_variables,
        )

    return ModelSpec(name, title, build, SIZES, {**SETTINGS, "extend": beyond(reasons(ACTIONS[plain]))})


MODELS: tuple[ModelSpec, ...] = (
    version(
        "replication/truncate-to-high-watermark", "truncation to the own high watermark (before KIP-101)",
        truncate_to_high_watermark.NEXT, truncate_to_high_watermark.FAIRNESS,
    ),
    version("replication/kip-101", "truncation by leader epoch (KIP-101)", kip_101.NEXT, kip_101.FAIRNESS),
    version("replication/kip-279", "truncation to the last shared record (KIP-279)", kip_279.NEXT, kip_279.FAIRNESS),
    version(
        "replication/kip-320-first-try", "truncation when a fetch fails (the rejected first try at KIP-320)",
        kip_320_first_try.NEXT, kip_320_first_try.FAIRNESS,
    ),
    version("replication/kip-320", "exchanges fenced by leader epoch (KIP-320)", kip_320.NEXT, kip_320.FAIRNESS),
    ModelSpec(
        "replication/async-isr", "ISR changes proposed to the controller (KIP-497)",
        async_isr_extensions.build, ASYNC_ISR_SIZES,
        {**COUNTS, "extend": beyond(reasons(async_isr_extensions.ACTIONS))},
    ),
    *map(actor_model, VERSIONS.values()),
)
