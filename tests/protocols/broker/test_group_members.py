"""The classic group protocol at its coordinator: joins that wait, assignments, sessions, elections, fenced commits.

The same on one broker that leads for good and on three with replicated logs, but for elections.
"""

from __future__ import annotations

from functools import partial

import pytest
from support.brokers.members import GROUP, REBALANCE, SESSION, Members

from harness.model import canonical_text
from kafka_proto import requests
from kafka_proto.broker.group.coordinator import GroupCoordinator, GroupMetadata, with_group
from kafka_proto.broker.group.role import COMMIT_TIMEOUT_MS
from kafka_proto.broker.group.role import GroupRole as Role
from kafka_proto.broker.parts import GroupCoordinatorState
from kafka_proto.broker.versions import KIP_360, version_of
from kafka_proto.cluster import composition
from kafka_proto.conformance.playing import CLIENT
from kafka_proto.requests import OFFSETS_PARTITION, Error

E = Error


@pytest.fixture(params=(1, 3), ids=("local log", "replicated logs"))
def members(request: pytest.FixtureRequest) -> Members:
    brokers: int = request.param
    return Members(brokers)


def metadata(members: Members) -> list[GroupMetadata]:
    """Return the records of groups in the offsets log."""
    batches = members.log(OFFSETS_PARTITION).batches
    return [record for batch in batches for record in batch.records if isinstance(record, GroupMetadata)]


def commits_in_a_transaction(members: Members, member: str, *generations: int) -> list[Error]:
    """Return what is said to commits of a producer's transaction."""
    producer = members.ask(requests.InitProducerIdRequest(4, "tid", 60_000))
    assert isinstance(producer, requests.InitProducerIdResponse)
    who = producer.producer_id, producer.producer_epoch
    members.ask(requests.AddOffsetsToTxnRequest(3, "tid", *who, OFFSETS_PARTITION))
    asked = (requests.TxnOffsetCommitRequest(3, "tid", GROUP, *who, "T-0", 5, each, member) for each in generations)
    return [members.ask(request).error for request in asked]


def test_two_members_get_what_their_leader_assigns(members: Members) -> None:
    """A second member's join waits for the first one's; both answers of a sync wait for the leader's."""
    first, one = members.new()
    joined = members.answer(one)
    assert (joined.error, joined.leader, joined.members) == (E.NONE, first, ((first, None, b"m-range"),))
    assert (joined.protocol_type, joined.protocol_name) == ("consumer", "range")
    assert members.synced(first, 1, first).assignment == first.encode()
    second, two = members.new()
    assert members.answer(two) is None and members.beat(first, 1) is E.REBALANCE_IN_PROGRESS
    assert members.synced(first, 1, first).error is E.REBALANCE_IN_PROGRESS
    one = members.join(first)
    leader, follower = members.answer(one), members.answer(two)
    assert (leader.generation_id, follower.generation_id, follower.leader) == (2, 2, first)
    assert [each for each, _, _ in leader.members] == [first, second] and follower.members == ()
    waits = members.sync(second, 2)
    assert members.answer(waits) is None
    assert members.synced(first, 2, first, second).assignment == first.encode()
    assert members.answer(waits).assignment == second.encode()
    assert (members.beat(first, 2), members.beat(second, 2)) == (E.NONE, E.NONE)


def test_a_member_that_leaves_is_gone_at_once(members: Members) -> None:
    """The other one joins again; each that leaves has an error of its own, before version 3 the answer has it."""
    first, second = members.pair()
    rows = (requests.MemberResponse(second, None, E.NONE), requests.MemberResponse("nobody", None, E.UNKNOWN_MEMBER_ID))
    assert members.leave(second, "nobody") == requests.LeaveGroupResponse(E.NONE, rows)
    assert members.beat(first, 2) is E.REBALANCE_IN_PROGRESS
    assert members.joined(first).generation_id == 3
    assert members.leave(second, version=2) == requests.LeaveGroupResponse(E.UNKNOWN_MEMBER_ID)
    assert members.leave(first, version=2) == requests.LeaveGroupResponse(E.NONE)
    assert members.beat(first, 3) is E.UNKNOWN_MEMBER_ID


def test_a_session_ends_by_time(members: Members) -> None:
    """Who is silent is dropped, who heartbeats or commits is not; the next generation is without the silent one."""
    first, second = members.pair()
    members.wait(SESSION - 1)
    assert members.commit(first, 2) is E.NONE
    assert commits_in_a_transaction(members, second, 2) == [E.NONE], "which says nothing of its consumer"
    members.wait(1)
    assert members.beat(first, 2) is E.REBALANCE_IN_PROGRESS and members.beat(second, 2) is E.UNKNOWN_MEMBER_ID
    joined = members.joined(first)
    assert (joined.generation_id, [each for each, _, _ in joined.members]) == (3, [first])


def test_a_join_is_answered_once_it_is_too_late_for_the_others(members: Members) -> None:
    """A rebalance ends with those that joined when its time is over, though the other one still heartbeats."""
    first, second = members.pair()
    waits = members.join(second, protocols=("range", "sticky"))
    for _ in range(4):
        members.wait(REBALANCE // 5)
        assert members.beat(first, 2) is E.REBALANCE_IN_PROGRESS and members.answer(waits) is None
    members.wait(REBALANCE // 5)
    joined = members.answer(waits)
    assert (joined.generation_id, joined.leader) == (3, second)
    assert members.beat(first, 2) is E.UNKNOWN_MEMBER_ID


def test_two_who_are_silent_are_dropped_at_once_where_the_first_ends_a_rebalance(members: Members) -> None:
    """Time may pass in one step, over both sessions and the rebalance that a third member began."""
    members.pair()
    third, _ = members.new()
    members.wait(REBALANCE)
    assert list(members.groups(members.leader(OFFSETS_PARTITION)).groups[GROUP].members) == [third]


def test_waiting_for_a_join_lets_its_time_pass(members: Members) -> None:
    """The first member, which is silent, is dropped."""
    members.alone()
    _, number = members.new()
    assert members.answer(number) is None
    at = members.now
    members.wait(SESSION)
    assert members.answer(number).generation_id == 2 and members.now == at + SESSION


def test_a_static_member_is_replaced_without_a_rebalance(members: Members) -> None:
    """A new process of an instance takes over the assignment, and its former self is fenced (KIP-345)."""
    former = members.static(version=5)
    back = members.joined(instance="i")
    assert (back.error, back.generation_id, back.leader, back.skip_assignment) == (E.NONE, 1, back.member_id, True)
    assert members.synced(back.member_id, 1, group_instance_id="i").assignment == former.encode()
    assert members.beat(former, 1, "i") is E.FENCED_INSTANCE_ID
    assert [list(record.group.members) for record in metadata(members) if record.group] == [
        [], [former], [back.member_id]]
    older = members.joined(instance="i", version=8)
    assert (older.error, older.leader, older.members) == (E.NONE, back.member_id, ()), "it does not assign (KAFKA-7728)"


def test_a_static_member_that_prefers_another_protocol_rebalances(members: Members) -> None:
    """And it may leave by its instance alone."""
    former = members.static()
    back = members.joined(instance="i", protocols=("sticky", "range"))
    assert (back.generation_id, back.protocol_name, back.skip_assignment) == (2, "sticky", False)
    assert members.joined(former, instance="i").error is E.FENCED_INSTANCE_ID
    left = members.ask(requests.LeaveGroupRequest(4, GROUP, (requests.MemberIdentity("", "i"),)))
    assert left == requests.LeaveGroupResponse(E.NONE, (requests.MemberResponse("", "i", E.NONE),))
    assert members.beat(back.member_id, 2, "i") is E.UNKNOWN_MEMBER_ID


def test_a_former_self_that_waits_is_fenced(members: Members) -> None:
    """Its sync, as its join: the next process of the instance waits in its place."""
    first = members.alone()
    former = members.join(instance="i")
    members.join(first)
    waits = members.sync(members.answer(former).member_id, 2, group_instance_id="i")
    back = members.join(instance="i")
    assert members.answer(waits).error is E.FENCED_INSTANCE_ID and members.answer(back) is None
    last = members.join(instance="i")
    assert members.answer(back).error is E.FENCED_INSTANCE_ID and members.answer(last) is None
    assert members.joined(first).generation_id == members.answer(last).generation_id == 3


def test_a_static_member_outlives_a_rebalance_that_it_misses(members: Members) -> None:
    """It is a member of the next generation, which another one leads."""
    former = members.static()
    dynamic, number = members.new()
    for _ in range(4):
        members.wait(REBALANCE // 5)
        assert members.beat(former, 1, "i") is E.REBALANCE_IN_PROGRESS
    assert members.answer(number) is None
    members.wait(REBALANCE // 5)
    joined = members.answer(number)
    assert (joined.generation_id, joined.leader) == (2, dynamic)
    assert [each for each, _, _ in joined.members] == [former, dynamic]
    assert members.beat(former, 2, "i") is E.NONE


def test_who_joins_again_as_before_is_told_what_is(members: Members) -> None:
    """A leader of a stable group rebalances by that; who joins twice is answered once."""
    first, second = members.pair()
    assert members.joined(second).generation_id == 2 and members.beat(first, 2) is E.NONE
    waits = members.join(first)
    assert members.answer(waits) is None and members.beat(second, 2) is E.REBALANCE_IN_PROGRESS
    again = members.join(first)
    assert members.answer(waits).error is E.UNKNOWN_MEMBER_ID
    assert members.joined(second).generation_id == members.answer(again).generation_id == 3
    assert members.joined(second).generation_id == members.joined(first).generation_id == 3


def test_a_promised_id_is_waited_for(members: Members) -> None:
    """Until whoever got it leaves, or its session is over; it is not for a static member."""
    promised = members.joined().member_id
    first, number = members.new()
    assert members.answer(number) is None
    assert members.joined(promised, instance="i").error is E.UNKNOWN_SERVER_ERROR
    assert members.leave(promised).members == (requests.MemberResponse(promised, None, E.NONE),)
    assert members.answer(number).generation_id == 1
    members.sync(first, 1, first)
    members.joined()
    waits = members.join(first)
    members.wait(SESSION - 1)
    assert members.answer(waits) is None
    members.wait(1)
    assert members.answer(waits).generation_id == 2


def test_members_vote_for_one_of_the_protocols_that_all_know(members: Members) -> None:
    """What most of them prefer, of what all know."""
    said = ("other", "sticky", "range"), ("range", "sticky"), ("sticky", "range")
    promised = [members.joined().member_id for _ in said]
    joins = [members.join(each, protocols=protocols) for each, protocols in zip(promised, said, strict=True)]
    assert [members.answer(number).protocol_name for number in joins] == ["sticky"] * 3


def test_commits_are_fenced_by_the_generation(members: Members) -> None:
    """By members, and from the end of a rebalance on only once the leader has assigned, but in transactions."""
    first, one = members.new()
    assert members.answer(one).generation_id == 1 and members.commit(first, 1) is E.REBALANCE_IN_PROGRESS
    members.sync(first, 1, first)
    assert [members.commit(*by) for by in ((first, 1), (first, 0), ("nobody", 1), ("", -1))] == [
        E.NONE, E.ILLEGAL_GENERATION, E.UNKNOWN_MEMBER_ID, E.UNKNOWN_MEMBER_ID]
    members.new()
    assert members.commit(first, 1) is E.NONE, "until it has to join again"
    members.joined(first)
    assert members.commit(first, 2) is E.REBALANCE_IN_PROGRESS
    assert commits_in_a_transaction(members, first, 1, 2) == [E.ILLEGAL_GENERATION, E.NONE]


def test_requests_that_make_no_sense_are_refused(members: Members) -> None:
    """Without a group, with a session that is too short, by a member of no protocol or of another one."""
    for request in (requests.HeartbeatRequest(4, "", 1, "m"), requests.SyncGroupRequest(4, "", 1, "m"),
                    requests.LeaveGroupRequest(4, "", (requests.MemberIdentity("m"),))):
        assert getattr(members.ask(request), "error", None) is E.INVALID_GROUP_ID
    assert members.joined(group="").error is E.INVALID_GROUP_ID
    assert members.joined(session=5).error is E.INVALID_SESSION_TIMEOUT
    nobody = members.joined("nobody")
    assert (nobody.error, nobody.member_id) == (E.UNKNOWN_MEMBER_ID, "nobody")
    assert members.commit("m", 1) is E.ILLEGAL_GENERATION, "no group has come into being"
    assert members.joined(protocols=()).error is E.INCONSISTENT_GROUP_PROTOCOL
    assert members.commit("m", 1) is E.UNKNOWN_MEMBER_ID, "this one makes a group"
    first, _ = members.new()
    assert members.joined(protocols=("other",)).error is E.INCONSISTENT_GROUP_PROTOCOL
    assert members.synced(first, 1, version=5).error is E.INCONSISTENT_GROUP_PROTOCOL
    assert members.synced(first, 1, protocol_name="other").error is E.INCONSISTENT_GROUP_PROTOCOL
    assert members.synced(first, 0).error is E.ILLEGAL_GENERATION


def test_a_member_that_joins_again_while_its_assignment_is_stored_rebalances() -> None:
    """What a leader has assigned in a generation that is over is told to nobody, whenever it is stored."""
    members = Members(3)
    first, second = members.third_generation()
    before = len(metadata(members))
    members.holds_fetches = True
    lead = members.sync(first, 3, first, second)
    follow = members.sync(second, 3)
    assert members.answer(lead) is members.answer(follow) is None and len(metadata(members)) == before + 1
    again = members.join(second, protocols=("range",))
    assert {members.answer(number).error for number in (lead, follow)} == {E.REBALANCE_IN_PROGRESS}
    later = members.fork()
    assert later.joined(first).generation_id == later.answer(again).generation_id == 4
    later.release()
    assert later.answer(later.sync(second, 4)) is None, "the leader has not assigned in this one"
    members.release()
    assert members.answer(again) is None and members.beat(first, 3) is E.REBALANCE_IN_PROGRESS


def test_members_outlive_their_coordinator() -> None:
    """The next one reads generation and members in the offsets log; who waits is told to look for it."""
    members = Members(3)
    first, second = members.pair()
    (before, after) = (b for b in ("b1", "b2", "b3") if b != "b3")
    assert members.leader(OFFSETS_PARTITION) == before
    waits = members.join(second, protocols=("range", "sticky"))
    assert members.answer(waits) is None
    members.elect(after)
    assert members.answer(waits).error is E.NOT_COORDINATOR and members.leader(OFFSETS_PARTITION) == after
    late = members.send(requests.HeartbeatRequest(4, GROUP, 2, first), before, CLIENT)
    assert members.answer(late).error is E.NOT_COORDINATOR
    assert (members.beat(first, 2), members.commit(second, 2)) == (E.NONE, E.NONE)
    assert members.synced(second, 2).assignment == second.encode()
    third, _ = members.new()
    assert third not in (first, second) and members.beat(first, 2) is E.REBALANCE_IN_PROGRESS
    members.elect(before)
    members.wait(SESSION - 1)
    assert members.fork().beat(first, 2) is E.NONE, "sessions begin anew with the coordinator"
    members.wait(1)
    assert members.beat(first, 2) is E.UNKNOWN_MEMBER_ID, "and end"


def test_what_is_not_stored_is_told_to_nobody() -> None:
    """Members that sync, or come back as static ones, while their coordinator loses its office look for the next one.

    That one has neither the assignment nor the new id.
    """
    members = Members(3)
    former = members.static(version=5)
    members.holds_fetches = True
    back = members.join(instance="i")
    assert members.answer(back) is None
    members.elect("b2")
    assert members.answer(back).error is E.NOT_COORDINATOR, "a deposed leader gives the record up"
    members.release()
    assert members.beat(former, 1, "i") is E.NONE
    members = Members(3)
    first, second = members.third_generation()
    members.holds_fetches = True
    syncs = members.sync(first, 3, first, second), members.sync(second, 3)
    members.elect("b2")
    assert [members.answer(number).error for number in syncs] == [E.NOT_COORDINATOR] * 2
    members.release()
    assert (members.beat(first, 3), members.beat(first, 2)) == (E.ILLEGAL_GENERATION, E.NONE)


def test_an_assignment_that_the_log_refuses_makes_members_join_again() -> None:
    """Where too few replicas are in sync, before or after the record is in the log (before KIP-966)."""
    members = Members(3, version_of("4.0.0", 2))
    static = members.static(version=5)
    dynamic, two = members.new()
    assert members.joined(static, instance="i").generation_id == 2
    assert members.answer(two).error is E.NONE
    members.holds_fetches = True
    syncs = members.sync(dynamic, 2), members.sync(static, 2, dynamic, group_instance_id="i")
    members.shrink()
    assert [members.answer(number).error for number in syncs] == [E.COORDINATOR_NOT_AVAILABLE] * 2
    assert members.beat(dynamic, 2) is E.REBALANCE_IN_PROGRESS
    waits = members.join(dynamic)
    assert members.joined(static, instance="i").generation_id == 3
    assert members.answer(waits).generation_id == 3
    waits = members.sync(dynamic, 3)
    assert members.synced(static, 3, dynamic, group_instance_id="i").error is E.COORDINATOR_NOT_AVAILABLE
    assert members.answer(waits).error is E.COORDINATOR_NOT_AVAILABLE


def test_an_assignment_that_too_few_replicas_have_is_given_up() -> None:
    """With KIP-966 the high watermark stays while the ISR is too small, and the record waits for five seconds."""
    members = Members(3)
    first, second = members.third_generation()
    members.holds_fetches = True
    syncs = members.sync(first, 3, first, second), members.sync(second, 3)
    members.shrink()
    members.wait(COMMIT_TIMEOUT_MS - 1)
    assert [members.answer(number) for number in syncs] == [None] * 2
    members.wait(1)
    assert [members.answer(number).error for number in syncs] == [E.REBALANCE_IN_PROGRESS] * 2


def test_a_group_that_was_left_is_empty_for_the_next_coordinator() -> None:
    """Its generation goes on."""
    members = Members(3)
    first, second = members.pair()
    members.leave(first, second)
    assert [record.group and (record.group.generation, len(record.group.members)) for record in metadata(members)] == [
        (0, 0), (1, 1), (2, 2), (3, 0)]
    members.elect("b2")
    _, number = members.new()
    assert members.answer(number).generation_id == 4 and members.beat(first, 2) is E.UNKNOWN_MEMBER_ID


def test_a_group_that_is_dropped_leaves_a_tombstone() -> None:
    """Before 4.0, with its last offset; a group that has members stays."""
    members = Members(3, KIP_360)
    first = members.alone()
    assert members.commit(first, 1) is E.NONE
    members.leave(first)
    members.ask(requests.DeleteTopicsRequest(4, "T"))
    assert [str(record) for record in metadata(members)] == ["g generation 1", "g generation 2", "g gone"]
    members.elect("b2")
    assert members.commit(first, 2) is E.UNKNOWN_TOPIC_OR_PARTITION
    _, number = members.new()
    assert members.answer(number).generation_id == 1


def test_so_many_groups_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """A join makes none beyond the bound that its role was given; ids that were made are not made again."""
    monkeypatch.setattr(composition, "GroupRole", partial(Role, most_groups=1))
    members = Members(1)
    assert members.joined().member_id != members.joined().member_id
    assert members.joined(group="other").error is E.INVALID_GROUP_ID


def test_a_coordinator_without_members_is_written_as_before() -> None:
    """Whatever commits make: digests of runs without members do not know of them."""
    state = with_group(GroupCoordinator(), GROUP)
    assert canonical_text(GroupCoordinatorState(state)) == (
        '{"$type":"GroupCoordinatorState","groups":{"$type":"GroupCoordinator","groups":{"g":{"$type":"Group",'
        '"awaits_leader":false,"generation":0,"members":{}}},"members":0,"offsets":{"$type":"Offsets",'
        '"committed":{},"staged":{}}}}')
