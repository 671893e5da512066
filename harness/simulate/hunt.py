"""The hunt: every scenario under every strategy, failures found, shrunk and written down, a scoreboard at the end.

A flawed scenario is as expected when some strategy finds its flaw; its repaired twin when it stays silent over at least
`SILENCE` times as many runs as finding took; any other scenario when no claim fails and its witnesses are reached.
Runs are spread over processes; what is done when the hunt is interrupted is kept.
"""

from __future__ import annotations

import multiprocessing
import os
import shlex
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from harness.model import Checked, Refusal, Scenario, find_scenario, model_of, scenarios, unknown
from harness.record import HistoryFile, Trail, header_of
from harness.simulate.guards import Guards
from harness.simulate.replay import replay_plain
from harness.simulate.session import Plan, Run, Session, drive, plan_of, run_plain, without_choices
from harness.simulate.shrink import shrink
from harness.simulate.strategies import NAMES, Strategies, Strategy
from harness.simulate.tables import Tables, long_lived

SILENCE = 20
"""How many times as many runs as it took to find a flaw must be silent in the repaired twin."""
GUIDED = 8
FEWEST = 25
"""A guided run looks ahead, which costs as much as several others: it gets this part of the runs, at least so many."""


@attrs.frozen
class Task:
    """Some runs of a scenario under one strategy, up to the first that violates what is expected."""

    scenario: str
    strategy: str
    runs: int


@attrs.frozen
class Tried:
    """What the runs of one strategy came to."""

    scenario: str
    strategy: str
    runs: int
    steps: int
    found_at: int | None = None
    """The run (from 1) that violated the expected property or, unexpectedly, any claimed one."""
    trail: Trail | None = None
    reason: str | None = None
    witnessed: frozenset[str] = frozenset()
    exhausted: bool = False
    """A systematic search that ran out of prefixes."""


@attrs.frozen
class Row:
    """A line of the scoreboard."""

    scenario: str
    title: str
    expected: str | None
    as_expected: bool
    violated: str | None
    reason: str | None
    tried: tuple[Tried, ...]
    steps_found: int | None = None
    steps_shrunk: int | None = None
    proved_shortest: bool = False
    trail: str | None = None
    history: str | None = None
    missing: tuple[str, ...] = ()
    """Witnesses that no run reached."""
    runs_needed: int = 0
    """For a repaired twin: the silent runs that were asked for."""
    fair_steps: int = 0
    """The steps of the shrunk trail's fair ending, which come after those that it was shrunk to."""
    fair_cycle: bool = False
    """Whether the fair ending leads back to a state it had, so that it goes on for ever."""
    checked: Checked | None = None
    """The same flaw in a spec, which a search was made for."""
    checked_steps: int | None = None
    """The fewest steps to that, or None where the search found nothing."""

    @property
    def runs(self) -> int:
        return sum(tried.runs for tried in self.tried)

    @property
    def missed(self) -> tuple[Tried, ...]:
        """What the strategies came to that did not find what another one, or a search, found or was expected to."""
        return tuple(t for t in self.tried if not t.found_at) if self.expected or self.violated else ()

    @property
    def replay(self) -> str | None:
        return f"kafka-proto replay {shlex.quote(self.trail)}" if self.trail else None

    def to_json(self) -> dict[str, Any]:
        """Return the row as a JSON object."""
        return {
            "scenario": self.scenario, "title": self.title, "expected": self.expected,
            "as_expected": self.as_expected, "violated": self.violated, "reason": self.reason, "runs": self.runs,
            "strategies": {
                t.strategy: {"runs": t.runs, "steps": t.steps, "found_at": t.found_at, "exhausted": t.exhausted}
                for t in self.tried
            },
            "steps_found": self.steps_found, "steps_shrunk": self.steps_shrunk,
            "proved_shortest": self.proved_shortest, "trail": self.trail, "history": self.history,
            "fair_steps": self.fair_steps, "fair_cycle": self.fair_cycle, "replay": self.replay,
            "missing_witnesses": list(self.missing),
            "silent_runs_needed": self.runs_needed, "missed_by": [t.strategy for t in self.missed],
            "checked": None if self.checked is None else {
                "model": self.checked.model, "sizes": dict(self.checked.sizes),
                "settings": dict(self.checked.settings), "violates": self.checked.violates,
                "steps": self.checked_steps,
            },
        }


def chosen_scenarios(names: Iterable[str]) -> tuple[Scenario, ...]:
    """Return the scenarios of these names, or all of them; a repaired twin comes with its flawed row. Refusal."""
    names = tuple(names)
    known = tuple(scenarios())
    if not names:
        return known
    for name in names:
        if find_scenario(name) is None:
            names_of_all = [s.name for s in known]
            raise Refusal(unknown(f"there is no scenario {name!r}", name, names_of_all, "", "kafka-proto list"))
    return tuple(s for s in known if s.name in names or any(o.repaired == s.name for o in known if o.name in names))


def carry_out(task: Task, made: Any) -> Tried:
    """Make the runs of a task, and count them in a `multiprocessing.Value` that all tasks share."""
    with long_lived():
        return _carry_out(task, made)


def _carry_out(task: Task, made: Any) -> Tried:
    scenario = _scenario(task.scenario)
    strategies, plan = Strategies(task.strategy), plan_of(scenario)
    tables = Tables(model_of(scenario), Guards() if strategies.campaign is not None else None)
    done = steps = 0
    witnessed: frozenset[str] = frozenset()
    for seed in range(task.runs):
        strategy = strategies.run(seed)
        if strategy is None:
            return Tried(task.scenario, task.strategy, done, steps, witnessed=witnessed, exhausted=True)
        run = run_plain(tables, plan, strategy)
        done += 1
        with made.get_lock():
            made.value += 1
        steps += len(run.trail.choices)
        witnessed |= run.witnessed
        verdict = wanted_violation(run, scenario)
        if verdict is not None:
            trail = attrs.evolve(run.trail, violates=verdict)
            reason = next(v.reason for v in run.violations if v.violated == verdict)
            return Tried(task.scenario, task.strategy, done, steps, done, trail, reason, witnessed)
    return Tried(task.scenario, task.strategy, done, steps, witnessed=witnessed)


def wanted_violation(run: Run, scenario: Scenario) -> str | None:
    """Return the property that makes a run worth stopping at: the expected one if there is one, else any."""
    violated = [verdict.violated for verdict in run.violations if verdict.violated is not None]
    if scenario.expected is None:
        return violated[0] if violated else None
    return scenario.expected if scenario.expected in violated else None


class Hunt:
    """A hunt in progress; `progress(done runs, planned runs, message)` hears of it several times a second.

    With `processes` 0 all runs are made in this process. `rows` has what is finished, also where `interrupted` is set
    or `failure` says why the hunt could not go on.
    """

    def __init__(
        self, chosen: tuple[Scenario, ...], out: Path, runs: int | None = None, processes: int | None = None,
        progress: Callable[[int, int, str], None] = lambda done, planned, message: None,
        check: Callable[[str], int | None] | None = None,
    ) -> None:
        self.chosen = chosen
        self.out = out
        self.runs = runs
        self.processes = min(os.cpu_count() or 1, 8) if processes is None else processes
        self.progress = progress
        self.check = check
        """From a scenario's name to the fewest steps to the flaw that it names in a spec: a search, which is not this
        room's; a function of a module, since workers get it by its name."""
        self.rows: list[Row] = []
        self.interrupted = False
        self.failure: str | None = None
        self._tried: dict[str, list[Tried]] = {}
        self._searched: dict[str, int | None] = {}
        self._made = multiprocessing.get_context("spawn").Value("q", 0)
        """The runs made so far, counted by all workers."""
        self._planned = sum(self._share(s, name) for s in chosen for name in NAMES)

    def run(self) -> list[Row]:
        """Carry the hunt out and return the scoreboard's rows, in the order of the scenarios."""
        twins = {s.repaired for s in self.chosen if s.repaired}
        first = [s for s in self.chosen if s.name not in twins]
        second = [s for s in self.chosen if s.name in twins]
        try:
            with _workers(self.processes, self._made) as workers:
                self._search(workers)
                self._wave(workers, [Task(s.name, name, self._share(s, name)) for s in first for name in NAMES])
                self._wave(workers, [Task(s.name, name, self._silence(s, name)) for s in second for name in NAMES])
        except KeyboardInterrupt:
            self.interrupted = True
        except Refusal as error:
            self.failure = str(error)
        except BrokenProcessPool:
            self.failure = "a worker process was killed, perhaps because memory ran out; hunt fewer scenarios at a time"
        order = [scenario.name for scenario in self.chosen]
        self.rows.sort(key=lambda row: order.index(row.scenario))
        return self.rows

    def _search(self, workers: Executor | None) -> None:
        """Make the searches that scenarios name, before their rows are written."""
        check = self.check
        if check is None:
            return
        names = [s.name for s in self.chosen if s.checked is not None]
        if workers is None:
            self._searched = {name: check(name) for name in names}
            return
        with _interrupts_held_back():
            pending = {name: workers.submit(check, name) for name in names}
        self._searched = {name: future.result() for name, future in pending.items()}

    def _wave(self, workers: Executor | None, tasks: list[Task]) -> None:
        """Carry out tasks and finish the row of each scenario as soon as all of its strategies are through."""
        self._planned += sum(task.runs - self._share(_scenario(task.scenario), task.strategy) for task in tasks)
        for task, tried in self._results(workers, tasks):
            self._planned += tried.runs - task.runs
            self._tried.setdefault(task.scenario, []).append(tried)
            if len(self._tried[task.scenario]) == len(NAMES):
                self.rows.append(self._row(_scenario(task.scenario)))
            self._report()

    def _results(self, workers: Executor | None, tasks: list[Task]) -> Iterator[tuple[Task, Tried]]:
        """Yield each task with what it came to, as they finish."""
        if workers is None:
            for task in tasks:
                yield task, carry_out(task, self._made)
            return
        with _interrupts_held_back():
            pending = {workers.submit(_work, task): task for task in tasks}
        while pending:
            done, _ = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
            self._report()
            for future in [future for future in pending if future in done]:
                yield pending.pop(future), future.result()

    def _report(self) -> None:
        self.progress(self._made.value, self._planned, f"{len(self.rows)} of {len(self.chosen)} scenarios")

    def _share(self, scenario: Scenario, strategy: str) -> int:
        """Return how many runs a scenario gets under one strategy."""
        if self.runs is not None or strategy != "guided":
            return self.runs or scenario.runs
        return max(scenario.runs // GUIDED, min(scenario.runs, FEWEST))

    def _silence(self, twin: Scenario, strategy: str) -> int:
        """Return how many runs of a repaired twin must be silent under one strategy."""
        found = [t.found_at for t in self._flawed(twin) if t.strategy == strategy and t.found_at]
        return max([self._share(twin, strategy), *(SILENCE * at for at in found)])

    def _flawed(self, twin: Scenario) -> list[Tried]:
        return [t for s in self.chosen if s.repaired == twin.name for t in self._tried.get(s.name, ())]

    def _row(self, scenario: Scenario) -> Row:
        """Judge a scenario, and write down what was found."""
        tried = tuple(sorted(self._tried[scenario.name], key=lambda t: NAMES.index(t.strategy)))
        missing = tuple(sorted(set(scenario.witnesses) - frozenset().union(*(t.witnessed for t in tried))))
        best = min((t for t in tried if t.trail), key=lambda t: t.found_at or 0, default=None)
        needed = min((SILENCE * t.found_at for t in self._flawed(scenario) if t.found_at), default=0)
        if best is None or best.trail is None:
            enough = sum(t.runs for t in tried) >= needed or any(t.exhausted for t in tried)
            as_expected = scenario.expected is None and not missing and enough
            return Row(scenario.name, scenario.title, scenario.expected, as_expected, None, None, tried,
                       missing=missing, runs_needed=needed, **self._checked(scenario))
        shrunk = shrink(best.trail)
        path = self.out / f"{scenario.name}.trail.jsonl"
        history, run = write_run(shrunk.trail, path)
        checked = self._checked(scenario)
        searched = not checked or checked["checked_steps"] is not None
        return Row(
            scenario.name, scenario.title, scenario.expected, scenario.expected == shrunk.trail.violates and searched,
            shrunk.trail.violates, run.verdict.reason or best.reason, tried, shrunk.had, shrunk.has, shrunk.proved,
            str(path), str(history), missing, needed,
            len(shrunk.trail.choices) - shrunk.has, shrunk.trail.back_to is not None, **checked,
        )

    def _checked(self, scenario: Scenario) -> dict[str, Any]:
        """Return what a search came to, as fields of a row; nothing where none was made."""
        if scenario.name not in self._searched:
            return {}
        return {"checked": scenario.checked, "checked_steps": self._searched[scenario.name]}


def write_run(trail: Trail, path: Path, runtime: str = "plain") -> tuple[Path, Run]:
    """Write a trail and the history of its replay beside it; return the history's path and the run."""
    model = trail.build()
    with HistoryFile(history_beside(path), header_of(trail, model, runtime)) as recorder:
        run = replay_plain(trail, recorder, Tables(model))
        recorder.end(run.verdict.to_json())
        trail.write(path)
    return recorder.path, run


def record_run(
    tables: Tables, plan: Plan, strategy: Strategy, path: Path, runtime: str = "plain",
    watch: Callable[[int], bool] | None = None, drive: Callable[[Session], Run] = drive,
) -> tuple[Path, Run]:
    """Make a run and write it down as it goes on, so that it may be long: the trail to `path`, the history beside it.

    `watch(steps)` hears how far the run is and says whether it should go on; one that is stopped is written as far as
    it went. Returns the history's path and the run. Raises Refusal, and writes nothing, where there is no room.
    """
    header = header_of(without_choices(tables.model, plan, strategy.name, strategy.seed), tables.model, runtime)
    with long_lived(), HistoryFile(history_beside(path), header) as recorder:
        run = drive(Session(tables, plan, strategy, recorder, watch, path.parent))
        recorder.end(run.verdict.to_json())
        run.trail.write(path)
    return recorder.path, run


def history_beside(trail: Path) -> Path:
    """Return the path of the history that belongs to a trail."""
    return trail.with_name(trail.name.removesuffix(".trail.jsonl") + ".history.jsonl")


@contextmanager
def _workers(processes: int, made: Any) -> Iterator[Executor | None]:
    """Give processes to work in, or None for none; they end when the block is left, at once where it is by an error."""
    if not processes:
        yield None
        return
    others = multiprocessing.active_children()
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(processes, context, initializer=_start_worker, initargs=(made,))
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            if process not in others:
                process.terminate()
        raise
    finally:
        executor.shutdown()


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Block Ctrl-C while workers start: they inherit that, so that none of them ever dies of it with a traceback."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker(made: Any) -> None:
    """A worker leaves Ctrl-C to the process that started it, and ends with it, however that ends."""
    global _MADE
    _MADE = made
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent()


_MADE: Any = None
"""In a worker: the counter of the runs made by all workers."""


def _work(task: Task) -> Tried:
    return carry_out(task, _MADE)


def end_with_parent() -> None:
    """Let this worker end with the process that started it, however that ends."""
    threading.Thread(target=_await_parent, daemon=True).start()


def _await_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _scenario(name: str) -> Scenario:
    scenario = find_scenario(name)
    assert scenario is not None
    return scenario
