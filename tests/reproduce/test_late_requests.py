"""Late requests of librdkafka that `reproduce` does not play: what our brokers show, as real ones do."""

from __future__ import annotations

import subprocess
import sys

import pytest
from support.commands.command_line import call
from support.paths import DATA, ROOT

pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

from kafka_proto.gateway.cluster import KafkaCluster

SHOWN = """\
TxnOffsetCommit is late: offsets 5, then 9 were committed, the group is at 5
AddPartitionsToTxn is late: the abort heard INVALID_TXN_STATE, fatal
"""


LAST_EPOCH = """\
InitProducerId's answer with the last epoch is lost: it is told UNKNOWN_SERVER_ERROR, the abort heard _TIMED_OUT
"""


def late_requests(cluster: KafkaCluster, *options: str, seconds: float) -> subprocess.CompletedProcess[str]:
    program = str(ROOT / "benchmarks" / "late_requests.py")
    return subprocess.run([sys.executable, program, cluster.bootstrap_servers, *options],
                          capture_output=True, text=True, timeout=seconds)


def test_late_requests_show_on_our_broker_what_they_show_on_a_real_one() -> None:
    """As on a real 4.4.0 (docs/models/librdkafka-5423.md)."""
    with KafkaCluster(release="4.4.0") as cluster:
        done = late_requests(cluster, seconds=120)
        assert done.stdout == SHOWN, done.stderr
        cluster.expect("MarkerAttribution")


@pytest.mark.large
def test_the_last_epoch_is_given_once_by_our_broker_as_by_a_real_one() -> None:
    """As by a real 4.4.0 (docs/models/findings.md): it takes 32,765 requests to get there."""
    with KafkaCluster(release="4.4.0") as cluster:
        done = late_requests(cluster, "--last-epoch", seconds=900)
        assert done.stdout == LAST_EPOCH, done.stderr


def test_the_shipped_client_is_played_against_our_broker() -> None:
    """The schedule of fewest steps that a search finds of `client=rdkafka`, as on a real 4.4.0."""
    with KafkaCluster(release="4.4.0") as cluster:
        outcome = call("reproduce", DATA / "reproduce" / "late-end-rdkafka.trail.jsonl", "--broker",
                       cluster.bootstrap_servers, "--json")
        cluster.expect("MarkerAttribution")
    assert (outcome.code, list(outcome.json["violated"])) == (0, ["MarkerAttribution"]), outcome.err
