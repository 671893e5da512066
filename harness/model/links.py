"""Links: how messages travel from one process to another, as the model says; and the inboxes in which they wait.

A model without links of its own has one between any two addresses, and all travel by the network that is chosen for a
run. A model that lists its links has only these; a link without a semantics of its own travels by that network.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness.model.message import Message
from harness.model.network import Network
from harness.model.view import slot


@attrs.frozen
class Link:
    """The way from one address to another, and the semantics of the messages on it; None: those of the network."""

    source: str
    dest: str
    network: Network | None = None


def both_ways(ones: Iterable[str], others: Iterable[str], network: Network | None = None) -> tuple[Link, ...]:
    """Return the links between each of some addresses and each of others, there and back."""
    pairs = [(one, other) for one in ones for other in others]
    return tuple(link for one, other in pairs for link in (Link(one, other, network), Link(other, one, network)))


@attrs.frozen
class Inbox:
    """The slot of an address for what reaches it over links of one semantics.

    It is `inbox[a]` for the network that is chosen for a run, and `inbox[a][reliable]`, say, for another semantics.
    """

    slot: str
    network: Network


class Routes(dict[tuple[str, str], Inbox]):
    """The inbox in which a message waits, by its source and destination. Raises ValueError if there is no link."""

    def __init__(self, addresses: Iterable[str], links: Iterable[Link], network: Network) -> None:
        super().__init__()
        known: dict[str, dict[str, Inbox]] = {address: {} for address in addresses}
        self.listed = tuple(links)
        for link in self.listed:
            semantics = link.network if link.network is not None else network
            index = (link.dest,) if semantics is network else (link.dest, semantics.name)
            inbox = known[link.dest].setdefault(semantics.name, Inbox(slot("inbox", *index), semantics))
            if self.setdefault((link.source, link.dest), inbox) is not inbox:
                raise ValueError(f"the link from {link.source} to {link.dest} is listed with two semantics")
        if not self.listed:
            known = {address: {network.name: Inbox(slot("inbox", address), network)} for address in known}
        self.inboxes = {
            address: tuple(sorted(mine.values(), key=lambda inbox: (not inbox.network.is_reliable, inbox.slot)))
            for address, mine in known.items()
        }
        """The inboxes of each address, those of reliable links first."""

    def of(self, message: Message) -> Inbox:
        """Return the inbox in which a message waits."""
        return self[message.source, message.dest]

    def __missing__(self, pair: tuple[str, str]) -> Inbox:
        source, dest = pair
        if self.listed or dest not in self.inboxes:
            raise ValueError(f"there is no link from {source} to {dest} on which a message could travel")
        found = self[pair] = self.inboxes[dest][0]
        return found

    def links(self, one: str, other: str) -> bool:
        """Say whether messages can travel between two addresses, either way."""
        return not self.listed or (one, other) in self or (other, one) in self
