"""Canonical values: one encoding that gives values their identity, their order and their shipping form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from enum import StrEnum
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import (
    FrozenMap,
    Message,
    absent_if_none,
    canonical_bytes,
    canonical_sort,
    canonical_text,
    decode,
    encode,
)
from harness.record.changes import CHANGES, SAME, ChangedRecord, ChangedTuple, change, changed


class Colour(StrEnum):
    RED = "Red"


@attrs.frozen
class Leaf:
    value: Any
    note: Any = attrs.field(default=None, metadata=absent_if_none())


@attrs.frozen
class Other:
    value: Any


@attrs.frozen
class Painted:
    one: Colour | None
    several: tuple[Colour, ...]


@attrs.frozen
class Ping(Message):
    payload: Any


TYPES = {cls.__name__: cls for cls in (Leaf, Other, Ping)}

def made(shape: str, parts: list[Any]) -> Any:
    """Return a value of one shape made of these parts, some of which may go unused."""
    match shape:
        case "set":
            return frozenset(parts)
        case "map":
            return FrozenMap(zip(parts[::2], parts[1::2], strict=False))
        case "leaf":
            return Leaf(*(parts or [0])[:2])
        case "other":
            return Other(parts[-1] if parts else 0)
        case "ping":
            return Ping(tuple(parts), source="a", dest="b")
    return tuple(parts)


reserved = st.sampled_from(["", "0", "1", "true", "null", "None", "$set", "$map", "$type", "$bytes", "[]"])
texts = st.one_of(reserved, st.text(max_size=5))
scalars = st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.integers(), st.binary(max_size=3), texts)
shapes = st.sampled_from(["tuple", "set", "map", "leaf", "other", "ping"])
values = st.recursive(scalars, lambda inner: st.builds(made, shapes, st.lists(inner, max_size=4)), max_leaves=8)


def typed(value: Any) -> Any:
    """Return a value with every type spelled out, so that Python's own equality tells 1, 1.0 and True apart."""
    if isinstance(value, str):
        return ("str", str(value))
    if isinstance(value, tuple):
        return ("tuple", tuple(typed(item) for item in value))
    if isinstance(value, frozenset):
        return ("frozenset", frozenset(typed(item) for item in value))
    if isinstance(value, FrozenMap):
        return ("FrozenMap", frozenset((typed(key), typed(item)) for key, item in value.items()))
    if attrs.has(type(value)):
        return (type(value).__name__, tuple(typed(getattr(value, f.name)) for f in attrs.fields(type(value))))
    return (type(value).__name__, value)


@given(values, values)
def test_canonical_bytes_are_equal_for_the_same_value_only(one: Any, other: Any) -> None:
    """Two values have equal bytes exactly when they are equal with all their types."""
    assert (canonical_bytes(one) == canonical_bytes(other)) == (typed(one) == typed(other))


@pytest.mark.parametrize(
    "wrap",
    [lambda v: v, lambda v: (v,), lambda v: frozenset({v}), Leaf, lambda v: FrozenMap({v: v})],
    ids=["alone", "tuple", "frozenset", "record", "map"],
)
def test_canonical_bytes_do_not_alias_numbers_truth_and_text(wrap: Any) -> None:
    """1, 1.0, True and their texts are five values, however deep they lie."""
    alike = [1, 1.0, True, "1", "1.0", "True", "true"]
    assert len({canonical_bytes(wrap(value)) for value in alike}) == len(alike)


@pytest.mark.parametrize(("one", "other"), [
    ((), frozenset()), (frozenset(), FrozenMap()), ((), FrozenMap()), (None, "null"), (None, "None"), (False, None),
    (Leaf(1), Other(1)), (Leaf(1), FrozenMap({"value": 1})), (FrozenMap({1: 1}), FrozenMap({"1": 1})),
    (FrozenMap({"$type": "Leaf", "value": 1}), Leaf(1)), (FrozenMap({"$set": ()}), frozenset()),
    (FrozenMap({"$map": ()}), FrozenMap()), (("a", "b"), ("ab",)), (Leaf(1, note="x"), Leaf(1)),
], ids=repr)
def test_canonical_bytes_tell_look_alikes_apart(one: Any, other: Any) -> None:
    """Values that could be written the same way are not."""
    assert canonical_bytes(one) != canonical_bytes(other)


def test_canonical_bytes_of_an_enum_member_are_its_strings() -> None:
    """A StrEnum member counts as its string, also as a key and inside a set."""
    assert canonical_bytes(Colour.RED) == canonical_bytes("Red")
    assert canonical_bytes(FrozenMap({Colour.RED: frozenset({Colour.RED})})) == canonical_bytes(
        FrozenMap({"Red": frozenset({"Red"})})
    )


def test_members_of_an_enum_are_read_back_alone_and_in_tuples() -> None:
    """A field that holds a member, or a tuple of them, has members again and not text."""
    for painted in (Painted(Colour.RED, (Colour.RED,)), Painted(None, ())):
        again = decode(encode(painted), {"Painted": Painted})
        assert again == painted
        assert all(type(member) is Colour for member in again.several)


@given(values)
def test_canonical_text_is_the_sorted_compact_json_of_the_encoding(value: Any) -> None:
    """The text that is written directly equals what `json` writes of `encode(value)`, the second time, too."""
    expected = json.dumps(encode(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert canonical_text(value) == canonical_text(value) == expected


@given(values, values)
def test_a_change_makes_the_next_value_of_the_one_before_and_depends_on_both_alone(one: Any, other: Any) -> None:
    """Values that share parts, and ones that do not, with every type; a change survives its journey as text."""
    types = {**TYPES, **{cls.__name__: cls for cls in CHANGES}}
    for before, after in ((one, other), ((one, other), (one, other, one)), (Leaf(one, other), Leaf(one, one)),
                          (FrozenMap({0: one, "x": other}), FrozenMap({"x": other, "y": one})), ((one, one), (one,)),
                          ((other, one, other), (other, other, other)), (Other((one,)), Other((one, other)))):
        told = change(before, after)
        copies = [decode(encode(value), TYPES) for value in (before, after)]
        assert canonical_text(told) == canonical_text(change(*copies))
        again = decode(json.loads(canonical_text(told)), types)
        assert typed(changed(before, told)) == typed(changed(copies[0], again)) == typed(after)
        assert (told is SAME) == (typed(before) == typed(after))


def test_what_is_long_and_stays_is_not_in_a_change() -> None:
    """Of a record whose long fields grow a little only that is said; members of an enumeration stay such."""
    long = FrozenMap({n: Leaf(n) for n in range(1_000)})
    before = Leaf((b"x" * 30_000, *range(1_000)), long)
    after = Leaf((*before.value, 7), long.set(5, Leaf(0)).without(9))
    told = change(before, after)
    assert changed(before, told) == after and len(canonical_text(told)) < 300
    red = Painted(Colour.RED, (Colour.RED,))
    known = changed(Painted(None, ()), decode(json.loads(canonical_text(change(Painted(None, ()), red))), {
        cls.__name__: cls for cls in CHANGES}))
    assert known == red and type(known.one) is type(known.several[0]) is Colour


@pytest.mark.parametrize("before", [None, 3, Leaf(1), FrozenMap({"other": 1})])
def test_a_change_of_another_value_is_refused(before: Any) -> None:
    """A damaged history says so."""
    for told in (ChangedRecord(FrozenMap({"nothing": ChangedTuple(0, 1, (2,))})), ChangedTuple(0, 1, (2,))):
        with pytest.raises(ValueError, match="does not fit the value before it"):
            changed(before, told)


@given(values)
def test_decode_returns_the_encoded_value_with_its_types(value: Any) -> None:
    """Decoding gives back the value, also after a journey as JSON text."""
    assert typed(decode(encode(value), TYPES)) == typed(value)
    assert typed(decode(json.loads(canonical_text(value)), TYPES)) == typed(value)
    assert decode(encode(value), TYPES) == value


@pytest.mark.parametrize(("data", "sentence"), [
    ({"$type": "Leave", "value": 1}, "unknown type 'Leave'; known are Leaf, Other, Ping"),
    ({"$type": "Leaf", "valu": 1}, "Leaf does not fit its class"),
])
def test_decode_refuses_what_it_does_not_know(data: Any, sentence: str) -> None:
    """An unknown class or field is an error that names it."""
    with pytest.raises(ValueError, match=sentence):
        decode(data, TYPES)


class NotFrozen:
    pass


@pytest.mark.parametrize("value", [[], {}, set(), bytearray(), 1j, NotFrozen(), ([],), frozenset({1j})])
def test_encode_refuses_what_is_no_value(value: Any) -> None:
    """Mutable collections, mutable bytes and plain objects are no values, wherever they hide."""
    with pytest.raises(TypeError, match="is not a protocol value"):
        encode(value)


@given(st.dictionaries(st.one_of(texts, scalars), values, max_size=5), st.randoms(use_true_random=False))
def test_frozen_map_does_not_depend_on_insertion_order(items: dict[Any, Any], random: Any) -> None:
    """Maps with the same items are equal, hash equal, iterate alike and have equal bytes, whatever came first."""
    one, other = FrozenMap(items), FrozenMap(random.sample(list(items.items()), len(items)))
    assert one == other and hash(one) == hash(other)
    assert list(one.items()) == list(other.items()) and canonical_bytes(one) == canonical_bytes(other)


def test_frozen_map_of_whole_numbers_is_in_their_order() -> None:
    """9 comes before 10, and below 0 the lower number first; among keys of other kinds numbers are texts."""
    numbers = FrozenMap({10: "c", 9: "b", -1: "a", -2: "z"})
    assert list(numbers.items()) == [(-2, "z"), (-1, "a"), (9, "b"), (10, "c")]
    assert canonical_text(numbers) == '{"$map":[[-2,"z"],[-1,"a"],[9,"b"],[10,"c"]]}'
    assert [*numbers.set(100, "d").set(11, "e")] == [-2, -1, 9, 10, 11, 100]
    assert [*FrozenMap({10: 0, 9: 0, "9": 0})] == ["9", 10, 9]
    assert [*FrozenMap({(10,): 0, (9,): 0})] == [(10,), (9,)]


@given(st.dictionaries(st.integers(), st.integers(), max_size=8))
def test_frozen_map_of_whole_numbers_is_read_back_from_any_order(items: dict[int, int]) -> None:
    """A file in which such a map is in the order of its keys' text, as it once was written, gives the same map."""
    once = {"$map": [[key, items[key]] for key in sorted(items, key=str)]}
    assert list(decode(once, {}).items()) == list(FrozenMap(items).items()) == sorted(items.items())


@given(st.lists(values, max_size=6), st.randoms(use_true_random=False))
def test_canonical_sort_does_not_depend_on_insertion_order(items: list[Any], random: Any) -> None:
    """Sorting gives one order for one multiset of values, in any order they come."""
    shuffled = random.sample(items, len(items))
    assert [typed(item) for item in canonical_sort(items)] == [typed(item) for item in canonical_sort(shuffled)]
    assert [canonical_text(item) for item in canonical_sort(items)] == sorted(canonical_text(item) for item in items)


FIXED = """
from harness.model import FrozenMap, canonical_bytes
from kafka_proto.transactions.records import AddPartitionsToTxnRequest, InitPidResponse, SpecError
from kafka_proto.transactions.records import TxnState

request = AddPartitionsToTxnRequest("tid1", 1, 0, frozenset({"tp1", "tp2", "tp3"}), source="c1", dest="b1")
response = InitPidResponse(SpecError.CONCURRENT_TRANSACTIONS, source="b1", dest="c1")
print(canonical_bytes(FrozenMap({
    "sent": FrozenMap({response: 2, request: 1}),
    "seen": frozenset({request, response}),
    "states": frozenset({TxnState.ONGOING, TxnState.EMPTY, TxnState.DEAD, TxnState.PREPARE_ABORT}),
    "mixed": frozenset({None, False, 2, "2", ("2",), (2,), 10}),
})).decode())
"""
REQUEST = (
    '{"$type":"AddPartitionsToTxnRequest","dest":"b1","partitions":{"$set":["tp1","tp2","tp3"]},'
    '"pepoch":0,"pid":1,"source":"c1","tid":"tid1"}'
)
RESPONSE = (
    '{"$type":"InitPidResponse","code":"ConcurrentTransactions","dest":"c1","pepoch":-1,"pid":-1,"source":"b1"}'
)
FIXED_BYTES = (
    '{"mixed":{"$set":["2",10,2,["2"],[2],false,null]},'
    f'"seen":{{"$set":[{REQUEST},{RESPONSE}]}},"sent":{{"$map":[[{REQUEST},1],[{RESPONSE},2]]}},'
    '"states":{"$set":["Dead","Empty","Ongoing","PrepareAbort"]}}'
)


def test_canonical_bytes_are_the_same_in_every_process() -> None:
    """Python's hash seed, which reorders sets from process to process, changes nothing."""
    printed = {
        subprocess.run(
            [sys.executable, "-c", FIXED], env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE, check=True, text=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert printed == {FIXED_BYTES + "\n"}


def test_map_with_a_key_more_or_less_is_the_one_made_anew() -> None:
    """Items are in the same order, whatever the kinds of keys and however the map came about, which stays as it was."""
    keys = ["b", "a", "a!", 2, 1, (1,), Leaf(1), "c"]
    chosen = [*(keys[:count] for count in range(len(keys) + 1)), [10, 9, "a"], [10, 9, (1,)], ["a", "b", 1], [10, 9, 8]]
    for some in chosen:
        items = {key: n for n, key in enumerate(some)}
        one = FrozenMap(items)
        for key in (*keys, "d", 3):
            changed = FrozenMap({**items, key: "x"})
            assert (list(one.set(key, "x")), one.set(key, "x")) == (list(changed), changed)
            assert one.update({key: "x"}) == changed and one == FrozenMap(items)
            left = FrozenMap({k: v for k, v in items.items() if k != key})
            assert (list(one.without(key)), one.without(key)) == (list(left), left)
            assert hash(one.without(key)) == hash(left) and (key in one) == (key in items)
        assert [*one.items()] == [*zip(one.keys(), one.values(), strict=True)] == [(key, one[key]) for key in one]
