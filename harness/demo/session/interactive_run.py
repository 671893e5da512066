"""One run that a person decides: what happens next, going back, choosing otherwise, branches, undo. No HTTP, no trio.

A run is at one state of one of its branches. Steps after it are kept until another step is taken there; then a new
branch is made. Every verb raises Refusal, with one sentence, where it cannot be done, and then nothing has changed. A
host that keeps the state elsewhere asks what to take (`chosen`, `next_kept`, `decide`) and says when it is done
(`took`); `take`, `forward` and `run` do both. What a step costs does not grow with the run.
"""

from __future__ import annotations

import attrs

from harness.demo.session.branches import LeftSession, Memento, RunBranch, own_faults_after
from harness.demo.session.opened_model import OpenedModel
from harness.demo.session.run_state import RunReader, start_of
from harness.demo.session.strategy_runner import ENOUGH
from harness.memo.interning import long_lived
from harness.model import Choice, Kind, Refusal, unknown
from harness.record import Chosen
from harness.simulate.states.nodes import Node
from harness.simulate.trails.replay import is_named, misfit

MOST_STEPS = 20_000
"""Steps of a branch; a run that is longer is one for `kafka-proto simulate`."""
MOST_UNDONE = 500
"""Verbs that can be undone."""


class InteractiveRun(RunReader):
    """An interactive run of what was opened."""

    def __init__(self, opened: OpenedModel) -> None:
        super().__init__(start_of(opened))
        self.version = 1
        """Grows with every change."""
        self.epoch = 1
        """Grows whenever something else is shown."""
        self.keep: int | None = None
        """The last step that is still what it was at the last `news`; None if everything is new."""
        self._published = -1
        self._by_hand = False

    def news(self) -> int | None:
        """Return the last step that is the same as at the last call, or None if nothing is."""
        keep, self.keep = self.keep, self.at
        self._published = self.version
        return keep

    @property
    def is_published(self) -> bool:
        """Say whether nothing is new."""
        return self._published == self.version

    def _changed(self, keep: int | None) -> None:
        self.version += 1
        self.keep = None if keep is None or self.keep is None else min(self.keep, keep)

    # What to take, and that it was taken

    def chosen(self, index: int | None = None, label: str | None = None, at: int | None = None) -> int:
        """Return the option that a person means, by its index or label, and note that they take it. Raises Refusal."""
        if at is not None and at != self.at:
            raise Stale(f"the run is at step {self.at} by now, not {at}; look again and choose there")
        n = self.node.find(label) if label is not None else index
        if n is None or not 0 <= n < len(self.node.options):
            if label is not None:
                raise Refusal(misfit(self.at + 1, label, self.node).replace("the trail does", "that does", 1))
            raise Refusal(f"expected an index from 0 to {len(self.node.options) - 1}, found {index}")
        self._check_room()
        self.pause()
        self._remember()
        self._by_hand = True
        self.runner.chose(self.node, n)
        return n

    def _check_room(self) -> None:
        if self.at >= MOST_STEPS:
            raise Refusal(f"a demo ends after {MOST_STEPS:,} steps; go back, or use kafka-proto simulate for long runs")

    def next_kept(self) -> int:
        """Return the option that is the next kept step of this branch, or -1 if none is kept. Raises Refusal."""
        if self.at >= self.branch.length:
            return -1
        self._by_hand = False
        choice = self.branch.choice(self.at + 1)
        n = self.node.find(choice.label)
        if choice.input is not None and len(self.node.options) == 1 and is_named(choice.label, self.node.options[0]):
            n = 0
        if n is None:
            raise Refusal(misfit(self.at + 1, choice.label, self.node))
        return n

    def _offer_input(self) -> None:
        """Let the next kept step, if it is input from outside, be what is possible now."""
        if self.at >= self.branch.length or (came := self.branch.choice(self.at + 1).input) is None:
            return
        known = self.branch.records[self.at + 1] if self.at + 1 < len(self.branch.records) else None
        if known is None or known.step is None:
            self._held.node = self.tables.with_input(self.node, came)
        else:
            known_choice = Choice(known.process, known.step, known.chosen.label)
            self._held.node = self.tables.offering(self.node, known_choice)

    def decide(self) -> int:
        """Return the option that the strategy takes next while it runs, or -1 when it has gone far enough."""
        if not self.runner.running:
            return -1
        n, self._by_hand = -1, False
        if self.runner.left and self.at < MOST_STEPS:
            n = self.runner.decide(self.node, self.record.timers, self.record.own_faults)
        if n < 0:
            self._end(self._why_no_further())
        return n

    def _why_no_further(self) -> str:
        """Return why a run takes no more steps."""
        runner, node = self.runner, self.node
        if self.at >= MOST_STEPS:
            return f"a demo ends after {MOST_STEPS:,} steps"
        if not runner.left:
            return ENOUGH
        return runner.why_none(node, self.record.own_faults)

    def _end(self, why: str) -> None:
        """End a run, and note its outcome; `why` it ended before what it was to go on until."""
        if self.runner.running:
            self.runner.end(self.record, self.runner.trouble or why, self.claimed)
            self._changed(self.at)

    def took(self, n: int, after: Node) -> None:
        """Note that option n of the state was taken and led to `after`: as the kept step, or as one of a new branch."""
        option = self.node.options[n]
        branch, before = self.branch, self.record
        ahead = branch.choice(self.at + 1) if self.at < branch.length else None
        if ahead is not None and ahead.label != option.label and (ahead.input is None or option.kind is not Kind.INPUT):
            self._fork()
            ahead = None
        if self.at + 1 < len(self.branch.records):
            following = self.branch.records[self.at + 1]
            self.in_flight.apply(following.moved)
            if self._by_hand and not following.by_hand:
                self._note_by_hand()
        else:
            following = self._held.recorder.following(
                self.record, self.node, n, after, self._time(ahead), self._by_hand
            )
            self.branch.records.append(following)
            if ahead is not None:
                del self.branch.ahead[0]
        self._by_hand = False
        self._changed(self.at)
        self._held.at += 1
        self._held.node = after
        self.runner.took(option, after, following.chosen.at_us)
        if self.tables.is_full:
            self._held.node = self.tables.renewed(after)
            self.runner.renewed(self.node)
        if following.telling is not None:
            self._held.lanes = max(self.lanes, following.telling.lanes, key=len)
        self._offer_input()
        if self.runner.running:
            self.runner.left -= 1
            if self.runner.is_there(before, following, self.claimed):
                self._end("")

    def _time(self, ahead: Chosen | None) -> int | None:
        """Return the virtual time of the step being taken: that of the trail it comes from, or the timetable's."""
        if not self.timed:
            return None
        if ahead is not None:
            return ahead.at_us or 0
        assert self.runner.timetable is not None
        return self.runner.timetable.now_us

    def _note_by_hand(self) -> None:
        """Note that a person chose the next kept step by hand: the faults that it injects are theirs from there on."""
        records = self.branch.records
        records[self.at + 1].by_hand = True
        for n in range(self.at + 1, len(records)):
            record, step = records[n], records[n].step
            assert step is not None
            record.own_faults = own_faults_after(records[n - 1].own_faults, step, record.by_hand)

    def _fork(self) -> None:
        """Begin a branch of one's own: the steps ahead stay in the other one."""
        name = self._unused(f"branch {len(self.branches) + 1}")
        made = RunBranch(name, self.branch.records[: self.at + 1], origin=self.branch.name, fork=self.at)
        self.branch.at = self.at
        self._held.branch = self._held.branches[made.name] = made

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
        self.runner.start(until, steps if steps is not None else MOST_STEPS, self.at)
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
        self._end("it was stopped")

    def rewind(self, to: int) -> None:
        """Go back to an earlier step; those after it are kept."""
        if not 0 <= to <= self.at:
            raise Refusal(f"expected a step from 0 to {self.at} to go back to, found {to}")
        self.pause()
        self._remember()
        for record in reversed(self.branch.records[to + 1 : self.at + 1]):
            self.in_flight.take_back(record.moved)
        self._held.at = to
        self._land()
        self._changed(to)

    def _land(self) -> None:
        """Find the node of the state that the session is at, after it was not reached by a step."""
        if self.tables.is_full:
            self.tables.start_over()
        record = self.record
        self._held.node = self.tables.node(self.tables.intern(dict(zip(self.tables.slots, record.state, strict=True))))
        self._offer_input()
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
        known = min(to, len(self.branch.records) - 1)
        if self.model.tells and known > self.at:  # there are no tasks to bring there step by step
            self._go_to(self.branch, known)

    @long_lived()
    def forward(self, to: int) -> None:
        """Go on along the steps of this branch that are kept."""
        self.begin_forward(to)
        while self.at < to:
            n = self.next_kept()
            self.took(n, self.tables.follow(self.node, n))

    def name_branch(self, name: str) -> None:
        """Give the branch another name."""
        name = " ".join(name.split())
        if not name or len(name) > 60 or (name in self.branches and name != self.branch.name):
            raise Refusal(f"expected a new name of 1 to 60 characters for the branch, found {name[:60]!r}")
        old = self.branch.name
        self._held.branches = {name if known == old else known: branch for known, branch in self.branches.items()}
        for branch in self.branches.values():
            branch.origin = name if branch.origin == old else branch.origin
        self.branch.name = name
        self._held.mementos = [m if isinstance(m, LeftSession) else _renamed(m, old, name) for m in self._held.mementos]
        self._changed(self.at)

    def switch(self, name: str) -> None:
        """Go to another branch, to where the user was last."""
        if name not in self.branches:
            raise Refusal(unknown(f"there is no branch {name!r}", name, self.branches, "the branches are"))
        self.pause()
        self._remember()
        self._go_to(self.branches[name], self.branches[name].at)

    def _go_to(self, branch: RunBranch, at: int) -> None:
        """Go to a step of a branch, by what both branches have in common."""
        self.branch.at = self.at
        common = 0
        here, there = self.branch.records, branch.records
        while common < min(self.at, at) and here[common + 1] is there[common + 1]:
            common += 1
        for record in reversed(here[common + 1 : self.at + 1]):
            self.in_flight.take_back(record.moved)
        for record in there[common + 1 : at + 1]:
            self.in_flight.apply(record.moved)
        self._held.branch, self._held.at = branch, at
        self._land()
        self._changed(common)

    def undo(self) -> None:
        """Go back to before the last verb that took, went back, went on or switched."""
        if not self._held.mementos:
            raise Refusal("there is nothing to undo")
        self.pause()
        memento = self._held.mementos.pop()
        assert isinstance(memento, Memento)
        self.runner.outcome = memento.outcome
        self._go_to(self.branches[memento.current], memento.at)
        self._held.branches = {name: self.branches[name] for name in memento.names}
        self.branch.cut(memento.length)

    def _remember(self) -> None:
        names, outcome = tuple(self.branches), self.runner.outcome
        self._held.mementos.append(Memento(names, self.branch.name, self.at, self.branch.length, outcome))
        self.runner.outcome = None
        del self._held.mementos[:-MOST_UNDONE]

    def set_strategy(
        self, strategy: str | None = None, seed: int | None = None, inject_faults: bool | None = None,
        speed: int | None = None, spares: bool | None = None,
    ) -> None:
        """Choose who decides in a run: a strategy, its seed, whether it injects faults, steps a second (0: all it can).

        `spares` says whether it leaves the faults alone that a person injected: it neither heals nor restarts them.
        """
        runner = self.runner
        runner.set(
            runner.name if strategy is None else strategy, runner.seed if seed is None else seed,
            runner.inject_faults if inject_faults is None else inject_faults, runner.speed if speed is None else speed,
            runner.spares if spares is None else spares,
        )
        if strategy is not None or seed is not None:
            runner.begin_again()
            self._resume()
        self._changed(self.at)

    def _unused(self, name: str) -> str:
        """Return a name for a branch that begins like this one, and that no branch has."""
        number, found = 1, name
        while found in self.branches:
            number += 1
            found = f"{name} {number}"
        return found


class Stale(Refusal):
    """What was asked for belongs to an older state of the session."""


def _renamed(memento: Memento, old: str, new: str) -> Memento:
    names = tuple(new if name == old else name for name in memento.names)
    return attrs.evolve(memento, names=names, current=new if memento.current == old else memento.current)
