"""The client matrix as a table: what each real client does with each release that is served.

    python benchmarks/client_matrix.py [CLIENT]...

A cell has the features that work, or what went wrong. It needs the extra `gateway`; what the machine lacks is said.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.gateway.client_programs import (
    CLIENTS,
    CLUSTERS,
    FEATURES,
    Client,
    Missing,
    command_of,
    played,
    running,
    version,
)

from kafka_proto.gateway.cluster import KafkaCluster


def cell(client: Client, command: list[str], release: str, level: int) -> str:
    """Return what a client does with a release."""
    with KafkaCluster(release=release, transaction_version=level, brokers=3) as cluster:
        with running(command, cluster.bootstrap_servers) as program:
            found = played(cluster, program)
    wrong = [f"{feature}: {error}" for feature, error in found.items() if error]
    verdict = cluster.verdict()
    return "; ".join([*wrong, *([verdict] if verdict else [])]) or f"all {len(FEATURES)}"


def main() -> None:
    print("| client |", " | ".join(f"{release}, level {level}" for release, level in CLUSTERS), "|")
    print("| --- |" + " --- |" * len(CLUSTERS))
    for client in CLIENTS:
        if sys.argv[1:] and client.name not in sys.argv[1:]:
            continue
        try:
            command = command_of(client)
        except Missing as missing:
            cells = [f"skipped: {missing}"] * len(CLUSTERS)
        else:
            cells = [cell(client, command, release, level) for release, level in CLUSTERS]
        print(f"| {client.name} {version(client)} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
