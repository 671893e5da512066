"""What one event of a history says, as a value; its text is formed when a file or a digest asks for it.

docs/reference/formats.md describes the fields. A recorder adds number, virtual time and failing properties.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from harness.model import Effects, Message, Step, canonical_text
from harness.model.long_text import LongText, Text

INITIAL = "initial"
"""The kind of event 0."""


class Happening:
    """What happened in a step: its process and action, the messages that moved, the canonical texts of slots written.

    `process` and `action` are None in event 0, whose `writes` are all slots of the initial state.
    """

    __slots__ = ("_effects", "_head", "_step", "action", "is_long", "kind", "known_text", "process", "writes")

    def __init__(
        self, process: str | None, step: Step | None, effects: Effects | None, writes: Mapping[str, Text]
    ) -> None:
        self.process = process
        self.kind = INITIAL if step is None else str(step.kind)
        self.action = None if step is None else step.action
        self.writes = tuple(sorted(writes.items()))
        """Names of slots and canonical texts of their values, by name."""
        self.is_long = any([type(value) is LongText for value in writes.values()])
        """Whether the text of a slot is in parts."""
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
    def text(self) -> str:
        """The inside of the event's JSON object, canonical; it is not kept if it is long."""
        if self.known_text is None:
            slots = ",".join([f"{canonical_text(name)}:{value}" for name, value in self.writes])
            text = f"{self.head}{{{slots}}}"
            if self.is_long:
                return text
            self.known_text = text
        return self.known_text

    @property
    def parts(self) -> Iterator[str]:
        """The same in parts, which a digest need not join."""
        before = f"{self.head}{{"
        for name, value in self.writes:
            yield f"{before}{canonical_text(name)}:"
            yield from (value,) if isinstance(value, str) else value.parts
            before = ","
        yield "}"

    @property
    def turn(self) -> str:
        """The event's JSON object with the names of the slots in place of what was written to them."""
        return f"{{{self.head}{canonical_text(tuple(name for name, _ in self.writes))}}}"

    @property
    def head(self) -> str:
        """The text before the slots."""
        if self._head is None:
            self._head = '"initial":' if self._step is None else self._said(self._step)
        return self._head

    def _said(self, step: Step) -> str:
        effects = self._effects
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
            said.append(f'"op":{_op(step)}')
        said.append('"writes":')
        return ",".join(said)


RunEvent = tuple[int, int | None, Happening, str]
"""An event of a run: number, virtual time, what happened, and the canonical text of what failed, which follows it."""


def _messages(messages: Sequence[Message]) -> str:
    return "[" + ",".join([canonical_text(message) for message in messages]) + "]"


def _op(step: Step) -> str:
    op = step.op
    assert op is not None
    value = canonical_text(op.value)
    return (
        f'{{"name":{canonical_text(op.name)},"outcome":{canonical_text(op.outcome)},'
        f'"process":{canonical_text(op.process)},"value":{value}}}'
    )
