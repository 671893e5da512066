"""Known bugs of clients: what of a session they explain, for tests that are about something else.

A test that allows one is not failed by what the issue describes, if all transactional producers of its session are
clients that have it. Names and versions are those that a client announces in ApiVersions.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

import attrs

from harness.model import Refusal, unknown


@attrs.frozen
class KnownBug:
    """A bug of some clients: the properties that it violates. `clients` match their name and version."""

    title: str
    clients: str
    properties: tuple[str, ...]


KNOWN: Mapping[str, KnownBug] = {
    "KAFKA-17754": KnownBug(
        "An EndTxn that comes late ends a later transaction: the client does not speak KIP-890 part 2.",
        r"(librdkafka|confluent-kafka-\S+) .*|apache-kafka-java [0-3]\..*",
        ("MarkerAttribution", "Atomicity", "AcknowledgedOutcome", "NoIntermediateRead")),
}
"""By the issue that tells of it."""


def check(issues: str | Iterable[str]) -> tuple[str, ...]:
    """Return issues that are known. Raises Refusal for another one."""
    names = (issues,) if isinstance(issues, str) else tuple(issues)
    for name in names:
        if name not in KNOWN:
            raise Refusal(unknown(f"there is no known bug {name!r}", name, KNOWN, "known are"))
    return names


def explained(issues: Iterable[str], software: Collection[str], problems: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that allowed bugs explain, each with its issue; `software` are the clients that write."""
    return {name: issue for issue in issues for name in KNOWN[issue].properties if name in problems and software
            and all(re.fullmatch(KNOWN[issue].clients, each) for each in software)}
