"""What releases and levels differ in, where a situation that is played shows it in few words."""

from __future__ import annotations

import pytest
from support.brokers.node import new_node

from kafka_proto import requests
from kafka_proto.broker.group.coordinator import refused_commit, refused_commit_as_few_replicas
from kafka_proto.broker.leader.state import SupportedOperation
from kafka_proto.broker.leader.verification import unverified_produce, unverified_produce_but_unreached
from kafka_proto.broker.versions import KIP_890_PART_1_3_6, KIP_890_PART_1_3_7, version_of
from kafka_proto.log import RecordBatch
from kafka_proto.requests import Error

INIT = requests.InitProducerIdRequest(4, "tid", 60_000)
BATCH = RecordBatch(("x",), 0, 0, 0, True)


def error_in(answer: object) -> Error:
    """Return the code of a response, that of the one partition where it has several."""
    found: Error = answer.errors["T-0"] if hasattr(answer, "errors") else answer.error
    return found


def test_offsets_that_no_transaction_has_open_one_in_3_6() -> None:
    """3.6 verifies what producers send and nothing else; since 3.7 the coordinator of the group asks first."""
    for version, error in ((KIP_890_PART_1_3_6, Error.NONE), (KIP_890_PART_1_3_7, Error.INVALID_TXN_STATE)):
        node = new_node(version, INIT)
        assert error_in(node.ask(requests.ProduceRequest(9, "tid", -1, "T-0", BATCH))) is Error.INVALID_TXN_STATE
        assert error_in(node.ask(requests.TxnOffsetCommitRequest(3, "tid", "G", 0, 0, "T-0", 5))) is error
        is_open = node.log("__consumer_offsets-0").producer(0).open_from is not None
        assert is_open is (error is Error.NONE)


def test_what_clients_are_told_of_a_coordinator_that_does_not_verify() -> None:
    """3.6 tells a producer of a lost connection; 3.7 tells a group's member what a producer would be told."""
    gone, busy = Error.NETWORK_EXCEPTION, Error.CONCURRENT_TRANSACTIONS
    few = Error.NOT_ENOUGH_REPLICAS
    for told, of_gone in ((unverified_produce_but_unreached, gone), (unverified_produce, few)):
        assert [told(error, SupportedOperation.DEFAULT_ERROR) for error in (gone, busy)] == [of_gone, few]
    loading, away = Error.COORDINATOR_LOAD_IN_PROGRESS, Error.COORDINATOR_NOT_AVAILABLE
    for converted, of_busy in ((refused_commit_as_few_replicas, away), (refused_commit, busy)):
        assert [converted(error) for error in (gone, busy)] == [loading, of_busy]


@pytest.mark.parametrize("release", ["4.0.0", "4.1.1", "4.2.0", "4.3.1", "4.4.0"])
def test_a_client_of_part_2_spoils_its_id_at_level_0(release: str) -> None:
    """The log has no field for such a client: the append throws, what was begun stays pending, and nothing ends it."""
    for request in (requests.EndTxnRequest(5, "tid", 0, 0, False), requests.ProduceRequest(12, "tid", -1, "T-0", BATCH),
                    requests.AddPartitionsToTxnRequest(4, "tid", 0, 0, ("T-0",)),
                    requests.TxnOffsetCommitRequest(5, "tid", "G", 0, 0, "T-0", 5)):
        for level, error in ((0, Error.UNSUPPORTED_VERSION), (1, Error.NONE)):
            node = new_node(version_of(release, level), INIT)
            assert (error_in(node.ask(request)), level) == (error, level)
            if level == 0:
                for later in (INIT, request):
                    assert error_in(node.ask(later)) in (Error.CONCURRENT_TRANSACTIONS, Error.NOT_ENOUGH_REPLICAS)
    node = new_node(version_of(release, 0), INIT)
    for old in (requests.AddPartitionsToTxnRequest(3, "tid", 0, 0, ("T-0",)),
                requests.EndTxnRequest(4, "tid", 0, 0, True)):
        assert error_in(node.ask(old)) is Error.NONE
