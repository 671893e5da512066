"""The pages docs/models/specs/*.md: each action of a TLA+ module, where it is published, and our Python.

Run as a program it makes them anew: `python tests/support/docs/spec_pages.py [--runs]`. The pages have no text of the
modules, which are not ours. Who has a module reads it beside ours with `--module PATH`, once per file: the page with
the definitions in it is printed, or written into the folder that `--out` names, never into this tree.

What an action reads and writes is what it did read and write in every state of its spec at a small size. Which steps of
the actors are which action is what recorded runs have shown, each held against the spec; `--runs` makes the runs again
and notes it in tests/data/spec_steps.json.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from textwrap import dedent, wrap
from typing import Any

import attrs

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a program, too

from compaction import spec as compaction
from harness.model import Faults, Refusal, find_model
from harness.model.spec import Action, Next, flat
from harness.simulate.runs.plan import Plan
from harness.verify.simulated_runs import refine_runs
from kafka_proto.replication.specs import kip_320
from kafka_proto.replication.specs.by_version import SPECS
from kafka_proto.transactions.specs import diary_01, diary_02
from support.docs.spec_footprints import footprints
from support.paths import DATA, ROOT

FOLDER = ROOT / "docs" / "models" / "specs"
STEPS = DATA / "spec_steps.json"
MODULE = re.compile(r"-{4,} *MODULE +(\w+) *-{4,}")
WIDTH = 120
Pairs = Iterator[tuple[str, str]]
"""What an action of the actors was, in runs: it and the actions of the spec; an empty name is a stutter."""


@attrs.frozen
class Module:
    """A published file: what its module is called, where it is, and how many lines it has."""

    name: str
    repository: str
    commit: str
    folder: str
    lines: int

    @property
    def file(self) -> str:
        return f"{self.name}.tla"

    @property
    def address(self) -> str:
        """Where the file is published, at the commit that the line numbers are of."""
        return f"{self.repository}/blob/{self.commit}/{self.folder}{self.file}"


@attrs.frozen
class Row:
    """An action: its module, the first and the last line of its definition there, when it may happen, what it does."""

    module: Module
    first: int
    last: int
    guard: str
    effect: str

    @property
    def link(self) -> str:
        lines = f"lines {self.first}-{self.last}"
        return f"[{self.module.file}, {lines}]({self.module.address}#L{self.first}-L{self.last})"


def _pages() -> Mapping[str, Mapping[str, Row]]:
    """Return the rows of each page by action, from tests/data/spec_rows.toml."""
    table = tomllib.loads((DATA / "spec_rows.toml").read_text(encoding="utf-8"))
    modules = {name: Module(**{"name": name, **said}) for name, said in table["modules"].items()}

    def row(said: Mapping[str, Any]) -> Row:
        module, first, last = said["at"]
        return Row(modules[module], first, last, said["guard"], said["effect"])

    return {page: {action: row(said) for action, said in rows.items()} for page, rows in table["pages"].items()}


ROWS = _pages()


@attrs.frozen
class Page:
    """A page: a spec's relation, the table of its actions, and how its runs are made."""

    name: str
    title: str
    model: str
    next_state: Next
    rows: Mapping[str, Row]
    sizes: Mapping[str, int]
    """The size at which what an action reads and writes is looked at, in every state."""
    note: str
    runs: Callable[[int], Pairs]
    """Runs of the actors; the number says how many of each kind."""
    settings: Mapping[str, str] = attrs.field(factory=dict)
    names: Mapping[str, str] = attrs.field(factory=dict)
    """What Kafka and the actors call otherwise: their names, and the spec's."""

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.md"


def of_transactions(runs: int) -> Pairs:
    sizes, faults = {"producers": 2, "elections": 3}, Faults(2, 2, 2, crash=1, targets=("b1",))
    for release in ("3.5", "4.0"):
        model = find_model(f"kafka/{release}").make(sizes, {"log": "replicated"}, faults=faults)
        yield from refine_runs(model, Plan((), steps=200), range(runs)).pairs


def of_diary_01(runs: int) -> Pairs:
    """No actors are held against it: its coordinators are those of diary 02, which can do more."""
    yield from ()


def of_replication(version: str, runs: int) -> Pairs:
    everybody = ("r1", "r2", "r3")
    sizes = {"replicas": 3, "producers": 2, "consumers": 0, "records": 3, "elections": 2, "fencings": 1}
    faults = Faults(crash=2, delay=2, targets=everybody)
    model = find_model(f"replication/{version}/actors").make(sizes, {}, "bag", faults)
    yield from refine_runs(model, Plan((), 120, mode="timed"), range(runs)).pairs


def of_compaction(runs: int) -> Pairs:
    faults = Faults(1, 1, 1, 1, 1, 1, 1, 2, 1, targets=("broker", "producer", "r1"))
    actors = find_model("compaction/pulsar/actors")
    for repair in ("S11,S12", ""):
        model = actors.make({"messages": 2, "keys": 1}, {"repair": repair}, "fifo", faults)
        yield from refine_runs(model, Plan((), steps=100), range(runs)).pairs


KAFKAS = {
    "InitProducerIdRequest": "InitPidRequest", "InitProducerIdResponse": "InitPidResponse",
    "TransactionMetadata": "TxnMetadata", "LeaderAndEpoch": "LogMetadata", "transactional_id": "tid",
    "producer_id": "pid", "last_producer_id": "last_pid", "producer_epoch": "pepoch",
    "last_producer_epoch": "last_pepoch", "leader_epoch": "cepoch", "coordinator": "tc", "error": "code",
    "ClientRecord.producer_epoch": "epoch",
}


OLDEST = "truncate-to-high-watermark"
PAGES = (
    Page(
        "diary-01", "Diary 01: InitPid", "transactions/diary-01", diary_01.NEXT, ROWS["diary-01"],
        {"clients": 2, "brokers": 2, "txn-log-partitions": 1, "transactional-ids": 2},
        "`kafka-proto demo diary-01-retry` shows figure 3 of the text step by step.", of_diary_01,
    ),
    Page(
        "diary-02", "Diary 02: InitPid and AddPartitionsToTxn with elections", "transactions/diary-02", diary_02.NEXT,
        ROWS["diary-02"],
        {"clients": 2, "brokers": 2, "txn-log-partitions": 1, "topic-partitions": 1, "transactional-ids": 1,
         "elections": 1},
        "The gist calls ElectLeader BecomeLeader, copies the leader's log (S4), lets every replica follow (S2 is diary "
        "02's own) and has CompletePartialTxn only in a comment.",
        of_transactions, names=KAFKAS,
    ),
    Page(
        "kafka-replication", "KafkaReplication: the base module of replication", f"replication/{OLDEST}",
        SPECS[OLDEST].next_state, ROWS["kafka-replication"],
        {"replicas": 2, "log-size": 2, "max-records": 2, "max-leader-epoch": 1},
        "The versions differ in the action that becomes a follower; Kip320 and Kip320FirstTry replace more.",
        partial(of_replication, OLDEST),
    ),
    Page(
        "kip-320", "KIP-320: exchanges fenced by leader epoch", "replication/kip-320",
        tuple(one for one in flat(kip_320.NEXT) if one.name in ROWS["kip-320"]), ROWS["kip-320"],
        {"replicas": 2, "log-size": 2, "max-records": 2, "max-leader-epoch": 1},
        "The others are those of [KafkaReplication](kafka-replication.md).", partial(of_replication, "kip-320"),
    ),
    Page(
        "compaction", "Topic compaction of Pulsar", "compaction/pulsar", compaction.NEXT, ROWS["compaction"],
        {"messages": 2, "compactions": 2, "keys": 1, "values": 1, "crashes": 1},
        "No step of the actors is Consumer or Terminating.",
        of_compaction, {"producer": "true", "consumer": "true"},
    ),
)


Texts = Mapping[str, str]
"""Definitions of modules by the names of the actions, for a reader who has the modules."""


def definitions(page: Page, files: Iterable[Path]) -> Texts:
    """Return the definitions of a page's actions in those of its modules that the files are.

    Raises Refusal for a file that has an action elsewhere than the published one.
    """
    found = {}
    for path in files:
        name, lines = module_in(path)
        for action, row in page.rows.items():
            if row.module.name != name:
                continue
            if defined(lines, row.first) != (action, row.last):
                raise Refusal(
                    f"{path} does not define {action} in lines {row.first} to {row.last}; the page is about "
                    f"{row.module.address}"
                )
            found[action] = "\n".join(lines[row.first - 1 : row.last])
    return found


def module_in(path: Path) -> tuple[str, list[str]]:
    """Return the name of the module in a file, and the file's lines. Raises Refusal where there is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Refusal(f"{path} cannot be read as text ({error}); name the file of a TLA+ module") from error
    names = [match[1] for line in lines if (match := MODULE.match(line))]
    if not names:
        raise Refusal(f"{path} has no line that begins a TLA+ module; name the file of one")
    return names[0], lines


def published(name: str, lines: Sequence[str], known: Iterable[Module]) -> set[Module]:
    """Return the published modules that a file may be: those of its name, or the one that is as long, too."""
    named = {module for module in known if module.name == name}
    return {module for module in named if module.lines == len(lines)} or named


def defined(lines: Sequence[str], first: int) -> tuple[str, int]:
    """Return which name a definition that begins in a line defines, and its last line; lines count from 1.

    It goes on as long as lines are indented or empty.
    """
    begin = re.match(r"(\w+)(?:\([^)]*\))? ==", lines[first - 1]) if first <= len(lines) else None
    if begin is None:
        return "", 0
    last = first
    for number, line in enumerate(lines[first:], first + 1):
        if line[:1].strip():
            break
        last = number if line.strip() else last
    return begin[1], last


def noted() -> dict[str, dict[str, list[str]]]:
    """Return, for each page, the actors' steps that runs have shown each action to be."""
    steps: dict[str, dict[str, list[str]]] = json.loads(STEPS.read_text(encoding="utf-8"))
    return steps


def seen(page: Page, runs: int) -> dict[str, set[str]]:
    """Return the actors' actions that are a step of each action of the spec in so many runs of each kind."""
    found: dict[str, set[str]] = {}
    own = {one.name for one in flat(page.next_state)}
    for action, way in page.runs(runs):
        for name in own.intersection(way.split(" and ")):
            found.setdefault(name, set()).add(action)
    return found


def listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def wrapped(paragraph: str, indent: str = "") -> list[str]:
    return wrap(paragraph, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def about(page: Page, one: Action, texts: Texts, steps: Mapping[str, list[str]]) -> list[str]:
    """Return the lines about one action."""
    file = Path(inspect.getfile(one.changes)).relative_to(ROOT).as_posix()
    row, did = page.rows[one.name], footprints(page.model, page.sizes, page.settings)[one.name]
    table = {
        "guard": row.guard, "effect": row.effect, "reads": listed(did.reads), "writes": listed(did.writes),
        "takes": listed(did.takes), "sends": listed(did.sends), "actors": listed(steps.get(one.name, ())),
    }
    shown = ["```text", texts[one.name], "```", ""] if one.name in texts else []
    code = ["```python", code_of(one), "```"]
    return [
        f"## {one.name}", "", f"{row.link}, `{file}`", "", *shown,
        *(line for what, said in table.items() if said for line in wrapped(f"- {what}: {said}", "  ")), "", *code, "",
    ]


def code_of(one: Action) -> str:
    """Return the source of an action without its docstring: guard and effect say the same."""
    source = dedent(inspect.getsource(one.changes)).rstrip()
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef) and ast.get_docstring(function)
    first = function.body[0]
    lines = source.splitlines()
    return "\n".join(lines[: first.lineno - 1] + lines[first.end_lineno :])


def text(page: Page, steps: Mapping[str, list[str]], texts: Texts | None = None) -> str:
    """Return a page as it should be, with those texts of its modules that are given."""
    size = " ".join(f"`{name}={value}`" for name, value in {**page.sizes, **page.settings}.items())
    paragraphs = [
        f"The actions of `{page.model}`, in our words and our Python, and their places in the published module. "
        f"{page.note}",
        f"Reads, writes, takes and sends are from every state at {size}, actors from recorded runs.",
        "`python tests/support/docs/spec_pages.py --module PATH` adds [the module's text](../../THIRD_PARTY.md).",
    ]
    if page.names:
        names = ", ".join(f"`{spec}` ({actors})" for actors, spec in page.names.items())
        paragraphs.append(f"Names of the spec, and Kafka's: {names}.")
    lines = [f"# {page.title}", ""]
    for paragraph in paragraphs:
        lines += [*wrapped(paragraph), ""]
    for one in flat(page.next_state):
        lines += about(page, one, texts or {}, steps)
    return "\n".join(lines).rstrip() + "\n"


def beside(files: Sequence[Path], out: Path | None, pages: Sequence[Page] = PAGES) -> None:
    """Print the pages that the files are modules of, with their text, or write them into a folder outside the tree."""
    if out is not None and out.resolve().is_relative_to(ROOT):
        raise Refusal(f"{out} is inside this tree, which holds no text of others; name a folder outside of it")
    known = {row.module for page in pages for row in page.rows.values()}
    of = {path: published(*module_in(path), known) for path in files}
    wanted = {page.name: [path for path in files if of[path] & {row.module for row in page.rows.values()}]
              for page in pages}
    for path in files:
        if not any(path in chosen for chosen in wanted.values()):
            files_known = ", ".join(sorted({module.file for module in known}))
            raise Refusal(f"{path} is the module {module_in(path)[0]}, which no page is about; the pages are about "
                          f"{files_known}")
    for page in pages:
        if chosen := wanted[page.name]:
            made = text(page, noted()[page.name], definitions(page, chosen))
            if out is None:
                print(made, end="")
            else:
                out.mkdir(parents=True, exist_ok=True)
                (out / page.path.name).write_text(made, encoding="utf-8")


def main(arguments: Sequence[str]) -> None:
    """Write the pages; with `--runs` what runs have shown, too; with `--module` show them beside modules instead."""
    parser = argparse.ArgumentParser(description="make docs/models/specs/*.md, or show them beside the modules' text")
    parser.add_argument("--runs", action="store_true", help="run the actors anew, and note what their steps were")
    parser.add_argument("--module", type=Path, action="append", default=[], help="the file of a TLA+ module")
    parser.add_argument("--out", type=Path, help="where pages with the text of modules go, else they are printed")
    given = parser.parse_args(arguments)
    if given.module:
        try:
            beside(given.module, given.out)
        except Refusal as refusal:
            parser.exit(2, f"{refusal}\n")
        return
    if given.runs:
        found = {page.name: {name: sorted(by) for name, by in sorted(seen(page, 60).items())} for page in PAGES}
        STEPS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    FOLDER.mkdir(exist_ok=True)
    for page in PAGES:
        page.path.write_text(text(page, noted()[page.name]), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
