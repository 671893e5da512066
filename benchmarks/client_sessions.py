"""Sessions with real clients are recorded, and each is replayed in another process: the digests must be equal.

    python benchmarks/client_sessions.py [SESSIONS] [--seed 1] [--keep FOLDER]

A session has a client, a release, features and faults that are drawn from its seed. A step of a trail names the digest
of the bytes that were sent, and a replay is refused where it would send others; compared is the digest of everything
that happened, of a replay here and of `kafka-proto replay` in a new process, whose strings hash in another way. It
needs the extra `gateway`; clients that are missing are named and left out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from support.gateway.client_programs import CLIENTS, CLUSTERS, FEATURES, Client, Missing, command_of, played, running

from harness.record import Recorder, read_trail
from harness.simulate.trails.replay import replay_plain
from kafka_proto.gateway.cluster import KafkaCluster

FAULTS = "delay=1,drop=1,lose=1,duplicate=1,elect=1"
REPLAY = "from harness.cli import main; main()"


def replayed_elsewhere(path: Path, seed: int) -> str | None:
    """Return the digest of a replay in a new process, None where the trail is refused."""
    done = subprocess.run([sys.executable, "-c", REPLAY, "replay", "--json", str(path)], stdout=subprocess.PIPE,
                          text=True, env={**os.environ, "PYTHONHASHSEED": str(seed)})
    return str(json.loads(done.stdout)["digest"]) if done.stdout else None


def record(seed: int, commands: Mapping[Client, Sequence[str]], path: Path) -> str:
    """Record a session, and say what it was."""
    chance = random.Random(seed)
    client = chance.choice(tuple(commands))
    release, level = chance.choice(CLUSTERS)
    features = chance.sample(FEATURES, 2)
    with KafkaCluster(release=release, transaction_version=level, brokers=chance.choice((2, 3)), faults=FAULTS,
                      seed=seed) as cluster:
        with running(commands[client], cluster.bootstrap_servers) as program:
            failed = [feature for feature, error in played(cluster, program, features).items() if error]
    cluster.write_trail(path)
    said = f"{client} on {release}: {', '.join(features)}"
    said += f"; gave up {', '.join(failed)}" if failed else ""
    return said + "".join(f"; violates {name}" for name in cluster.problems())


def available() -> dict[Client, list[str]]:
    """Return the commands of the clients that this machine can run."""
    found = {}
    for client in CLIENTS:
        try:
            found[client] = command_of(client)
        except Missing as missing:
            print(f"left out: {client}: {missing}")
    return found


def sessions(count: int, seed: int, folder: Path) -> bool:
    """Record and replay sessions, and say whether all digests are equal."""
    commands, equal, steps, kinds = available(), 0, 0, Counter[str]()
    begun = time.perf_counter()
    for number in range(seed, seed + count):
        path = folder / f"session-{number}.trail.jsonl"
        said = record(number, commands, path)
        trail = read_trail(path)
        digest, other = replay_plain(trail, Recorder(keep=False)).digest, replayed_elsewhere(path, number)
        equal, steps = equal + (digest == other), steps + len(trail.choices)
        kinds[said.partition(" on ")[0]] += 1
        verdict = "equal" if digest == other else f"NOT EQUAL: {digest}, {other}"
        print(f"{number}: {said}; {len(trail.choices)} steps; {verdict}", flush=True)
    print(f"{equal} of {count} sessions replay with equal digests in another process: {steps:,} steps, "
          f"{', '.join(f'{name}: {n}' for name, n in sorted(kinds.items()))}; {time.perf_counter() - begun:.0f} s")
    return equal == count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sessions", nargs="?", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        sys.exit(0 if sessions(given.sessions, given.seed, folder) else 1)


if __name__ == "__main__":
    main()
