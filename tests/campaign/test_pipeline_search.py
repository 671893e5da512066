"""`check --engine spark`: counts and counterexamples of the other engines, levels that survive, what it refuses."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from support.commands.command_line import PATIENCE_S, call, files_below, started, wait_until
from support.searches.engines import safety
from support.searches.spec_models import MODELS, PUBLISHED, made
from support.spark.held_workers import workers_of
from support.spark.spark_session import spark

from harness.campaign.search import expander
from harness.campaign.search import spark_search as search
from harness.campaign.search.expander import Expander, Expansion, LevelTask, SearchRequest, expander_for, grow, settle
from harness.campaign.search.levels import Levels
from harness.campaign.search.spark_search import SparkSearch
from harness.campaign.search.state_columns import Keys, from_bytes, merged
from harness.explore.packed.result import Result
from harness.explore.packed.search import Search
from harness.model import Model, Refusal

DIARY = ("diary-01", ("transactions/diary-01", {"clients": 1, "brokers": 2, "txn-log-partitions": 1}, {}))
SMALL = made(DIARY[1])
PARTS = 3


def alone(model: Model, **options: bool) -> Result:
    """Search in this process."""
    return Search(model, safety(model), witnesses=True, engine="python", **options).run()


def on_spark(model: Model, folder: Path | None = None, **options: bool) -> SparkSearch:
    """Return a search on this process's session."""
    spark()
    return SparkSearch(model, safety(model), folder=folder, parts=PARTS, **options)


def found(result: Result) -> list[object]:
    """Return what two engines agree on."""
    return [result.initial, result.distinct, result.generated, result.depth, result.complete, result.violations,
            result.witnesses, result.actions]


def stopping(going: SparkSearch, depth: int) -> SparkSearch:
    """Let an interrupt come to a search once it has so many levels."""
    def note(distinct: int, generated: int, at: int, queue: int) -> None:
        going.wants_stop = going.wants_stop or at >= depth

    going.progress = note
    return going


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of a search that nobody disturbed."""
    folder = tmp_path_factory.mktemp("search") / "calm"
    assert found(on_spark(SMALL, folder).run()) == found(alone(SMALL))
    yield folder


@pytest.fixture
def copied(calm: Path, tmp_path: Path) -> Path:
    """A copy of that folder, up to level 5."""
    folder = tmp_path / "copied"
    shutil.copytree(calm, folder)
    for level in sorted(folder.glob("level-*"))[5:]:
        shutil.rmtree(level)
    return folder


@pytest.mark.parametrize("name", ["async-isr-3", pytest.param("pulsar", marks=pytest.mark.large)])
def test_counts_and_counterexamples_are_those_of_the_other_engines(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All numbers and all shortest ways agree, with a constraint, deadlocks, violations; many tasks take part."""
    monkeypatch.setattr(search, "PER_TASK", 40)
    model = made(MODELS[name])
    assert found(on_spark(model, stop=False, deadlock=True).run()) == found(alone(model, stop=False, deadlock=True))


def test_a_counterexample_is_an_ordinary_trail(tmp_path: Path) -> None:
    """The command writes the same trail and history as with another engine, and says how sure its counts are."""
    spark()
    arguments = ("check", "transactions/gist", "--size", "clients=1")
    one = call(*arguments, "--out", tmp_path / "here", "--engine", "python", "--json")
    other = call(*arguments, "--out", tmp_path / "there", "--engine", "spark", "--parts", 1, "--json")
    assert (one.code, other.code) == (1, 1)
    assert files_below(tmp_path / "here") == files_below(tmp_path / "there") != {}
    same = ("initial", "distinct", "generated", "depth", "verdict", "complete", "witnesses", "actions")
    assert [other.json[name] for name in same] == [one.json[name] for name in same]
    assert other.json["violated"][0]["length"] == one.json["violated"][0]["length"] == 5
    assert (other.json["engine"], other.json["collision_probability"]) == (
        "spark", other.json["distinct"] * (other.json["generated"] - other.json["distinct"]) / 2**128)


def test_an_interrupted_search_tells_what_it_has_and_goes_on_from_there(calm: Path, tmp_path: Path) -> None:
    """The levels that are done are counted and kept; in the end every file is as if nothing had happened."""
    folder = tmp_path / "search"
    going = stopping(on_spark(SMALL, folder), 5)
    part = going.run()
    assert going.interrupted and not part.complete
    assert part.depth == len(list(folder.glob("level-*"))) < alone(SMALL).depth
    assert found(on_spark(SMALL, folder).run()) == found(alone(SMALL))
    kept = [{name: content for name, content in files_below(where).items() if name.endswith(".parquet")}
            for where in (folder, calm)]
    assert kept[0] == kept[1] != {}


def test_a_search_goes_on_after_a_kill_in_the_middle_of_a_level(copied: Path) -> None:
    """What a killed driver left half-done is removed, and the level is made again."""
    left = copied / ".level-0006-killed"
    left.mkdir()
    (left / "part-0000.parquet").write_bytes(b"PAR1")
    assert found(on_spark(SMALL, copied).run()) == found(alone(SMALL))
    assert not left.exists()


def test_a_finished_search_is_told_again_without_another_level(calm: Path) -> None:
    """The counts come from the folder, and nothing there changes."""
    before = files_below(calm)
    again = on_spark(SMALL, calm)
    assert found(again.run()) == found(alone(SMALL))
    assert (files_below(calm), again.worker_cpu) == (before, 0.0)


def cut(path: Path) -> None:
    """Take the end off a file."""
    path.write_bytes(path.read_bytes()[:-2])


def spoil(path: Path) -> None:
    """Change a byte in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("harm, inside, sentence", [
    (cut, "level-0003/level.json", "level-0003/level.json is damaged; remove level-0003 and all later ones from"),
    (spoil, "level-0004/part-*.parquet", r"parquet is damaged; remove level-0004 and all later ones from"),
    (os.unlink, "level-0004/part-*.parquet", r"parquet is missing; remove level-0004 and all later ones from"),
    (shutil.rmtree, "level-0002", "level-0002 is missing; remove level-0002 and all later ones from"),
    (cut, "search.json", "search.json is damaged, or of another version; give another folder with --checkpoint"),
])
def test_a_damaged_folder_is_refused(
    harm: Callable[[Path], None], inside: str, sentence: str, copied: Path
) -> None:
    """The sentence names the file and what to do, and nothing is changed."""
    harm(sorted(copied.glob(inside))[0])
    before = files_below(copied)
    with pytest.raises(Refusal, match=sentence):
        on_spark(SMALL, copied).run()
    assert files_below(copied) == before


def test_damage_while_it_runs_ends_it_in_one_sentence(tmp_path: Path) -> None:
    """A level that turns bad between two jobs is noticed by whoever reads it; the levels before are kept."""
    going = on_spark(SMALL, tmp_path)

    def harm(distinct: int, generated: int, depth: int, queue: int) -> None:
        for path in tmp_path.glob("level-0003/part-*"):
            path.write_bytes(b"PAR1")

    going.progress = harm
    with pytest.raises(Refusal, match=r"^the search cannot go on: .*part-\d+.parquet is damaged .* \(3 levels are kep"):
        going.run()


def test_a_folder_of_another_search_is_refused(calm: Path, tmp_path: Path) -> None:
    """Other sizes, other flags, another engine, other things in the folder: one sentence each, nothing touched."""
    before = files_below(calm)
    larger = made(("transactions/diary-01", {"clients": 1, "brokers": 3}, {}))
    with pytest.raises(Refusal, match=r"is another: its sizes is .*brokers=2.* here it is .*brokers=3"):
        on_spark(larger, calm).run()
    with pytest.raises(Refusal, match=r"is another: its stop is true, here it is false"):
        on_spark(SMALL, calm, stop=False).run()
    assert "was made by --engine spark; resume with that engine" in call(
        "check", "transactions/diary-01", "--checkpoint", calm, "--out", tmp_path).refusal
    (tmp_path / "checkpoint.json").write_text("{}")
    with pytest.raises(Refusal, match=r"holds something else than a search of --engine spark \(checkpoint.json\)"):
        on_spark(SMALL, tmp_path).run()
    with pytest.raises(Refusal, match=r"cannot write the search in .*checkpoint\.json"):
        on_spark(SMALL, tmp_path / "checkpoint.json").run()
    assert files_below(calm) == before


@pytest.mark.parametrize("options, sentence", [
    *((given, f"--engine spark does not support {given[0]}; leave it out, or use another engine") for given in (
        ("--symmetry",), ("--fingerprints",), ("--memory", 1), ("--property", "EventuallyAllClientsGetPid"))),
    (("--master", "yarn"), "on a cluster the search is kept in a folder that all machines share; name it with "
                           "--checkpoint"),
])
def test_what_this_engine_has_not_is_refused(options: tuple[object, ...], sentence: str, tmp_path: Path) -> None:
    """One sentence, and code 2, before Spark is started."""
    arguments = ("check", "transactions/diary-01", "--out", tmp_path)
    assert call(*arguments, "--engine", "spark", *options).refusal == sentence


def test_options_of_spark_need_its_engine(tmp_path: Path) -> None:
    """--master and --parts mean nothing to the other engines."""
    refusal = call("check", "transactions/diary-01", "--out", tmp_path, "--master", "local[2]").refusal
    assert refusal == "--master needs --engine spark; give both, or leave it out"


def task(model: Model, folder: Path, parts: int) -> LevelTask:
    """Return a worker's task."""
    request = SearchRequest(model.name, model.sizes, model.settings, True, safety(model), False, "kafka_proto",
                            expander.version_of("kafka_proto"))
    return LevelTask(request, str(folder), parts, frozenset(), 0)


def test_workers_understand_each_other_whatever_their_numbers(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that met other states before, or has narrow fields, yields the same keys, texts and counts."""
    levels = Levels(copied).committed()
    job = task(SMALL, copied, 1)
    monkeypatch.setattr(expander, "_EXPANDER", [])

    def grown() -> tuple[Expansion, list[dict[str, object]]]:
        *tables, (_, counted) = grow(job, levels[3].paths())
        assert isinstance(counted, Expansion)
        return counted, merged([from_bytes(data) for _, data in tables]).to_pylist()  # type: ignore[arg-type]

    counted, rows = grown()
    list(grow(job, levels[4].paths()))
    assert grown()[1] == rows
    monkeypatch.setattr(expander, "SPARE", 0)
    monkeypatch.setattr(expander, "MOST", 0)
    again, others = grown()
    assert others == rows
    assert (again.generated, again.actions) == (counted.generated, counted.actions) != (0, {})


def test_a_part_keeps_what_is_new_and_each_state_once(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """States that came twice are kept once, those of earlier levels not at all."""
    levels = Levels(copied).committed()
    job = task(SMALL, copied, 1)
    monkeypatch.setattr(expander, "_EXPANDER", [])
    came = list(grow(job, levels[3].paths()))
    seen = [path for level in levels for path in level.paths()]
    (copied / "target").mkdir()
    (_, row), = settle(job, 0, iter([*came, *came]), [path for path in seen if "level-0005" not in path], "target")
    assert row is not None and row["states"] == levels[4].states > 0
    (_, nothing), = settle(job, 0, iter(came), seen, "target")
    assert nothing is None


def test_a_full_disk_is_told_in_one_sentence(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker says which folder it is and why; the driver, too, where it writes itself."""
    def full(path: Path, put: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    levels = Levels(copied)
    last = levels.committed()[-1]
    scratch = levels.scratch(6)
    monkeypatch.setattr(expander, "_EXPANDER", [])
    came = list(grow(task(SMALL, copied, 1), last.paths()))
    monkeypatch.setattr("harness.campaign.search.levels.place", full)
    monkeypatch.setattr(expander, "place", full)
    with pytest.raises(RuntimeError, match=r"^the search cannot go on: .* cannot be written to, No space left on"):
        list(settle(task(SMALL, copied, 1), 0, iter(came), last.paths(), scratch))
    with pytest.raises(Refusal, match=r"^cannot write the search in .*: No space left on device; give another"):
        levels.commit(scratch, last)


def test_workers_with_other_code_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker whose protocol is another version says so."""
    monkeypatch.setattr(expander, "_EXPANDER", [])
    monkeypatch.setattr(expander, "version_of", lambda package: "another")
    request = SearchRequest(SMALL.name, SMALL.sizes, SMALL.settings, True, (), False, "kafka_proto", "this")
    with pytest.raises(RuntimeError, match="a worker has another version of kafka_proto than the driver"):
        expander_for(LevelTask(request, str(tmp_path), 1, frozenset(), 0))


def test_keys_with_one_half_in_common_are_different() -> None:
    """Whether a key is among others is decided by all of its 128 bits."""
    words = lambda *numbers: np.array(numbers, np.uint64)  # noqa: E731
    others = Keys.joined([Keys(words(7, 7, 7, 9), words(5, 1, 5, 2)), Keys(words(7), words(3))])
    assert others.numbers() == {7 << 64 | 1, 7 << 64 | 3, 7 << 64 | 5, 9 << 64 | 2}
    asked = Keys(words(7, 7, 7, 9, 9, 1, 2**64 - 1), words(5, 4, 3, 2, 1, 5, 1))
    assert asked.among(others).tolist() == [True, False, True, True, False, False, False]
    assert Expander(task(SMALL, Path(), 1).request).coder.keys([]).among(others).tolist() == []


@pytest.mark.large
def test_a_driver_killed_three_times_comes_to_the_right_counts(tmp_path: Path) -> None:
    """322,596 states; SIGKILL twice, Ctrl-C once with the counts of a part, and then all of them."""
    folder = tmp_path / "search"
    sizes = [f"--size={name}={size}" for name, size in PUBLISHED.items()]
    arguments = ("check", "transactions/diary-01", *sizes, "--engine", "spark", "--master", "local[2]",
                 "--checkpoint", folder, "--out", tmp_path / "out", "--json")

    def committed() -> int:
        return len(list(folder.glob("level-*")))

    for number in (signal.SIGKILL, signal.SIGINT, signal.SIGKILL):
        before = committed()
        with started(*arguments) as process:
            wait_until(lambda before=before: committed() > before + 3, 5 * PATIENCE_S)
            (os.killpg if number == signal.SIGINT else os.kill)(process.pid, number)
            out, err = process.communicate(timeout=2 * PATIENCE_S)
            assert process.returncode == (130 if number == signal.SIGINT else -number)
            if number == signal.SIGINT:
                assert '"verdict": "interrupted"' in out and f"the checkpoint is in {folder}, the same command" in err
    assert committed() < 24
    spark()
    reported = call(*arguments).json
    assert [reported[name] for name in ("distinct", "generated", "depth", "initial", "verdict")] == [
        322_596, 641_700, 24, 36, "ok"]


@pytest.mark.large
def test_a_killed_worker_does_not_change_the_counts(tmp_path: Path) -> None:
    """Its tasks are done again by another one."""
    sizes = [f"--size={name}={size}" for name, size in (PUBLISHED | {"brokers": 2}).items()]
    with started("check", "transactions/diary-01", *sizes, "--engine", "spark", "--master", "local[2]", "--parts", 4,
                 "--checkpoint", tmp_path / "search", "--out", tmp_path, "--json") as process:
        for depth in (6, 11):
            wait_until(lambda depth=depth: len(list(tmp_path.glob("search/level-*"))) > depth, 5 * PATIENCE_S)
            wait_until(lambda: bool(workers_of(process.pid)))
            os.kill(workers_of(process.pid)[0], signal.SIGKILL)
        out, err = process.communicate(timeout=5 * PATIENCE_S)
    assert process.returncode == 0, err
    reported = json.loads(out)
    assert (reported["distinct"], reported["depth"]) == (23_312, 18)
