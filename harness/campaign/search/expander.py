"""What a worker does for a search: expand the states of a level, look for predecessors, and keep what is new.

A worker keeps its tables between tasks, with numbers of values that are its own, and begins anew where they get large.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

import attrs
import pyarrow as pa

from harness.campaign.cells import code_version
from harness.campaign.durable_files import place, stamp
from harness.campaign.search.state_columns import Coder, Keys, from_bytes, merged, read, read_keys, to_bytes, write
from harness.campaign.spark_job import unwritable
from harness.explore.packed.footprints import Answer
from harness.explore.packed.layout import Overflow
from harness.explore.packed.loop import DEADLOCK
from harness.explore.packed.python_loop import PythonLoop, expand
from harness.explore.packed.space import Space
from harness.model import Model, find_model

SPARE = 4
"""Bits that each field has for values not met yet."""
MOST = 2_000_000
"""Values and entries of tables with which a worker begins anew."""
SEARCHERS = (
    "harness/model", "harness/explore", "harness/campaign/search/expander.py",
    "harness/campaign/search/state_columns.py",
)
"""The code that states, keys and counts of a search depend on, besides that of the protocol."""
STOPPED = "the search cannot go on: "
"""How the message of a failed worker begins."""
T = TypeVar("T")
Given = TypeVarTuple("Given")


@attrs.frozen
class SearchRequest:
    """What is searched, and for what: all that a worker needs to know."""

    model: str
    sizes: Mapping[str, int]
    settings: Mapping[str, str]
    history_variables: bool
    properties: tuple[str, ...]
    deadlock: bool
    package: str
    code: str

    def build(self) -> Model:
        """Build the model. Raises Refusal."""
        return find_model(self.model).make(self.sizes, self.settings, history_variables=self.history_variables)


@attrs.frozen
class LevelTask:
    """A job's part: which folder it is about, how many parts there are, what is settled, how many states there are."""

    request: SearchRequest
    folder: str
    parts: int
    settled: frozenset[str]
    distinct: int


@attrs.define
class Expansion:
    """What the expansion of some states found besides their successors."""

    generated: int = 0
    actions: Counter[str] = attrs.field(factory=Counter)
    hits: dict[str, list[Keys]] = attrs.field(factory=dict)
    """The states in which a property answers."""
    outside: dict[str, list[Keys]] = attrs.field(factory=dict)
    """The same of successors that are out of bounds."""
    cpu: float = 0.0

    def add(self, other: Expansion) -> None:
        """Add what another expansion found."""
        self.generated += other.generated
        self.actions.update(other.actions)
        self.cpu += other.cpu
        for mine, theirs in ((self.hits, other.hits), (self.outside, other.outside)):
            for name, keys in theirs.items():
                mine.setdefault(name, []).extend(keys)


class Expander:
    """The tables of a process for one search."""

    def __init__(self, request: SearchRequest) -> None:
        self.request = request
        self.model = request.build()
        self.chosen = tuple(self.model.property(name) for name in request.properties)
        self.space = Space(self.model, self.chosen)
        self.space.sees_all_states = True
        layout = self.space.layout
        self.coder = Coder(layout, {cls.__name__: cls for cls in self.model.types})
        self.dismissed: frozenset[str] = frozenset()
        self.starts: list[int] = []
        layout.fit(SPARE)
        self.steadily(self._start)

    def _start(self) -> None:
        self.starts = [self.space.layout.pack(state) for state in self.model.initial_states()]
        if not self.space.bases:
            self.space.start(self.starts[0])

    def steadily(self, work: Callable[[*Given], T], *given: *Given) -> T:
        """Do something with packed states; where a field is too narrow, make it wider and do all of it again."""
        while True:
            try:
                return work(*given)
            except Overflow:
                self.space.layout.fit(SPARE)
                self.space.repack()
                if self.starts:
                    self.starts = [self.space.layout.pack(state) for state in self.model.initial_states()]

    def prepare(self, task: LevelTask) -> None:
        """Drop the properties that are settled, and arrange tables as it pays for so many states."""
        new = task.settled - self.dismissed
        self.dismissed = task.settled
        if new:
            self.space.dismiss(sorted(new))
        most = max((most for states, most in PythonLoop.contexts.items() if states < task.distinct), default=0)
        if most > self.space.most:
            self.space.most = most
            self.space.arrange()

    def weight(self) -> int:
        """Return how many values and entries of tables there are."""
        values = sum(len(field.values) for field in self.space.layout.fields)
        return values + sum(len(look_up.table) for look_up in self.space.look_ups())

    def expand(self, batch: pa.RecordBatch, parts: int) -> tuple[Expansion, list[tuple[int, pa.Table]]]:
        """Expand states: return what was counted, and the successors as tables by part. Raises Overflow."""
        states = self.coder.packed(batch)
        expansion, found = Expansion(), dict[str, set[int]]()
        successors: set[int] = set()
        alive: set[int] = set()

        def answered(answers: Sequence[Answer], some: Sequence[int]) -> None:
            for name, _ in answers:
                if name not in self.dismissed:
                    found.setdefault(name, set()).update(some)

        self.space.settle(states)
        for after, before, edge in expand(self.space, states, answered):
            successors.update(after)
            expansion.actions[edge.step.action] += edge.step.ways * len(after)
            if self.request.deadlock:
                alive.update(before)
        expansion.generated = expansion.actions.total()
        if self.request.deadlock and (dead := [state for state in states if state not in alive]):
            answered(DEADLOCK, dead)
        expansion.hits = {name: [self.coder.keys(list(some))] for name, some in sorted(found.items())}
        return expansion, list(self.coder.tables(list(successors), parts))

    def inside(self, batch: pa.RecordBatch) -> tuple[Expansion, list[bool]]:
        """Say of each state whether it is within bounds, and what is violated in those that are not. Overflow."""
        states = self.coder.packed(batch)
        expansion, found = Expansion(), dict[str, list[int]]()
        outside = [self.space.is_outside(state) for state in states]
        for state, is_out in zip(states, outside, strict=True):
            for name, _ in self.space.answers(state) if is_out else ():
                if name not in self.dismissed:
                    found.setdefault(name, []).append(state)
        expansion.outside = {name: [self.coder.keys(some)] for name, some in sorted(found.items())}
        return expansion, [not is_out for is_out in outside]

    def sources(self, batch: pa.RecordBatch, targets: Mapping[str, Keys]) -> dict[str, Keys]:
        """Return those states from which a step leads to one of the targets that have a name, by name. Overflow."""
        afters: list[int] = []
        befores: list[int] = []
        for after, before, _ in expand(self.space, self.coder.packed(batch), None):
            afters += after
            befores += before
        keys = self.coder.keys(afters)
        found = {}
        for name, wanted in targets.items():
            some = {befores[n] for n in keys.among(wanted).nonzero()[0].tolist()}
            found[name] = self.coder.keys(list(some))
        return found


_EXPANDER: list[Expander] = []
"""In a worker: its tables, which last as long as the worker does, or until they get too large."""


def version_of(package: str) -> str:
    """Return the version of the code that searches the models of a protocol."""
    return code_version(package, SEARCHERS)


def expander_for(task: LevelTask) -> Expander:
    """Return this process's tables for a task."""
    if _EXPANDER:
        known = _EXPANDER[0]
        if known.request != task.request or not known.dismissed <= task.settled or known.weight() > MOST:
            _EXPANDER.clear()
            gc.collect()
    if not _EXPANDER:
        if version_of(task.request.package) != task.request.code:
            raise RuntimeError(f"{STOPPED}a worker has another version of {task.request.package} than the driver, or "
                               "of the search; install the same one everywhere.")
        _EXPANDER.append(Expander(task.request))
    _EXPANDER[0].prepare(task)
    return _EXPANDER[0]


def grow(task: LevelTask, files: Sequence[str]) -> Iterator[tuple[int, bytes | Expansion]]:
    """Expand the states of files: yield successors by part, and last what was counted, which any part may keep."""
    began, expansion, expander = _cpu(), Expansion(), expander_for(task)
    for file in files:
        for batch in _read(Path(task.folder, file), len(expander.space.layout.fields)):
            some, tables = expander.steadily(expander.expand, batch, task.parts)
            expansion.add(some)
            for part, table in tables:
                yield part, to_bytes(table)
    expansion.cpu = _cpu() - began
    yield 0, expansion


def settle(
    task: LevelTask, part: int, came: Iterator[tuple[int, bytes | Expansion]], seen: Sequence[str], target: str
) -> Iterator[tuple[Expansion, dict[str, Any] | None]]:
    """Keep those states sent to a part that are new, in a file; yield the counts and the file's row."""
    began, expansion = _cpu(), Expansion()
    visited = Keys.joined(_read_keys(Path(task.folder, file)) for file in seen)
    fresh: list[pa.Table] = []
    rows = once = 0
    for _, content in came:
        if isinstance(content, Expansion):
            expansion.add(content)
            continue
        table = from_bytes(content)
        new = (~Keys.of(table.combine_chunks()).among(visited)).nonzero()[0]
        if len(new):
            fresh.append(table.take(pa.array(new)))
            rows += len(new)
        if rows > 2 * once + 200_000:
            fresh = [merged(fresh)]
            rows = once = len(fresh[0])
    file = None
    table = merged(fresh) if fresh else None
    if table is not None:
        expansion, table = _within(task, expansion, table)
    if table is not None and len(table):
        name = f"part-{part:04}.parquet"
        path = Path(task.folder, target, name)
        try:
            place(path, lambda hidden: write(hidden, table))
            file = {"file": name, "part": part, "states": len(table), **stamp(path)}
        except OSError as error:
            raise unwritable(STOPPED, task.folder, error) from None
    expansion.cpu += _cpu() - began
    yield expansion, file


def _within(task: LevelTask, expansion: Expansion, table: pa.Table) -> tuple[Expansion, pa.Table]:
    """Leave out states that are out of bounds, and add what they violate."""
    expander = expander_for(task)
    if expander.model.constraint is None:
        return expansion, table
    kept: list[bool] = []
    for batch in table.combine_chunks().to_batches():
        some, inside = expander.steadily(expander.inside, batch)
        expansion.add(some)
        kept += inside
    return expansion, table.filter(pa.array(kept))


def lead(task: LevelTask, files: Sequence[str], targets: Mapping[str, Keys]) -> Iterator[dict[str, Keys]]:
    """Yield the states of files from which a step leads to a target."""
    expander = expander_for(task)
    for file in files:
        for batch in _read(Path(task.folder, file), len(expander.space.layout.fields)):
            yield expander.steadily(expander.sources, batch, targets)


def _cpu() -> float:
    """Return the seconds that this process has worked."""
    return sum(os.times()[:2])


def _read(path: Path, fields: int) -> Iterator[pa.RecordBatch]:
    try:
        yield from read(path, fields)
    except (OSError, pa.ArrowException) as error:
        raise _damaged(path, error) from None


def _read_keys(path: Path) -> Keys:
    try:
        return read_keys(path)
    except (OSError, pa.ArrowException) as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> RuntimeError:
    said = str(error).splitlines()[0].rstrip(".")
    return RuntimeError(f"{STOPPED}{path} is damaged ({said}); start it again, which says what to remove.")
