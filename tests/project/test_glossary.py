"""The pages' links lead somewhere, and words of this project's own lead to the glossary, which spells each out once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from support.paths import ROOT

PAGES = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
         for path in (*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")))}
GLOSSARY = "docs/reference/glossary.md"
TERMS = {
    "pct": r"PCT", "trail": r"trails?", "refinement": r"refinements?", "stutter": r"stutters?",
    "extension": r"extension actions?", "witness": r"witness(?:es)?", "slot": r"slots?", "lasso": r"lassos?",
    "fair-ending": r"fair endings?", "guided": r"guided (?:strategy|runs?)", "packed": r"packed states?",
    "shrink": r"shr(?:inks?|unk|inking)", "symmetry": r"symmetry", "campaign": r"campaigns?",
}
"""Headings of the glossary, and what a page says that has to link there."""
MUST_BE_THERE = {
    *TERMS, "history", "view", "scenario", "tour", "cell", "digest", "replay", "guard", "repaired-twin", "kernel",
    "fingerprint", "fairness", "property", "safety-and-liveness", "strategy", "spec", "actor", "free-and-timed",
}
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def prose(text: str) -> str:
    """Return a page without its code, headings, tables and links: what a link says, its target explains."""
    text = LINK.sub("", text)
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`]*`", "", "\n".join(line for line in text.splitlines() if not line.startswith(("#", "|"))))


def anchors(text: str) -> list[str]:
    """Return what the headings of a page can be linked by, as GitHub makes it of them."""
    heads = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", head.lower().replace("`", "")).strip().replace(" ", "-") for head in heads]
    return [f"{name}-{plain[:n].count(name)}" if name in plain[:n] else name for n, name in enumerate(plain)]


def dead_links(name: str, pages: Mapping[str, str], root: Path = ROOT) -> Iterator[str]:
    """Yield the links of a page that lead to no file, or to no heading."""
    text = re.sub(r"^```.*?^```$", "", pages[name], flags=re.DOTALL | re.MULTILINE)
    for target in LINK.findall(re.sub(r"`[^`\n]*`", "", text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (root / name).parent / path if path else root / name
        there = file.resolve().relative_to(root).as_posix() if file.resolve().is_relative_to(root) else path
        if not file.exists() and there not in pages:
            yield f"{name}: there is no {target}"
        elif anchor and anchor not in anchors(pages.get(there, "")):
            yield f"{name}: there is no heading {anchor} in {there}"


def unexplained(name: str, text: str) -> Iterator[str]:
    """Yield the terms that a page uses and does not link to the glossary."""
    for anchor, pattern in TERMS.items():
        said = re.search(rf"(?<![\w/.-])(?:{pattern})(?![\w/-])", prose(text), re.IGNORECASE)
        if said and f"glossary.md#{anchor})" not in text:
            yield f"{name} says {anchor.replace('-', ' ')} and does not link to {GLOSSARY}#{anchor}"


@pytest.mark.parametrize("name", sorted(PAGES))
def test_links_lead_to_files_and_headings(name: str) -> None:
    """Between the pages, and within each."""
    assert list(dead_links(name, PAGES)) == []


@pytest.mark.parametrize("name", sorted(set(PAGES) - {GLOSSARY}))
def test_words_of_our_own_are_linked_to_the_glossary(name: str) -> None:
    """Whoever lands on a page can look up what its words mean."""
    assert list(unexplained(name, PAGES[name])) == []


def test_glossary_spells_each_word_out_once() -> None:
    """No heading twice, each with a sentence, and all that the pages need."""
    found = anchors(PAGES[GLOSSARY])
    assert len(set(found)) == len(found) and not [name for name in found if name.endswith("-1")]
    assert MUST_BE_THERE - set(found) == set()
    parts = re.split(r"^### (.+)$", PAGES[GLOSSARY], flags=re.MULTILINE)[1:]
    assert [head for head, text in zip(parts[::2], parts[1::2], strict=True) if len(text.split()) < 8] == []


@pytest.mark.parametrize(("text", "wrong"), [
    ("# A page\nsee [it](glossary.md#trail)", 0), ("see [it](glossary.md#trial)", 1), ("see [it](gone.md)", 1),
    ("## Two words\n[up](#two-words)", 0), ("## Two words\n[up](#two-word)", 1), ("[web](https://example.org/x#y)", 0),
    ("## `a` and B's\n[up](#a-and-bs)", 0), ("```\n[no](gone.md)\n```\n`[no](gone.md)`", 0),
])
def test_dead_link_is_noticed(text: str, wrong: int) -> None:
    """To a file or a heading that is not there; code is not looked at."""
    assert len(list(dead_links("docs/reference/page.md", {**PAGES, "docs/reference/page.md": text}))) == wrong


@pytest.mark.parametrize(("text", "wrong"), [
    ("a stutter", 1), ("a [stutter](glossary.md#stutter), one more stutter", 0), ("`stutter` and a lasso-like", 0),
    ("```\nstutter\n```\n# Stutter\n| stutter |", 0), ("as PCT does, with shrunk trails", 3),
])
def test_word_without_a_link_is_noticed(text: str, wrong: int) -> None:
    """In sentences, not in code, headings or tables."""
    assert len(list(unexplained("page", text))) == wrong
