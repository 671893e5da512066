"""Small protocols drawn at random: clients ask a server, which answers, and notes things in a log; all by drawn rules.

A rule says in which state of an actor it applies, and to what: of its own accord, when a timer fires, or to a message,
whose number may have to be the one that is kept, or a newer one. It leads to another state, may keep a number, and may
send, a few times or any number of times. The clients are interchangeable, and the numbers of each are only compared:
for equality, or in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import attrs
from hypothesis import strategies as st

import harness.model as m

CLIENTS = ("c1", "c2")
SERVER, LOG = "server", "log"
STATES = 3
ANY = -1
OCCASIONS: Mapping[str, tuple[str, ...]] = {
    "client": ("own", "timer", "Answer"), "server": ("own", "Ask", "Ack"), "log": ("Note",)
}
SENDS: Mapping[str, tuple[str, ...]] = {
    "client": ("", "new", "kept"), "server": ("", "answer", "tell", "note", "both"), "log": ("", "ack")
}


@attrs.frozen
class Note(m.Message):
    """The server has something for the log."""


@attrs.frozen
class Ack(m.Message):
    """The log answers."""


@attrs.frozen
class Kinds:
    """The classes of a protocol, by what is declared of its numbers."""

    ask: type
    answer: type
    client: type
    server: type
    all: tuple[type, ...]


@cache
def kinds(is_ordered: bool) -> Kinds:
    """Return classes whose numbers are ordered, or fresh."""
    declare = m.ordered if is_ordered else m.fresh

    @attrs.frozen
    class Ask(m.Message):
        number: int = attrs.field(metadata=declare("request", "source"))

    @attrs.frozen
    class Answer(m.Message):
        number: int = attrs.field(metadata=declare("request", "dest"))

    @attrs.frozen
    class Client:
        at: int = m.persisted(default=0)
        last: int = m.persisted(default=0, metadata=declare("request", "self"))
        kept: int = m.volatile(default=0, metadata=declare("request", "self"))
        left: int = m.persisted(default=0)

    @attrs.frozen
    class Server:
        at: int = m.persisted(default=0)
        kept: m.FrozenMap[str, int] = m.volatile(default=m.FrozenMap(), metadata=declare("request", "key"))
        left: int = m.persisted(default=0)

    return Kinds(Ask, Answer, Client, Server, (Ask, Answer, Client, Server, Note, Ack))


@attrs.frozen
class Rule:
    """What an actor may do in a state, and where that leads."""

    role: str
    on: str
    at: int
    compares: str
    to: int
    keeps: bool
    sends: str


class Ruled(m.Actor[Any]):
    """An actor that does what its rules say; each number that it makes is on disk before it is sent."""

    def __init__(self, name: str, role: str, rules: tuple[Rule, ...], initial: Any, all_kinds: Kinds) -> None:
        self.name, self.role, self.initial, self.kinds = name, role, initial, all_kinds
        self.rules = tuple((n, rule) for n, rule in enumerate(rules) if rule.role == role)
        self.may_crash = role != "log"

    def step(self, local: Any) -> Iterable[m.Turn[Any]]:
        return [turn for n, rule in self.rules if rule.on == "own" for turn in self.turn(local, n, rule, None)]

    def timers(self, local: Any) -> tuple[str, ...]:
        return tuple(f"Timer{n}" for n, rule in self.rules if rule.on == "timer" and rule.at == local.at)

    def timer_fired(self, local: Any, timer: str) -> Iterable[m.Turn[Any]]:
        return [turn for n, rule in self.rules if timer == f"Timer{n}" for turn in self.turn(local, n, rule, None)]

    def on_message(self, local: Any, message: m.Message) -> Iterable[m.Turn[Any]]:
        return [turn for n, rule in self.rules if rule.on == message.type
                for turn in self.turn(local, n, rule, message)]

    def turn(self, local: Any, n: int, rule: Rule, message: m.Message | None) -> Iterable[m.Turn[Any]]:
        given = getattr(message, "number", 0)
        if rule.at != local.at or not self.compared(local, rule.compares, message, given):
            return
        if rule.on in ("own", "timer") and local.at == rule.to and not rule.sends:
            return
        after = attrs.evolve(local, at=rule.to)
        if rule.keeps and given:
            after = attrs.evolve(after, kept=given if self.role == "client" else local.kept.set(message.source, given))  # type: ignore[union-attr]
        sent: tuple[m.Message, ...] = ()
        if rule.sends and local.left:
            left = local.left - 1 if local.left > 0 else ANY
            after, sent = self.sending(attrs.evolve(after, left=left), rule.sends, message, given)
        elif rule.sends and message is None:
            return
        timer = f"Timer{n}" if rule.on == "timer" else f"Rule{n}"
        yield m.Turn(timer, (self.name,), after, sent, flush=True)

    def compared(self, local: Any, how: str, message: m.Message | None, given: int) -> bool:
        if not how or message is None or not given:
            return True
        kept = local.kept if self.role == "client" else local.kept.get(message.source, 0)
        return bool(given == kept if how == "same" else given > kept if how == "newer" else given != kept)

    def sending(self, after: Any, how: str, message: m.Message | None, given: int) -> tuple[Any, tuple[m.Message, ...]]:
        if how == "new":
            after = attrs.evolve(after, last=after.last + 1)
            return after, (self.kinds.ask(after.last, source=self.name, dest=SERVER),)
        if how == "kept":
            return after, (self.kinds.ask(after.kept, source=self.name, dest=SERVER),)
        if how == "ack":
            return after, (Ack(source=LOG, dest=SERVER),)
        sent: tuple[m.Message, ...] = ()
        if how in ("answer", "both") and given and message is not None:
            sent += (self.kinds.answer(given, source=SERVER, dest=message.source),)
        if how == "tell":
            sent += tuple(self.kinds.answer(number, source=SERVER, dest=who) for who, number in after.kept.items())
        if how in ("note", "both"):
            sent += (Note(source=SERVER, dest=LOG),)
        return after, sent


@st.composite
def rules(draw: Any, is_ordered: bool) -> Rule:
    """Draw a rule."""
    role = draw(st.sampled_from(sorted(OCCASIONS)))
    compares = draw(st.sampled_from(["", "same", "newer" if is_ordered else "other"]))
    state = st.integers(0, STATES - 1)
    return Rule(role, draw(st.sampled_from(OCCASIONS[role])), draw(state), compares, draw(state), draw(st.booleans()),
                draw(st.sampled_from(SENDS[role])))


BASIC = (
    Rule("client", "own", 0, "", 1, False, "new"), Rule("server", "Ask", 0, "", 0, True, "answer"),
    Rule("client", "Answer", 1, "same", 1, True, ""),
)
ROUND = (*BASIC[:2], Rule("client", "Answer", 1, "", 0, True, ""))
NOTED = (
    *ROUND, Rule("server", "Ask", 1, "same", 0, True, "both"), Rule("log", "Note", 0, "", 1, False, "ack"),
)
SETS = ((), BASIC, ROUND, NOTED)
"""Rules with which something happens; drawn ones come on top."""


@st.composite
def protocols(draw: Any) -> m.Model:
    """Draw a protocol with its network, links, faults and properties."""
    is_ordered = draw(st.booleans())
    found = tuple(draw(st.lists(rules(is_ordered), min_size=1, max_size=6, unique=True)))
    table = (*draw(st.sampled_from(SETS)), *found)
    all_kinds = kinds(is_ordered)
    left, more = draw(st.sampled_from([1, 2, 3, ANY])), draw(st.sampled_from([1, 2, ANY]))
    actors = [
        *(Ruled(name, "client", table, all_kinds.client(left=left), all_kinds) for name in CLIENTS),
        Ruled(SERVER, "server", table, all_kinds.server(left=more), all_kinds),
        Ruled(LOG, "log", table, all_kinds.server(left=more), all_kinds),
    ]
    network = m.NETWORKS[draw(st.sampled_from(sorted(m.NETWORKS)))]
    reliable = draw(st.sampled_from([None, m.RELIABLE, m.FIFO]))
    links = (*m.both_ways(CLIENTS, (SERVER,)), *m.both_ways((SERVER,), (LOG,), reliable))
    kind = draw(st.sampled_from(["", "", "drop", "duplicate", "delay", "reorder", "partition", "pause", "crash"]))
    if (kind, network.name) in (("duplicate", "unordered-set"), ("reorder", "bag"), ("reorder", "unordered-set")):
        kind = ""
    targets = draw(st.sampled_from([(SERVER,), ("c1",), CLIENTS])) if kind in ("partition", "pause", "crash") else ()
    faults = m.Faults(**{kind: 1}, targets=targets) if kind else m.NO_FAULTS
    properties = tuple(draw(st.lists(claims(is_ordered), min_size=1, max_size=3, unique_by=lambda each: each.name)))
    return m.Model(
        "generated", tuple(actors), ({},), network, faults, properties, types=all_kinds.all, links=links,
        symmetric=(CLIENTS,),
    )


@st.composite
def claims(draw: Any, is_ordered: bool) -> m.Property:
    """Draw a property, which treats the clients alike and compares numbers only."""
    x, y = draw(st.integers(0, STATES - 1)), draw(st.integers(0, STATES - 1))
    kind = draw(st.sampled_from(["apart", "each", "numbers", "message", "some", "both", "step", "moment"]))
    name = f"{kind}{x}{y}"
    if kind == "apart":
        return m.always(name, lambda view, who: _why(view[who].at == x and view[SERVER].at == y), over=CLIENTS)
    if kind == "each":
        return m.always(name, lambda view: _why(all(view[who].at == x for who in CLIENTS)))
    if kind == "numbers":
        if is_ordered:
            return m.always(name, lambda view: _why(any(view[SERVER].kept.get(who, 0) > view[who].kept
                                                        and view[who].at == x for who in CLIENTS)))
        return m.always(name, lambda view: _why(any(view[SERVER].kept.get(who, 0) not in (0, view[who].kept)
                                                    and view[who].at == x for who in CLIENTS)))
    if kind == "message":
        return m.always(name, lambda message: _why(message.type == ("Ask", "Answer", "Note")[x]), on="message")
    if kind == "some":
        return m.sometimes(name, lambda view: bool(view[LOG].at == x and view[SERVER].at == y))
    if kind == "both":
        return m.sometimes(name, lambda view: bool(view["c1"].at == view["c2"].at == x and view[SERVER].at == y))
    if kind == "step":
        return m.sometimes(name, lambda view, step: step.consumed is not None and len(step.sent) == x, on="step")
    return m.sometimes(name, lambda view, step: step.args == (SERVER,) and view[LOG].at == x, on="step")


def _why(is_bad: bool) -> str | None:
    return "it is so" if is_bad else None
