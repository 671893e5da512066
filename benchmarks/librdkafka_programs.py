"""librdkafka's test programs, each in a process of its own: `client_suites.py` starts this in their folder.

    python librdkafka_programs.py HOST:PORT [PATTERN]

Left out are programs that need no broker, or bring a mock of one, those of share groups, those that their makers mark
as manual or failing, and those of another scenario than the default. What a program says is left in NUMBER.log.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

PROGRAM = re.compile(r"_TEST\((\d{4}_\w+),\s*([A-Z0-9_| ]+)(.*?)\),\n(?=    _TEST|#|\n)", re.S)
LEFT_OUT = re.compile(r"LOCAL|MANUAL|KNOWN_ISSUE\b|scenario = \"(?!default)")
RELEASE = "4.2.0"
AT_ONCE = 4
LONGEST = 420.0
KINDS = {"PASSED": "PASS", "SKIPPED": "SKIP"}


def programs(source: str) -> list[str]:
    """Return the names of programs that need a broker, as the source of the runner lists them."""
    return [name for name, flags, more in PROGRAM.findall(source)
            if not LEFT_OUT.search(flags + more) and "mock" not in name and "share_consumer" not in name]


def ran(number: str, configuration: Path) -> dict[str, str]:
    """Run the programs of a number, and return by name the states that the runner reports, none if it crashed."""
    report = Path(f"{number}.report").resolve()
    report.unlink(missing_ok=True)
    environment = {**os.environ, "TEST_KAFKA_VERSION": RELEASE, "TESTS": number,
                   "RDKAFKA_TEST_CONF": str(configuration), "TEST_REPORT": str(report),
                   "LD_LIBRARY_PATH": "../src:../src-cpp"}
    with Path(f"{number}.log").open("w") as said:
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(["./test-runner", "-Q", "-L", "-p1"], env=environment, stdout=said,
                           stderr=subprocess.STDOUT, timeout=LONGEST)
    text = report.read_text() if report.exists() else ""
    return dict(re.findall(r'"name": "(\w+)", "state": "(\w+)"', text))


def main() -> None:
    servers, pattern = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    numbered = defaultdict(list)
    for name in programs(Path("test.c").read_text()):
        if re.search(pattern, name):
            numbered[name[:4]].append(name)
    configuration = Path("suite.conf").resolve()
    configuration.write_text(f"bootstrap.servers={servers}\ntest.topic.random=true\n")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        running = {number: pool.submit(ran, number, configuration) for number in numbered}
        for number, run in running.items():
            states = run.result()
            for name in numbered[number]:
                print(f"=== RUN   {name}\n--- {KINDS.get(states.get(name, ''), 'FAIL')}: {name}", flush=True)


if __name__ == "__main__":
    main()
