"""Network semantics: what `put`, `take`, `deliverable` and `contents` promise of the inbox of one destination."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from itertools import permutations
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.toys.faulty_world import Note, note

from harness.model import BAG, FIFO, NETWORKS, UNORDERED_SET, Message, Network, Value, canonical_sort

notes = st.builds(note, st.integers(0, 3), st.sampled_from(["a", "b"]))
networks = pytest.mark.parametrize("network", NETWORKS.values(), ids=NETWORKS.keys())


def filled(network: Network, *messages: Message) -> Value:
    """Return an inbox into which messages were put in this order."""
    return reduce(network.put, messages, network.empty)


def drained(network: Network, inbox: Value) -> list[Message]:
    """Return the messages of an inbox as they arrive when the first deliverable one always does."""
    arrived = []
    while deliverable := network.deliverable(inbox):
        arrived.append(deliverable[0])
        inbox = network.take(inbox, deliverable[0])
    assert inbox == network.empty
    return arrived


@networks
@given(messages=st.lists(notes, max_size=6))
def test_network_delivers_everything_once_per_copy_it_keeps(network: Network, messages: list[Note]) -> None:
    """Draining an inbox gives what `contents` says and leaves it empty; a set keeps one copy, the others all."""
    assert network.deliverable(network.empty) == network.contents(network.empty) == ()
    inbox = filled(network, *messages)
    kept = Counter(set(messages) if network is UNORDERED_SET else messages)
    assert Counter(network.contents(inbox)) == kept
    assert Counter(drained(network, inbox)) == kept


@networks
@given(messages=st.lists(notes, max_size=6))
def test_network_lists_deliverable_messages_in_canonical_order(network: Network, messages: list[Note]) -> None:
    """`deliverable` lists each message once, in canonical order, and nothing that is not in the inbox."""
    inbox = filled(network, *messages)
    deliverable = network.deliverable(inbox)
    assert list(deliverable) == canonical_sort(set(deliverable))
    assert set(deliverable) <= set(network.contents(inbox))
    assert bool(deliverable) == bool(messages)


@pytest.mark.parametrize("network", [UNORDERED_SET, BAG], ids=lambda network: network.name)
@given(messages=st.lists(notes, max_size=6), random=st.randoms(use_true_random=False))
def test_network_without_order_forgets_in_which_order_messages_were_sent(
    network: Network, messages: list[Note], random: Any
) -> None:
    """On the unordered networks the inbox is the same whatever was sent first, and any message may arrive next."""
    shuffled = list(messages)
    random.shuffle(shuffled)
    inbox = filled(network, *messages)
    assert inbox == filled(network, *shuffled)
    assert set(network.deliverable(inbox)) == set(messages)


@given(messages=st.lists(notes, max_size=6), message=notes)
def test_bag_take_undoes_put(messages: list[Note], message: Note) -> None:
    """A bag from which a message is taken is as it was before the message was put."""
    inbox = filled(BAG, *messages)
    assert BAG.take(BAG.put(inbox, message), message) == inbox


@given(messages=st.lists(notes, max_size=6), message=notes)
def test_unordered_set_keeps_one_copy_of_a_message_sent_twice(messages: list[Note], message: Note) -> None:
    """Putting a message again changes nothing, and taking it once takes it away."""
    inbox = filled(UNORDERED_SET, *messages, message)
    assert UNORDERED_SET.put(inbox, message) == inbox
    assert message not in UNORDERED_SET.contents(UNORDERED_SET.take(inbox, message))


@given(messages=st.lists(notes, max_size=8))
def test_fifo_keeps_order_inside_a_connection(messages: list[Note]) -> None:
    """Each source's messages arrive in the order in which it sent them, however the sources interleave."""
    arrived = drained(FIFO, filled(FIFO, *messages))
    for source in ("a", "b"):
        assert [m for m in arrived if m.source == source] == [m for m in messages if m.source == source]


def filled_after_reconnect(inbox: Value, *messages: Note) -> Value:
    """Return the inbox after the source reconnected and sent messages."""
    return reduce(FIFO.put, messages, FIFO.reconnect(inbox, "a"))


def interleavings(inbox: Value) -> list[tuple[int, ...]]:
    """Return every order in which the notes of an inbox can arrive."""
    return [(message.n, *rest) for message in FIFO.deliverable(inbox) if isinstance(message, Note)
            for rest in interleavings(FIFO.take(inbox, message))] or [()]


def test_fifo_delivers_the_heads_of_all_connections_and_lets_later_ones_overtake() -> None:
    """Sources and connections have no order; three of two messages arrive in all 90 orders that keep each one's own."""
    assert FIFO.deliverable(filled(FIFO, note(2, "b"), note(1, "b"), note(3), note(0))) == (note(2, "b"), note(3))
    inbox = filled_after_reconnect(filled(FIFO, note(1), note(2)), note(3), note(4))
    assert FIFO.deliverable(inbox) == (note(1), note(3))
    found = interleavings(filled_after_reconnect(inbox, note(5), note(6)))
    assert len(found) == 90 and set(found) == {
        order for order in permutations(range(1, 7)) if all(order.index(n) < order.index(n + 1) for n in (1, 3, 5))
    }


@given(st.lists(notes, min_size=1, max_size=6))
def test_fifo_reconnect_abandons_one_source_only(messages: list[Note]) -> None:
    """Reconnecting loses nothing, changes nothing for another source, and twice in a row is once."""
    inbox = filled(FIFO, *messages)
    reconnected = FIFO.reconnect(inbox, "a")
    assert Counter(FIFO.contents(reconnected)) == Counter(messages)
    assert FIFO.deliverable(reconnected) == FIFO.deliverable(inbox)
    assert reconnected.get("b") == inbox.get("b")
    assert FIFO.reconnect(reconnected, "a") == reconnected


def test_fifo_abandoned_connections_have_no_order() -> None:
    """Which of two abandoned connections is the older makes no difference to the inbox, whichever message went before;
    an idle connection leaves nothing behind."""
    older = filled_after_reconnect(filled_after_reconnect(filled(FIFO, note(1)), note(2)), note(3))
    newer = filled_after_reconnect(filled_after_reconnect(filled(FIFO, note(2)), note(1)), note(3))
    assert older == newer
    inbox = filled_after_reconnect(filled(FIFO, note(1), note(3)), note(2))
    left = FIFO.take(FIFO.reconnect(inbox, "a"), note(1))
    assert left == FIFO.reconnect(filled_after_reconnect(filled(FIFO, note(3)), note(2)), "a")
    assert FIFO.reconnect(FIFO.empty, "a") == FIFO.empty


def test_fifo_offers_equal_messages_of_two_connections_once() -> None:
    """Two copies that may both arrive next are one possibility, and both do arrive."""
    inbox = filled_after_reconnect(filled(FIFO, note(1)), note(1))
    assert FIFO.deliverable(inbox) == (note(1),)
    assert drained(FIFO, inbox) == [note(1), note(1)]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("abandoned", [False, True], ids=["current", "abandoned"])
def test_fifo_drop_takes_a_message_from_anywhere(n: int, abandoned: bool) -> None:
    """A drop may take a message from the middle of a queue; the rest keeps its order and its connection."""
    inbox = filled(FIFO, note(1), note(2), note(3))
    if abandoned:
        inbox = filled_after_reconnect(inbox, note(9))
    left = FIFO.take(inbox, note(n))
    kept = tuple(note(m) for m in (1, 2, 3) if m != n)
    assert left["a"] == (((kept,), (note(9),)) if abandoned else ((), kept))


def test_fifo_drop_of_the_only_message_leaves_an_empty_inbox() -> None:
    """No trace of a connection without messages stays in the inbox, so equal situations are equal values."""
    assert FIFO.take(filled(FIFO, note(1)), note(1)) == FIFO.empty
    assert FIFO.take(FIFO.reconnect(filled(FIFO, note(1)), "a"), note(1)) == FIFO.empty


@given(st.data())
def test_fifo_agrees_with_a_list_of_connections(data: st.DataObject) -> None:
    """Under any puts, reconnects and arrivals the inbox holds what a plain list of queues holds.

    Notes are numbered, so that no two are equal.
    """
    queues: dict[str, list[list[Message]]] = {"a": [[]], "b": [[]]}
    inbox, sent = FIFO.empty, 0
    for _ in range(data.draw(st.integers(0, 12), "operations")):
        deliverable = FIFO.deliverable(inbox)
        act = data.draw(st.sampled_from(["put", "reconnect", *(["take"] if deliverable else [])]), "act")
        source = data.draw(st.sampled_from(["a", "b"]), "source") if act != "take" else ""
        if act == "put":
            sent += 1
            inbox = FIFO.put(inbox, note(sent, source))
            queues[source][-1].append(note(sent, source))
        elif act == "reconnect":
            inbox = FIFO.reconnect(inbox, source)
            queues[source].append([])
        else:
            message = data.draw(st.sampled_from(deliverable), "message")
            inbox = FIFO.take(inbox, message)
            next(queue for queue in queues[message.source] if queue and queue[0] == message).pop(0)
        waiting = [queue for of_source in queues.values() for queue in of_source if queue]
        assert set(FIFO.deliverable(inbox)) == {queue[0] for queue in waiting}
        assert Counter(FIFO.contents(inbox)) == Counter(message for queue in waiting for message in queue)


@attrs.frozen
class Numbered(Message):
    connection: int
    opener: str


def test_connections_of_one_number_are_two_if_two_opened_them() -> None:
    """What goes on a connection that it opened does not wait for its answers on another's, whatever their numbers."""
    network = NETWORKS["connections"]
    request, answer = (Numbered(3, opener, source="a", dest="z") for opener in ("a", "z"))
    inbox = filled(network, answer, request, answer)
    assert set(network.deliverable(inbox)) == {request, answer}
    assert network.contents(network.take(network.take(inbox, answer), request)) == (answer,)
