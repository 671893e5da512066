"""Held against the truth: what a protocol declares as numbers that are only compared.

Along a run, the numbers of each state are renamed by a drawn injection, far away from all numbers in use. The renamed
state must offer the same steps, and each must lead to the same state but for a renaming that goes on from the first:
what order-preserving injections change is declared wrongly as `ordered`, what others change wrongly as `fresh`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from harness.model import Choice, FrozenMap, Model, State, Value, View, canonical_text
from harness.model.fresh import Namespace, declared, numbers, part_of, renamed, renamed_value

FAR = 1_000_000
Injection = dict[Namespace, dict[int, int]]


def drawn(model: Model, state: State, chance: random.Random) -> Injection:
    """Return an injection of a state's numbers: in order where that counts; else the greatest alone stays greatest."""
    order = {name: sort.ordered for name, sort in declared(model.types).items()}
    found: Injection = {}
    for where, there in sorted(numbers(model, state).items()):
        images = sorted(chance.sample(range(FAR, FAR * 2), len(there)))
        before = sorted(there)
        if not order[where[0]]:
            *rest, greatest = images
            images = [*chance.sample(rest, len(rest)), greatest]
        found[where] = dict(zip(before, images, strict=True))
    return found


def departures(model: Model, state: State, chance: random.Random) -> Iterator[str]:
    """Yield what a renaming of a state changes but names of numbers: none where the declarations are true."""
    injection = drawn(model, state, chance)
    other = renamed(model, state, lambda where, n: injection[where][n])
    ours = {_key(choice, injection): choice for choice in model.choices(state)}
    theirs = {_key(choice, None): choice for choice in model.choices(other)}
    for key in sorted(ours.keys() ^ theirs.keys()):
        yield f"{'|'.join(key)} is possible {'before' if key in ours else 'after'} a renaming only"
    for key in sorted(ours.keys() & theirs.keys()):
        if why := _differs(model, state, other, ours[key], theirs[key], injection):
            yield f"{'|'.join(key)}: {why}"


def _key(choice: Choice, injection: Injection | None) -> tuple[str, str, str, str]:
    """Return what tells a step from others, whatever numbers it shows."""
    about: Value = choice.step.subject
    if injection is not None and about is not None:
        about = renamed_value(about, lambda where, n: injection[where].get(n, n))
    shown = re.sub(r"\d+", "#", choice.step.detail) if about is None else ""
    return choice.process, choice.step.name, canonical_text(about), shown


def _differs(model: Model, one: State, other: State, ours: Choice, theirs: Choice, before: Injection) -> str | None:
    """Return how two steps differ, or None where renaming leads from what one does to what the other does."""
    first, second = model.effects(View(one), ours.step), model.effects(View(other), theirs.step)
    said = [(dict(effects.writes), choice.step.sent) for effects, choice in ((first, ours), (second, theirs))]
    (writes, sent), (written, meant) = said
    if writes.keys() != written.keys() or len(sent) != len(meant):
        return "other slots are written, or other messages sent"
    after = {where: dict(there) for where, there in before.items()}
    owners = {name: actor.name for actor in model.actors.values() for name in actor.layout.slots}
    pairs = [(owners[name], part_of(name), writes[name], written[name]) for name in writes if name in owners]
    pairs += [("", "", mine, its) for mine, its in zip(sent, meant, strict=True)]
    for owner, part, mine, its in pairs:
        for (where, n), (_, m) in zip(_listed(mine, owner, part), _listed(its, owner, part), strict=False):
            after.setdefault(where, {}).setdefault(n, m)
    if (why := _not_injective(model, after)) is not None:
        return why
    state, wanted = {**one, **writes}, {**other, **written}
    there = renamed(model, state, lambda where, n: after.get(where, {}).get(n, n))
    changed = [name for name in writes if canonical_text(there[name]) != canonical_text(wanted[name])]
    return f"{', '.join(changed)} are others" if changed else None


def _not_injective(model: Model, injection: Injection) -> str | None:
    order = {name: sort.ordered for name, sort in declared(model.types).items()}
    for where, there in injection.items():
        images = [there[n] for n in sorted(there)]
        if len(set(images)) < len(images) or (order[where[0]] and images != sorted(images)):
            return f"numbers of {' of '.join(filter(None, where))} are mixed up: {there}"
    return None


def _listed(value: Any, owner: str, part: str) -> list[tuple[Namespace, int]]:
    """Return the numbers of a value in the order of its fields; sets and maps by number have no order to go by."""
    found: list[tuple[Namespace, int]] = []

    def note(where: Namespace, n: int) -> int:
        found.append((where, n))
        return n

    renamed_value(_ordered_parts(value), note, owner, part)
    return found


def _ordered_parts(value: Any) -> Any:
    """Return a value without its sets, and without maps that are not by text."""
    if isinstance(value, frozenset):
        return frozenset()
    if isinstance(value, tuple):
        return tuple(map(_ordered_parts, value))
    if isinstance(value, FrozenMap):
        return FrozenMap({key: _ordered_parts(item) for key, item in value.items()} if _by_text(value) else {})
    if attrs.has(type(value)):
        fields = attrs.fields(type(value))
        return attrs.evolve(value, **{field.name: _ordered_parts(getattr(value, field.name)) for field in fields})
    return value


def _by_text(value: Mapping[Any, Any]) -> bool:
    return all(isinstance(key, str) for key in value)


def walk(model: Model, seed: int, steps: int) -> Iterator[State]:
    """Yield the states of a random walk."""
    chance, state = random.Random(seed), model.initial_states()[0]
    for _ in range(steps):
        yield state
        if not (choices := model.choices(state)):
            return
        state = model.apply(state, chance.choice(choices))
