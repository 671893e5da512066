"""The idiom of a spec's actions: who takes which step, in which order, and which extension actions stand beside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs
import pytest

from compaction import spec as compaction
from harness.model import Message, Model, Refusal, Value, View, slot
from harness.model.spec import ITSELF, Change, Next, action, chosen, each, flat, processes, reasons
from kafka_proto.replication.specs.by_version import SPECS
from kafka_proto.transactions.specs import diary_01, diary_02


@attrs.frozen
class Names:
    people: tuple[str, ...] = ("a", "b")
    cups: tuple[str, ...] = ("x", "y")


@attrs.frozen
class Ask(Message):
    """Asks for a cup."""


@action("Send", each("people"), by=ITSELF)
def send(k: Names, view: View, who: str) -> Iterable[Change]:
    """Ask everybody else, one by one."""
    for other in k.people:
        if other != who:
            yield Change(detail=other, sent=(Ask(source=who, dest=other),))


@action("Receive", each("people", "people"), receives=Ask)
def receive(k: Names, view: View, who: str, whom: str, message: Ask) -> Iterable[Change]:
    """Hear it; who hears whom are the parameters."""
    assert (message.dest, message.source) == (who, whom)
    yield Change(((slot("heard", who), whom),))


@action("Fill", exists=each("cups"))
def fill(k: Names, view: View, cup: str) -> Iterable[Change]:
    """A cup is filled; which one is a witness."""
    if not view.at("full", cup):
        yield Change(((slot("full", cup), True),), cup, ways=2)


@action("Empty", exists=each("cups"), reason="people drink")
def empty(k: Names, view: View, cup: str) -> Iterable[Change]:
    """A cup is emptied."""
    if view.at("full", cup):
        yield Change(((slot("full", cup), False),), cup)


NEXT: Next = (send, receive, fill)
START: Mapping[str, Value] = {
    "heard[a]": None, "heard[b]": None, "full[x]": False, "full[y]": True, "locked": False, "poured": 0,
}


def model(next_state: Next) -> Model:
    return Model("cups", processes(next_state, Names()), (START,))


def possible(of: Model, **changed: Value) -> list[tuple[str, str, int]]:
    """The process, label and ways of what is possible."""
    state = {**of.initial_states()[0], **changed}
    return [(choice.process, choice.label, choice.step.ways) for choice in of.choices(state)]


def test_steps_belong_to_actors_or_to_choices_in_the_order_of_the_relation() -> None:
    """Parameters are shown in labels, witnesses in the detail, and each choice of witnesses is a process."""
    of = model((*NEXT, empty))
    assert of.addresses == ("a", "b")
    assert possible(of) == [("a", "Send(a) b", 1), ("b", "Send(b) a", 1), ("Fill[x]", "Fill x", 2),
                            ("Empty[y]", "Empty y", 1)]


def test_a_tuple_in_a_relation_goes_choice_by_choice() -> None:
    """One after the other for the first cup, then for the second."""
    names = [process.name for process in processes(((fill, empty),), Names())]
    assert names == ["Fill[x]", "Empty[x]", "Fill[y]", "Empty[y]"]
    assert [process.name for process in processes((fill, empty), Names())] == [
        "Fill[x]", "Fill[y]", "Empty[x]", "Empty[y]"]


def test_message_is_received_by_whom_it_is_for() -> None:
    """The action gets receiver and sender, and no other instance of it."""
    of = model(NEXT)
    sent = of.choices(of.initial_states()[0])[0]
    after = of.apply(of.initial_states()[0], sent)
    heard = [choice for choice in of.choices(after) if choice.step.action == "Receive"]
    assert [(choice.process, choice.step.args) for choice in heard] == [("b", ("b", "a"))]
    assert of.apply(after, heard[0])["heard[b]"] == "a"


def test_extensions_are_chosen_by_name_and_give_their_reasons() -> None:
    """A group of which none is chosen is gone."""
    assert chosen(((fill, empty), send), ["Empty"]) == ((empty,),)
    assert reasons(((fill, empty),)) == {"Fill": "", "Empty": "people drink"}


@pytest.mark.parametrize(
    ("next_state", "fairness"),
    [*((spec.NEXT, spec.FAIRNESS) for spec in (diary_01, diary_02, compaction)),
     *((spec.next_state, spec.fairness) for spec in SPECS.values())],
    ids=["diary-01", "diary-02", "compaction", *SPECS],
)
def test_fairness_is_about_actions_of_the_relation(next_state: Next, fairness: Mapping[str, str]) -> None:
    """What a fairness table names is in NEXT, and no name is there twice."""
    names = [one.name for one in flat(next_state)]
    assert len(names) == len(set(names))
    assert set(fairness) <= set(names)


def test_a_parameter_that_is_no_text_is_refused_where_the_processes_are_made() -> None:
    """Not where a recorded step is read again; a witness, which no label shows, may be a number."""

    @attrs.frozen
    class Numbered:
        cups: tuple[int, ...] = (1, 2)

    with pytest.raises(Refusal, match=r"^the action Pour has the parameter 1, of the type int, but parameters of "
                                      r"actions are text; let its constant hold '1'$"):
        processes((action("Pour", each("cups"))(fill.changes),), Numbered())
    assert [one.name for one in processes((fill,), Numbered())] == ["Fill[1]", "Fill[2]"]


def test_each_refuses_what_is_no_name_of_a_constant() -> None:
    """At once: a module with such an action is not imported."""
    with pytest.raises(TypeError, match=r'^each takes the names of constants, as each\("brokers"\), not 3$'):
        each("people", 3)  # type: ignore[arg-type]
