"""What the roles of a broker ask other brokers (itself, perhaps), again until it is answered.

`TransactionMarkerChannelManager` and `AddPartitionsToTxnManager` of Kafka's broker; here both use one connection to
each broker. The receiver is looked up anew each time: leaders may have moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from harness.model import Local, Message, Value
from kafka_proto.broker.messages import Request, Response
from kafka_proto.broker.parts import CONNECTIONS, Asked, known
from kafka_proto.broker.placement import Placement
from kafka_proto.broker.roles import Role, RoleStep
from kafka_proto.requests import AddPartitionsToTxnRequest, WriteTxnMarkersRequest

REQUEST_TIMEOUT = "RequestTimeout"


class OtherBrokers(Role):
    """The connections of one broker to all brokers."""

    parts = (CONNECTIONS,)

    def __init__(self, name: str, placement: Placement) -> None:
        self.name = name
        self.placement = placement

    def restarted(self, local: Local) -> Local:
        """Start again on new connections."""
        mine = local[CONNECTIONS]
        opened = mine.opened.update({b: mine.opened.get(b, 0) + 1 for b in self.placement.brokers})
        return local.put(CONNECTIONS, attrs.evolve(mine, opened=opened))

    def whom(self, local: Local, request: AddPartitionsToTxnRequest | WriteTxnMarkersRequest) -> str:
        """Return the broker that leads what a request is about, as far as this broker knows."""
        if isinstance(request, WriteTxnMarkersRequest):
            return known(local, request.partitions[0]).leader or self.name
        return known(local, self.placement.transaction_partition(request.transactional_id)).leader or self.name

    def ask(
        self, local: Local, role: str, request: AddPartitionsToTxnRequest | WriteTxnMarkersRequest, transaction: str, *,
        pauses: bool = False, **about: Value,
    ) -> tuple[Local, tuple[Message, ...]]:
        """Send a request for a role, and remember what it is about; one that pauses first goes when its time is out."""
        mine, dest = local[CONNECTIONS], self.whom(local, request)
        correlation = mine.correlation + 1
        message = Request(
            request, correlation, mine.opened.get(dest, 0), transaction, source=self.name, dest=dest
        )
        asked = mine.asked.set(correlation, Asked(message, role, **about))
        local = local.put(CONNECTIONS, attrs.evolve(mine, correlation=correlation, asked=asked))
        return local, () if pauses else (message,)

    def about(self, local: Local, message: Message, role: str | None = None) -> Asked | None:
        """Return what a response answers, None if it is stale, or not for this role."""
        if not isinstance(message, Response):
            return None
        asked = local[CONNECTIONS].asked.get(message.correlation)
        if asked is None or asked.message.connection != message.connection or asked.message.dest != message.source:
            return None
        return asked if role in (None, asked.role) else None

    def answered(self, local: Local, response: Response) -> Local:
        """Return the state in which a request is answered."""
        mine = local[CONNECTIONS]
        return local.put(CONNECTIONS, attrs.evolve(mine, asked=mine.asked.without(response.correlation)))

    def without(self, local: Local, is_gone: Callable[[str], bool]) -> Local:
        """Return the state without requests for markers of such transactional ids."""
        mine = local[CONNECTIONS]
        for correlation, asked in mine.asked.items():
            if asked.transactional_id and is_gone(asked.transactional_id):
                mine = attrs.evolve(mine, asked=mine.asked.without(correlation))
        return local.put(CONNECTIONS, mine)

    def receive(self, local: Local, message: Message) -> RoleStep | None:
        """Drop an answer that is no longer awaited."""
        if not isinstance(message, Response) or self.about(local, message) is not None:
            return None
        return RoleStep(local, action=f"Receive{message.type}", who=(self.name, message.source))

    def timers(self, local: Local) -> dict[str, int | None]:
        dests = sorted({asked.message.dest for asked in local[CONNECTIONS].asked.values()})
        return {f"{REQUEST_TIMEOUT} {dest}": None for dest in dests}

    def timer_fired(self, local: Local, timer: str) -> Iterable[RoleStep]:
        """Give the connection to a broker up, and ask everything again, from the present leaders."""
        kind, _, dest = timer.partition(" ")
        if kind != REQUEST_TIMEOUT:
            return
        mine, sent = local[CONNECTIONS], list[Message]()
        opened = mine.opened.set(dest, mine.opened.get(dest, 0) + 1)
        asked = mine.asked
        for correlation, about in mine.asked.items():
            if about.message.dest == dest:
                to = self.whom(local, about.message.request)
                message = attrs.evolve(about.message, connection=opened.get(to, 0), dest=to)
                asked = asked.set(correlation, attrs.evolve(about, message=message))
                sent.append(message)
        after = attrs.evolve(mine, opened=opened, asked=asked)
        yield RoleStep(local.put(CONNECTIONS, after), tuple(sent), flush=True, action=kind, who=(self.name, dest))
