"""Sphinx's settings: the pages as they are, and an API reference from the docstrings. `make docs` builds the site."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

project = "kafka-proto"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
root_doc = "README"
include_patterns = ["*.md", "docs/**"]
suppress_warnings = ["misc.highlighting_failure"]  # JSON Lines, with lines left out
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "description"
html_theme = "furo"
html_title = "kafka-proto"
ROOMS = {"use": "Use", "models": "Models", "models/specs": "Specs", "reference": "Reference", "inside": "Inside"}
ROOT = Path(__file__).resolve().parents[1]


def contents() -> str:
    """Return the table of contents: a part for each room of docs, its pages by name."""
    parts = []
    for room, title in ROOMS.items():
        pages = sorted(page.with_suffix("").relative_to(ROOT).as_posix() for page in (ROOT / "docs" / room).glob("*.*"))
        parts.append("\n".join(["```{toctree}", ":hidden:", f":caption: {title}", "", *pages, "```"]))
    project_pages = ["CONTRIBUTING", "CHANGELOG", "docs/THIRD_PARTY"]
    parts.append("\n".join(["```{toctree}", ":hidden:", ":caption: Project", "", *project_pages, "```"]))
    return "\n\n".join(parts)


def complete(app: Sphinx, page: str, source: list[str]) -> None:
    """Give the first page its table of contents, and our marks of blocks the form that Sphinx knows."""
    text = re.sub(r"^```(\w+) .+$", r"```\1", source[0], flags=re.MULTILINE)
    source[0] = f"{text}\n{contents()}\n" if page == root_doc else text


def setup(app: Sphinx) -> None:
    """Hook in."""
    app.connect("source-read", complete)
