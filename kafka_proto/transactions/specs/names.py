"""The constants of the transaction specs, what actions range over, and the initial state of diary 02 and the gist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import attrs

from harness.model import Value, slot
from kafka_proto.transactions.records import ClientRecord, LogMetadata
from kafka_proto.transactions.versions import DIARY_02, Version


@attrs.frozen
class Names:
    """The constants of a model: who and what there is, and the version that it is of."""

    clients: tuple[str, ...]
    brokers: tuple[str, ...]
    txn_log_partitions: tuple[str, ...]
    topic_partitions: tuple[str, ...]
    transactional_ids: tuple[str, ...]
    elections: int
    version: Version = DIARY_02

    @classmethod
    def of(cls, sizes: Mapping[str, int], **more: Any) -> Self:
        """Return the constants for the given sizes: c1.., b1.., p1.., tp1.., tid1.."""

        def numbered(prefix: str, size: str) -> tuple[str, ...]:
            return tuple(f"{prefix}{n + 1}" for n in range(sizes.get(size, 0)))

        return cls(
            numbered("c", "clients"), numbered("b", "brokers"), numbered("p", "txn-log-partitions"),
            numbered("tp", "topic-partitions"), numbered("tid", "transactional-ids"), sizes.get("elections", 0), **more,
        )


def symmetric(k: Names) -> tuple[tuple[str, ...], ...]:
    """Return the symmetry sets of the specs' cfg: clients, brokers, log partitions, ids; each may be renamed."""
    return k.clients, k.brokers, k.txn_log_partitions, k.transactional_ids


def spread(items: tuple[str, ...], over: tuple[str, ...]) -> dict[str, str]:
    """Return the balanced mapping that the specs' CHOOSE stands for: round robin."""
    return {item: over[n % len(over)] for n, item in enumerate(items)}


def initial(k: Names) -> dict[str, Value]:
    """The initial state of diary 02 and the gist (`Init`)."""
    leaders = spread(k.txn_log_partitions, k.brokers)
    state: dict[str, Value] = {slot("client", c): ClientRecord() for c in k.clients}
    for b in k.brokers:
        for tid in k.transactional_ids:
            state[slot("tc_tid_metadata", b, tid)] = None
            state[slot("tc_tid_transition", b, tid)] = None
        for p, leader in leaders.items():
            state[slot("tc_log", b, p)] = ()
            state[slot("tc_log_hwm", b, p)] = 0
            state[slot("tc_log_metadata", b, p)] = LogMetadata(1, leader)
    for p, leader in leaders.items():
        state[slot("txn_log_leader", p)] = leader
        state[slot("txn_log_epoch", p)] = 1
    for tp in k.topic_partitions:
        state[slot("topic_partitions", tp)] = ()
    for tid, p in spread(k.transactional_ids, k.txn_log_partitions).items():
        state[slot("t_to_p_mapping", tid)] = p
    return {**state, "pid_source": 0, "aux_coord_ctr": 0}
