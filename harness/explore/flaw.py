"""The flaw of a scenario, searched for in the spec that has it, too: how many steps it takes at least."""

from __future__ import annotations

from harness.explore.packed.search import Search
from harness.model import Refusal, find_model, find_scenario


def fewest_steps(name: str) -> int | None:
    """Return the fewest steps to the violation that a scenario names in a spec, or None if none is. Refusal."""
    scenario = find_scenario(name)
    if scenario is None or scenario.checked is None:
        raise Refusal(f"scenario {name!r} names no spec to search")
    checked = scenario.checked
    model = find_model(checked.model).make(checked.sizes, checked.settings)
    result = Search(model, (checked.violates,), symmetry=checked.symmetry).run()
    return result.violations[0].length - 1 if result.violations else None
