"""Which guards of a protocol were evaluated, and how they came out: seen from outside, without a hook in its code.

A guard is the condition of an `if` or `while`, of a `case` with an `if`, and what a function that says `-> bool`
returns. Only a protocol's own files have guards: the harness, the standard library and attrs have none. While protocol
code runs, `sys.settrace` tells which line comes after the condition's: one of the body means that it was true. What a
condition inside an expression (`a if b else c`, a comprehension's `if`) is not seen by lines, and not reported.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any, TypeVar

import attrs

from harness.memo.interning import long_lived

T = TypeVar("T")

NOT_PROTOCOL = frozenset(("harness", "attr", "attrs")) | sys.stdlib_module_names
"""Packages without guards. Tests and notebooks may hold actors of their own, so `__main__` is none of them."""


@attrs.frozen(order=True)
class Guard:
    """A condition in a protocol's source: its file as a path from the package's folder, its first line, its text."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.text}"

    @property
    def module(self) -> str:
        """The name of the module that the file is."""
        return self.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


Outcome = tuple[Guard, bool]


@attrs.frozen(eq=False)
class _Test:
    """A condition of statements: the lines that it takes, and those of the body that it leads to."""

    guard: Guard
    lines: range
    body: range


@attrs.frozen(eq=False)
class SourceGuards:
    """The guards of one source file, found by the lines of their conditions."""

    tests: dict[int, _Test]
    returned: dict[int, Guard]
    """What functions that say `-> bool` return, by every line of the `return`."""

    def guards(self) -> Iterator[Guard]:
        """Yield every guard of the file, by line."""
        yield from sorted({*(test.guard for test in self.tests.values()), *self.returned.values()})


def parse(text: str, file: str) -> SourceGuards:
    """Find the guards in the functions of a source file. A body on the line of its condition cannot be told apart."""
    tests: dict[int, _Test] = {}
    returned: dict[int, Guard] = {}
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.Lambda)]
    for node in (inner for function in functions for inner in ast.walk(function)):
        if isinstance(node, ast.If | ast.While):
            _add(tests, file, node.lineno, node.test, node.test, node.body)
        elif isinstance(node, ast.match_case) and node.guard is not None:
            _add(tests, file, node.pattern.lineno, node, node.guard, node.body)
        elif isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Name) and node.returns.id == "bool":
            for inner in _own_returns(node):
                if not isinstance(inner.value, ast.Constant | None):
                    guard = Guard(file, inner.lineno, ast.unparse(inner.value))
                    returned.update(dict.fromkeys(range(inner.lineno, (inner.end_lineno or 0) + 1), guard))
    return SourceGuards(tests, returned)


def _add(
    tests: dict[int, _Test], file: str, first: int, shown: ast.AST, condition: ast.expr, body: list[ast.stmt]
) -> None:
    text = ast.unparse(shown).split(":\n")[0].strip()
    lines = range(first, (condition.end_lineno or first) + 1)
    if body[0].lineno not in lines:
        test = _Test(Guard(file, first, text), lines, range(body[0].lineno, (body[-1].end_lineno or 0) + 1))
        tests.update(dict.fromkeys(lines, test))


def _own_returns(function: ast.FunctionDef) -> Iterator[ast.Return]:
    """Yield the `return`s of a function, not those of functions inside it."""
    below: list[ast.AST] = list(function.body)
    while below:
        node = below.pop()
        if isinstance(node, ast.Return):
            yield node
        elif not isinstance(node, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            below += ast.iter_child_nodes(node)


_SOURCES: dict[str, SourceGuards | None] = {}
"""The guards of each source file by its name, None if it is no protocol's; files do not change while they run."""


def package_of(frame: FrameType) -> str:
    """Return the top package whose code a frame executes."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def source_of(frame: FrameType) -> SourceGuards | None:
    """Return the guards of the file that a frame executes, or None if it is no protocol's."""
    name = frame.f_code.co_filename
    if name in _SOURCES:
        return _SOURCES[name]
    generated = name.startswith("<")
    skipped = generated or package_of(frame) in NOT_PROTOCOL
    text = "" if skipped else "".join(linecache.getlines(name, frame.f_globals))
    module = str(frame.f_globals.get("__name__", ""))
    known = _SOURCES[name] = parse(text, _shown(module, name)) if text else None
    return known


def _shown(module: str, name: str) -> str:
    """Return a file's path from the folder of its top package, with slashes: the same on every machine."""
    parts = name.replace("\\", "/").split("/")
    return "/".join(parts[-1 - (module.count(".") + (parts[-1] == "__init__.py")):])


def guards_of(modules: Iterable[str]) -> tuple[Guard, ...]:
    """Return every guard in these modules of protocols, as far as they are loaded, by file and line."""
    found: set[Guard] = set()
    for module in modules:
        name = getattr(sys.modules.get(module), "__file__", None)
        if name and module.partition(".")[0] not in NOT_PROTOCOL:
            found.update(parse("".join(linecache.getlines(name)), _shown(module, name)).guards())
    return tuple(sorted(found))


class _Frame:
    """The trace function of one frame: notes how each condition came out that the frame passes.

    A generator's frame is resumed with the trace function that it had: `calling` is asked again and finds it here.
    """

    __slots__ = ("_note", "_pending", "_raised", "_source")

    def __init__(self, source: SourceGuards, note: Callable[[Guard, bool], None]) -> None:
        self._source = source
        self._note = note
        self._pending: _Test | None = None
        self._raised = False

    def __call__(self, frame: FrameType, event: str, value: Any) -> Any:
        if event == "line":
            self._at(frame.f_lineno)
        elif event == "return":
            self._leaving(frame.f_lineno, value)
        elif event == "exception":
            self._raised = True
        return self

    def _at(self, line: int) -> None:
        pending = self._pending
        if pending is not None and line not in pending.lines:
            self._settle(pending, line in pending.body)
        self._raised = False
        self._pending = self._source.tests.get(line)

    def _settle(self, test: _Test, outcome: bool) -> None:
        """Note an outcome; a condition that raised has none, unless the exception was taken within it."""
        self._pending = None
        if outcome or not self._raised:
            self._note(test.guard, outcome)

    def _leaving(self, line: int, value: Any) -> None:
        """Note a condition that was false with nothing behind it, or what a boolean function returns."""
        pending = self._pending
        if pending is not None and line in pending.lines:
            self._settle(pending, False)
        elif not self._raised and (guard := self._source.returned.get(line)) is not None:
            self._note(guard, bool(value))


class Guards:
    """A collector: `seen` is every guard that was evaluated while `watch` was on, with how it came out."""

    def __init__(self) -> None:
        self.seen: set[Outcome] = set()

    def watch(self, call: Callable[[], T]) -> T:
        """Carry a call out and add the outcomes of the guards that it evaluates."""
        return _traced(call, self._note)

    def _note(self, guard: Guard, outcome: bool) -> None:
        self.seen.add((guard, outcome))

    def one_way(self) -> tuple[Outcome, ...]:
        """Return the guards that always came out the same, with how, by file and line."""
        return tuple(sorted(one for one in self.seen if (one[0], not one[1]) not in self.seen))


def trace(call: Callable[[], T]) -> tuple[T, list[Outcome]]:
    """Carry a call out; return its result, and the guards that it evaluated and how they came out, in order.

    A generator that the call returns has not run yet: consume it within the call.
    """
    found: list[Outcome] = []
    return _traced(call, lambda guard, outcome: found.append((guard, outcome))), found


@long_lived()
def _traced(call: Callable[[], T], note: Callable[[Guard, bool], None]) -> T:
    """Carry out a call with tracing on, and put back the trace function that there was (a debugger's, coverage's).

    The garbage collector waits meanwhile: it runs finalizers of any objects, and their conditions are no guards.
    """
    frames: dict[FrameType, _Frame] = {}

    def calling(frame: FrameType, event: str, value: Any) -> Any:
        source = source_of(frame)
        if source is None:
            return None
        known = frames.get(frame)
        if known is None:
            known = frames[frame] = _Frame(source, note)
        return known

    before = sys.gettrace()
    sys.settrace(calling)
    try:
        return call()
    finally:
        sys.settrace(before)
