"""P3 and P5 of transactions on the states of the composition; records say of which transaction they are (a ghost)."""

from __future__ import annotations

from collections.abc import Iterable

from harness.model import Property, Reason, Value, View, always, sometimes
from kafka_proto.broker import NodeState
from kafka_proto.composition.producer import ProducerState
from kafka_proto.log import aborted_between, batches_between, visible

DOCS = "Apache Kafka, KIP-98 and KIP-890"


def seen(node: NodeState, partition: str) -> frozenset[Value]:
    """Return the records of a partition that a reader of committed records sees now."""
    log = node.leaders[partition].log
    stop = log.last_stable_offset
    return frozenset(visible(batches_between(log, log.log_start_offset, stop),
                             aborted_between(log, log.log_start_offset, stop)))


def aborted_is_invisible(view: View, broker: str, producer: str) -> Reason:
    """P3: of a transaction whose abort was acknowledged no record is ever visible."""
    local: ProducerState = view[producer]
    node: NodeState = view[broker]
    for number, outcome in local.outcomes.items():
        for partition, value in local.acknowledged.get(number, ()) if outcome == "abort" else ():
            if value in seen(node, partition):
                return f"{producer}'s abort of {number} is acknowledged, and its {value} is visible in {partition}"
    return None


def committed_is_visible(view: View, broker: str, producer: str) -> Reason:
    """P3: of a transaction whose commit was acknowledged every record is visible once its markers are written."""
    local: ProducerState = view[producer]
    node: NodeState = view[broker]
    if node.held:
        return None
    for number, outcome in local.outcomes.items():
        for partition, value in local.acknowledged.get(number, ()) if outcome == "commit" else ():
            log = node.leaders[partition].log
            behind = log.last_stable_offset < log.high_watermark
            if value not in seen(node, partition) and not behind:
                return f"{producer}'s commit of {number} is acknowledged, and its record {value} is lost in {partition}"
    return None


def nothing_hangs(view: View, broker: str) -> Reason:
    """P5: every transaction that is open in a partition has an entry of its coordinator that lists the partition."""
    node: NodeState = view[broker]
    listed = {(known.metadata.producer_id, name) for known in node.coordinator.transactions.values()
              for name in known.metadata.partitions}
    for name, leader in node.leaders.items():
        for txn in leader.log.open:
            if (txn.producer_id, name) not in listed:
                return (f"producer id {txn.producer_id} has a transaction open in {name} from offset "
                        f"{txn.first_offset}, which its coordinator does not know")
    return None


def properties(broker: str, producers: Iterable[str]) -> tuple[Property, ...]:
    """Return the properties of a broker and its producers, with witnesses that they are about something."""
    names = tuple(producers)

    def has(outcome: str) -> Property:
        def check(view: View) -> bool:
            return any(outcome in view[name].outcomes.values() for name in names)

        return sometimes(f"Acknowledged{outcome.capitalize()}", check)

    return (
        always("AbortedIsInvisible", lambda view, name: aborted_is_invisible(view, broker, name), over=names,
               source=DOCS),
        always("CommittedIsVisible", lambda view, name: committed_is_visible(view, broker, name), over=names,
               source=DOCS),
        always("NothingHangs", lambda view: nothing_hangs(view, broker), source=DOCS),
        has("commit"), has("abort"),
    )
