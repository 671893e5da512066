"""Extension actions of clients and of the network: requests have numbers and may be given up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

from harness.model import BAG, View, canonical_sort, slot
from harness.model.spec import ITSELF, Around, Change, Index, action, each
from kafka_proto.transactions.correspondence import AddPartitionsToTxnResponse, ClientRecord, InitPidResponse, Response
from kafka_proto.transactions.decisions import client as clients
from kafka_proto.transactions.extensions.serving import ExtendedNames, has_loaded, is_coordinating
from kafka_proto.transactions.records import ClientState
from kafka_proto.transactions.specs.diary_02 import asks_for_pid, find_coordinator


def may_ask(k: ExtendedNames, view: View, c: str) -> bool:
    """GUARD of what clients send: so many requests in a bounded model."""
    return k.may_ask(view.at("correlation", c))


def numbered(change: Change, k: ExtendedNames, view: View, c: str) -> Change:
    """CHANGE of what clients send: requests are numbered."""
    number = view.at("correlation", c) + 1
    sent = tuple(attrs.evolve(request, correlation=number) for request in change.sent)  # type: ignore[call-arg]
    return attrs.evolve(change, writes=(*change.writes, (slot("correlation", c), number)), sent=sent)


def is_answered(k: ExtendedNames, view: View, c: str, b: str, response: Response) -> bool:
    """GUARD of responses: they answer the request that the client waits for."""
    client: ClientRecord = view.at("client", c)
    if response.correlation != view.at("correlation", c) or not clients.awaits(client, response):
        return False
    return isinstance(response, InitPidResponse) or bool(client.pending_partitions)


@action(
    "IgnoreResponse", each("clients", "brokers"), receives=(InitPidResponse, AddPartitionsToTxnResponse),
    reason="a client ignores the answer to a request that it gave up, or a copy of an answer",
)
def ignore_response(k: ExtendedNames, view: View, c: str, b: str, response: Response) -> Iterable[Change]:
    """An answer that the client does not wait for changes nothing."""
    if not is_answered(k, view, c, b, response):
        yield Change()


@action(
    "RequestTimeout", each("clients"), by=ITSELF,
    reason="a client gives a request up, since its answer may be lost; what became of it is unknown",
)
def request_timeout(k: ExtendedNames, view: View, c: str) -> Iterable[Change]:
    """Give up the request under way; the coordinator is looked up anew."""
    client: ClientRecord = view.at("client", c)
    if client.state is not ClientState.SENT_INIT_PID_REQUEST and not client.pending_partitions:
        return
    paid = k.paid(view)
    if paid is None:
        return
    after = k.version.given_up(client)
    if client.pid != -1:
        assert client.tid is not None
        after = attrs.evolve(after, coordinator=find_coordinator(view, client.tid))
    yield Change(((slot("client", c), after), *paid))


@action(
    "StaleLookUp", each("clients"), by=ITSELF,
    reason="a client looks its coordinator up by request, and the answer is out of date",
)
def stale_look_up(k: ExtendedNames, view: View, c: str) -> Iterable[Change]:
    """Ask a broker that does not lead, or take it for the coordinator from now on."""
    paid = k.paid(view)
    if paid is None:
        return
    client: ClientRecord = view.at("client", c)
    for b in k.brokers:
        for tid in k.transactional_ids:
            elsewhere = b != find_coordinator(view, tid)
            if clients.may_init(client, tid) and elsewhere and may_ask(k, view, c):
                asked = numbered(asks_for_pid(c, client, tid, b, f"{tid} {b}"), k, view, c)
                yield attrs.evolve(asked, writes=(*asked.writes, *paid))
        if client.pid != -1 and not client.pending_partitions and b != client.tc:
            yield Change(((slot("client", c), attrs.evolve(client, coordinator=b)), *paid), b)


OF_REQUESTS: Mapping[str, Around] = {
    "SendInitPidRequest": Around((may_ask,), (numbered,)),
    "SendAddPartitionsToTxnRequest": Around((may_ask,), (numbered,)),
    "ReceiveInitPidRequest": Around((is_coordinating,)),
    "ReceiveAddPartitionsToTxnRequest": Around((is_coordinating,)),
    "ReceiveInitPidResponse": Around((is_answered,)),
    "ReceiveAddPartitionsToTxnResponse": Around((is_answered,)),
    "CompletePartialTxn": Around((has_loaded,)),
}
"""What is added to the requests of clients, and to what finishes them, whatever the log is."""


def each_address(k: ExtendedNames) -> Iterable[Index]:
    return ((address,) for address in (*k.clients, *k.brokers))


@action("LoseMessage", exists=each_address, by="network[{0}]", reason="the network loses a message")
def lose_message(k: ExtendedNames, view: View, address: str) -> Iterable[Change]:
    """A message on its way to an address is gone."""
    paid = k.paid(view)
    if paid is not None:
        for message in canonical_sort(set(BAG.contents(view.at("inbox", address)))):
            yield Change(paid, message.brief(), consumed=message)


@action("CopyMessage", exists=each_address, by="network[{0}]", reason="the network doubles a message")
def copy_message(k: ExtendedNames, view: View, address: str) -> Iterable[Change]:
    """A message on its way to an address is there once more."""
    paid = k.paid(view)
    if paid is not None:
        for message in canonical_sort(set(BAG.contents(view.at("inbox", address)))):
            yield Change(paid, message.brief(), sent=(message,))
