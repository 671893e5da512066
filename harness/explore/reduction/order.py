"""Partial order: in which states the steps of some actors are enough, and those of the others can wait.

`Order.enough` chooses actors P for a state, so that whatever the others do while P waits commutes with all that P can
do: no other actor may send to them, crash them or cut them off, and what they send does not depend on what happens
meanwhile. Then a run that goes on without P can be begun with a step of P, and one that takes a step of P anywhere can
take it first; docs/inside/search.md has the argument. What the others may do comes from `Futures`, which has seen a
part of it only: choices are looked at again, with `Order.holds`, when a search has seen the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from harness.explore.bounded import TIMERS
from harness.explore.model_memo import Remembered, Way
from harness.explore.reduction.futures import FAULT, TIMER, Change, Futures
from harness.explore.reduction.shapes import Shapes
from harness.memo.interning import Derived, Ids
from harness.model import Kind, Message, Model, Property, Refusal, parts, slot
from harness.model.faults import BUDGET, LINK_KINDS, ActorFaults, LinkFaults, NetworkFaults
from harness.model.network import CONNECTIONS, FIFO, UNORDERED_SET


@attrs.frozen
class Ample:
    """Actors whose steps are enough (a mask), those steps, and which of them nothing else can prevent."""

    inside: int
    ways: list[Way]
    keys: list[Way]


@attrs.frozen
class Dangers:
    """What faults may still do: the actors to crash or restart (a mask), and the pairs to cut off or heal."""

    hit: int
    ties: tuple[int, ...]


class Order:
    """The choices of one search."""

    def __init__(self, model: Model, known: Remembered, properties: Iterable[Property], *, numbers: bool, names: bool):
        refuse(model)
        self._model = model
        self._known = known
        self._properties = {prop.name: prop for prop in properties}
        self._shapes = Shapes(model, known, numbers=numbers, names=names)
        self._seen_by: dict[int, list[Derived | None]] = {}
        self._sees_beyond = False
        self._footprint_size = -1
        self.futures = Futures(model, self._shapes, known.index, self._is_visible)
        self._actors = self.futures.place
        self._everyone = model.everyone()
        self._touches: list[int] = []
        """Of each process: the actors whose steps its own may depend on, as a mask."""
        for process in self._everyone:
            names_of: Sequence[str] = (process.name,)
            if isinstance(process, NetworkFaults):
                names_of = (process.dest,)
            elif isinstance(process, ActorFaults):
                names_of = (process.actor.name,)
            elif isinstance(process, LinkFaults):
                names_of = process.pair
            self._touches.append(sum(1 << self._actors[name] for name in names_of))
        index = known.index
        self._owner = {n: place for place, slots in enumerate(self.futures.slots) for n in slots}
        """The owner of a slot; slots without an owner are not here."""
        for name, place in self._actors.items():
            for inbox in model.inboxes[name]:
                self._owner[index[inbox.slot]] = place
            for variable in ("held", "gate", "discarded"):
                if slot(variable, name) in index:
                    self._owner[index[slot(variable, name)]] = place
        self._budgets = frozenset(index[name] for name in (BUDGET, TIMERS) if name in index)
        self._inboxes = [
            (place, index[each]) for name, place in self._actors.items() for each in self._waiting(name)
        ]
        self._under_way: dict[tuple[int, int], int] = {}
        self._dangers: dict[Ids, Dangers] = {}
        gates = [slot("gate", name) for name in self._actors] if model.faulty else []
        self._danger_slots = [index[name] for name in ([BUDGET, *gates] if gates else [])]
        self._is_odd: dict[Way, bool] = {}
        self._slots_of: dict[int, int] = {}
        self._message_answers: dict[tuple[str, Message], bool] = {}
        self.is_off = False
        """Whether an actor was seen to do what no actor does, so that nothing can be said."""

    def _waiting(self, name: str) -> Iterator[str]:
        yield from (inbox.slot for inbox in self._model.inboxes[name])
        if self._model.faulty:
            yield slot("held", name)

    # What is learned

    def learn(self, state: Ids, ways: Iterable[Way]) -> None:
        """Note what can happen in a state."""
        futures = self.futures
        for way in ways:
            process = self._everyone[way.unit]
            place = self._actors.get(process.name)
            if place is not None:
                if futures.is_met(place, way, state):
                    continue
                self.is_off |= self._is_foreign(way, place)
                step = way.step
                exchanged = step.sent if step.consumed is None else (step.consumed, *step.sent)
                futures.learn(
                    place, state, way.follow(state), step.consumed, step.sent, is_bad=self._is_bad(exchanged),
                    needs=TIMER if step.kind is Kind.TIMER else "",
                )
            elif isinstance(process, ActorFaults):
                place = self._actors[process.actor.name]
                if not futures.is_met(place, way, state):
                    futures.learn(place, state, way.follow(state), None, (), is_bad=False, needs=FAULT)

    def _is_foreign(self, way: Way, place: int) -> bool:
        """Say whether an actor's step reads or writes what is another's, or sends in another's name."""
        index, owner, name = self._known.index, self._owner, self.futures.actors[place]
        slots = (*way.reads, *(index[each] for each, _ in way.step.writes))
        if any(owner.get(n, place) != place for n in slots) or any(m.source != name for m in way.step.sent):
            return True
        return any(n in slots for _, n in self._inboxes)  # an actor sees the message that it is given, and no others

    def _is_bad(self, messages: Iterable[Message]) -> bool:
        found = False
        for prop in self._properties.values():
            if prop.on == "message":
                for message in messages:
                    key = (prop.name, message)
                    if key not in self._message_answers:
                        self._message_answers[key] = prop.check(message) is not None
                    found |= self._message_answers[key]
        return found

    def dismiss(self, names: Iterable[str]) -> None:
        """Keep no more what some properties look at."""
        for name in names:
            if self._properties.pop(name, None) is not None:
                self._footprint_size = -1

    def update(self) -> None:
        """Look anew at what properties read, if they read more than before, or if there are fewer of them."""
        kept = [self._known.footprints[name] for name, prop in self._properties.items() if prop.on != "message"]
        size = sum(map(len, kept))
        if size == self._footprint_size:
            return
        self._footprint_size = size
        self._seen_by = {}
        of = self._known
        for reads in kept:
            for read in reads:
                n, made = (read, None) if isinstance(read, int) else (read.slot, read)
                self._seen_by.setdefault(n, []).append(made)
                for image in self._shapes.images:
                    other = None if made is None else of.derived(image.targets[n], made.function)
                    self._seen_by.setdefault(image.targets[n], []).append(other)
        own = {n for slots in self.futures.slots for n in slots}
        self._sees_beyond = any(n not in own for n in self._seen_by)
        self.futures.look_again()

    def _is_visible(self, change: Change) -> bool:
        n, before, after = change
        return before != after and any(
            made is None or made.number(before) != made.number(after) for made in self._seen_by.get(n, ())
        )

    # What is chosen

    def enough(self, state: Ids, ways: list[Way]) -> list[Ample]:
        """Return the choices of actors whose steps are enough in a state, those with the fewest steps first."""
        if self.is_off or len(ways) < 2:
            return []
        here = self._here(state)
        found: dict[int, Ample] = {}
        every = (1 << len(self._actors)) - 1
        for way in ways:
            inside = self._touches[way.unit]
            while inside != every and inside not in found:
                mine = [each for each in ways if self._touches[each.unit] & inside]
                if len(mine) == len(ways):
                    break
                more = self._conflicts(state, here, inside, mine)
                if not more:
                    keys = self._keys(state, here, inside, mine)
                    if keys:
                        found[inside] = Ample(inside, mine, keys)
                    break
                inside |= more
        return sorted(found.values(), key=lambda choice: (len(choice.ways), choice.inside))

    def holds(self, state: Ids, ways: list[Way], inside: int) -> list[Way]:
        """Return the steps that nothing else can prevent if a choice is still right, by what is known now; else none.
        """
        if self.is_off:
            return []
        here = self._here(state)
        mine = [each for each in ways if self._touches[each.unit] & inside]
        return [] if self._conflicts(state, here, inside, mine) else self._keys(state, here, inside, mine)

    def takes(self, way: Way, inside: int) -> bool:
        """Say whether a step is one of those of some actors."""
        return bool(self._touches[way.unit] & inside)

    def _here(self, state: Ids) -> _Here:
        nodes = tuple([self.futures.node(place, state) for place in range(len(self._actors))])
        waiting = [0] * len(nodes)
        for place, n in self._inboxes:
            key = (n, state[n])
            found = self._under_way.get(key)
            if found is None:
                found = self._under_way[key] = self.futures.mask(self._messages(n, state[n]))
            waiting[place] |= found
        left: Mapping[str, int] | None = None
        if TIMERS in self._known.index:
            n = self._known.index[TIMERS]
            left = self._known.values[n][state[n]]
        at = tuple([state[n] for n in self._danger_slots])
        dangers = self._dangers.get(at)
        if dangers is None:
            dangers = self._dangers[at] = self._what_threatens(state)
        return _Here(nodes, waiting, left is None or any(left.values()), dangers)

    def _messages(self, n: int, value: int) -> Iterable[Message]:
        name, now = self._known.slots[n], self._known.values[n][value]
        if parts(name)[0] == "held":
            return tuple(now)
        return next(inbox for mine in self._model.inboxes.values() for inbox in mine if inbox.slot == name) \
            .network.contents(now)

    def _what_threatens(self, state: Ids) -> Dangers:
        if not self._danger_slots:
            return Dangers(0, ())
        values = self._known.mapping(state)
        budget, hit, ties = values[BUDGET], 0, []
        for process in self._model.environment:
            if isinstance(process, ActorFaults):
                name = process.actor.name
                if budget["crash"] or budget["pause"] or values[slot("gate", name)].status != "up":
                    hit |= 1 << self._actors[name]
            elif isinstance(process, LinkFaults):
                one, other = process.pair
                cut = one in values[slot("gate", other)].deaf_to or other in values[slot("gate", one)].deaf_to
                if cut or any(budget[kind] for kind in LINK_KINDS):
                    ties.append(1 << self._actors[one] | 1 << self._actors[other])
        return Dangers(hit, tuple(ties))

    def _conflicts(self, state: Ids, here: _Here, inside: int, mine: list[Way]) -> int:
        """Return the actors (a mask) that must not be left outside; all of them if nothing helps."""
        every = (1 << len(here.nodes)) - 1
        more = 0
        for tie in here.dangers.ties:
            if tie & inside:
                more |= tie
        for way in mine:
            if self._odd(way):
                return every
            for message in way.step.sent:
                to = 1 << self._actors[message.dest] if message.dest in self._actors else 0
                if not to & inside and (to & here.dangers.hit or self._minds(state, message)):
                    more |= to
        if more & ~inside:
            return more & ~inside
        to_inside = 0
        for place in range(len(here.nodes)):
            if inside >> place & 1:
                to_inside |= self.futures.to[place]
        sent, _ = self._without(here, inside)
        for place, messages in enumerate(sent):
            if messages & to_inside:
                more |= 1 << place
        return more & ~inside

    def _without(self, here: _Here, inside: int) -> tuple[tuple[int, ...], bool]:
        under_way = 0
        for place, messages in enumerate(here.waiting):
            if not inside >> place & 1:
                under_way |= messages
        return self.futures.without(inside, here.nodes, under_way, here.dangers.hit & ~inside, here.has_timers)

    def _odd(self, way: Way) -> bool:
        """Say whether a step reads or writes a slot without owner, budgets aside, so that others may depend on it."""
        found = self._is_odd.get(way)
        if found is None:
            index, owner, budgets = self._known.index, self._owner, self._budgets
            slots = (*way.reads, *(index[name] for name, _ in way.step.writes))
            found = self._is_odd[way] = any(n not in owner and n not in budgets for n in slots)
        return found

    def _minds(self, state: Ids, message: Message) -> bool:
        """Say whether it matters when a message is sent: whether before or after what its receiver does meanwhile."""
        inbox = self._model.routes.of(message)
        network, values = inbox.network, self._known.mapping(state)
        held: tuple[Message, ...] = values[slot("held", message.dest)] if self._model.faulty else ()
        if network in (FIFO, CONNECTIONS) and self._model.faulty:
            budget = values[BUDGET]
            if held or any(budget[kind] for kind in ("duplicate", "delay", "reorder")):
                return True  # what is put into the queue meanwhile stands before it, or behind it
        if network not in (FIFO, UNORDERED_SET):
            return False
        return message in held or message in network.contents(values[inbox.slot])

    def _keys(self, state: Ids, here: _Here, inside: int, mine: list[Way]) -> list[Way]:
        """Return the steps that can be put before a run without any: nothing prevents them, and what properties say of
        the states of that run they say still; none if what properties see of `mine` depends on others."""
        for prop in self._properties.values():
            if prop.on == "step" and any(self._looks_outside(prop, way, state, inside) for way in mine):
                return []
        lasting = [way for way in mine if not self._is_paid(way)]
        if not self._sees_beyond and not self._without(here, inside)[1]:
            return lasting
        return [way for way in lasting if not self._shows(way, state)]

    def _is_paid(self, way: Way) -> bool:
        index = self._known.index
        return any(index[name] in self._budgets for name, _ in way.step.writes)

    def _shows(self, way: Way, state: Ids) -> bool:
        """Say whether a property may look at what a step does."""
        step = way.step
        exchanged = step.sent if step.consumed is None else (step.consumed, *step.sent)
        return self._is_bad(exchanged) or any(self._is_visible((n, state[n], after)) for n, after in way.writes(state))

    def _looks_outside(self, prop: Property, way: Way, state: Ids, inside: int) -> bool:
        """Say whether it depends on what is not of some actors whether a step of theirs shows a property on steps."""
        own = self._slots_of.get(inside)
        if own is None:
            own = self._slots_of[inside] = sum(1 << n for n, place in self._owner.items() if inside >> place & 1)
        return bool(self._known.shown(prop, way, state).mask & ~own)


@attrs.frozen
class _Here:
    nodes: Ids
    waiting: list[int]
    """Of each actor: the shapes of the messages that are under way to it."""
    has_timers: bool
    dangers: Dangers


def refuse(model: Model) -> None:
    """Raise Refusal where steps cannot be left for later in a model."""
    others = [process.name for process in model.processes if process.name not in model.actors]
    if others:
        raise Refusal(f"{others[0]} of {model.name} is not an actor and shares variables with others, so no order of "
                      "steps can be left out; leave --reduce order out")
    if model.constraint is not None:
        raise Refusal(f"{model.name} has a constraint, which --reduce order does not support; leave it out")
    if model.faults.rules or model.faults.timed:
        raise Refusal("rules that count messages, and timed faults, depend on the order of all steps; leave "
                      "--reduce order out")
