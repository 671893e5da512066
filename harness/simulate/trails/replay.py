"""Replaying a trail: strictly, refusing the first choice that does not fit; or loosely, for shrinking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from harness.memo.interning import long_lived
from harness.model import Model, Refusal
from harness.record import Chosen, EventRecorder, History, Recorder, Trail, header_of
from harness.record.references import References
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.run import Run, Verdict
from harness.simulate.runs.session import FAIR_BOUND, Session, cannot_take
from harness.simulate.states.nodes import Node, Option
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.chance import Chance, Led, Seeded
from harness.simulate.strategies.strategy import Strategy

DEADLOCK = "Deadlock"
"""What a trail says that it violates where its end is a state without any possible step."""


class _Scripted:
    """The strategy of a replay: it decides nothing itself, but for the initial state that the trail has."""

    def __init__(self, trail: Trail) -> None:
        self.name = trail.strategy
        self.seed = trail.seed
        self.chance: Chance = Led((trail.initial,), Seeded(0))

    def pick(self, options: Sequence[Option]) -> int:
        raise AssertionError("a replay decides nothing")


class Replay(Session):
    """A session whose decisions come from a trail."""

    def __init__(self, tables: Tables, trail: Trail, recorder: Recorder | None = None, *, loose: bool = False) -> None:
        plan = Plan(trail.claims, len(trail.choices), trail.mode, 0, trail.scenario, stop_at_violation=loose)
        strategy: Strategy = _Scripted(trail)
        if trail.initial >= tables.initial_count or trail.initial < 0:
            raise Refusal(f"the trail starts in initial state {trail.initial}, the model has {tables.initial_count}")
        self._script = trail.choices
        self._at = 0
        self._time: int | None = None
        self._loose = loose
        self._trail = trail
        self._references = References()
        super().__init__(tables, plan, strategy, recorder)
        self._timetable = None

    @property
    def at_us(self) -> int | None:
        if self._trail.mode != "timed":
            return None
        return self._time or 0

    def finish(self) -> Run:
        run = super().finish()
        return attrs.evolve(run, trail=attrs.evolve(run.trail, fairness=self._trail.fairness))

    def decide(self) -> int:
        if self.stopped:
            return -1
        if self._loose:
            return self._decide_loosely()
        if self._at == len(self._script):
            self._close()
            return -1
        if self._at == self._trail.fair_from:
            self.fair_from = self._at
        chosen = self._script[self._at]
        self._at += 1
        self._time, before = chosen.at_us, self._time
        n = self._place(chosen)
        if self.stopped:
            return -1
        if n is None:
            self._time = before
            raise Refusal(self._misfit(chosen))
        if self.fair_from is not None:
            if self._trail.fairness is None and n not in self.fair_options(self.node):
                raise Refusal(f"the trail's fair ending takes a step at {self._at} that is not fair: {chosen.label!r}")
            self.fair_nodes.append(self.node)
        return n

    def _place(self, chosen: Chosen) -> int | None:
        """Return which option of the present node a choice is, or None; input from outside is given to the node."""
        node: Node | None = self.node
        if chosen.input is None:
            n = self.node.find(self._references.full(chosen.label))
        else:
            try:
                node = self._with_input(chosen.input)
            except Refusal:
                if not self._loose:
                    raise
                return None
            # Loosely, the step may have another name: a label may name its result when more came before.
            is_it = node is not None and len(node.options) == 1 and (
                self._loose or is_named(chosen.label, node.options[0]))
            n = 0 if is_it else None
        if n is not None and node is not None:
            self.node = node
            self._references.note(self._at, node.options[n].choice.step.sent)
        return n

    def _misfit(self, chosen: Chosen) -> str:
        """Return the sentence that refuses a choice which does not fit."""
        if chosen.input is None:
            return misfit(self._at, self._references.full(chosen.label), self.node)
        offered = self.tables.with_input(self.node, chosen.input).options
        if len(offered) == 1:
            why = f"it asks for {chosen.label!r}, but that input leads to {offered[0].label!r}"
        else:
            why = cannot_take(chosen.input, offered)
        return f"the trail does not fit at step {self._at}: {why}"

    def _decide_loosely(self) -> int:
        if self.verdicts:
            return -1
        while self._at < len(self._script):
            chosen = self._script[self._at]
            self._at += 1
            self._time, before = chosen.at_us, self._time
            n = self._place(chosen)
            if self.stopped:
                return -1
            if n is not None:
                return n
            self._time = before
        if not self.temporal:
            return -1
        if self.fair_from is None:
            self.fair_from = len(self.labels)
        return self._decide_fairly()

    def _close(self) -> None:
        """At the end of a strict replay: judge liveness where the trail ended fairly, after checking that it did."""
        trail = self._trail
        if trail.violates == DEADLOCK and not self.node.options:
            self.verdicts.setdefault(
                DEADLOCK, Verdict(DEADLOCK, "no step is possible", len(self.labels), "deadlock")
            )
        if trail.fair_from is None:
            return
        self.fair_from = trail.fair_from
        self.fair_nodes.append(self.node)
        options = self.fair_options(self.node)
        is_simulated = trail.fairness is None
        if is_simulated and options and trail.back_to is None and len(self.labels) - trail.fair_from < FAIR_BOUND:
            raise Refusal(
                f"the trail says that it ends fairly at step {len(self.labels)}, but then "
                f"{self.node.options[options[0]].label!r} is still due"
            )
        if trail.back_to is not None:
            nodes = self.fair_nodes
            at = trail.back_to - trail.fair_from
            if not 0 <= at < len(nodes) - 1 or nodes[at].state != nodes[-1].state:
                raise Refusal(
                    f"the trail says that its last step leads back to step {trail.back_to}, but the states differ"
                )
            self.back_to = trail.back_to
        self._judge_liveness(bool(options))

    def how_it_ends(self, may_go_on: bool) -> str:
        if self._trail.fairness is None:
            return super().how_it_ends(may_go_on)
        if self.back_to is not None:
            names = list(dict.fromkeys(chosen.label.split(" ")[0] for chosen in self.labels[self.back_to :]))
            return f"these steps are repeated for ever: {', '.join(names)}"
        return "; ".join(["nothing more has to happen", *self.tables.waits(self.node)])


def is_named(label: str, option: Option) -> bool:
    """Say whether a label names an option whatever its detail is."""
    return label == option.name or label.startswith(f"{option.name} ")


def misfit(step: int, label: str, node: Node) -> str:
    """Return the sentence that refuses a trail at a step."""
    possible = [option.label for option in node.options]
    shown = "; ".join(possible[:8]) + ("; ..." if len(possible) > 8 else "")
    return f"the trail does not fit at step {step}: it asks for {label!r}, possible are: {shown or 'nothing'}"


@long_lived()
def replay_plain(trail: Trail, recorder: Recorder | None = None, tables: Tables | None = None) -> Run:
    """Replay a trail on the plain runtime. Raises Refusal at the first step that does not fit."""
    session = Replay(tables or Tables(trail.build()), trail, recorder)
    while (n := session.decide()) >= 0:
        session.take(n)
    run = session.finish()
    if tables is None:
        session.tables.close()
    return run


def replayed_history(trail: Trail) -> tuple[Model, History]:
    """Replay a trail; return its model, and the history of the run. Raises Refusal."""
    model, recorder = trail.build(), EventRecorder()
    run = replay_plain(trail, recorder, Tables(model))
    return model, recorder.history(header_of(trail, model, "plain"), run.verdict.to_json(), model)


def try_choices(tables: Tables, trail: Trail, choices: Iterable[Chosen]) -> Run:
    """Replay some choices of a trail, skipping those that are not possible, to the first violation of a claim."""
    session = Replay(tables, attrs.evolve(trail, choices=tuple(choices)), loose=True)
    while (n := session.decide()) >= 0:
        session.take(n)
    return session.finish()


def spelled_out(trail: Trail, tables: Tables) -> Trail:
    """Return a trail whose labels have their messages in full, from the first choice to the first that does not fit."""
    session = Replay(tables, trail)
    try:
        while (n := session.decide()) >= 0:
            session.took(n, tables.follow(session.node, n))
    except Refusal:
        pass
    done = tuple(session.labels)
    return attrs.evolve(trail, choices=(*done, *trail.choices[len(done) :]))
