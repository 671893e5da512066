"""One long run as the command line makes it, history and trail on disk: steps per second, memory, bytes per step.

Prints what the whole process cost. A run of a protocol whose clients finish ends before its steps do.

    python benchmarks/long_run.py MODEL|SCENARIO [--steps N] [--seed S] [--runtime plain|trio] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from measure import fail, run


def measured(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Make the run in a process of its own and return the figures."""
    program = Path(sys.executable).with_name("kafka-proto")
    if not program.is_file():
        fail(f"{program} is missing; run this with the Python of the project's virtual environment (make setup)")
    ended = run([
        str(program), "simulate", arguments.what, "--steps", str(arguments.steps), "--seed", str(arguments.seed),
        "--runtime", arguments.runtime, "--out", str(folder), "--json",
    ])
    try:
        reported = json.loads(ended.output)
    except ValueError:
        fail(f"the run ended with code {ended.code} and without its JSON: {ended.errors.strip()[-500:]}")
    steps = reported["steps"]
    return {
        "what": arguments.what, "runtime": arguments.runtime, "steps": steps, "ok": reported["verdict"]["ok"],
        "wall_seconds": round(ended.cost.wall_seconds, 2), "cpu_seconds": round(ended.cost.cpu_seconds, 2),
        "steps_per_second": round(steps / ended.cost.wall_seconds),
        "steps_per_cpu_second": round(steps / ended.cost.cpu_seconds),
        "memory_bytes": ended.cost.memory_bytes,
        **{f"{kind}_bytes": Path(reported[kind]).stat().st_size for kind in ("history", "trail")},
        "digest": reported["digest"],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", metavar="MODEL|SCENARIO")
    parser.add_argument("--steps", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S")
    parser.add_argument("--runtime", choices=("plain", "trio"), default="plain")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measured(arguments, Path(folder))
    if arguments.json:
        print(json.dumps(found))
        return
    steps = found["steps"]
    print(f"{found['what']} on {found['runtime']}: {steps:,} of {arguments.steps:,} steps, "
          f"{'no violation' if found['ok'] else 'a violation'}")
    print(f"  {found['steps_per_second']:>14,} steps/s, {found['steps_per_cpu_second']:,} per second of CPU, "
          "start and end of the program included")
    print(f"  {found['memory_bytes'] / 1e6:>14,.0f} MB at most")
    for kind in ("history", "trail"):
        print(f"  {found[f'{kind}_bytes']:>14,} bytes of {kind}, {found[f'{kind}_bytes'] / max(steps, 1):,.0f} a step")


if __name__ == "__main__":
    main()
