"""Faults: a budget for the scheduler's own choices, rules that hit chosen messages, and the processes that offer both.

Every fault is a step. Perturbing is limited by the budget, mending (release, heal, resume, restart) never is. A `Gate`
is what the environment does to one address: it is down or paused, it cannot hear some sources, its clock runs skewed.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model.frozen_map import FrozenMap
from harness.model.gate import Gate
from harness.model.links import Inbox, Routes
from harness.model.message import Message
from harness.model.network import FIFO, UNORDERED_SET
from harness.model.process import Actor, Process
from harness.model.step import Kind, Step
from harness.model.values import Value, canonical_sort
from harness.model.view import View, slot

BUDGET = "budget"
RULE_COUNTS = "rule_counts"
FAULT_KINDS = ("drop", "duplicate", "delay", "reorder", "partition", "one_way", "pause", "crash", "skew")
RULE_KINDS = ("drop", "duplicate", "delay", "reorder")
LINK_KINDS = ("partition", "one_way")
TIMED_KINDS = (*LINK_KINDS, "pause", "crash", "skew")


@attrs.frozen
class Rule:
    """A fault for the messages that match: by type, source, destination ("" matches all) and nth occurrence (0: every).

    `delay_ms` is the extra latency of a `delay` rule in timed mode; in free mode the message waits until released.
    """

    kind: str = attrs.field(validator=attrs.validators.in_(RULE_KINDS))
    message: str = ""
    source: str = ""
    dest: str = ""
    nth: int = 0
    delay_ms: int = 100

    def fits(self, message: Message) -> bool:
        """Say whether the rule matches this message, occurrences aside."""
        return (
            self.message in ("", message.type)
            and self.source in ("", message.source)
            and self.dest in ("", message.dest)
        )


@attrs.frozen
class Timed:
    """A fault at a moment of virtual time and its mending later: `partition` and `one_way` (from the second of `who`
    hearing the first), `pause`, `crash`, `skew` of one actor. Times in milliseconds; without `until_ms` the mending
    takes as long as that of a fault of the budget."""

    kind: str = attrs.field(validator=attrs.validators.in_(TIMED_KINDS))
    who: tuple[str, ...]
    at_ms: int
    until_ms: int | None = None

    @property
    def args(self) -> tuple[str, ...]:
        """The arguments of the step that begins it: a partition has no direction."""
        return tuple(sorted(self.who)) if self.kind == "partition" else self.who


@attrs.frozen
class Faults:
    """How much of each fault the scheduler may choose, which actors it may affect, and the rules it does not choose."""

    drop: int = 0
    duplicate: int = 0
    delay: int = 0
    reorder: int = 0
    partition: int = 0
    one_way: int = 0
    pause: int = 0
    crash: int = 0
    skew: int = 0
    targets: tuple[str, ...] = ()
    """Actors that the budget may cut off, pause, crash or skew; empty means none."""
    links: tuple[tuple[str, str], ...] = ()
    """Pairs that the budget may separate; empty means every pair of a target and another address with a link."""
    rules: tuple[Rule, ...] = ()
    timed: tuple[Timed, ...] = ()

    @property
    def budget(self) -> FrozenMap[str, int]:
        """The budget at the start: how often the scheduler may choose each kind; timed faults by kind and actors."""
        budget = {kind: getattr(self, kind) for kind in FAULT_KINDS}
        for timed in self.timed:
            key = timed_key(timed.kind, timed.args)
            budget[key] = budget.get(key, 0) + 1
        return FrozenMap(budget)

    def reaches(self, *kinds: str) -> bool:
        """Say whether a fault of one of these kinds can happen at all."""
        return any(getattr(self, kind) for kind in kinds) or any(t.kind in kinds for t in self.timed)


NO_FAULTS = Faults()


def timed_key(kind: str, who: tuple[str, ...]) -> str:
    """Return the key under which the budget counts a timed fault."""
    return f"{kind}({','.join(who)})"


def pay(
    view: View, kind: str, who: tuple[str, ...] = (), timed_only: bool = False
) -> tuple[tuple[str, Value], ...] | None:
    """Return the write that spends one `kind` of the budget, a timed one for `who` first, or None if none remains."""
    budget = view[BUDGET]
    for key in (timed_key(kind, who),) if timed_only else (timed_key(kind, who), kind):
        if budget.get(key, 0) > 0:
            return ((BUDGET, budget.set(key, budget[key] - 1)),)
    return None


class NetworkFaults(Process):
    """Faults of the messages under way to one address: Drop, Duplicate, Delay, Reorder; Release is never limited.

    `inboxes` are those of the address whose links are not reliable.
    """

    def __init__(self, dest: str, inboxes: tuple[Inbox, ...], routes: Routes) -> None:
        self.name = f"network[{dest}]"
        self.dest = dest
        self.inboxes = inboxes
        self.routes = routes

    def steps(self, view: View) -> Iterable[Step]:
        budget = view[BUDGET]
        for inbox in self.inboxes if any(budget[kind] for kind in RULE_KINDS) else ():
            messages = canonical_sort(set(inbox.network.contents(view[inbox.slot])))
            for message in messages:
                yield from self._hit(view, inbox, message)
            for source in sorted({message.source for message in messages}):
                yield from self._reconnect(view, inbox, source)
        for message in dict.fromkeys(view.at("held", self.dest)):
            yield self._release(view, message)

    def _hit(self, view: View, inbox: Inbox, message: Message) -> Iterable[Step]:
        if paid := pay(view, "drop"):
            yield Step("Drop", (), paid, consumed=message, detail=message.brief(), kind=Kind.FAULT)
        if inbox.network is not UNORDERED_SET and (paid := pay(view, "duplicate")):
            yield Step(
                "Duplicate", (), paid, (message,), detail=message.brief(), kind=Kind.FAULT, about=message
            )
        if paid := pay(view, "delay"):
            held = slot("held", self.dest)
            now = tuple(canonical_sort([*view[held], message]))
            yield Step("Delay", (), (*paid, (held, now)), consumed=message, detail=message.brief(), kind=Kind.FAULT)

    def _reconnect(self, view: View, inbox: Inbox, source: str) -> Iterable[Step]:
        if inbox.network is FIFO and (paid := pay(view, "reorder")):
            changed = FIFO.reconnect(view[inbox.slot], source)
            if changed != view[inbox.slot]:
                detail = f"{source}->{self.dest}"
                yield Step("Reconnect", (), (*paid, (inbox.slot, changed)), detail=detail, kind=Kind.FAULT)

    def _release(self, view: View, message: Message) -> Step:
        held, inbox = slot("held", self.dest), self.routes.of(message)
        rest = list(view[held])
        rest.remove(message)
        back = inbox.network.put(view[inbox.slot], message)
        writes = ((held, tuple(rest)), (inbox.slot, back))
        return Step("Release", (), writes, detail=message.brief(), kind=Kind.HEAL, about=message)


class LinkFaults(Process):
    """Cuts the link between two addresses, both ways or one way, and heals it; `timed_only` spends no other budget."""

    def __init__(self, one: str, other: str, timed_only: bool = False) -> None:
        self.pair = (min(one, other), max(one, other))
        self.name = f"link[{self.pair[0]}][{self.pair[1]}]"
        self.timed_only = timed_only

    def steps(self, view: View) -> Iterable[Step]:
        one, other = self.pair
        there, back = view.at("gate", other), view.at("gate", one)
        cut_there, cut_back = one in there.deaf_to, other in back.deaf_to
        if not cut_there and not cut_back and (paid := self._pay(view, "partition", one, other)) is not None:
            yield Step("Partition", self.pair, (*paid, *self._deaf(view, one, other), *self._deaf(view, other, one)),
                       kind=Kind.FAULT)
        for source, dest, cut in ((one, other, cut_there), (other, one, cut_back)):
            if not cut and (paid := self._pay(view, "one_way", source, dest)) is not None:
                yield Step("Cut", (source, dest), (*paid, *self._deaf(view, source, dest)), kind=Kind.FAULT)
        if cut_there or cut_back:
            healed = tuple(
                (slot("gate", a), attrs.evolve(view.at("gate", a), deaf_to=view.at("gate", a).deaf_to - {b}))
                for a, b in ((one, other), (other, one))
                if b in view.at("gate", a).deaf_to
            )
            yield Step("Heal", self.pair, healed, kind=Kind.HEAL)

    def _pay(self, view: View, kind: str, *who: str) -> tuple[tuple[str, Value], ...] | None:
        return pay(view, kind, who, self.timed_only)

    def _deaf(self, view: View, source: str, dest: str) -> tuple[tuple[str, Value], ...]:
        gate = view.at("gate", dest)
        return ((slot("gate", dest), attrs.evolve(gate, deaf_to=gate.deaf_to | {source})),)


class ActorFaults(Process):
    """Crashes and restarts, pauses and resumes one actor, skews its clock; `timed_only` spends no other budget."""

    def __init__(self, actor: Actor[Value], inboxes: tuple[Inbox, ...], timed_only: bool = False) -> None:
        self.name = f"fate[{actor.name}]"
        self.actor = actor
        self.inboxes = inboxes
        self.timed_only = timed_only

    def steps(self, view: View) -> Iterable[Step]:
        name = self.actor.name
        gate = view.at("gate", name)
        at = slot("gate", name)
        if gate.status == "up":
            if (paid := self._pay(view, "pause")) is not None:
                yield Step("Pause", (name,), (*paid, (at, attrs.evolve(gate, status="paused"))), kind=Kind.FAULT)
            if gate.skew == 100 and (paid := self._pay(view, "skew")) is not None:
                yield Step("SkewClock", (name,), (*paid, (at, attrs.evolve(gate, skew=300))), kind=Kind.FAULT)
        if gate.status != "down" and self.actor.may_crash and (paid := self._pay(view, "crash")) is not None:
            yield Step("Crash", (name,), (*paid, *self._crashed(view, gate)), kind=Kind.FAULT)
        if gate.status == "paused":
            yield Step("Resume", (name,), ((at, attrs.evolve(gate, status="up")),), kind=Kind.HEAL)
        if gate.status == "down":
            layout = self.actor.layout
            survivor = layout.read(view)
            again = layout.writes(survivor, self.actor.restarted(survivor), False)
            yield Step("Restart", (name,), (*again, (at, attrs.evolve(gate, status="up"))), kind=Kind.HEAL)
        if gate.skew != 100:
            yield Step("SetClock", (name,), ((at, attrs.evolve(gate, skew=100)),), kind=Kind.HEAL)

    def _pay(self, view: View, kind: str) -> tuple[tuple[str, Value], ...] | None:
        return pay(view, kind, (self.actor.name,), self.timed_only)

    def _crashed(self, view: View, gate: Gate) -> tuple[tuple[str, Value], ...]:
        """What a crash leaves: the survivor, and nothing that was on its way in."""
        name = self.actor.name
        return (
            *self.actor.layout.survivor(view).items(),
            (slot("gate", name), attrs.evolve(gate, status="down")),
            *((inbox.slot, inbox.network.empty) for inbox in self.inboxes),
            (slot("held", name), ()),
        )
