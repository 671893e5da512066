"""Where a broker is said to be: HOST:PORT, as the options of commands have it."""

from __future__ import annotations

from harness.model import Refusal


def address_of(given: str | None, option: str = "--broker") -> tuple[str, int]:
    """Return host and port of an option. Raises Refusal."""
    if given is None:
        raise Refusal(f"no broker is named; give {option} HOST:PORT, such as 127.0.0.1:9092")
    host, colon, port = given.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise Refusal(f"{option} must be HOST:PORT, such as 127.0.0.1:9092, not {given!r}")
    return host, int(port)
