"""The table of agreement: of each release, level and family how many situations are equal, and differ."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from kafka_proto.conformance.verdict import RecordVerdict


@attrs.frozen
class AgreementRow:
    """A release at a level of `transaction.version`, and a family of clients."""

    release: str
    level: int
    family: str
    records: int
    equal: int

    @property
    def differ(self) -> int:
        return self.records - self.equal


def agreement(verdicts: Iterable[RecordVerdict]) -> list[AgreementRow]:
    """Count verdicts by release, level and family, sorted."""
    groups: dict[tuple[str, int, str], list[RecordVerdict]] = {}
    for verdict in verdicts:
        groups.setdefault((verdict.broker_version, verdict.transaction_version, verdict.family), []).append(verdict)
    return [
        AgreementRow(*key, len(members), sum(verdict.equal for verdict in members))
        for key, members in sorted(groups.items())
    ]


def table(rows: list[AgreementRow]) -> str:
    """Return rows as lines of text, with a last one for all of them."""
    total = AgreementRow("all", -1, "", sum(row.records for row in rows), sum(row.equal for row in rows))
    lines = [f"{'release':<8} {'level':>5}  {'family':<9} {'records':>7} {'equal':>6} {'differ':>6}"]
    for row in (*rows, total):
        level = "" if row.level < 0 else str(row.level)
        lines.append(f"{row.release:<8} {level:>5}  {row.family:<9} {row.records:>7} {row.equal:>6} {row.differ:>6}")
    return "\n".join(lines)
