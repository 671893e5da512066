r"""EDN, the notation that Jepsen's histories are written in: read form by form, each with its line.

Forms become Python values: nil, truth values, numbers and texts themselves, `:a` a Keyword, any other name a Symbol,
vectors and lists tuples, maps Maps, sets frozensets. A tag is left out, and its value read as it is: Jepsen writes
records as tagged maps (`#jepsen.history.Op{...}`). Fractions and characters stay as they are written.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import attrs

from harness.model import Refusal
from harness.record.files import each_text

WHAT = "history in EDN"
BEGINS = "a map or a vector, copy it again"
SHOWN = 40
"""Characters of a thing that is shown in a sentence."""
TOKEN = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*")
    |(?P<char>\\(?:newline|return|space|tab|formfeed|backspace|u[0-9A-Fa-f]{4}|\S))
    |(?P<open>\#\{|[(\[{])|(?P<close>[)\]}])|(?P<skip>\#_)|(?P<tag>\#:?[A-Za-z][^\s,;()\[\]{}"]*)
    |(?P<atom>[^\s,;()\[\]{}"\\]+)""", re.VERBOSE | re.DOTALL)
BLANK = re.compile(r"(?:[\s,]+|;[^\n]*)*")
WHOLE = re.compile(r"([+-]?(?:0|[1-9]\d{0,999}))N?")
BASED = re.compile(r"[+-]?0[xX][0-9a-fA-F]+|[+-]?\d+/\d+")
BROKEN_UP = re.compile(r"([+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)M?")
NAME = re.compile(r"(?:[^\W\d]|[.*+!?$%&=<>/\-|'])[\w.*+!?$%&=<>/\-|'#:]*")
FIXED = {"nil": None, "true": True, "false": False, "##Inf": float("inf"), "##-Inf": float("-inf"),
         "##NaN": float("nan")}
ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "b": "\b", "f": "\f", "\\": "\\", '"': '"'}
CLOSES = {"(": ")", "[": "]", "{": "}", "#{": "}"}
NAMES = {"(": "list", "[": "vector", "{": "map", "#{": "set"}


@attrs.frozen
class Keyword:
    """A keyword, without its colon."""

    name: str

    def __str__(self) -> str:
        return f":{self.name}"


@attrs.frozen
class Symbol:
    """Any other name, or what stays as it is written."""

    name: str

    def __str__(self) -> str:
        return self.name


@attrs.define
class _Open:
    """A form that has begun."""

    kind: str
    line: int
    items: list[Any] = attrs.field(factory=list)
    skips: int = 0
    """How many of the next values are left out."""
    tagged: bool = False
    """Whether a tag waits for its value."""


def forms(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the forms of a file, each with the line that it begins on; of a vector around them, its items.

    Nothing is kept. Raises Refusal naming the line for what is no EDN, and for a file that ends within a form.
    """
    top = _Open("", 1)
    stack = [top]
    for line, kind, token in _tokens(path):
        last = stack[-1]
        if kind == "open":
            stack.append(_Open(token, line))
        elif kind == "skip":
            last.skips += 1
        elif kind == "tag":
            last.tagged = True
        elif kind == "close":
            _check_close(path, line, token, last)
            stack.pop()
            if len(stack) > 1 or last.kind not in ("[", "("):  # of one around the file the items were yielded
                _put(stack[-1], _form(path, last))
                yield from _done(stack, last.line)
            stack[-1].tagged = False
        else:
            _put(last, _atom(path, line, kind, token))
            yield from _done(stack, line)
    last = stack[-1]
    if last is not top:
        raise Refusal(f"{path}, line {last.line}: the file ends within the {NAMES[last.kind]} that begins here; it is "
                      "cut off, copy it again")


def _done(stack: list[_Open], line: int) -> Iterator[tuple[int, Any]]:
    """Yield the value just completed if it is not inside another one; a vector around the file belongs to no value."""
    last = stack[-1]
    if last.items and (len(stack) == 1 or (len(stack) == 2 and last.kind in ("[", "("))):
        yield line, last.items.pop()


def _put(form: _Open, value: Any) -> None:
    form.tagged = False
    if form.skips:
        form.skips -= 1
    else:
        form.items.append(value)


def _tokens(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line, kind and text of each token."""
    lines = enumerate(each_text(path, WHAT, BEGINS), 1)
    for number, text in lines:
        at = _after_blanks(text, 0)
        while at < len(text):
            found = TOKEN.match(text, at)
            if found is None and text[at] == '"':
                text, at = _longer(path, text[at:], number, lines), 0
                continue
            if found is None:
                raise Refusal(f"{path}, line {number}: {text[at : at + SHOWN]!r} is not EDN; give another file")
            yield number, str(found.lastgroup), found.group()
            at = _after_blanks(text, found.end())


def _after_blanks(text: str, at: int) -> int:
    found = BLANK.match(text, at)
    return at if found is None else found.end()


def _longer(path: Path, text: str, begins: int, lines: Iterator[tuple[int, str]]) -> str:
    """Return a text that goes on over several lines, with what follows on the last one."""
    read = [text]
    for _, line in lines:
        read.append(line)
        if '"' in line and TOKEN.match("\n".join(read)):
            return "\n".join(read)
    raise Refusal(f"{path}, line {begins}: the file ends within the text that begins here; it is cut off, copy it "
                  "again")


def _check_close(path: Path, line: int, token: str, form: _Open) -> None:
    if not form.kind:
        raise Refusal(f"{path}, line {line}: {token!r} closes nothing; the file is damaged")
    if CLOSES[form.kind] != token:
        raise Refusal(f"{path}, line {line}: {token!r} does not close the {NAMES[form.kind]} that begins on line "
                      f"{form.line}; the file is damaged")
    if form.skips or form.tagged:
        raise Refusal(f"{path}, line {line}: a tag has no value; the file is damaged")


def _form(path: Path, form: _Open) -> Any:
    """Return the value of a complete form."""
    items = form.items
    if form.kind in ("[", "("):
        return tuple(items)
    if form.kind == "#{":
        return frozenset(items)
    if len(items) % 2:
        raise Refusal(f"{path}, line {form.line}: the map that begins here has a key without a value; the file is "
                      "damaged")
    return Map(zip(items[::2], items[1::2], strict=True))


class Map(dict[Hashable, Any]):
    """A map of EDN, which can be a key itself."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


def _atom(path: Path, line: int, kind: str, token: str) -> Any:
    if kind == "text":
        return re.sub(r"\\(u[0-9A-Fa-f]{4}|.)", _escaped, token[1:-1], flags=re.DOTALL)
    if kind == "char":
        return Symbol(token)
    if token in FIXED:
        return FIXED[token]
    whole = WHOLE.fullmatch(token)
    if whole is not None:
        return int(whole.group(1))
    broken = BROKEN_UP.fullmatch(token)
    if broken is not None:
        return float(broken.group(1))
    if token[0] == ":" and len(token) > 1 and token[1] != ":":
        return Keyword(token[1:])
    if BASED.fullmatch(token) or NAME.fullmatch(token):
        return Symbol(token)
    raise Refusal(f"{path}, line {line}: {token[:SHOWN]!r} is not EDN; give another file")


def _escaped(found: re.Match[str]) -> str:
    mark = found.group(1)
    return chr(int(mark[1:], 16)) if len(mark) == 5 else ESCAPES.get(mark, mark)


def written(value: Any) -> str:
    """Return a value as EDN, in one way: maps and sets in the order of their items' texts."""
    if value is None or isinstance(value, bool):
        return {None: "nil", True: "true", False: "false"}[value]
    if isinstance(value, str):
        marks = {mark: f"\\{name}" for name, mark in ESCAPES.items()}
        return '"' + "".join(marks.get(mark, mark) for mark in value) + '"'
    if isinstance(value, tuple):
        return f"[{' '.join(map(written, value))}]"
    if isinstance(value, frozenset):
        return f"#{{{' '.join(sorted(map(written, value)))}}}"
    if isinstance(value, Map):
        return f"{{{', '.join(sorted(f'{written(key)} {written(item)}' for key, item in value.items()))}}}"
    return str(value)
