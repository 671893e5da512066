"""What a server has served, counted as it goes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import attrs

from kafka_proto.gateway.inputs import Arrived, Input, Opened, Output


class Sees(Protocol):
    """Somebody who is handed every input with what came of it."""

    def see(self, given: Input, outputs: list[Output]) -> None: ...


@attrs.define
class TrafficCounts:
    """Connections, and bytes that came."""

    connections: int = 0
    received: int = 0

    def see(self, given: Input, outputs: list[Output]) -> None:
        """Count an input."""
        self.connections += isinstance(given, Opened)
        self.received += len(given.data) if isinstance(given, Arrived) else 0

    def watching(self, others: Sequence[Sees]) -> Callable[[Input, list[Output]], None]:
        """Return who sees for this and for others."""

        def see(given: Input, outputs: list[Output]) -> None:
            self.see(given, outputs)
            for other in others:
                other.see(given, outputs)

        return see
