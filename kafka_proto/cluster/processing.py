"""The model `kafka/kip-447`: instances of an application that consume, transform and produce, as members of a group.

Brokers are those of 3.5. Each instance has a transactional id of its own (KIP-447): what keeps one that is not a member
any more from committing are the offsets, which the group refuses, and which the next one does not read too early.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from harness.model import FrozenMap, Network, Property, Reason, Refusal, View, always, sometimes
from kafka_proto.broker.ghosts import Span, record
from kafka_proto.broker.placement import Placement
from kafka_proto.clients.processor_client import ProcessorClient, ProcessorFamily
from kafka_proto.clients.producer import FAMILIES
from kafka_proto.cluster.logs import Logs
from kafka_proto.cluster.models import Applications, model, recorded
from kafka_proto.cluster.properties import Facts
from kafka_proto.cluster.scenarios import ALL, ONE, row, twin
from kafka_proto.errors import Error
from kafka_proto.log import Marker, RecordBatch

STABLE = ProcessorFamily(**attrs.asdict(FAMILIES["java35"]))
UNSTABLE = attrs.evolve(
    STABLE, name="unstable", title="the same, but it reads offsets before their transactions end", requires_stable=False
)


def input_of(placement: Placement, sizes: Mapping[str, int]) -> FrozenMap[str, tuple[RecordBatch, ...]]:
    """Return what the input holds at the start: records without transaction, each in a batch. Raises Refusal."""
    source, *others = placement.partitions
    if not others:
        raise Refusal("partitions: processors read one partition and write to another; set partitions=2")
    written = (record("i0", n + 1) for n in range(sizes["records"]))
    return FrozenMap({source: tuple(RecordBatch((text,), base_offset=n) for n, text in enumerate(written))})


def processed_once(partition: str, spans: Iterable[Span]) -> Reason:
    """Exactly once (KIP-447): of each record of the input one result is committed at most."""
    known: dict[str, str] = {}
    for span in spans:
        for result in span.records if span.marker is Marker.COMMIT else ():
            made_of = result.text.partition(" ")[2]
            if made_of in known:
                return f"{made_of} is processed twice: {known[made_of]} and {result} are committed in {partition}"
            known[made_of] = f"{result}"
    return None


def properties(placement: Placement, network: Network, logs: Logs) -> tuple[Property, ...]:
    """Return what processors promise besides P1 to P11."""
    facts, sink = Facts(placement, network, logs), placement.partitions[-1]

    def once(view: View) -> Reason:
        return processed_once(sink, facts.spans(view, sink))

    def is_refused(view: View) -> bool:
        return any(view[c].producer.last_error in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION)
                   for c in placement.producers)

    return (
        always("ProcessedOnce", once, source="ours: KIP-447"),
        sometimes("CommitOfFormerMemberRefused", is_refused),
        sometimes("OffsetAwaited", lambda view: any(view[c].rests for c in placement.producers)),
    )


USERS = Applications(
    {family.name: family for family in (STABLE, UNSTABLE)}, ProcessorClient, properties=properties, held=input_of,
    is_released=False,
)
MODEL = model("kip-447", "processors in a group, with brokers of 3.5", tuple(USERS.families), recorded("3.5"), USERS)
TWO_INSTANCES = {**ONE, "partitions": 2, "producers": 2, "transactional-ids": 2, "transactions": 1}
TAKEN_OVER = row(
    "offset-read-too-early", "the group goes on without an instance whose transaction is open, and the next one "
    "processes its record again (KIP-447)", "kip-447", TWO_INSTANCES, claims=("ProcessedOnce", "OperationsEnd"),
    timeouts=2, runs=400, timers=1, settings={"client": "unstable", "timeouts": ""}, expected="ProcessedOnce",
)
SCENARIOS = (
    row("processors", "instances of a group process records, late or slow ones are replaced", "kip-447",
        {**TWO_INSTANCES, "records": 2, "transactions": 2}, claims=(*ALL, "ProcessedOnce"), timeouts=3, steps=120,
        settings={"timeouts": ""}, witnesses=("TransactionCommitted", "CommitOfFormerMemberRefused", "OffsetAwaited")),
    TAKEN_OVER,
    twin(TAKEN_OVER, "it waits until no open transaction has an offset staged", settings={"timeouts": ""}),
)
