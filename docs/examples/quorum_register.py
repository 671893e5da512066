"""A register that a quorum keeps: Attiya, Bar-Noy and Dolev, "Sharing Memory Robustly in Message-Passing Systems".

A server that is asked by a client asks the others for their values, takes the newest one, or writes a newer one, has a
quorum record that, and answers. Of two values that is the newer whose clock is the higher, or whose server is.
"""

from collections.abc import Iterable, Mapping

import attrs
from register import Get, GetOk, Put, PutOk, model

from harness import model as m

Seq = tuple[int, str]  # a logical clock, and who wrote by it


@attrs.frozen
class Query(m.Message):
    request: str

@attrs.frozen
class AckQuery(m.Message):
    request: str
    seq: Seq
    value: str | None

@attrs.frozen
class Record(m.Message):
    request: str
    seq: Seq
    value: str | None

@attrs.frozen
class AckRecord(m.Message):
    request: str

@attrs.frozen
class Collecting:
    """A server collects what others have, its own value among it."""

    request: str
    client: str
    write: str | None  # nothing for a read
    answers: m.FrozenMap[str, tuple[Seq, str | None]]

@attrs.frozen
class Recording:
    """A server has others record a value."""

    request: str
    client: str
    is_read: bool
    value: str | None
    acks: frozenset[str]

@attrs.frozen
class Replica:
    seq: Seq
    value: str | None = None
    phase: Collecting | Recording | None = None


class Server(m.Actor[Replica]):
    def __init__(self, name: str, peers: tuple[str, ...]) -> None:
        self.name, self.peers, self.initial = name, peers, Replica((0, name))
        self.quorum = (len(peers) + 1) // 2 + 1

    def on_message(self, local: Replica, message: m.Message) -> Iterable[m.Turn[Replica]]:
        args = (self.name, message.source)
        match message, local.phase:
            case (Put() | Get()), None:
                write = message.value if isinstance(message, Put) else None
                own = m.FrozenMap({self.name: (local.seq, local.value)})
                phase = Collecting(message.request, message.source, write, own)
                queries = tuple(Query(message.request, source=self.name, dest=peer) for peer in self.peers)
                yield m.Turn("Begin", args, attrs.evolve(local, phase=phase), queries)
            case Query(request=request), _:
                ack = AckQuery(request, local.seq, local.value, source=self.name, dest=message.source)
                yield m.Turn("ReceiveQuery", args, local, (ack,))
            case AckQuery(request=request), Collecting(request=mine) if request == mine:
                yield self.receive_ack_query(local, local.phase, message)
            case Record(request=request), _:
                ok = AckRecord(request, source=self.name, dest=message.source)
                yield m.Turn("ReceiveRecord", args, newer(local, message.seq, message.value), (ok,))
            case AckRecord(request=request), Recording(request=mine, acks=acks) \
                    if request == mine and message.source not in acks:
                yield self.receive_ack_record(local, local.phase, message)

    def receive_ack_query(self, local: Replica, phase: Collecting, message: AckQuery) -> m.Turn[Replica]:
        """Note a value; with those of a quorum, have the newest one recorded, or the one that is to be written."""
        answers = phase.answers.set(message.source, (message.seq, message.value))
        args = (self.name, message.source)
        if len(answers) < self.quorum:
            return m.Turn("ReceiveAckQuery", args, attrs.evolve(local, phase=attrs.evolve(phase, answers=answers)))
        (clock, who), value = max(answers.values(), key=lambda answer: answer[0])
        seq = (clock, who) if phase.write is None else (clock + 1, self.name)
        value = value if phase.write is None else phase.write
        recording = Recording(
            phase.request, phase.client, phase.write is None, value if phase.write is None else None,
            frozenset({self.name}),
        )
        records = tuple(Record(phase.request, seq, value, source=self.name, dest=peer) for peer in self.peers)
        return m.Turn("ReceiveAckQuery", args, attrs.evolve(newer(local, seq, value), phase=recording), records)

    def receive_ack_record(self, local: Replica, phase: Recording, message: AckRecord) -> m.Turn[Replica]:
        """Note who has recorded; with a quorum, answer the client."""
        acks = phase.acks | {message.source}
        args = (self.name, message.source)
        if len(acks) < self.quorum:
            return m.Turn("ReceiveAckRecord", args, attrs.evolve(local, phase=attrs.evolve(phase, acks=acks)))
        answer: m.Message = PutOk(phase.request, source=self.name, dest=phase.client)
        if phase.is_read:
            answer = GetOk(phase.request, phase.value, source=self.name, dest=phase.client)
        return m.Turn("ReceiveAckRecord", args, attrs.evolve(local, phase=None), (answer,))


def newer(local: Replica, seq: Seq, value: str | None) -> Replica:
    """Return a replica that has a value, unless its own is newer."""
    return attrs.evolve(local, seq=seq, value=value) if seq > local.seq else local


def build(sizes: Mapping[str, int], settings: Mapping[str, str], net: m.Network, faults: m.Faults, _: bool) -> m.Model:
    types = (Query, AckQuery, Record, AckRecord, Collecting, Recording, Replica)
    return model("quorum-register", Server, types, sizes, net, faults)


def system() -> m.System:
    spec = m.ModelSpec(
        "quorum-register", "a register that a quorum of servers keeps", build,
        {"clients": m.Size(2), "servers": m.Size(2)}, networks=("bag", "fifo"), may_fault=True,
    )
    return m.System("quorum-register", (spec,))
