"""From slots back to the spec's variables: nested maps per variable, and the messages under way.

On the specs' network `messages` is their set. On others, where copies count, it is the sorted tuple of all under way;
those on reliable links and the delayed ones are in `reliable` and `held`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.model.frozen_map import FrozenMap
from harness.model.links import Inbox
from harness.model.message import Message
from harness.model.network import UNORDERED_SET
from harness.model.values import Value, canonical_sort
from harness.model.view import State, parts

NETWORK_SLOTS = ("inbox", "discarded", "held")


def gather(
    state: State, inboxes: Mapping[str, tuple[Inbox, ...]], *, delayed: bool, discarded: bool
) -> dict[str, Value]:
    """Return `variable -> value`: `tc_log[b1][p1]` becomes `tc_log` of b1 of p1; inboxes become `messages`.

    `delayed` and `discarded` say which slots beside the inboxes the network of the model has.
    """
    variables: dict[str, Any] = {}
    for name, value in state.items():
        variable, *index = parts(name)
        if variable in NETWORK_SLOTS:
            continue
        if not index:
            variables[variable] = value
            continue
        inner = variables.setdefault(variable, {})
        for part in index[:-1]:
            inner = inner.setdefault(part, {})
        inner[index[-1]] = value
    frozen = {variable: _freeze(value) for variable, value in variables.items()}
    if not inboxes:
        return dict(sorted(frozen.items()))
    lossy = [inbox for mine in inboxes.values() for inbox in mine if not inbox.network.is_reliable]
    queued = [inbox for mine in inboxes.values() for inbox in mine if inbox.network.is_reliable]
    under_way = _contents(state, lossy)
    if all(inbox.network is UNORDERED_SET for inbox in lossy):
        frozen["messages"] = frozenset(under_way)
    else:
        frozen["messages"] = tuple(canonical_sort(under_way))
    if queued:
        frozen["reliable"] = tuple(_contents(state, queued))
    if delayed:
        frozen["held"] = tuple(m for a in inboxes for m in state[f"held[{a}]"])
    if discarded:
        frozen["messages_discard"] = frozenset().union(*(state[f"discarded[{a}]"] for a in inboxes))
    return dict(sorted(frozen.items()))


def _contents(state: State, inboxes: list[Inbox]) -> list[Message]:
    return [message for inbox in inboxes for message in inbox.network.contents(state[inbox.slot])]


def _freeze(value: Any) -> Value:
    return FrozenMap({key: _freeze(item) for key, item in value.items()}) if isinstance(value, dict) else value
