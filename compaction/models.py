"""The model of topic compaction, with its sizes and settings. Defaults are those of the module's cfg.

The module's `Spec` has no fairness, and so has `FAIRNESS`. `FairSpec`, under which `Termination` is checked, is `Spec`
with weak fairness of the whole next-state relation, WF_vars(Next): one condition on all actions together, which a map
from action to fairness cannot say (weak fairness of each would be stronger). A search asks for it by `--fairness next`.
Steps that change nothing (Consumer, Terminating) do not count as steps for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compaction.extensions import ACTIONS, EXTENSIONS
from compaction.properties import properties
from compaction.records import Cursor, PhaseOneResult
from compaction.spec import FAIRNESS, NEXT, constants, initial, spec_variables, waits_for
from compaction.versions import FLAWS
from harness.model import Faults, Model, ModelSpec, Network, Refusal, Setting, Size
from harness.model.spec import chosen, processes

CLAIMED = ("TypeSafe", "CompactionHorizonCorrectness", "Termination")
"""What the module's cfg claims; its authors know that two other invariants fail (S11, S12)."""
MOST_INITIAL_STATES = 100_000

SIZES = {
    "messages": Size(3, maximum=6, doc="messages that are ever sent"),
    "compactions": Size(3, maximum=6, doc="compacted ledgers that are ever written"),
    "keys": Size(2, maximum=4, doc="keys, the null key aside"),
    "values": Size(2, maximum=4, doc="values, the null value aside"),
    "crashes": Size(1, minimum=0, maximum=6, doc="crashes of the broker"),
    "consumptions": Size(2, minimum=0, maximum=6, doc="times that the consumer consumes (ConsumeTimesLimit)"),
}
YES_OR_NO = ("true", "false")
SETTINGS = {
    "producer": Setting(YES_OR_NO, "false", doc="messages are sent by steps, or all are there from the start"),
    "consumer": Setting(YES_OR_NO, "false", doc="whether there is a consumer"),
    "retain-null-key": Setting(YES_OR_NO, "true", doc="whether messages without a key stay in compacted ledgers"),
    "repair": Setting(("S11", "S12", "S13"), several=True, doc="flaws of the spec to repair"),
    "extend": Setting(
        tuple(EXTENSIONS), several=True, doc="extension actions: docs/models/compaction.md"
    ),
}


def build(
    sizes: Mapping[str, int], settings: Mapping[str, str], network: Network, faults: Faults, history_variables: bool
) -> Model:
    """Build `compaction/pulsar`. Raises Refusal if the choices of all messages at the start are too many."""
    k = constants(sizes, settings)
    next_state = (*NEXT, *chosen(ACTIONS, settings["extend"].split(",")))
    starts = 1 if k.models_producer else (len(k.key_set) * len(k.value_set)) ** k.messages
    if starts > MOST_INITIAL_STATES:
        raise Refusal(
            f"compaction/pulsar without a producer has {starts} initial states at this size, more than "
            f"{MOST_INITIAL_STATES}; use fewer messages, keys or values, or set producer=true"
        )
    return Model(
        "compaction/pulsar", processes(next_state, k), tuple(initial(k)), network, faults, properties(k),
        FAIRNESS, history_variables, sizes, settings, types=(PhaseOneResult, Cursor),
        waits_for=lambda view: waits_for(view, k), claimed=CLAIMED,
        spec_variables=spec_variables,
    )


ACTOR_SIZES = {
    "messages": Size(3, maximum=9, doc="messages that are sent"),
    "keys": Size(2, maximum=4, doc="keys, the null key aside"),
    "values": Size(1, maximum=4, doc="values, the null value aside"),
    "readers": Size(1, minimum=0, maximum=4, doc="readers of the compacted topic"),
    "disconnects": Size(1, minimum=0, maximum=4, doc="times that each reader disconnects of its own accord"),
}
RETAIN_NULL_KEY = SETTINGS["retain-null-key"]
TRIMMING_SIZES = {
    **ACTOR_SIZES,
    "batch": Size(2, maximum=4, doc="most messages of a batch"),
    "reconnects": Size(1, minimum=0, maximum=4, doc="times that the compactor's raw reader reconnects per compaction"),
}
FLAW = Setting(("none", *(flaw.id for flaw in FLAWS)), "none", doc="the published bug to build in")
REPAIR = Setting(("S11", "S12"), "S11,S12", several=True, doc="flaws of the spec to repair")


def build_actors(*wanted: Any) -> Model:
    from compaction import actors  # a search of a spec needs nothing of them

    return actors.build(*wanted)


def build_trimming_actors(*wanted: Any) -> Model:
    from compaction import actors

    return actors.build_trimming(*wanted)


MODELS: tuple[ModelSpec, ...] = (
    ModelSpec("compaction/pulsar", "topic compaction of Pulsar (module compaction)", build, SIZES, SETTINGS),
    ModelSpec(
        "compaction/pulsar/actors", "the spec's compaction as actors on a faulty network", build_actors, ACTOR_SIZES,
        {"retain-null-key": RETAIN_NULL_KEY, "repair": REPAIR}, ("bag", "fifo"), may_fault=True,
    ),
    ModelSpec(
        "compaction/pulsar-trimming/actors", "compaction as actors, on a topic that is trimmed", build_trimming_actors,
        TRIMMING_SIZES, {"retain-null-key": RETAIN_NULL_KEY, "flaw": FLAW}, ("bag", "fifo"), may_fault=True,
    ),
)
