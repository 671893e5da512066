"""A run with all of its branches as data: what a session answers at each step, for a page without a server.

Equal parts are written once: `pool` has them, everything else has their places in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from harness.demo.session import as_json, questions
from harness.demo.session.as_json import Json
from harness.demo.session.live_session import LiveSession
from harness.demo.session.opened_model import open_trail
from harness.demo.session.snapshot import file_name, frame, present, steps
from harness.model import Refusal, Tour
from harness.record import Trail, tour_trail

MOST_RECORDED = 2_000
"""Steps of all branches together: a page with more of them is slow to open, and too large to attach."""


@attrs.frozen
class RecordedBranch:
    """A branch of a run to record: its name and trail, the branch that it began in, the last step that both share."""

    name: str
    trail: Trail
    origin: str | None = None
    fork: int = 0


class _Pool:
    """The parts of a recording, each once."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def keep(self, part: Any) -> int:
        """Return the place of a part."""
        return self.places.setdefault(as_json.text_of(part), len(self.places))

    def row(self, parts: Mapping[str, Any]) -> dict[str, int]:
        """Return the places of named parts."""
        return {name: self.keep(part) for name, part in parts.items()}

    def all(self, parts: Iterable[Any]) -> list[int]:
        """Return the places of parts in a row."""
        return [self.keep(part) for part in parts]


def recorded_trail(trail: Trail) -> str:
    """Return the run of a trail as a recording, as JSON text. Raises Refusal if it does not fit or is too long."""
    return recorded([RecordedBranch("trail", trail)])


def recorded_tour(tour: Tour) -> str:
    """Return a tour as a recording that begins at its start, as JSON text."""
    return recorded([RecordedBranch("tour", tour_trail(tour))], tour=tour)


def branches_of(session: LiveSession) -> tuple[list[RecordedBranch], int]:
    """Return the branches of a session, to be recorded, and the place of the branch that is shown."""
    found = [RecordedBranch(branch.name, session.trail_along(branch), branch.origin, branch.fork)
             for branch in session.branches.values()]
    return found, list(session.branches).index(session.branch.name)


def recorded(branches: Sequence[RecordedBranch], current: int = 0, tour: Tour | None = None) -> str:
    """Return branches of one run as JSON text.

    `current` is the place of the one whose end is shown first, or whose start, where it is a tour.
    """
    count = sum(len(branch.trail.choices) for branch in branches)
    if count > MOST_RECORDED:
        raise Refusal(f"a page in one file holds at most {MOST_RECORDED:,} steps, this run has {count:,}; shrink it, "
                      "or open it with kafka-proto demo")
    pool, made, shown = _Pool(), [], None
    for number, branch in enumerate(branches):
        session = LiveSession(open_trail(branch.trail))
        session.put_ahead(branch.trail, branch.name, tour)
        made.append({"name": branch.name, "from": branch.origin, "at": branch.fork,
                     "length": len(branch.trail.choices), "trail": branch.trail.text(), **_walked(session, pool)})
        if number == current:
            shown = session
    assert shown is not None, "a run has a branch"
    nothing: Json = {"models": [], "scenarios": [], "tours": []}
    rest = {"session": {**frame(shown), "catalogue": nothing}, "file": file_name(shown), "current": current,
            "begins": None if tour is None else 0}
    frames = as_json.text_of({**rest, "branches": made}).removesuffix("}")
    return f'{frames},"pool":[{",".join(pool.places)}]}}'


def _walked(session: LiveSession, pool: _Pool) -> Json:
    """Go along the steps that are kept ahead; return what there is to see after each of them, from the start on."""
    presents, states, logs = [], [], []
    while True:
        presents.append(pool.row(present(session)))
        before = session.shown_state(session.at - 1) if session.at else None
        after = session.state(session.at)
        shown = as_json.state_json(session.lanes, before, session.shown_state(session.at), None)
        states.append({"actors": pool.row(shown["actors"]), "shared": pool.keep(shown["shared"])})
        logs.append(pool.all(as_json.logs_json(session.model, after)))
        n = session.next_kept()
        if n < 0:
            break
        session.took(n, session.tables.follow(session.node, n))
    while session.refine():
        pass
    about = [pool.row(questions.about(session, n)()) for n in range(1, session.at + 1)]
    return {"steps": pool.all(steps(session)), "presents": presents, "states": states, "logs": logs, "about": about}
