"""A strategy that decides for a while in a person's place: which step comes next, and when it has gone far enough."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.demo.session.branches import Mending, StepRecord, mending
from harness.model import Kind, Refusal, unknown
from harness.record.wording import counted
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.timing import Timetable, Timing
from harness.simulate.states.nodes import Node, Option
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import Strategies
from harness.simulate.strategies.chance import Chance
from harness.simulate.strategies.strategy import RandomStrategy, Strategy, Watcher

STRATEGIES = ("random", "pct", "guided")
WATCHED = 10
"""Steps a second by default: a run that can be watched."""
ONE_FAULT_IN = 7
"""Where faults are rare, one in so many steps is a fault or its mending."""
FAULTY = (Kind.FAULT, Kind.HEAL)
ENOUGH = "that is how many it was to take"
"""Why a run ends that took the steps that were asked for."""
FASTEST = 1_000
"""Steps a second that may be asked for; 0 means as fast as possible."""


class StrategyRunner:
    """Decides as one of the strategies does; in timed mode virtual time decides, as in a simulation."""

    def __init__(self, tables: Tables, plan: Plan, generous: bool, speed: int = WATCHED) -> None:
        self.tables = tables
        self.plan = plan
        self.name, self.seed, self.inject_faults, self.speed = "random", 0, not generous, speed
        self.spares = False
        """Whether a person's own faults are left alone: neither healed nor restarted."""
        self.outcome: str | None = None
        """The outcome of the last run, in a sentence, if there is something to say."""
        self._began = 0
        """The step at which the last run began."""
        self._rare = generous
        """Whether faults are rare: where every fault may hit everybody, most of what is possible is a fault."""
        self.until = "violation"
        self.running = False
        self.left = 0
        """Steps that the run may still take."""
        self.trouble: str | None = None
        """Why the last run broke off, where the protocol failed."""
        self._strategy: Strategy = RandomStrategy(0)
        self._fresh = False
        self._decided = False
        """Whether the next step was decided here, so that the time of it is known."""
        self.timetable: Timetable | None = None

    def set(self, name: str, seed: int, inject_faults: bool, speed: int, spares: bool) -> None:
        """Choose what decides from now on. Raises Refusal."""
        if name not in STRATEGIES:
            raise Refusal(unknown(f"there is no strategy {name!r} here", name, STRATEGIES, "the strategies are"))
        if not 0 <= speed <= FASTEST:
            raise Refusal(f"expected a speed of 0 (as fast as possible) to {FASTEST} steps a second, found {speed}")
        if seed < 0:
            raise Refusal(f"expected a seed of at least 0, found {seed}")
        self.name, self.seed, self.inject_faults, self.speed, self.spares = name, seed, inject_faults, speed, spares

    def begin_again(self) -> None:
        """Let the strategy decide as it does from its seed on."""
        self._fresh = True
        made = Strategies(self.name).run(self.seed)
        assert made is not None, "only a systematic search comes to an end"
        self._strategy = made

    def resume(self, at_us: int | None, names: Iterable[str]) -> None:
        """Go on from another state of the run, after steps of these names."""
        self._fresh = True
        if self.plan.mode == "timed":
            self.timetable = Timetable(self.tables, Timing(), self._strategy.chance)
            self.timetable.resume(at_us or 0, names)

    @staticmethod
    def check(until: str) -> None:
        """Raise Refusal unless this says until when to run."""
        kind, _, what = until.partition(":")
        known = until in ("violation", "end") or (kind == "action" and what) or (kind == "step" and what.isdecimal())
        if not known:
            raise Refusal(f"expected to run until violation, end, action:NAME or step:N, found {until!r}")

    def start(self, until: str, most: int, at: int) -> None:
        """Begin to run, at a step."""
        self.until, self.left, self.running, self.trouble, self.outcome = until, most, True, None, None
        self._began = at

    def end(self, record: StepRecord, why: str, claimed: frozenset[str]) -> None:
        """End the run at a step, and put its outcome into words; `why` is empty if it got as far as it was to."""
        self.running = False
        self.outcome = outcome(self.until, record, record.n - self._began, why, claimed)

    def _may(self, option: Option, own_faults: frozenset[Mending]) -> bool:
        if option.kind is Kind.FAULT:
            return self.inject_faults
        heals = self.spares and option.kind is Kind.HEAL and bool(own_faults)
        return not (heals and mending(option.choice.step) in own_faults)

    def why_none(self, node: Node, own_faults: frozenset[Mending]) -> str:
        """Return why nothing of what is possible may be taken."""
        if not node.options:
            return "no step is possible any more"
        left_alone = any(option.kind is Kind.HEAL and not self._may(option, own_faults) for option in node.options)
        if left_alone:
            return "only your own faults could be mended, and those are left alone"
        only = "nothing but faults is possible any more"
        return only if self.inject_faults else f"{only}, and faults are off"

    def decide(self, node: Node, timers: int, own_faults: frozenset[Mending] = frozenset()) -> int:
        """Return the index of the option to take, or -1 if there is no option; `own_faults` are left alone."""
        if self._fresh and isinstance(self._strategy, Watcher):
            self._strategy.begin(self.tables, node)
        self._fresh = False
        kept = [n for n, option in enumerate(node.options) if self._may(option, own_faults)]
        if self.timetable is None and timers >= self.plan.timeouts:
            kept = [n for n in kept if not node.options[n].is_timer] or kept
        if self._rare:
            kept = self._progress(node, kept, own_faults)
        if not kept:
            return -1
        self._decided = True
        options = [node.options[n] for n in kept]
        return kept[self.timetable.pick(node, options) if self.timetable is not None else self._strategy.pick(options)]

    def _progress(self, node: Node, kept: list[int], own_faults: frozenset[Mending]) -> list[int]:
        """Return which of these get the protocol on: a fault once in a while, none if the protocol is at its end."""
        if self.timetable is not None:
            # Whatever is due keeps its moment; most of the time no fault is among it.
            others = [n for n in kept if node.options[n].kind is not Kind.FAULT]
            return others if others and self._strategy.chance.index(ONE_FAULT_IN, "a fault") else kept
        if all(node.options[n].kind in FAULTY for n in kept) and self.until in ("violation", "end"):
            # What mends comes before an end, and so do timers beyond their number.
            may = [n for n, option in enumerate(node.options) if self._may(option, own_faults)]
            heals = [n for n in may if node.options[n].kind is Kind.HEAL]
            return heals or [n for n in may if node.options[n].is_timer]
        return rarely_faults([node.options[n] for n in kept], kept, self._strategy.chance)

    def chose(self, node: Node, n: int) -> None:
        """Move virtual time to an option that a person picked."""
        self._decided = True
        if self.timetable is not None:
            self.timetable.choose(node, node.options, n)

    def took(self, option: Option, after: Node, at_us: int | None) -> None:
        """Take note of a step, and of when it was."""
        if self.timetable is not None:
            self.timetable.resume(at_us or 0, () if self._decided else (option.name,))
        self._decided = False
        if not self._fresh and isinstance(self._strategy, Watcher):
            self._strategy.took(option, after)

    def renewed(self, node: Node) -> None:
        """Take note that the tables started over."""
        if not self._fresh and isinstance(self._strategy, Watcher):
            self._strategy.renewed(node)

    def is_there(self, before: StepRecord, now: StepRecord, claimed: frozenset[str]) -> bool:
        """Say whether the last step is what the run was to go on until: a claim that begins to fail is a violation."""
        kind, _, what = self.until.partition(":")
        if kind == "action":
            return now.step is not None and now.step.action == what
        if kind == "step":
            return now.n >= int(what)
        return kind == "violation" and bool((now.failing.keys() - before.failing.keys()) & claimed)


def rarely_faults(options: Sequence[Option], kept: list[int], chance: Chance) -> list[int]:
    """Return the numbers of the options that are faults or mend them, once in a while, or of those of the protocol.

    What mends is chosen as often as what breaks: there are many faults, and most of the cluster should be up.
    """
    kinds = {kind: [n for n, option in zip(kept, options, strict=True) if option.kind is kind] for kind in FAULTY}
    others = [n for n, option in zip(kept, options, strict=True) if option.kind not in FAULTY]
    if others and (len(others) == len(kept) or chance.index(ONE_FAULT_IN, "a fault")):
        return others
    faults, heals = kinds[Kind.FAULT], kinds[Kind.HEAL]
    if not faults or not heals:
        return faults or heals or kept
    return heals if chance.index(2, "a mending") else faults


def outcome(until: str, record: StepRecord, steps: int, why: str, claimed: frozenset[str]) -> str | None:
    """Return the outcome of a run of so many steps, or None if it did just what it was to do."""
    kind, _, what = until.partition(":")
    ran = f"in {counted(steps, 'step')}"
    if kind == "violation":
        broken = sorted(name for name, since in record.since.items() if since == record.n and name in claimed)
        if not why:
            return f"{' and '.join(broken)} broke at step {record.n}"
        known = sorted(record.failing.keys() & claimed)
        no = f"no property but {' and '.join(known)}, broken before," if known else "no property"
        return f"{no} broke {ran}: {why}"
    if kind == "action":
        return f"{what} did not happen {ran}: {why}" if why else f"{what} happened at step {record.n}"
    if kind == "step":
        return f"step {what} was not reached: {why}" if why else None
    return f"the run ended after {counted(steps, 'step')}: {why}" if why != ENOUGH else None
