"""Circles of transactions: each was before the next by what it wrote or read.

- `wr`: one reads a record of the other. With `wr` and the order of a client's own operations a circle is `G1c`.
- `ww`: its record is before the other's in a log. A circle of these is `G0`; with `wr` too it is `G1c-ww`.
- `rw`: it reads up to where the other's record comes next. One of these in a circle is `G-single`, more are `G2-item`.
  A poll that ends within the records of one operation is not before that operation: polls have a size.

Nothing is kept but what can be in a circle. An edge from a later operation to an earlier one is in each circle; the
operations between its ends are a window, and windows that overlap are one. A circle lies in one window.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter

import attrs

from harness.model.log_operations import FAIL, OK
from harness.verify.isolation.anomalies import Breach, ProofStep, breach
from harness.verify.isolation.columns import NOBODY, Known, KnownLog

WR, WW, RW, PROCESS = "wr", "ww", "rw", "process"
LONGEST_SEARCH = 400
"""Operations of a window from which a shortest circle is looked for."""


@attrs.frozen
class Dependency:
    """One operation is before another: of which kind, and by which log and offset."""

    source: int
    target: int
    kind: str
    log: int = -1
    offset: int = -1


Graph = Mapping[int, Mapping[int, Dependency]]


def judge(known: Known, with_order: bool) -> Iterator[Breach]:
    """Yield the circles; those over the order of logs where that is asked for."""
    windows = _windows(_dependencies(known, with_order))
    inside: list[list[Dependency]] = [[] for _ in windows]
    for each in _dependencies(known, with_order) if windows else ():
        low, high = sorted((each.source, each.target))
        n = bisect_right(windows, low, key=itemgetter(0)) - 1
        if n >= 0 and high <= windows[n][1]:
            inside[n].append(each)
    for window, edges in zip(windows, inside, strict=True):
        yield from _circles(known, [*edges, *_of_processes(known, *window)], with_order)
    yield from _own_records(known)


def _windows(edges: Iterable[Dependency]) -> list[tuple[int, int]]:
    """Return the ranges of operations that edges to earlier ones span, merged where they overlap."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted({(each.target, each.source) for each in edges if each.target < each.source}):
        if merged and low <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return merged


def _counts(known: Known, op: int) -> bool:
    return op != NOBODY and bool(known.proven[op])


def _dependencies(known: Known, with_order: bool) -> Iterator[Dependency]:
    """Yield each dependency between two operations that happened, but for the order of a client's own."""
    for row, op in enumerate(known.read_op):
        if known.is_(op, OK):
            log = known.logs[known.read_log[row]]
            yield from _read(known, log, op, known.read_first[row], known.read_last[row], with_order)
    if with_order:
        for log in known.logs:
            before = NOBODY
            for record in log.records():
                if _counts(known, record.writer):
                    if before not in (NOBODY, record.writer):
                        yield Dependency(before, record.writer, WW, log.number, record.offset)
                    before = record.writer


def _read(known: Known, log: KnownLog, op: int, first: int, last: int, with_order: bool) -> Iterator[Dependency]:
    before = NOBODY
    for record in log.records(first, last + 1):
        if record.writer not in (NOBODY, before, op):
            before = record.writer
            if _counts(known, before):
                yield Dependency(before, op, WR, log.number, record.offset)
    if with_order:
        for record in log.records(last + 1):
            if _counts(known, record.writer) and record.writer not in (op, before):
                yield Dependency(op, record.writer, RW, log.number, record.offset)
                return


def _of_processes(known: Known, low: int, high: int) -> Iterator[Dependency]:
    """Yield that a client's operation was before its next one, if it had ended."""
    last: dict[int, int] = {}
    for op in range(low, high + 1):
        before = last.get(known.processes[op])
        if before is not None and known.is_(before, OK):
            yield Dependency(before, op, PROCESS)
        last[known.processes[op]] = op


def _circles(known: Known, edges: list[Dependency], with_order: bool) -> Iterator[Breach]:
    """Yield a shortest circle of each kind in a window, the gravest kind only."""
    kinds = (("G0", (WW,)), ("G1c", (WR, PROCESS)), ("G1c-ww", (WW, WR, PROCESS)), ("G-single", ()), ("G2-item", ()))
    for anomaly, allowed in kinds:
        if anomaly != "G1c" and not with_order:
            continue
        if allowed:
            found = _shortest(_graph(edges, allowed))
        elif anomaly == "G-single":
            found = _with_one(edges)
        else:
            found = _shortest(_graph(edges, (WW, WR, RW, PROCESS)))
        if found is not None:
            yield _circle(known, anomaly, found)
            return


def _graph(edges: Iterable[Dependency], kinds: tuple[str, ...]) -> Graph:
    graph: dict[int, dict[int, Dependency]] = {}
    for each in edges:
        if each.kind in kinds:
            graph.setdefault(each.source, {}).setdefault(each.target, each)
    return graph


def _shortest(graph: Graph) -> list[Dependency] | None:
    """Return a circle; the shortest, where few operations are in one."""
    best: list[Dependency] | None = None
    for start in sorted(_in_circles(graph))[:LONGEST_SEARCH]:
        found = _path(graph, start, start)
        if found is not None and (best is None or len(found) < len(best)):
            best = found
    return best


def _with_one(edges: list[Dependency]) -> list[Dependency] | None:
    """Return a shortest circle with one edge from a read to what comes next."""
    graph, best = _graph(edges, (WW, WR, PROCESS)), None
    for each in sorted((each for each in edges if each.kind == RW), key=lambda each: (each.source, each.target)):
        back = _path(graph, each.target, each.source)
        if back is not None and (best is None or len(back) + 1 < len(best)):
            best = [each, *back]
    return best


def _in_circles(graph: Graph) -> set[int]:
    """Return the operations that may be in a circle: those left when what has no edge in or out goes, again and again.
    """
    targets: dict[int, set[int]] = {}
    for source, out in graph.items():
        for target in out:
            targets.setdefault(target, set()).add(source)
    left = set(graph) & set(targets)
    gone = deque((set(graph) | set(targets)) - left)
    while gone:
        op = gone.popleft()
        for other in (*graph.get(op, ()), *targets.get(op, ())):
            if other in left and not (
                any(each in left for each in graph[other]) and any(each in left for each in targets[other])
            ):
                left.discard(other)
                gone.append(other)
    return left


def _path(graph: Graph, start: int, goal: int) -> list[Dependency] | None:
    """Return a shortest way over at least one edge."""
    came: dict[int, Dependency] = {}
    waiting = deque([start])
    while waiting:
        op = waiting.popleft()
        for target, edge in sorted(graph.get(op, {}).items()):
            if target not in came:
                came[target] = edge
                waiting.append(target)
            if target == goal:
                way = [edge]
                while way[0].source != start:
                    way.insert(0, came[way[0].source])
                return way
    return None


def _circle(known: Known, anomaly: str, way: list[Dependency]) -> Breach:
    first = min(range(len(way)), key=lambda n: way[n].source)
    way = [*way[first:], *way[:first]]
    steps = [_step(known, each) for each in way]
    names = [step.words for step in steps]
    said = "; ".join(f"{step}" for step in steps)
    return breach(anomaly, f"{' is before '.join([*names, names[0]])}: {said}", *steps)


def _step(known: Known, each: Dependency) -> ProofStep:
    target = known.step(each.target, "").words
    if each.kind == PROCESS:
        return known.step(each.source, f"ended before {target} of the same client began")
    log = known.logs[each.log]
    record = log.at(each.offset)
    assert record is not None
    what = f"{known.names.value(record.value)} at offset {each.offset} of log {log.name}"
    return known.step(each.source, {
        WR: f"sent {what}, which {target} reads",
        WW: f"sent what is before {what}, which {target} sent",
        RW: f"read up to before {what}, which {target} sent",
    }[each.kind])


def _own_records(known: Known) -> Iterator[Breach]:
    """Yield the transactions that read what they sent themselves, before they committed."""
    for row, op in enumerate(known.read_op):
        log, low, high = known.logs[known.read_log[row]], known.read_first[row], known.read_last[row]
        for record in log.records(low, high + 1):
            if record.writer == op and not known.is_(op, FAIL):
                value = known.names.value(record.value)
                step = known.step(op, f"sends {value} to log {log.name} and reads it at offset {record.offset}")
                yield breach("precommitted-read", f"{step.words} reads {value} of log {log.name}, which it sent itself",
                             step)
                break
