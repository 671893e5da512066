"""Diary 02's coordinators alone, with what Kafka's do besides as extension actions: what brokers are held against.

Clients, network and log are their environment: the log of each partition that a broker leads, and who leads, are as the
broker has them. What is decided is in `kafka_proto.transactions.decisions`, unless a departure changes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from harness.model import BAG, Model, Value
from harness.model.spec import Next, action, each, processes, reasons
from kafka_proto.cluster.refinement.departures import EVERY
from kafka_proto.cluster.refinement.drafts import CoordinatorNames, depart
from kafka_proto.cluster.refinement.ends import answer_end_txn, end_txn, take_marker_answer, time_out_transaction
from kafka_proto.cluster.refinement.entries import (
    become_follower,
    commit_txn_log_append,
    crash,
    elect_leader,
    load_txn_log,
    refuse_append,
)
from kafka_proto.cluster.refinement.requests import (
    continue_producer,
    give_idempotent_id,
    receive_add_partitions_request,
    receive_init_pid_request,
    rotate_producer_id,
    verify_partitions,
)

NAME = "transactions/diary-02/coordinators"
GIVEN = ("tc_log_metadata", "tc_log", "pid_source")
"""The environment's variables: who leads, what the log has, and the next free producer id."""
OF_THE_SPEC: Next = (
    receive_init_pid_request, receive_add_partitions_request, commit_txn_log_append, (elect_leader, become_follower),
)
BEYOND: Next = (
    continue_producer, rotate_producer_id, give_idempotent_id, verify_partitions, end_txn, answer_end_txn,
    time_out_transaction, refuse_append, take_marker_answer, load_txn_log, crash,
)
"""What Kafka's coordinators do and diary 02's do not."""


def departing(k: CoordinatorNames) -> Next:
    """Return the departures of a version as extension actions."""
    known = (EVERY[name] for name in k.departures)
    return tuple(action(one.name, each("brokers"), reason=one.reason)(partial(depart, one.name)) for one in known)


def extensions(k: CoordinatorNames) -> Mapping[str, str]:
    """Return the names of the extension actions of a version, and why the truth has each."""
    return reasons((*BEYOND, *departing(k)))


def build(k: CoordinatorNames, start: Mapping[str, Value]) -> Model:
    """Return the spec of a version's coordinators, which start in a state where nothing was asked yet."""
    relation = (*OF_THE_SPEC, *BEYOND, *departing(k))
    return Model(NAME, processes(relation, k), ({**start, "event": None, "owes": (), "decided": ()},), BAG)
