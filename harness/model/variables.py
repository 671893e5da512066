"""From slots back to the spec's variables: nested maps per variable, and the network's sets of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harness.model.values import FrozenMap, Value
from harness.model.view import parts

if TYPE_CHECKING:
    from harness.model.model import Model, State

NETWORK_SLOTS = ("inbox", "wire", "discarded", "held")


def gather(model: Model, state: State) -> dict[str, Value]:
    """Return `variable -> value`: `tc_log[b1][p1]` becomes `tc_log` of b1 of p1; inboxes become `messages`."""
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
    frozen["messages"] = frozenset(
        message for a in model.addresses for message in model.network.contents(state[f"inbox[{a}]"])
    )
    if model.history_variables:
        frozen["messages_discard"] = frozenset().union(*(state[f"discarded[{a}]"] for a in model.addresses))
    return dict(sorted(frozen.items()))


def _freeze(value: Any) -> Value:
    return FrozenMap({key: _freeze(item) for key, item in value.items()}) if isinstance(value, dict) else value
