"""Guided tours: every one replays to its end, has a caption per step, and shows what it says."""

from __future__ import annotations

import attrs
import pytest
from support.commands.command_line import call
from support.runs.named_runs import registering

from harness.model import Refusal, System, Tour, find_tour, tours
from harness.record import EventRecorder, Recorder, header_of, tour_trail
from harness.simulate.runtimes.trio_runtime import replay_on_trio
from harness.simulate.states.tables import Tables
from harness.simulate.trails.replay import replay_plain

SPECS = ("diary-01-retry", "diary-02-adds", "diary-02-fenced")
NAMES = ("commit", "abort", "zombie", "tx-01", "pc-01", "rp-01", *SPECS)
LONGEST_CAPTION = 320


def shortcomings(tour: Tour) -> list[str]:
    """Return what a tour does not keep of what it promises. Raises Refusal where a step is not possible."""
    trail = tour_trail(tour)
    model = trail.build()
    tables = Tables(model)
    run = replay_plain(trail, tables=tables)
    found = [f"{verdict.violated} at step {verdict.step}" for verdict in run.violations]
    wanted = [] if tour.violates is None else [f"{tour.violates} at step {len(tour.steps)}"]
    differs = f"expected {', '.join(wanted) or 'no violation'}, found {', '.join(found) or 'none'}"
    said = [differs] if found != wanted else []
    said += [f"{name} is not reached" for name in tour.witnesses if name not in run.witnessed]
    return said + [f"caption {n} is empty or long" for n, text in tour.captions if not 0 < len(text) <= LONGEST_CAPTION]


registered = registering(System("another", (), (), (find_tour("commit"),)), autouse=False)
"""A system of a test that has a tour with the name of another one."""


def test_tours_are_those_of_the_protocols() -> None:
    """Transactions end to end, a lost record and a leaked ledger."""
    assert tuple(tour.name for tour in tours()) == NAMES
    assert [len(find_tour(name).steps) for name in NAMES] == [20, 17, 25, 23, 27, 16, 11, 8, 17]
    assert {name: find_tour(name).then for name in NAMES if find_tour(name).then} == {"commit": "tx-01"}


@pytest.mark.parametrize("name", NAMES)
def test_tour_keeps_what_it_promises(name: str) -> None:
    """Each step is possible, the violation comes with the last one or not at all, each caption is short."""
    tour = find_tour(name)
    assert shortcomings(tour) == []
    assert [n for n, _ in tour.captions] == list(range(len(tour.steps) + 1))


@pytest.mark.parametrize("name", [name for name in NAMES if find_tour(name).violates is None])
def test_tour_of_correct_behaviour_violates_no_invariant_in_any_state(name: str) -> None:
    """Not only those that are claimed."""
    trail = tour_trail(find_tour(name))
    model, recorder = trail.build(), EventRecorder()
    run = replay_plain(trail, recorder)
    history = recorder.history(header_of(trail, model, "plain"), run.verdict.to_json(), model)
    assert len(history.events) == len(trail.choices) + 1
    assert len(history.header["properties"]) >= len(trail.claims) > 0
    assert not any(event.violated for event in history.events)


@pytest.mark.parametrize("name", NAMES)
def test_tour_replays_on_trio_with_the_same_digest(name: str) -> None:
    """A tour is a trail like any other."""
    trail = tour_trail(find_tour(name))
    plain = replay_plain(trail, Recorder(keep=False))
    assert replay_on_trio(trail, Recorder(keep=False)).digest == plain.digest


def test_wrong_label_is_refused_in_one_sentence() -> None:
    """It says at which step, what was asked for and what was possible."""
    tour = find_tour("commit")
    wrong = attrs.evolve(tour, steps=(*tour.steps[:1], ("SendInitProducerIdRequest(c1)", "too early"), *tour.steps[2:]))
    with pytest.raises(Refusal) as refused:
        shortcomings(wrong)
    assert str(refused.value) == (
        "the trail does not fit at step 2: it asks for 'SendInitProducerIdRequest(c1)', possible are: "
        "RequestTimeout(c1,b1); ReceiveInitProducerIdRequest(b1,c1) InitProducerIdRequest c1->b1 request=[version=5 "
        "transactional_id=tid1 transaction_timeout_ms=60000 producer_id=-1 producer_epoch=-1] correlation=1 "
        "connection=0 transaction=c1.0; Poll(r1,T-0)"
    )


def test_promises_that_are_not_kept_are_noticed() -> None:
    """A violation too early or missing, a witness that is not reached, a step without a caption."""
    lost, fenced = find_tour("rp-01"), find_tour("zombie")
    early = attrs.evolve(lost, claims=("StrongIsr",), violates="StrongIsr")
    assert shortcomings(early) == ["expected StrongIsr at step 16, found StrongIsr at step 13"]
    short = attrs.evolve(lost, steps=lost.steps[:-1])
    assert shortcomings(short) == ["expected AckDurability at step 15, found none"]
    assert shortcomings(attrs.evolve(lost, violates=None))[0].endswith("found AckDurability at step 16")
    assert shortcomings(attrs.evolve(fenced, steps=fenced.steps[:9])) == ["ProducerIsFenced is not reached"]
    silent = attrs.evolve(fenced, steps=(*fenced.steps[:4], (fenced.steps[4][0], ""), *fenced.steps[5:]))
    assert shortcomings(silent) == ["caption 5 is empty or long"]


def test_two_tours_of_one_name_are_refused(registered: None) -> None:
    """Otherwise one of them could not be asked for."""
    with pytest.raises(Refusal, match="two tours have the name 'commit'; give one of them another name"):
        tours()


def test_list_names_every_tour() -> None:
    """As text, and as JSON with model, length and what it ends in."""
    words = call("list").out.split()
    assert all(name in words for name in NAMES)
    reported = call("list", "--json").json["tours"]
    assert [tour["name"] for tour in reported] == list(NAMES)
    violates = {tour["name"]: (tour["steps"], tour["violates"]) for tour in reported}
    assert violates["rp-01"] == (16, "AckDurability") and violates["commit"] == (20, None)
