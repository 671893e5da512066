"""Guard by guard: who may commit, and what a group's offsets are."""

from __future__ import annotations

import attrs
import pytest
from support.brokers.leader import log_of
from support.brokers.node import BROKER, new_node

from harness.model import FrozenMap
from kafka_proto import requests
from kafka_proto.broker.group.coordinator import (
    Committed,
    GroupCoordinator,
    OffsetRecord,
    Offsets,
    check_group,
    check_known_group,
    commit_batch,
    fetch_offset,
    load,
)
from kafka_proto.broker.group.rebalance import ClassicGroup, Group, GroupState, Member, next_deadline, pass_time
from kafka_proto.broker.versions import KIP_98, KIP_360, KIP_890, KIP_890_PART_1, BrokerVersion
from kafka_proto.log import Marker, RecordBatch, marker_batch
from kafka_proto.requests import OFFSETS_PARTITION, Error

GROUP = Group(2, FrozenMap({"m1": None, "m2": "i2"}))
PLAIN = requests.OffsetCommitRequest(8, "G", "T-0", 5)
IN_TRANSACTION = requests.TxnOffsetCommitRequest(3, "tid", "G", 7, 0, "T-0", 5)
FIELDS = ("generation_id", "member_id", "group_instance_id")
E = Error


@pytest.mark.parametrize(("given", "plain", "transactional"), [
    ((2, "m1", None), E.NONE, E.NONE), ((1, "m1", None), E.ILLEGAL_GENERATION, E.ILLEGAL_GENERATION),
    ((3, "m1", None), E.ILLEGAL_GENERATION, E.ILLEGAL_GENERATION),
    ((1, "m9", None), E.UNKNOWN_MEMBER_ID, E.UNKNOWN_MEMBER_ID),
    ((2, "m2", "i2"), E.NONE, E.NONE), ((2, "m1", "i2"), E.FENCED_INSTANCE_ID, E.FENCED_INSTANCE_ID),
    ((2, "m1", "i9"), E.UNKNOWN_MEMBER_ID, E.UNKNOWN_MEMBER_ID),
    ((-1, "", None), E.UNKNOWN_MEMBER_ID, E.NONE), ((-1, "m9", None), E.UNKNOWN_MEMBER_ID, E.UNKNOWN_MEMBER_ID),
])
def test_commit_is_checked_against_member_instance_and_generation(
    given: tuple[int, str, str | None], plain: Error, transactional: Error
) -> None:
    """In this order, in each release."""
    changes = dict(zip(FIELDS, given, strict=True))
    for check in (check_group, check_known_group):
        assert check(GROUP, attrs.evolve(PLAIN, **changes)) is plain
        assert check(GROUP, attrs.evolve(IN_TRANSACTION, **changes)) is transactional


@pytest.mark.parametrize("waits_for", ["joining", "syncing"])
def test_member_that_waits_for_an_answer_is_not_silent(waits_for: str) -> None:
    """However long ago it was heard: nothing is due for it, and no passing of time drops it."""
    join = requests.JoinGroupRequest(9, "G", 10, 30, "", None, "consumer", (("range", b""),))
    waiting, idle = Member(join, 10, **{waits_for: "token"}), Member(join, 20)
    group = ClassicGroup(GroupState.COMPLETING_REBALANCE, members=FrozenMap({"m1": waiting, "m2": idle}))
    assert next_deadline(group) == 20 and pass_time(group, 19) == (group, ())


def test_commit_of_a_group_that_is_not_there() -> None:
    """Without a generation it is taken, and where the group has no name; with one each release has a code of its own.
    """
    for request, before, since in (
        (PLAIN, E.ILLEGAL_GENERATION, E.ILLEGAL_GENERATION),
        (attrs.evolve(PLAIN, version=9), E.ILLEGAL_GENERATION, E.GROUP_ID_NOT_FOUND),
        (IN_TRANSACTION, E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION),
        (attrs.evolve(IN_TRANSACTION, version=9), E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION),
    ):
        assert check_group(None, request) is E.NONE and check_known_group(None, request) is E.NONE
        of_generation = attrs.evolve(request, generation_id=0, member_id="m1")
        assert (check_group(None, of_generation), check_known_group(None, of_generation)) == (before, since)
    for version in (KIP_360, KIP_890):
        node = new_node(version)
        assert node.ask(attrs.evolve(PLAIN, group_id="")) == requests.OffsetCommitResponse(E.NONE)
        nameless = attrs.evolve(IN_TRANSACTION, group_id="")
        assert node.ask(nameless) == requests.TxnOffsetCommitResponse(E.INVALID_GROUP_ID)


@pytest.mark.parametrize(("version", "goes"), [(KIP_360, True), (KIP_890_PART_1, True), (KIP_890, False)])
def test_offsets_of_deleted_partitions_are_gone(version: BrokerVersion, goes: bool) -> None:
    """Committed ones and staged ones; before 4.0 a group goes with them that has neither members nor other offsets."""
    node = new_node(version, partitions=("T-0", "U-0"))
    producer = node.ask(requests.InitProducerIdRequest(1, "tid", 60_000)).producer_id
    staged = attrs.evolve(IN_TRANSACTION, producer_id=producer, group_id="S")
    other = attrs.evolve(PLAIN, group_id="O", partition="U-0")
    node.ask(requests.AddOffsetsToTxnRequest(3, "tid", producer, 0, OFFSETS_PARTITION))
    for request in (PLAIN, staged, other, attrs.evolve(other, partition="T-0")):
        assert node.ask(request).error is E.NONE
    node.delete_topic("T")
    assert "T-0" not in node.served and set(node.groups(BROKER).groups) == {"O", "S"} | (set() if goes else {"G"})
    for group in "GSO":
        asked = requests.OffsetFetchRequest(7, group, "T-0", require_stable=True)
        assert node.ask(asked) == requests.OffsetFetchResponse(E.NONE)
    node.ask(requests.EndTxnRequest(3, "tid", producer, 0, committed=True))
    assert list(node.offsets.committed) == [("O", "U-0")]
    assert load(node.log(OFFSETS_PARTITION).batches).committed == node.offsets.committed


def test_metadata_is_kept_up_to_so_many_characters() -> None:
    """4,096 as Java counts them; with it the leader epoch is kept, by a plain commit and in a transaction."""
    node = new_node(KIP_890)
    for metadata, error in (("é" * 4096, E.NONE), ("𝄞" * 2048, E.NONE), ("x" * 4097, E.OFFSET_METADATA_TOO_LARGE),
                            ("𝄞" * 2049, E.OFFSET_METADATA_TOO_LARGE)):
        assert node.ask(attrs.evolve(PLAIN, metadata=metadata, leader_epoch=3)) == requests.OffsetCommitResponse(error)
    found = requests.OffsetFetchResponse(E.NONE, E.NONE, 5, 3, "𝄞" * 2048)
    assert node.ask(requests.OffsetFetchRequest(7, "G", "T-0")) == found
    record = OffsetRecord("G", "T-0", 5, 3, "some")
    assert commit_batch(attrs.evolve(IN_TRANSACTION, leader_epoch=3, metadata="some"), 0).records == (record,)


def test_commit_waits_for_the_leader() -> None:
    """Who commits before its group's leader has assigned is to join again, unless it is in a transaction."""
    group = attrs.evolve(GROUP, awaits_leader=True)
    for check in (check_group, check_known_group):
        for request, error in ((PLAIN, E.REBALANCE_IN_PROGRESS), (IN_TRANSACTION, E.NONE)):
            of_member = attrs.evolve(request, generation_id=2, member_id="m1")
            assert check(group, of_member) is error and check(GROUP, of_member) is E.NONE
            assert check(group, attrs.evolve(of_member, generation_id=1)) is E.ILLEGAL_GENERATION


@pytest.mark.parametrize(("version", "before", "since"), [
    (KIP_98, E.NONE, True), (KIP_360, E.NONE, True), (KIP_890_PART_1, E.TRANSACTION_ABORTABLE, True),
    (KIP_890, E.TRANSACTION_ABORTABLE, False),
])
def test_offsets_that_are_refused_make_a_group_before_4_0(version: BrokerVersion, before: Error, since: bool) -> None:
    """A group is added first, then the commit is verified and checked (`GroupCoordinator.handleTxnCommitOffsets`).

    From 4.0 on there is only the group of what is written. A plain commit by nobody tells them apart.
    """
    node = new_node(version)
    producer = node.ask(requests.InitProducerIdRequest(1, "tid", 60_000)).producer_id
    plain = attrs.evolve(PLAIN, generation_id=1, member_id="nobody")
    asked = requests.TxnOffsetCommitRequest(4, "tid", "G", producer, 0, "T-0", 5, generation_id=1, member_id="nobody")
    assert node.ask(plain) == requests.OffsetCommitResponse(E.ILLEGAL_GENERATION)
    assert node.ask(asked) == requests.TxnOffsetCommitResponse(E.UNKNOWN_MEMBER_ID if before is E.NONE else before)
    assert node.ask(plain) == requests.OffsetCommitResponse(E.UNKNOWN_MEMBER_ID if since else E.ILLEGAL_GENERATION)
    node.ask(attrs.evolve(asked, group_id="H", partition="T-7"))
    assert "H" not in node.groups(BROKER).groups


def commit(offset: int | None, partition: str = "T-0", producer: int = -1, group: str = "G") -> RecordBatch:
    record = OffsetRecord(group, partition, offset)
    return RecordBatch((record,), producer, 0 if producer >= 0 else -1, is_transactional=producer >= 0)


def offsets(*batches: RecordBatch) -> Offsets:
    return load(log_of(*batches).batches)


def test_offsets_are_those_of_the_last_committed_record() -> None:
    """A transaction's become visible by its marker, at the place of their records; an abort drops them."""
    end, undo = marker_batch(7, 0, Marker.COMMIT, 0), marker_batch(7, 0, Marker.ABORT, 0)
    staged = offsets(commit(5, producer=7), commit(6, "T-1", 7))
    assert dict(staged.committed) == {} and list(staged.staged[7]) == [("G", "T-0"), ("G", "T-1")]
    assert not staged.is_stable(("G", "T-0")) and staged.is_stable(("G", "T-2"))
    both = offsets(commit(5, producer=7), commit(6, "T-1", 7), end)
    assert both == Offsets(FrozenMap({("G", "T-0"): Committed(5, 0), ("G", "T-1"): Committed(6, 1)}))
    assert offsets(commit(5, producer=7), undo) == Offsets()
    assert offsets(commit(5, producer=7), commit(9), end).committed["G", "T-0"] == Committed(9, 1)
    assert offsets(commit(9), commit(5, producer=7), end).committed["G", "T-0"] == Committed(5, 1)
    assert offsets(commit(9), commit(None)) == Offsets()
    assert offsets(commit(9), commit(5, producer=7), commit(None)) == Offsets(staged=FrozenMap({7: FrozenMap()}))


def test_offset_fetch_waits_for_what_is_staged_where_asked_to() -> None:
    """-1 where there is none (KIP-447)."""
    state = GroupCoordinator(offsets=offsets(commit(4), commit(5, producer=7)))
    ask = requests.OffsetFetchRequest(7, "G", "T-0", require_stable=True)
    assert fetch_offset(state, ask).partition_error is E.UNSTABLE_OFFSET_COMMIT
    assert fetch_offset(state, attrs.evolve(ask, require_stable=False)).committed_offset == 4
    assert fetch_offset(state, attrs.evolve(ask, partition="T-1")).committed_offset == -1
    assert commit_batch(IN_TRANSACTION, 3) == RecordBatch(
        (OffsetRecord("G", "T-0", 5),), 7, 0, is_transactional=True, timestamp=3)
    assert commit_batch(PLAIN, 3) == RecordBatch((OffsetRecord("G", "T-0", 5),), timestamp=3)
