"""Watching a process decide: which functions of the protocol it calls for its steps, which guard each of them stops at.

A guard is an `if` in the protocol's source. It stops a function where it leads to an early return, or where the only
way to a step goes through it and it is false. Nothing of the protocol is changed for this: Python's own tracing tells
which lines are executed.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import attrs

from harness.model import Step, Turn, brief_value
from harness.simulate.guards import source_of

WIDEST_VALUE = 60
WIDEST_SOURCE = 160
_MAKERS = (Step.__init__.__code__, Turn.__init__.__code__)

class Call:
    """A call of a function of the protocol: what it was given, the lines it executed, what it called and made."""

    def __init__(self, frame: FrameType, parent: Call | None) -> None:
        self.code = frame.f_code
        self.parent = parent
        self.began_at = len(parent.lines) if parent is not None else 0
        """How many lines the caller had executed."""
        self.given = dict(frame.f_locals)
        self.lines: list[int] = []
        self.known: dict[int, dict[str, Any]] = {}
        """The local variables before a line was last executed."""
        self.calls: list[tuple[int, Call]] = []
        self.made: list[tuple[str, tuple[str, ...], Call | None]] = []
        """Action and arguments of each step or turn made here, and the generator it was made from, if any."""
        self.made_at: list[int] = []
        """How many lines were executed before each was made."""
        self.gave = False
        self.returned: int | None = None
        self.is_generator = bool(frame.f_code.co_flags & inspect.CO_GENERATOR)
        self.is_over = False


@attrs.frozen
class Guard:
    """The `if` at which a call stopped, or another line where there is none."""

    file: str
    line: int
    text: str
    values: tuple[str, ...] = ()
    """The local variables in it: `name = value`."""
    inner: Guard | None = None
    """The line of the decision function that it asks, where it asks one."""

    def told(self) -> str:
        """Return the guard as part of a sentence."""
        values = f", with {', '.join(self.values)}" if self.values else ""
        inner = f"; there {self.inner.told()}" if self.inner is not None else ""
        return f"{self.file}:{self.line}: {self.text}{values}{inner}"


def watch(ask: Callable[[], Iterable[Step]]) -> list[Call]:
    """Return every call of the protocol's functions that it takes to ask for steps, in order."""
    calls: list[Call] = []
    by_frame: dict[FrameType, Call] = {}

    def owner(frame: FrameType | None) -> Call | None:
        while frame is not None:
            if frame in by_frame:
                return by_frame[frame]
            frame = frame.f_back
        return None

    def on_call(frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if code in _MAKERS:
            call = owner(frame.f_back)
            if call is not None:
                made = frame.f_locals
                open_ = [c for _, c in call.calls if c.is_generator and not c.is_over and c.gave]
                call.made.append((made["action"], tuple(made["args"]), open_[-1] if open_ else None))
                call.made_at.append(len(call.lines))
            return None
        if source_of(frame) is None:
            return None
        if frame not in by_frame:
            parent = owner(frame.f_back)
            if code.co_name.startswith("<") and parent is not None:
                by_frame[frame] = parent
            else:
                call = by_frame[frame] = Call(frame, parent)
                calls.append(call)
                if parent is not None:
                    parent.calls.append((parent.lines[-1] if parent.lines else 0, call))
        return on_line

    def on_line(frame: FrameType, event: str, arg: Any) -> Any:
        call = by_frame[frame]
        if event == "line":
            call.lines.append(frame.f_lineno)
            if call.code is frame.f_code:
                call.known[frame.f_lineno] = dict(frame.f_locals)
        elif event == "return" and call.code is frame.f_code:
            call.gave = call.gave or bool(arg)
            call.is_over = arg is None
            call.returned = frame.f_lineno
        return on_line

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        for _ in ask():
            pass
    except Exception:
        pass  # a state that comes from a mapping may be one that the spec's functions were not written for
    finally:
        sys.settrace(before)
    return calls


def guard_of(call: Call, telling: bool = False) -> tuple[Guard, int]:
    """Return the guard at which a call stopped, and how many it passed before; `telling` values of fields, too."""
    function = _function(call.code)
    last = call.lines[-1] if call.lines else call.code.co_firstlineno
    outcomes = _outcomes(function, call.lines) if function is not None else []
    stop: ast.If | ast.For | None = None
    for branch, taken in outcomes:
        if taken and _covers(branch.body, last) and _leaves(branch.body):
            stop = branch
    if stop is None:
        entered = [branch for branch, taken in outcomes if taken]
        refused = [branch for branch, taken in outcomes if not taken and _yields(branch.body)]
        refused = [b for b in refused if isinstance(b, ast.If)] or [b for b in refused if b not in entered]
        stop = refused[-1] if refused else None
    if stop is None:
        return _guard(call, last, last, ()), len(outcomes)
    header_end = stop.body[0].lineno - 1
    names = _read(stop.test if isinstance(stop, ast.If) else stop.iter, telling)
    return _guard(call, stop.lineno, header_end, names), max(0, len(outcomes) - 1)


def decisions(calls: list[Call], action: str, args: tuple[str, ...]) -> list[tuple[Guard, bool]]:
    """Return the guards on the way to the first step of this name that calls made, and how each came out.

    Of a guard that was evaluated several times, in a loop, the last time counts.
    """
    for call in calls:
        for made, at in zip(call.made, call.made_at, strict=True):
            if made[:2] == (action, args):
                return _on_the_way(call, at)
    return []


def _on_the_way(call: Call, at: int) -> list[tuple[Guard, bool]]:
    found = _on_the_way(call.parent, call.began_at) if call.parent is not None else []
    function = _function(call.code)
    last: dict[ast.If, bool] = {}
    for branch, taken in _outcomes(function, call.lines[: at + 1]) if function is not None else []:
        if isinstance(branch, ast.If):
            last.pop(branch, None)
            last[branch] = taken
    for branch, taken in last.items():
        found.append((_guard(call, branch.lineno, branch.body[0].lineno - 1, _read(branch.test, True)), taken))
    return found


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


def _guard(call: Call, first: int, end: int, names: tuple[str, ...]) -> Guard:
    file = call.code.co_filename
    text = _source(file, first, end)
    known = call.known.get(first, {})
    values = []
    for name in names:
        value = _value(known, name)
        if isinstance(value, str | int | tuple | frozenset | type(None)):
            said = brief_value(value)
            if len(said) <= WIDEST_VALUE:
                values.append(f"{name} = {said}")
    asked = [inner for line, inner in call.calls if first <= line <= end]
    if not asked:
        asked = [inner for line, inner in call.calls if _assigns(call.code, line) & set(names)]
    inner = _ending(asked[-1]) if asked else None
    return Guard(Path(file).name, first, text, tuple(values), inner)


def _ending(call: Call) -> Guard:
    """Return where a decision function that was asked came to its answer."""
    line = call.returned or call.code.co_firstlineno
    function = _function(call.code)
    for branch, taken in reversed(_outcomes(function, call.lines) if function is not None else []):
        if taken and _covers(branch.body, line):
            return _guard(call, branch.lineno, branch.body[0].lineno - 1, ())
    return Guard(Path(call.code.co_filename).name, line, _source(call.code.co_filename, *_statement(function, line)))


def _source(file: str, first: int, end: int) -> str:
    """Return lines of a source file as one, without the colon of a header; a long one is cut off."""
    text = " ".join(linecache.getline(file, n).strip() for n in range(first, max(first, end) + 1)).removesuffix(":")
    return text if len(text) <= WIDEST_SOURCE else f"{text[:WIDEST_SOURCE]}..."


def _statement(function: ast.FunctionDef | None, line: int) -> tuple[int, int]:
    """Return the first and last line of the innermost statement of a function that a line belongs to."""
    found = (line, line)
    for node in ast.walk(function) if function is not None else ():
        if isinstance(node, ast.Return | ast.Expr | ast.Assign) and node.lineno <= line <= (node.end_lineno or 0):
            found = (node.lineno, node.end_lineno or node.lineno)
    return found


@cache
def _tree(file: str) -> ast.Module | None:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return None


@cache
def _function(code: CodeType) -> ast.FunctionDef | None:
    tree = _tree(code.co_filename)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if node.name == code.co_name and first == code.co_firstlineno:
                return node
    return None


def _assigns(code: CodeType, line: int) -> set[str]:
    """Return the names that the statement on a line of a function assigns."""
    function = _function(code)
    return {
        target.id
        for node in (ast.walk(function) if function is not None else ())
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.lineno <= line <= (node.end_lineno or node.lineno)
        for target in ast.walk(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        if isinstance(target, ast.Name)
    }


def _outcomes(function: ast.FunctionDef, lines: list[int]) -> list[tuple[ast.If | ast.For, bool]]:
    """Return each `if` and `for` that the lines pass, in order, and whether its body came next."""
    headers = {}
    for node in ast.walk(function):
        if isinstance(node, ast.If | ast.For):
            for line in range(node.lineno, node.body[0].lineno):
                headers[line] = node
    found = []
    for at, line in enumerate(lines):
        branch = headers.get(line)
        following = lines[at + 1] if at + 1 < len(lines) else None
        if branch is None or (following is not None and headers.get(following) is branch and following != line):
            continue
        found.append((branch, following is not None and _covers(branch.body, following)))
    return found


def _covers(body: list[ast.stmt], line: int) -> bool:
    return body[0].lineno <= line <= (body[-1].end_lineno or body[-1].lineno)


def _leaves(body: list[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Return | ast.Continue) for statement in body for node in ast.walk(statement))


def _yields(body: list[ast.stmt]) -> bool:
    return any(
        isinstance(node, ast.Yield | ast.YieldFrom | ast.Return) for statement in body for node in ast.walk(statement)
    )
