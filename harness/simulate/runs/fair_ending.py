"""How a run that ends fairly is judged: what the claimed temporal properties still wait for, for ever."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from harness.model import Property
from harness.record import Chosen, SpooledChoices
from harness.simulate.runs.run import Verdict
from harness.simulate.states.nodes import Node
from harness.simulate.states.tables import Tables


class FairlyEnded(Protocol):
    """A session whose fair ending came to a stop, or went round a cycle from step `back_to` on."""

    tables: Tables
    initial: int
    node: Node
    labels: list[Chosen] | SpooledChoices
    fair_from: int | None
    fair_nodes: list[Node]
    back_to: int | None

    def how_it_ends(self, may_go_on: bool) -> str: ...


def pending_for_ever(run: FairlyEnded, temporal: Sequence[Property], may_go_on: bool) -> Iterable[Verdict]:
    """Yield a verdict for each temporal property that the ending violates; `may_go_on` says that it was cut off."""
    start = None if run.back_to is None else run.back_to - (run.fair_from or 0)
    cycle = run.fair_nodes[-1:] if start is None else run.fair_nodes[start:-1]
    for prop in temporal:
        reasons = [run.tables.predicate(prop, node) for node in cycle]
        if prop.form == "<>[]":
            why = next((reason for reason in reasons if reason), None)
        else:
            why = reasons[-1] if all(reasons) and is_owed(run, prop) else None
        if why:
            yield Verdict(prop.name, f"{why}; {run.how_it_ends(may_go_on)}", len(run.labels), "liveness")


def is_owed(run: FairlyEnded, prop: Property) -> bool:
    """Say whether what the ending lacks is owed: what `<>P` asks may have been before, `P ~> Q` may ask nothing."""
    if prop.form == "[]<>":
        return True
    owed = prop.form == "<>"
    for node in nodes(run):
        if not run.tables.predicate(prop, node):
            if prop.form == "<>":
                return False
            owed = False
        elif prop.form == "~>" and prop.check(run.tables.view_of(node)):
            owed = True
    return owed


def nodes(run: FairlyEnded) -> Iterator[Node]:
    """Yield the nodes that a run came through, from the initial one on."""
    node = run.tables.start(run.initial)
    yield node
    for chosen in run.labels:
        if chosen.input is not None:
            node = run.tables.with_input(node, chosen.input)
        n = node.find(chosen.label)
        assert n is not None, "a run took a step that its own tables do not offer"
        node = node.succ[n] or run.tables.follow(node, n)
        yield node
