"""Faults as steps, as rules and at moments of virtual time: what each does, what it costs, and what mends it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable

import attrs
import pytest
from support.toys.faulty_world import EVERYTHING, Diary, Memo, Note, note, world

from harness import model as m
from harness.simulate.runs.plan import Plan
from harness.simulate.runs.session import run_plain
from harness.simulate.states.tables import Tables
from harness.simulate.strategies.strategy import RandomStrategy

SCRIPTS: dict[str, tuple[tuple[m.Message, ...], m.Faults, m.Network, str, dict[str, tuple[int, ...]]]] = {
    "a message that is dropped is never heard, and a spent budget drops no second one": (
        (note(1), note(2)), m.Faults(drop=1), m.BAG,
        "no Drop; Send(a); Send(a); Drop Note a->z n=1; no Drop", {"z": (2,)}),
    **{f"on {network.name} a message is heard as often as it was doubled and once more, until the budget is spent": (
        (note(1),), m.Faults(duplicate=2), network,
        "Send(a); Duplicate Note; Duplicate Note; no Duplicate", {"z": (1, 1, 1)}) for network in (m.BAG, m.FIFO)},
    "on the specs' network a message sent twice is one": (
        (note(1),), m.Faults(duplicate=1), m.UNORDERED_SET, "Send(a); no Duplicate", {"z": (1,)}),
    "without order there is nothing to reconnect": (
        (note(1),), m.Faults(reorder=1), m.BAG, "Send(a); no Reconnect", {"z": (1,)}),
    "two equal messages that are held are released one at a time, by steps of one label": (
        (note(1), note(1)), m.Faults(delay=2), m.BAG,
        "Send(a); Send(a); Delay Note; Delay Note; Release Note; Release Note", {"z": (1, 1)}),
    "after a reconnect a later message overtakes what is under way on the old connection, once": (
        (note(1), note(2), note(3)), m.Faults(reorder=1), m.FIFO,
        "Send(a); Send(a); Reconnect a->z; Send(a); Hear(z) Note a->z n=3; no Reconnect; Hear(z) Note a->z n=1",
        {"z": (3, 1, 2)}),
    "in a partition what is under way waits and what is sent is lost, both ways; others are not concerned": (
        (note(1), note(2), note(3, "z", "a"), note(4, "z", "a"), note(5, "b", "z")),
        m.Faults(partition=1, targets=("z",)), m.BAG,
        "Send(a); Send(z); Partition(a,z); lose Send(a) 2; lose Send(z) 4; settle; heard z 5; heard a; Heal(a,z)",
        {"z": (5, 1), "a": (3,)}),
    "the second of a one-way cut no longer hears the first, which still hears the second": (
        (note(1), note(2), note(3, "z", "a")), m.Faults(one_way=1, targets=("z",)), m.BAG,
        "Send(a); Cut(a,z); lose Send(a) 2; settle; heard z; heard a 3; Heal(a,z)", {"z": (1,)}),
    "who is paused neither acts nor hears, and messages wait": (
        (note(1), note(2, "z", "a")), m.Faults(pause=1, targets=("z",)), m.BAG,
        "Send(a); Pause(z); only Resume(z); Resume(z); no Pause", {"z": (1,), "a": (2,)}),
    "a delay rule holds what it hits when it is sent, until that is released": (
        (note(1), note(2)), m.Faults(rules=(m.Rule("delay", nth=1),)), m.BAG,
        "settle; Release Note a->z n=1", {"z": (2, 1)}),
    "a reorder rule sends what it hits on a new connection, so that it may overtake what was sent before": (
        (note(1), note(2)), m.Faults(rules=(m.Rule("reorder", nth=2),)), m.FIFO,
        "Send(a); Send(a); Hear(z) Note a->z n=2; Hear(z) Note a->z n=1", {"z": (2, 1)}),
}
"""What is to be sent, faults, the network, steps by the beginnings of their labels, and what was heard in the end.

Between the steps stands what is not offered, or alone; what a step loses; and what was heard by then.
"""


@pytest.mark.parametrize("fact", SCRIPTS)
def test_fault_does_what_it_says(fact: str) -> None:
    """Each label is the beginning of exactly one step."""
    sent, faults, network, script, heard = SCRIPTS[fact]
    here = world(*sent, faults=faults, network=network)
    for step in script.split("; "):
        word, _, what = step.partition(" ")
        if word == "no":
            assert not here.offers(what)
        elif word == "only":
            assert here.labels == [what]
        elif word == "settle":
            here.settle()
        elif word == "lose":
            label, number = what.split()
            assert [getattr(message, "n", 0) for message in here.lost(label)] == [int(number)]
        elif word == "heard":
            name, *numbers = what.split()
            assert here.heard(name) == tuple(map(int, numbers))
        else:
            here.take(step)
    here.settle()
    assert {name: here.heard(name) for name in heard} == heard


@pytest.mark.parametrize("network", m.NETWORKS.values(), ids=m.NETWORKS.keys())
def test_delay_holds_a_message_until_it_is_released(network: m.Network) -> None:
    """A delayed message is out of reach, others overtake it, and its release costs nothing."""
    here = world(note(1), note(2), faults=m.Faults(delay=1), network=network)
    here.take("Send(a)", "Delay Note a->z n=1", "Send(a)", "Hear(z) Note a->z n=2")
    assert here.state["held[z]"] == (note(1),)
    assert not here.offers("Hear") and not here.offers("Delay")
    here.take("Release Note a->z n=1", "Hear(z) Note a->z n=1")
    assert here.heard() == (2, 1)
    assert here.state["held[z]"] == ()


def test_partition_separates_the_targets_from_everybody() -> None:
    """Without links every pair of a target and another address can be cut; with links only these, in either order."""
    links = [p.name for p in world(faults=m.Faults(partition=1, targets=("z", "a"))).model.environment]
    assert sorted(links) == ["link[a][b]", "link[a][y]", "link[a][z]", "link[b][z]", "link[y][z]"]
    named = m.Faults(partition=1, one_way=1, targets=("z",), links=(("z", "b"),))
    assert [p.name for p in world(faults=named).model.environment] == ["link[b][z]"]


@pytest.mark.parametrize(("kind", "cut"), [("partition", "Partition(a,z)"), ("one_way", "Cut(z,a)")])
def test_heal_is_never_limited(kind: str, cut: str) -> None:
    """Every cut of a spent budget was healed at once, and no heal cost anything."""
    here = world(faults=m.Faults(**{kind: 3}, targets=("z",)))
    for _ in range(3):
        here.take(cut, "Heal(a,z)")
        assert not here.offers("Heal")
    assert here.labels == []
    assert {here.gate("a"), here.gate("z")} == {m.Gate()}


def test_crash_keeps_what_was_flushed() -> None:
    """A crash loses what was heard after the last flush, what was volatile, and what was on its way in."""
    faults = m.Faults(crash=1, delay=1, targets=("z",))
    last = note(9, "b")
    here = world(*(note(n) for n in (1, 2, 3, 4, 5)), last, faults=faults)
    here.take("Send(a)", "Hear(z)", "Flush(z)", "Send(a)", "Hear(z)")
    assert here.heard() == (1, 2)
    here.take("Send(a)", "Send(a)", "Delay Note a->z n=4", "Send(b)", "Crash(z)")
    assert here.state["z"] == Diary(heard=(1,))
    assert here.gate().status == "down"
    assert here.lost("Send(a)") == (note(5),)
    assert here.labels == ["Restart(z)"]
    here.take("Restart(z)")
    assert here.labels == []
    assert here.state["z"] == Diary(heard=(1,))


def test_crash_of_a_paused_actor_ends_its_pause() -> None:
    """A paused actor may crash; restarted, it runs."""
    here = world(faults=m.Faults(pause=1, crash=1, targets=("z",)))
    here.take("Pause(z)", "Crash(z)", "Restart(z)")
    assert here.gate() == m.Gate()


def test_survivor_takes_persisted_fields_from_disk() -> None:
    """`survivor` puts together the persisted fields on disk and the initial values of all others."""
    initial = Diary(outbox=(note(7),))
    flushed = m.durable(Diary(heard=(1, 2), outbox=(), dirty=True))
    assert dict(flushed) == {"heard": (1, 2)}
    assert m.survivor(initial, flushed) == Diary(heard=(1, 2), outbox=(note(7),), dirty=False)


def test_skew_changes_a_clock_until_it_is_set() -> None:
    """A skewed clock runs at another speed until it is set, which costs nothing."""
    here = world(faults=m.Faults(skew=1, targets=("z",)))
    here.take("SkewClock(z)")
    assert here.gate().skew != 100
    assert here.labels == ["SetClock(z)"]
    here.take("SetClock(z)")
    assert here.labels == []


SENT = (note(1), note(2), Memo(3, source="b", dest="z"), note(4, "b", "y"), note(5))
RULES: tuple[tuple[m.Rule, set[int]], ...] = (
    (m.Rule("drop"), {1, 2, 3, 4, 5}),
    (m.Rule("drop", message="Note"), {1, 2, 4, 5}),
    (m.Rule("drop", message="Memo"), {3}),
    (m.Rule("drop", source="b"), {3, 4}),
    (m.Rule("drop", dest="y"), {4}),
    (m.Rule("drop", nth=3), {3}),
    (m.Rule("drop", message="Note", source="a", dest="z", nth=3), {5}),
    (m.Rule("drop", message="Note", nth=6), set()),
    (m.Rule("drop", message="Letter"), set()),
)


@pytest.mark.parametrize(("rule", "hit"), RULES, ids=lambda value: str(value) if isinstance(value, set) else "")
def test_rule_matches_by_type_source_destination_and_occurrence(rule: m.Rule, hit: set[int]) -> None:
    """A rule hits the messages that fit all it names, or of these the nth that is sent; it costs no budget."""
    here = world(*SENT, faults=m.Faults(rules=(rule,)))
    lost = [message for source in ("a", "a", "b", "b", "a") for message in here.lost(f"Send({source})")]
    assert {message.n for message in lost if isinstance(message, Note | Memo)} == hit
    here.settle()
    assert {*here.heard("z"), *here.heard("y")} == {1, 2, 3, 4, 5} - hit


def test_rules_count_their_occurrences_apart() -> None:
    """Each rule counts the messages that fit it, whatever the others hit; what a duplicate rule hits arrives twice."""
    rules = (m.Rule("drop", message="Note", nth=2), m.Rule("duplicate", source="b", nth=2))
    here = world(*SENT, faults=m.Faults(rules=rules))
    here.settle()
    assert (sorted(here.heard("z")), here.heard("y")) == ([1, 3, 5], (4, 4))


KINDS = {
    "Drop": "drop", "Duplicate": "duplicate", "Delay": "delay", "Reconnect": "reorder", "Partition": "partition",
    "Cut": "one_way", "Pause": "pause", "Crash": "crash", "SkewClock": "skew",
}


def mending(state: m.State) -> Iterable[str]:
    """Yield the beginnings of the labels of what must be possible, as far as a fault was injected."""
    for name, value in state.items():
        who = name.partition("[")[2].rstrip("]")
        if name.startswith("held"):
            yield from (f"Release {message.brief()}" for message in value)
        if name.startswith("gate"):
            yield from (f"Heal({min(who, source)},{max(who, source)})" for source in value.deaf_to)
            yield from {"paused": [f"Resume({who})"], "down": [f"Restart({who})"]}.get(value.status, [])
            yield from [f"SetClock({who})"] if value.skew != 100 else []


@pytest.mark.parametrize("network", ["bag", "fifo"])
@pytest.mark.parametrize("name", ["peers", "replication/kip-320/actors"])
def test_faults_keep_to_their_budget_and_mending_is_always_offered(name: str, network: str) -> None:
    """Along random walks no kind happens more often than its budget says, and every fault can be mended."""
    ends = ("a", "z") if name == "peers" else ("r1", "r2")
    faults = attrs.evolve(EVERYTHING, drop=0, crash=2, targets=ends, rules=(m.Rule("delay", nth=2),))
    for seed in range(6):
        chance = random.Random(seed)
        if name == "peers":
            sent = [note(n, *chance.sample("abyz", 2)) for n in range(12)]
            model = world(*sent, faults=faults, network=m.NETWORKS[network]).model
        else:
            model = m.find_model(name).make(network=network, faults=faults)
        state, taken = model.initial_states()[0], Counter[str]()
        for _ in range(120):
            choices = model.choices(state)
            labels = Counter(choice.label for choice in choices)
            assert not labels or max(labels.values()) == 1
            assert set(mending(state)) <= set(labels)
            if not choices:
                break
            choice = chance.choice(choices)
            taken[KINDS.get(choice.step.action, "")] += choice.step.kind is m.Kind.FAULT
            state = model.apply(state, choice)
        assert all(taken[kind] <= getattr(faults, kind) for kind in KINDS.values())


# Faults with a moment of their own.


def times(faults: m.Faults, seed: int, *sent: m.Message) -> dict[str, list[float]]:
    """Return when (in milliseconds) the steps of a timed run happened, by the beginning of their labels."""
    sent = sent or tuple(note(n, *ends) for n, ends in enumerate(["az", "za", "bz", "yz"] * 3))
    plan = Plan((), steps=400, mode="timed")
    run = run_plain(Tables(world(*sent, faults=faults).model), plan, RandomStrategy(seed))
    found: dict[str, list[float]] = {}
    for chosen in run.trail.choices:
        assert chosen.at_us is not None
        found.setdefault(chosen.label.split(" ")[0], []).append(chosen.at_us / 1000)
    return found


CRASH = m.Timed("crash", ("z",), 5, 12)
TIMED: dict[str, tuple[tuple[m.Timed, ...], dict[str, list[int]]]] = {
    "partition": ((m.Timed("partition", ("z", "a"), 5, 12),), {"Partition(a,z)": [5], "Heal(a,z)": [12]}),
    "one-way": ((m.Timed("one_way", ("z", "a"), 5, 12),), {"Cut(z,a)": [5], "Heal(a,z)": [12]}),
    "pause": ((m.Timed("pause", ("z",), 5, 12),), {"Pause(z)": [5], "Resume(z)": [12]}),
    "crash": ((CRASH,), {"Crash(z)": [5], "Restart(z)": [12]}),
    "skew": ((m.Timed("skew", ("z",), 5, 12),), {"SkewClock(z)": [5], "SetClock(z)": [12]}),
    "in turn": ((m.Timed("crash", ("z",), 15, 20), m.Timed("crash", ("z",), 3, 7)),
                {"Crash(z)": [3, 15], "Restart(z)": [7, 20]}),
    "late": ((CRASH, m.Timed("pause", ("z",), 7, 9)), {"Restart(z)": [12], "Pause(z)": [12], "Resume(z)": [12]}),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", TIMED)
def test_timed_faults_happen_and_are_mended_at_their_moments(name: str, seed: int) -> None:
    """A timed fault of any kind begins and ends when it says, though nobody is a target of the budget; two of a kind
    happen in turn; who is down when it should be paused is paused when it is up again, and resumed as it is late."""
    timed, expected = TIMED[name]
    found = times(m.Faults(timed=timed), seed)
    assert {step: found[step] for step in expected} == expected


def test_timed_fault_without_an_end_is_mended_some_time() -> None:
    """Without `until_ms` a timed fault is mended all the same, later."""
    found = times(m.Faults(timed=(m.Timed("crash", ("z",), 5),)), 0)
    assert found["Crash(z)"] == [5] and found["Restart(z)"][0] > 5


@pytest.mark.parametrize("seed", range(5))
def test_timed_fault_keeps_its_moment_beside_a_budget(seed: int) -> None:
    """Faults of the budget neither pay for a timed fault nor move it, and affect their own targets only."""
    found = times(m.Faults(crash=1, one_way=1, targets=("a",), timed=(CRASH,)), seed)
    assert (found["Crash(z)"], found["Restart(z)"]) == ([5], [12])
    assert len(found["Crash(a)"]) == len(found["Restart(a)"]) == 1


def test_timed_rule_delays_by_its_delay() -> None:
    """In timed mode a message that a delay rule holds is released after the rule's delay."""
    found = times(m.Faults(rules=(m.Rule("delay", delay_ms=70),)), 0, note(1))
    assert found["Release"][0] == found["Send(a)"][0] + 70
