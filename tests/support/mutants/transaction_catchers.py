"""What catches a wrong edit of the transaction roles: a recorded situation, a unit test, or a campaign of actors.

    python transaction_catchers.py ROOT KIND NAME [RUNS]

Runs one catcher with the packages below ROOT, and prints what it says, or nothing where all is well. Kinds:
`conformance` with the name of a situation, `test` with that of a test, `campaign` with that of a scenario.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TESTS = ROOT / "tests"
RECORDED = ROOT / "kafka_proto" / "conformance" / "recorded"
UNIT_TESTS = tuple(f"protocols/{file}" for file in (
    "broker/test_answers_by_state.py", "broker/test_coordinator_entries.py", "broker/test_partition_guards.py",
    "broker/test_group_guards.py", "broker/test_group_members.py", "broker/test_decisions.py", "broker/test_log.py",
    "cluster/test_producer.py", "cluster/test_producer_decisions.py", "cluster/test_time_outs.py",
    "cluster/test_consumer.py", "cluster/test_client_connections.py", "broker/test_walks.py",
    "broker/test_last_epochs.py", "broker/test_failover.py", "broker/test_look_ups.py",
    "broker/test_kept_logs.py", "replication/test_quorum.py",
))


def conformance(situation: str = "", file: str = "kafka.json.gz", each: int = 1) -> str:
    """Return the first recorded situation, of one in so many, or whether this one, is answered otherwise, and where."""
    from kafka_proto.conformance import judge, load

    for record in load(RECORDED / file)[::each]:
        if situation in ("", record["situation"]):
            try:
                found = judge(record).differences
            except Exception as error:
                found = (repr(error),)
            if found:
                return f"{record['situation']}: {found[0]}"
    return ""


def tested(name: str = "", files: Iterable[str] = ()) -> str:
    """Return the first of the unit tests, or of those in some files, that fails; or this one, wherever it is."""
    import pytest

    class First:
        failed = ""

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed and not self.failed:
                self.failed = report.nodeid.partition("::")[2].partition("[")[0]

        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            if report.failed:
                self.failed = f"not collected: {report.longrepr}"

    first = First()
    chosen = [TESTS / file for file in files or UNIT_TESTS]
    if name and not files:
        chosen = sorted(path for room in ("protocols", "gateway") for path in (TESTS / room).rglob("test_*.py"))
    if name:
        chosen = [file for file in chosen if f"def {name}(" in file.read_text(encoding="utf-8")]
    if not chosen:
        raise ValueError(f"there is no test {name}")
    options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not large", "--assert=plain", "-W", "ignore",
               "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml")]
    with contextlib.redirect_stdout(io.StringIO()):
        code = pytest.main([*options, *(f"{file}::{name}" if name else str(file) for file in chosen)], [first])
    if code not in (0, 1):
        raise RuntimeError(f"pytest ended with {code}: {chosen}")
    return first.failed


def campaign(name: str, runs: int) -> str:
    """Return the first property that a run of a scenario violates, or the exception that its code raised."""
    from harness.model import find_scenario, model_of
    from harness.simulate.runs.plan import plan_of
    from harness.simulate.runs.session import run_plain
    from harness.simulate.states.tables import Tables
    from harness.simulate.strategies.strategy import PctStrategy, RandomStrategy

    scenario = find_scenario(name)
    assert scenario is not None, name
    try:
        tables, plan = Tables(model_of(scenario)), plan_of(scenario)
        for seed in range(runs):
            for strategy in (RandomStrategy, PctStrategy):
                run = run_plain(tables, plan, strategy(seed))
                if run.error is not None:
                    return f"exception: {run.error!r}"
                if not run.verdict.ok:
                    return f"{run.verdict.violated}: {run.verdict.reason}"
    except Exception as error:
        return f"exception: {error!r}"
    return ""


KINDS: dict[str, Callable[..., str]] = {
    "conformance": conformance, "test": tested, "campaign": lambda name, runs: campaign(name, int(runs)),
}


def main(root: str, kind: str, *arguments: str) -> None:
    """Run a catcher, and make sure that it was with the packages below a folder."""
    import kafka_proto

    assert str(kafka_proto.__file__).startswith(root), (kafka_proto.__file__, root)
    print(f"{kind} {KINDS[kind](*arguments)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
