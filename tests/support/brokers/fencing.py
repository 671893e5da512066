"""P7 on a history: once a producer has its epoch, nothing of an earlier one of its producer id is appended."""

from __future__ import annotations

from collections.abc import Iterable

from harness.model import Reason, State, View
from kafka_proto.broker.placement import Placement
from kafka_proto.clients.producer_client import ClientState
from kafka_proto.cluster import guarantees
from kafka_proto.cluster.logs import Logs, itself


def appended_after_fencing(placement: Placement, logs: Logs, states: Iterable[State]) -> Reason:
    """Return the first batch of a history's states, in order, that is of an earlier epoch than one given before it."""
    told: dict[int, int] = {}
    """By producer id: the newest epoch that somebody was given."""
    ends: dict[str, int] = {}
    for state in states:
        view = View(state)
        for partition in placement.partitions:
            log = logs.made(view, partition, itself)
            new = log.batches.between(ends.get(partition, 0), len(log.batches))
            why = guarantees.nothing_after_a_fence(partition, new, told)
            if why is not None:
                return why
            ends[partition] = len(log.batches)
        for c in placement.producers:
            client: ClientState = view[c]
            producer_id, epoch = client.producer.producer_id, client.producer.producer_epoch
            told[producer_id] = max(epoch, told.get(producer_id, epoch))
    return None
