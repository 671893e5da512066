"""Linearizability: can the calls that clients made of one object be put in an order that explains their answers?

The order must respect time: what was answered before a call began comes before it. A call that was not answered may
have had its effect, at any time after it began, or none. Decided by Wing and Gong's search ("Testing and Verifying
Concurrent Objects", 1993), which takes no set of calls with the same outcome twice (Lowe, "Testing for
Linearizability", 2017).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from harness.model.auxiliary import Auxiliary
from harness.model.frozen_map import FrozenMap
from harness.model.message import Message, brief_value
from harness.model.properties import Property, Reason, always
from harness.model.step import Kind, Step
from harness.model.values import Value


@attrs.frozen
class Operation:
    """What a client asks of an object."""

    name: str
    argument: Value = None

    def __str__(self) -> str:
        return f"{self.name}({'' if self.argument is None else brief_value(self.argument)})"


@attrs.frozen
class Called:
    """A client begins a call; `request` tells it from that client's other unanswered calls."""

    client: str
    operation: Operation
    request: Value = None


@attrs.frozen
class Answered:
    """A client gets the answer to a call. An answer to none of its open calls is ignored."""

    client: str
    answer: Value
    request: Value = None


@attrs.frozen
class Call:
    """A call of a client."""

    operation: Operation
    request: Value
    """Which of the client's open calls it is; None once it is answered."""
    after: FrozenMap[str, int]
    """Of each other client that had an answer when it began: how many of its calls there were up to the last such."""
    answer: tuple[Value, ...] = ()
    """The answer, or nothing."""


Calls = FrozenMap[str, tuple[Call, ...]]
"""The calls of each client, in their order."""
Apply = Callable[[Value, Operation], tuple[Value, Value]]
"""What an operation does to an object: the object after it, and the answer."""


def calls_of(
    called: Callable[[Message], Called | None], answered: Callable[[Message], Answered | None], name: str = "calls"
) -> Auxiliary:
    """Return the auxiliary variable that holds the calls of clients.

    A call begins when its client sends a message for which `called` is true. It is answered when its client takes a
    message whose answer `answered` gives. What faults do to messages is neither.
    """
    def noted(step: Step) -> tuple[Any, ...]:
        if step.kind in (Kind.FAULT, Kind.HEAL):
            return ()
        taken = None if step.consumed is None else answered(step.consumed)
        began = [begun for message in step.sent if (begun := called(message)) is not None]
        return (*(() if taken is None else (taken,)), *began)

    return Auxiliary(name, FrozenMap(), noted, _after, (Call, Operation))


def _after(calls: Calls, noted: tuple[Called | Answered, ...]) -> Calls:
    for one in noted:
        mine = calls.get(one.client, ())
        if isinstance(one, Called):
            answered = {client: _answered(theirs) for client, theirs in calls.items() if client != one.client}
            before = FrozenMap({client: count for client, count in answered.items() if count})
            calls = calls.set(one.client, (*mine, Call(one.operation, one.request, before)))
            continue
        for n, call in enumerate(mine):
            if not call.answer and call.request == one.request:
                done = attrs.evolve(call, request=None, answer=(one.answer,))
                calls = calls.set(one.client, (*mine[:n], done, *mine[n + 1 :]))
                break
    return calls


def _answered(calls: tuple[Call, ...]) -> int:
    """Return how many calls there are up to the last answered one."""
    return max((n for n, call in enumerate(calls, 1) if call.answer), default=0)


@attrs.frozen
class Linearization:
    """An order of calls that explains all answers, or, with a reason, the order that gets furthest."""

    order: tuple[tuple[str, Call], ...]
    """Clients with their calls."""
    reason: Reason = None


def linearize(calls: Calls, initial: Value, apply: Apply) -> Linearization:
    """Return an order that explains the answers to calls of an object, or why there is none."""
    search = _OrderSearch(calls, apply)
    order = search.run(initial)
    if order is not None:
        return Linearization(tuple(search.calls[n] for n in order))
    furthest, value = search.furthest
    return Linearization(tuple(search.calls[n] for n in furthest), search.why_not(furthest, value))


def linearizable(name: str, calls: Auxiliary, initial: Value, apply: Apply, source: str = "") -> Property:
    """An invariant: the calls of clients so far are linearizable, of an object that begins as `initial`."""
    return always(name, lambda view: linearize(calls.of(view), initial, apply).reason, source=source)


class _OrderSearch:
    """A depth-first search for an order; calls have numbers, by client and in each client's order."""

    def __init__(self, calls: Calls, apply: Apply) -> None:
        self.calls = [(client, call) for client, mine in calls.items() for call in mine]
        self.apply = apply
        first: dict[str, int] = {}
        for n, (client, _) in enumerate(self.calls):
            first.setdefault(client, n)
        self.before = [self._before(n, first) for n in range(len(self.calls))]
        """For each call, as the bits of a mask, the answered ones that come before it."""
        self.answered = self._mask(range(len(self.calls)))
        self.furthest: tuple[tuple[int, ...], Value] = ((), None)

    def _before(self, n: int, first: Mapping[str, int]) -> int:
        client, call = self.calls[n]
        theirs = [at for other, count in call.after.items() for at in range(first[other], first[other] + count)]
        return self._mask([*range(first[client], n), *theirs])

    def _mask(self, numbers: Any) -> int:
        return sum(1 << n for n in numbers if self.calls[n][1].answer)

    def run(self, initial: Value) -> tuple[int, ...] | None:
        """Return the numbers of calls in an order that explains all answers, or None."""
        self.furthest = ((), initial)
        most = 0
        seen: set[tuple[int, Value]] = {(0, initial)}
        ahead: list[tuple[tuple[int, ...], int, Value]] = [((), 0, initial)]
        while ahead:
            order, taken, value = ahead.pop()
            explained = (taken & self.answered).bit_count()
            if explained > most:
                most, self.furthest = explained, (order, value)
            if not self.answered & ~taken:
                return order
            following = [(n, after) for n, after, answer in self._next(taken, value) if self._fits(n, answer)]
            for n, after in reversed(following):
                key = (taken | 1 << n, after)
                if key not in seen:
                    seen.add(key)
                    ahead.append(((*order, n), *key))
        return None

    def _next(self, taken: int, value: Value) -> Iterator[tuple[int, Value, Value]]:
        """Yield the calls that may come next, with the object after each and the answer that it gives."""
        for n, (_, call) in enumerate(self.calls):
            if not taken >> n & 1 and not self.before[n] & ~taken:
                yield n, *self.apply(value, call.operation)

    def _fits(self, n: int, answer: Value) -> bool:
        return self.calls[n][1].answer in ((), (answer,))

    def why_not(self, order: tuple[int, ...], value: Value) -> str:
        """Return in a sentence why no order explains all answers, by the order that gets furthest."""
        taken = sum(1 << n for n in order)
        wrong = [
            f"{self._words(n)} was answered {brief_value(self.calls[n][1].answer[0])}, not {brief_value(answer)}"
            for n, _, answer in self._next(taken, value) if not self._fits(n, answer)
        ]
        so_far = f"after {', '.join(map(self._words, order))}, " if order else ""
        count = self.answered.bit_count()
        return f"no order of the calls explains {'its answer' if count == 1 else f'all {count} answers'}; the one " \
               f"that gets furthest ends where {so_far}{' and '.join(wrong)}"

    def _words(self, n: int) -> str:
        client, call = self.calls[n]
        return f"{call.operation} of {client}"
