"""A run with faults gets on: one step in seven is a fault or mends one, and it ends where the protocol does."""

from __future__ import annotations

from collections import Counter

import pytest
from support.demo.sessions import opened

from harness.demo.session.as_json import logs_json
from harness.demo.session.live_session import LiveSession


def ran(session: LiveSession, seed: int, steps: int) -> Counter[str]:
    """Let chance take steps, with faults; return how many there were of each kind."""
    session.set_strategy("random", seed, True)
    session.start("end", steps)
    session.run()
    return Counter(str(record.step.kind) for record in session.branch.records[1:] if record.step is not None)


@pytest.mark.parametrize("seed", range(3))
def test_most_steps_of_a_run_with_every_fault_are_the_protocols(seed: int) -> None:
    """Of whole transactions there are records at the end, open or ended, and the log of transactions tells of them."""
    session = opened("kafka/4.0", budget="generous")
    kinds = ran(session, seed, 300)
    assert kinds["fault"] + kinds["heal"] <= max(6, kinds.total() * 0.4), kinds
    assert kinds["step"] + kinds["command"] > 20 and kinds["fault"] > 0
    assert sum(len(log["entries"]) for log in logs_json(session.model, session.state(session.at))) > 3
    if kinds.total() < 300:
        assert "nothing but faults is possible any more" in (session.runner.outcome or "")


@pytest.mark.parametrize("seed", range(2))
def test_where_time_decides_faults_are_rare_too(seed: int) -> None:
    """One step in seven at most, and whatever is due keeps its moment."""
    kinds = ran(opened("rolling-restart", budget="generous"), seed, 200)
    assert kinds.total() == 200 and kinds["fault"] <= 200 / 5, kinds
