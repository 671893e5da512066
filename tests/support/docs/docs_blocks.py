"""The fenced blocks of README and docs: what each is, and what it must hold.

Run as a program it makes the pages' outputs anew:
`python tests/support/docs/docs_blocks.py --update [--large] [PAGE...]`.

The word after the fence says what a block is, and marks after it say more:

- `console`: commands after `$ `, each with the output that follows it. Output that is shown is compared; `...` on a
  line of its own stands for any lines. `exit=0,1` lists the exit codes of the block's commands (0 where nothing is
  said). `large`: it takes long, so `make test-large` runs it. `figures`: a table of measurements, whose decimals are
  masked.
- `python`: a program; what it prints is compared with the comments behind its calls of print. `from=FILE`: an excerpt
  of FILE, which is beside the page. `file=NAME`: the content of a file that the reader saves in the page's folder.
- `toml`, `json`: with `file=NAME` or `from=FILE` likewise. `json shows=FILE`: lines of a file that is there by then.
- `text`: a picture, a formula, a table. It holds no command.
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a program, too

from support.paths import ROOT

PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md",
         *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "specs"))
FENCE = re.compile(r"( *)(`{3,}|~{3,})(.*)")
MARKS: Mapping[str, frozenset[str]] = {
    "console": frozenset({"exit", "large", "figures"}),
    "python": frozenset({"from", "file", "large"}),
    "toml": frozenset({"file", "from"}),
    "json": frozenset({"file", "from", "shows"}),
    "text": frozenset(),
}
"""Each language of a block and the marks that it may have."""
NEEDS_A_MARK = ("toml", "json")
LOOKS_LIKE_A_COMMAND = re.compile(r" {0,3}(\$ |(kafka-proto|make|pip|python3?|pytest|docker|java) +[^ ])")
ELIDED = "..."
TIMES = re.compile(r"(?<![\w.,-])\d[\d,]*(\.\d+)?(?= ?(s|ms|min|MB|GB)\b|/s\b)")
ADDRESS = re.compile(r"127\.0\.0\.1:\d+")
DECIMALS = re.compile(r"(?<![\w.,-])\d[\d,]*\.\d+(?![\w.])")


class DocsError(AssertionError):
    """A page is wrong: where, and what was expected."""


@attrs.frozen
class Block:
    """A fenced block of a page; `line` is that of its fence, counted from 1."""

    page: Path
    line: int
    language: str
    marks: Mapping[str, str]
    lines: tuple[str, ...]

    @property
    def place(self) -> str:
        """Where it is, as editors take it."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def text(self) -> str:
        """Its content, as a file."""
        return "".join(f"{line}\n" for line in self.lines)

    @property
    def name(self) -> str:
        """Its first line without a comment: how exceptions name it."""
        return re.sub(r"\s{2,}# .*", "", self.lines[0]) if self.lines else ""


@attrs.frozen
class Command:
    """A command of a console block, with the output that the page shows; `first` is its line inside the block."""

    text: str
    first: int
    shown_from: int
    shown: tuple[str, ...]
    code: int


@attrs.frozen
class Answer:
    """What a command came to: its exit code, and the lines of both its streams."""

    command: Command
    code: int
    output: list[str]


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page. Raises DocsError for one that nobody can tell what it is."""
    found: list[Block] = []
    opened: tuple[int, str] | None = None
    lines: list[str] = []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = FENCE.fullmatch(line)
        if opened is None:
            where = f"{page.relative_to(ROOT)}:{number}"
            if fence is None:
                if re.match(r"\s+\$ ", line):
                    raise DocsError(f"{where}: a command outside a fenced block: {line.strip()}")
                continue
            if fence[1] or fence[2] != "```":
                raise DocsError(f"{where}: a fence is three backticks at the beginning of a line")
            opened, lines = (number, fence[3]), []
        elif fence is not None:
            found.append(_block(page, *opened, lines))
            opened = None
        else:
            lines.append(line)
    if opened is not None:
        raise DocsError(f"{page.name}:{opened[0]}: the block has no end")
    return found


def _block(page: Path, line: int, info: str, lines: Sequence[str]) -> Block:
    where = f"{page.relative_to(ROOT)}:{line}"
    language, *words = info.split() or [""]
    marks = {name: value for name, _, value in (word.partition("=") for word in words)}
    if language not in MARKS:
        raise DocsError(f"{where}: expected one of {', '.join(MARKS)} after the fence, found {language!r}")
    unknown = sorted(set(marks) - MARKS[language])
    if unknown:
        raise DocsError(f"{where}: a block of {language} has no mark {', '.join(unknown)}")
    if language in NEEDS_A_MARK and not marks:
        raise DocsError(f"{where}: a block of {language} says file=NAME, from=FILE or (json) shows=FILE, or is text")
    block = Block(page, line, language, marks, tuple(lines))
    if language == "text":
        command = next((text for text in lines if LOOKS_LIKE_A_COMMAND.match(text)), None)
        if command is not None:
            raise DocsError(f"{where}: a command in a block of text: {command.strip()}; make it a console block")
    if language == "console":
        commands(block)
    return block


def commands(block: Block) -> list[Command]:
    """Return the commands of a console block. Raises DocsError for one that begins with something else."""
    starts: list[tuple[str, int, int]] = []
    at = 0
    while at < len(block.lines):
        if block.lines[at].startswith("$ "):
            first, text = at, block.lines[at][2:]
            while text.endswith("\\") and at + 1 < len(block.lines):
                at += 1
                text = f"{text[:-1].rstrip()} {block.lines[at].strip()}"
            starts.append((text, first, at + 1))
        at += 1
    if not starts or starts[0][1] != 0:
        raise DocsError(f"{block.place}: a console block begins with a command, after '$ '")
    codes = [int(code) for code in block.marks["exit"].split(",")] if "exit" in block.marks else [0] * len(starts)
    if len(codes) != len(starts):
        raise DocsError(f"{block.place}: exit= lists {len(codes)} codes for {len(starts)} commands")
    ends = [first for _, first, _ in starts[1:]] + [len(block.lines)]
    found = []
    for (text, first, after), end, code in zip(starts, ends, codes, strict=True):
        shown = block.lines[after:end]
        while shown and not shown[-1]:
            shown = shown[:-1]
        found.append(Command(text, first, after, shown, code))
    return found


def masked(line: str, figures: bool = False) -> str:
    """Return a line without what differs from run to run: times, rates, memory, ports; spaces count where none is."""
    hidden = ADDRESS.sub("127.0.0.1:#", TIMES.sub("#", line))
    if figures:
        hidden = DECIMALS.sub("#", hidden)
    return (" ".join(hidden.split()) if hidden != line else line).rstrip()


def agrees(shown: Sequence[str], found: Sequence[str], figures: bool = False) -> bool:
    """Return whether output is as shown, where `...` on a line of its own stands for any lines."""
    pieces: list[list[str]] = [[]]
    for line in shown:
        if line.strip() == ELIDED:
            pieces.append([])
        else:
            pieces[-1].append(masked(line, figures))
    real = [masked(line, figures) for line in found]
    if len(pieces) == 1:
        return pieces[0] == real
    first, *middle, last = pieces
    if real[: len(first)] != first or (last and real[-len(last):] != last):
        return False
    at, end = len(first), len(real) - len(last)
    for piece in middle:
        at = next((start + len(piece) for start in range(at, end - len(piece) + 1)
                   if real[start : start + len(piece)] == piece), end + 1)
    return at <= end


def difference(shown: Sequence[str], found: Sequence[str]) -> str:
    """Return both outputs, line by line, for a person."""
    return "\n".join(difflib.unified_diff(list(shown), list(found), "shown", "found", lineterm="", n=2))


def renewed(shown: Sequence[str], found: Sequence[str], figures: bool = False) -> list[str]:
    """Return new output in place of old, left out where the old one left lines out."""
    if agrees(shown, found, figures):
        return list(shown)
    old, new = [masked(line, figures) for line in shown], [masked(line, figures) for line in found]
    lines: list[str] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gap = next((at for at in range(a, b) if shown[at].strip() == ELIDED), None)
        if kind == "equal":
            lines += found[c:d]
        elif gap is None:
            beside = any(0 <= at < len(shown) and shown[at].strip() == ELIDED for at in (a - 1, b))
            lines += [] if kind == "insert" and beside else found[c:d]
        else:
            before, after = min(gap - a, d - c), min(b - gap - 1, max(0, d - c - (gap - a)))
            lines += [*found[c : c + before], shown[gap], *found[d - after : d]]
    return lines


def printed(block: Block) -> list[str]:
    """Return what a program of the page says that it prints: the comments behind its calls of print."""
    return [line.rpartition("  # ")[2] for line in block.lines if re.match(r"\s*print\(.*\)  # ", line)]


def update(page: Path, run: Callable[[Block], list[Answer]], found: Iterator[Block]) -> int:
    """Write the page anew with what its commands and files say now; returns how many blocks changed."""
    lines = page.read_text(encoding="utf-8").splitlines()
    changed, moved = 0, 0
    for block in found:
        figures, before = "figures" in block.marks, list(block.lines)
        after: list[str] = []
        answers = run(block)
        for answer in answers:
            after += before[answer.command.first : answer.command.shown_from]
            end = answer.command.shown_from + len(answer.command.shown)
            after += renewed(answer.command.shown, answer.output, figures) if answer.command.shown else []
            while end < len(before) and not before[end]:
                after.append(before[end])
                end += 1
        start = block.line + moved
        fence = fenced(block, [answer.code for answer in answers])
        if [fence, *after] != [lines[start - 1], *before]:
            lines[start - 1 : start + len(before)] = [fence, *after]
            moved += len(after) - len(before)
            changed += 1
            print(f"{block.place}: renewed")
    if changed:
        page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return changed


def fenced(block: Block, codes: Sequence[int]) -> str:
    """Return the fence of a block whose commands ended with these exit codes."""
    marks = {name: value for name, value in block.marks.items() if name != "exit"}
    if any(codes):
        marks = {"exit": ",".join(map(str, codes)), **marks}
    return " ".join([f"```{block.language}", *(f"{name}={value}" if value else name for name, value in marks.items())])


def main() -> int:
    """List the blocks, or write the pages anew."""
    from support.docs.docs_runner import Runner

    parser = argparse.ArgumentParser(description="The blocks of README and docs: listed, run, their outputs made anew.")
    parser.add_argument("--update", action="store_true", help="write what the commands say now into the pages")
    parser.add_argument("--large", action="store_true", help="the blocks that take long, too")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="README.md or a page of docs (default: all)")
    given = parser.parse_args()
    wrong, failed = [name for name in given.pages if name not in {page.name for page in PAGES}], 0
    if wrong:
        parser.error(f"there is no page {', '.join(wrong)}; expected some of {' '.join(page.name for page in PAGES)}")
    for page in PAGES:
        if given.pages and page.name not in given.pages:
            continue
        with tempfile.TemporaryDirectory() as folder:
            runner = Runner(page, Path(folder), given.large)
            if given.update:
                runner.update()
                continue
            for block in blocks(page):
                try:
                    print(f"{block.place}: {block.language}: {runner.run(block)}", flush=True)
                except DocsError as error:
                    print(error)
                    failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    from support.docs import docs_blocks  # the runner's errors are those of the module, not of this program

    sys.exit(docs_blocks.main())
