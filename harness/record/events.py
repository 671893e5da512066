"""What one event of a history says, as a value; its text is formed when a file or a digest asks for it.

docs/reference/formats.md describes the fields. A recorder adds number, virtual time and failing properties.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from harness.model import Effects, Message, Step, canonical_text

INITIAL = "initial"
"""The kind of event 0."""


class Happening:
    """What happened in a step: its process and action, the messages that moved, the canonical texts of slots written.

    `process` and `action` are None in event 0, whose `writes` are all slots of the initial state.
    """

    __slots__ = ("_effects", "_head", "_step", "_writes", "action", "kind", "known_text", "process")

    def __init__(
        self, process: str | None, step: Step | None, effects: Effects | None, writes: Mapping[str, str]
    ) -> None:
        self.process = process
        self.kind = INITIAL if step is None else str(step.kind)
        self.action = None if step is None else step.action
        self._writes = tuple(sorted(writes.items()))
        self._step = step
        self._effects = effects
        self._head: str | None = None
        self.known_text: str | None = None
        """The text, once it has been asked for."""

    @property
    def step(self) -> Step | None:
        """The step, None in event 0."""
        return self._step

    @property
    def effects(self) -> Effects | None:
        """What taking the step did, None in event 0."""
        return self._effects

    @property
    def writes(self) -> Sequence[tuple[str, str]]:
        """Names of slots and canonical texts of their values, by name."""
        return self._writes

    @property
    def text(self) -> str:
        """The inside of the event's JSON object, canonical."""
        if self.known_text is None:
            self.known_text = self._whole()
        return self.known_text

    def _whole(self) -> str:
        slots = ",".join([f"{canonical_text(name)}:{value}" for name, value in self.writes])
        return f"{self.head}{{{slots}}}"

    @property
    def turn(self) -> str:
        """The event's JSON object with the names of the slots in place of what was written to them."""
        return f"{{{self.head}{canonical_text(tuple(name for name, _ in self.writes))}}}"

    @property
    def head(self) -> str:
        """The text before the slots."""
        if self._head is None:
            self._head = self._beginning()
        return self._head

    def _beginning(self) -> str:
        step, effects = self._step, self._effects
        if step is None:
            return '"initial":'
        said = [f'"process":{canonical_text(self.process)}', f'"kind":{canonical_text(step.kind)}']
        said.append(f'"action":{canonical_text(step.action)}')
        said.append(f'"args":{canonical_text(step.args)}')
        if step.detail:
            said.append(f'"detail":{canonical_text(step.detail)}')
        if step.input is not None:
            said.append(f'"input":{canonical_text(step.input.value)}')
        if step.consumed is not None:
            said.append(f'"received":{canonical_text(step.consumed)}')
        if step.sent:
            said.append(f'"sent":{_messages(step.sent)}')
        if effects is not None and effects.lost:
            said.append(f'"lost":{_messages(effects.lost)}')
        if effects is not None and effects.held:
            said.append(f'"held":{_messages(effects.held)}')
        if step.op is not None:
            said.append(f'"op":{op_text(step)}')
        said.append('"writes":')
        return ",".join(said)


class LongHappening(Happening):
    """One whose texts would fill memory, as those of `Model.tells`: they are formed again whenever one is asked for.

    What it writes is what has changed of each slot, see `changes`.
    """

    __slots__ = ("_write",)

    def __init__(
        self, process: str | None, step: Step | None, effects: Effects | None, write: Callable[[], Mapping[str, str]]
    ) -> None:
        super().__init__(process, step, effects, {})
        self._write = write

    @property
    def writes(self) -> Sequence[tuple[str, str]]:
        return tuple(sorted(self._write().items()))

    @property
    def text(self) -> str:
        return self._whole()

    @property
    def head(self) -> str:
        return self._beginning()


RunEvent = tuple[int, int | None, Happening, str]
"""An event of a run: number, virtual time, what happened, and the canonical text of what failed, which follows it."""


def _messages(messages: Sequence[Message]) -> str:
    return "[" + ",".join([canonical_text(message) for message in messages]) + "]"


def op_text(step: Step) -> str:
    """Return a step's part in a client's operation as canonical text."""
    op = step.op
    assert op is not None
    value = canonical_text(op.value)
    return (
        f'{{"name":{canonical_text(op.name)},"outcome":{canonical_text(op.outcome)},'
        f'"process":{canonical_text(op.process)},"value":{value}}}'
    )
