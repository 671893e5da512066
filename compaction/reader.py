"""What a reader of the compacted topic gets: the compacted ledger first, then the topic from the horizon on.

The spec's consumer reads nothing; its comments and invariants say what one would get, and that is here.
"""

from __future__ import annotations

from collections import Counter

import attrs

from compaction.records import Ledger


@attrs.frozen
class Position:
    """Where a reader is: the id of the last message it got, and whether that came from the compacted ledger."""

    last: int = 0
    in_ledger: bool = False


def next_message(position: Position, ledger: Ledger | None, horizon: int, end: int) -> Position | None:
    """Return the position after the next message, or None when there is none yet.

    `ledger` is that of the context, if any, and `end` the id of the last message of the topic. Every read below the
    horizon, and the first one of all, uses the ledger. Whoever comes to its end goes on behind the horizon, wherever
    the ledger ended: that is how a message is read twice while the horizon lags behind (S12). A ledger is read by ids,
    in whatever order it holds them.
    """
    last = position.last
    if ledger is not None and (position.in_ledger or last == 0 or last < horizon):
        after = min((id_ for id_ in ledger if id_ > last), default=None)
        if after is not None:
            return Position(after, in_ledger=True)
        last = horizon if position.in_ledger else max(last, horizon)
    return Position(last + 1) if last < end else None


def view_from_earliest(ledger: Ledger | None, horizon: int, end: int) -> tuple[int, ...]:
    """Return the ids of all messages that a reader from the earliest position gets, in its order."""
    read = []
    position = next_message(Position(), ledger, horizon, end)
    while position is not None:
        read.append(position.last)
        position = next_message(position, ledger, horizon, end)
    return tuple(read)


def read_twice(ledger: Ledger | None, horizon: int, end: int) -> tuple[int, ...]:
    """Return the ids of the messages that a reader from the earliest position gets more than once."""
    times = Counter(view_from_earliest(ledger, horizon, end))
    return tuple(id_ for id_ in sorted(times) if times[id_] > 1)
