"""Two-phase commit in two files, as a package of somebody else: the hasty coordinator commits on the first yes."""

from collections.abc import Iterable, Mapping

import attrs
from two_phase_messages import Decision, Prepare, Vote

from harness import model as m


@attrs.frozen
class Coordinating:
    """What the coordinator knows."""

    state: str = "idle"
    yes: frozenset[str] = frozenset()
    asked: int = 0


@attrs.frozen
class Participating:
    """What a participant knows."""

    state: str = "working"


class Coordinator(m.Actor[Coordinating]):
    """Asks everybody, again when a timer fires, and decides."""

    def __init__(self, participants: tuple[str, ...], hasty: bool) -> None:
        self.name, self.participants, self.hasty, self.initial = "coordinator", participants, hasty, Coordinating()

    def _ask(self, local: Coordinating) -> tuple[m.Message, ...]:
        return tuple(Prepare(source=self.name, dest=name) for name in self.participants if name not in local.yes)

    def step(self, local: Coordinating) -> Iterable[m.Turn[Coordinating]]:
        """Begin."""
        if local.state == "idle":
            yield m.Turn("Begin", (), attrs.evolve(local, state="asking"), self._ask(local), kind=m.Kind.COMMAND)

    def timers(self, local: Coordinating) -> tuple[str, ...]:
        """Votes may be lost."""
        return ("VoteTimeout",) if local.state == "asking" else ()

    def timer_fired(self, local: Coordinating, timer: str) -> Iterable[m.Turn[Coordinating]]:
        """Ask those again who have not said yes."""
        yield m.Turn(timer, (), attrs.evolve(local, asked=local.asked + 1), self._ask(local))

    def on_message(self, local: Coordinating, message: m.Message) -> Iterable[m.Turn[Coordinating]]:
        """Count a vote, and decide where that is possible."""
        assert isinstance(message, Vote)
        if local.state != "asking":
            yield m.Turn("IgnoreVote", (message.source,), local)
            return
        yes = local.yes | {message.source} if message.yes else local.yes
        all_yes = len(yes) == len(self.participants)
        commit = bool(yes) if self.hasty else all_yes
        decided = commit or not message.yes
        state = ("committed" if commit else "aborted") if decided else local.state
        sent = tuple(Decision(commit, source=self.name, dest=name) for name in self.participants) if decided else ()
        yield m.Turn("ReceiveVote", (message.source,), attrs.evolve(local, state=state, yes=yes), sent)


class Participant(m.Actor[Participating]):
    """Votes yes or no, and does what is decided."""

    def __init__(self, name: str) -> None:
        self.name, self.initial = name, Participating()

    def on_message(self, local: Participating, message: m.Message) -> Iterable[m.Turn[Participating]]:
        """Vote once; a participant that voted no has aborted."""
        if isinstance(message, Decision):
            done = local if local.state == "aborted" else Participating("committed" if message.commit else "aborted")
            yield m.Turn("ReceiveDecision", (self.name,), done)
        elif local.state == "working":
            for yes in (True, False):
                vote = Vote(yes, source=self.name, dest=message.source)
                after = Participating("prepared" if yes else "aborted")
                yield m.Turn("VoteYes" if yes else "VoteNo", (self.name,), after, (vote,))
        else:
            vote = Vote(local.state != "aborted", source=self.name, dest=message.source)
            yield m.Turn("VoteAgain", (self.name,), local, (vote,))


def build(sizes: Mapping[str, int], settings: Mapping[str, str], net: m.Network, faults: m.Faults, _: bool) -> m.Model:
    """Return the model."""
    names = tuple(f"p{n + 1}" for n in range(sizes["participants"]))

    def atomic(view: m.View) -> str | None:
        states = {name: view[name].state for name in names}
        return f"{states}" if {"committed", "aborted"} <= set(states.values()) else None

    def done(view: m.View) -> str | None:
        return ", ".join(name for name in names if view[name].state in ("working", "prepared")) or None

    properties = (
        m.always("Atomicity", atomic), m.eventually("EveryoneEnds", done),
        m.sometimes("AllCommitted", lambda v: all(v[name].state == "committed" for name in names)),
    )
    actors = (Coordinator(names, settings["variant"] == "hasty"), *(Participant(name) for name in names))
    types = (Prepare, Vote, Decision, Coordinating, Participating)
    return m.Model("two-phase", actors, ({},), net, faults, properties, sizes=sizes, settings=settings, types=types)


def system() -> m.System:
    """Return what the harness needs to know."""
    spec = m.ModelSpec(
        "two-phase", "two-phase commit", build, {"participants": m.Size(2, 1, 4)},
        {"variant": m.Setting(("patient", "hasty"), "patient")}, ("bag",), may_fault=True,
    )
    flawed = m.Scenario(
        "first-yes", "a coordinator that commits on the first yes", "two-phase", {}, {"variant": "hasty"},
        faults=m.Faults(drop=1), claims=("Atomicity", "EveryoneEnds"), expected="Atomicity",
        repaired="first-yes-repaired", timeouts=1,
    )
    repaired = attrs.evolve(flawed, name="first-yes-repaired", settings={}, expected=None, repaired=None)
    return m.System("two-phase", (spec,), (flawed, repaired))
