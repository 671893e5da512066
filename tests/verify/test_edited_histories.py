"""Histories of the real models, edited by hand and given the digest that fits: each edit is found, or is another run.

What finds an edit: a property, the refinement, the record (what every run of every model does), or the model's own
actors. An edit counted under `record` is found by neither property nor refinement, one under `actors` by nothing else:
the spec allows it, and `verify` says that it is a legal history, but none of the model's own actors. `legal` is another
run of the model, which a replay of its labels gives to the last byte.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest
from support.runs import history_edits
from support.runs.history_edits import EACH_RUN, RIGHT, RUNS, Edit, evenly, events_of, families, replays, written
from support.runs.named_runs import write_history_of

from harness.model import Model, parts
from harness.record import Recorder
from harness.simulate.runs.plan import resolve
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import RandomStrategy
from harness.verify.judge import FileJudge, JudgedFile
from harness.verify.well_formed import RULES

Counts = tuple[int, int, int, int, int]
"""Edits found by a property, by the refinement only, by the record only, by the actors only, and legal ones."""
JUDGES = ("property", "refinement", "record", "actors", "legal")
FEW = 7
"""Edits of a family, evenly chosen, that are judged in every run of the tests."""
ALL = 1_000_000
SPECLESS = ("compaction/pulsar-trimming/actors",)
"""Those of them that are held against no spec."""


@attrs.frozen(eq=False)
class Recorded:
    """A run of a model, its history on disk, and a judge for what is made of it."""

    model: Model
    run: Run
    path: Path
    judge: FileJudge

    def judged(self, edit: Edit) -> JudgedFile:
        """Judge the edited history, from a file with its own digest; a legal one must be a run of the model."""
        path = written(self.path, edit(), self.path.with_name("edited.history.jsonl"))
        one = self.judge.file(path)
        assert not one.ok or replays(path, self.run), one
        assert {oddity.rule for oddity in one.odd} <= RULES.keys()
        return one


@pytest.fixture(params=EACH_RUN)
def recorded(request: pytest.FixtureRequest, tmp_path: Path) -> Recorded:
    """A run of each model in which nothing is wrong."""
    name, seed, steps = RUNS[request.param]
    model, plan = resolve(name)
    assert model.name == request.param
    run = run_plain(Tables(model), attrs.evolve(plan, steps=steps), RandomStrategy(seed), Recorder())
    path = write_history_of(run, tmp_path / "run.history.jsonl")
    found = Recorded(model, run, path, FileJudge())
    assert found.judge.file(path).ok
    return found


def strongest(one: JudgedFile) -> str:
    """Return what finds an edit, the judges in their order."""
    found = next((kind for kind in JUDGES if kind in one.findings), "legal")
    assert (found == "legal") == one.ok, one.findings
    return found


def counts_of(recorded: Recorded, most: int) -> dict[str, Counts]:
    """Judge edits of each family, so many evenly chosen ones at most, and count what finds them."""
    table = {}
    for name, made in families(recorded.model, events_of(recorded.path)):
        if made and name not in RIGHT:
            found = Counter(strongest(recorded.judged(edit)) for edit in evenly(made, most))
            table[name] = tuple(found[judge] for judge in JUDGES)
    return table  # type: ignore[return-value]


EXPECTED: Mapping[str, tuple[Counts | None, ...]] = {
    "swapped": ((0, 0, 4, 1, 2), (0, 2, 5, 0, 0), (2, 1, 2, 0, 2), (2, 0, 3, 2, 0)),
    "swapped, put right": ((0, 0, 2, 1, 4), (0, 2, 1, 2, 2), (2, 1, 1, 0, 3), (2, 0, 1, 2, 2)),
    "dropped": ((0, 2, 4, 0, 1), (0, 2, 5, 0, 0), (2, 1, 4, 0, 0), (1, 0, 6, 0, 0)),
    "dropped, put right": ((0, 2, 4, 0, 1), (0, 2, 4, 1, 0), (2, 1, 4, 0, 0), (1, 0, 6, 0, 0)),
    "doubled": ((0, 1, 6, 0, 0), (0, 0, 7, 0, 0), (0, 0, 6, 1, 0), (0, 0, 7, 0, 0)),
    "doubled, put right": ((0, 1, 4, 2, 0), (0, 0, 7, 0, 0), (0, 0, 5, 1, 1), (0, 0, 5, 2, 0)),
    "numbers-of-states": ((0, 1, 4, 2, 0), (0, 1, 3, 3, 0), (1, 4, 0, 2, 0), (1, 0, 1, 5, 0)),
    "numbers-of-messages": ((0, 0, 7, 0, 0), (0, 0, 7, 0, 0), (0, 0, 7, 0, 0), (0, 0, 7, 0, 0)),
    "numbers-everywhere, put right": ((0, 1, 0, 6, 0), (0, 0, 0, 7, 0), (0, 0, 0, 7, 0), (0, 0, 0, 7, 0)),
    "codes-everywhere, put right": ((0, 5, 0, 2, 0), (0, 0, 0, 4, 0), None, None),
    "outcomes": ((0, 0, 0, 5, 0), (0, 0, 0, 2, 0), (0, 0, 0, 4, 0), (0, 0, 0, 6, 0)),
}
"""Of the sampled edits, by family, for each of `EACH_RUN`: how many each judge finds, in the order of `JUDGES`."""
EVERY: Mapping[str, tuple[Counts | None, ...]] = {
    "swapped": ((4, 3, 39, 6, 17), (0, 5, 41, 2, 11), (6, 12, 11, 4, 13), (6, 0, 17, 15, 7)),
    "swapped, put right": ((4, 3, 16, 9, 37), (0, 5, 10, 7, 37), (6, 12, 7, 5, 16), (6, 0, 12, 16, 11)),
    "dropped": ((6, 10, 48, 3, 3), (0, 7, 49, 0, 4), (5, 12, 22, 5, 3), (5, 0, 27, 11, 3)),
    "dropped, put right": ((6, 10, 42, 4, 8), (0, 7, 40, 7, 6), (5, 13, 19, 6, 4), (5, 0, 25, 13, 3)),
    "doubled": ((0, 9, 54, 7, 0), (0, 0, 60, 0, 0), (0, 0, 34, 13, 0), (0, 0, 35, 11, 0)),
    "doubled, put right": ((0, 9, 46, 15, 0), (0, 0, 53, 3, 4), (0, 0, 29, 17, 1), (0, 0, 30, 16, 0)),
    "numbers-of-states": (
        (23, 136, 1889, 1039, 0), (12, 148, 187, 701, 0), (49, 208, 81, 378, 0), (75, 0, 156, 741, 0),
    ),
    "numbers-of-messages": ((0, 41, 361, 0, 0), (0, 0, 326, 0, 0), (0, 0, 162, 0, 0), (0, 0, 150, 0, 0)),
    "numbers-everywhere, put right": ((0, 46, 18, 131, 0), (0, 0, 0, 148, 0), (0, 2, 0, 78, 0), (0, 0, 0, 74, 0)),
    "codes-everywhere, put right": ((0, 9, 0, 5, 0), (0, 0, 0, 8, 0), None, None),
    "outcomes": ((0, 0, 0, 5, 0), (0, 0, 0, 2, 0), (0, 0, 0, 4, 0), (0, 0, 0, 6, 0)),
}
"""The same of every edit."""


@pytest.mark.parametrize(("most", "table"), [
    pytest.param(FEW, EXPECTED, id="some"), pytest.param(ALL, EVERY, id="every", marks=pytest.mark.large),
])
def test_edits_of_a_real_history_are_found_or_are_legal(
    recorded: Recorded, most: int, table: Mapping[str, tuple[Counts | None, ...]]
) -> None:
    """Each judge finds as many edits as the table says; none raises an error, and what nothing finds is a run of the
    model. A family has a column where it has edits of the model's run."""
    at = EACH_RUN.index(recorded.model.name)
    assert counts_of(recorded, most) == {family: row[at] for family, row in table.items() if row[at] is not None}


VISIBLE: Mapping[str, tuple[str, ...]] = {
    "kafka/4.4": (
        *(f"cache.transactions.tid1.metadata.{name}" for name in (
            "producer_id", "producer_epoch", "last_producer_epoch", "previous_producer_id", "next_producer_id",
        )), "cache.waiting.tid1.outcome.entry.producer_epoch",
    ),
    "replication/kip-320/actors": ("leader_epoch", "high_watermark", "log.*.epoch"),
    "compaction/pulsar/actors": (
        "cursor.compaction_horizon", "cursor.compacted_topic_context", "phase_one_result.read_position",
        "topic.*.messages.*.id", "topic.*.messages.*.key", "topic.*.messages.*.value",
    ),
}
"""Offsets, epochs and ids of actors' states that the spec has, too: fields of an actor and the way into them."""


CHANGED: Mapping[str, tuple[int, int]] = {
    "kafka/4.4": (11, 0), "replication/kip-320/actors": (16, 1),
    "compaction/pulsar/actors": (26, 0),
}
"""Of every sixth such number, how many the spec finds changed, and how many it does not.

Those that it does not find are changed between a response's serving and its taking, in what that response changes: the
mapping does not look there (docs/reference/limits.md).
"""


@pytest.mark.parametrize("recorded", CHANGED, indirect=True)
def test_changed_offset_fails_a_property_or_the_refinement(recorded: Recorded) -> None:
    """A number that is a variable of the spec cannot be another one in a single state: the spec itself says so."""
    made = [edit for edit in history_edits.numbers_of_states(events_of(recorded.path)) if is_visible(recorded, edit)]
    found = Counter(strongest(recorded.judged(edit)) for edit in made[::6])
    by_spec = found["property"] + found["refinement"]
    assert (by_spec, found.total() - by_spec) == CHANGED[recorded.model.name]


def is_visible(recorded: Recorded, edit: Edit) -> bool:
    """Say whether an edit of a number is one of a variable that the spec has, after the initial state."""
    _, n, (_, name, *way), _ = edit.args  # type: ignore[attr-defined]
    path = ".".join("*" if isinstance(key, int) else key for key in way)
    return n > 0 and parts(name)[0] in recorded.model.actors and path in VISIBLE[recorded.model.name]
