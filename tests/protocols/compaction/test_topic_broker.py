"""What a broker of a compacted topic answers to a reader at the end of the ledger."""

from __future__ import annotations

import pytest

from compaction.broker import CompactingBroker, PulsarBroker
from compaction.clients import BROKER
from compaction.compactor import Position
from compaction.messages import ReadRequest
from compaction.records import TopicEntry
from compaction.versions import AS_WRITTEN


@pytest.mark.parametrize(("has_ledger", "position", "found"), [
    (True, Position(1, in_ledger=True), ((), Position(3), 7)),
    (True, Position(3), None),
    (False, Position(1), None),
])
def test_a_reader_below_the_horizon_is_brought_to_it(
    has_ledger: bool, position: Position, found: tuple[tuple[TopicEntry, ...], Position, int] | None
) -> None:
    """The ledger has nothing left and the topic nothing new: what was not kept is skipped, where there is a ledger."""
    local = PulsarBroker(end=3 if has_ledger else 1, context=7, horizon=3,
                         contents=(TopicEntry(1, ()),) if has_ledger else None)
    broker = CompactingBroker(AS_WRITTEN, False)
    assert broker.read(local, ReadRequest(1, position, source="r1", dest=BROKER)) == found
