"""Which conditions a call of a protocol's function came past, how each came out, and at which of them it stopped.

A condition is the test of an `if` or `while`, what a `for` goes through, or what a comprehension does. It stops a call
where it leads to an early return, or where the only way to a step goes through it and it is false.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

import attrs

from harness.model import brief_value
from harness.verify.guard_trace import FailedGuard, TracedCall
from harness.verify.stops import deciding, missed

WIDEST_VALUE = 60
WIDEST_SOURCE = 160

Conditional = ast.If | ast.For | ast.While


@attrs.frozen(eq=False)
class Evaluated:
    """That the condition of a statement was evaluated: as which of the executed lines, and if its body was next."""

    at: int
    branch: Conditional
    taken: bool


def guard_of(
    call: TracedCall, telling: bool = False, wanted: Iterable[str] = (), args: tuple[str, ...] = ()
) -> tuple[FailedGuard, int]:
    """Return the guard at which a call stopped, and how many it passed before; `telling` values of fields, too.

    `wanted` are the names of the action, or of the function, that it did not come to: where some branches lead there,
    it stopped at one of these. In a loop the turn counts whose variables are the action's arguments.
    """
    function = _function(call.code)
    last = call.lines[-1] if call.lines else call.code.co_firstlineno
    passed = _evaluated(function, call.lines)
    stop = next((one for one in reversed(passed) if one.taken and _covers(one.branch.body, last)
                 and _leaves(one.branch.body)), None)
    turn = _refused(call, passed, frozenset(wanted), args) if stop is not None and args else None
    if stop is not None and turn is not None and not _yields(stop.branch.body) and (
        _names(turn.branch.body) & frozenset(wanted) and _like(call, turn, args) == len(args)
    ):
        stop = turn  # the very instance had its turn before the function was left
    if stop is None and function is not None:
        stop, made = _refused(call, passed, frozenset(wanted), args), _comprehended(call, function, wanted, args)
        if made is not None and (stop is None or stop.at < made[0]):
            return made[1], len(passed)
    if stop is None:
        return _guard(call, last, last, ()), len(passed)
    return _guard_of(call, stop, telling), max(0, len(passed) - 1)


def turn_refused(call: TracedCall, wanted: Iterable[str], args: tuple[str, ...]) -> tuple[FailedGuard, int] | None:
    """Return the guard at which the turn of a loop ended that is about some arguments, and how many the call passed.

    For calls that gave steps with other arguments. None if no such turn is known.
    """
    passed = _evaluated(_function(call.code), call.lines)
    one = _refused(call, passed, frozenset(wanted), args)
    if one is None or not args or _like(call, one, args) < len(args):
        return None
    return _guard_of(call, one, True), max(0, len(passed) - 1)


def _refused(
    call: TracedCall, passed: list[Evaluated], wanted: frozenset[str], args: tuple[str, ...]
) -> Evaluated | None:
    """Return where the way to a step was not taken: the last such place, in the turn of its loop that is meant."""
    entered = {id(one.branch) for one in passed if one.taken}
    refused = [one for one in passed if not one.taken and _yields(one.branch.body)
               and (isinstance(one.branch, ast.If) or id(one.branch) not in entered)]
    named = [one for one in refused if _names(one.branch.body) & wanted]
    skipped = [one for one in passed if one.taken and isinstance(one.branch.body[-1], ast.Continue)
               and args and _like(call, one, args) == len(args)]
    if named or skipped:
        refused = sorted([*(named or refused), *skipped], key=lambda one: one.at)
    else:
        refused = [one for one in refused if isinstance(one.branch, ast.If)] or refused
    same = [one for one in refused if one.branch is refused[-1].branch]
    return max(same, key=lambda one: (_like(call, one, args), one.at), default=None)


def _like(call: TracedCall, one: Evaluated, args: tuple[str, ...]) -> int:
    """Return how many of some arguments are values of variables where a condition was evaluated."""
    values = {value for value in call.seen[one.at].values() if isinstance(value, str)}
    return sum(arg in values for arg in args)


def _comprehended(
    call: TracedCall, function: ast.FunctionDef, wanted: Iterable[str], args: tuple[str, ...]
) -> tuple[int, FailedGuard] | None:
    """Return when a comprehension that would make the step was come to, and what of it is false; or None."""
    found: tuple[int, FailedGuard] | None = None
    names = frozenset(wanted)
    for node in ast.walk(function):
        if not isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp) or not _names([node.elt]) & names:
            continue
        at = next((n for n in range(len(call.lines) - 1, -1, -1) if call.lines[n] == node.lineno), None)
        at = at if at is not None else _line_of(function, call, node)
        why = missed(node, {**call.globals, **call.seen[at]}, args) if at is not None else None
        if at is not None and why is not None and (found is None or found[0] < at):
            values = tuple(f"{name} = {brief_value(value)}" for name, value in why.values.items() if _is_plain(value))
            found = at, FailedGuard(Path(call.code.co_filename).name, why.line, why.text, values)
    return found


def _line_of(function: ast.FunctionDef, call: TracedCall, node: ast.expr) -> int | None:
    """Return when the statement was last come to that an expression belongs to."""
    first, end = _statement(function, node.lineno)
    return next((n for n in range(len(call.lines) - 1, -1, -1) if first <= call.lines[n] <= end), None)


def decisions(calls: list[TracedCall], action: str, args: tuple[str, ...]) -> list[tuple[FailedGuard, bool]]:
    """Return the guards on the way to the first step of this name that calls made, and how each came out.

    Of a guard that was evaluated several times, in a loop, the last time counts.
    """
    found = [(call, at) for call in calls for *made, at in call.decided if made == [action, args]]
    for call in calls:
        found += [(call, at) for made, at in zip(call.made, call.made_at, strict=True) if made[:2] == (action, args)]
    return _on_the_way(*found[0]) if found else []


def _on_the_way(call: TracedCall, at: int) -> list[tuple[FailedGuard, bool]]:
    found = _on_the_way(call.parent, call.began_at) if call.parent is not None else []
    last: dict[ast.If, Evaluated] = {}
    for one in _evaluated(_function(call.code), call.lines[: at + 1]):
        if isinstance(one.branch, ast.If):
            last.pop(one.branch, None)
            last[one.branch] = one
    return [*found, *((_guard_of(call, one, True), one.taken) for one in last.values())]


def _read(test: ast.expr, fields: bool) -> tuple[str, ...]:
    """Return the names that an expression reads, and, where wanted, the fields of values, as `name.field`."""
    names = [node.id for node in ast.walk(test) if isinstance(node, ast.Name)]
    called = {id(node.func) for node in ast.walk(test) if isinstance(node, ast.Call)}
    paths = [node for node in ast.walk(test) if fields and isinstance(node, ast.Attribute) and id(node) not in called]
    return tuple(dict.fromkeys([*names, *(text for node in paths if (text := ast.unparse(node)).count(".") <= 3)]))


def _value(known: Mapping[str, Any], path: str) -> Any:
    """Return the value of a name, or of a field of the value of a name; a list, which is no value, where it is not."""
    name, *fields = path.split(".")
    found = known.get(name, [])
    for field in fields:
        found = getattr(found, field, []) if attrs.has(type(found)) or field in getattr(found, "__dict__", ()) else []
    return found


def _is_plain(value: Any) -> bool:
    """Say whether a value fits into a sentence."""
    return isinstance(value, str | int | tuple | frozenset | type(None)) and len(brief_value(value)) <= WIDEST_VALUE


def _guard_of(call: TracedCall, one: Evaluated, telling: bool) -> FailedGuard:
    """Return the guard that a condition is, as it was when it was evaluated; `telling` values of fields, too."""
    branch = one.branch
    read = branch.iter if isinstance(branch, ast.For) else branch.test
    return _guard(call, branch.lineno, branch.body[0].lineno - 1, _read(read, telling), one.at, read)


def _guard(
    call: TracedCall, first: int, end: int, names: tuple[str, ...], at: int | None = None, test: ast.expr | None = None
) -> FailedGuard:
    """Return the guard in some lines, as it was when it was evaluated as line number `at` of those executed."""
    file = call.code.co_filename
    text = _source(file, first, end)
    known = call.known.get(first, {}) if at is None else call.seen[at]
    found = [(name, _value(known, name)) for name in names]
    found += deciding(test, {**call.globals, **known}).items() if test is not None else ()
    values = [f"{name} = {brief_value(value)}" for name, value in found if _is_plain(value)]
    before = [(line, inner) for line, inner in call.calls if at is None or inner.began_at <= at + 1]
    asked = [inner for line, inner in before if first <= line <= end]
    if not asked:
        asked = [inner for line, inner in before if _assigns(call.code, line) & set(names)]
    inner = _ending(asked[-1]) if asked else None
    return FailedGuard(Path(file).name, first, text, tuple(values), inner)


def _ending(call: TracedCall) -> FailedGuard:
    """Return where a decision function that was asked reached its answer."""
    line = call.returned or call.code.co_firstlineno
    function = _function(call.code)
    for one in reversed(_evaluated(function, call.lines)):
        branch = one.branch
        if one.taken and _covers(branch.body, line):
            return _guard(call, branch.lineno, branch.body[0].lineno - 1, ())
    text = _source(call.code.co_filename, *_statement(function, line))
    return FailedGuard(Path(call.code.co_filename).name, line, text)


def _source(file: str, first: int, end: int) -> str:
    """Return lines of a source file as one, without the colon of a header; a long one is cut off."""
    text = " ".join(linecache.getline(file, n).strip() for n in range(first, max(first, end) + 1)).removesuffix(":")
    return text if len(text) <= WIDEST_SOURCE else f"{text[:WIDEST_SOURCE]}..."


def _statement(function: ast.FunctionDef | None, line: int) -> tuple[int, int]:
    """Return the first and last line of the innermost statement of a function that a line belongs to."""
    found = (line, line)
    for node in _inside(function):
        if isinstance(node, ast.Return | ast.Expr | ast.Assign) and node.lineno <= line <= (node.end_lineno or 0):
            found = (node.lineno, node.end_lineno or node.lineno)
    return found


@cache
def _tree(file: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return None


def _inside(node: ast.AST | None) -> Iterator[ast.AST]:
    """Yield a node, and all below it; nothing without a node."""
    return iter(()) if node is None else ast.walk(node)


@cache
def _function(code: CodeType) -> ast.FunctionDef | None:
    for node in _inside(_tree(code.co_filename)):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if node.name == code.co_name and first == code.co_firstlineno:
                return node
    return None


def _assigns(code: CodeType, line: int) -> set[str]:
    """Return the names that the statement on a line of a function assigns."""
    return {
        target.id
        for node in _inside(_function(code))
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.lineno <= line <= (node.end_lineno or node.lineno)
        for target in ast.walk(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        if isinstance(target, ast.Name)
    }


def _evaluated(function: ast.FunctionDef | None, lines: list[int]) -> list[Evaluated]:
    """Return each `if`, `for` and `while` that the lines pass, in order, and whether its body came next."""
    headers: dict[int, Conditional] = {}
    for node in _inside(function):
        if isinstance(node, ast.If | ast.For | ast.While):
            for line in range(node.lineno, node.body[0].lineno):
                headers[line] = node
    found = []
    for at, line in enumerate(lines):
        branch = headers.get(line)
        following = lines[at + 1] if at + 1 < len(lines) else None
        if branch is None or (following is not None and headers.get(following) is branch and following != line):
            continue
        found.append(Evaluated(at, branch, following is not None and _covers(branch.body, following)))
    return found


def _covers(body: list[ast.stmt], line: int) -> bool:
    return body[0].lineno <= line <= (body[-1].end_lineno or body[-1].lineno)


def _leaves(body: list[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Return | ast.Continue) for statement in body for node in ast.walk(statement))


def _yields(body: list[ast.stmt]) -> bool:
    """Say whether statements give something: a `return` of nothing does not."""
    return any(
        isinstance(node, ast.Yield | ast.YieldFrom) or (isinstance(node, ast.Return) and not _is_nothing(node.value))
        for statement in body for node in ast.walk(statement)
    )


def _is_nothing(value: ast.expr | None) -> bool:
    empty = isinstance(value, ast.Tuple | ast.List) and not value.elts
    return value is None or empty or (isinstance(value, ast.Constant) and value.value is None)


def _names(nodes: Iterable[ast.AST]) -> set[str]:
    """Return the names and texts that occur in some nodes."""
    found = set()
    for node in (inner for outer in nodes for inner in ast.walk(outer)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
        elif isinstance(node, ast.Name | ast.Attribute):
            found.add(node.id if isinstance(node, ast.Name) else node.attr)
    return found
