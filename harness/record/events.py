"""One history event as canonical JSON text. See docs/history.md for the fields."""

from __future__ import annotations

from collections.abc import Mapping

from harness.model import Effects, Message, Step, canonical_text


def event_text(process: str, step: Step, effects: Effects, writes: Mapping[str, str]) -> str:
    """Return what a step did, as the inside of a JSON object: who, what, messages, operation, written slots.

    `writes` maps slot names to canonical text. Step number, time and failing properties are added around it.
    """
    parts = [f'"process":{canonical_text(process)}', f'"kind":{canonical_text(step.kind)}']
    parts.append(f'"action":{canonical_text(step.action)}')
    parts.append(f'"args":{canonical_text(step.args)}')
    if step.detail:
        parts.append(f'"detail":{canonical_text(step.detail)}')
    if step.consumed is not None:
        parts.append(f'"received":{_message(step.consumed)}')
    if step.sent:
        parts.append(f'"sent":{_messages(step.sent)}')
    if effects.lost:
        parts.append(f'"lost":{_messages(effects.lost)}')
    if effects.held:
        parts.append(f'"held":{_messages(effects.held)}')
    if step.op is not None:
        parts.append(f'"op":{_op(step)}')
    slots = ",".join(f"{canonical_text(name)}:{text}" for name, text in sorted(writes.items()))
    parts.append(f'"writes":{{{slots}}}')
    return ",".join(parts)


def _message(message: Message) -> str:
    return canonical_text(message)


def _messages(messages: tuple[Message, ...]) -> str:
    return "[" + ",".join(_message(message) for message in messages) + "]"


def _op(step: Step) -> str:
    op = step.op
    assert op is not None
    value = canonical_text(op.value)
    return (
        f'{{"name":{canonical_text(op.name)},"outcome":{canonical_text(op.outcome)},'
        f'"process":{canonical_text(op.process)},"value":{value}}}'
    )



