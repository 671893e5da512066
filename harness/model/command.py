"""What application code has of an actor: the awaitable that carries out its commands, and its exception."""

from __future__ import annotations

from typing import Protocol

from harness.model.values import Value


class Command(Protocol):
    """What a runtime supplies to application code, for one actor. Both return when the operation ended."""

    async def __call__(self, action: str, *args: str) -> Value:
        """Carry out a command that the model offers. Raises OperationFailed."""

    async def give(self, value: Value) -> Value:
        """Give the actor input from outside (`Actor.on_input`), and time for what it begins. Raises OperationFailed."""


class OperationFailed(Exception):
    """An operation of a client did not succeed: `outcome` is `fail` (it did not happen) or `info` (unknown)."""

    def __init__(self, outcome: str, value: Value) -> None:
        super().__init__(f"{outcome}: {value}")
        self.outcome = outcome
        self.value = value
