"""What the controller keeps of a partition: which proposals it takes, and who is about to go, or was started again."""

from __future__ import annotations

import attrs
import pytest

from harness.model import FrozenMap
from kafka_proto.errors import Error
from kafka_proto.replication import messages, quorum
from kafka_proto.replication.quorum import Quorum

NOW = {"r1": 0, "r2": 1, "r3": 0}


def led() -> Quorum:
    """Return a partition whose leader is r1 in epoch 1; r2 was started again and r3 left the ISR."""
    q = quorum.elect(quorum.register(quorum.initial(("r1", "r2", "r3")), "r2", 1), "r1")
    assert q is not None
    q = attrs.evolve(q, isr=frozenset(("r1",)))
    assert (q.leader_epoch, q.partition_epoch, dict(q.broker_epochs)) == (1, 2, NOW)
    return q


@pytest.mark.parametrize(("change", "by", "error"), [
    ({}, "r1", Error.NONE),
    ({}, "r2", Error.FENCED_LEADER_EPOCH),
    ({"leader_epoch": 0}, "r1", Error.FENCED_LEADER_EPOCH),
    ({"leader_epoch": 2}, "r1", Error.FENCED_LEADER_EPOCH),
    ({"partition_epoch": 1}, "r1", Error.INVALID_UPDATE_VERSION),
    ({"broker_epochs": FrozenMap({"r1": 0, "r2": 0})}, "r1", Error.INELIGIBLE_REPLICA),
    ({"leader_epoch": 0, "partition_epoch": 1}, "r1", Error.FENCED_LEADER_EPOCH),
])
def test_proposal_is_taken_or_refused_for_the_first_reason(
    change: dict[str, object], by: str, error: Error
) -> None:
    """What is refused changes nothing; only who is refused for a member hears which proposal that was (KIP-903)."""
    q = led()
    asked = messages.AlterPartitionRequest(
        1, frozenset(("r1", "r2")), 2, FrozenMap({"r1": 0, "r2": 1}), source=by, dest="controller")
    proposal = attrs.evolve(asked, **change)  # type: ignore[arg-type]
    after, answer = quorum.alter(q, proposal)
    assert (answer.error, answer.isr, answer.partition_epoch) == (error, after.isr, after.partition_epoch)
    assert answer.refused == (proposal.broker_epochs if error is Error.INELIGIBLE_REPLICA else None)
    if error is not Error.NONE:
        assert after == q
        return
    assert (after.isr, after.partition_epoch, after.leader_epoch) == (asked.new_isr, 3, 1)
    assert after.last_isr["1"] == asked.new_isr and dict(after.entered) == {"r2": 1}


def test_replica_that_is_about_to_go_is_let_in_when_it_is_there_again() -> None:
    """It leaves the ISR first, unless it is not in it or alone; a restart ends that (KIP-841)."""
    q = quorum.initial(("r1", "r2", "r3"))
    assert quorum.elect_uncleanly(q, "r1") is None
    two = quorum.shut_down(q, "r2")
    assert two is not None and (two.isr, two.shutting_down) == ({"r1", "r3"}, {"r2"})
    assert quorum.shut_down(two, "r2") is None
    one = quorum.shut_down(two, "r3")
    assert one is not None and (one.isr, one.shutting_down) == ({"r1"}, {"r2", "r3"})
    assert quorum.shut_down(one, "r1") is None and quorum.shut_down(led(), "r1") is None
    proposed = FrozenMap({"r1": 0, "r2": 0})
    assert quorum.are_eligible(q, proposed) and not quorum.are_eligible(one, proposed)
    back = quorum.register(one, "r2", 1)
    assert (back.shutting_down, quorum.are_eligible(back, proposed)) == ({"r3"}, False)
    assert quorum.are_eligible(back, proposed.set("r2", 1))
    assert quorum.register(back, "r2", 1) is back and quorum.register(back, "r2", 0) is back


def test_only_a_member_that_stays_is_noted_as_what_it_is_now() -> None:
    """The last one of an ISR, that is; and no restart of a replica that nobody shuts down notes that one may."""
    q = quorum.register(quorum.initial(("r1", "r2")), "r2", 1)
    assert (q.isr, dict(q.entered), q.shutting_down) == ({"r1"}, {}, None)
    q = quorum.register(q, "r1", 3)
    assert (q.isr, dict(q.entered)) == ({"r1"}, {"r1": 3})
