"""From slots back to the spec's variables: nested maps per variable, and the messages under way.

On the specs' network `messages` is their set; on others, where copies count, the sorted tuple of all under way, with
the reliable and the delayed ones beside it as `wire` and `held`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.model.network import FIFO, UNORDERED_SET, Network
from harness.model.values import FrozenMap, Value, canonical_sort
from harness.model.view import State, parts

NETWORK_SLOTS = ("inbox", "wire", "discarded", "held")


def gather(
    state: State, addresses: Sequence[str], network: Network, *, reliable: bool, delayed: bool, discarded: bool
) -> dict[str, Value]:
    """Return `variable -> value`: `tc_log[b1][p1]` becomes `tc_log` of b1 of p1; inboxes become `messages`.

    `reliable`, `delayed` and `discarded` say which slots beside the inboxes the network of the model has.
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
    if not addresses:
        return dict(sorted(frozen.items()))
    under_way = [message for a in addresses for message in network.contents(state[f"inbox[{a}]"])]
    if network is UNORDERED_SET:
        frozen["messages"] = frozenset(under_way)
    else:
        frozen["messages"] = tuple(canonical_sort(under_way))
    if reliable:
        frozen["wire"] = tuple(m for a in addresses for m in FIFO.contents(state[f"wire[{a}]"]))
    if delayed:
        frozen["held"] = tuple(m for a in addresses for m in state[f"held[{a}]"])
    if discarded:
        frozen["messages_discard"] = frozenset().union(*(state[f"discarded[{a}]"] for a in addresses))
    return dict(sorted(frozen.items()))


def _freeze(value: Any) -> Value:
    return FrozenMap({key: _freeze(item) for key, item in value.items()}) if isinstance(value, dict) else value
