"""Every small wrong edit of the protocols' decisions, made from the syntax tree; a survey of which are caught.

    python tests/support/mutants/generated_mutants.py [FILE...] [--seeds N] [--out FILE]

Kinds: a guard never holds or always holds; a part of a condition is left out; a comparison is flipped or off by one; an
addition of one is left out; `min` and `max` are swapped; a persisted field is forgotten.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from harness.verify.judge import FileJudge

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a program, too

from support.mutants import source_mutants
from support.mutants.campaigns import CAMPAIGNS
from support.mutants.source_mutants import ROOT, Finding, Mutant

DECISIONS: dict[str, tuple[str, ...]] = {
    "kafka_proto/transactions": ("versions",),
    "kafka_proto/transactions/decisions": ("coordinator", "completion", "election", "client"),
    "kafka_proto/replication": (
        "log", "truncation", "leadership", "isr", "high_watermark", "leading", "following", "quorum", "partition",
        "replica_state",
    ),
    "compaction": ("compactor", "reader", "broker", "bookkeeper"),
}
"""The modules in which protocols decide."""
FLIPPED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in",
    ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}
FIRST = 3
"""So many campaigns of a protocol catch most."""
SWAPPED = {"min": "max", "max": "min", "persisted": "volatile"}


@attrs.frozen
class Edit:
    """A piece of source to be replaced: a node, by a text."""

    node: ast.AST
    new: str
    kind: str


def edits(tree: ast.Module, text: str) -> Iterator[tuple[str, Edit]]:
    """Yield every wrong edit of a module, with the function or class that it is in."""

    def source(node: ast.AST) -> str:
        return ast.get_source_segment(text, node) or ""

    def of(node: ast.AST) -> Iterator[Edit]:
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.comprehension(ifs=[test]):
                yield Edit(test, "False", "guard never holds")
                yield Edit(test, "True", "guard always holds")
            case ast.match_case(guard=ast.expr() as guard):
                yield Edit(guard, "False", "guard never holds")
                yield Edit(guard, "True", "guard always holds")
            case ast.BoolOp(op=op, values=values):
                word = " and " if isinstance(op, ast.And) else " or "
                for n, left_out in enumerate(values):
                    rest = word.join(f"({source(value)})" for value in (*values[:n], *values[n + 1 :]))
                    yield Edit(node, f"({rest})", f"without {source(left_out)}")
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                yield Edit(node, f"({source(left)} {FLIPPED[type(op)]} {source(right)})", f"{FLIPPED[type(op)]}")
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=ast.Constant(value=1)):
                yield Edit(node, f"({source(left)})", "off by one")
            case ast.Call(func=ast.Name(id=name) as func) if name in SWAPPED:
                yield Edit(func, SWAPPED[name], SWAPPED[name])

    def walk(node: ast.AST, where: str) -> Iterator[tuple[str, Edit]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Assert):
                continue
            inner = child.name if isinstance(child, ast.FunctionDef | ast.ClassDef) else where
            for edit in of(child):
                yield inner, edit
            yield from walk(child, inner)

    return walk(tree, "module")


def mutants(file: str) -> Iterator[Mutant]:
    """Yield every mutant of a file."""
    text = (ROOT / file).read_text(encoding="utf-8")
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    raw = text.encode()
    for where, edit in edits(ast.parse(text), text):
        node = edit.node
        assert isinstance(node, ast.expr) and node.end_lineno is not None and node.end_col_offset is not None
        start, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        new = (raw[:start] + edit.new.encode() + raw[end:]).decode()
        was = " ".join(raw[start:end].decode().split())
        yield Mutant(f"{file}:{node.lineno}:{node.col_offset + 1} {where}: {was} | {edit.kind}", file, text, new)


def files() -> Iterator[str]:
    """Yield the files of all decision modules."""
    for folder, modules in DECISIONS.items():
        yield from (f"{folder}/{module}.py" for module in modules)


def digests(folder: Path) -> list[str]:
    """Return the digest of each history of a campaign."""
    ends = (path.read_text(encoding="utf-8").splitlines()[-1] for path in sorted(folder.glob("*.history.jsonl")))
    return [json.loads(end)["digest"] for end in ends]


class Survey:
    """Judges many mutants: runs that are those of the right source, to the byte, are not judged again."""

    def __init__(self, seeds: int, folder: Path) -> None:
        self.seeds = seeds
        self.folder = folder
        self.judges: dict[str, FileJudge] = {}
        self.right: dict[str, list[str]] = {}
        self.witnesses: dict[str, set[str]] = {}

    def learn(self, campaigns: list[str]) -> None:
        """Record the campaigns with the right source."""
        missing = [name for name in campaigns if name not in self.right]
        if missing:
            out = self.folder / f"right-{len(self.right)}"
            seen = source_mutants.record(ROOT, out, missing, self.seeds)
            for name in missing:
                assert not seen[name]["violated"] and seen[name]["raised"] is None, (name, seen[name])
                self.right[name] = digests(out / name)
                self.witnesses[name] = set(seen[name]["witnessed"])

    def judge(self, mutant: Mutant) -> tuple[Finding | None, int]:
        """Return the first finding about a mutant, and how many of its runs are other ones than the right source's.

        The campaigns of its protocol come in two stages: the rest are run where the first ones were silent.
        """
        protocol = mutant.file.removeprefix("kafka_proto/").partition("/")[0]
        names = [name for name, row in CAMPAIGNS.items() if row.model.startswith(f"{protocol}/")]
        stages, differ, reached = (names[:FIRST], names[FIRST:]), 0, set[str]()
        with tempfile.TemporaryDirectory(dir=self.folder) as temporary:
            out = Path(temporary) / "runs"
            root = source_mutants.mutated(mutant, Path(temporary) / "source")
            for stage in stages:
                self.learn(stage)
                try:
                    seen = source_mutants.record(root, out, stage, self.seeds)
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    return Finding("exception", str(error).splitlines()[-1], stage[0], 0), differ
                for name in sorted(stage, key=lambda name: (not seen[name]["violated"], not seen[name]["raised"])):
                    found, others = self.compare(out / name, name, seen[name])
                    differ += others
                    if found is not None:
                        return found, differ
                    reached |= set(seen[name]["witnessed"])
        lost = {witness for name in names for witness in self.witnesses[name]} - reached
        return (Finding(min(lost), "reached by no run", "all", self.seeds) if lost else None), differ

    def compare(self, folder: Path, name: str, seen: dict[str, Any]) -> tuple[Finding | None, int]:
        """Return the first finding about a campaign's runs, and how many were looked at that are other ones."""
        judge, others = self.judges.setdefault(name, FileJudge()), 0
        for seed, (mine, right) in enumerate(zip(digests(folder), self.right[name], strict=False)):
            if mine == right:
                continue
            others += 1
            wrong = source_mutants.wrong_with(judge.file(folder / f"{seed:04}.history.jsonl"))
            if wrong:
                return Finding(*wrong[0], name, seed), others
        for broken, reason in seen["violated"].items():
            return Finding(broken, reason, name, seen["runs"] - 1), others
        if seen["raised"]:
            return Finding("exception", seen["raised"], name, seen["runs"]), others
        return None, others


def main() -> None:
    """Survey the mutants of the files given, or of all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", nargs="*")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("out/mutants.jsonl"))
    given = parser.parse_args()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    done = {json.loads(line)["name"] for line in given.out.read_text().splitlines()} if given.out.exists() else set()
    with tempfile.TemporaryDirectory() as folder, given.out.open("a", encoding="utf-8") as out:
        survey = Survey(given.seeds, Path(folder))
        for file in given.file or files():
            for mutant in mutants(file):
                if mutant.name in done:
                    continue
                found, differ = survey.judge(mutant)
                what = attrs.asdict(found) if found else dict.fromkeys(("by", "what", "campaign", "seed"))
                row = {"name": mutant.name, "by": what.pop("by"), "differ": differ, **what}
                out.write(json.dumps(row) + "\n")
                out.flush()
                print(f"{row['by'] or 'SURVIVES':22} {differ:4} {mutant.name}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
