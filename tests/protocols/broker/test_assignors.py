"""Assignors of consumer groups: every partition has one member that wants it, evenly, and few of them move."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kafka_proto.broker.group.assignors import BY_NAME, Assignment, ranges, uniform
from kafka_proto.requests import partition_name, topic_of

TOPICS = st.dictionaries(st.sampled_from("tuv"), st.integers(1, 5), min_size=1)
MEMBERS = ("a", "b", "c", "d")


@st.composite
def groups(draw: Any, alike: bool = False) -> tuple[dict[str, tuple[str, ...]], dict[str, int], Assignment]:
    """Draw what members want, of which topics, and what the same assignor gave to other members before."""
    topics = draw(TOPICS)
    members = draw(st.lists(st.sampled_from(MEMBERS), min_size=1, unique=True))
    everything = tuple(sorted(topics))
    some = st.just(everything) if alike else st.lists(st.sampled_from(everything), unique=True).map(
        lambda names: tuple(sorted(names)))
    wanted = {member: draw(some) for member in sorted(members)}
    former = draw(st.lists(st.sampled_from(MEMBERS), unique=True))
    before = uniform(sorted(former), dict.fromkeys(former, everything), topics, {}) if former else {}
    return wanted, topics, before


@given(groups(), st.sampled_from(sorted(BY_NAME)))
def test_each_partition_has_one_member_that_wants_it(
    group: tuple[dict[str, tuple[str, ...]], dict[str, int], Assignment], name: str
) -> None:
    """A partition that nobody wants has none."""
    wanted, topics, before = group
    found = BY_NAME[name](list(wanted), wanted, topics, before)
    assert all(topic_of(p) in wanted[member] for member, partitions in found.items() for p in partitions)
    subscribed = {topic for names in wanted.values() for topic in names}
    assert sorted(p for partitions in found.values() for p in partitions) == sorted(
        partition_name(topic, index) for topic in subscribed for index in range(topics[topic]))


@given(groups(alike=True))
def test_uniform_is_even_and_keeps_what_it_can(
    group: tuple[dict[str, tuple[str, ...]], dict[str, int], Assignment]
) -> None:
    """Nobody has two more than another; a member loses only what it has above its share, and what is even stays."""
    wanted, topics, before = group
    found = uniform(list(wanted), wanted, topics, before)
    sizes = [len(partitions) for partitions in found.values()]
    assert max(sizes) - min(sizes) <= 1
    for member in wanted:
        had = before.get(member, ())
        assert len({*had} - {*found[member]}) <= max(0, len(had) - min(sizes))
    assert uniform(list(wanted), wanted, topics, found) == found


def test_ranges_are_those_of_each_topic() -> None:
    """Five partitions for two members are three and two, topic by topic, among those who subscribe."""
    wanted = {"a": ("t", "u"), "b": ("t",)}
    assert ranges(["a", "b"], wanted, {"t": 5, "u": 2}, {}) == {
        "a": ("t-0", "t-1", "t-2", "u-0", "u-1"), "b": ("t-3", "t-4")}
