"""What the tree contains, we wrote: TLA+ text is nowhere but in the files that hold TLA+ of our own."""

from __future__ import annotations

import gzip
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from support.paths import ROOT

SIGNS: Mapping[str, str] = {
    "a conjunct": r"""(?:^|[\s("'])/\\{1,2}(?=\s)""",
    "a disjunct": r"""(?:^|[\s("'])\\{1,2}/(?=\s)""",
    "a quantifier": r"""(?:^|[\s("'~])\\{1,2}[AE] \w+""",
    "an operator": r"\\{1,2}(?:in|notin|subseteq|union|intersect|cup|cap|leq|geq|o)(?=\s)",
    "what stays": r"\bUNCHANGED\b",
    "an update": r"\bEXCEPT !",
    "a record": r"\w \|-> ",
    "a definition": r"^\s*(?:LOCAL )?[A-Z]\w*(?:\([\w, ]+\))? ==(?: [^=]|\s*$)",
    "a module": r"-{4,} *MODULE \w+ *-{4,}",
    "an extension": r"^\s*EXTENDS [A-Z]\w+",
    "an instance": r"\bINSTANCE \w+ WITH\b",
    "a declaration": r"^\s*(?:VARIABLES?|CONSTANTS?)(?:\s*$|\s+\w+(?:,|\s*$|\s+\\))",
    "a formula about steps": r"\[\]\[\w+\]_\w",
}
"""What a line of TLA+ has, written plainly or in a string of Python, and what the line is then said to be."""
NEEDED = ("\\", " ==", "|->", "[][", "UNCHANGED", "EXCEPT !", "MODULE", "EXTENDS", "INSTANCE ", "VARIABLE",
          "CONSTANT")
"""A line with a sign has one of these, which are found sooner."""
OURS = {
    "harness/render/tla.py": "writes runs as modules of states: the frame of such a module",
    "kafka_proto/transactions/tla_modules.py": "invariants of our own, in terms of the modules, for exported runs",
    "kafka_proto/replication/tla_modules.py": "the same",
    "benchmarks/model_checker.py": "the module around Kip320 by which TLC is measured, with its type invariant",
    "tests/render/test_tla_export.py": "how values are written in an exported run",
    "tests/data/Answered.tla": "a run as exported, for TLC beside diary 01",
    "tests/data/EmptyIsr.tla": "a run as exported, for TLC beside Kip320",
    "tests/data/LostRecord.tla": "a run as exported, for TLC beside Kip101",
    "tests/data/ReadTwice.tla": "a run as exported, for TLC beside compaction",
    "tests/data/WipedMetadata.tla": "a run as exported, for TLC beside diary 02",
    "tests/project/test_copied_text.py": "samples, to show that they are noticed",
}
"""The files that hold TLA+ of our own, and why. `tests/render` holds each export against what the code writes."""
SAMPLES = (
    "    /\\ door = Closed", "    \\/ Knock", "\\E guest \\in Guests :", "~\\A g \\in Guests: Fed(g)",
    "key \\notin Keys", "/\\ UNCHANGED <<door, bell>>", "door' = [door EXCEPT ![g] = Open]",
    "[type |-> Knock, by |-> g]", "Knock(g, d) ==", "Doors == 1..3", "LOCAL Shut(d) == door[d] = Closed",
    "---- MODULE House ----", "EXTENDS Naturals, Sequences", "VARIABLES door, bell",
    "CONSTANTS Guests,  \\* who may come", "VARIABLE", "Bells == INSTANCE Ring WITH bell <- door",
    "Spec == Init /\\ [][Next]_vars",
)
"""Lines as TLA+ has them, about a house that nobody has published."""
OTHERS = (
    "if a == b:", "    or STATE == other", "assert CODE == 2", "    producer == batch.producer_id and end", "a | b",
    "1 - > 2", "CONSTANTS = {", 'VARIABLE = "HOME"', "C:\\in\\order", "and/or, either\\or", "| --- | --- |",
    r're.match(r"\Aa|\E")', "# EXTENDS the row", "an exception: EXCEPTIONS", "=== 3 passed ===", "the MODULE table",
    "-------- x", "WF_vars(Next)",
)
"""Lines that are no TLA+, though a part of them may look so."""


def files(root: Path) -> Iterator[Path]:
    """Yield the files of a tree: those that git knows or would add, or all where there is no repository."""
    if not (root / ".git").exists():
        yield from sorted(path for path in root.rglob("*") if path.is_file())
        return
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, stdout=subprocess.PIPE, check=True, text=True).stdout
    yield from (root / name for name in sorted(set(listed.split("\0"))) if name and (root / name).is_file())


def text_of(path: Path) -> str:
    """Return the text of a file, unpacked where it is packed, and nothing for a picture."""
    data = path.read_bytes()
    try:
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    except UnicodeDecodeError:
        return ""


def signs(line: str) -> list[str]:
    """Return what of TLA+ a line has."""
    if not any(part in line for part in NEEDED):
        return []
    return [what for what, pattern in SIGNS.items() if re.search(pattern, line)]


def tla_in(root: Path) -> dict[str, list[str]]:
    """Return the files of a tree that have lines of TLA+, each with what they are and where."""
    found = {
        path.relative_to(root).as_posix(): [
            f"line {number} has {what[0]}" for number, line in enumerate(text_of(path).splitlines(), 1)
            if (what := signs(line))
        ]
        for path in files(root)
    }
    return {name: lines for name, lines in found.items() if lines}


def test_no_text_of_tla_modules_is_in_the_tree() -> None:
    """Only the files that hold TLA+ of our own have any, and each of them has."""
    found = tla_in(ROOT)
    assert {name: lines[:3] for name, lines in found.items() if name not in OURS} == {}
    assert sorted(found) == sorted(OURS)


@pytest.mark.parametrize("line", SAMPLES)
def test_a_line_of_tla_is_noticed(line: str) -> None:
    """Each sample is noticed, as it is and as it stands in a string of Python."""
    assert signs(line)
    assert signs(line.replace("\\", "\\\\"))


@pytest.mark.parametrize("line", OTHERS)
def test_a_line_that_is_no_tla_is_not_accused(line: str) -> None:
    """Comparisons, paths, tables and regular expressions are not."""
    assert signs(line) == []


def test_every_sign_is_shown_by_a_sample() -> None:
    """No sign is there that nothing has."""
    assert {what for line in SAMPLES for what in signs(line)} == set(SIGNS)


@pytest.mark.parametrize("repository", [True, False])
@pytest.mark.parametrize("name", ["House.tla", "docs/house.md", "house.py", "house.json.gz"])
def test_a_file_with_tla_is_noticed_in_a_tree(name: str, repository: bool, tmp_path: Path) -> None:
    """Wherever it is dropped, under whatever name, packed too; the tree without it is clean."""
    if repository:
        subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / "README.md").write_text("A house with a door.\n", encoding="utf-8")
    (tmp_path / "door.png").write_bytes(b"\x89PNG\r\n\xff\xfe")
    assert tla_in(tmp_path) == {}
    dropped = tmp_path / name
    dropped.parent.mkdir(exist_ok=True)
    text = f"The door:\n\n{SAMPLES[0]}\n".encode()
    dropped.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    assert tla_in(tmp_path) == {name: ["line 3 has a conjunct"]}
    dropped.unlink()
    assert tla_in(tmp_path) == {}
