"""A line of the hunt's scoreboard: what was expected of a scenario, the outcome of its runs, what a silent one says."""

from __future__ import annotations

import shlex
from typing import Any

import attrs

from harness.model import Checked
from harness.record.search_results import Searched
from harness.record.short_search import Ahead
from harness.simulate.hunting.tasks import REFINEMENT, Tried


@attrs.frozen
class ScoreboardRow:
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
    """For a repaired twin: the runs without a violation that were asked for."""
    fair_steps: int = 0
    """The steps of the shrunk trail's fair ending, on top of those that it was shrunk to."""
    fair_cycle: bool = False
    """Whether the fair ending leads back to a state it had, so that it goes on for ever."""
    checked: Checked | None = None
    """The same flaw in a spec, which a search was made for."""
    checked_steps: int | None = None
    """The fewest steps to the flaw in the spec, or None if the search found nothing."""
    same_on_trio: bool | None = None
    """Whether the trail replays on the trio runtime with the same digest."""
    searched: Searched | None = None
    """What a search of this scenario's actors, or of its spec, found before, if its package keeps that."""
    is_covered: bool = False
    """Whether that search covered all of the scenario, with its code as it is."""
    is_numbered: bool = False
    """Whether it also counted just the states that runs may visit."""
    ahead: Ahead | None = None
    """If no run found anything: the result of a search that ends soon."""
    flawed: str | None = None
    """For a repaired twin: the scenario that it repairs."""
    due: float | None = None
    """How often these runs would find the flaw, if it were there and showed as often as it does in that scenario."""
    in_turn: bool = False
    """Whether strategies were tried one after the other, up to one that found something."""
    seconds: float = attrs.field(default=0.0, eq=False)
    """From the start of the first run until the row was judged."""
    cpu_seconds: float = attrs.field(default=0.0, eq=False)
    """Processor time of all that was done for it: runs, shrinking, a search of the spec."""

    @property
    def runs(self) -> int:
        return sum(tried.runs for tried in self.tried)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing was found, and nothing was expected."""
        return self.as_expected and not self.violated and not self.expected

    @property
    def missed(self) -> tuple[Tried, ...]:
        """The outcome of the strategies that did not find what another one, or a search, found or was expected to."""
        return tuple(t for t in self.tried if not t.found_at) if self.expected or self.violated else ()

    @property
    def first(self) -> Tried | None:
        """The outcome of the strategy that found something in the fewest runs."""
        return min((t for t in self.tried if t.found_at), key=lambda t: t.found_at or 0, default=None)

    @property
    def held(self) -> int:
        """Runs whose steps were all checked against the spec."""
        return sum(tried.held for tried in self.tried)

    @property
    def visited(self) -> int | None:
        """How many of the states that a search counted were visited by runs on the same tables, where both is known."""
        counted = [tried.visited for tried in self.tried if tried.visited is not None]
        return max(counted) if counted and self.is_numbered else None

    @property
    def spec(self) -> str | None:
        """The model that runs were checked against, if they were."""
        return next((tried.spec for tried in self.tried if tried.spec), None)

    @property
    def shows_from(self) -> int:
        """N for a silent row: a violation in one of N runs would have shown, but for a chance of 5 % (e ** -3)."""
        return self.runs // 3

    @property
    def replay(self) -> str | None:
        """The command that shows what was found once more: a step that leaves the spec is for `verify` to tell."""
        command = "verify" if self.violated == REFINEMENT else "replay"
        return f"kafka-proto {command} {shlex.quote(self.trail)}" if self.trail else None

    def to_json(self) -> dict[str, Any]:
        """Return the row as a JSON object."""
        return {
            "scenario": self.scenario, "title": self.title, "expected": self.expected,
            "as_expected": self.as_expected, "violated": self.violated, "reason": self.reason, "runs": self.runs,
            "strategies": {
                t.strategy: {"runs": t.runs, "steps": t.steps, "found_at": t.found_at, "exhausted": t.exhausted,
                             "held": t.held, "seconds": round(t.seconds, 3), "cpu_seconds": round(t.cpu_seconds, 3)}
                for t in self.tried
            },
            "steps_found": self.steps_found, "steps_shrunk": self.steps_shrunk,
            "proved_shortest": self.proved_shortest, "trail": self.trail, "history": self.history,
            "same_on_trio": self.same_on_trio,
            "fair_steps": self.fair_steps, "fair_cycle": self.fair_cycle, "replay": self.replay,
            "missing_witnesses": list(self.missing),
            "silent_runs_needed": self.runs_needed, "findings_due": None if self.due is None else round(self.due, 2),
            "flawed": self.flawed, "spec": self.spec, "held": self.held,
            "seconds": round(self.seconds, 3), "cpu_seconds": round(self.cpu_seconds, 3),
            "searched": None if self.searched is None else {**self.searched.to_json(), "covers": self.is_covered},
            "visited": self.visited,
            "ahead": None if self.ahead is None else self.ahead.to_json(),
            "missed_by": [t.strategy for t in self.missed],
            "checked": None if self.checked is None else {
                "model": self.checked.model, "sizes": dict(self.checked.sizes),
                "settings": dict(self.checked.settings), "violates": self.checked.violates,
                "steps": self.checked_steps,
            },
        }
