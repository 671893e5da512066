"""Checks of transactions one by one, remembered: they are asked again about those that changed, or failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

import attrs

from harness.model import Reason
from kafka_proto.broker.ghosts import Noted, Span
from kafka_proto.cluster import guarantees
from kafka_proto.gateway.observed import Observed

Ends = list[tuple[str, Span]]
TransactionCheck = Callable[[Ends, Mapping[str, str], guarantees.IsAcknowledged], Reason]
"""Of what ended in partitions, how transactions ended as their producers heard, and what was acknowledged."""


@attrs.define
class TransactionVerdict:
    """What a check says of the transactions so far."""

    check: TransactionCheck
    failing: frozenset[str] = frozenset()
    reason: Reason = None


class EndedTransactions:
    """What there is to know of them up to a state of a session."""

    def __init__(self, checks: Sequence[TransactionCheck]) -> None:
        self._verdicts = [TransactionVerdict(check) for check in checks]
        self._seen = Observed()
        self._spans: dict[str, dict[tuple[str, int], Span]] = {}
        """By transaction: what of it ended, by partition and number."""
        self._owners: dict[tuple[str, int], str] = {}
        """The transaction of each batch that ended, by partition and offset."""
        self._acknowledged: set[tuple[str, int]] = set()
        self._told: dict[str, str] = {}

    def judge(self, seen: Observed) -> tuple[Reason, ...]:
        """Return what is wrong, by each check, with the transactions of a session that has gone on to here."""
        changed = self._noted(seen)
        for verdict in self._verdicts if changed else ():
            about = changed | verdict.failing
            verdict.reason = self._of(verdict.check, about)
            verdict.failing = frozenset(
                each for each in about if self._of(verdict.check, {each})) if verdict.reason else frozenset()
        return tuple(verdict.reason for verdict in self._verdicts)

    def lead_to(self, seen: Observed) -> bool:
        """Say whether a session can have gone on from what was judged last."""
        was = self._seen
        return (all(name in seen.ledgers and seen.ledgers[name].ended.begins_with(ledger.ended, len(ledger.ended))
                    for name, ledger in was.ledgers.items())
                and seen.acknowledged.begins_with(was.acknowledged, len(was.acknowledged))
                and seen.heard.begins_with(was.heard, len(was.heard)))

    def _noted(self, seen: Observed) -> set[str]:
        """Note what is new, and return the transactions that it is about."""
        changed: set[str] = set()
        was, self._seen = self._seen, seen
        for name, ledger in seen.ledgers.items():
            before = was.ledgers.get(name)
            if before is ledger:
                continue
            known = len(before.ended) if before is not None else 0
            for n, span in enumerate(ledger.ended.between(known, len(ledger.ended)), known):
                for record in span.records:
                    self._spans.setdefault(record.transaction, {})[name, n] = span
                    self._owners[name, record.offset] = record.transaction
                    changed.add(record.transaction)
        for each in seen.acknowledged.between(len(was.acknowledged), len(seen.acknowledged)):
            place = each.partition, each.offset
            self._acknowledged.add(place)
            changed |= {self._owners[place]} if place in self._owners else set()
        for heard in seen.heard.between(len(was.heard), len(seen.heard)):
            self._told[heard.transaction] = "commit" if heard.committed else "abort"
            changed.add(heard.transaction)
        return changed

    def _of(self, check: TransactionCheck, transactions: Set[str]) -> Reason:
        """Return what is wrong with some transactions."""
        found = {place: span for each in transactions for place, span in self._spans.get(each, {}).items()}
        return check([(place[0], found[place]) for place in sorted(found)], self._told, self._is_acknowledged)

    def _is_acknowledged(self, partition: str, record: Noted) -> bool:
        return (partition, record.offset) in self._acknowledged
