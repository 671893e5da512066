"""The hunt: runs of every scenario, failures found, shrunk and written down, a scoreboard at the end.

A flawed scenario is as expected when some strategy finds its flaw; its repaired twin when no run fails, of so many
that they would have found the flaw several times (`BRIEF`, or `SILENCE` in a thorough hunt), or of fewer after a
complete search of this code; any other scenario when no claim fails and its witnesses are reached. An exception in
protocol code and, where a model names a spec, a step that is none of the spec's are findings like a violation. Runs are
spread over processes; what is done when the hunt is interrupted is kept.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from math import ceil
from pathlib import Path
from time import perf_counter
from typing import Any

import attrs

from harness.memo.interning import long_lived
from harness.model import Refusal, Scenario, find_scenario, scenarios
from harness.model.live import tell
from harness.model.registry import unknown_here
from harness.record import HistoryFile, Trail, header_of
from harness.record.search_results import searched
from harness.simulate.hunting.rows import ScoreboardRow
from harness.simulate.hunting.tasks import REFINEMENT, Check, Finished, Hold, LookAhead, Task, Tried, carry_out, finish
from harness.simulate.hunting.workers import counter, interrupts_held_back, workers
from harness.simulate.runs.plan import Plan, trail_of
from harness.simulate.runs.protocol_errors import RAISED
from harness.simulate.runs.run import Run
from harness.simulate.runs.session import Session, drive
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import DEFAULT, NAMES
from harness.simulate.strategies.portfolio import WAYS
from harness.simulate.strategies.strategy import Strategy
from harness.simulate.trails.replay import replay_plain

SILENCE, BRIEF = 20, 4
"""How often the runs of a repaired twin would have found the flaw, in a thorough hunt and in any other: where a flaw
is due four times, all runs miss it with a probability of 2 %."""
PART, LEAST = 4, 20
"""A row that is expected to have no violation gets this part of its scenario's runs, at least so many."""
GUIDED, FEWEST, FEWEST_SILENT = 8, 25, 6
"""A guided run looks ahead, which costs as much as several others: it gets this part of the runs, at least so many."""
FIRST = 300
"""The portfolio's runs of a flawed scenario; what it misses, all other strategies look for."""
HELD, HELD_THOROUGH = 60, 1_200
"""Runs without a violation, of all strategies but guided, that are checked against the spec, if the model names one."""


def chosen_scenarios(names: Iterable[str]) -> tuple[Scenario, ...]:
    """Return the scenarios of these names, or all of them; a repaired twin comes with its flawed row. Refusal."""
    names = tuple(names)
    known = tuple(scenarios())
    if not names:
        return known
    for name in names:
        if find_scenario(name) is None:
            names_of_all = [s.name for s in known]
            raise unknown_here(f"there is no scenario {name!r}", name, names_of_all, "", "kafka-proto list")
    return tuple(s for s in known if s.name in names or any(o.repaired == s.name for o in known if o.name in names))


class Hunt:
    """A hunt in progress; `progress(done runs, planned runs, message)` is called several times a second.

    With `processes` 0 all runs are made in this process. `rows` has what is finished, also where `interrupted` is set
    or `failure` says why the hunt could not go on; `finished` is called with each row as soon as it is done.
    """

    def __init__(
        self, chosen: tuple[Scenario, ...], out: Path, runs: int | None = None, processes: int | None = None,
        progress: Callable[[int, int, str], None] = lambda done, planned, message: None,
        check: Check | None = None, hold: Hold | None = None, look_ahead: LookAhead | None = None,
        thorough: bool = False, strategies: Sequence[str] = (),
        finished: Callable[[ScoreboardRow], None] = lambda row: None,
        on_trio: Callable[[Trail], Run] | None = None,
    ) -> None:
        self.chosen = chosen
        self.out = out
        self.runs = runs
        self.processes = min(os.cpu_count() or 1, 8) if processes is None else processes
        self.progress = progress
        self.check = check
        self.hold = hold
        self.look_ahead = look_ahead
        self.thorough = thorough
        self.in_turn = not strategies
        """Whether the portfolio comes first, and the others where it finds nothing."""
        self.strategies = tuple(dict.fromkeys(strategies)) or (DEFAULT,)
        self.finished = finished
        self.on_trio = on_trio
        self.rows: list[ScoreboardRow] = []
        self.interrupted = False
        self.failure: str | None = None
        self._times = SILENCE if thorough else BRIEF
        self._twins = {s.repaired for s in chosen if s.repaired}
        self._tried: dict[str, dict[str, Tried]] = {s.name: {} for s in chosen}
        self._asked: dict[str, set[str]] = {s.name: set() for s in chosen}
        """The strategies whose runs are made or have been."""
        self._found: dict[str, Tried | None] = {}
        self._began: dict[str, float] = {}
        self._topped: dict[str, float] = {}
        """Processor time of runs that were made once more, since the first ones did not reach all witnesses."""
        self._jobs: deque[HuntJob] = deque()
        self._made = counter()
        """The runs made so far, counted by all workers."""
        self._planned = sum(self._share(s, name) for s in chosen for name in self.strategies)

    def run(self) -> list[ScoreboardRow]:
        """Carry the hunt out and return the scoreboard's rows, in the order of the scenarios."""
        try:
            for scenario in sorted(self.chosen, key=lambda each: each.expected is None):  # findings come first
                if scenario.name not in self._twins:
                    shares = {name: self._share(scenario, name) for name in self.strategies}
                    self._jobs.extend(self._batches(scenario, shares))
            with workers(self.processes, self._made) as pool:
                self._work(pool)
        except KeyboardInterrupt:
            self.interrupted = True
        except Refusal as error:
            self.failure = str(error)
        except BrokenProcessPool:
            self.failure = "a worker process was killed, perhaps because memory ran out; hunt fewer scenarios at a time"
        order = [scenario.name for scenario in self.chosen]
        self.rows.sort(key=lambda row: order.index(row.scenario))
        return self.rows

    def _work(self, pool: Executor | None) -> None:
        """Carry jobs out until none remains; their results may be further jobs, which come first."""
        jobs = self._jobs
        pending: dict[Future[Any], HuntJob] = {}
        while jobs or pending:
            if pool is None:
                job = self._begun(jobs.popleft())
                job.then(job.call())
                self._report()
                continue
            with interrupts_held_back():
                while jobs and len(pending) < self.processes + 1:
                    job = self._begun(jobs.popleft())
                    pending[pool.submit(job.call)] = job
            done, _ = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
            self._report()
            for future in [future for future in pending if future in done]:
                pending.pop(future).then(future.result())
                self._report()

    def _begun(self, job: HuntJob) -> HuntJob:
        if job.scenario.name not in self._began:
            tell("scenario begun", "debug", scenario=job.scenario.name)
            self._began[job.scenario.name] = perf_counter()
        return job

    def _batches(self, scenario: Scenario, runs: Mapping[str, int]) -> list[HuntJob]:
        """Return the jobs that make the runs of a scenario under each strategy; guided runs learn by themselves."""
        self._asked[scenario.name].update(runs)
        alone = [name for name in runs if name != "guided"]
        held = 0
        if scenario.expected is None and self.hold is not None and alone:
            held = (HELD_THOROUGH if self.thorough else HELD) // len(alone)
        visiting = searched_before(scenario)["is_numbered"]
        batches = [[Task(scenario.name, name, runs[name], held, visiting) for name in alone],
                   [Task(scenario.name, name, runs[name]) for name in runs if name == "guided"]]
        return [HuntJob(scenario, partial(carry_out, batch, self.hold), partial(self._took, scenario, batch))
                for batch in batches if batch]

    def _took(self, scenario: Scenario, tasks: Sequence[Task], found: Sequence[Tried]) -> None:
        """Take in the results of tasks; go on with the scenario when all of its strategies are through."""
        tried = self._tried[scenario.name]
        for task, one in zip(tasks, found, strict=True):
            self._planned += one.runs - task.runs
            tried[one.strategy] = one
        if len(tried) < len(self._asked[scenario.name]):
            return
        if others := self._others(scenario):
            self._planned += sum(others.values())
            self._jobs.extendleft(self._batches(scenario, others))
            return
        again = self._topping_up(scenario)
        if again is not None:
            self._topped[scenario.name] = sum(one.cpu_seconds for one in tried.values())
            self._planned += sum(again.values())
            tried.clear()
            self._jobs.extendleft(self._batches(scenario, again))
            return
        best = self._found[scenario.name] = _worst(tried.values())
        self._hunt_twin(scenario)
        ahead = None if searched_before(scenario)["is_covered"] else self.look_ahead
        done = partial(finish, scenario.name, best, self.check, self.hold, ahead)
        self._jobs.appendleft(HuntJob(scenario, done, partial(self._judge, scenario)))

    def _others(self, scenario: Scenario) -> dict[str, int]:
        """Return the runs of the strategies that look for a flaw which the portfolio missed."""
        tried = self._tried[scenario.name]
        if not self.in_turn or scenario.expected is None or any(one.found_at for one in tried.values()):
            return {}
        return {name: self._share(scenario, name) for name in NAMES if name not in tried}

    def _topping_up(self, scenario: Scenario) -> dict[str, int] | None:
        """Return the runs of a scenario whose witnesses were not all reached by a part of them; None if they were."""
        tried = self._tried[scenario.name]
        runs = {name: self._share(scenario, name, whole=True) for name in tried}
        if scenario.name in self._topped or all(tried[name].runs >= number for name, number in runs.items()):
            return None
        found = any(one.found_at for one in tried.values())
        return runs if _missing(scenario, tried.values()) and not found else None

    def _hunt_twin(self, flawed: Scenario) -> None:
        """Begin with the repaired twin as soon as all scenarios that it repairs are through."""
        twin = next((s for s in self.chosen if s.name == flawed.repaired), None)
        if twin is not None and all(s.name in self._found for s in self._flawed(twin)):
            runs = self._silence(twin)
            self._planned += sum(runs.values()) - sum(self._share(twin, name) for name in self.strategies)
            self._jobs.extendleft(reversed(self._batches(twin, runs)))

    def _report(self) -> None:
        self.progress(self._made.value, self._planned, f"{len(self.rows)} of {len(self.chosen)} scenarios")

    def _share(self, scenario: Scenario, strategy: str, whole: bool = False) -> int:
        """Return how many runs a scenario gets under one strategy, or would get in a thorough hunt."""
        if self.runs is not None:
            return self.runs
        brief = not self.thorough and not whole
        few = scenario.expected is None and brief
        runs = max(scenario.runs // PART, min(scenario.runs, LEAST)) if few else scenario.runs
        if strategy == "portfolio":  # it stands for as many strategies
            return FIRST if scenario.expected is not None else len(WAYS) * runs
        if strategy != "guided":
            return -(-runs // 2) if brief and not few and strategy != "random" else runs
        return max(runs // GUIDED, min(runs, FEWEST_SILENT if few else FEWEST))

    def _silence(self, twin: Scenario) -> dict[str, int]:
        """Return how many runs of a repaired twin must find no violation under each strategy.

        In a thorough hunt, `SILENCE` times as many as each strategy took to find the flaw. Else its share, and as many
        more of the strategy that finds the flaw with the least work as it takes to be due `BRIEF` times; but where a
        search of this code covered the twin, only those that are checked against the spec: there is nothing to find.
        """
        runs = {name: self._share(twin, name) for name in self.strategies}
        if self._is_proved(twin):
            return runs if self.runs is not None else {name: min(share, HELD) for name, share in runs.items()}
        found = self._found_at(twin)
        if self.thorough:
            return {name: max(runs.get(name, 0), SILENCE * found.get(name, 0)) for name in {**runs, **found}}
        due = sum(runs.get(name, 0) / at for name, at in found.items())
        if found and due < BRIEF:
            best = min(found, key=lambda name: found[name] * (GUIDED if name == "guided" else 1))
            runs[best] = runs.get(best, 0) + ceil((BRIEF - due) * found[best])
        return runs

    def _is_proved(self, scenario: Scenario) -> bool:
        return not self.thorough and bool(searched_before(scenario)["is_covered"])

    def _found_at(self, twin: Scenario) -> dict[str, int]:
        """Return how many runs each strategy took, at most, to find a flaw that a repaired twin lacks."""
        found: dict[str, int] = {}
        for flawed in self._flawed(twin):
            for name, tried in self._tried[flawed.name].items():
                if tried.found_at and tried.violated == flawed.expected:
                    found[name] = max(found.get(name, 0), tried.found_at)
        return found

    def _flawed(self, twin: Scenario) -> list[Scenario]:
        return [s for s in self.chosen if s.repaired == twin.name]

    def _judge(self, scenario: Scenario, finished: Finished) -> None:
        """Judge a scenario, and write down what was found."""
        tried = tuple(sorted(self._tried[scenario.name].values(), key=lambda one: NAMES.index(one.strategy)))
        best = self._found[scenario.name]
        missing = _missing(scenario, tried)
        found = self._found_at(scenario)
        cpu = sum(t.cpu_seconds for t in tried) + finished.cpu_seconds + self._topped.get(scenario.name, 0)
        row = ScoreboardRow(
            scenario.name, scenario.title, scenario.expected, False, None, None, tried, missing=missing,
            runs_needed=0 if self._is_proved(scenario) else min((self._times * at for at in found.values()), default=0),
            flawed=next((s.name for s in self._flawed(scenario)), None),
            due=sum(t.runs / found[t.strategy] for t in tried if t.strategy in found) if found else None,
            cpu_seconds=cpu, in_turn=self.in_turn, ahead=finished.ahead, **searched_before(scenario),
        )
        if self.check is not None and scenario.checked is not None:
            row = attrs.evolve(row, checked=scenario.checked, checked_steps=finished.checked_steps)
        row = self._silent(row, scenario.mode) if best is None else self._written(row, best, finished)
        row = attrs.evolve(row, seconds=perf_counter() - self._began[scenario.name])
        self.rows.append(row)
        tell("scenario hunted", "info" if row.as_expected else "error", scenario=row.scenario, violates=row.violated,
             expected=row.expected, runs=row.runs, trail=row.trail, seconds=round(row.seconds, 3))
        self.finished(row)

    def _silent(self, row: ScoreboardRow, mode: str) -> ScoreboardRow:
        """Return the row of a scenario in which no run found anything.

        What a search found besides counts in free mode only: a search takes steps in orders that no time allows.
        """
        enough = (row.due is None or row.due >= self._times or any(t.exhausted for t in row.tried)
                  or (row.is_covered and not self.thorough))
        bad = mode == "free" and row.ahead is not None and row.ahead.is_bad
        return attrs.evolve(row, as_expected=row.expected is None and not row.missing and enough and not bad)

    def _written(self, row: ScoreboardRow, best: Tried, finished: Finished) -> ScoreboardRow:
        """Return the row of a scenario with a finding, and write the finding down."""
        row = attrs.evolve(row, violated=best.violated, reason=finished.reason)
        shrunk = finished.shrunk
        if shrunk is None:
            return row
        path = self.out / f"{row.scenario}.trail.jsonl"
        history, run = write_run(shrunk.trail, path)
        searched = row.checked is None or row.checked_steps is not None
        same = None if self.on_trio is None else self.on_trio(shrunk.trail).digest == run.digest
        expected = row.expected is not None and row.expected == best.violated
        return attrs.evolve(
            row, as_expected=expected and searched and same is not False, same_on_trio=same,
            reason=finished.reason if best.violated == REFINEMENT else run.verdict.reason or finished.reason,
            steps_found=shrunk.had, steps_shrunk=shrunk.has, proved_shortest=shrunk.proved, trail=str(path),
            history=str(history), fair_steps=len(shrunk.trail.choices) - shrunk.has,
            fair_cycle=shrunk.trail.back_to is not None,
        )


@attrs.frozen
class HuntJob:
    """A worker's task for a scenario, and the function that takes its result."""

    scenario: Scenario
    call: Callable[[], Any]
    then: Callable[[Any], None]


def searched_before(scenario: Scenario) -> dict[str, Any]:
    """Return what a row says of an exhaustive search of its scenario, if the package of its model keeps one."""
    found = searched(scenario.name)
    covered = found is not None and found.covers(scenario) and found.is_of_this_code
    return {"searched": found, "is_covered": covered,
            "is_numbered": covered and found is not None and found.numbers(scenario)}


def _worst(tried: Iterable[Tried]) -> Tried | None:
    """Return the finding that a row shows: an exception, else the one that took the fewest runs.

    Which worker was done first makes no difference.
    """
    found = [one for one in tried if one.found_at]
    return min(found, key=lambda one: (one.violated != RAISED, one.found_at or 0, NAMES.index(one.strategy)),
               default=None)


def _missing(scenario: Scenario, tried: Iterable[Tried]) -> tuple[str, ...]:
    """Return the witnesses that no run reached."""
    return tuple(sorted(set(scenario.witnesses) - frozenset().union(*(t.witnessed for t in tried))))


def write_run(trail: Trail, path: Path, runtime: str = "plain") -> tuple[Path, Run]:
    """Write a trail and the history of its replay next to it; return the history's path and the run."""
    model = trail.build()
    with HistoryFile(history_beside(path), header_of(trail, model, runtime)) as recorder:
        run = replay_plain(trail, recorder, Tables(model))
        recorder.end(run.verdict.to_json())
        attrs.evolve(trail, choices=run.trail.choices).write(path)
    return recorder.path, run


def record_run(
    tables: Tables, plan: Plan, strategy: Strategy, path: Path, runtime: str = "plain",
    watch: Callable[[int], bool] | None = None, drive: Callable[[Session], Run] = drive,
) -> tuple[Path, Run]:
    """Make a run and write it down as it goes on, so that it may be long: the trail to `path`, the history next to it.

    `watch(steps)` hears how far the run is and says whether it should go on; a run that is stopped is written as far as
    it went. Returns the history's path and the run. Raises Refusal, and writes nothing, if there is no room.
    """
    header = header_of(trail_of(tables.model, plan, strategy.name, strategy.seed), tables.model, runtime)
    with long_lived(), HistoryFile(history_beside(path), header) as recorder:
        run = drive(Session(tables, plan, strategy, recorder, watch, path.parent))
        recorder.end(run.verdict.to_json())
        run.trail.write(path)
    return recorder.path, run


def history_beside(trail: Path) -> Path:
    """Return the path of the history that belongs to a trail."""
    return trail.with_name(trail.name.removesuffix(".trail.jsonl") + ".history.jsonl")
