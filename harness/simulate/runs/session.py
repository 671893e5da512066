"""One run: what is decided next, when it ends, and what it violated. Knows no runtime; both drive it step by step.

A run has a main part (the strategy decides; perturbations and faults happen) and, where liveness is claimed, a fair
ending: nothing perturbs any more, everything is mended, and the step not taken for the longest time comes next, until
nothing can happen, a state repeats with the same order of turns (a cycle that would go on for ever), or a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.model import Kind, Model, Refusal, Value
from harness.record import Chosen, ChosenInput, Recorder, SpooledChoices
from harness.record.fields import LONGEST_SHOWN
from harness.simulate.runs.fair_ending import pending_for_ever
from harness.simulate.runs.plan import Plan, trail_of
from harness.simulate.runs.protocol_errors import KIND, RAISED, sentence
from harness.simulate.runs.run import Run, Verdict
from harness.simulate.runs.timing import Timetable
from harness.simulate.states.nodes import Node, Option
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import UNFAIR, Strategy, Watcher

FAIR_BOUND = 2_000
"""Steps of a fair ending after which what is still pending counts as never."""
PAUSE = 256
"""Steps after which a run looks up: are the tables full, should it report how far it is, or stop?"""
LONG = 10_000
"""Runs that may be longer than this keep their choices in a temporary file."""


class Session:
    """The state of one run in progress. `decide` says which option comes next; `took` records that it was taken."""

    def __init__(
        self, tables: Tables, plan: Plan, strategy: Strategy, recorder: Recorder | None = None,
        watch: Callable[[int], bool] | None = None, folder: Path | None = None,
    ) -> None:
        self.tables = tables
        self.watch = watch
        """Called now and then with the number of steps taken; says whether to go on."""
        self.stopped = False
        self.error: Exception | None = None
        """The exception of protocol code."""
        self.model: Model = tables.model
        self.plan = plan
        self.strategy = strategy
        self.recorder = recorder
        self.allowed_commands: frozenset[str] | None = None
        """With an application attached: the labels of the commands it is waiting for."""
        self.by_hand = False
        """With an application attached: what the environment does is its affair while it runs, not the strategy's."""
        self.held = False
        """With an application that is still running: the fair ending must wait for it."""
        if tables.is_full:
            tables.start_over()
        count = tables.initial_count
        self.initial = strategy.chance.index(count, "initial state") if count > 1 else 0
        self.labels: list[Chosen] | SpooledChoices = SpooledChoices(folder) if plan.steps > LONG else []
        self.verdicts: dict[str, Verdict] = {}
        self.node = self._started(self.initial)
        self.watcher = strategy if isinstance(strategy, Watcher) else None
        if self.watcher is not None:
            self.watcher.begin(tables, self.node)
        self.fair_from: int | None = None
        self.back_to: int | None = None
        self._timers_left = plan.timeouts
        self._timetable = Timetable(tables, plan.timing, strategy.chance) if plan.mode == "timed" else None
        self.temporal = tuple(p for p in tables.temporal if p.name in plan.claims)
        self.witnessed: set[str] = set()
        self._turns: dict[str, int] = {}
        self._seen: dict[tuple[Any, ...], int] = {}
        self.fair_nodes: list[Node] = []
        if recorder is not None:
            recorder.event((0, self.at_us, tables.beginning(self.node), tables.failing_text(self.node)))
        self._judge(self.node)

    @property
    def steps(self) -> int:
        return len(self.labels)

    @property
    def at_us(self) -> int | None:
        return self._timetable.now_us if self._timetable is not None else None

    def _started(self, initial: int) -> Node:
        """Return the node of an initial state; if protocol code raises there, it has no options."""
        try:
            return self.tables.start(initial)
        except Refusal:
            raise
        except Exception as error:
            self._raised(error)
            return self.tables.bare(initial)

    def follow(self, n: int) -> Node | None:
        """Return the node that option n of the present one leads to; None if protocol code raises: the run is over.

        What it raises is a finding: the trail ends with this option, and violates `Exception`.
        """
        node = self.node
        try:
            after = node.succ[n] or self.tables.follow(node, n)
            if node.reached[n] is None:
                self.tables.reach(node, n, after)
        except Refusal:
            raise
        except Exception as error:
            self._fell(n, error)
            return None
        return after

    def take(self, n: int) -> None:
        """Take option n of the present node."""
        self._advance(len(self.labels) + 1, n, self.at_us)
        if not len(self.labels) % PAUSE and not self.stopped:
            self._pause()

    def took(self, n: int, after: Node) -> None:
        """Take note that option n of the present node was taken, and led to `after`, which the tables know."""
        self.take(n)

    def give(self, process: str, value: Value) -> None:
        """Give a process input from outside, and take the one step that it makes possible, between two others.

        Raises Refusal if the main part of the run is over, or if the process cannot take the value now.
        """
        if self.offer(process, value):
            self.take(0)

    def offer(self, process: str, value: Value) -> bool:
        """Let what input from outside makes possible be the only option of the present state.

        False if protocol code raises: the run is over. Raises Refusal as `give` does.
        """
        if not self.may_go_on:
            raise Refusal(f"the run is over, so {process} cannot be given anything; begin another run")
        came = ChosenInput.of(process, value)
        node = self._with_input(came)
        if node is None:
            return False
        if len(node.options) != 1:
            raise Refusal(cannot_take(came, node.options))
        self.node = node
        return True

    def _with_input(self, came: ChosenInput) -> Node | None:
        """Return the present node with what input makes possible; None if protocol code raises: the run is over."""
        try:
            return self.tables.with_input(self.node, came)
        except Refusal:
            raise
        except Exception as error:
            self.labels.append(Chosen(f"Input({came.process})", self.at_us, input=came))
            self._raised(error)
            return None

    def _fell(self, n: int, error: Exception) -> None:
        """Record that protocol code raised when option n of the present node was taken."""
        at_us, option = self.at_us, self.node.options[n]
        self.labels.append(option.chosen if at_us is None else Chosen.of(option.label, option.choice.step, at_us))
        if self.recorder is not None:
            with suppress(Exception):  # where it was the step itself that failed there is nothing to tell of it
                self.recorder.event((len(self.labels), at_us, self.tables.happening(self.node, n), ""))
        self._raised(error)

    def _raised(self, error: Exception) -> None:
        self.stopped, self.error = True, error
        self.verdicts.setdefault(RAISED, Verdict(RAISED, sentence(error), len(self.labels), KIND))

    def decide(self) -> int:
        """Return the index of the node's option to take next, or -1 when the run is over."""
        if self.stopped or (self.verdicts and self.plan.stop_at_violation):
            return -1
        if self.fair_from is None:
            if len(self.labels) < self.plan.steps and (n := self._decide_main()) >= 0:
                return n
            if self.held or not self.temporal:
                return -1
            self.fair_from = len(self.labels)
        return self._decide_fairly()

    @property
    def may_go_on(self) -> bool:
        """Whether the main part is not over."""
        over = self.stopped or self.fair_from is not None or (self.verdicts and self.plan.stop_at_violation)
        return not over and len(self.labels) < self.plan.steps

    def choose(self, n: int) -> None:
        """Take note that the caller picked an option of the present state, which will be taken next."""
        if self._timetable is not None:
            self._timetable.choose(self.node, self.node.options, n)

    def _decide_main(self) -> int:
        node = self.node
        options: Sequence[Option] = node.options
        if not options:
            return -1
        if self._timetable is None and self.allowed_commands is None:
            if node.untimed is None or self._timers_left > 0:
                return self.strategy.pick(options)
            return node.untimed[self.strategy.pick(node.untimed_options)]
        return self._decide_among(node)

    def _decide_among(self, node: Node) -> int:
        """Decide in timed mode, or among what an application allows."""
        hurried = self._timetable is None and node.untimed is not None and self._timers_left <= 0
        kept = node.untimed if hurried and node.untimed is not None else range(len(node.options))
        chosen = [n for n in kept if self.allowed_commands is None or self._may(node.options[n])]
        if not chosen and hurried:
            chosen = [n for n, option in enumerate(node.options) if option.is_timer]
        if not chosen:
            return -1
        options = [node.options[n] for n in chosen]
        if self._timetable is not None:
            return chosen[self._timetable.pick(node, options)]
        return chosen[self.strategy.pick(options)]

    def _may(self, option: Option) -> bool:
        assert self.allowed_commands is not None
        if self.by_hand and (option.kind in UNFAIR or (option.kind is Kind.HEAL and self.held)):
            return False
        return option.kind is not Kind.COMMAND or option.label in self.allowed_commands

    def _pause(self) -> None:
        """Between two steps: let tables that are full start over, and ask whether to go on."""
        if self.tables.is_full and self.fair_from is None:  # a fair ending compares the states that it comes through
            self.node = self.tables.renewed(self.node)
            if self.watcher is not None:
                self.watcher.renewed(self.node)
        if self.watch is not None and not self.watch(len(self.labels)):
            self.stopped = True

    def rush(self) -> None:
        """Take all steps of the main part in free mode on the plain runtime."""
        limit, stop = self.plan.steps, self.plan.stop_at_violation
        while len(self.labels) < limit and self.node.options and not self.stopped and not (stop and self.verdicts):
            self._advance(min(limit, len(self.labels) + PAUSE))
            self._pause()

    def _advance(self, limit: int, given: int = -1, at_us: int | None = None) -> None:
        """Take and record steps until there are `limit` of them: option `given`, or else what the strategy picks.

        The one loop for both, with everything at hand in local names: drivers spend their time here.
        """
        labels, tables, recorder, watcher = self.labels, self.tables, self.recorder, self.watcher
        pick, follow, witnessed = self.strategy.pick, self.tables.follow, self.witnessed
        stop = self.plan.stop_at_violation and given < 0
        node = self.node
        while len(labels) < limit and not (stop and self.verdicts):
            options = node.options
            if not options:
                break
            if given >= 0:
                n = given
            elif node.untimed is None or self._timers_left > 0:
                n = pick(options)
            else:
                n = node.untimed[pick(node.untimed_options)]
            try:
                after = node.succ[n] or follow(node, n)
                if (reached := node.reached[n]) is None:
                    reached = tables.reach(node, n, after)
            except Refusal:
                raise
            except Exception as error:
                self.node = node
                self._fell(n, error)
                return
            option = options[n]
            labels.append(option.chosen if at_us is None else Chosen.of(option.label, option.choice.step, at_us))
            if option.is_timer:
                self._timers_left -= 1
            if reached:
                witnessed.update(reached)
            if recorder is not None:
                if (failing := after.failing_text) is None:
                    failing = tables.failing_text(after)
                recorder.event((len(labels), at_us, node.happenings[n] or tables.happening(node, n), failing))
            if watcher is not None:
                watcher.took(option, after)
            node = after
            if node.failing is not None:
                self._judge(node)
        self.node = node

    def _judge(self, node: Node) -> None:
        for name, why in (node.failing or {}).items():
            if name in self.plan.claims and name not in self.verdicts:
                self.verdicts[name] = Verdict(name, why, len(self.labels), "safety")

    def _decide_fairly(self) -> int:
        assert self.fair_from is not None
        node = self.node
        options = self.fair_options(node)
        order = tuple(sorted(self._turns, key=self._turns.__getitem__))
        self.fair_nodes.append(node)
        key = (node.state, order)
        if not options or key in self._seen or len(self.labels) - self.fair_from >= FAIR_BOUND:
            if options and key in self._seen:
                self.back_to = self._seen[key]
            self._judge_liveness(bool(options))
            return -1
        self._seen[key] = len(self.labels)
        n = min(options, key=lambda n: (self._turns.get(node.options[n].name, -1), node.options[n].name, n))
        self._turns[node.options[n].name] = len(self.labels)
        if self._timetable is not None:
            self._timetable.now_us += 1
        return n

    def fair_options(self, node: Node) -> list[int]:
        """Return the options that fairness asks for: first all mending, then the protocol, timers when all waits."""
        fairness = self.model.fairness
        healing, going, timers = [], [], []
        for n, option in enumerate(node.options):
            if option.kind is Kind.HEAL:
                healing.append(n)
            elif option.kind is Kind.TIMER:
                timers.append(n)
            elif option.kind in UNFAIR or (fairness and option.action not in fairness):
                continue
            elif self.allowed_commands is None or self._may(option):
                going.append(n)
        return healing or going or timers

    def _judge_liveness(self, may_go_on: bool) -> None:
        """Judge the claimed temporal properties on how the fair ending ended."""
        try:
            for verdict in pending_for_ever(self, self.temporal, may_go_on):
                self.verdicts.setdefault(verdict.violated or "", verdict)
        except Refusal:
            raise
        except Exception as error:
            self._raised(error)

    def how_it_ends(self, may_go_on: bool) -> str:
        """Say what the run does for ever, or that it does nothing any more, and which actors wait for which."""
        fair = len(self.labels) - (self.fair_from or 0)
        if self.back_to is not None:
            names = list(dict.fromkeys(chosen.label.split(" ")[0] for chosen in self.labels[self.back_to :]))
            return f"a fair cycle repeats for ever: {', '.join(names)}"
        ending = "still not after" if may_go_on else "and nothing more can happen after"
        waiting = self.tables.waits(self.node)
        return f"{ending} {fair} fair steps without faults" + (f"; {'; '.join(waiting)}" if waiting else "")

    def finish(self) -> Run:
        """Return the finished run."""
        verdicts = tuple(self.verdicts.values())
        verdict = verdicts[0] if verdicts else Verdict()
        choices = self.labels if isinstance(self.labels, SpooledChoices) else tuple(self.labels)
        trail = trail_of(
            self.model, self.plan, self.strategy.name, self.strategy.seed, choices, self.initial, self.fair_from,
            self.back_to, verdict.violated,
        )
        if self.watcher is not None:
            self.watcher.over(trail)
        return Run(trail, verdict, self.recorder, frozenset(self.witnessed), verdicts, self.error)


def cannot_take(came: ChosenInput, options: Sequence[Option]) -> str:
    """Return the sentence that refuses input which does not make exactly one step possible."""
    text = came.text if len(came.text) <= LONGEST_SHOWN else f"{came.text[:LONGEST_SHOWN]}..."
    if not options:
        return f"{came.process} cannot take the input {text} in the state that the run is in"
    labels = "; ".join(option.label for option in options)
    return f"{came.process} can take the input {text} in {len(options)} ways, and should in one: {labels}"


def run_plain(tables: Tables, plan: Plan, strategy: Strategy, recorder: Recorder | None = None) -> Run:
    """Make one run on the plain synchronous runtime."""
    return drive(Session(tables, plan, strategy, recorder))


def drive(session: Session) -> Run:
    """Take a session to its end on the plain runtime."""
    if session.plan.mode == "free":
        session.rush()
    decide, take = session.decide, session.take
    while (n := decide()) >= 0:
        take(n)
    return session.finish()
