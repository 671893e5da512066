"""What a worker does: the runs of a block of seeds on the plain runtime, and the rows that they become.

A block's rows depend on its cell and its seeds only, but for the column `wall_us`: strategies whose runs learn from one
another begin anew with each block, and what is covered is counted on tables of the block's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from time import perf_counter_ns

import attrs

from harness.campaign.block_rows import NOT_JUDGED, BlockRows
from harness.campaign.cells import Cell
from harness.model import Refusal
from harness.record import Recorder, Trail
from harness.record.events import Happening, RunEvent
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import Session, drive
from harness.simulate.states.guards import Guards
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import IN_ORDER, Strategies
from harness.simulate.strategies.strategy import UNFAIR, Strategy
from harness.verify.isolation.clients import Clients
from harness.verify.spec_ways import where

PERTURBING = frozenset(str(kind) for kind in UNFAIR)
"""Kinds of steps by which the environment disturbs the protocol."""
CHUNK = 1_000
"""The number of events to join the text of at a time."""
REPORT_NS = 200_000_000
"""Between two reports of how far a worker is."""


@attrs.frozen
class BlockTask:
    """A block to make: the runs of a cell with the seeds from `first` up to `last`, which is not one of them."""

    cell: Cell
    first: int
    last: int
    keep: str
    covered: bool
    """Whether what the runs reach is counted, which takes several times as long."""

    @property
    def name(self) -> str:
        return f"{self.cell.key}-{self.first}-{self.last}"


class EventBuffer(Recorder):
    """Keeps the events of a run as they come, sharing the texts that the tables keep, and forms lines when asked."""

    def __init__(self) -> None:
        super().__init__(keep=False)
        self.events: list[RunEvent] = []
        self.event = self.events.append  # type: ignore[assignment, method-assign]  # as `Recorder.event`, without a call of ours
        self._joined = 0

    def digest(self) -> str:
        while self._joined < len(self.events):
            some = self.events[self._joined : self._joined + CHUNK]
            self.count = self._joined = self._joined + len(some)
            pieces: list[str] = []
            for n, at, what, failing in some:
                head = f'{{"n":{n},' if at is None else f'{{"n":{n},"at_us":{at},'
                pieces += (head, what.known_text or what.text, failing, "}\n")
            self._sha.update("".join(pieces).encode())
        return super().digest()


class Worker:
    """Makes blocks, one after the other; those of one cell share what was learned about its model."""

    def __init__(self) -> None:
        self._key = ""
        self._shared: Tables | None = None

    def make(self, task: BlockTask, report: Callable[[int, int], None] = lambda runs, failing: None) -> BlockRows:
        """Make the runs of a block, and `report` how many there are. Raises Refusal and OSError.

        Any other error of a run becomes its row.
        """
        cell, rows = task.cell, BlockRows(task.cell)
        plan = cell.plan
        strategies = Strategies(cell.strategy)
        tables = self._tables(task)
        coverage = strategies.cover(tables) if task.covered else None
        seeds: list[int] = []
        due = 0
        for seed, strategy in _strategies(strategies, task):
            self._run(task, plan, tables, strategy, rows, task.first <= seed)
            if perf_counter_ns() >= due:
                report(rows.made, rows.failing)
                due = perf_counter_ns() + REPORT_NS
            while coverage is not None and len(seeds) < coverage.runs:
                seeds.append(seed)
        rows.finish(task.first, coverage, seeds)
        if tables is not self._shared:
            tables.start_over()  # only this frees them while the garbage collector is off in a worker
        return rows

    def _tables(self, task: BlockTask) -> Tables:
        """Return the tables that a block's runs are made on."""
        if task.covered or task.cell.strategy in IN_ORDER:
            return Tables(task.cell.build(), Guards())
        if self._shared is None or self._key != task.cell.key:
            if self._shared is not None:
                self._shared.start_over()
            self._key, self._shared = task.cell.key, Tables(task.cell.build())
        return self._shared

    def _run(
        self, task: BlockTask, plan: Plan, tables: Tables, strategy: Strategy, rows: BlockRows, wanted: bool
    ) -> None:
        """Make a run, and its rows where they are wanted: of earlier runs in order, only what they teach is."""
        buffer, began = EventBuffer(), perf_counter_ns()
        session: Session | None = None
        try:
            session = Session(tables, plan, strategy, buffer)
            run = drive(session)
            if run.error is not None:
                raise run.error
            if wanted:
                self._add(task, session, run, buffer, rows, began)
        except (Refusal, OSError):
            raise
        except Exception as error:
            if wanted:
                rows.poisoned(_so_far(task.cell, strategy.seed, session), f"{where(error)}", task.covered,
                              (perf_counter_ns() - began) // 1_000)

    def _add(
        self, task: BlockTask, session: Session, run: Run, buffer: EventBuffer, rows: BlockRows, began: int
    ) -> None:
        happened = [what for _, _, what, _ in buffer.events]
        clients = Clients(session.model)
        seen = NOT_JUDGED
        if clients.are_judged:
            for n, _, what, _ in buffer.events:
                clients.happened(n, what)
            found = clients.breaches(session.tables.view_of(session.node))
            seen = rows.clients(run.trail.seed, found, clients.ended, lambda step: _faults(happened[: step + 1]))
        rows.actions.update([what.action or "" for what in happened[1:]])
        keep = bool(run.violations) or is_sampled(task.keep, rows.key, run.trail.seed)
        if keep:
            rows.events(run.trail.seed, buffer.events)
        for verdict in run.violations:
            step = verdict.step or 0
            rows.violation(run.trail.seed, len(run.trail.choices), verdict, happened[step].action or None,
                           _faults(happened[: step + 1]))
        digest, wall_us = buffer.digest(), (perf_counter_ns() - began) // 1_000
        rows.run(run, digest, _faults(happened), keep, task.covered, wall_us, seen)


def _strategies(strategies: Strategies, task: BlockTask) -> Iterator[tuple[int, Strategy]]:
    """Yield the seeds of a block and their strategies; a systematic search passes through its earlier runs first."""
    for seed in range(0 if task.cell.strategy == "systematic" else task.first, task.last):
        strategy = strategies.run(seed)
        if strategy is None:
            return
        yield seed, strategy


def _so_far(cell: Cell, seed: int, session: Session | None) -> Trail:
    """Return the trail of a run that did not end."""
    trail = cell.trail(seed)
    if session is None:
        return trail
    return attrs.evolve(trail, initial=session.initial, choices=tuple(session.labels), fair_from=session.fair_from)


def _faults(happened: Sequence[Happening]) -> list[str]:
    return sorted({what.action or "" for what in happened if what.kind in PERTURBING})


def is_sampled(keep: str, cell: str, seed: int) -> bool:
    """Say whether the events of a run are kept even if it violates nothing: decided by its name, never by chance."""
    if keep in ("all", "failing"):
        return keep == "all"
    drawn = int.from_bytes(blake2b(f"{cell}-{seed}".encode(), digest_size=8).digest(), "big") / (1 << 64)
    return drawn < float(keep.partition("=")[2])
