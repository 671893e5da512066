"""The packed search: the plain search's counts and the model checker's, with and without symmetry."""

from __future__ import annotations

import pytest

from harness.explore.plain import search
from harness.explore.search import Search
from harness.model import Model, Refusal, find_model
from kafka_proto.transactions.properties import INVARIANTS

SMALL = {"clients": 2, "brokers": 2, "txn-log-partitions": 2, "topic-partitions": 1, "transactional-ids": 2,
         "elections": 1}
S1_SIZE = {**SMALL, "clients": 4, "brokers": 1, "txn-log-partitions": 1, "transactional-ids": 3, "elections": 0}


def model(name: str, sizes: dict[str, int], history_variables: bool = True, **settings: str) -> Model:
    return find_model(name).make(sizes, settings, history_variables=history_variables)


@pytest.mark.parametrize("name", ["transactions/diary-02", "transactions/gist", "transactions/repaired"])
@pytest.mark.parametrize("sizes", [{**SMALL, "clients": 1}, {**SMALL, "clients": 1, "brokers": 3}], ids=["b2", "b3"])
def test_search_counts_as_the_plain_search_does(name: str, sizes: dict[str, int]) -> None:
    """Distinct, generated and depth are equal, and so are the witnesses of a violated invariant in length."""
    built = model(name, sizes)
    for invariants in (("TypeOK",), *((invariant,) for invariant in INVARIANTS)):
        slow, fast = search(built, invariants), Search(built, invariants).run()
        if slow.violated is None:
            assert (fast.initial, fast.distinct, fast.generated, fast.depth, fast.violations) == (
                slow.initial, slow.distinct, slow.generated, slow.depth, ()
            )
        else:
            assert [(v.name, v.length) for v in fast.violations] == [(slow.violated, slow.depth)]


def test_search_of_diary_01_gives_the_published_count() -> None:
    """2 partitions, 2 ids, 2 clients, 3 brokers: 322,596 states of 641,700 generated, 36 initial ones, depth 24."""
    sizes = {"clients": 2, "brokers": 3, "txn-log-partitions": 2, "transactional-ids": 2}
    found = Search(model("transactions/diary-01", sizes), ("TypeOK", "NoBadStateResponse")).run()
    assert (found.initial, found.distinct, found.generated, found.depth) == (36, 322_596, 641_700, 24)


def test_symmetry_gives_the_exact_quotient() -> None:
    """The same size under renaming of clients, brokers, partitions and ids: 7,052 classes of 14,136 generated."""
    sizes = {"clients": 2, "brokers": 3, "txn-log-partitions": 2, "transactional-ids": 2}
    found = Search(model("transactions/diary-01", sizes), ("TypeOK", "NoBadStateResponse"), symmetry=True).run()
    assert (found.distinct, found.generated, found.depth) == (7_052, 14_136, 24)


@pytest.mark.parametrize("symmetry", [False, True])
def test_s1_is_found_in_14_states_and_its_labels_replay(symmetry: bool) -> None:
    """The counterexample at 4 clients and 3 ids is a run of the model, with or without symmetry."""
    built = model("transactions/diary-02", S1_SIZE, False)
    found = Search(built, ("ClientsHaveDifferentProducerEpochs",), symmetry=symmetry).run()
    (violation,) = found.violations
    assert violation.length == 14
    state = built.initial_states()[violation.initial]
    for label in violation.labels:
        (choice,) = [choice for choice in built.choices(state) if choice.label == label]
        state = built.apply(state, choice)
    clients = [state[f"client[c{n}]"] for n in range(1, 5)]
    held = [(client.pid, client.epoch) for client in clients if client.pid != -1]
    assert len(held) != len(set(held))


@pytest.mark.large
def test_repaired_holds_where_s1_was_found() -> None:
    """All eight invariants hold at 4 clients, 1 broker and 3 ids, searched completely up to renaming."""
    found = Search(model("transactions/repaired", S1_SIZE, False), INVARIANTS, symmetry=True).run()
    assert found.complete
    assert found.violations == ()
    assert found.distinct == REPAIRED_CLASSES


REPAIRED_CLASSES = 472_538


def test_actor_compositions_are_refused() -> None:
    """The search says that it cannot do actor compositions yet."""
    with pytest.raises(Refusal, match="only spec compositions"):
        Search(find_model("transactions/repaired/actors").make(), INVARIANTS)
