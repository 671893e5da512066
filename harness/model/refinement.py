"""Refinement: how a composition of actors is checked against a spec, step by step.

A mapping says which state of the spec a state of the actors stands for; then each step of the actors is a step of the
spec, a stutter, or one of the spec's named **extension actions**: behaviour that the spec abstracts from, each with a
reason and a setting of the spec model of its own. A mapping is a pure function: what it gave is remembered by the
harness, never by protocol code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from harness.model.frozen_map import FrozenMap
from harness.model.message import Message
from harness.model.model import Model
from harness.model.values import Value
from harness.model.view import View

Abstract = Callable[[View, Value], tuple[Mapping[str, Value], Value]]
"""From a state of the actors, and the ghost so far, to every slot of the spec (inboxes included), and the ghost now."""


@attrs.frozen
class Exchange:
    """What a step of the actors exchanged: the actor, its action, the message that it got, if any, and what it sent."""

    process: str
    action: str
    consumed: Message | None = None
    sent: tuple[Message, ...] = ()


Told = Callable[[View, Exchange], Mapping[str, Value]]
"""From the state of the actors before a step, and what it exchanged, to slots of the spec."""


@attrs.frozen(eq=False)
class Refinement:
    """A spec, and how states of the actors map to its states."""

    spec: Model
    """The spec model with its bounds lifted and its extensions on. Its constants have the actors' names."""
    abstract: Abstract
    ghost: Value = FrozenMap()
    """What the mapping remembers at the start: a frozen value, such as the numbers given to records so far."""
    served: tuple[type, ...] = ()
    """Responses that count at the moment they were served. From the step that sends one to the step that applies it,
    the mapping sees the receiver's local state with the fields that this step will change already changed (of maps the
    keys that it will change). A response that is lost or ignored never counts."""
    extensions: Mapping[str, str] = attrs.field(factory=dict)
    """The names of the spec's extension actions, and why the actors have each."""
    given: tuple[str, ...] = ()
    """Variables of the spec that belong to its environment, such as a log below it: a step of the actors may change
    them as it likes, and the spec takes its step from there."""
    told: Told | None = None
    """What the spec is told of a step before it takes its own: slots for a request that was asked, for answers that are
    to be accounted for. The mapping gives them as they are at rest, so that the spec's step has to take them back."""
    steps: int = 1
    """The most spec steps that one step of the actors may take."""
    by: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)
    """For actions of the spec, the actions of the actors that may be such a step; for others, any action may."""


def refinement_of(model: Model) -> Refinement | None:
    """Return what a model's steps are checked against, or None if it names nothing."""
    if model.refinement is None:
        return None
    built: Refinement = model.refinement()
    return built
