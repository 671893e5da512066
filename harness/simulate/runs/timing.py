"""Virtual time: how long messages travel, actors think and timers run, drawn through the door for chance.

All times are integers in microseconds. In timed mode the earliest event happens next; time never depends on the clock
of the machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from harness.model import Kind, Model, Timed
from harness.simulate.states.nodes import Node, Option
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.chance import Chance

MS = 1000
BEGIN = {"partition": "Partition", "one_way": "Cut", "pause": "Pause", "crash": "Crash", "skew": "SkewClock"}
END = {"partition": "Heal", "one_way": "Heal", "pause": "Resume", "crash": "Restart", "skew": "SetClock"}
"""The steps that begin a timed fault, and that mend it."""


@attrs.frozen
class Spread:
    """A uniform distribution over [low, high]; `tail` percent of the draws are ten times as long."""

    low_us: int
    high_us: int
    tail: int = 0

    def draw(self, chance: Chance, label: str) -> int:
        """Draw one duration in microseconds."""
        at = self.low_us + chance.index(self.high_us - self.low_us + 1, label)
        if self.tail and chance.index(100, label) < self.tail:
            return at * 10
        return at


@attrs.frozen
class Timing:
    """The distributions of one simulation."""

    latency: Spread = Spread(1 * MS, 10 * MS, tail=5)
    """A message on a link that is not reliable."""
    local: Spread = Spread(50, 500)
    """A message on a reliable link, a process's own step."""
    timeout: Spread = Spread(60 * MS, 80 * MS)
    """A timer, by the true clock; a skewed one runs at its own speed."""
    think: Spread = Spread(1 * MS, 20 * MS)
    """An application between two commands."""
    perturb: Spread = Spread(1 * MS, 400 * MS)
    """An election, a fault of the budget."""
    heal: Spread = Spread(20 * MS, 200 * MS)
    """A mending: release, heal, resume, restart."""


class Timetable:
    """When each possible step of a run happens: drawn when it becomes possible, forgotten when it no longer is."""

    def __init__(self, tables: Tables, timing: Timing, chance: Chance) -> None:
        self._tables = tables
        self._timing = timing
        self._chance = chance
        self._due: dict[str, int] = {}
        self._begins = _timed_rules(tables.model)
        self._ends: dict[str, int] = {}
        """When the timed faults that have begun are mended, by the name of the step that does it."""
        self.now_us = 0

    def pick(self, node: Node, options: Sequence[Option]) -> int:
        """Return the index of the earliest option, and move the time there."""
        due = self._moments(node, options)
        best = min(range(len(options)), key=lambda n: (due[options[n].label], n))
        self._move(due, options[best])
        return best

    def choose(self, node: Node, options: Sequence[Option], n: int) -> None:
        """Move the time to option n, which the caller picked; what was due before it is late."""
        self._move(self._moments(node, options), options[n])

    def resume(self, now_us: int, names: Iterable[str]) -> None:
        """Go on from a moment in the middle of a run, after steps of these names."""
        self.now_us = now_us
        for name in names:
            self._taken(name)

    def _moments(self, node: Node, options: Sequence[Option]) -> dict[str, int]:
        """Return when each option happens, by label."""
        due: dict[str, int] = {}
        for option in options:
            known = self._moment(option)
            if known is None:
                known = self._due.get(option.label)
            due[option.label] = known if known is not None else self._draw(node, option)
        return due

    def _move(self, due: dict[str, int], option: Option) -> None:
        self._due = due
        self.now_us = max(self.now_us, due.pop(option.label))
        self._taken(option.name)

    def _moment(self, option: Option) -> int | None:
        """Return when a timed fault wants an option, which may have been impossible at that time; None if none does."""
        begins = self._begins.get(option.name)
        moment = begins[0].at_ms * MS if begins else self._ends.get(option.name)
        return None if moment is None else max(self.now_us, moment)

    def _taken(self, name: str) -> None:
        """Note that a step is taken: it may begin a timed fault, which then has a moment to end, or be that end."""
        self._ends.pop(name, None)
        if begins := self._begins.get(name):
            timed = begins.pop(0)
            if timed.until_ms is not None:
                self._ends[f"{END[timed.kind]}({','.join(sorted(timed.who))})"] = timed.until_ms * MS

    def _draw(self, node: Node, option: Option) -> int:
        timing, chance = self._timing, self._chance
        message = option.choice.step.consumed
        match option.kind:
            case Kind.TIMER:
                spread, percent = timing.timeout, self._clock(node, option.process)
                return self.now_us + spread.draw(chance, "timeout") * 100 // percent
            case Kind.COMMAND:
                spread = timing.think
            case Kind.PERTURBATION | Kind.FAULT:
                spread = timing.perturb
            case Kind.HEAL if (delay_ms := self._ruled_delay(node, option)) is not None:
                return self.now_us + delay_ms * MS
            case Kind.HEAL:
                spread = timing.heal
            case _ if message is None or self._tables.model.routes.of(message).network.is_reliable:
                spread = timing.local
            case _:
                spread = timing.latency
        return self.now_us + spread.draw(chance, "duration")

    def _ruled_delay(self, node: Node, option: Option) -> int | None:
        """Return the delay that a rule gives to the message that an option releases, in milliseconds."""
        rules = [rule for rule in self._tables.model.faults.rules if rule.kind == "delay"]
        if option.action != "Release" or not rules:
            return None
        waiting = self._tables.value(node, option.process.replace("network", "held", 1))
        message = next(message for message in waiting if message.brief() == option.choice.step.detail)
        return next((rule.delay_ms for rule in rules if rule.fits(message)), None)

    def _clock(self, node: Node, process: str) -> int:
        """Return the speed of an actor's clock in percent."""
        if not self._tables.model.faulty:
            return 100
        return int(self._tables.value(node, f"gate[{process}]").skew)


def _timed_rules(model: Model) -> dict[str, list[Timed]]:
    """Return the timed faults of a model by the name of the step that begins them, the earliest first."""
    begins: dict[str, list[Timed]] = {}
    for timed in sorted(model.faults.timed, key=lambda timed: timed.at_ms):
        begins.setdefault(f"{BEGIN[timed.kind]}({','.join(timed.args)})", []).append(timed)
    return begins
