"""The pages are short and plain: bounds on their words, and turns of phrase that nobody should read twice."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.docs.docs_blocks import PAGES
from support.paths import ROOT

MOST_IN_README, MOST_IN_DOCS = 750, 35_000
LONGEST_SENTENCE = 40
DIALECT = (
    r"of which", r"who(?:ever|m)", r"(?:those|all|anybody|nobody) who", r"one that (?:is|has|was|does)",
    r"(?:where|as) there (?:is|are) (?:such|none|no)",
    r"what (?:is left|it came to|came of|comes of|there is)", r"held against", r"nothing but", r"by what it",
    r"twins?", r"the former\b.*\bthe latter", r"beside (?:TLC|it|that|them|this)",
)
"""Patterns of the old dialect; the second column of the examples says the same in the field's words."""


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a page without its code, tables, headings, pictures and targets of links."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line for line in text.splitlines() if not line.startswith(("#", "|", "!"))]
    plain = re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "CODE", "\n".join(lines)))
    for paragraph in re.split(r"\n\s*\n|\n[-*] |\n\d+\. ", plain):
        yield from re.split(r"(?<=[.!?:;])\s+", " ".join(paragraph.split()))


def wrong(text: str) -> list[str]:
    """Return what is wrong with a page's sentences: a turn of the old dialect, or too many words."""
    found = []
    for sentence in sentences(text):
        found += [f"{match[0]!r} in: {sentence}" for pattern in DIALECT
                  if (match := re.search(rf"\b{pattern}\b", sentence, re.IGNORECASE))]
        if len(sentence.split()) > LONGEST_SENTENCE:
            found.append(f"{len(sentence.split())} words: {sentence}")
    return found


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"],
                         ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page_is_in_plain_english(page: Path) -> None:
    """No turn of the old dialect, no sentence of more than forty words."""
    assert wrong(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(("text", "count"), [
    ("Each is a run, of which one begins another.", 1), ("Tell those who have not said it.", 1),
    ("The `who` of\n```text\nof which\n```\n| of which |\n# Who\nResend it.", 0), (f"{'word ' * 41}.", 1),
])
def test_sentence_that_must_be_read_twice_is_found(text: str, count: int) -> None:
    """In prose, not in code, tables or headings."""
    assert len(wrong(text)) == count


def test_readme_and_docs_have_few_words() -> None:
    """Counted as `wc -w` does, blocks and tables included."""
    readme = len((ROOT / "README.md").read_text(encoding="utf-8").split())
    docs = sum(len(page.read_text(encoding="utf-8").split()) for page in (ROOT / "docs").rglob("*.md"))
    assert 0 < readme <= MOST_IN_README and 0 < docs <= MOST_IN_DOCS, (readme, docs)


def test_pydoc_shows_what_is_public() -> None:
    """`simulated`, `open_cluster` and `SimulationFailed` are loaded when first used, and shown all the same."""
    done = subprocess.run([sys.executable, "-m", "pydoc", "harness"], capture_output=True, text=True, check=True)
    public = done.stdout.partition("CLASSES")[2]
    assert [name for name in ("SimulationFailed", "open_cluster", "simulated") if name not in public] == []
