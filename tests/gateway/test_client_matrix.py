"""The client matrix: every real client, every feature, every release that is served; what is missing is skipped."""

from __future__ import annotations

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.client_programs import CLIENTS, CLUSTERS, Client, Missing, command_of, played, running

from kafka_proto.gateway.cluster import KafkaCluster


@pytest.mark.large
@pytest.mark.parametrize(("release", "level"), CLUSTERS)
@pytest.mark.parametrize("client", CLIENTS, ids=str)
def test_a_client_has_every_feature(client: Client, release: str, level: int) -> None:
    """Transactions, groups and offsets do what they should, also while brokers fail; P1 to P11 hold."""
    try:
        command = command_of(client)
    except Missing as missing:
        pytest.skip(f"{client}: {missing}")
    with KafkaCluster(release=release, transaction_version=level, brokers=3) as cluster:
        with running(command, cluster.bootstrap_servers) as program:
            found = played(cluster, program)
        assert {feature: error for feature, error in found.items() if error} == {}
        assert cluster.verdict() is None
