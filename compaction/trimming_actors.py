"""The actor composition on a topic that is trimmed: batches, tombstones, and a raw reader that reconnects.

There is no spec of it: it is judged by its properties only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compaction import trimming_broker
from compaction.actor_properties import broker_of, messages_of, raw_messages
from compaction.actors import composed
from compaction.records import NULL_KEY, NULL_VALUE
from compaction.trimming_broker import TrimmingBroker
from compaction.versions import FLAWS, RIGHT
from harness.model import Model, Property, Step, View, departed, sometimes


def build(sizes: Mapping[str, int], settings: Mapping[str, str], *rest: Any) -> Model:
    """Build `compaction/pulsar-trimming/actors`."""
    flaw = "" if settings["flaw"] == "none" else settings["flaw"]
    host = TrimmingBroker(settings["retain-null-key"] == "true", departed(RIGHT, FLAWS, flaw), sizes["reconnects"])
    return composed(
        "compaction/pulsar-trimming/actors", host, sizes, settings, *rest, own=(), deletes=True,
        types=trimming_broker.TYPES, witnesses=WITNESSES,
    )


def key_deleted(view: View) -> bool:
    """Say whether readers skip a tombstone that the ledger does not have."""
    local = broker_of(view)
    kept = {message.id for message in messages_of(local.contents or ())}
    return any(
        message.key != NULL_KEY and message.value == NULL_VALUE and message.id <= local.horizon
        and message.id not in kept
        for message in raw_messages(view, local.end)
    )


def batch_compacted(view: View) -> bool:
    """Say whether the ledger in use has an entry that lost some of its messages."""
    sent = {entry.id: entry for entry in view["producer"].sent}
    return any(entry.messages != sent[entry.id].messages for entry in broker_of(view).contents or ())


def previous_ledger_read(view: View, step: Step) -> bool:
    """Say whether phase one reads the ledger of the compaction before."""
    return step.action == "CompactorPhaseOne" and bool(broker_of(view).contents)


def raw_reader_replays(view: View, step: Step) -> bool:
    """Say whether phase two reads an entry again that it has written."""
    local = broker_of(view)
    return step.action == "RawReaderReconnects" and bool(local.written)


WITNESSES: tuple[Property, ...] = (
    sometimes("KeyDeleted", key_deleted),
    sometimes("BatchCompacted", batch_compacted),
    sometimes("PreviousLedgerRead", previous_ledger_read, on="step"),
    sometimes("TopicTrimmed", lambda view, step: step.action == "TrimTopic", on="step"),
    sometimes("RawReaderReplays", raw_reader_replays, on="step"),
)
