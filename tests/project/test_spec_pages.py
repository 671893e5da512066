"""The pages that show each action of a spec beside its TLA+ are complete, up to date and true of runs."""

from __future__ import annotations

import re

import attrs
import pytest
from support.spec_pages import DATA, FOLDER, PAGES, Page, definitions, noted, seen, text

from harness.model.spec import flat

BY_NAME = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
UNTAKEN = {"compaction": {"Consumer", "Terminating"}}
"""Actions that no step of the actors is."""
UNWRITTEN = {"TxnMetadata", "LogMetadata", "last_pid", "last_pepoch"}
"""Records without a name in the module, and what stands in definitions that the page does not show."""


def rows(page: str) -> list[str]:
    """The actions that a page has a row for."""
    return re.findall(r"^## (\w+)$", page, re.MULTILINE)


@BY_NAME
def test_page_of_a_spec_is_up_to_date(page: Page) -> None:
    """It says what the code and the module say now."""
    now = page.path.read_text(encoding="utf-8")
    assert now == text(page, noted()[page.name]), "python tests/support/spec_pages.py makes the pages anew"
    assert rows(now) == [one.name for one in flat(page.next_state)]


@BY_NAME
def test_page_of_a_spec_misses_a_row_and_has_one_too_many(page: Page) -> None:
    """A relation with an action less has a row less, so the page is found to be wrong either way."""
    fewer = attrs.evolve(page, next_state=page.next_state[1:])
    now = page.path.read_text(encoding="utf-8")
    gone = set(rows(now)) - set(rows(text(fewer, noted()[page.name])))
    assert gone == {one.name for one in flat(page.next_state[:1])}
    assert now != text(fewer, noted()[page.name])


@BY_NAME
def test_every_definition_of_a_module_is_that_of_an_action(page: Page) -> None:
    """Nothing in the data is without an action."""
    known = definitions((DATA / "tla" / f"{page.module}.tla").read_text(encoding="utf-8"))
    assert set(known) <= {page.called.get(one.name, one.name) for one in flat(page.next_state)}


@BY_NAME
def test_names_of_a_spec_are_those_of_its_module(page: Page) -> None:
    """Whatever the page says that the spec calls otherwise than Kafka is a name in the module, as written."""
    module = (DATA / "tla" / f"{page.module}.tla").read_text(encoding="utf-8")
    assert {name for name in page.names.values() if not re.search(rf"\b{name}\b", module)} <= UNWRITTEN


@BY_NAME
def test_steps_of_the_actors_are_those_that_runs_show(page: Page) -> None:
    """Every action is some step of the actors, unless none of theirs can be it, and runs show no other ones."""
    steps = noted()[page.name]
    assert {one.name for one in flat(page.next_state)} - set(steps) == UNTAKEN.get(page.name, set())
    for name, by in seen(page, 4).items():
        assert by <= set(steps[name]), name


def test_pages_of_specs_are_listed_in_the_page_on_models() -> None:
    """docs/models.md links each, and there are no others."""
    linked = re.findall(r"\(specs/([\w-]+)\.md\)", (FOLDER.parent / "models.md").read_text(encoding="utf-8"))
    assert sorted(linked) == sorted(path.stem for path in FOLDER.glob("*.md")) == sorted(page.name for page in PAGES)
