"""A client's features as a program: a name on stdin, one line of JSON on stdout, as those of Java and Go."""

from __future__ import annotations

import json
import sys
import time

WAIT = 20
"""Seconds after which a client has failed."""


def same(expected: object, found: object) -> None:
    """Raise AssertionError where two values differ."""
    if expected != found:
        raise AssertionError(f"expected {expected}, found {found}")


class Features:
    """Features, each in a topic, and for a transactional id and a group, of its own name.

    A client has a `producer`, transactional or not, and a `consumer` that commits when it is told to. It can `write`
    records, which returns their offsets once all are acknowledged; end a `transaction` of one record, which may send an
    offset; `take` the next record as a member of the group, and commit; say what the group has `committed`; `read` the
    topic; and tell whether an error `is_fenced`'s. Records are written to and read from the first partition.
    """

    prefix: str
    topic: str

    def __init__(self, servers: str) -> None:
        self.servers = servers

    def produce(self) -> None:
        with self.producer() as made:
            same([0, 1, 2], self.write(made, "a", "b", "c"))
        same(["a", "b", "c"], self.read("read_uncommitted"))

    def group(self) -> None:
        with self.producer() as made:
            for value in ("a", "b"):
                self.write(made, value)
                same(value, self.take())

    def commit(self) -> None:
        with self.producer(self.topic) as made:
            for value in ("a", "b"):
                self.transaction(made, value, True)
        same(["a", "b"], self.read("read_committed"))

    def abort(self) -> None:
        with self.producer(self.topic) as made:
            self.transaction(made, "x", False)
            self.transaction(made, "a", True)
        same(["a"], self.read("read_committed"))
        same(["x", "a"], self.read("read_uncommitted"))

    def offsets(self) -> None:
        with self.producer(self.topic) as made:
            for offset in (1, 2):
                self.transaction(made, "a", offset == 1, offset)
        same(1, self.committed())

    def fencing(self) -> None:
        with self.producer(self.topic) as first, self.producer(self.topic) as second:
            try:
                self.transaction(first, "x", True)
            except Exception as error:
                if not self.is_fenced(error):
                    raise
            else:
                raise AssertionError("the first producer was not fenced")
            self.transaction(second, "a", True)
            same(["a"], self.read("read_committed"))

    def retries(self) -> None:
        """Whoever asks for it lets brokers fail meanwhile."""
        with self.producer(self.topic) as made:
            for number in range(12):
                self.transaction(made, str(number), number % 3 != 2)
                time.sleep(0.05)
        same([str(number) for number in range(12) if number % 3 != 2], self.read("read_committed"))


def answer_lines(client: type[Features]) -> None:
    """Run features, by name with arguments, as long as there are lines; the program's argument says where brokers are.

    A failure is the answer, and nothing else: whoever asks judges it.
    """
    features = client(sys.argv[1])
    for line in sys.stdin:
        name, *arguments = line.split()
        features.topic, error = f"{client.prefix}-{name}", ""
        try:
            if not hasattr(features, name):
                raise AssertionError("no feature of this client")
            getattr(features, name)(*arguments)
        except Exception as problem:
            error = f"{type(problem).__name__}: {problem}"
        print(json.dumps({"feature": line.strip(), "error": error}), flush=True)
