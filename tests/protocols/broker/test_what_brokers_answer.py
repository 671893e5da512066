"""What brokers answer to requests that models do not send: unknown partitions, several at once, lists.

The same on one broker that leads for good and on three with replicated logs. Then what releases and levels differ in,
where a situation that is played shows it in few words.
"""

from __future__ import annotations

import pytest
from support.brokers.node import new_node

from harness.model import FrozenMap
from kafka_proto import requests
from kafka_proto.broker.group.coordinator import refused_commit, refused_commit_as_few_replicas
from kafka_proto.broker.leader.verification import (
    SupportedOperation,
    unverified_produce,
    unverified_produce_but_unreached,
)
from kafka_proto.broker.versions import KIP_890_4_4, version_of
from kafka_proto.conformance.playing import PlayedCluster
from kafka_proto.log import EMPTY_LOG, Marker, RecordBatch
from kafka_proto.requests import OFFSETS_PARTITION, Error

ABSENT = "T-9"
PLAIN = RecordBatch(("a", "b"))


@pytest.fixture(params=(1, 3), ids=("local log", "replicated logs"))
def cluster(request: pytest.FixtureRequest) -> PlayedCluster:
    """Return brokers of 4.4 with two partitions."""
    brokers: int = request.param
    return PlayedCluster(KIP_890_4_4, ("T-0", "T-1"), brokers)


def init(cluster: PlayedCluster, tid: str) -> requests.InitProducerIdResponse:
    found: requests.InitProducerIdResponse = cluster.ask(requests.InitProducerIdRequest(4, tid, 60_000))
    assert found.error is Error.NONE
    return found


@pytest.mark.parametrize("request_", [
    requests.ProduceRequest(9, None, -1, ABSENT, PLAIN), requests.ConsumerFetchRequest(11, ABSENT, 0),
    requests.ListOffsetsRequest(5, ABSENT, -1), requests.DeleteRecordsRequest(1, ABSENT, -1),
    requests.OffsetCommitRequest(8, "g", ABSENT, 1), requests.TxnOffsetCommitRequest(3, "tid", "g", 0, 0, ABSENT, 1),
], ids=lambda request: type(request).__name__)
def test_a_partition_that_is_not_there_is_unknown(cluster: PlayedCluster, request_: object) -> None:
    """Whatever is asked of it."""
    assert cluster.ask(request_).error is Error.UNKNOWN_TOPIC_OR_PARTITION


def test_a_batch_of_no_transactional_id_is_refused_before_its_partition(cluster: PlayedCluster) -> None:
    """As a broker does that authorises first."""
    batch = RecordBatch(("a",), 1, 0, 0, is_transactional=True)
    for name in ("T-0", ABSENT):
        response = cluster.ask(requests.ProduceRequest(9, None, -1, name, batch))
        assert response == requests.ProduceResponse(Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    assert cluster.log("T-0") == EMPTY_LOG


def test_markers_of_several_partitions_are_all_written_and_answered_at_once(cluster: PlayedCluster) -> None:
    """Also where brokers of their own lead them, the offsets partition is one, and one is not there."""
    names = tuple(p for p in ("T-0", "T-1", OFFSETS_PARTITION) if cluster.leader(p) == cluster.leader("T-0"))
    found = cluster.ask(requests.WriteTxnMarkersRequest(1, 7, 0, 0, True, (*names, ABSENT)))
    assert found == requests.WriteTxnMarkersResponse(FrozenMap(
        {**dict.fromkeys(names, Error.NONE), ABSENT: Error.UNKNOWN_TOPIC_OR_PARTITION}))
    for name in names:
        assert [batch.marker for batch in cluster.log(name).batches] == [Marker.COMMIT]


def test_a_marker_that_one_partition_refuses_is_written_by_the_others(cluster: PlayedCluster) -> None:
    """Each partition has an error of its own: the first has seen a later coordinator."""
    names = tuple(p for p in ("T-0", "T-1", OFFSETS_PARTITION) if cluster.leader(p) == cluster.leader("T-0"))
    cluster.ask(requests.WriteTxnMarkersRequest(1, 7, 0, 5, False, ("T-0",)))
    found = cluster.ask(requests.WriteTxnMarkersRequest(1, 7, 0, 4, False, names))
    assert found.errors["T-0"] is Error.TRANSACTION_COORDINATOR_FENCED
    assert {found.errors[name] for name in names[1:]} <= {Error.NONE}


def test_transactions_are_described_and_listed_wherever_their_coordinator_is(cluster: PlayedCluster) -> None:
    """Four ids, which Kafka's hash spreads over the partitions of the transaction log."""
    for tid in ("tid-A", "tid-B", "tid-C", "tid-D"):
        init(cluster, tid)
        assert cluster.ask(requests.DescribeTransactionsRequest(0, tid)).state == "Empty"
    listed = cluster.ask(requests.ListTransactionsRequest(0)).transactions
    assert [tid for tid, _, _ in listed] == ["tid-A", "tid-B", "tid-C", "tid-D"]
    assert len({producer_id for _, producer_id, _ in listed}) == 4


def test_a_fetch_that_wants_no_bytes_does_not_wait(cluster: PlayedCluster) -> None:
    """`min_bytes` of 0; another one waits until there is something."""
    response = cluster.ask(requests.ConsumerFetchRequest(11, "T-0", 0, min_bytes=0))
    assert (response.error, response.batches) == (Error.NONE, ())
    with pytest.raises(TypeError, match="does not answer ConsumerFetchRequest"):
        cluster.ask(requests.ConsumerFetchRequest(11, "T-0", 0))


def test_a_request_that_no_broker_knows_is_a_type_error(cluster: PlayedCluster) -> None:
    """Not silence."""
    with pytest.raises(TypeError, match="does not answer str"):
        cluster.ask("what?")


INIT = requests.InitProducerIdRequest(4, "tid", 60_000)
BATCH = RecordBatch(("x",), 0, 0, 0, True)


def error_in(answer: object) -> Error:
    """Return the code of a response, that of the one partition where it has several."""
    found: Error = answer.errors["T-0"] if hasattr(answer, "errors") else answer.error
    return found


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
