"""A small queue with transactions that keeps its promises, and the histories of its clients, drawn by a seed.

Its logs give an offset to each record and to each transaction's end. Readers get what is below the first open
transaction, but nothing that was aborted. Operations of several clients overlap, and polls have a size, unless they
are to come one by one: then they are serializable.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import attrs

from harness.model.log_operations import ASSIGN, CRASH, FAIL, INFO, INVOKE, OK, POLL, SEND, LogOperation

LOGS = ("p", "q", "r")
OPEN, COMMITTED, ABORTED = "open", "committed", "aborted"


@attrs.define
class Sending:
    """A transaction."""

    state: str = OPEN


@attrs.define
class Queue:
    """The system and its clients."""

    chance: Random
    one_by_one: bool = False
    logs: dict[str, list[tuple[int | None, Sending]]] = attrs.field(factory=lambda: {log: [] for log in LOGS})
    """Each offset: the value, None for a transaction's end."""
    history: list[LogOperation] = attrs.field(factory=list)
    values: int = 100

    def stable(self, log: str) -> list[tuple[int, int]]:
        """Return the records that a reader may get."""
        records = self.logs[log]
        end = next((at for at, (_, sending) in enumerate(records) if sending.state == OPEN), len(records))
        return [(at, value) for at, (value, sending) in enumerate(records[:end])
                if value is not None and sending.state == COMMITTED]

    def add(self, process: str, kind: str, name: str, parts: list[list[Any]]) -> None:
        self.history.append(LogOperation(len(self.history) + 1, None, process, kind, name, tuple(parts)))

    def writer(self, process: str) -> Iterator[None]:
        """Send, in a transaction or not; positions go back when one fails."""
        positions: dict[str, int] = {}
        for _ in range(self.chance.randrange(3, 8)):
            name = self.chance.choice(("send", "txn", "txn"))
            asked: list[list[Any]] = []
            for _ in range(1 if name == "send" else self.chance.randrange(1, 4)):
                self.values += 1
                asked.append([SEND, self.chance.choice(LOGS), None, self.values])
            polls = [[POLL, []]] if name == "txn" and self.chance.random() < 0.6 else []
            self.add(process, INVOKE, name, [*polls, *asked])
            yield
            read = [[POLL, self.poll(positions)] for _ in polls]
            sending, done = Sending(), []
            touched = sorted({log for _, log, _, _ in asked})
            for _, log, _, value in asked:
                done.append([SEND, log, len(self.logs[log]), value])
                self.logs[log].append((value, sending))
                yield
            sending.state = ABORTED if name == "txn" and self.chance.random() < 0.25 else COMMITTED
            if name == "txn":
                for log in touched:
                    self.logs[log].append((None, sending))
            yield
            unknown = self.chance.random() < 0.15
            outcome = INFO if unknown else OK if sending.state == COMMITTED else FAIL
            if outcome != OK or self.chance.random() < 0.2:
                done = [[*part[:2], None, part[3]] for part in done]
            self.add(process, outcome, name, [*read, *done])
            if outcome == OK:
                for _, logs in read:
                    positions.update((log, records[-1][0] + 1) for log, records in logs)
            if outcome == INFO:
                return  # the client is given up

    def poll(self, positions: dict[str, int]) -> list[tuple[str, list[list[int]]]]:
        found = []
        for log in LOGS:
            ahead = [[at, value] for at, value in self.stable(log) if at >= positions.get(log, 0)]
            if ahead:
                most = len(ahead) if self.one_by_one else self.chance.randrange(1, 5)
                found.append((log, ahead[:most]))
        return found

    def reader(self, process: str) -> Iterator[None]:
        """Poll, crash now and then, begin again."""
        positions: dict[str, int] = {}
        self.assign(process)
        for _ in range(self.chance.randrange(4, 12)):
            yield
            self.add(process, INVOKE, "poll", [[POLL, []]])
            yield
            got = self.poll(positions)
            positions.update((log, records[-1][0] + 1) for log, records in got)
            self.add(process, OK, "poll", [[POLL, got]])
            if self.chance.random() < 0.1:
                positions.clear()
                self.add(process, INFO, CRASH, [])
                self.assign(process)

    def assign(self, process: str) -> None:
        for kind in (INVOKE, OK):
            self.add(process, kind, ASSIGN, [[ASSIGN, list(LOGS), True]])

    def run(self) -> list[LogOperation]:
        """Return a history that ends with a reader who reads all."""
        clients = [self.writer(str(n)) for n in range(4)] + [self.reader(str(n)) for n in range(4, 6)]
        while clients:
            client = self.chance.choice(clients)
            goes_on = next(client, LOGS) is None
            while goes_on and self.one_by_one and self.history[-1].outcome == INVOKE:
                goes_on = next(client, LOGS) is None
            if not goes_on:
                clients.remove(client)
        positions: dict[str, int] = {}
        self.assign("6")
        while got := self.poll(positions):
            self.add("6", INVOKE, "poll", [[POLL, []]])
            positions.update((log, records[-1][0] + 1) for log, records in got)
            self.add("6", OK, "poll", [[POLL, got]])
        for kind in (INVOKE, OK):
            self.add("6", kind, "poll", [[POLL, []]])
        return self.history


def legal(seed: int, one_by_one: bool = False) -> list[LogOperation]:
    """Return a history without an anomaly."""
    return Queue(Random(seed), one_by_one).run()


def mingled(seed: int, history: list[LogOperation], other: list[LogOperation]) -> list[LogOperation]:
    """Return two histories of different clients and logs as one, each in its order."""
    chance, both, rest = Random(seed), [], [list(history), list(other)]
    while any(rest):
        mine = chance.choice([each for each in rest if each])
        operation = mine.pop(0)
        process = f"{'a' if mine is rest[1] else ''}{operation.process}"
        both.append(attrs.evolve(operation, n=len(both) + 1, process=process))
    return both
