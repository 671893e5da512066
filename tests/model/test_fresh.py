"""Numbers that are only compared: what protocols declare is true, and a wrong declaration is caught."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

import attrs
import pytest
from support.runs.renaming import departures, numbers, walk

from harness import model as m
from harness.model.fresh import Number, Sort, declared, renamed, renamed_value

FAULTS = m.Faults(
    drop=2, duplicate=2, delay=2, partition=1, crash=2, targets=("b1", "b2", "r1", "r2", "broker")
)
MODELS = {
    "replication/kip-320/actors": {"elections": 2, "fencings": 1}, "replication/async-isr/actors": {"fencings": 1},
    "kafka/4.0": {"elections": 2}, "compaction/pulsar/actors": {}, "compaction/pulsar-trimming/actors": {},
}
SETTINGS = {"kafka/4.0": {"log": "replicated"}}
UNUSED = {"kafka/4.0": {"produce"}}
"""Sorts that a replica declares for clients of its own, where what waits for its records are transactions."""

STRIDES = {"kafka/4.0": 5}
"""Every which state of a run is looked at, where shorter runs do not get to every sort of numbers."""


LONG = ("kafka/4.0", "replication/kip-320/actors")


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.large] * (name in LONG)) for name in MODELS])
def test_what_a_protocol_declares_is_only_compared(name: str) -> None:
    """Renamed, each state of some runs offers the same steps, which lead to the same states, renamed."""
    base = m.find_model(name).make(MODELS[name], SETTINGS.get(name))
    targets = tuple(target for target in FAULTS.targets if target in base.actors)
    seen: set[str] = set()
    for seed in range(4):
        model = m.find_model(name).make(MODELS[name], SETTINGS.get(name), faults=attrs.evolve(FAULTS, targets=targets))
        chance = random.Random(seed)
        stride = STRIDES.get(name, 1)
        for state in islice(walk(model, seed, 80 * stride), 0, None, stride):
            seen |= {sort for sort, _ in numbers(model, state)}
            assert not list(departures(model, state, chance))
    assert seen == set(declared(base.types)) - UNUSED.get(name, set())


def auctioned(number: Callable[[str], dict[str, Any]]) -> tuple[type[Any], type[Any], type[Any]]:
    """Return an offer, what a bidder has made, and what a house has, with their numbers declared in one way."""

    @attrs.frozen
    class Offer(m.Message):
        bid: int = attrs.field(metadata=number("bid"))

    @attrs.frozen
    class Made:
        last: int = attrs.field(default=0, metadata=number("bid"))
        left: int = 4

    @attrs.frozen
    class Best:
        bid: int = attrs.field(default=0, metadata=number("bid"))
        refused: int = 0

    return Offer, Made, Best


ORDERED, HASTY = auctioned(m.ordered), auctioned(m.fresh)


class Bidder(m.Actor[Any]):
    """Has a few offers to make, each higher than the last."""

    name = "bidder"

    def __init__(self, offer: Any, made: Any) -> None:
        self.offer, self.initial = offer, made

    def step(self, local: Any) -> Iterable[m.Turn[Any]]:
        if local.left:
            offer = self.offer(local.last + 1, source="bidder", dest="house")
            yield m.Turn("Bid", (), attrs.evolve(local, last=local.last + 1, left=local.left - 1), (offer,))


class House(m.Actor[Any]):
    """Keeps the best offer; `adds` makes a number of what should only be compared."""

    name = "house"

    def __init__(self, best: Any, adds: bool = False) -> None:
        self.initial, self.adds = best, adds

    def on_message(self, local: Any, message: Any) -> Iterable[m.Turn[Any]]:
        if self.adds and message.bid != local.bid + 1:
            yield m.Turn("Skip", (), local)
        elif message.bid > local.bid:
            yield m.Turn("Take", (), attrs.evolve(local, bid=message.bid))
        else:
            yield m.Turn("Refuse", (), attrs.evolve(local, refused=local.refused + 1))


def auction(offer: Any, made: Any, best: Any, adds: bool = False) -> m.Model:
    return m.Model("auction", (Bidder(offer, made()), House(best(), adds)), types=(offer, made, best))


def found(model: m.Model) -> list[str]:
    return [why for seed in range(6) for state in walk(model, seed, 20)
            for why in departures(model, state, random.Random(seed))]


def test_a_number_that_is_compared_by_order_is_not_fresh() -> None:
    """The check catches a bid that is declared for equality only, and passes its twin that declares the order."""
    assert not found(auction(*ORDERED))
    caught = found(auction(*HASTY))
    assert any("house|Take|" in why and "a renaming only" in why for why in caught)


def test_a_number_that_is_counted_with_is_not_ordered() -> None:
    """The check catches a bid of which the house asks whether it is one more than the last."""
    assert any("house|Skip|" in why for why in found(auction(*ORDERED, adds=True)))


@attrs.frozen
class Ledger:
    term: int = m.persisted(default=0, metadata=m.ordered("term", "self"))
    heard: m.FrozenMap[str, int] = attrs.field(default=m.FrozenMap(), metadata=m.ordered("term", "key"))
    seen: frozenset[int] = attrs.field(default=frozenset(), metadata=m.fresh("ticket"))
    answer: int | None = attrs.field(default=None, metadata=m.absent_if_none() | m.fresh("ticket"))
    total: int = 7


def test_declared_numbers_are_renamed_wherever_they_stand() -> None:
    """In tuples, sets and maps, each in its own namespace; special ones and others stay."""
    value = Ledger(3, m.FrozenMap({"b": 5, "c": 0}), frozenset((1, 2)), -1)
    after = renamed_value(value, lambda where, n: n + {"a": 10, "b": 20, "": 30}[where[1]], "a")
    assert after == Ledger(13, m.FrozenMap({"b": 25, "c": 0}), frozenset((31, 32)), -1, 7)


def test_disks_are_renamed_as_the_states_that_they_survive() -> None:
    """A broker's incarnation has one name on its disk and in its memory."""
    model = m.find_model("kafka/4.0").make(faults=m.Faults(crash=1, targets=("b1",)))
    state = dict(model.initial_states()[0])
    state["b1[metadata]"] = attrs.evolve(state["b1[metadata]"], broker_epoch=4)
    state["disk[b1][metadata]"] = state["disk[b1][metadata]"].set("broker_epoch", 4)
    after = renamed(model, state, lambda where, n: n + 100)
    assert (after["b1[metadata]"].broker_epoch, after["disk[b1][metadata]"]["broker_epoch"]) == (104, 104)


def test_a_sort_is_ordered_everywhere_or_nowhere() -> None:
    """Two fields that say otherwise are a mistake in the protocol."""
    assert declared((ORDERED[0], ORDERED[2])) == {"bid": Sort(True, {"Offer.bid": (), "Best.bid": ()})}
    assert attrs.fields(Ledger).term.metadata == {"persisted": True, "number": Number("term", True, ("self",))}
    with pytest.raises(ValueError, match=r"bid is ordered in Offer.bid or in Best.bid, not in both"):
        declared((ORDERED[0], HASTY[2]))
