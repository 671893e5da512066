"""The anomalies of histories of logs, by the names of Jepsen and Elle, the property that each violates, and proofs.

What is an anomaly depends on what the system promises. Kafka's transactions promise `read_committed`: records of a
transaction are read once it committed, in partitions one by one. Cycles over the order of logs (`G0`, `G-single` and
others) are legal there: two transactions write two partitions in opposite orders, and a reader sees one partition
earlier than another one. They are anomalies of `serializable` alone.

Sources: `jepsen.tests.kafka`; Adya, Liskov, O'Neil, Generalized Isolation Level Definitions, 2000; Elle (VLDB 2020).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

LEVELS = ("read_uncommitted", "read_committed", "serializable")
"""What a system promises, each more than the one before."""

PROPERTIES: Mapping[str, str] = {
    "AckDurability": "an acknowledged record is read by those who read past its offset",
    "StableReads": "an offset has one content, and no reader goes back",
    "NothingSkipped": "no reader passes over a record that another one reads",
    "AcknowledgedOffset": "a record is at the offset that its sender was told",
    "WrittenOnce": "what was sent once is in a log once",
    "ReadsWereSent": "what is read was sent before, to that log",
    "SendsInOrder": "what a client sends one after the other is in the log in that order",
    "NoAbortedRead": "nothing is read of an operation that failed",
    "NoPrecommittedRead": "no transaction reads its own records",
    "WholeTransactions": "of a transaction all records are there, or none",
    "NoReadCycle": "no transactions read from each other in a circle",
    "Serializable": "the order of records and of reads is that of transactions one after the other",
}
"""The properties of every history of a log: name to what it says."""
ANOMALIES: Mapping[str, tuple[str, str]] = {
    "lost-write": ("AckDurability", "read_uncommitted"),
    "unseen": ("AckDurability", "read_uncommitted"),
    "int-poll-skip": ("NothingSkipped", "read_uncommitted"),
    "poll-skip": ("NothingSkipped", "read_uncommitted"),
    "inconsistent-offsets": ("StableReads", "read_uncommitted"),
    "int-nonmonotonic-poll": ("StableReads", "read_uncommitted"),
    "nonmonotonic-poll": ("StableReads", "read_uncommitted"),
    "wrong-offset": ("AcknowledgedOffset", "read_uncommitted"),
    "duplicate": ("WrittenOnce", "read_uncommitted"),
    "garbage-read": ("ReadsWereSent", "read_uncommitted"),
    "wrong-key": ("ReadsWereSent", "read_uncommitted"),
    "future-read": ("ReadsWereSent", "read_uncommitted"),
    "int-nonmonotonic-send": ("SendsInOrder", "read_uncommitted"),
    "nonmonotonic-send": ("SendsInOrder", "read_uncommitted"),
    "G1a": ("NoAbortedRead", "read_committed"),
    "precommitted-read": ("NoPrecommittedRead", "read_committed"),
    "torn-transaction": ("WholeTransactions", "read_committed"),
    "G1c": ("NoReadCycle", "read_committed"),
    "G0": ("Serializable", "serializable"),
    "G1c-ww": ("Serializable", "serializable"),
    "G-single": ("Serializable", "serializable"),
    "G2-item": ("Serializable", "serializable"),
}
"""By name: the property that an anomaly violates, and the least level that forbids it."""


@attrs.frozen
class ProofStep:
    """A line of a proof: an operation, and what it did or was told."""

    n: int
    process: str
    action: str
    what: str

    @property
    def words(self) -> str:
        return f"operation {self.n} ({self.action} by {self.process})"

    def __str__(self) -> str:
        return f"{self.words} {self.what}"

    def to_json(self) -> dict[str, Any]:
        return {"operation": self.n, "process": self.process, "action": self.action, "what": self.what}


@attrs.frozen
class Breach:
    """A property that a history violates: where, by which operation, why, and how that is seen."""

    property: str
    step: int
    action: str
    reason: str
    anomaly: str
    proof: tuple[ProofStep, ...]

    def to_json(self) -> dict[str, Any]:
        return {"anomaly": self.anomaly, "property": self.property, "step": self.step, "reason": self.reason,
                "proof": [step.to_json() for step in self.proof]}

    def lines(self) -> list[str]:
        """Return the anomaly, and its proof step by step."""
        return [f"{self.anomaly} ({self.property})", *(f"  {step}" for step in self.proof)]


def breach(anomaly: str, reason: str, *proof: ProofStep, of: str | None = None) -> Breach:
    """Return an anomaly; its step is the last operation of the proof. `of` is another property than its own."""
    last = max(proof, key=lambda step: step.n)
    return Breach(of or ANOMALIES[anomaly][0], last.n, last.action, reason, anomaly, proof)


def forbidden(anomaly: str, level: str) -> bool:
    """Say whether a level forbids an anomaly."""
    return LEVELS.index(ANOMALIES[anomaly][1]) <= LEVELS.index(level)
