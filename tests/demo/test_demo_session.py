"""The demo's session: what a person does is a trail, going back leads to what was there before, faults are few."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.commands.command_line import call
from support.demo.sessions import TXN, going, meddle, opened, ran, seen, snapshot

from harness.demo.session import interactive_run, strategy_runner
from harness.demo.session.as_json import logs_json
from harness.demo.session.live_session import LiveSession, of_trail
from harness.demo.session.opened_model import open_trail
from harness.demo.session.snapshot import branches, change_text, present, steps
from harness.model import Refusal, tours
from harness.record import Recorder, Trail, read_trail, trail_of_text
from harness.simulate.runs.run import Run
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.chance import Seeded
from harness.simulate.trails.replay import replay_plain, spelled_out

MODELS = (TXN, "replication/kip-101/actors", "compaction/pulsar/actors", "transactions/diary-01", "rolling-restart")
TIMED = "leaders-crash"
ELECTS = "leaders-move"


def replayed(trail: Trail) -> tuple[str, Run]:
    """Replay a trail as the command line does; return its digest, too."""
    recorder = Recorder(keep=False)
    run = replay_plain(trail, recorder)
    return recorder.digest(), run


@pytest.mark.parametrize("what", [*MODELS, TIMED])
def test_digest_of_every_prefix_is_that_of_a_replay_of_its_trail(what: str) -> None:
    """Runs with faults and commands, and with virtual time."""
    session = ran(what, 25)
    assert session.at > 10
    for step in range(session.at, -1, -6):
        session.rewind(step)
        digest, run = replayed(session.trail())
        assert (session.digest(), len(run.trail.choices)) == (digest, step)


def test_another_step_in_the_middle_begins_a_branch_and_keeps_the_old_one() -> None:
    """The same step goes along the branch; the steps of both are there afterwards."""
    session = ran(TXN, 12)
    labels = [record.chosen.label for record in session.branch.records[1:]]
    session.rewind(5)
    session.take(label=labels[5])
    assert (list(session.branches), session.at, present(session)["step"]) == (["main"], 6, 6)
    other = next(n for n, option in enumerate(session.node.options) if option.label != labels[6])
    session.take(other)
    assert (list(session.branches), session.branch.name) == (["main", "branch 2"], "branch 2")
    assert branches(session)[1] == {
        "name": "branch 2", "length": 7, "from": "main", "at": 6, "current": True
    }
    session.name_branch("mine")
    session.switch("main")
    assert (session.at, session.branch.length) == (6, 12)
    session.forward(12)
    assert [record.chosen.label for record in session.branch.records[1:]] == labels
    session.switch("mine")
    assert (session.at, branches(session)[1]["name"]) == (7, "mine")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("what", [TXN, "replication/kip-320/actors", TIMED])
def test_undo_leads_back_through_everything_that_was_done(what: str, seed: int) -> None:
    """After each verb the picture is kept; undoing shows the same pictures in the other order."""
    session = opened(what, "generous")
    pictures = [seen(session), *(seen(session) for _ in meddle(session, Seeded(seed), 25))]
    assert len(pictures) > 15
    for before in pictures[-2::-1]:
        session.undo()
        assert seen(session) == before
    with pytest.raises(Refusal, match="nothing to undo"):
        session.undo()


def test_news_is_what_a_client_needs_to_have_the_whole_picture() -> None:
    """A client that cuts its steps to what is kept and adds the new ones sees what the session has, after each verb."""
    session, chance = opened("replication/kip-320/actors"), Seeded(5)
    session.news()
    client: list[dict[str, Any]] = []
    longest = 0
    for _ in meddle(session, chance, 60):
        session.refine(2)
        keep = session.news()
        assert keep is not None
        change = json.loads(change_text(session, keep))
        client = [*client[: change["keep"]], *change["steps"]]
        assert client == steps(session)
        longest = max(longest, len(client))
    assert longest > 10
    session.open(TXN)
    assert session.news() is None


@pytest.mark.parametrize("until", ["action:ElectLeader", "step:7", "end"])
def test_run_goes_on_until_what_it_was_told(until: str) -> None:
    """A named action happened, a step is reached, nothing more is possible."""
    session = opened(ELECTS if until.startswith("action:") else TXN)
    session.start(until)
    assert not session.run(10_000)
    labels = [record.chosen.label for record in session.branch.records[1:]]
    if until == "step:7":
        assert session.at == 7
    elif until == "end":
        assert session.over() == "nothing but faults is possible any more"
    else:
        assert [label.startswith("ElectLeader") for label in labels] == [False] * (len(labels) - 1) + [True]


@pytest.mark.parametrize("strategy", strategy_runner.STRATEGIES)
def test_strategy_injects_faults_only_where_it_may(strategy: str) -> None:
    """The person's own budget is left to the person, unless they say otherwise."""
    for inject_faults in (False, True):
        session = opened()
        assert session.runner.inject_faults is False
        going(session, 60, strategy=strategy, seed=3, inject_faults=inject_faults)
        assert bool(kinds_of(session)["fault"]) is inject_faults


def test_trail_with_a_fair_ending_opens_at_its_end_and_is_saved_as_it_was(tmp_path: Path) -> None:
    """A run that violates liveness by a cycle: the verdict is there at its end only, its trail is the same again."""
    made = call("simulate", "s5-stuck-abort", "--seeds", 40, "--out", tmp_path, "--json").json
    trail = read_trail(Path(made["trail"]))
    session = of_trail(trail)
    assert (session.at, session.trail()) == (len(trail.choices), spelled_out(trail, session.tables))
    violation = present(session)["violation"]
    assert (violation["property"], violation["kind"]) == (trail.violates, "liveness")
    assert present(session)["ending"]["fair_from"] == trail.fair_from
    session.rewind(session.at - 1)
    assert session.violation is None and session.trail().fair_from is None
    session.forward(len(trail.choices))
    assert session.trail() == spelled_out(trail, session.tables)


def test_counterexample_of_a_search_opens(tmp_path: Path) -> None:
    """What `check` wrote, a lasso and a violated invariant, is stepped through."""
    path = tmp_path / "found"
    call("check", "transactions/gist", "--out", path, "--json")
    files = sorted(path.rglob("*.trail.jsonl")) or sorted(tmp_path.rglob("*.jsonl"))
    session = of_trail(read_trail(files[0]))
    assert session.violation is not None and session.at == session.branch.length


@pytest.mark.parametrize("tour", [tour.name for tour in tours()])
def test_tour_is_left_and_taken_up_again(tour: str) -> None:
    """It opens at its start with its steps ahead; another step is a branch, and the tour's own branch goes on."""
    session = opened()
    session.tour(tour)
    shown = snapshot(session)
    assert (session.at, shown["ahead"], shown["tour"]["name"]) == (0, shown["tour"]["length"], tour)
    session.forward(4)
    own = session.branch.choice(5).label
    other = next((n for n, option in enumerate(session.node.options) if option.label != own), None)
    if other is not None:
        session.take(other)
        assert session.branch.name != "tour"
        session.switch(snapshot(session)["tour"]["branch"])
    session.forward(session.branch.length)
    assert session.at == shown["tour"]["length"]


def test_trail_that_does_not_fit_leaves_the_session_as_it_was() -> None:
    """Another model's choices, a cut file, no trail at all: one sentence each."""
    session = ran(TXN, 5)
    before = seen(session)
    text = "\n".join(session.trail().each_line()) + "\n"
    label = session.branch.records[2].chosen.label
    for wrong, said in (
        (text.replace(label, "Nothing(c1)"), "the trail does not fit at step 2"),
        (text.replace(TXN, "transactions/nope"), "there is no model 'transactions/nope'"),
        ("\n".join(text.splitlines()[:-1]), "the trail is cut off"),
        ("what?", "not JSON"), ("", "not JSON"), ("{}", "names no format"),
    ):
        with pytest.raises(Refusal, match=said):
            session.load(wrong)
    assert seen(session) == before
    session.load(text)
    assert (session.at, session.branch.name) == (5, "trail")


def test_run_over_tables_that_start_over_is_the_same_run() -> None:
    """A session keeps values, not numbers: tables may forget everything between two steps."""
    def made(budget: int | None) -> LiveSession:
        session = opened()
        if budget is not None:
            session.tables.budget = budget
        going(session, 60, strategy="random", seed=4, inject_faults=True).rewind(20)
        session.forward(session.branch.length)
        return session

    roomy, tight = made(None), made(1_000_000)
    assert tight.tables.renewals > 0 == roomy.tables.renewals
    assert tight.digest() == roomy.digest()
    assert steps(tight) == steps(roomy)


def test_demo_ends_after_its_most_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run stops there, and a further step is refused."""
    monkeypatch.setattr(interactive_run, "MOST_STEPS", 30)
    session = going(opened("replication/kip-320/actors"), 100)
    assert (session.at, session.over()) == (30, "a demo ends after 30 steps")
    with pytest.raises(Refusal, match="ends after 30 steps"):
        session.take(0)


def test_time_goes_forward_whoever_decides() -> None:
    """In a timed model a person's step happens when it was due, and what was due before it is late."""
    session = going(opened(TIMED), 20)
    last = len(session.node.options) - 1
    session.take(last)
    session.rewind(session.at - 3)
    session.take(len(session.node.options) - 1)
    going(session, 10)
    times = [record.chosen.at_us for record in session.branch.records]
    assert None not in times and times == sorted(times)  # type: ignore[type-var]
    assert replayed(session.trail())[0] == session.digest()


def kinds_of(session: LiveSession) -> Counter[str]:
    """Count the steps of a session by their kind."""
    return Counter(str(record.step.kind) for record in session.branch.records if record.step is not None)


@pytest.mark.parametrize("seed", range(3))
def test_most_steps_of_a_run_with_every_fault_are_the_protocols(seed: int) -> None:
    """Of whole transactions there are records at the end, open or ended, and the log of transactions tells of them."""
    session = going(opened(TXN, "generous"), 300, strategy="random", seed=seed, inject_faults=True)
    kinds = kinds_of(session)
    assert kinds["fault"] + kinds["heal"] <= max(6, kinds.total() * 0.4), kinds
    assert kinds["step"] + kinds["command"] > 20 and kinds["fault"] > 0
    assert sum(len(log["entries"]) for log in logs_json(session.model, session.state(session.at))) > 3
    if kinds.total() < 300:
        assert "nothing but faults is possible any more" in (session.runner.outcome or "")


@pytest.mark.parametrize("seed", range(2))
def test_where_time_decides_faults_are_rare_too(seed: int) -> None:
    """One step in seven at most, and whatever is due keeps its moment."""
    session = going(opened("rolling-restart", "generous"), 200, strategy="random", seed=seed, inject_faults=True)
    kinds = kinds_of(session)
    assert kinds.total() == 200 and kinds["fault"] <= 200 / 5, kinds


def test_trail_of_a_session_is_a_file_like_any_other() -> None:
    """It is read back as it was, and opens again with the same budget."""
    trail = ran("exactly-once-late-answers", 20).trail()
    read = trail_of_text("it", "\n".join(trail.each_line()))
    assert spelled_out(read, Tables(read.build())) == trail
    again = open_trail(trail)
    assert (again.model.faults, again.plan.claims, again.budget) == (trail.faults, trail.claims, "own")
