"""A real client runs transactions while faults come by chance; then P1 to P11 and R1 to R6 are checked.

Three brokers replicate each partition.

    python benchmarks/clients_under_faults.py [--client java] [--client-release 4.4.0] [--release 4.4.0]
        [--transaction-version N] [--minutes 10] [--seed 1] [--faults delay=6,crash=1] [--pause-ms 100]
        [--min-insync-replicas 2] [--trail FILE]

Clients are librdkafka, java and franz-go. The plan of faults is drawn anew every 30 seconds, the transactions are drawn
from the same seed. The client reads what is committed meanwhile. It needs the extra `gateway` and the client's tools;
programs are built in ~/.cache/kafka-proto/clients. The exit code is 1 where a property is violated.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.gateway.client_programs import NEWEST, Client, Missing, Running, command_of, running

from kafka_proto.gateway.cluster import KafkaCluster
from kafka_proto.gateway.random_plans import LATEST_MS, draw, read_budget

FAULTS = "delay=8,drop=2,lose=3,duplicate=2,crash=1,partition=1,pause=1,elect=2"
BROKERS = 3
LONGEST_END = 120.0


def under_faults(cluster: KafkaCluster, client: Running, given: argparse.Namespace) -> str:
    """Run the client until the time is over, and return what went wrong with it."""
    seconds, budget = round(given.minutes * 60), read_budget(given.faults)
    answers: list[str] = []
    load = threading.Thread(target=lambda: answers.append(
        client.ask(f"load {seconds} {given.seed} {given.pause_ms}", seconds + LONGEST_END)))
    load.start()
    windows = 0
    until = time.monotonic() + seconds
    while load.is_alive() and time.monotonic() < until:
        cluster.inject(draw(budget, given.seed * 1_000_000 + windows, BROKERS))
        windows += 1
        load.join(min(LATEST_MS / 1000, max(0.0, until - time.monotonic())))
    load.join()
    return answers[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--client", choices=("java", "franz-go", "librdkafka"), default="java")
    parser.add_argument("--client-release", default="")
    parser.add_argument("--release", default="4.4.0")
    parser.add_argument("--transaction-version", type=int)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--faults", default=FAULTS)
    parser.add_argument("--pause-ms", type=int, default=100)
    parser.add_argument("--min-insync-replicas", type=int, default=2)
    parser.add_argument("--trail", type=Path)
    given = parser.parse_args()
    client = Client(given.client, given.client_release or NEWEST.get(given.client, ""))
    try:
        command = command_of(client)
    except Missing as missing:
        raise SystemExit(f"{client}: {missing}") from None
    cluster = KafkaCluster({"load": 2}, release=given.release, transaction_version=given.transaction_version,
                           brokers=BROKERS, min_insync_replicas=given.min_insync_replicas)
    with cluster, running(command, cluster.bootstrap_servers) as program:
        wrong = under_faults(cluster, program, given)
    counts = program.said.get("counts", "")
    print(f"{client} on {given.release}, {given.minutes:g} minutes, seed {given.seed}: {counts}")
    verdict = cluster.verdict()
    print(wrong or verdict or "P1 to P11 and R1 to R6 hold")
    if given.trail is not None:
        print(cluster.write_trail(given.trail))
    sys.exit(1 if wrong or verdict else 0)


if __name__ == "__main__":
    main()
