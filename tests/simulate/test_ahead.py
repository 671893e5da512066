"""Runs that find nothing name the search that is complete and ends soon, and say what it finds."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.commands.command_line import call
from support.paths import ROOT
from support.runs.named_runs import registering, scenario_of
from support.toys import vault

from harness.explore import short_search
from harness.explore.short_search import look_ahead
from harness.simulate.hunting.hunt import Hunt
from harness.simulate.hunting.rows import ScoreboardRow
from harness.simulate.hunting.scoreboard import scoreboard

pytest_plugins = ["pytester"]
FINDS = "a search of every state finds that Guarded is violated after 8 steps:"
CLEAN = "a search of all 1,094 states finds no invariant violated:"


vault_is_known = registering(vault.system())


@pytest.mark.parametrize(("what", "said"), [
    (("vault-crash", "--seeds", 200), [FINDS, "  kafka-proto check vault-crash"]),
    (("vault-calm", "--seeds", 5), [CLEAN, "  kafka-proto check vault-calm"]),
    (("vault",), [CLEAN, "  kafka-proto check vault"]),
    (("vault", "--size", "digits=2"), ["a search of all 127 states finds no invariant violated:",
                                       "  kafka-proto check vault --size=digits=2"]),
    (("vault-timed", "--seeds", 20), ["a search of every state, without time, finds that Guarded is violated after 8",
                                      "steps:", "  kafka-proto check vault-timed"]),
])
def test_simulation_that_finds_nothing_ends_with_a_search(
    what: tuple[str, ...], said: list[str], tmp_path: Path
) -> None:
    """A sentence and the command, which comes to what the sentence says."""
    done = call("simulate", *what, "--out", tmp_path)
    assert done.code == 0 and done.out.splitlines()[-len(said):] == said
    searched = call(*said[-1].split()[1:], "--json", "--out", tmp_path)
    violated = [(each["property"], each["length"] - 1) for each in searched.json["violated"]]
    assert violated == ([] if "no invariant" in said[0] else [("Guarded", 8)])
    assert f"{searched.json['distinct']:,} states" in said[0] or violated


def test_simulation_that_finds_something_names_no_search(tmp_path: Path) -> None:
    """The finding is the answer."""
    done = call("simulate", "s4-copied-tail", "--seeds", 60, "--json", "--out", tmp_path)
    assert done.code == 0 and done.json["violations"] > 0 and done.json["ahead"] is None


def test_simulation_names_no_search_that_would_not_end_soon(tmp_path: Path) -> None:
    """This one has more than 500,000 states."""
    assert look_ahead("exactly-once-zombie") is None
    assert "kafka-proto check" not in call("simulate", "exactly-once-zombie", "--seeds", 3, "--out", tmp_path).out


def hunted(name: str, runs: int) -> ScoreboardRow:
    (row,) = Hunt((scenario_of(name),), Path("nowhere"), runs, processes=0, look_ahead=look_ahead).run()
    return row


@pytest.mark.parametrize(("name", "runs", "found", "said"), [
    ("vault-crash", 8, "Guarded", FINDS), ("vault-calm", 4, None, CLEAN),
])
def test_hunt_that_finds_nothing_names_a_search(name: str, runs: int, found: str | None, said: str) -> None:
    """No run of 32 shows the flaw: where a search does, the row is red, else as expected; the command stands below."""
    row = hunted(name, runs)
    assert not row.violated and row.as_expected is (found is None)
    assert row.ahead is not None and (row.ahead.violated, row.to_json()["ahead"]["command"]) == (
        found, f"kafka-proto check {name}")
    assert found is None or row.ahead.steps == 8
    lines = scoreboard([row], 1)
    assert ("NOT AS EXPECTED: no run shows it, but a search finds a violation, see below" in " ".join(
        " ".join(lines).split())) is (found is not None)
    at = lines.index(f"{name}: no run found anything")
    assert lines[at + 1:at + 3] == [f"  {said}", f"    kafka-proto check {name}"]


def test_hunt_in_virtual_time_says_what_a_search_finds_and_stays_as_expected() -> None:
    """A search takes steps in orders that time may not allow."""
    row = hunted("vault-timed", 4)
    assert row.as_expected and row.ahead is not None and row.ahead.is_bad and row.ahead.is_timed


SUITE = '''
import harness
import vault
from harness.model import register

register(vault.system())


@harness.simulated("vault-crash", seeds=40)
def test_of_runs(run):
    assert run.verdict.ok


@harness.simulated("vault-crash", seeds=3, claims=("Guarded",))
def test_with_claims(run):
    pass


@harness.simulated("vault-calm", seeds=3)
async def test_of_an_application(cluster):
    pass


@harness.simulated("exactly-once-zombie", seeds=2)
def test_of_something_large(run):
    pass


def test_twice():
    for _ in range(2):
        harness.simulated("vault-calm", seeds=1)(lambda run: None)()


def test_of_nothing():
    pass
'''


@pytest.mark.parametrize("words", [("-p", "no:xdist"), ("-n", "2")])
def test_simulated_tests_that_pass_are_listed_with_a_search(words: tuple[str, ...], pytester: pytest.Pytester) -> None:
    """The summary has the command once for each thing simulated, with and without workers."""
    shutil.copy(ROOT / "tests" / "support" / "toys" / "vault.py", pytester.path)
    pytester.makepyfile(conftest="import vault\nfrom harness.model import register\nregister(vault.system())",
                        test_silent=SUITE)
    done = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", *words)
    done.assert_outcomes(passed=6)
    at = next(n for n, line in enumerate(done.outlines) if "= simulations that found nothing =" in line)
    found = {tuple(sorted(names.split(", "))): (said, command) for (names, _, said), command in zip(
        (line.partition(": ") for line in done.outlines[at + 1:at + 5:2]), done.outlines[at + 2:at + 5:2], strict=True)}
    assert found == {
        ("test_of_runs", "test_with_claims"): (FINDS, "  kafka-proto check vault-crash"),
        ("test_of_an_application", "test_twice"): (CLEAN, "  kafka-proto check vault-calm"),
    }
    assert "6 passed" in done.outlines[at + 5]


def test_other_claims_are_named_in_the_command() -> None:
    """Where claims take the place of the scenario's own."""
    found = look_ahead("late-marker", claims=("Atomicity",))
    assert found is not None and found.command == "kafka-proto check late-marker --invariant=Atomicity"
    assert look_ahead("late-marker", claims=("OperationsEnd",)) is None, "no invariant is claimed"


def test_exception_of_protocol_code_is_what_a_search_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that did not meet it say so."""
    def raises(*_: object) -> None:
        raise ValueError("the dial is stuck\nfor good")

    monkeypatch.setattr(vault.Door, "step", raises)
    found = look_ahead("vault-crash")
    assert found is not None and found.is_bad
    assert found.sentence == "a search of every state raises an exception, ValueError: the dial is stuck:"


def test_soon_is_a_number_of_states(monkeypatch: pytest.MonkeyPatch) -> None:
    """One more or one less decides, whatever the machine."""
    monkeypatch.setattr(short_search, "SOON", 1_095)
    assert look_ahead("vault-calm") is not None
    monkeypatch.setattr(short_search, "SOON", 1_000)
    assert look_ahead("vault-calm") is None
