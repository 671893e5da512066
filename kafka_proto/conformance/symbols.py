"""Names of a record for numbers that differ from run to run: producer ids and members, in order of appearance."""

from __future__ import annotations

from harness.model import Value

UNKNOWN_ID = 1_000_000
"""Where ids begin that a record names before a broker gave them."""


class Symbols:
    """A two-way table of `pidN` and producer ids, `member-N` and member ids, grown as they appear."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._members: dict[str, str] = {}

    def producer_id(self, name: Value) -> int:
        """Return the producer id that a record means."""
        if not isinstance(name, str):
            return int(name)
        if name not in self._ids:
            self._ids[name] = UNKNOWN_ID + len(self._ids)
            self._names[self._ids[name]] = name
        return self._ids[name]

    def producer_name(self, producer_id: int) -> Value:
        """Return what a record calls a producer id; -1, which is none, is itself."""
        if producer_id < 0:
            return producer_id
        if producer_id not in self._names:
            name = f"pid{len(self._names) + 1}"
            self._names[producer_id], self._ids[name] = name, producer_id
        return self._names[producer_id]

    def member_id(self, name: str) -> str:
        """Return the member that a record means; what no broker gave is itself."""
        return next((member for member, known in self._members.items() if known == name), name)

    def member_name(self, member: str) -> str:
        """Return what a record calls a member; none has no name."""
        return self._members.setdefault(member, f"member-{len(self._members) + 1}") if member else member
