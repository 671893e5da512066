"""A toy that is given input from outside: a gate turns bytes of clients into messages to a store that keeps them.

`Clock` ticks on its own, so that runs have steps which no input made possible.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

import harness.model as m

NOTHING, TWO_WAYS, RAISES, BAD = b"", b"\x02", b"\xff", b"\x00bad"
"""What the gate does not take, what it could take in two ways, what it fails on, and what the store should not keep."""


@attrs.frozen
class Put(m.Message):
    payload: bytes


@attrs.frozen
class Order:
    """A command of an application with an argument of its own."""

    times: int


@attrs.frozen
class Counted:
    taken: int = m.persisted(default=0)


@attrs.frozen
class Stored:
    payloads: tuple[bytes, ...] = ()


class Gate(m.Actor[Counted]):
    name = "gate"
    initial = Counted()
    may_crash = True

    def on_input(self, local: Counted, value: m.Value) -> Iterable[m.Turn[Counted]]:
        payloads = (value,) if isinstance(value, bytes) else (b"order",) * value.times
        if payloads == (RAISES,):
            raise ValueError("these bytes are no request")
        after = Counted(local.taken + 1)
        sent = tuple(Put(payload, source="gate", dest="store") for payload in payloads if payload)
        if sent:
            yield m.Turn("Accept", ("gate",), after, sent, flush=True, op=m.Op("gate", "accept", "ok", len(sent)))
        if payloads == (TWO_WAYS,):
            yield m.Turn("Reject", ("gate",), after)


class Store(m.Actor[Stored]):
    name = "store"
    initial = Stored()

    def on_message(self, local: Stored, message: m.Message) -> Iterable[m.Turn[Stored]]:
        assert isinstance(message, Put)
        yield m.Turn("Keep", ("store",), Stored((*local.payloads, message.payload)))


class Clock(m.Actor[int]):
    name = "clock"
    initial = 0

    def __init__(self, ticks: int) -> None:
        self.ticks = ticks

    def step(self, local: int) -> Iterable[m.Turn[int]]:
        if local < self.ticks:
            yield m.Turn("Tick", ("clock",), local + 1)


class Spec(m.Process):
    """The store as a number that grows."""

    name = "spec"

    def steps(self, view: m.View) -> Iterable[m.Step]:
        yield m.Step("Grow", (), (("kept", view["kept"] + 1),))


def refinement() -> m.Refinement:
    spec = m.Model("outside/spec", (Spec(),), ({"kept": 0},))
    return m.Refinement(spec, lambda view, ghost: ({"kept": len(view["store"].payloads)}, ghost))


def properties() -> tuple[m.Property, ...]:
    return (
        m.always("NothingBad", lambda view: "the store keeps what is bad" if BAD in view["store"].payloads else None),
        m.eventually("EverythingIsKept", lambda view: (
            None if view["gate"].taken <= len(view["store"].payloads) else "something taken is not kept")),
        m.sometimes("SomethingTaken", lambda view: view["gate"].taken > 0),
    )


def build(sizes: Mapping[str, int], settings: Mapping[str, str], net: m.Network, faults: m.Faults, _: bool) -> m.Model:
    return m.Model(
        "outside", (Gate(), Store(), Clock(sizes["ticks"])), ({},), net, faults, properties(), sizes=sizes,
        settings=settings, types=(Put, Order, Counted, Stored), refinement=refinement,
    )


def system() -> m.System:
    spec = m.ModelSpec("outside", "a gate that takes bytes from outside", build, {"ticks": m.Size(6)},
                       networks=("bag", "fifo"), may_fault=True)
    return m.System("outside", (spec,))
