"""The choices of a run: in a list while they are few, in a temporary file when they are many."""

from __future__ import annotations

import json
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, overload

import attrs

from harness.model import Message, Refusal, Step, canonical_bytes, decode
from harness.record.files import compact, reason_of
from harness.record.references import References

_QUOTE = json.encoder.encode_basestring
BLOCK = 4096
"""The most choices that are kept in memory before they go to the file."""


@attrs.frozen
class ChosenInput:
    """Input from outside as a trail keeps it: the receiving process, and the value as canonical text."""

    process: str
    text: str

    @classmethod
    def of(cls, process: str, value: Any) -> ChosenInput:
        """Return the input of a process. Raises Refusal for anything that is no protocol value."""
        try:
            return cls(process, canonical_bytes(value).decode())
        except (TypeError, ValueError) as error:
            raise Refusal(f"{process} cannot be given this: {error}") from None

    def decoded(self, types: Mapping[str, type]) -> Any:
        """Return the value, built from the given classes by name. Raises Refusal if it does not fit them."""
        try:
            value = decode(json.loads(self.text), types)
            canonical_bytes(value)
        except (TypeError, ValueError) as error:
            raise Refusal(f"the input of {self.process} is not a value of this model: {error}") from None
        return value

    @property
    def line(self) -> str:
        """The input as a part of a trail's line."""
        return f'"input":{{"process":{_QUOTE(self.process)},"value":{self.text}}},'


@attrs.frozen
class Chosen:
    """One decision: the label of the choice taken, and the virtual time in microseconds (timed mode).

    A label that was read from a file may refer to its message by the step that sent it (see `references`); one of a run
    that was just made has its message in full, and knows which messages were sent.
    """

    label: str
    at_us: int | None = None
    subject: Message | None = attrs.field(default=None, eq=False, repr=False)
    """The message that the label names, where it is known."""
    sent: tuple[Message, ...] = attrs.field(default=(), eq=False, repr=False)
    """The messages that the step sent, where they are known."""
    input: ChosenInput | None = None
    """What came from outside: the choice can be taken again without its sender."""

    @classmethod
    def of(cls, label: str, step: Step, at_us: int | None = None) -> Chosen:
        """Return the choice of a step."""
        came = None if step.input is None else ChosenInput.of(step.input.process, step.input.value)
        return cls(label, at_us, step.subject, step.sent, came)

    @classmethod
    def read(cls, line: Mapping[str, Any]) -> Chosen:
        """Return the choice of a trail's line."""
        came = line.get("input")
        chosen = None if came is None else ChosenInput(came["process"], compact(came["value"]))
        return cls(line["choose"], line.get("at_us"), input=chosen)


class ChoiceLines:
    """Forms the lines of a trail that are its choices, one after the other: compact JSON with sorted keys."""

    def __init__(self) -> None:
        self._references = References()

    def line(self, n: int, chosen: Chosen) -> str:
        """Return the line of choice n, which comes after those before it."""
        at = "" if chosen.at_us is None else f'"at_us":{chosen.at_us},'
        label, message = self._references.shortened(chosen.label, chosen.subject)
        self._references.note(n, chosen.sent)
        came = "" if chosen.input is None else chosen.input.line
        shown = "" if message is None else f'"message":{_QUOTE(message)},'
        return f'{{{at}"choose":{_QUOTE(label)},{came}{shown}"n":{n}}}'


class SpooledChoices(Sequence[Chosen]):
    """A sequence of choices that grows at its end, for long runs: all but the last block is in a nameless file.

    The file holds the lines of the trail. It is made when the first block is full, in `folder` (default: where the
    system keeps temporary files), and gone when the sequence is no longer referenced. Raises Refusal when it is full.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._file: BinaryIO | None = None
        self._starts: list[int] = []
        """Where the blocks of the file start."""
        self._end = 0
        self._last: list[Chosen] = []
        self._last_lines: list[str] = []
        """Their lines in a trail, which depend on all choices before them."""
        self._lines = ChoiceLines()
        self._read: tuple[int, list[Chosen]] = (-1, [])
        """The block that was read last, with its number: sequential reads find the next choice here."""

    def append(self, chosen: Chosen) -> None:
        """Add a choice."""
        self._last.append(chosen)
        self._last_lines.append(self._lines.line(len(self), chosen))
        if len(self._last) == BLOCK:
            self._spool()

    def _spool(self) -> None:
        text = "".join(f"{line}\n" for line in self._last_lines)
        data = text.encode(errors="backslashreplace")
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 (it lives as long as this does)
                weakref.finalize(self, self._file.close)
            self._file.seek(self._end)
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            where = self._folder or tempfile.gettempdir()
            raise Refusal(f"cannot keep the choices of a long run in {where}: {reason_of(error)}; make room there or "
                          "ask for fewer --steps") from None
        self._starts.append(self._end)
        self._end += len(data)
        self._last, self._last_lines = [], []

    def _block(self, number: int) -> list[Chosen]:
        if number == len(self._starts):
            return self._last
        if self._read[0] != number:
            self._read = (number, [Chosen.read(json.loads(line)) for line in self._text(number)])
        return self._read[1]

    def _text(self, number: int) -> list[str]:
        assert self._file is not None
        start, end = [*self._starts[number : number + 2], self._end][:2]
        self._file.seek(start)
        return self._file.read(end - start).decode().removesuffix("\n").split("\n")

    def lines(self) -> Iterator[str]:
        """Yield the choices as lines of a trail."""
        for number in range(len(self._starts)):
            yield from self._text(number)
        yield from self._last_lines

    def __len__(self) -> int:
        return len(self._starts) * BLOCK + len(self._last)

    @overload
    def __getitem__(self, at: int) -> Chosen: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Chosen, ...]: ...
    def __getitem__(self, at: int | slice) -> Chosen | tuple[Chosen, ...]:
        if isinstance(at, slice):
            return tuple(self[n] for n in range(*at.indices(len(self))))
        n = at + len(self) if at < 0 else at
        if not 0 <= n < len(self):
            raise IndexError(at)
        return self._block(n // BLOCK)[n % BLOCK]

    def __iter__(self) -> Iterator[Chosen]:
        return (self[n] for n in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(Chosen.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[object, ...]:
        return (tuple, (list(self),))
