"""A toy with a refinement: a register and a follower that copies it by fetching, as actors and as a spec.

The register counts up, the follower asks for its value and takes it where it is newer, and tells with its next request
what it has written to disk. The spec copies in one step; that a crash loses what was not flushed is an extension.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import attrs

from harness import model as m

CRASH = m.Faults(crash=2, targets=("f1",))
HARD = m.Faults(drop=1, duplicate=1, delay=1, crash=1, targets=("f1",))
FORGET = "a crash loses what the follower has not flushed"


@attrs.frozen
class Fetch(m.Message):
    number: int
    has: int


@attrs.frozen
class Fetched(m.Message):
    number: int
    value: int


@attrs.frozen
class Register:
    value: int = 0
    confirmed: int = 0


@attrs.frozen
class Follower:
    copy: int = m.persisted(default=0)
    number: int = m.persisted(default=0)


def may_set(value: int, most: int) -> bool:
    return value < most


def is_newer(value: int, copy: int) -> bool:
    return value > copy


class RegisterActor(m.Actor[Register]):
    def __init__(self, most: int, flaw: str) -> None:
        self.name, self.most, self.flaw, self.initial = "reg", most, flaw, Register()

    def step(self, local: Register) -> Iterable[m.Turn[Register]]:
        if may_set(local.value, self.most):
            yield m.Turn("Set", (), attrs.evolve(local, value=local.value + 1), kind=m.Kind.COMMAND,
                         op=m.Op("reg", "set", "ok", local.value + 1))

    def on_message(self, local: Register, message: m.Message) -> Iterable[m.Turn[Register]]:
        assert isinstance(message, Fetch)
        reply = Fetched(message.number, local.value, source="reg", dest=message.source)
        has = message.has + 1 if self.flaw == "confirms too much" else message.has
        yield m.Turn("Serve", (message.source,), attrs.evolve(local, confirmed=max(local.confirmed, has)), (reply,))


class FollowerActor(m.Actor[Follower]):
    may_crash = True

    def __init__(self, fetches: int, flaw: str) -> None:
        self.name, self.fetches, self.flaw, self.initial = "f1", fetches, flaw, Follower()

    def step(self, local: Follower) -> Iterable[m.Turn[Follower]]:
        if local.number < self.fetches:
            fetch = Fetch(local.number + 1, local.copy, source="f1", dest="reg")
            yield m.Turn("Ask", ("f1",), attrs.evolve(local, number=local.number + 1), (fetch,), flush=True)

    def on_message(self, local: Follower, message: m.Message) -> Iterable[m.Turn[Follower]]:
        assert isinstance(message, Fetched)
        if self.flaw != "takes old values" and not is_newer(message.value, local.copy):
            yield m.Turn("IgnoreOldValue", ("f1",), local)
            return
        yield m.Turn("Apply", ("f1",), attrs.evolve(local, copy=message.value))


class FailingFollower(FollowerActor):
    def on_message(self, local: Follower, message: m.Message) -> Iterable[m.Turn[Follower]]:
        assert isinstance(message, Fetched)
        if not is_newer(message.value, local.copy):
            raise LookupError(f"no value is newer than {local.copy}")
        return super().on_message(local, message)


class Spec(m.Process):
    """Set, Copy and Confirm; with the extension also Forget."""

    name = "spec"

    def __init__(self, most: int, forgets: bool) -> None:
        self.most, self.forgets = most, forgets

    def steps(self, view: m.View) -> Iterable[m.Step]:
        yield from self.set(view)
        yield from self.copy(view)
        for known in range(1, self.most + 1):
            yield from self.confirm(view, known)
        if self.forgets:
            for left in range(self.most):
                yield from self.forget(view, left)

    def set(self, view: m.View) -> Iterable[m.Step]:
        if not may_set(view["value"], self.most):
            return
        yield m.Step("Set", (), (("value", view["value"] + 1),))

    def copy(self, view: m.View) -> Iterable[m.Step]:
        if not is_newer(view["value"], view["copy[f1]"]):
            return
        yield m.Step("Copy", ("f1",), (("copy[f1]", view["value"]),))

    def confirm(self, view: m.View, known: int) -> Iterable[m.Step]:
        if known <= view["confirmed"]:
            return
        if known > view["copy[f1]"]:
            return
        yield m.Step("Confirm", ("f1",), (("confirmed", known),), detail=str(known))

    def forget(self, view: m.View, left: int) -> Iterable[m.Step]:
        if left >= view["copy[f1]"]:
            return
        if left < view["confirmed"]:
            return
        yield m.Step("Forget", ("f1",), (("copy[f1]", left),), detail=str(left), kind=m.Kind.FAULT)


BY = {"Set": ("Set",), "Copy": ("Serve",), "Confirm": ("Serve",), "Forget": ("Crash",)}
"""Which steps of the actors the spec's actions may be."""
INITIAL = {"value": 0, "copy[f1]": 0, "confirmed": 0}


def abstract(view: m.View, ghost: m.Value) -> tuple[Mapping[str, m.Value], m.Value]:
    """The state of the spec that a state of the actors stands for."""
    register, follower = view["reg"], view["f1"]
    return {"value": register.value, "copy[f1]": follower.copy, "confirmed": register.confirmed}, ghost


def refinement(
    most: int, mapping: Callable[..., object] = abstract, forgets: bool = True, **rest: object
) -> m.Refinement:
    """How the actors map to the spec; the tests replace parts of it."""
    spec = m.Model("toy/spec", (Spec(most, forgets),), (INITIAL,))
    fields = {"served": (Fetched,), "extensions": {"Forget": FORGET}, "steps": 2, "by": BY, **rest}
    return m.Refinement(spec, mapping, **fields)  # type: ignore[arg-type]


def properties() -> tuple[m.Property, ...]:
    def held(view: m.View) -> m.Reason:
        register, follower = view["reg"], view["f1"]
        if register.confirmed <= follower.copy:
            return None
        return f"{register.confirmed} is confirmed, f1 has {follower.copy}"

    return (
        m.always("ConfirmedIsHeld", held),
        m.sometimes("EverythingIsConfirmed", lambda view: view["reg"].confirmed == view["reg"].value > 0),
    )


def build(sizes: Mapping[str, int], settings: Mapping[str, str], net: m.Network, faults: m.Faults, _: bool) -> m.Model:
    most, flaw = sizes["values"], settings["flaw"].replace("-", " ")
    follower = FailingFollower if flaw == "fails on old values" else FollowerActor
    actors = (RegisterActor(most, flaw), follower(sizes["fetches"], flaw))
    return m.Model(
        "toy/actors", actors, ({},), net, faults, properties(), sizes=sizes, settings=settings,
        types=(Fetch, Fetched, Register, Follower), refinement=lambda: refinement(most),
    )


def system() -> m.System:
    spec = m.ModelSpec(
        "toy/actors", "a register and its copy", build, {"values": m.Size(3), "fetches": m.Size(4)},
        {"flaw": m.Setting(("", "takes-old-values", "fails-on-old-values", "confirms-too-much"), "")},
        ("bag", "fifo"), may_fault=True,
    )
    crashing = m.Scenario(
        "toy-crashing", "the follower crashes", "toy/actors", faults=HARD, claims=("ConfirmedIsHeld",),
        witnesses=("EverythingIsConfirmed",), steps=60,
    )
    return m.System("toy", (spec,), (crashing,))
