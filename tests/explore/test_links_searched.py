"""A model whose links differ is searched as any other: plain, remembered and packed agree."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from support.searches import plain_search
from support.toys.mixed_links import build

from harness.explore.any_model import PlainSearch
from harness.explore.packed.search import Search
from harness.model import NETWORKS, NO_FAULTS, Actor, Faults, Process


class Plainly(Process):
    """An actor as a process like any other."""

    has_inbox = True

    def __init__(self, actor: Actor[Any]) -> None:
        self.name, self.steps, self.receive = actor.name, actor.steps, actor.receive  # type: ignore[method-assign]


COUNTS = {
    "unordered-set": (3718, 12065, 19), "bag": (3718, 12065, 19), "fifo": (2197, 7099, 19),
    "connections": (2197, 7099, 19),
}
INVARIANTS = ("Small", "QueueInOrder", "StreamInOrder")


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("history_variables", [False, True], ids=["", "history-variables"])
def test_searches_of_mixed_links_agree(network: str, history_variables: bool) -> None:
    """Distinct states, transitions and depth are those of the plain search on every network; the bag alone reorders."""
    model = build({"notes": 2}, {}, NETWORKS[network], NO_FAULTS, history_variables)
    oracle = plain_search.search(model, INVARIANTS)
    counts = (oracle.distinct, oracle.generated, oracle.depth)
    assert oracle.violated is None and counts == COUNTS[network]
    plainly = attrs.evolve(
        model, processes=tuple(map(Plainly, model.actors.values())), initial=model.initial_states()
    )
    packed = Search(plainly, INVARIANTS, engine="python").run()
    assert (packed.distinct, packed.generated, packed.depth) == counts and not packed.violations
    remembered = PlainSearch(model, INVARIANTS, witnesses=True).run()
    assert (remembered.distinct, remembered.generated, remembered.depth) == counts and not remembered.violations
    assert [witness.name for witness in remembered.witnesses] == (
        [] if network in ("fifo", "connections") else ["OutOfOrder"]
    )


def test_searches_of_mixed_links_agree_under_faults() -> None:
    """With cuts, drops and reconnections on the links that know them, too; a reconnection takes the order away."""
    faults = Faults(drop=1, partition=1, reorder=1, targets=("hub",))
    model = build({"notes": 1}, {}, NETWORKS["bag"], faults, False)
    names = ("Small", "QueueInOrder")
    oracle = plain_search.search(model, names)
    remembered = PlainSearch(model, names).run()
    assert oracle.violated is None and not remembered.violations
    assert (remembered.distinct, remembered.generated, remembered.depth) == (
        oracle.distinct, oracle.generated, oracle.depth
    )
    reordered = PlainSearch(build({"notes": 2}, {}, NETWORKS["bag"], Faults(reorder=1), False), INVARIANTS).run()
    assert [(found.name, found.reason) for found in reordered.violations] == [
        ("StreamInOrder", "heard (1,) from stream"),
    ]
