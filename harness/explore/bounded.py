"""A model in which only so many timers fire in a run: an ordinary model, whose states know how many remain.

A run of it is a run of the model itself, with the same labels, so its trails are the model's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from harness.model import FrozenMap, Kind, Model, Process, Refusal, Step, Value, View, unknown

TIMERS = "timers_left"
"""The slot that says how often timers may fire yet: in all, of one name, and of one name at one actor."""
ALL = ""
"""The name of the bound on all timers together."""


@attrs.frozen(eq=False)
class Bounded(Model):
    """A model with a bound on timers, made by `bounded`."""

    model: Model = attrs.field(kw_only=True)
    """The model without it."""
    timers: Mapping[str, int] = attrs.field(kw_only=True)
    """How many timers may fire in a run, by the name of their action, or `ACTOR.NAME`; under `ALL`, in all."""

    def _environment_slots(self) -> dict[str, Value]:
        return {**super()._environment_slots(), TIMERS: FrozenMap(self.timers)}

    def own_steps(self, process: Process, view: View) -> Iterable[Step]:
        """Return the steps a process may take of its own accord: a timer's step uses up one of those that remain."""
        found = []
        for step in super().own_steps(process, view):
            if step.kind is not Kind.TIMER:
                found.append(step)
                continue
            left = view[TIMERS]
            paid = {name: left[name] - 1 for name in (ALL, step.action, f"{process.name}.{step.action}")
                    if name in left}
            if all(rest >= 0 for rest in paid.values()):
                found.append(attrs.evolve(step, writes=(*step.writes, (TIMERS, left.update(paid)))) if paid else step)
        return found


def bounded(model: Model, timers: Mapping[str, int]) -> Model:
    """Return a model in which no more timers fire in a run than these; no bounds leave it as it is."""
    if not timers:
        return model
    if TIMERS in model.initial_states()[0]:
        raise Refusal(f"{model.name} has a slot of its own called {TIMERS}, so --timers cannot be used with it")
    named = {name.partition(".")[0] for name in timers if "." in name}
    for actor in sorted(named - set(model.actors)):
        raise Refusal(unknown(f"--timers: there is no actor {actor!r}", actor, model.actors, "the actors are"))
    fields = {field.name: getattr(model, field.name) for field in attrs.fields(Model) if field.init}
    fields["symmetric"] = tuple(group for group in model.symmetric if not named.intersection(group))
    return Bounded(**fields, model=model, timers=timers)


def without_bounds(model: Model) -> Model:
    """Return the model that a bounded one was made from, or the model itself."""
    return model.model if isinstance(model, Bounded) else model
