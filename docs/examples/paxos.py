"""Single-decree Paxos (Lamport, "Paxos Made Simple"): servers agree on one value, of a register that keeps it.

A server that a client asks to write prepares a ballot of its own, proposes what a majority says was accepted under the
highest ballot, or else the client's value, and has decided when a majority accepts that.
"""

from collections.abc import Iterable, Mapping

import attrs
from register import Get, GetOk, Put, PutOk, model

from harness import model as m

Ballot = tuple[int, str]  # a round, and the server that leads it


@attrs.frozen
class Proposal:
    request: str
    client: str
    value: str

@attrs.frozen
class Vote:
    ballot: Ballot
    proposal: Proposal

@attrs.frozen
class Prepare(m.Message):
    ballot: Ballot

@attrs.frozen
class Prepared(m.Message):
    ballot: Ballot
    accepted: Vote | None  # the last one of the sender

@attrs.frozen
class Accept(m.Message):
    vote: Vote

@attrs.frozen
class Accepted(m.Message):
    ballot: Ballot

@attrs.frozen
class Decided(m.Message):
    vote: Vote

@attrs.frozen
class Peer:
    ballot: Ballot = (0, "")
    proposal: Proposal | None = None
    prepares: m.FrozenMap[str, Vote | None] = m.FrozenMap()
    accepts: frozenset[str] = frozenset()
    accepted: Vote | None = None
    decided: bool = False


class Server(m.Actor[Peer]):
    def __init__(self, name: str, peers: tuple[str, ...]) -> None:
        self.name, self.peers, self.initial = name, peers, Peer()
        self.majority = (len(peers) + 1) // 2 + 1

    def on_message(self, local: Peer, message: m.Message) -> Iterable[m.Turn[Peer]]:
        args = (self.name, message.source)
        match message:
            case Get(request=request) if local.decided and local.accepted is not None:
                answer = GetOk(request, local.accepted.proposal.value, source=self.name, dest=message.source)
                yield m.Turn("ReceiveGet", args, local, (answer,))
            case _ if local.decided:
                return
            case Put(request=request, value=value) if local.proposal is None:
                ballot = (local.ballot[0] + 1, self.name)
                after = attrs.evolve(
                    local, ballot=ballot, proposal=Proposal(request, message.source, value),
                    prepares=m.FrozenMap({self.name: local.accepted}), accepts=frozenset(),
                )
                yield m.Turn("ReceivePut", args, after, self.to_peers(Prepare, ballot))
            case Prepare(ballot=ballot) if local.ballot < ballot:
                answer = Prepared(ballot, local.accepted, source=self.name, dest=message.source)
                yield m.Turn("ReceivePrepare", args, attrs.evolve(local, ballot=ballot), (answer,))
            case Prepared(ballot=ballot) if ballot == local.ballot:
                yield self.receive_prepared(local, message)
            case Accept(vote=vote) if local.ballot <= vote.ballot:
                answer = Accepted(vote.ballot, source=self.name, dest=message.source)
                yield m.Turn("ReceiveAccept", args, attrs.evolve(local, ballot=vote.ballot, accepted=vote), (answer,))
            case Accepted(ballot=ballot) if ballot == local.ballot:
                yield self.receive_accepted(local, message)
            case Decided(vote=vote):
                after = attrs.evolve(local, ballot=vote.ballot, accepted=vote, decided=True)
                yield m.Turn("ReceiveDecided", args, after)

    def to_peers(self, kind: type[m.Message], *fields: m.Value) -> tuple[m.Message, ...]:
        return tuple(kind(*fields, source=self.name, dest=peer) for peer in self.peers)

    def receive_prepared(self, local: Peer, message: Prepared) -> m.Turn[Peer]:
        """Count who has prepared; a majority leaves no choice of a value that an earlier ballot may have decided."""
        after = attrs.evolve(local, prepares=local.prepares.set(message.source, message.accepted))
        args = (self.name, message.source)
        if len(after.prepares) != self.majority:
            return m.Turn("ReceivePrepared", args, after)
        last = max((vote for vote in after.prepares.values() if vote is not None), key=by_ballot, default=None)
        proposal = local.proposal if last is None else last.proposal
        assert proposal is not None
        vote = Vote(local.ballot, proposal)
        after = attrs.evolve(after, proposal=proposal, accepted=vote, accepts=local.accepts | {self.name})
        return m.Turn("ReceivePrepared", args, after, self.to_peers(Accept, vote))

    def receive_accepted(self, local: Peer, message: Accepted) -> m.Turn[Peer]:
        """Count who has accepted; what a majority accepts is decided."""
        after = attrs.evolve(local, accepts=local.accepts | {message.source})
        args = (self.name, message.source)
        if len(after.accepts) != self.majority:
            return m.Turn("ReceiveAccepted", args, after)
        proposal = local.proposal
        assert proposal is not None
        answer = PutOk(proposal.request, source=self.name, dest=proposal.client)
        sent = (*self.to_peers(Decided, Vote(local.ballot, proposal)), answer)
        return m.Turn("ReceiveAccepted", args, attrs.evolve(after, decided=True), sent)


def by_ballot(vote: Vote) -> Ballot:
    return vote.ballot


def build(sizes: Mapping[str, int], settings: Mapping[str, str], net: m.Network, faults: m.Faults, _: bool) -> m.Model:
    types = (Proposal, Vote, Prepare, Prepared, Accept, Accepted, Decided, Peer)
    return model("paxos", Server, types, sizes, net, faults)


def system() -> m.System:
    spec = m.ModelSpec(
        "paxos", "servers that agree on one value", build, {"clients": m.Size(2), "servers": m.Size(3)},
        networks=("bag", "fifo"), may_fault=True,
    )
    return m.System("paxos", (spec,))
