"""What `simulate --coverage` does: collects what the runs reach, and compares it with what a search can reach."""

from __future__ import annotations

from collections.abc import Mapping

import click

from harness.cli.group import pairs
from harness.explore.reach import reachable
from harness.model import Model, Refusal, find_model
from harness.simulate.states.guards import Guards
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.by_name import Strategies
from harness.simulate.strategies.coverage import Coverage, KnownStates

COVERAGE = click.option("--coverage", is_flag=True, help="Report which actions, guards and spec states were reached.")
WITHIN = click.option("--within", multiple=True, metavar="NAME=N",
                      help="With --coverage: search the spec at this size, and report the reached share of it.")


def collecting(
    model: Model, wanted: bool, within: tuple[str, ...], source: Strategies
) -> tuple[Tables, Coverage | None]:
    """Return the tables to simulate on, and a collector of what is reached there, if wanted. Raises Refusal."""
    if within and not wanted:
        raise Refusal("--within needs --coverage; give both")
    if not wanted:
        return Tables(model, Guards() if source.campaign is not None else None), None
    known = _known(model, pairs(within, int))
    tables = Tables(model, Guards())
    return tables, source.cover(tables, known)


def _known(model: Model, within: Mapping[str, int]) -> KnownStates | None:
    """Return what a search finds reachable: of a spec itself, or of the spec of actors if sizes are given."""
    if model.refinement is None:
        if within:
            raise Refusal(f"{model.name} has no spec to search at another size; leave --within out")
        if model.actors or model.faulty:
            return None
        spec = model
    elif within:
        refinement = model.refinement()
        lifted = refinement.spec
        if refinement.told is not None:
            raise Refusal(f"{lifted.name} takes steps only when its environment asks for them, so a search cannot tell "
                          "what is reachable; leave --within out")
        spec = find_model(lifted.name).make({**lifted.sizes, **within}, lifted.settings)
        if sorted(spec.initial_states()[0]) != sorted(lifted.initial_states()[0]):
            raise Refusal(f"at these sizes {spec.name} has other variables than the runs; only bounds go with --within")
    else:
        return None
    found = reachable(spec)
    return None if found is None else KnownStates(len(found), found.has, spec.sizes)
