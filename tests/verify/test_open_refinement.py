"""Runs held against a spec whose environment is left open: it is told what a step took and sent, and what is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs
import pytest

from harness import model as m
from harness.simulate.runs.plan import Plan
from harness.verify.refinement import Refiner
from harness.verify.simulated_runs import refine_runs

PLAN = Plan((), 20)
RUNS = range(20)


@attrs.frozen
class Add(m.Message):
    amount: int


@attrs.frozen
class Sum(m.Message):
    total: int


@attrs.frozen
class Asker:
    left: int = 3


@attrs.frozen
class Adder:
    total: int = 0
    most: int = 9
    """What the total may be: its environment changes it, and the spec only reads it."""


class Client(m.Actor[Asker]):
    name, initial = "c1", Asker()

    def step(self, local: Asker) -> Iterable[m.Turn[Asker]]:
        if local.left:
            yield m.Turn("Ask", ("c1",), Asker(local.left - 1), (Add(local.left, source="c1", dest="s1"),))

    def on_message(self, local: Asker, message: m.Message) -> Iterable[m.Turn[Asker]]:
        yield m.Turn("Hear", ("c1",), local)


class Server(m.Actor[Adder]):
    name, initial = "s1", Adder()

    def __init__(self, flaw: str) -> None:
        self.flaw = flaw

    def step(self, local: Adder) -> Iterable[m.Turn[Adder]]:
        if local.most == 9:
            yield m.Turn("Limit", ("s1",), attrs.evolve(local, most=4))

    def on_message(self, local: Adder, message: m.Message) -> Iterable[m.Turn[Adder]]:
        assert isinstance(message, Add)
        if self.flaw == "ignores":
            yield m.Turn("Take", ("s1",), local)
            return
        total = local.total + message.amount
        total = total if total <= local.most or self.flaw == "forgets its limit" else local.total
        said = total + (self.flaw == "says too much")
        yield m.Turn("Take", ("s1",), attrs.evolve(local, total=total), (Sum(said, source="s1", dest="c1"),))


class Spec(m.Process):
    name = "adder"

    def steps(self, view: m.View) -> Iterable[m.Step]:
        amount, total = view["asked"], view["total"]
        if amount is None:
            return
        after = total + amount if total + amount <= view["most"] else total
        if view["owes"] == after:
            yield m.Step("Add", (), (("total", after), ("asked", None), ("owes", None)))


def told(view: m.View, step: m.Exchange) -> Mapping[str, m.Value]:
    """The amount that the server was asked to add, and the total that it said."""
    if not isinstance(step.consumed, Add):
        return {}
    said = [message.total for message in step.sent if isinstance(message, Sum)]
    return {"asked": step.consumed.amount, "owes": said[0] if said else None}


def model(flaw: str = "", given: tuple[str, ...] = ("most",)) -> m.Model:
    spec = m.Model("adder/spec", (Spec(),), ({"total": 0, "most": 9, "asked": None, "owes": None},))

    def abstract(view: m.View, ghost: m.Value) -> tuple[Mapping[str, m.Value], m.Value]:
        server: Adder = view["s1"]
        return {"total": server.total, "most": server.most, "asked": None, "owes": None}, ghost

    return m.Model(
        "adder", (Client(), Server(flaw)), ({},), m.BAG, types=(Add, Sum, Asker, Adder),
        refinement=lambda: m.Refinement(spec, abstract, given=given, told=told),
    )


def test_steps_are_explained_by_what_they_took_and_sent() -> None:
    """A request is a step of the spec even where it changes nothing; what is given changes with any step."""
    totals = refine_runs(model(), PLAN, RUNS)
    assert not totals.failed
    assert totals.actions["Add"] == totals.by_action()["Take"]["Add"] == 3 * len(RUNS)
    assert totals.by_action()["Limit"] == {"stutter": len(RUNS)}


@pytest.mark.parametrize("flaw", ["ignores", "says too much", "forgets its limit"])
def test_what_is_told_has_to_be_accounted_for(flaw: str) -> None:
    """An answer that is missing, or another one, leaves the spec; so does what does not heed the environment."""
    totals = refine_runs(model(flaw), PLAN, RUNS)
    assert totals.failed
    assert totals.explanation is not None and totals.explanation.label.startswith("Take")


def test_a_variable_that_is_not_given_may_not_change() -> None:
    totals = refine_runs(model(given=()), PLAN, RUNS)
    assert totals.failed == len(RUNS)
    assert totals.explanation is not None and totals.explanation.label == "Limit(s1)"


def test_an_explanation_shows_what_the_spec_was_told() -> None:
    """What changes is shown from where the spec takes its step: the amount asked for and the total said are in it."""
    totals = refine_runs(model("says too much"), PLAN, RUNS)
    assert totals.explanation is not None
    assert {"asked", "owes"} <= set(totals.explanation.changes)


def test_telling_that_fails_is_reported_with_its_place() -> None:
    def fails(view: m.View, step: m.Exchange) -> Mapping[str, m.Value]:
        raise LookupError("nothing is known of this")

    built = model()
    assert built.refinement is not None
    refinement = attrs.evolve(built.refinement(), told=fails)
    refiner = Refiner(attrs.evolve(built, refinement=lambda: refinement))
    totals = refine_runs(refiner.model, PLAN, range(1), refiner=refiner)
    assert totals.explanation is not None
    assert "what the spec is told of this step fails with LookupError: nothing is known of this" in (
        totals.explanation.why[0])
