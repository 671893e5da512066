"""Every small wrong edit of a module, made from its syntax tree.

Kinds: a guard never holds or always holds; a part of a condition is left out; a comparison is flipped or off by one; an
addition of one is left out; `min` and `max` are swapped; a persisted field is forgotten.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import attrs

from support.mutants.source_mutants import Mutant
from support.paths import ROOT

FLIPPED: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==", ast.In: "not in",
    ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}
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
