"""What a step of a session shows: clients and brokers as lifelines, requests, answers, faults and elections.

Nothing here is decided, and nothing is remembered: all is read from what the host did with one input.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from harness.model import DELIVERED, FrozenMap, Gate, ShownMessage, Telling, ToldMessage
from kafka_proto.broker.messages import Request
from kafka_proto.cluster.failures import Leadership
from kafka_proto.gateway import inputs, offer, words
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.faults import LOST, Exchanged, FaultsUnderWay
from kafka_proto.gateway.front import Front
from kafka_proto.gateway.host import Host
from kafka_proto.gateway.inputs import Injected, Input, Output
from kafka_proto.gateway.proxy import ProxyHost
from kafka_proto.requests import INTERNAL_TOPICS, topic_of

ELSEWHERE = ""
"""The lifeline of what is neither a client's nor a broker's."""
RESERVED = "environment"


@attrs.frozen
class ShownFault:
    """A kind of fault as people see it: what it and its end are called, the sorts of both steps, what the end does."""

    word: str
    undo: str
    sort: str
    mending: str = "heal"
    mended: str = ""


FAULTS: Mapping[str, ShownFault] = {
    "delay": ShownFault("Hold the next", "Do not hold the next", "delay"),
    "drop": ShownFault("Drop the next", "Do not drop the next", "drop"),
    "lose": ShownFault("Lose the answer to the next", "Do not lose the answer to the next", "drop"),
    "duplicate": ShownFault("Duplicate the next", "Do not duplicate the next", "duplicate"),
    "answer": ShownFault("", "", "fault"),
    "crash": ShownFault("Crash", "Start", "crash", "restart", "starts"),
    "shut_down": ShownFault("Shut down", "Start", "crash", "restart", "starts"),
    "pause": ShownFault("Pause", "Resume", "pause", "resume", "goes on"),
    "partition": ShownFault("Partition", "Heal", "partition", "heal", "is heard again"),
    "slow_disk": ShownFault(
        "Slow the disk of", "Mend the disk of", "slow_disk", "fast_disk", "writes to its disk again"),
    "elect": ShownFault("Elect", "", "elect"),
}
"""The page offers them in this order; `answer` would have to say which error."""
Waiting = Mapping[int, tuple[str | None, tuple[WireRequest, ...]]]
"""By connection: the id of its client, and its requests that are not answered."""


@attrs.frozen(eq=False)
class Moment:
    """What there is of a host before or after an input, as far as the story needs it."""

    faults: FaultsUnderWay
    led: FrozenMap[str, Leadership]
    connections: Waiting
    """Those that the input is about."""


class ToldFront(Front):
    """Brokers that keep what their last input did, to be told."""

    taken: TakenInput | None = None

    def take(self, given: Input) -> list[Output]:
        count = self.taken.number + 1 if self.taken is not None else 1
        about = self._about(given)
        before = self._moment(about)
        outputs = super().take(given)
        self.taken = TakenInput(given, before, self._moment(about), self.settings.brokers, self.observed.clients,
                           self.exchanged, self.marked, bool(outputs), count)
        return outputs

    def begun(self, started: inputs.Started | inputs.Fronted) -> TakenInput:
        """Return what the first input of all did, which made the host."""
        now = self._moment(())
        self.taken = TakenInput(started, now, now, self.settings.brokers, (), [], [], False, 0)
        return self.taken

    def _about(self, given: Input) -> tuple[int, ...]:
        """Return the connections that an input is about."""
        if isinstance(given, inputs.Opened | inputs.Arrived | inputs.Gone):
            return (given.connection,)
        return tuple(self.clients) if isinstance(given, Injected) and given.kind in inputs.STOPPING else ()

    def _moment(self, about: Iterable[int]) -> Moment:
        there = ((number, self.clients[number].connection) for number in about if number in self.clients)
        return Moment(self.faults, self.led, {
            number: (connection.client_id, connection.open_requests) for number, connection in there})


class ToldHost(ToldFront, Host):
    """Brokers of this project, told."""


class ToldProxy(ToldFront, ProxyHost):
    """A proxy, told."""


@attrs.frozen(eq=False)
class TakenInput:
    """An input that a host has taken, and all that it did then."""

    given: Input
    before: Moment
    after: Moment
    brokers: tuple[int, ...]
    clients: tuple[str, ...]
    exchanged: list[Exchanged]
    marked: Sequence[Request]
    wrote: bool
    """Whether anything was written to clients."""
    number: int
    """How many inputs came before."""

    def telling(self) -> Telling:
        """Return what the step shows."""
        sent, fates = self._messages()
        changed = (*self._mended(), *self._elected())
        label = self._label()
        matters = bool(label or changed or any(not told.is_minor for told in sent) or self._late())
        label = label or self._late()
        first = changed[0] if changed and not sent and not label else ""
        return Telling(
            self._lane(), label or first or ("" if sent else self._minor()), self.lanes,
            tuple(sent), tuple(fates), changed[bool(first):], self._gates(), self._sort(), not matters)

    @property
    def lanes(self) -> tuple[str, ...]:
        """Return the lifelines: clients in the order in which they came, then brokers."""
        return (*dict.fromkeys(map(self._client, self.clients)), *(f"b{number}" for number in self.brokers))

    def _client(self, known: str | None) -> str:
        name = "-".join(words.text(known or "client").split())
        taken = name == RESERVED or name in {f"b{number}" for number in self.brokers}
        return f"client-{name}" if taken else name

    def _lane(self) -> str:
        given = self.given
        if isinstance(given, inputs.Opened | inputs.Arrived | inputs.Gone):
            at = self.after if given.connection in self.after.connections else self.before
            known, _ = at.connections.get(given.connection, (None, ()))
            known = next((each.request.client_id for each in self.exchanged if each.has_come), known)
            return ELSEWHERE if known is None and not self.exchanged else self._client(known)
        if isinstance(given, Injected) and given.kind == "elect" and given.partition in self.after.led:
            return self.after.led[given.partition].leader
        about = [given] if isinstance(given, Injected) else self._over()
        broker = next((fault.broker for fault in about if fault.broker), 0)
        taken = next((each.broker for each in self.exchanged if not each.has_come), 0)
        return f"b{broker or taken}" if broker or taken else ELSEWHERE

    # Faults, elections

    def _over(self) -> list[Injected]:
        """Return the faults of brokers that ended."""
        return [fault for fault in self.before.faults.lasting if fault not in self.after.faults.lasting]

    def _label(self) -> str:
        given = self.given
        if isinstance(given, inputs.Fronted):
            return f"a proxy in front of {given.host}:{given.port}"
        if isinstance(given, inputs.Started):
            made = given.settings
            topics = ", ".join(f"{name} with {counted(count)}" for name, count in given.topics.items()) or "no topics"
            return f"Kafka {made.release}, transaction.version {made.transaction_version}; {topics}"
        if isinstance(given, Injected):
            what = given.request or given.partition or (f"b{given.broker}" if given.broker else "every partition")
            nth = {0: " each time", 1: ""}.get(given.nth, f" number {given.nth}") if given.request else ""
            other = f" and b{given.other}" if given.other else ""
            error = f" with {given.error}" if given.error else ""
            client = f" of {self._client(given.client)}" if given.client else ""
            lasts = f" for {given.for_ms} ms" if given.for_ms is not None else ""
            return f"{given.kind} {what}{other}{nth}{client}{error}{lasts}"
        if isinstance(given, inputs.Ended) and not self._over():
            ended = next((rule.fault for rule in self.before.faults.rules if rule.fault.number == given.number), None)
            return f"fault {given.number} ends" if ended is None else f"{ended.kind} {ended.request} ends"
        return ""

    def _minor(self) -> str:
        """Return what an input is that nobody was asked anything by."""
        if isinstance(self.given, inputs.Arrived):
            return "ApiVersions" if self.wrote else "part of a request"
        return {inputs.Opened: "connect", inputs.Gone: "disconnect"}.get(type(self.given), "time passes")

    def _late(self) -> str:
        """Return what brokers take late: it was held back."""
        names = (f"{each.faults[0]} {words.asked(each.request)[0]}" for each in self.exchanged
                 if each.is_again)
        return ", ".join(dict.fromkeys(names))

    def _mended(self) -> Iterator[str]:
        for fault in self._over():
            if fault.other:
                yield f"b{fault.broker} and b{fault.other} hear each other again"
            else:
                yield f"b{fault.broker} {FAULTS[fault.kind].mended}"

    def _elected(self) -> Iterator[str]:
        """Yield the partitions whose leader or ISR changed; internal ones where the leader did."""
        for p, led in sorted(self.after.led.items(), key=lambda each: topic_of(each[0]) in INTERNAL_TOPICS):
            was = self.before.led.get(p)
            is_internal = topic_of(p) in INTERNAL_TOPICS
            if was is None or led == was or (is_internal and led.leader == was.leader):
                continue
            if (led.leader, led.epoch) != (was.leader, was.epoch):
                yield f"{p}: {led.leader or 'nobody'} leads in epoch {led.epoch}, ISR {' '.join(led.isr) or 'empty'}"
            else:
                yield f"{p}: ISR {' '.join(was.isr)} -> {' '.join(led.isr) or 'empty'}"

    def _sort(self) -> str:
        if isinstance(self.given, Injected):
            return FAULTS[self.given.kind].sort
        over = self._over()
        return FAULTS[over[0].kind].mending if over else "heal" if isinstance(self.given, inputs.Ended) else ""

    def _gates(self) -> dict[str, Gate]:
        """Return the brokers that are down, paused or cut off."""
        found: dict[str, Gate] = {}
        for fault in (fault for fault in self.after.faults.lasting if fault.kind in inputs.OF_BROKERS):
            for one, other in ((fault.broker, fault.other), (fault.other, fault.broker)):
                if not one:
                    continue
                gate = found.get(f"b{one}", Gate())
                if fault.kind == "partition":
                    deaf = (f"b{other}",) if other else tuple(lane for lane in self.lanes if lane != f"b{one}")
                    gate = attrs.evolve(gate, deaf_to=gate.deaf_to.union(deaf))
                else:
                    gate = attrs.evolve(gate, status="paused" if fault.kind == "pause" else "down")
                found[f"b{one}"] = gate
        return found

    # Messages

    def _messages(self) -> tuple[list[ToldMessage], list[tuple[str, str]]]:
        """Return the messages that were sent, and what befell messages, in the order in which it happened."""
        sent: list[ToldMessage] = []
        fates: list[tuple[str, str]] = []
        hit = {name_of(each) for each in self.exchanged if each.faults}
        answered = {name_of(each) for each in self.exchanged if "answer" in each.faults}
        names = {f"b{number}" for number in self.brokers}
        for each in self.exchanged:
            id_, client, broker = name_of(each), self._client(each.request.client_id), f"b{each.broker}"
            is_hit = id_ in hit
            if each.has_come:
                message = ShownMessage(*words.asked(each.request, each.transaction), source=client, dest=broker)
                sent.append(ToldMessage(id_, message, None, not is_hit and is_minor(each.request)))
            elif each.answer is not None or each.faults == LOST:
                name, about = words.answered(each.request, each.answer)
                about += (("by", "a fault"),) if id_ in answered else ()
                message = ShownMessage(name, about, source=broker, dest=client)
                sent.append(ToldMessage(f"{id_}a", message, None, not is_hit and says_little(each)))
                fates.append((f"{id_}a", "lost" if each.faults == LOST else DELIVERED))
            else:
                fates += [(id_, how) for how in _fates(each.faults)]
                if "duplicate" in each.faults:
                    message = ShownMessage(*words.asked(each.request, each.transaction), source=client, dest=broker)
                    sent.append(ToldMessage(f"{id_}d", message, id_))
                    fates.append((f"{id_}d", DELIVERED))
        markers = [ToldMessage(f"{self.number}.{n}", _marker(marker)) for n, marker in enumerate(self.marked)]
        answers = (n for n, told in enumerate(sent) if told.message.source in names and told.copy_of is None)
        first = next(answers, len(sent))  # what a client is told comes after what brokers told each other
        sent[first:first] = markers
        return sent, [*fates, *((told.id, DELIVERED) for told in markers), *self._lost()]

    def _lost(self) -> Iterator[tuple[str, str]]:
        """Yield the requests that nobody takes any more, as their connection is gone."""
        kept = {(held.client, request.number) for held in self.after.faults.held for request, _ in held.requests}
        for number, (_, requests) in self.before.connections.items():
            if number not in self.after.connections:
                yield from ((f"c{number}.{request.number}", "lost") for request in requests
                            if (number, request.number) not in kept)
        for each in self.exchanged:
            if each.has_come and each.connection not in self.after.connections:
                yield name_of(each), "lost"


def counted(count: int) -> str:
    """Return a number of partitions in words."""
    return f"{count} partition{'s' * (count != 1)}"


def name_of(each: Exchanged) -> str:
    """Return what identifies a request in its session."""
    return f"c{each.connection}.{each.request.number}"


def is_minor(request: WireRequest) -> bool:
    """Say whether a request is what clients ask whatever they do."""
    return request.api_key in (*words.MINOR, offer.FETCH)


def says_little(each: Exchanged) -> bool:
    """Say whether an answer is not worth showing: to what is asked anyway, without records or errors."""
    if each.request.api_key == offer.FETCH and words.has_records(each.answer):
        return False
    return is_minor(each.request) and (each.request.api_key == offer.METADATA or not words.errors(each.answer))


def _fates(faults: Iterable[str]) -> Iterator[str]:
    """Yield what befalls a request that a broker looks at."""
    if "drop" in faults:
        yield "dropped"
    elif "delay" in faults:
        yield "held"
    else:
        if "held" in faults or "late" in faults:
            yield "released"
        yield DELIVERED


def _marker(marker: Request) -> ShownMessage:
    """Return a request for markers, from the coordinator of a transaction to a leader."""
    asked = marker.request
    about = [(p, "") for p in asked.partitions]
    about += [("producer", str(asked.producer_id)), ("epoch", str(asked.producer_epoch))]
    about += [("transaction", marker.transaction)] if marker.transaction else []
    return ShownMessage(f"WriteTxnMarkers {'COMMIT' if asked.committed else 'ABORT'}", tuple(about),
                        source=marker.source, dest=marker.dest)
