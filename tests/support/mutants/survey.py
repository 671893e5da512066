"""How many wrong edits are caught, by room: by the hunt, by recordings of real brokers, by unit tests alone.

    python tests/support/mutants/survey.py [ROOM...] [--pinned N] [--generated N] [--seed N] [--out FILE]

Wrong edits are the pinned ones of `tests/data` and every small one that can be made (`generated_mutants`); of each, N a
room are judged. Each has a process of its own, with a copy of the packages. The first that is red ends it: a row of the
hunt finds something else than with the right source, then a recorded situation is answered otherwise, then a unit test
fails. A line of JSON for each goes to FILE, and one for each row that was learned from the right source; what is there
is not judged or learned again. Rooms take turns. Prints the table.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path
from time import monotonic
from typing import Any

import attrs

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a program, too

from harness.model import scenarios
from support.mutants import source_mutants
from support.mutants.generated_mutants import mutants
from support.mutants.source_mutants import PACKAGES, ROOT, Mutant
from support.mutants.survey_process import BUDGET
from support.mutants.transaction_catchers import UNIT_TESTS
from support.paths import SUPPORT

FATES = ("hunt", "conformance", "test", "equivalent", "left")
AT_ONCE = 10
"""Rows that are learned in one process."""
HEADINGS = ("room", "made", "judged", "hunt", "conformance", "tests only", "equivalent", "left")
BROKERS_TESTS = (
    *UNIT_TESTS, *(f"protocols/broker/test_{name}.py" for name in ("assignors", "what_brokers_answer", "roles")),
    *(f"protocols/cluster/test_{name}.py" for name in (
        "topics", "plain_records", "running", "idempotent", "transaction_properties", "kip_939")),
    "protocols/broker/test_recorded_clusters.py",
)
GATEWAYS_TESTS = tuple(f"gateway/test_{name}.py" for name in (
    "records", "fetch_sessions", "groups", "settings", "topic_ids", "admin", "gateway_faults", "consumer_groups",
    "deleted_topics", "leaderless", "internal_topics", "connection", "messages", "codec", "host",
))
FAILOVERS = ("leaderless", "gateway_replicas", "moved_replicas")
REPLICATIONS_TESTS = (
    *(f"protocols/replication/test_{name}.py" for name in ("quorum", "following", "replication_spec")),
    *(f"protocols/broker/test_{name}.py" for name in ("failover", "recorded_clusters")),
    *(f"gateway/test_{name}.py" for name in FAILOVERS),
    *(f"protocols/replication/test_replication_{name}.py" for name in ("versions", "actors")),
)
COMPACTIONS_TESTS = tuple(f"protocols/compaction/test_{name}.py" for name in (
    "compaction_spec", "compaction_refinement", "compaction_actors", "topic_broker"))


@attrs.frozen
class Room:
    """Modules in which a part of a protocol decides, and what may tell a wrong edit of them."""

    files: tuple[str, ...]
    rows: tuple[str, ...]
    """The hunt's rows are these scenarios, and those of models whose names begin so."""
    tests: tuple[str, ...]
    situations: str = ""
    """Recordings are played in `process`, over the `wire`, or not."""

    def scenarios(self) -> list[str]:
        """Return the names of the hunt's rows."""
        return [row.name for row in scenarios() if row.name in self.rows or row.model.startswith(self.rows)]


def _broker(*files: str, gateway: tuple[str, ...] = ()) -> Room:
    """Return a room of the brokers; some of its decisions are asked by the gateway's tests of these names only."""
    return Room(files, ("kafka/",), (*BROKERS_TESTS, *(f"gateway/test_{name}.py" for name in gateway)), "process")


ROOMS: Mapping[str, Room] = {
    "coordinator": _broker("kafka_proto/broker/coordinator/*.py"),
    "leader": _broker("kafka_proto/broker/leader/*.py", "kafka_proto/broker/logs/*.py", "kafka_proto/log/*.py",
                      gateway=("compaction", "retention", "deleted_topics", "leaderless")),
    "group": _broker("kafka_proto/broker/group/*.py", gateway=("groups", "consumer_groups", "migration")),
    "stack": attrs.evolve(_broker("kafka_proto/clients/**/*.py"), tests=(
        *BROKERS_TESTS, "protocols/cluster/test_producer_calls.py")),
    "broker": _broker(*(f"kafka_proto/broker/{name}.py" for name in (
        "broker", "controller", "failover", "look_ups", "other_brokers", "placement", "roles")),
        gateway=(*FAILOVERS, "deleted_topics", "internal_topics", "slow_disks", "compaction", "retention")),
    "gateway": Room(tuple(f"kafka_proto/gateway/{name}.py" for name in (
        "apis/*", "answers", "configs", "connection", "front", "injected_errors", "internal_records", "records",
        "topic_ids", "transactions")), (), GATEWAYS_TESTS, "wire"),
    "replication": Room(
        tuple(f"kafka_proto/replication/{name}.py" for name in (
            "controller", "following", "high_watermark", "isr", "leadership", "leading", "partition", "quorum",
            "replica", "replica_state", "truncation")),
        ("kafka/", "replication/"), REPLICATIONS_TESTS, "process"),
    "transactions": Room(
        ("kafka_proto/transactions/decisions/*.py", "kafka_proto/transactions/versions.py"), ("transactions/",),
        tuple(f"protocols/transactions/test_{name}.py" for name in ("diary_decisions", "versions", "repairs"))),
    "compaction": Room(
        tuple(f"compaction/{name}.py" for name in (
            "bookkeeper", "broker", "compactor", "trimming", "trimming_broker")),
        ("compaction/",), COMPACTIONS_TESTS),
}


@attrs.frozen
class Edited:
    """A wrong edit that may be judged."""

    mutant: Mutant
    room: str
    is_pinned: bool
    text: str
    """The whole file with the edit."""


def files_of(room: str) -> list[str]:
    """Return the files of a room's modules, below the root of the source."""
    return sorted(str(path.relative_to(ROOT)) for glob in ROOMS[room].files for path in ROOT.glob(glob))


def edits_of(room: str) -> Iterator[Edited]:
    """Yield the wrong edits of a room, each once: the pinned ones, and what else can be made."""
    pins = [row for name in ("transaction", "source") for row in source_mutants.table(name).values()]
    for file in files_of(room):
        right = (ROOT / file).read_text(encoding="utf-8")
        statements, seen = ast.parse(right).body, set[tuple[int, str]]()
        seen |= {(n, ast.dump(statement)) for n, statement in enumerate(statements)}
        for row in (row for row in pins if row.file == file):
            text = source_mutants.edited(row)
            seen.add(meaning(statements, right, text))
            yield Edited(row, room, True, text)
        for mutant in mutants(file):
            if (meant := meaning(statements, right, mutant.new)) not in seen:
                seen.add(meant)
                yield Edited(mutant, room, False, mutant.new)


def meaning(statements: list[ast.stmt], right: str, text: str) -> tuple[int, str]:
    """Return which statement of a file an edit changes, and to what; the whole file where it changes several."""
    old, new = right.splitlines(), text.splitlines()
    first = next((n for n, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), 0)
    for number, statement in enumerate(statements):
        begins = min((each.lineno for each in getattr(statement, "decorator_list", [])), default=statement.lineno) - 1
        ends = statement.end_lineno or begins + 1
        if begins <= first < ends and old[ends:] == new[ends + len(new) - len(old) :]:
            with suppress(SyntaxError, ValueError):
                (changed,) = ast.parse("\n".join(new[begins : ends + len(new) - len(old)])).body
                return number, ast.dump(changed)
    return -1, ast.dump(ast.parse(text))


def sample(edits: Iterable[Edited], most: int | None, seed: int) -> list[Edited]:
    """Return so many of them, in an order that only the seed and their names decide: more of them go on with it."""
    def place(edited: Edited) -> str:
        return hashlib.sha256(f"{seed} {edited.mutant.name}".encode()).hexdigest()

    return sorted(edits, key=place)[:most]


def digest() -> str:
    """Return the digest of the packages: what was found of others is not comparable."""
    found = hashlib.sha256(json.dumps([BUDGET, (SUPPORT / "mutants" / "survey_process.py").read_text()]).encode())
    for path in sorted(path for package in (*PACKAGES, "harness") for path in (ROOT / package).rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


class Survey:
    """Judges wrong edits, one after the other, in a copy of the packages that is edited and put right again."""

    def __init__(
        self, folder: Path, rooms: Mapping[str, Room] = ROOMS, budget: Mapping[str, int] = BUDGET,
        known: Mapping[str, Mapping[str, Any]] | None = None,
        note: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        self.folder, self.rooms, self.budget, self.note = folder, rooms, dict(budget), note
        self.known: dict[str, Mapping[str, Any]] = dict(known or {})
        for package in PACKAGES:
            shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__", "recorded"))
        recorded = Path("kafka_proto", "conformance", "recorded")
        (folder / recorded).symlink_to(ROOT / recorded)

    def learn(self, names: Iterable[str]) -> None:
        """Learn from the right source what the runs of these rows show."""
        missing = [name for name in names if name not in self.known]
        for n in range(0, len(missing), AT_ONCE):
            done = self._run({"learn": missing[n : n + AT_ONCE], "budget": self.budget}, keep=True)
            if done.returncode:
                raise RuntimeError(done.stderr[-2000:])
            for found in map(json.loads, done.stdout.splitlines()):
                if self.note is not None:
                    self.note(found)
                self.known[found["row"]] = {name: found[name] for name in ("runs", "witnesses")}

    def judge(self, edited: Edited) -> dict[str, Any]:
        """Return the line of a mutant."""
        room = self.rooms[edited.room]
        names = room.scenarios() if room.rows else []
        self.learn(names)
        pin = edited.mutant if edited.is_pinned else Mutant("", "", "", "")
        first = pin.where if pin.by == "test" else ""
        asked = {"known": {name: self.known[name] for name in names}, "budget": self.budget, "tests": room.tests,
                 "situations": room.situations, "first": first}
        with self._edited(edited):
            done = self._run(asked)
        said: dict[str, Any] = {}
        for line in (line for line in done.stdout.splitlines() if line.startswith('{"')):
            said |= json.loads(line)
        by, found, cpu_s = said["stage"], said.get("found"), said.get("cpu_s")
        if done.returncode:
            found = {"where": "", "what": f"the process ended with {done.returncode}: {done.stderr[-200:]}"}
        if found is None:
            by, found = "equivalent" if pin.by == "redundant" else "left", {"where": pin.where, "what": ""}
        line = {"name": edited.mutant.name, "room": edited.room, "pinned": edited.is_pinned, "by": by}
        return {**line, **found, "cpu_s": cpu_s}

    @contextmanager
    def _edited(self, edited: Edited) -> Iterator[None]:
        path = self.folder / edited.mutant.file
        path.write_text(edited.text, encoding="utf-8")
        try:
            yield
        finally:
            shutil.copy2(ROOT / edited.mutant.file, path)

    def _run(self, asked: Mapping[str, Any], keep: bool = False) -> subprocess.CompletedProcess[str]:
        """Run the process; `keep` compiled modules of the right source, so that others need not compile them."""
        program = SUPPORT / "mutants" / "survey_process.py"
        environment = source_mutants.environment(self.folder)
        if keep:
            del environment["PYTHONDONTWRITEBYTECODE"]
        return subprocess.run([sys.executable, str(program), str(self.folder)], cwd=self.folder, env=environment,
                              input=json.dumps(asked), capture_output=True, text=True, check=False)


def table(lines: Iterable[Mapping[str, Any]], made: Mapping[tuple[str, bool], int]) -> str:
    """Return the table in Markdown: the rooms of which something was judged, then all, then the pinned ones among all.
    """
    lines = list(lines)
    rooms = [room for room in ROOMS if any(line["room"] == room for line in lines)]

    def row(title: str, within: Iterable[str], kinds: tuple[bool, ...]) -> list[str]:
        mine = [line for line in lines if line["room"] in within and line["pinned"] in kinds]
        count = Counter(line["by"] for line in mine)
        counts = [sum(made[room, kind] for room in within for kind in kinds), len(mine), *(count[by] for by in FATES)]
        return [title, *(f"{n:,}" for n in counts)]

    rows = [*(row(room, [room], (True, False)) for room in rooms), row("all", rooms, (True, False)),
            row("of these pinned", rooms, (True,))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (HEADINGS, ["---"] * len(HEADINGS), *rows))


def earlier(out: Path, of: str) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """Return what a file has: rows that were learned, and edits, by name. Raises SystemExit for other packages."""
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] if out.exists() else []
    if not lines:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps({"packages": of}) + "\n", encoding="utf-8")
    elif lines[0] != {"packages": of}:
        print(f"{out} is a survey of other packages; move it away, or give --out another file", file=sys.stderr)
        raise SystemExit(2)
    known = {line["row"]: {name: line[name] for name in ("runs", "witnesses")} for line in lines[1:] if "row" in line}
    return known, {line["name"]: line for line in lines[1:] if "row" not in line}


def main() -> None:
    """Survey the rooms given, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("room", nargs="*", choices=[*ROOMS, []])
    parser.add_argument("--pinned", type=int)
    parser.add_argument("--generated", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/mutants.jsonl"))
    given = parser.parse_args()
    known, done = earlier(given.out, digest())
    made, samples = Counter[tuple[str, bool]](), list[list[Edited]]()
    for room in given.room or ROOMS:
        every = list(edits_of(room))
        for pinned, most in ((True, given.pinned), (False, given.generated)):
            mine = [edited for edited in every if edited.is_pinned is pinned]
            made[room, pinned] = len(mine)
            samples.append(sample(mine, most, given.seed))
    chosen = [edited for turn in zip_longest(*samples) for edited in turn if edited is not None]
    todo, began = [edited for edited in chosen if edited.mutant.name not in done], monotonic()
    with tempfile.TemporaryDirectory() as folder, given.out.open("a", encoding="utf-8") as out:
        survey = Survey(Path(folder), known=known, note=lambda row: print(json.dumps(row), file=out, flush=True))
        for number, edited in enumerate(todo, 1):
            line = done[edited.mutant.name] = survey.judge(edited)
            print(json.dumps(line), file=out, flush=True)
            each = (monotonic() - began) / number
            print(f"{number}/{len(todo)} {60 / each:.1f} a minute, {each * (len(todo) - number) / 60:.0f} min to go: "
                  f"{line['by']:11} {line['where']} | {line['name']}", file=sys.stderr, flush=True)
    print(table((done[edited.mutant.name] for edited in chosen), made))


if __name__ == "__main__":
    main()
