"""Diary 01 as published, whose requests are handled at the granularity of its spec."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from harness.model import View
from kafka_proto.transactions.decisions.producer_ids import set_back_to_pid
from kafka_proto.transactions.records import TxnMetadata


def others_overwritten(view: View, b: str, tid: str) -> TxnMetadata | None:
    """S6, as written: when a transition of one id starts, those of the others become what is known of these ids."""
    metadata: TxnMetadata | None = view.at("tc_txn_metadata", b, tid)
    return metadata


def others_kept(view: View, b: str, tid: str) -> TxnMetadata | None:
    """S6 repaired: pending transitions of other ids stay as they are."""
    pending: TxnMetadata | None = view.at("tc_txn_transition", b, tid)
    return pending


@attrs.frozen
class PidVersion:
    """A version of diary 01."""

    pid_source_after: Callable[[int, int], int]
    others_pending: Callable[[View, str, str], TxnMetadata | None]


DIARY_01 = PidVersion(set_back_to_pid, others_overwritten)
