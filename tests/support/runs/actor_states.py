"""The state in which a run ended."""

from __future__ import annotations

from harness.model import State
from harness.simulate.runs.run import Run


def last_state(run: Run) -> State:
    """Return the state in which a run ends, by the reference semantics."""
    model = run.trail.build()
    state = model.initial_states()[run.trail.initial]
    for chosen in run.trail.choices:
        (choice,) = (choice for choice in model.choices(state) if choice.label == chosen.label)
        state = model.apply(state, choice)
    return state
