"""Links: a model says how messages travel between whom, and one model may mix the semantics."""

from __future__ import annotations

import random
from collections.abc import Mapping

import attrs
import pytest
from support.toys import faulty_world
from support.toys.mixed_links import HUB, LINKS, Note, build

from harness.model import BAG, FIFO, NETWORKS, RELIABLE, Faults, Link, Model, Network

EVERYTHING = attrs.evolve(faulty_world.EVERYTHING, targets=("queue", HUB))


class Walk(faulty_world.World):
    """The toy in a state."""

    def __init__(self, network: Network = BAG, notes: int = 2, faults: Faults = EVERYTHING) -> None:
        super().__init__(build({"notes": notes}, {}, network, faults, False))

    def mend(self) -> None:
        """Mend everything, then deliver until nothing is left to do without faults."""
        self.go_on(lambda choice: choice.step.kind != "fault", -1)

    @property
    def inboxes(self) -> list[str]:
        return sorted(name for name in self.state if name.startswith("inbox"))

    @property
    def in_hub(self) -> Mapping[str, tuple[int, ...]]:
        return dict(self.state[HUB])


def test_slots_are_those_of_the_semantics_that_reach_an_address() -> None:
    """The hub has an inbox per semantics; a writer has one. Where the network is FIFO anyway, a FIFO link is one like
    the others."""
    hub = ["inbox[hub]", "inbox[hub][fifo]", "inbox[hub][reliable]"]
    assert Walk(NETWORKS["unordered-set"]).inboxes == [
        *hub, "inbox[post]", "inbox[queue][reliable]", "inbox[stream][fifo]",
    ]
    assert Walk(FIFO).inboxes == [hub[0], hub[2], "inbox[post]", "inbox[queue][reliable]", "inbox[stream]"]


def test_each_link_delivers_by_its_own_semantics() -> None:
    """Of two notes each, the heads arrive over queues, any over the bag."""
    here = Walk(faults=Faults())
    here.take(*("Send(queue)", "Send(stream)", "Send(post)") * 2)
    assert [label for label in here.labels if label.startswith("Note")] == [
        "Note(queue) Note queue->hub n=0", "Note(post) Note post->hub n=0", "Note(post) Note post->hub n=1",
        "Note(stream) Note stream->hub n=0",
    ]


def test_faults_hit_what_a_links_semantics_allows() -> None:
    """Messages are dropped, doubled and delayed on all links but reliable ones; FIFO ones alone reconnect."""
    here = Walk(NETWORKS["unordered-set"], faults=attrs.evolve(EVERYTHING, rules=()))
    here.take("Send(queue)", "Send(stream)", "Send(post)")
    hits = [label for label in here.labels if label.startswith(("Drop", "Duplicate", "Delay", "Reconnect"))]
    assert hits == [
        "Drop Note post->hub n=0", "Delay Note post->hub n=0",
        "Drop Note stream->hub n=0", "Duplicate Note stream->hub n=0", "Delay Note stream->hub n=0",
        "Reconnect stream->hub",
    ]


def test_a_held_message_is_released_to_the_inbox_of_its_link() -> None:
    """What was delayed on a FIFO link arrives over it."""
    here = Walk(faults=attrs.evolve(EVERYTHING, rules=()))
    here.take("Send(stream)", "Delay Note stream", "Send(stream)", "Release Note stream")
    assert [note.n for note in FIFO.contents(here.state["inbox[hub][fifo]"]) if isinstance(note, Note)] == [1, 0]


def test_a_reliable_link_that_is_cut_delivers_in_order_after_it_heals() -> None:
    """What was under way and what is sent meanwhile waits; other links lose what is sent while they are cut."""
    here = Walk(notes=3, faults=Faults(partition=2, targets=(HUB,)))
    here.take("Send(queue)", "Send(stream)", "Partition(hub,queue)", "Partition(hub,stream)")
    assert here.lost("Send(queue)") == ()
    here.take("Send(queue)", *("Send(stream)",) * 2, *("Send(post)",) * 3)
    assert not [label for label in here.labels if label.startswith(("Note(queue)", "Note(stream)"))]
    here.mend()
    assert here.in_hub == {"queue": (0, 1, 2), "stream": (0,), "post": (2, 1, 0)}


def test_a_link_cut_one_way_still_carries_the_other_way() -> None:
    """The hub hears the queue, which does not hear the hub until the link heals."""
    here = Walk(faults=Faults(one_way=1, targets=(HUB,)))
    here.take("Cut(hub,queue)", *("Send(queue)",) * 2, *("Note(queue)",) * 2)
    assert not [label for label in here.labels if label.startswith("Hear(queue)")]
    here.take("Heal(hub,queue)", "Hear(queue) Noted hub->queue n=0", "Hear(queue) Noted hub->queue n=1")


def test_a_crash_loses_what_is_under_way_on_every_link() -> None:
    """A receiver that is down misses reliable messages, too; after its restart it hears the next."""
    here = Walk(notes=3, faults=Faults(crash=1, targets=("queue",)))
    here.take(*("Send(queue)",) * 2, "Note(queue)", "Crash(queue)", "Note(queue)")
    assert here.state["inbox[queue][reliable]"] == RELIABLE.empty
    here.take("Restart(queue)", "Send(queue)", "Note(queue)", "Hear(queue) Noted hub->queue n=2")


@pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS.keys())
def test_reliable_links_are_cut_and_never_lossy(network: Network) -> None:
    """Whatever fault or rule there is, messages on reliable links arrive once, in the order of their sending."""
    for seed in range(10):
        chance, here = random.Random(seed), Walk(network, 4)
        for _ in range(80):
            if not (choices := here.model.choices(here.state)):
                break
            choice = chance.choice(choices)
            about = choice.step.subject
            assert choice.step.kind != "fault" or about is None or "queue" not in (about.source, about.dest)
            here.state = here.model.apply(here.state, choice)
        here.mend()
        assert here.in_hub["queue"] == here.state["queue"].noted == (0, 1, 2, 3)


def test_the_budget_cuts_the_links_that_there_are() -> None:
    """Where the faults name no links, each between a target and another address may be cut, and no more."""
    walks = [Walk(faults=Faults(partition=1, targets=targets)) for targets in (("queue", HUB), ("post",))]
    cuts = [[label for label in here.labels if label.startswith("Partition")] for here in walks]
    assert cuts == [
        ["Partition(hub,queue)", "Partition(hub,stream)", "Partition(hub,post)"], ["Partition(hub,post)"],
    ]


def test_a_message_needs_a_link_and_a_link_one_semantics() -> None:
    """A model that lists its links has no others: sending over one is an error in the protocol."""
    model = Walk().model
    with pytest.raises(ValueError, match="there is no link from queue to stream"):
        model.routes.of(Note(1, source="queue", dest="stream"))
    with pytest.raises(ValueError, match="from a to nobody"):
        Model("nothing", ()).routes.of(Note(1, source="a", dest="nobody"))
    with pytest.raises(ValueError, match="the link from queue to hub is listed with two semantics"):
        attrs.evolve(model, links=(*LINKS, Link("queue", HUB, FIFO)))


def test_variables_tell_reliable_messages_from_the_others() -> None:
    """`messages` has those that faults can hit, `reliable` the others, in order."""
    here = Walk(faults=Faults())
    here.take(*("Send(queue)", "Send(stream)", "Send(post)") * 2)
    found = here.model.variables(here.state)
    assert [(note.source, note.n) for note in found["reliable"]] == [("queue", 0), ("queue", 1)]
    assert sorted((note.source, note.n) for note in found["messages"]) == [
        ("post", 0), ("post", 1), ("stream", 0), ("stream", 1),
    ]
    assert RELIABLE.is_reliable and not any(network.is_reliable for network in NETWORKS.values())
