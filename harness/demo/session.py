"""One interactive run: a person decides what happens next, goes back, and chooses otherwise. Knows no HTTP, no trio.

A session is at one state of one of its branches. Steps after it are kept until another step is taken there; then a new
branch is made. Every verb raises Refusal, with one sentence, where it cannot be done, and then nothing has changed.
Whoever hosts the state elsewhere asks what to take (`chosen`, `kept`, `decide`) and tells when it is done (`took`);
`take`, `forward` and `run` do both. What a step costs does not grow with the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from harness.demo import told
from harness.demo.asked import Asker
from harness.demo.branches import Branch, Ending, Memento, Record
from harness.demo.flights import Flights
from harness.demo.opened import Opened, open_trail, open_what
from harness.demo.recording import first, recorded
from harness.demo.refined import UNKNOWN, Judge
from harness.demo.running import WATCHED, Runner
from harness.model import Kind, Refusal, Tour, Value, View, find_tour, unknown
from harness.record import Trail, tour_trail, trail_of_text
from harness.simulate.replay import DEADLOCK, find, misfit, replay_plain
from harness.simulate.session import Verdict, without_choices
from harness.simulate.shrink import Shrunk
from harness.simulate.tables import Node, Tables

MOST_STEPS = 20_000
"""Steps of a branch; a run that is longer is one for `kafka-proto simulate`."""
MOST_UNDONE = 500
"""Verbs that can be undone."""


class LiveSession:
    """An interactive run of what was opened."""

    def __init__(self, opened: Opened) -> None:
        self.version = 0
        """Grows with every change."""
        self.epoch = 0
        """Grows whenever something else is opened."""
        self._told = -1
        self._speed = WATCHED
        self.keep: int | None = None
        """The last step that is still what it was at the last `news`; None where everything is new."""
        self._begin(opened)

    def _begin(self, opened: Opened) -> None:
        """Show something else."""
        tables = Tables(opened.model)
        if not 0 <= opened.initial < tables.initial_count:
            raise Refusal(f"expected an initial state from 0 to {tables.initial_count - 1}, found {opened.initial}")
        self.opened, self.model, self.plan, self.tables = opened, opened.model, opened.plan, tables
        self.lanes = told.lifelines(self.model)
        self.runner = Runner(tables, self.plan, opened.budget == "generous", self._speed)
        self.node: Node = tables.start(opened.initial)
        """The state of the session, in its tables."""
        self.flights = Flights(self.model)
        self.claimed = frozenset(self.plan.claims) & frozenset(p.name for p in tables.invariants)
        self.branch = Branch("main", [first(self)])
        self.branches = {self.branch.name: self.branch}
        self.at = 0
        self.toured: Tour | None = None
        """The tour that was opened, if one was."""
        self.toured_on: Branch | None = None
        """The branch that the tour goes along."""
        self._judge: Judge | None = None
        self.asker = Asker(self.model)
        self._mementos: list[Memento] = []
        self.epoch += 1
        self.runner.resume(0, ())
        self._changed(None)

    def news(self) -> int | None:
        """Return the last step that is the same as at the last call, or None where nothing is."""
        keep, self.keep = self.keep, self.at
        self._told = self.version
        return keep

    @property
    def is_told(self) -> bool:
        """Say whether nothing is new."""
        return self._told == self.version

    def _changed(self, keep: int | None) -> None:
        self.version += 1
        self.keep = None if keep is None or self.keep is None else min(self.keep, keep)

    @property
    def can_undo(self) -> bool:
        return bool(self._mementos)

    @property
    def timed(self) -> bool:
        return self.plan.mode == "timed"

    @property
    def record(self) -> Record:
        """The step that the session is at."""
        return self.branch.records[self.at]

    def state(self, step: int) -> Mapping[str, Value]:
        """Return the state after a step of this branch. Raises Refusal."""
        return dict(zip(self.tables.slots, self.record_of(step).state, strict=True))

    def record_of(self, step: int) -> Record:
        """Return a step of this branch. Raises Refusal."""
        if not 0 <= step < len(self.branch.records):
            raise Refusal(f"expected a step from 0 to {len(self.branch.records) - 1}, found {step}")
        return self.branch.records[step]

    # What to take, and that it was taken

    def chosen(self, index: int | None = None, label: str | None = None, at: int | None = None) -> int:
        """Return the option that a person means, by its index or label, and note that they take it. Raises Refusal."""
        if at is not None and at != self.at:
            raise Stale(f"the run is at step {self.at} by now, not {at}; look again and choose there")
        n = find(self.node, label) if label is not None else index
        if n is None or not 0 <= n < len(self.node.options):
            if label is not None:
                raise Refusal(misfit(self.at + 1, label, self.node).replace("the trail does", "that does", 1))
            raise Refusal(f"expected an index from 0 to {len(self.node.options) - 1}, found {index}")
        self._check_room()
        self.pause()
        self._remember()
        self.runner.chose(self.node, n)
        return n

    def _check_room(self) -> None:
        if self.at >= MOST_STEPS:
            raise Refusal(f"a demo ends after {MOST_STEPS:,} steps; go back, or use kafka-proto simulate for long runs")

    def kept(self) -> int:
        """Return the option that is the next kept step of this branch, or -1 where none is kept. Raises Refusal."""
        if self.at >= self.branch.length:
            return -1
        choice = self.branch.choice(self.at + 1)
        n = find(self.node, choice.label)
        if n is None:
            raise Refusal(misfit(self.at + 1, choice.label, self.node))
        return n

    def decide(self) -> int:
        """Return the option that the strategy takes next while it runs, or -1 when it has gone far enough."""
        if not self.runner.running:
            return -1
        n = self.runner.decide(self.node, self.record.timers) if self.runner.left and self.at < MOST_STEPS else -1
        if n < 0:
            self.pause()
        return n

    def took(self, n: int, after: Node) -> None:
        """Note that option n of the state was taken and led to `after`: as the kept step, or as one of a new branch."""
        option = self.node.options[n]
        branch, before = self.branch, self.record
        ahead = branch.choice(self.at + 1) if self.at < branch.length else None
        if ahead is not None and ahead.label != option.label:
            self._fork()
            ahead = None
        if self.at + 1 < len(self.branch.records):
            following = self.branch.records[self.at + 1]
            self.flights.apply(following.moved)
        else:
            following = recorded(self, n, after, ahead)
            self.branch.records.append(following)
            if ahead is not None:
                del self.branch.ahead[0]
        self._changed(self.at)
        self.at += 1
        self.node = after
        self.runner.took(option, after, following.chosen.at_us)
        if self.tables.is_full:
            self.node = self.tables.renewed(after)
            self.runner.renewed(self.node)
        if self.runner.running:
            self.runner.left -= 1
            if self.runner.is_there(before, following, self.claimed):
                self.pause()

    def _fork(self) -> None:
        """Begin a branch of one's own: the steps ahead stay in the other one."""
        name = self._unused(f"branch {len(self.branches) + 1}")
        made = Branch(name, self.branch.records[: self.at + 1], origin=self.branch.name, fork=self.at)
        self.branch.at = self.at
        self.branch = self.branches[made.name] = made

    # Verbs

    def take(self, index: int | None = None, label: str | None = None, at: int | None = None) -> None:
        """Take a step that is possible now, by its index or label; `at` is the step it was offered at."""
        n = self.chosen(index, label, at)
        self.took(n, self.tables.follow(self.node, n))

    def start(self, until: str = "violation", steps: int | None = None, speed: int | None = None) -> None:
        """Let the strategy decide, until something happens or for so many steps; `run` takes them."""
        if steps is not None and steps < 1:
            raise Refusal(f"expected at least 1 step to run, found {steps}")
        self.runner.check(until)
        self._check_room()
        if speed is not None:
            self.set_strategy(speed=speed)
        self.runner.start(until, steps if steps is not None else MOST_STEPS)
        self._remember()
        self._changed(self.at)

    def run(self, most: int = MOST_STEPS) -> bool:
        """Take at most so many steps of a run that was started; say whether it goes on."""
        for _ in range(most):
            n = self.decide()
            if n < 0:
                break
            self.took(n, self.tables.follow(self.node, n))
        return self.runner.running

    def pause(self) -> None:
        """Let the person decide again."""
        if self.runner.running:
            self.runner.running = False
            self._changed(self.at)

    def rewind(self, to: int) -> None:
        """Go back to an earlier step; those after it are kept."""
        if not 0 <= to <= self.at:
            raise Refusal(f"expected a step from 0 to {self.at} to go back to, found {to}")
        self.pause()
        self._remember()
        self._go_back(to)

    def _go_back(self, to: int) -> None:
        for record in reversed(self.branch.records[to + 1 : self.at + 1]):
            self.flights.take_back(record.moved)
        self.at = to
        self._land()
        self._changed(to)

    def _land(self) -> None:
        """Find the node of the state that the session is at, after it was not reached by a step."""
        if self.tables.is_full:
            self.tables.start_over()
        record = self.record
        self.node = self.tables.node(self.tables.intern(dict(zip(self.tables.slots, record.state, strict=True))))
        self._resume()

    def _resume(self) -> None:
        """Let the strategy go on from here."""
        names = (r.step.name for r in self.branch.records[1 : self.at + 1] if r.step) if self.timed else ()
        self.runner.resume(self.record.chosen.at_us, names)

    def begin_forward(self, to: int) -> None:
        """Check that there are kept steps up to a step, and note that a person goes there."""
        if not self.at <= to <= self.branch.length:
            raise Refusal(f"expected a step from {self.at} to {self.branch.length} to go on to, found {to}")
        self.pause()
        self._remember()

    def forward(self, to: int) -> None:
        """Go on along the steps of this branch that are kept."""
        self.begin_forward(to)
        while self.at < to:
            n = self.kept()
            self.took(n, self.tables.follow(self.node, n))

    def name_branch(self, name: str) -> None:
        """Give the branch another name."""
        name = " ".join(name.split())
        if not name or len(name) > 60 or (name in self.branches and name != self.branch.name):
            raise Refusal(f"expected a new name of 1 to 60 characters for the branch, found {name[:60]!r}")
        old = self.branch.name
        self.branches = {name if known == old else known: branch for known, branch in self.branches.items()}
        for branch in self.branches.values():
            branch.origin = name if branch.origin == old else branch.origin
        self.branch.name = name
        self._mementos = [_renamed(memento, old, name) for memento in self._mementos]
        self._changed(self.at)

    def switch(self, name: str) -> None:
        """Go to another branch, to where somebody was last."""
        if name not in self.branches:
            raise Refusal(unknown(f"there is no branch {name!r}", name, self.branches, "the branches are"))
        self.pause()
        self._remember()
        self._go_to(self.branches[name], self.branches[name].at)

    def _go_to(self, branch: Branch, at: int) -> None:
        """Go to a step of a branch, by what both branches have in common."""
        self.branch.at = self.at
        common = 0
        here, there = self.branch.records, branch.records
        while common < min(self.at, at) and here[common + 1] is there[common + 1]:
            common += 1
        for record in reversed(here[common + 1 : self.at + 1]):
            self.flights.take_back(record.moved)
        for record in there[common + 1 : at + 1]:
            self.flights.apply(record.moved)
        self.branch, self.at = branch, at
        self._land()
        self._changed(common)

    def undo(self) -> None:
        """Go back to before the last verb that took, went back, went on or switched."""
        if not self._mementos:
            raise Refusal("there is nothing to undo")
        self.pause()
        memento = self._mementos.pop()
        self._go_to(self.branches[memento.current], memento.at)
        self.branches = {name: self.branches[name] for name in memento.names}
        self.branch.cut(memento.length)

    def _remember(self) -> None:
        self._mementos.append(Memento(tuple(self.branches), self.branch.name, self.at, self.branch.length))
        del self._mementos[:-MOST_UNDONE]

    def set_strategy(
        self, strategy: str | None = None, seed: int | None = None, hurts: bool | None = None, speed: int | None = None
    ) -> None:
        """Choose who decides in a run: a strategy, its seed, whether it may hurt, steps a second (0: all it can)."""
        runner = self.runner
        runner.set(
            runner.name if strategy is None else strategy, runner.seed if seed is None else seed,
            runner.hurts if hurts is None else hurts, runner.speed if speed is None else speed,
        )
        self._speed = runner.speed
        if strategy is not None or seed is not None:
            runner.begin_again()
            self._resume()
        self._changed(self.at)

    def open(
        self, what: str, sizes: Mapping[str, int] | None = None, settings: Mapping[str, str] | None = None,
        budget: str | None = None, initial: int = 0,
    ) -> None:
        """Show a model or a scenario from its start."""
        self._begin(attrs.evolve(open_what(what, sizes, settings, budget), initial=initial))

    def load(self, text: str) -> None:
        """Show the end of a trail, given as the text of its file; nothing changes where it does not fit."""
        self.become(of_trail(trail_of_text("the trail", text)))

    def tour(self, name: str) -> None:
        """Show the start of a guided tour, its steps ahead."""
        self.become(of_tour(find_tour(name)))

    def put_ahead(self, trail: Trail, name: str) -> None:
        """Keep the steps of a trail of this model ahead of the first state, in a branch that was not gone along yet."""
        if len(trail.choices) > MOST_STEPS:
            raise Refusal(f"a demo shows at most {MOST_STEPS:,} steps, this trail has {len(trail.choices):,}")
        self.branches = {name: self.branch}
        self.branch.name = name
        self.branch.ahead = list(trail.choices)
        self.branch.ending = ending_of(trail)

    def add_shrunk(self, shrunk: Shrunk, ending: Ending | None, of: Branch) -> None:
        """Go to the start of a new branch, with the steps of the shorter trail of a branch ahead."""
        if of is not self.branches.get(of.name) or shrunk.trail.sizes != self.model.sizes:
            raise Stale("what was shrunk is not here any more; nothing was done")
        self.pause()
        self._remember()
        made = Branch(self._unused("shrunk"), of.records[:1], list(shrunk.trail.choices), of.name, 0, ending=ending)
        made.shrunk = of.shrunk = {"length": shrunk.has, "steps_before": shrunk.had, "proved": shrunk.proved}
        self.branches[made.name] = made
        self._go_to(made, 0)

    def _unused(self, name: str) -> str:
        """Return a name for a branch that begins like this one, and that no branch has."""
        number, found = 1, name
        while found in self.branches:
            number += 1
            found = f"{name} {number}"
        return found

    def become(self, other: LiveSession) -> None:
        """Show what another session shows."""
        version, epoch, speed = self.version, self.epoch, self._speed
        self.__dict__.update(other.__dict__)
        self.version, self.epoch, self._speed, self._mementos = version, epoch + 1, speed, []
        self.runner.speed = speed
        self._changed(None)

    # What there is to see

    @property
    def violation(self) -> Verdict | None:
        """What is violated on the way to the present: an invariant that is claimed, or liveness, at a trail's end."""
        ending = self.branch.ending
        at_end = ending is not None and self.at == ending.steps
        return self.record.violation or (ending.verdict if ending is not None and at_end else None)

    def judge(self) -> Judge | None:
        """Return what holds the steps against the spec, or None where the model has none."""
        if self._judge is None and self.model.refinement is not None:
            self._judge = Judge(self.model)
        return self._judge

    def refine(self, most: int = MOST_STEPS) -> bool:
        """Hold at most so many more steps against the spec; say whether some are left."""
        judge = self.judge()
        if judge is None:
            return False
        judge.follow(self.branch.records, self.at + 1, most)
        first = judge.judge(most)
        if first is not None:
            self._changed(max(0, first - 1))
        return not judge.is_done(self.at + 1)

    def spec_of(self, n: int) -> str:
        """Return what step n is in the spec as JSON, as far as that is known."""
        return self._judge.told(n) if self._judge is not None else UNKNOWN

    def digest(self) -> str:
        """Return the digest of the run up to the present, as a replay of its trail has it."""
        return self.record.recorder.digest()

    def trail(self) -> Trail:
        """Return the trail of the run up to the present."""
        choices = tuple(record.chosen for record in self.branch.records[1 : self.at + 1])
        violation = self.violation
        trail = attrs.evolve(
            without_choices(self.model, self.plan, "interactive", 0), choices=choices, initial=self.opened.initial,
            violates=violation.violated if violation is not None else None,
        )
        ending = self.branch.ending
        if ending is None or ending.steps != self.at:
            return trail
        return attrs.evolve(
            trail, fair_from=ending.fair_from, back_to=ending.back_to, fairness=ending.fairness,
            strategy=ending.strategy, seed=ending.seed,
        )

    def over(self) -> str | None:
        """Return why nothing more can happen, or None."""
        if not self.node.options:
            return "no step is possible any more"
        if self.at >= MOST_STEPS:
            return f"a demo ends after {MOST_STEPS:,} steps"
        if all(option.kind is Kind.FAULT for option in self.node.options):
            return "nothing but faults is possible any more"
        return None

    def view(self) -> View:
        """Return a view of the present state."""
        return self.tables.view(self.node)

    def snapshot(self) -> dict[str, Any]:
        """Return everything there is to see, as a JSON object."""
        from harness.demo.picture import snapshot

        return snapshot(self)

    def present(self) -> dict[str, Any]:
        """Return the present, as a JSON object."""
        from harness.demo.picture import present

        return present(self)


def ending_of(trail: Trail) -> Ending | None:
    """Return how a trail ends beyond its steps, if it does; it is replayed for that. Raises Refusal."""
    if trail.fair_from is None and trail.violates != DEADLOCK:
        return None
    found = replay_plain(trail).verdict
    text = "the fair ending: no more faults, all get turns"
    if trail.fair_from is None:
        text = "no step is possible any more"
    elif trail.back_to is not None:
        text = "what follows is repeated for ever"
    return Ending(
        len(trail.choices), trail.fair_from, trail.back_to, trail.fairness, trail.strategy, trail.seed,
        found if found.kind in ("liveness", "deadlock") else None, text,
    )


def of_trail(trail: Trail) -> LiveSession:
    """Return a session at the end of a trail. Raises Refusal where it does not fit."""
    session = LiveSession(open_trail(trail))
    session.put_ahead(trail, "trail")
    session.forward(len(trail.choices))
    return session


def of_tour(tour: Tour) -> LiveSession:
    """Return a session at the start of a tour, with its steps ahead. Raises Refusal where its model cannot be built."""
    trail = tour_trail(tour)
    session = LiveSession(attrs.evolve(open_trail(trail), title=tour.title))
    session.put_ahead(trail, "tour")
    session.toured, session.toured_on = tour, session.branch
    return session


class Stale(Refusal):
    """What was asked for belongs to an older state of the session."""


def _renamed(memento: Memento, old: str, new: str) -> Memento:
    names = tuple(new if name == old else name for name in memento.names)
    return attrs.evolve(memento, names=names, current=new if memento.current == old else memento.current)
