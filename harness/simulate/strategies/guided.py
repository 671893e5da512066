"""The guided strategy: what reached something new is kept, changed a little, and tried again.

A campaign keeps the trails that reached a new state of the spec, a new turn or a new outcome of a guard (`coverage`).
A run begins with one of them as it was or changed, as far as its steps still fit, or with nothing, and goes on in one
of several ways. Beginnings and ways that gained much per step of late are taken more often, none is given up.

Runs learn from those before them, so a run is known by its number in its campaign: the campaign made again from its
start, on fresh tables, makes it again. Its trail replays without any of that, as every trail does.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence

import attrs

from harness.record import Trail
from harness.simulate.states.nodes import Node, Option
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.chance import Chance, Led, Seeded, weighed
from harness.simulate.strategies.coverage import Coverage, Gain
from harness.simulate.strategies.strategy import UNFAIR, PctStrategy, Watcher

BEGINNINGS = ("nothing", "cut", "splice", "drop", "repeat", "insert", "swap")
"""What a run begins with: nothing, a kept trail up to something new in it, or a kept trail after a change."""
WAYS = ("novel", "random", "pct", "sparing", "gainful")
"""How it goes on: looking one step ahead, into states that no run has reached as long as there are any; as the
strategies of these names; at random, but rarely with a fault or perturbation (most faults come too early to matter);
like that, but rather by actions that often led to something new. The first spares and prefers actions, too."""
KEPT = 256
"""Trails that a campaign keeps; the one of least energy goes first."""
LONGEST = 2_000
"""Steps, and draws, of a run that are kept; those of its fair ending are as good as others."""
DRAWN = 3
"""Trails that are drawn to take the best of."""
SPARED = 12
"""One step in so many may be a fault or a perturbation, where a run spares them."""
LEFT = 0.97
"""The share of a beginning's or way's earlier gains that remains at each further one: it may be exhausted."""
TURN, GUARD = 4, 16
"""What a new turn and a new outcome of a guard are worth, in new states."""
CHOSEN = (99, 5)
"""How much more often the best beginning or way is chosen than one that gains nothing, and how sharply that falls."""
ACTED, LED = (19, 2), (999, 3)
"""The same for actions, where a run prefers those that gain, and where it looks ahead."""
RECENT, SHARE = 10, 0.7
"""Steps that led to something new, and the part of the credit for it that goes on from each to the one before it."""
DOUBT = 0.65
"""What an untried beginning or way is taken to gain, in parts of what the best one does."""
UNKNOWN = 1.0
"""The rate of an action that was never taken."""


@attrs.define(eq=False)
class KeptTrail:
    """A trail that reached something new: after which steps, what that was worth, and how often it was used."""

    labels: tuple[str, ...]
    draws: tuple[int, ...]
    news: tuple[int, ...]
    worth: float
    used: int = 0

    @property
    def energy(self) -> float:
        return self.worth / (1 + self.used)


@attrs.define(eq=False)
class Credit:
    """What a beginning, a way or an action gained, over how many steps."""

    gain: float = 0.0
    steps: float = 0.0

    def add(self, gain: float, steps: int, left: float = 1.0) -> None:
        """Count a gain over some steps, after all but a part of the earlier ones is forgotten."""
        self.gain = self.gain * left + gain
        self.steps = self.steps * left + steps

    @property
    def rate(self) -> float:
        return self.gain / self.steps if self.steps else math.inf


class GuidedSearch:
    """The runs of one guided search: what they reached, and what is kept of them."""

    def __init__(self) -> None:
        self.coverage: Coverage | None = None
        self.kept: list[KeptTrail] = []
        self.beginnings = {name: Credit() for name in BEGINNINGS}
        self.ways = {name: Credit() for name in WAYS}
        self.actions: dict[str, Credit] = {}
        """Credit per step: for what was new after an action, and less for what was new soon after that."""

    def begin(self, tables: Tables, start: Node) -> Coverage:
        """Count a run on some tables, which begins in some state."""
        if self.coverage is None or self.coverage.tables is not tables:
            self.coverage = Coverage(tables)
        self.coverage.begin(start)
        return self.coverage

    def rate(self, option: Option) -> float:
        """Return how much an option's action gained per step."""
        earned = self.actions.get(option.action)
        return earned.rate if earned is not None else UNKNOWN

    def acted(self, recent: Sequence[str], is_new: bool) -> None:
        """Count the last of a run's recent actions; if it led to something new, all of them have a share in that."""
        self.actions.setdefault(recent[-1], Credit()).add(0.0, 1)
        if is_new:
            credit = 1.0
            for action in reversed(recent):
                self.actions[action].add(credit, 0)
                credit *= SHARE

    def learn(self, run: GuidedStrategy, gain: Gain) -> None:
        """Take in what a finished run gained, and keep it if it reached something new."""
        worth = len(gain.states) + TURN * len(gain.turns) + GUARD * gain.guards
        gained = len(gain.states) + GUARD * gain.guards
        self.beginnings[run.beginning].add(gained, run.steps, LEFT)
        self.ways[run.way].add(gained, run.steps, LEFT)
        if gain:
            news = tuple(sorted({*gain.states, *gain.turns})) or (len(run.labels),)
            self.kept.append(KeptTrail(tuple(run.labels), tuple(run.led.drawn), news, worth))
        if len(self.kept) > KEPT:
            self.kept.remove(min(self.kept, key=lambda kept: kept.energy))


class GuidedStrategy(Watcher):
    """One run of a campaign."""

    name = "guided"

    def __init__(self, campaign: GuidedSearch, seed: int) -> None:
        self.seed = seed
        self.labels: list[str] = []
        """The steps so far, up to `LONGEST`."""
        self.steps = 0
        self._campaign, self._kept = campaign, campaign.kept
        self._seeded = chance = Seeded(seed)
        self.beginning, self._script = BEGINNINGS[0], list[str]()
        draws: tuple[int, ...] = ()
        if self._kept:
            fresh, *changed = (campaign.beginnings[name].rate for name in BEGINNINGS)
            if drawn(chance, doubted([fresh, max(changed)]), *CHOSEN):
                self.beginning = BEGINNINGS[1 + drawn(chance, changed, *CHOSEN)]
        if self.beginning != BEGINNINGS[0]:
            parent = self._drawn()
            parent.used += 1
            draws = parent.draws[: chance.index(len(parent.draws), "draws") + 1] if parent.draws else ()
            self._script = self._changed(parent)[::-1]
        self.led = Led(draws, chance, LONGEST)
        self.chance: Chance = self.led
        """The door for the run's other draws: the initial state; in timed mode the moments, which decide all."""
        self.way = WAYS[drawn(chance, doubted([campaign.ways[name].rate for name in WAYS]), *CHOSEN)]
        self._pct = PctStrategy(chance.index(1 << 30, "seed")) if self.way == "pct" else None
        self._recent: deque[str] = deque(maxlen=RECENT)

    def begin(self, tables: Tables, start: Node) -> None:
        self._coverage = self._campaign.begin(tables, start)
        self._node = start

    def renewed(self, node: Node) -> None:
        self._node = node

    def took(self, option: Option, after: Node) -> None:
        self._node = after
        self.steps += 1
        if self.steps <= LONGEST:
            self.labels.append(option.label)
        self._recent.append(option.action)
        self._campaign.acted(self._recent, self._coverage.took(option, after))

    def over(self, trail: Trail) -> None:
        self._campaign.learn(self, self._coverage.over())

    def pick(self, options: Sequence[Option]) -> int:
        script = self._script
        while script:
            label = script.pop()
            for n, option in enumerate(options):
                if option.label == label:
                    return n
        if self._pct is not None:
            return self._pct.pick(options)
        if self.way == "random":
            return self._seeded.index(len(options), "step")
        among = self._spared(options) or list(range(len(options)))
        if self.way == "sparing":
            return among[self._seeded.index(len(among), "step")]
        if self.way == "novel":
            among = [n for n in among if self._coverage.is_new_ahead(self._node, options[n])] or among
        rates = [self._campaign.rate(options[n]) for n in among]
        return among[weighed(self._seeded, weights(rates, *(LED if self.way == "novel" else ACTED)))]

    def _spared(self, options: Sequence[Option]) -> list[int]:
        """Return the options that are neither faults nor perturbations, most of the time."""
        if not self._seeded.index(SPARED, "spare"):
            return []
        return [n for n, option in enumerate(options) if option.kind not in UNFAIR]

    def _drawn(self) -> KeptTrail:
        """Return one of the kept trails: the one of most energy of a few."""
        few = [self._kept[self._seeded.index(len(self._kept), "kept trail")] for _ in range(DRAWN)]
        return max(few, key=lambda kept: kept.energy)

    def _changed(self, parent: KeptTrail) -> list[str]:
        """Return the labels that a run begins with: those of a kept trail up to something new in it, or changed."""
        chance, labels = self._seeded, list(parent.labels)
        cut = parent.news[chance.index(len(parent.news), "news")]
        if self.beginning == "cut" or not labels:
            return labels[:cut]
        at = chance.index(len(labels), "place")
        if self.beginning == "splice":
            other = self._drawn().labels
            return [*labels[:cut], *other[chance.index(len(other) + 1, "place") :]]
        if self.beginning == "drop":
            del labels[at]
        elif self.beginning == "repeat":
            labels.insert(chance.index(len(labels), "place"), labels[at])
        elif self.beginning == "insert":
            other = self._drawn().labels
            labels[at:at] = [other[chance.index(len(other), "step")]] if other else []
        else:
            labels[at : at + 2] = labels[at : at + 2][::-1]
        return labels[: max(cut, at + 2)]


def weights(rates: Sequence[float], top: int, sharpness: int) -> list[int]:
    """Return whole numbers for rates: 1 for one of nothing, `1 + top` for the highest."""
    most = max(rates, default=0.0) or 1.0
    return [1 + round(top * (rate / most) ** sharpness) for rate in rates]


def doubted(rates: Sequence[float]) -> list[float]:
    """Return rates with the unknown ones replaced by `DOUBT` of the highest; as they are if none is known."""
    most = max((rate for rate in rates if rate < math.inf), default=math.inf)
    return [most * DOUBT if rate == math.inf else rate for rate in rates]


def drawn(chance: Chance, rates: Sequence[float], top: int, sharpness: int) -> int:
    """Return the index of a rate, the high ones more often; an unknown rate is infinite, and taken first."""
    return rates.index(math.inf) if math.inf in rates else weighed(chance, weights(rates, top, sharpness))
