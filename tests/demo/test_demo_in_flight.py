"""Messages under way in a session of the demo: those of its state, whatever was done."""

from __future__ import annotations

from collections import Counter
from typing import Any

from support.demo.sessions import HURT, meddle, ran
from support.toys.faulty_world import note, world

from harness.demo.session.live_session import LiveSession
from harness.demo.session.opened_model import OpenedModel
from harness.demo.session.snapshot import steps
from harness.model import NO_FAULTS, UNORDERED_SET
from harness.simulate.runs.plan import everything
from harness.simulate.strategies.chance import Seeded


def under_way(session: LiveSession) -> Counter[Any]:
    """Return the messages that the state says are under way."""
    state, model, found = session.state(session.at), session.model, Counter()
    for address in model.addresses:
        for inbox in model.inboxes[address]:
            found.update(inbox.network.contents(state[inbox.slot]))
        found.update(state.get(f"held[{address}]", ()))
    return found


def test_messages_under_way_are_those_of_the_state_whatever_was_done() -> None:
    """Drops, copies, delays, crashes, merged sends; forwards, backwards and on other branches."""
    hows: Counter[str] = Counter()
    for what in (*HURT, "transactions/diary-01", "exactly-once-late-answers", "exactly-once-lost-answers"):
        for seed in range(3):
            session, chance = ran(what, 30, seed), Seeded(seed)
            for _ in meddle(session, chance, 25):
                flights, state = session.in_flight.all(), session.state(session.at)
                assert Counter(flight.message for flight, _ in flights) == under_way(session)
                held = [message for name, value in state.items() if name.startswith("held[") for message in value]
                assert Counter(flight.message for flight, is_held in flights if is_held) == Counter(held)
                assert len({flight.id for flight, _ in flights}) == len(flights)
            records = {id(record): record for branch in session.branches.values() for record in branch.records}
            hows.update(fate.how for record in records.values() for fate in record.moved.taken)
            hows["copied"] += sum(f.copy_of is not None for r in records.values() for f in r.moved.sent)
    assert {"dropped", "lost", "held", "released", "copied"} == {how for how, count in hows.items() if count}


def test_message_that_is_already_under_way_merges_with_itself() -> None:
    """On a network that is a set the second flight ends at once, and going back leaves the first one."""
    model = world(note(1), note(1), faults=NO_FAULTS, network=UNORDERED_SET).model
    session = LiveSession(OpenedModel(model, everything(model), "", "own"))
    session.take(label="Send(a)")
    session.take(label="Send(a)")
    (step,) = steps(session, 1)
    assert (step["taken"], [message["id"] for message in step["sent"]]) == ([{"id": "2.0", "how": "merged"}], ["2.0"])
    for at in (2, 1):
        assert [flight.id for flight, _ in session.in_flight.all()] == ["1.0"]
        session.rewind(at - 1)
    assert session.in_flight.all() == []
