"""Histories recorded elsewhere: EDN read form by form, logs judged by what clients saw, the same tables."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.commands.command_line import call
from support.paths import DATA
from support.spark.spark_session import spark

from harness.campaign import importing, judging
from harness.campaign.checks import rates_by_faults
from harness.campaign.clusters import clusters
from harness.campaign.judging import judge_block, rejudge
from harness.campaign.store import CampaignStore
from harness.campaign.tables import CampaignTables
from harness.foreign import edn
from harness.foreign.edn import Keyword, Map, Symbol
from harness.foreign.jepsen import operations
from harness.model.log_operations import LogOperation
from harness.record import read_history
from harness.verify.isolation.anomalies import Breach
from harness.verify.isolation.judge import LogJudge

JEPSEN = DATA / "jepsen"
DURABILITY, STABILITY = "AckDurability", "StableReads"


def read(tmp_path: Path, text: str) -> list[tuple[int, Any]]:
    """Return the forms of a text, with their lines."""
    path = tmp_path / "some.edn"
    path.write_text(text, encoding="utf-8")
    return list(edn.forms(path))


def judged(tmp_path: Path, *lines: str) -> dict[str, tuple[int, str]]:
    """Return what a history violates: each line an operation as `PROCESS TYPE F VALUE`."""
    ops = [line.split(maxsplit=3) for line in lines]
    text = "\n".join(f"{{:process {p}, :type :{kind}, :f :{f}, :value {value}}}" for p, kind, f, value in ops)
    path = tmp_path / "history.edn"
    path.write_text(text, encoding="utf-8")
    return {breach.property: (breach.step, breach.reason) for breach in judge_log(operations(path))}


def judge_log(read: Iterable[LogOperation]) -> tuple[Breach, ...]:
    """Return what the operations of a history violate."""
    judge = LogJudge()
    for operation in read:
        judge.look(operation)
    return judge.breaches()


def test_edn_is_read_with_all_its_forms(tmp_path: Path) -> None:
    """Comments, commas, discarded forms, tags, sets, texts over lines, every kind of number."""
    text = """; a comment
    {:a 1, "b\\n\\u0041" [nil true #_ left-out #_ #_ a b -2N 2.5M 1e3 22/7 0xff \\a \\newline]}
    #some/tag{:c #{1 2}} (x/y "two
    lines") ##Inf"""
    assert read(tmp_path, text)[:2] == [
        (2, Map({Keyword("a"): 1, "b\nA": (None, True, -2, 2.5, 1000.0, Symbol("22/7"), Symbol("0xff"), Symbol("\\a"),
                                           Symbol("\\newline"))})),
        (3, Map({Keyword("c"): frozenset({1, 2})})),
    ]
    assert [form for _, form in read(tmp_path, text)][2:] == [Symbol("x/y"), "two\n    lines", float("inf")]


@pytest.mark.parametrize("text", ["{:a 1}\n{:b [2]}", "[{:a 1}\n {:b [2]}]", "({:a 1}\n#tag {:b [2]})"])
def test_a_vector_around_the_file_makes_no_difference(text: str, tmp_path: Path) -> None:
    """Maps one after the other, or in a vector: the same forms, each with its line."""
    assert read(tmp_path, text) == [(1, Map({Keyword("a"): 1})), (2, Map({Keyword("b"): (2,)}))]


SCALARS = st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")) | st.builds(
    Keyword, st.from_regex(r"[a-z][a-z0-9-]{0,5}(/[a-z]{1,3})?\??", fullmatch=True))
FORMS = st.recursive(SCALARS, lambda inner: st.one_of(
    st.lists(inner, max_size=4).map(tuple), st.frozensets(inner, max_size=4),
    st.dictionaries(inner, inner, max_size=4).map(Map)), max_leaves=12)


@given(FORMS)
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, form: Any) -> None:
    """Any value, written as EDN and read again, is the same text; inside a map, so that it is one form."""
    path = tmp_path_factory.getbasetemp() / "form.edn"
    path.write_text(f"{{:it {edn.written(form)}}}", encoding="utf-8", newline="")
    [(_, found)] = edn.forms(path)
    assert edn.written(found[Keyword("it")]).replace("\r\n", "\n") == edn.written(form).replace("\r\n", "\n")


OP = "{:process 0, :type :invoke, :f :crash}"


@pytest.mark.parametrize(("text", "said"), [
    (OP + "\n{:a [1 2\n", "line 2: the file ends within the vector that begins here; it is cut off"),
    (f"[{OP}\n{OP}\n", "line 1: the file ends within the vector that begins here; it is cut off"),
    (OP + '\n{:a "one\ntwo', "line 2: the file ends within the text that begins here; it is cut off"),
    (OP + "\n{:a [1 2}}", "line 2: '}' does not close the vector that begins on line 2"),
    (OP + "}", "line 1: '}' closes nothing"),
    ("\n{:a\n 1 :b}", "line 2: the map that begins here has a key without a value"),
    ("{:a 1 :b @deref}", "line 1: '@deref' is not EDN"),
    ("{:a #_}", "line 1: a tag has no value"),
    ("", "is empty"),
    (b"\xff\xfe", "is not UTF-8 text"),
    ("; nothing but words\n", "holds no operation"),
    ("{:process 0, :type :ok, :f :cas, :value [1 2]}", "line 1: unknown :f :cas; the operations on a log are :send"),
    ("{:process 0, :type :maybe, :f :send, :value []}", "line 1: unknown :type :maybe; the types are :invoke, :ok"),
    ("\n{:process 0, :f :send, :value []}", "line 2: an operation has :process, :type and :f; this one has no :type"),
    ("[1 2]", "line 1: expected the map of an operation, found 1"),
    ("{:process 0, :type :ok, :f :send, :value 7}", "line 1: expected a vector of sends and polls as :value, found 7"),
    ("{:process 0, :type :ok, :f :txn, :value [[:append 1 2]]}", "line 1: expected [:send KEY VALUE] or [:poll"),
    ("{:process 0, :type :ok, :f :poll, :value [[:poll {1 [[-1 2]]}]]}", "line 1: expected [OFFSET VALUE], found"),
    ("{:process 0, :type :ok, :f :poll, :time -1, :value []}", "line 1: expected nanoseconds as :time, found -1"),
])
def test_bad_input_is_one_sentence_and_leaves_nothing(text: str | bytes, said: str, tmp_path: Path) -> None:
    """Malformed EDN, other operations, a file that is cut off: file and line are named, and there is no folder."""
    path = tmp_path / "bad.edn"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    outcome = call("import", JEPSEN / "kept-writes.edn", path, "--as", "jepsen", "--out", tmp_path / "tables")
    assert str(path) in outcome.refusal and said in outcome.refusal
    assert sorted(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("name", "violated", "words"), [
    ("lost-write", (DURABILITY, 11), "12 was acknowledged at offset 1 of log 0 in operation 4 (send by 0) and is "),
    ("kept-writes", None, ""),
    ("rewritten-offset", (STABILITY, 9), 'offset 1 of log "orders" is :b in operation 4 (poll by 1) and :c in'),
    ("stable-offset", None, ""),
])
def test_bad_histories_are_told_from_their_repaired_twins(
    name: str, violated: tuple[str, int] | None, words: str
) -> None:
    """R4: an acknowledged record that nobody reads. R5: an offset with two contents. The twins are silent."""
    found = judge_log(operations(JEPSEN / f"{name}.edn"))
    assert [(breach.property, breach.step) for breach in found] == ([violated] if violated else [])
    assert all(words in breach.reason for breach in found)


def test_an_acknowledged_record_must_be_read_by_who_reads_on(tmp_path: Path) -> None:
    """Nobody reads that far; it is read at another offset; nothing was acknowledged: no loss. Else a loss."""
    sent = "0 ok send [[:send 0 [5 :a]]]"
    assert judged(tmp_path, sent, "1 ok poll [[:poll {0 [[4 :z]]}]]", "1 ok poll [[:poll {1 [[9 :z]]}]]") == {}
    moved = judged(tmp_path, sent, "1 ok poll [[:poll {0 [[6 :a]]}]]")
    assert {name: step for name, (step, _) in moved.items()} == {"AcknowledgedOffset": 2}
    for unknown in ("0 info send [[:send 0 [5 :a]]]", "0 fail send [[:send 0 [5 :a]]]", "0 ok send [[:send 0 :a]]"):
        assert judged(tmp_path, unknown, "1 ok poll [[:poll {0 [[6 :b]]}]]") == {}
    found = judged(tmp_path, "1 ok poll [[:poll {0 [[6 :b]]}]]", "1 ok poll [[:poll {0 [[8 :c]]}]]", sent,
                   "0 ok send [[:send 0 [7 :d]]]")
    assert {name: step for name, (step, _) in found.items()} == {DURABILITY: 3}
    assert found[DURABILITY][1].endswith("; and 1 more such case")


def test_a_record_that_was_read_once_is_not_passed_over_later(tmp_path: Path) -> None:
    """One poll that has both neighbours of a record has the record, too, and so have two polls of one reader."""
    before = ("0 ok send [[:send 0 [5 :a]]]", "1 ok poll [[:poll {0 [[5 :a]]}]]")
    found = judged(tmp_path, *before, "2 ok poll [[:poll {0 [[4 :y] [6 :z]]}]]")
    assert {name: step for name, (step, _) in found.items()} == {DURABILITY: 3}
    assert "operation 3 (poll by 2) passes over it from offset 4 to 6" in found[DURABILITY][1]
    apart = ("2 ok poll [[:poll {0 [[4 :y]]}]]", "2 ok poll [[:poll {0 [[6 :z]]}]]")
    assert {name: step for name, (step, _) in judged(tmp_path, *before, *apart).items()} == {DURABILITY: 4}
    for between in ("2 ok subscribe [0]", "2 info crash nil", "2 fail poll [[:poll]]"):
        assert judged(tmp_path, *before, apart[0], between, apart[1]) == {}
    unasked = judged(tmp_path, before[1], "2 ok poll [[:poll {0 [[4 :y] [6 :z]]}]]")
    assert {name: step for name, (step, _) in unasked.items()} == {"NothingSkipped": 2}


def test_an_offset_has_one_content_for_senders_too(tmp_path: Path) -> None:
    """Two sends are acknowledged at one offset; one that was not acknowledged proves nothing."""
    first = "0 ok send [[:send 0 [5 1]]]"
    assert judged(tmp_path, first, "1 ok txn [[:send 0 [5 2]]]")[STABILITY][0] == 2
    assert judged(tmp_path, first, "1 info txn [[:send 0 [5 2]]]", "1 ok send [[:send 1 [5 2]]]", first) == {}


@pytest.mark.parametrize(("between", "goes_back"), [
    ((), True),
    (("1 ok assign [0 1]",), True),
    (("1 ok assign [1]", "1 ok assign [0]"), False),
    (("1 ok subscribe [0]",), False),
    (("1 info poll [[:poll]]",), False),
    (("1 fail txn [[:poll] [:send 0 :x]]",), False),
    (("1 info crash nil",), False),
])
def test_a_reader_that_goes_back_is_told_unless_it_may(
    between: tuple[str, ...], goes_back: bool, tmp_path: Path
) -> None:
    """An assignment is kept; a group may deal out again, a failed poll or a crash leaves nobody knows what position."""
    lines = ("1 ok assign [0]", "1 ok poll [[:poll {0 [[4 :a] [5 :b]]}]]", *between, "1 ok poll [[:poll {0 [[5 :b]]}]]")
    found = judged(tmp_path, *lines)
    assert {name: step for name, (step, _) in found.items()} == ({STABILITY: len(lines)} if goes_back else {})


def test_no_poll_has_its_records_out_of_order(tmp_path: Path) -> None:
    """Inside one poll offsets grow, also for who is in a group."""
    found = judged(tmp_path, "1 ok subscribe [0]", "1 ok poll [[:poll {0 [[5 :b] [4 :a]]}]]")
    assert found[STABILITY][1] == "1 reads offset 4 of log 0 in operation 2, after offset 5 in the same one"


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of the four histories that lie in the data of the tests."""
    out = tmp_path_factory.mktemp("imported") / "tables"
    found = call("import", JEPSEN, "--as", "jepsen", "--out", out, "--name", "queue", "--json").json
    assert (len(found["files"]), found["violating"]) == (4, 2)
    return out


@pytest.mark.large
def test_imported_histories_are_judged_from_the_tables(imported: Path) -> None:
    """Rows, rates by faults, clusters and the judgement on the stored events: as for a campaign, without trails."""
    tables = CampaignTables(spark(), CampaignStore(imported), what="queue")
    assert tables.frame("events").count() == 46
    rows = {row["seed"]: row for row in tables.frame("runs").collect()}
    files = {file["seed"]: file for file in json.loads((imported / importing.INDEX).read_text())["files"]}
    assert {seed: row["digest"] for seed, row in rows.items()} == {s: file["digest"] for s, file in files.items()}
    assert [(rate.value, rate.runs, rate.failing) for rate in rates_by_faults(tables)] == [
        ("kill", 2, 1), ("start-partition", 2, 1)]
    assert [(one.property, one.faults, one.has, one.shrunk) for one in clusters(tables)] == [
        (DURABILITY, ("kill",), 11, False), (STABILITY, ("start-partition",), 9, False)]
    assert [(one.runs, one.events, one.kinds, one.ok) for one in rejudge(tables)] == [(4, 46, {"property": 2}, True)]


def test_a_row_that_says_otherwise_than_its_events_is_told(
    imported: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verdict or digest in the row that is not that of the stored operations is a finding."""
    store = CampaignStore(imported)
    [block], cell = store.committed().values(), store.manifest().cells[0]
    assert judge_block(imported, block, cell).kinds == {"property": 2}
    true = judging._runs(store.files("runs", [block])[0])
    for change, kinds in (({"violated": None, "step": None, "reason": None}, {"property": 2, "verdict": 2}),
                          ({"digest": "0"}, {"property": 2, "digest": 4})):
        monkeypatch.setattr("harness.campaign.judging._runs", lambda path, change=change: [
            {**row, **change} for row in true])
        assert judge_block(imported, block, cell).kinds == kinds


def test_own_histories_come_back_from_the_tables_as_they_were(tmp_path: Path) -> None:
    """Two runs of one scenario and one of another: digests, verdicts and trails in the rows, and nothing to object."""
    runs = tmp_path / "runs"
    for what, seed in (("s4-copied-tail", 21), ("s4-copied-tail", 1), ("rolling-restart", 0)):
        assert call("simulate", what, "--seed", seed, "--out", runs).code in (0, 1)
    out = tmp_path / "tables"
    found = call("import", runs, "--as", "kafka-proto", "--out", out, "--json").json["files"]
    assert [(Path(one["file"]).name.split(".")[0], one["seed"], one["violated"]) for one in found] == [
        ("rolling-restart-random-0", 0, None), ("s4-copied-tail-random-1", 0, None),
        ("s4-copied-tail-random-21", 1, "LogsAgreeUpToHwm")]
    assert [one["digest"] for one in found] == [read_history(Path(one["file"])).digest for one in found]
    store = CampaignStore(out)
    cells = {cell.key: cell for cell in store.manifest().cells}
    kinds = [judge_block(out, block, cells[block.cell]).kinds for block in store.committed().values()]
    assert sorted(kinds, key=len) == [{}, {"property": 1}]


@pytest.mark.parametrize("harm", ["cut", "spaced", "other"])
def test_own_histories_that_are_damaged_are_refused(harm: str, tmp_path: Path) -> None:
    """Cut off, written otherwise than this program does, or none at all: one sentence, and no folder."""
    assert call("simulate", "s4-copied-tail", "--seed", 1, "--out", tmp_path / "runs").code in (0, 1)
    path = next((tmp_path / "runs").glob("*.history.jsonl"))
    lines = path.read_text(encoding="utf-8").splitlines()
    harmed = {"cut": lines[:-3], "other": ["{}"], "spaced": respaced(lines)}[harm]
    path.write_text("\n".join(harmed) + "\n", encoding="utf-8")
    outcome = call("import", path, "--as", "kafka-proto", "--out", tmp_path / "tables")
    said = {"cut": "is cut off", "spaced": "line 3: not the text of an event as this program writes it",
            "other": "format"}[harm]
    assert said in outcome.refusal and str(path) in outcome.refusal
    assert not (tmp_path / "tables").exists()


def respaced(lines: list[str]) -> list[str]:
    """Return a history whose second event has another spacing, with a digest that fits."""
    events = [lines[1], lines[2].replace('"process":', '"process": ', 1), *lines[3:-1]]
    digest = hashlib.sha256("".join(f"{line}\n" for line in events).encode()).hexdigest()
    return [lines[0], *events, json.dumps({**json.loads(lines[-1]), "digest": digest})]


def test_a_folder_in_use_and_one_without_histories_are_refused(imported: Path, tmp_path: Path) -> None:
    """What is in a folder stays as it is."""
    again = call("import", JEPSEN, "--as", "jepsen", "--out", imported).refusal
    assert again == f"{imported} is not empty; give a new folder with --out"
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    assert "it is not a folder" in call("import", JEPSEN, "--as", "jepsen", "--out", tmp_path / "file" / "t").refusal
    (tmp_path / "empty").mkdir()
    assert call("import", JEPSEN / "lost-write.edn", "--as", "jepsen", "--out", tmp_path / "empty").code == 0
    assert "there is no *.edn in" in call("import", tmp_path, "--as", "jepsen", "--out", tmp_path / "t").refusal


def test_import_with_check_ends_with_1_where_a_history_violates_something(tmp_path: Path) -> None:
    """`--check` makes violations an exit code; what is written is the same."""
    codes = {name: call("import", JEPSEN / f"{name}.edn", "--as", "jepsen", "--out", tmp_path / name, "--check").code
             for name in ("lost-write", "kept-writes")}
    assert codes == {"lost-write": 1, "kept-writes": 0}
    assert (tmp_path / "lost-write" / "imported.json").is_file()
