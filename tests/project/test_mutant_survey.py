"""The survey of wrong edits: what it says of an edit is what tells it from the source, and of the source nothing."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.mutants import source_mutants as source
from support.mutants import survey
from support.mutants.source_mutants import Mutant
from support.mutants.survey import Edited, Room
from support.paths import ROOT
from support.paths import TESTS as TESTS_FOLDER

ROWS = ("exactly-once-commits", "aborted-unlisted")
"""One that expects no violation, and one that expects one."""
TESTS = ("protocols/cluster/test_consumer.py",)
CALM = "replication-calm"
ROOMS: Mapping[str, Room] = {
    "small": Room((), ROWS, TESTS), "recorded": Room((), ROWS, (), "process"), "replication": Room((), (CALM,), ())}
BUDGET = {"runs": 4, "replicated": 1, "first": 2, "flawed": 100}
REFUSED = "if request.producer_id != known.producer_id and not is_retry_over_overflow(request, known):"
UNLISTED = 'leader={"fetch": fetch_unlisted},'


def edited(file: str, old: str, new: str, room: str = "small") -> Edited:
    """Return a file of `kafka_proto` with a text in the place of another one."""
    mutant = Mutant(f"{old} | {new}", f"kafka_proto/{file}", old, new)
    return Edited(mutant, room, False, source.edited(mutant))


def pinned(name: str, room: str) -> Edited:
    """Return a wrong edit of the table of roles, in a small room."""
    mutant = source.table("transaction")[name]
    return Edited(mutant, room, True, source.edited(mutant))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> survey.Survey:
    """A survey whose rooms are small."""
    return survey.Survey(tmp_path_factory.mktemp("packages"), ROOMS, BUDGET)


@pytest.mark.parametrize(("edit", "by", "where", "what"), [
    (edited("broker/coordinator/end_txn.py", REFUSED, "if True:"), "hunt", ROWS[0], "FencedForAReason: "),
    (edited("broker/changes.py", UNLISTED, ""), "hunt", ROWS[1], "ReadBound is violated no more"),
    (edited("clients/consumer.py", "max(position,", "max("), "hunt", ROWS[1], "TypeError raised in"),
    (edited("replication/high_watermark.py", "return all(", "return any(", "replication"), "hunt", CALM, "StrongIsr: "),
    (pinned("init-empty-transactional-id-taken", "recorded"), "conformance", "init_empty_tid", "step 1"),
    (pinned("consumer-shows-what-it-is-past", "small"), "test",
     "test_records_before_the_position_are_not_shown_again", ""),
    (edited("clients/consumer.py", '"""The consumer: ', '"""Nothing but the consumer: '), "left", "", ""),
])
def test_edit_is_caught_by_the_first_that_tells_it_from_the_source(
    edit: Edited, by: str, where: str, what: str, small: survey.Survey
) -> None:
    """By a property, a flaw that is hidden, an exception; recordings; a test alone; a comment by none."""
    line = small.judge(edit)
    assert (line["by"], line["where"], line["name"]) == (by, where, edit.mutant.name)
    assert what in line["what"]
    path = small.folder / edit.mutant.file
    assert path.read_bytes() == (ROOT / edit.mutant.file).read_bytes()


def test_right_source_is_learned_once_and_has_its_flaw(small: survey.Survey) -> None:
    """Of the row that expects no violation all runs, of the other one as many as find its flaw sixteen times."""
    noted = list[Mapping[str, object]]()
    small.known.clear()
    small.note = noted.append
    small.learn(ROWS)
    known = dict(small.known)
    assert noted == [{"row": name, **known[name]} for name in ROWS]
    assert known[ROWS[0]] == {"runs": BUDGET["runs"], "witnesses": []}
    assert 16 <= known[ROWS[1]]["runs"] <= BUDGET["flawed"]
    small.learn(ROWS)
    assert small.known == known and len(noted) == len(ROWS)


@pytest.mark.parametrize("room", ("transactions", "compaction"))
def test_edits_of_a_room_are_right_python_and_no_two_mean_the_same(room: str) -> None:
    """Pinned ones come with their own text; a generated one is none of them, nor the source."""
    made = list(survey.edits_of(room))
    meant = [ast.dump(ast.parse(edit.text)) for edit in made]
    source_too = {ast.dump(ast.parse((ROOT / file).read_text(encoding="utf-8"))) for file in survey.files_of(room)}
    assert len(made) > 100 and {edit.is_pinned for edit in made} == {True, False}
    of_generated = [each for each, edit in zip(meant, made, strict=True) if not edit.is_pinned]
    of_pinned = {each for each, edit in zip(meant, made, strict=True) if edit.is_pinned}
    assert len(set(of_generated)) == len(of_generated) and not set(of_generated) & (of_pinned | source_too)
    assert len({edit.mutant.name for edit in made}) == len(made)


def test_every_pinned_edit_of_a_role_is_in_one_room() -> None:
    """And so is each file: no room has another one's."""
    files = Counter(file for room in survey.ROOMS for file in survey.files_of(room))
    assert set(files.values()) == {1}
    assert {row.file for row in source.table("transaction").values()} <= set(files)
    scenarios = {room: each.scenarios() for room, each in survey.ROOMS.items() if each.rows}
    assert all(len(names) > 3 for names in scenarios.values())
    tests = {test for room in survey.ROOMS.values() for test in room.tests}
    assert all((TESTS_FOLDER / test).is_file() for test in sorted(tests))


def test_larger_sample_goes_on_with_a_smaller_one() -> None:
    """Whatever the order in which edits are made; another seed takes others."""
    edits = [edited("clients/consumer.py", "from __future__", f"# {n}\nfrom __future__") for n in range(20)]
    few, many = survey.sample(edits, 5, 0), survey.sample(reversed(edits), 15, 0)
    assert many[:5] == few and survey.sample(edits, 5, 1) != few and len(survey.sample(edits, None, 0)) == 20


def test_table_counts_each_line_in_its_room() -> None:
    """And in all of them, and the pinned ones apart; a room that nothing was judged of is not there."""
    def line(room: str, pinned: bool, by: str) -> dict[str, object]:
        return {"room": room, "pinned": pinned, "by": by}

    lines = [line("group", True, "hunt"), line("leader", True, "test"), line("group", False, "left")]
    made = Counter({("group", True): 1_234, ("group", False): 5, ("leader", True): 10, ("stack", True): 7})
    assert survey.table(lines, made).splitlines() == [
        "| room | made | judged | hunt | conformance | tests only | equivalent | left |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
        "| leader | 10 | 1 | 0 | 0 | 1 | 0 | 0 |",
        "| group | 1,239 | 2 | 1 | 0 | 0 | 0 | 1 |",
        "| all | 1,249 | 3 | 1 | 0 | 1 | 0 | 1 |",
        "| of these pinned | 1,244 | 2 | 1 | 0 | 1 | 0 | 0 |",
    ]


def test_survey_goes_on_where_it_was_but_not_with_other_packages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines of the same packages are kept; of others, a sentence and exit code 2."""
    out = tmp_path / "new" / "mutants.jsonl"
    assert survey.earlier(out, "a") == ({}, {})
    with out.open("a", encoding="utf-8") as file:
        print(json.dumps({"name": "x", "by": "hunt"}), file=file)
        print(json.dumps({"row": "y", "runs": 8, "witnesses": ["z"]}), file=file)
    assert survey.earlier(out, "a") == (
        {"y": {"runs": 8, "witnesses": ["z"]}}, {"x": {"name": "x", "by": "hunt"}})
    with pytest.raises(SystemExit) as ended:
        survey.earlier(out, "b")
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"{out} is a survey of other packages; move it away, or give --out another file\n"
