"""What a demo shows: a session that is opened, checked against its spec, left for another one, and reopened.

`walk` has the verbs that step it. Every verb raises Refusal, with one sentence, where it cannot be done, and then
nothing has changed.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from harness.demo.session import interactive_run
from harness.demo.session.as_json import Json
from harness.demo.session.branches import Ending, LeftSession, RunBranch
from harness.demo.session.explanations import Explainer
from harness.demo.session.interactive_run import MOST_STEPS, MOST_UNDONE, InteractiveRun, Stale
from harness.demo.session.kept_sessions import KeptSession, KeptSessions
from harness.demo.session.opened_model import OpenedModel, open_trail, open_what
from harness.demo.session.run_state import RunState
from harness.demo.session.spec_steps import UNKNOWN, StepJudge
from harness.model import Kind, Refusal, Tour, View, find_tour
from harness.record import Trail, tour_trail, trail_of_text
from harness.simulate.runs.plan import trail_of
from harness.simulate.runs.run import Verdict
from harness.simulate.trails.replay import DEADLOCK, replay_plain, spelled_out
from harness.simulate.trails.shrink import Shrunk

ENDED = "the recorded session ends here"


class LiveSession(InteractiveRun):
    """An interactive run of what was opened, and those that were left for it."""

    def __init__(self, opened: OpenedModel) -> None:
        super().__init__(opened)
        self.kept_sessions = KeptSessions()

    def open(
        self, what: str, sizes: Mapping[str, int] | None = None, settings: Mapping[str, str] | None = None,
        budget: str | None = None, initial: int = 0,
    ) -> None:
        """Show a model or a scenario from its start."""
        self.become(LiveSession(attrs.evolve(open_what(what, sizes, settings, budget), initial=initial)))

    def load(self, text: str) -> None:
        """Show the end of a trail, given as the text of its file; nothing changes if it does not fit."""
        self.become(of_trail(trail_of_text("the trail", text)))

    def tour(self, name: str) -> None:
        """Show the start of a guided tour, its steps ahead."""
        self.become(of_tour(find_tour(name)))

    def put_ahead(self, trail: Trail, name: str, tour: Tour | None = None) -> None:
        """Keep the steps of a trail of this model, or a tour, ahead of the first state, in a branch of their own."""
        if len(trail.choices) > interactive_run.MOST_STEPS:
            most, found = interactive_run.MOST_STEPS, len(trail.choices)
            raise Refusal(f"a demo shows at most {most:,} steps, this trail has {found:,}")
        self._held.branches = {name: self.branch}
        self.branch.name = name
        is_whole = all(chosen.input is not None for chosen in trail.choices)
        self.branch.ahead = list(trail.choices if is_whole else spelled_out(trail, self.tables).choices)
        self.branch.ending = ending_of(trail)
        self._offer_input()
        if tour is not None:
            self._held.toured, self._held.toured_on = tour, self.branch

    def add_shrunk(self, shrunk: Shrunk, ending: Ending | None, of: RunBranch) -> None:
        """Go to the start of a new branch, with the steps of the shorter trail of a branch ahead."""
        if of is not self.branches.get(of.name) or shrunk.trail.sizes != self.model.sizes:
            raise Stale("what was shrunk is not here any more; nothing was done")
        self.pause()
        self._remember()
        made = RunBranch(self._unused("shrunk"), of.records[:1], list(shrunk.trail.choices), of.name, 0, ending=ending)
        made.shrunk = of.shrunk = {"length": shrunk.has, "steps_before": shrunk.had, "proved": shrunk.proved}
        self._held.branches[made.name] = made
        self._go_to(made, 0)

    def become(self, other: LiveSession) -> None:
        """Show what another session shows; this one is kept, and undo leads back to it."""
        left = self._leave()
        self._show(other._held)
        self._held.number, self._held.mementos = self.kept_sessions.number(), [LeftSession(left)]

    def reopen(self, number: int) -> None:
        """Show a session again that was left, as it was then; this one is kept, and undo leads back to it."""
        kept = self.kept_sessions.find(number)
        left = self._leave()
        self._return_to(kept)
        self._held.mementos.append(LeftSession(left))
        del self._held.mementos[:-MOST_UNDONE]

    def undo(self) -> None:
        """Go back to before the last verb: in this session, or to the session that was left by it."""
        last = self._held.mementos[-1] if self._held.mementos else None
        if not isinstance(last, LeftSession):
            super().undo()
            return
        kept = self.kept_sessions.find(last.number)
        self._held.mementos.pop()
        self._leave()
        self._return_to(kept)

    def _leave(self) -> int:
        """Keep this session as it is, and return its number. Its tables are made anew when it is reopened."""
        self.pause()
        self.branch.at = self.at
        self.tables.start_over()
        self._held.judge, self._held.explainer = None, Explainer(self.model)
        verdict, branches = self.violation, self.branches.values()
        self.kept_sessions.put(KeptSession(
            self.number, self.toured.name if self.toured is not None else self.plan.scenario or self.model.name,
            self.opened.title, self.at, self.branch.length, len(branches),
            verdict.violated if verdict is not None else None, any(len(branch.records) > 1 for branch in branches),
            self._held,
        ))
        return self.number

    def _return_to(self, kept: KeptSession) -> None:
        self.kept_sessions.take(kept.number)
        self._show(kept.held)
        self._land()

    def _show(self, other: RunState) -> None:
        """Hold another run, which goes on as fast as this one was to go."""
        other.runner.speed = self.runner.speed
        self._held = other
        self.epoch += 1
        self._changed(None)

    # What there is to see

    def judge(self) -> StepJudge | None:
        """Return what checks the steps against the spec, or None if the model has none."""
        if self._held.judge is None and self.model.refinement is not None:
            self._held.judge = StepJudge(self.model)
        return self._held.judge

    def refine(self, most: int = MOST_STEPS) -> bool:
        """Check at most so many more steps against the spec; say whether some are left."""
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
        return self._held.judge.as_json(n) if self._held.judge is not None else UNKNOWN

    def digest(self) -> str:
        """Return the digest of the run up to the present, as a replay of its trail has it."""
        return self.record.recorder.digest()

    def trail(self) -> Trail:
        """Return the trail of the run up to the present."""
        return self._trail(self.branch, self.at, self.violation)

    def trail_along(self, branch: RunBranch) -> Trail:
        """Return the trail of all of a branch, the steps that are kept ahead included."""
        ending = branch.ending
        at_end = ending.verdict if ending is not None and ending.steps == branch.length else None
        return self._trail(branch, branch.length, at_end if branch.ahead else branch.records[-1].violation or at_end)

    def _trail(self, branch: RunBranch, length: int, violation: Verdict | None) -> Trail:
        choices = tuple(branch.choice(n) for n in range(1, length + 1))
        trail = trail_of(self.model, self.plan, "interactive", 0, choices, self.opened.initial,
                         violates=violation.violated if violation is not None else None)
        ending = branch.ending
        if ending is None or ending.steps != length:
            return trail
        return attrs.evolve(
            trail, fair_from=ending.fair_from, back_to=ending.back_to, fairness=ending.fairness,
            strategy=ending.strategy, seed=ending.seed,
        )

    def over(self) -> str | None:
        """Return why nothing more can happen, or None."""
        if not self.node.options:
            return ENDED if self.model.tells else "no step is possible any more"
        if self.at >= interactive_run.MOST_STEPS:
            return f"a demo ends after {interactive_run.MOST_STEPS:,} steps"
        if all(option.kind is Kind.FAULT for option in self.node.options):
            return "nothing but faults is possible any more"
        return None

    def deeds(self) -> list[Json]:
        """Return what a person may do to what drives the session, as steps that are possible; see `FedSession`."""
        return []

    def do(self, label: str) -> bool:
        """Do one of those; say whether it is one."""
        return False

    @property
    def may_catch_up(self) -> bool:
        """Say whether a step that happened elsewhere waits to be shown; `catch_up` shows it."""
        return False

    def catch_up(self) -> None:
        """Show the next such step."""
        raise AssertionError("nothing drives this session")

    @property
    def is_fed(self) -> bool:
        """Say whether what is shown is driven from elsewhere."""
        return False

    def view(self) -> View:
        """Return a view of the present state."""
        return self.tables.view_of(self.node)


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


def of_trail(trail: Trail, ahead: bool = False) -> LiveSession:
    """Return a session at the end of a trail, or with its steps `ahead`. Raises Refusal if it does not fit."""
    session = LiveSession(open_trail(trail))
    session.put_ahead(trail, "trail")
    if not ahead:
        session.forward(len(trail.choices))
    return session


def of_tour(tour: Tour) -> LiveSession:
    """Return a session at the start of a tour, with its steps ahead. Raises Refusal if its model cannot be built."""
    trail = tour_trail(tour)
    session = LiveSession(attrs.evolve(open_trail(trail), title=tour.title))
    session.put_ahead(trail, "tour", tour)
    return session
