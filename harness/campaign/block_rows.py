"""The rows of a block: gathered while its runs are made, and turned into Arrow tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs
import pyarrow as pa
import pyarrow.compute as pc

from harness.campaign.cells import Cell
from harness.campaign.event_columns import EventColumns
from harness.campaign.schemas import EVENTS, SCHEMAS
from harness.record import Trail
from harness.record.files import compact
from harness.simulate.runs.run import Run, Verdict
from harness.simulate.strategies.coverage import UNMAPPED, Coverage
from harness.verify.isolation.anomalies import Breach

VIOLATED = ',"violated":'
NOT_JUDGED: Mapping[str, Any] = {}
"""The columns of a run whose clients nobody looked at."""


class TextColumn:
    """A column of repeated texts: numbers while it grows, sorted in the end, so that alike ones lie side by side."""

    def __init__(self) -> None:
        self._known: dict[str | None, int] = {}

    def number(self, text: str | None) -> int:
        """Return the number of a text."""
        return self._known.setdefault(text, len(self._known))

    def column(self, numbers: Sequence[int]) -> pa.Array:
        """Return the texts of these numbers."""
        texts = list(self._known)
        order = sorted(text for text in texts if text is not None)
        rank = {text: n for n, text in enumerate(order)}
        ranks = pa.array([None if text is None else rank[text] for text in texts], pa.int32())
        ranked = pc.take(ranks, pa.array(numbers, pa.int32()))
        return pa.DictionaryArray.from_arrays(ranked, pa.array(order, pa.string()))


class BlockRows:
    """The rows of a block: its runs, their events and violations, and what they reached."""

    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self.key = cell.key
        self._about = {
            "cell": self.key, "model": cell.model, "strategy": cell.strategy, "code": cell.code,
            "sizes": compact(cell.sizes), "settings": compact(cell.settings), "sweep": compact(cell.sweep),
        }
        self.actions: Counter[str] = Counter()
        """How often each action was taken."""
        self._rows: dict[str, list[dict[str, Any]]] = {
            "runs": [], "violations": [], "anomalies": [], "coverage": []}
        self._columns: dict[str, list[Any]] = {name: [] for name in EVENTS.names if name not in ("cell", "values")}
        self._texts = {name: TextColumn() for name in ("process", "kind", "action", "turn", "value", "violated")}
        self._values: list[int] = []
        self._ends = [0]
        self._known: dict[EventColumns, tuple[int, int, int, int, list[int]]] = {}
        self.failing = self._errors = self._steps = 0
        """How many runs violate something, how many ended in an error, and the steps of all."""

    def run(
        self, run: Run, digest: str, faults: list[str], kept: bool, covered: bool, wall_us: int,
        seen: Mapping[str, Any] = NOT_JUDGED,
    ) -> None:
        """Add a finished run; `seen` is what `clients` made of its clients."""
        verdict, trail = run.verdict, run.trail
        self.failing += not verdict.ok
        self._steps += len(trail.choices)
        self._add({
            "seed": trail.seed, "outcome": "ok" if verdict.ok else "violated", "violated": verdict.violated,
            "kind": verdict.kind, "reason": verdict.reason, "step": verdict.step, "steps": len(trail.choices),
            "fair_from": trail.fair_from, "digest": digest, "faults": faults, "witnessed": sorted(run.witnessed),
            "kept": kept, "covered": covered, "trail": None if verdict.ok else trail.text(), "wall_us": wall_us, **seen,
        })

    def poisoned(self, trail: Trail, error: str, covered: bool, wall_us: int) -> None:
        """Add a run that our own code did not bring to its end, with the choices so far."""
        self._errors += 1
        self._add({
            "seed": trail.seed, "outcome": "error", "steps": len(trail.choices), "fair_from": trail.fair_from,
            "kept": False, "covered": covered, "trail": trail.text(), "error": error, "wall_us": wall_us,
        })

    def recorded(
        self, seed: int, verdicts: Sequence[Verdict], steps: int, digest: str, faults: Mapping[int, str],
        actions: Mapping[int, str], trail: str | None, seen: Mapping[str, Any] = NOT_JUDGED,
    ) -> None:
        """Add a run that was recorded elsewhere; faults and the actions of violating steps by number of the step."""
        first = verdicts[0] if verdicts else Verdict()
        self.failing += bool(verdicts)
        self._steps += steps
        self._add({
            "seed": seed, "outcome": "violated" if verdicts else "ok", "violated": first.violated, "kind": first.kind,
            "reason": first.reason, "step": first.step, "steps": steps, "digest": digest, "kept": True,
            "covered": False, "faults": sorted(set(faults.values())), "trail": trail, "wall_us": 0, **seen,
        })
        for verdict in verdicts:
            step = verdict.step or 0
            before = sorted({name for n, name in faults.items() if n <= step})
            self.violation(seed, steps, attrs.evolve(verdict, step=step), actions.get(step), before)

    def _add(self, row: Mapping[str, Any]) -> None:
        """Add a row of a run, in which columns without a value are left out."""
        self._rows["runs"].append({**self._about, "faults": [], "witnessed": [], **row})

    def violation(self, seed: int, steps: int, verdict: Verdict, action: str | None, faults: list[str]) -> None:
        """Add the first violation of a claimed property by a run: in which step, and which faults came before."""
        self._rows["violations"].append({
            "cell": self.key, "seed": seed, "property": verdict.violated, "kind": verdict.kind, "step": verdict.step,
            "reason": verdict.reason, "action": action, "faults": faults, "steps": steps,
        })

    def clients(
        self, seed: int, found: Sequence[Breach], ended: Mapping[str, int], faults: Callable[[int], list[str]],
    ) -> Mapping[str, Any]:
        """Add what clients saw in a run that they must not see, by anomaly, and return the columns of its row.

        `faults` says which came up to a step.
        """
        by_name: dict[str, list[Breach]] = {}
        for one in found:
            by_name.setdefault(one.anomaly, []).append(one)
        for anomaly, (first, *more) in sorted(by_name.items()):
            self._rows["anomalies"].append({
                "cell": self.key, "seed": seed, "anomaly": anomaly, "property": first.property, "step": first.step,
                "reason": first.reason, "faults": faults(first.step), "cases": 1 + len(more),
                "proof": [str(step) for step in first.proof],
            })
        return {"anomalies": sorted(by_name), "ended": sorted(ended.items())}

    def events(self, seed: int, events: Iterable[tuple[int, int | None, EventColumns, str]]) -> None:
        """Add the events of a run: number, time, what happened, and the text of what failed after it."""
        columns, known = self._columns, self._known
        for n, at_us, what, failing in events:
            found = known.get(what)
            if found is None:
                found = known[what] = self._numbered(what)
            for name, number in zip(("process", "kind", "action", "turn"), found, strict=False):
                columns[name].append(number)
            self._values += found[4]
            self._ends.append(len(self._values))
            columns["seed"].append(seed)
            columns["n"].append(n)
            columns["at_us"].append(at_us)
            columns["violated"].append(self._texts["violated"].number(failing.removeprefix(VIOLATED) or None))

    def _numbered(self, what: EventColumns) -> tuple[int, int, int, int, list[int]]:
        texts = self._texts
        return (texts["process"].number(what.process), texts["kind"].number(what.kind),
                texts["action"].number(what.action), texts["turn"].number(what.turn),
                [texts["value"].number(value) for _, value in what.writes])

    def finish(self, first: int, coverage: Coverage | None, seeds: Sequence[int]) -> None:
        """Add what all runs of the block reached together; `seeds` are those of the runs that were counted."""
        reached: list[dict[str, Any]] = [
            {"kind": "action", "name": action, "count": count} for action, count in sorted(self.actions.items())
        ]
        if coverage is not None:
            reached += [{"kind": "offered", "name": action} for action in sorted(coverage.offered)]
            guards = coverage.tables.guards
            seen = sorted(guards.seen) if guards is not None else []
            reached += [{"kind": "guard", "name": str(guard), "outcome": outcome} for guard, outcome in seen]
            reached += [{"kind": "guard", "name": str(guard)} for guard in coverage.unseen()]
            states = [(int.from_bytes(key, "big", signed=True), seeds[run - 1])
                      for key, run in coverage.first.items() if key != UNMAPPED]
            reached += [{"kind": "state", "state": state, "seed": seed} for state, seed in sorted(states)]
        self._rows["coverage"] = [{**row, "cell": self.key, "first": first} for row in reached]

    @property
    def made(self) -> int:
        """How many runs there are."""
        return len(self._rows["runs"])

    @property
    def counts(self) -> Mapping[str, int]:
        """How many runs, failing runs, errors and steps there are."""
        return {"runs": self.made, "failing": self.failing, "errors": self._errors, "steps": self._steps}

    def tables(self) -> dict[str, pa.Table]:
        """Return the rows as tables by name."""
        tables = {name: pa.Table.from_pylist(rows, SCHEMAS[name]) for name, rows in self._rows.items()}
        tables["events"] = self._events()
        return tables

    def _events(self) -> pa.Table:
        columns, count = self._columns, len(self._columns["n"])
        values = self._texts["value"].column(self._values)
        made = {
            "cell": pa.array([self.key] * count, pa.string()),
            "values": pa.ListArray.from_arrays(pa.array(self._ends, pa.int32()), values),
        }
        for name, numbers in columns.items():
            if name in self._texts:
                made[name] = self._texts[name].column(numbers)
            else:
                made[name] = pa.array(numbers, EVENTS.field(name).type)
        return pa.table({name: made[name] for name in EVENTS.names})
