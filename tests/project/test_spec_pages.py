"""The pages that say what each action of a spec is and where it is published are complete, true of code and runs."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from support.docs.spec_footprints import footprints
from support.docs.spec_pages import FOLDER, PAGES, Module, Page, Row, beside, main, noted, seen, text
from support.paths import DATA, ROOT

from harness.model import Refusal, find_model
from harness.model.module import module_of
from harness.model.spec import flat
from harness.model.view import parts

BY_NAME = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
UNTAKEN = {
    "compaction": {"Consumer", "Terminating"},
    "diary-01": {"ReceiveInitPidResponse", "SendInitPidRequest", "ReceiveInitPidRequest", "CompleteInitPidRequest"},
    "diary-02": {
        "CompletePartialTxn", "ReceiveAddPartitionsToTxnResponse", "ReceiveInitPidResponse",
        "SendAddPartitionsToTxnRequest", "SendInitPidRequest",
    },
}
"""Actions that no step of the actors is.

Of diary 01 these are all: no actors are held against it. Of diary 02 they are the clients', the environment of the
coordinators that brokers are held against, and what a coordinator does with a prepared transaction that it loads:
markers come before it is completed.
"""
UNWRITTEN = {"TxnMetadata", "LogMetadata"}
"""Records that have no name in the module."""
LARGER = {
    "diary-02": {"brokers": 3, "clients": 1},
    "diary-01": {"clients": 3, "brokers": 2, "transactional-ids": 1},
    "kafka-replication": {"replicas": 2, "log-size": 2, "max-records": 2, "max-leader-epoch": 2},
    "kip-320": {"replicas": 2, "log-size": 2, "max-records": 2, "max-leader-epoch": 2},
    "compaction": {"messages": 2, "compactions": 3, "keys": 2, "values": 1, "crashes": 1},
}
"""Sizes, each greater in something than the one that the page was made at."""


def rows(page: str) -> list[str]:
    """The actions that a page has a row for."""
    return re.findall(r"^## (\w+)$", page, re.MULTILINE)


@BY_NAME
def test_page_of_a_spec_is_up_to_date(page: Page) -> None:
    """It says what the code says now."""
    now = page.path.read_text(encoding="utf-8")
    assert now == text(page, noted()[page.name]), "python tests/support/docs/spec_pages.py makes the pages anew"
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
def test_every_row_of_the_table_is_an_action_of_its_module(page: Page) -> None:
    """Its lines are inside the published file, and no two definitions share one; guard and effect are said."""
    assert sorted(page.rows) == sorted(one.name for one in flat(page.next_state))
    taken: dict[tuple[str, int], str] = {}
    for name, row in page.rows.items():
        assert 1 < row.first <= row.last < row.module.lines and row.guard and row.effect, name
        for line in range(row.first, row.last + 1):
            assert taken.setdefault((row.module.name, line), name) == name
        assert re.fullmatch(r"[0-9a-f]{40}", row.module.commit)
        assert row.link in page.path.read_text(encoding="utf-8")


@BY_NAME
def test_modules_of_a_page_are_those_that_exported_runs_extend(page: Page) -> None:
    """Page, exports and the list of third parties name the same modules, in the same repositories."""
    model = find_model(page.model).make()
    module = module_of(page.model, model.sizes, model.settings)
    third_parties = (ROOT / "docs" / "THIRD_PARTY.md").read_text(encoding="utf-8")
    assert module is not None and module.name in {row.module.name for row in page.rows.values()}
    for known in {row.module for row in page.rows.values()}:
        assert module.source.startswith(known.repository)
        assert f"`{known.name}`" in third_parties and f"`{known.commit[:7]}`" in third_parties
        assert known.repository in third_parties


@BY_NAME
def test_what_an_action_does_is_the_same_at_another_size(page: Page) -> None:
    """The size of the page is large enough: a greater one shows no variable and no message that the page has not."""
    there = footprints(page.model, page.sizes, page.settings)
    for name, more in footprints(page.model, LARGER[page.name], page.settings).items():
        for field in attrs.fields(type(more)):
            assert getattr(more, field.name) <= getattr(there[name], field.name), (name, field.name)


def test_what_an_action_does_shows_what_its_code_does() -> None:
    """BecomeLeader reads requests and its replica's epoch, and writes all that a replica believes but its watermark."""
    (page,) = (page for page in PAGES if page.name == "kip-320")
    did = footprints(page.model, page.sizes, page.settings)["BecomeLeader"]
    assert did.reads == {"leaderAndIsrRequests", "replicaState.leaderEpoch"}
    assert did.writes == {"replicaState.isr", "replicaState.leader", "replicaState.leaderEpoch"}
    assert did.takes == did.sends == set()


@BY_NAME
def test_what_actions_read_and_write_are_variables_of_the_spec(page: Page) -> None:
    """By the names that the spec has for them, as the states of an export do."""
    model = find_model(page.model).make(page.sizes, page.settings)
    state = model.initial_states()[0]
    variables = {parts(name)[0] for name in state} & set(model.variables(state))
    for did in footprints(page.model, page.sizes, page.settings).values():
        assert {name.partition(".")[0] for name in did.reads | did.writes} <= variables


def test_names_of_the_transaction_spec_are_those_that_the_model_checker_took() -> None:
    """Whatever the page says that the spec calls otherwise than Kafka is in a run that TLC took beside the module."""
    (page,) = (page for page in PAGES if page.names)
    accepted = (DATA / "WipedMetadata.tla").read_text(encoding="utf-8")
    answered = (DATA / "Answered.tla").read_text(encoding="utf-8")
    missing = {name for name in page.names.values() if not re.search(rf"\b{name}\b", accepted + answered)}
    assert missing == UNWRITTEN


@BY_NAME
def test_steps_of_the_actors_are_those_that_runs_show(page: Page) -> None:
    """Every action is some step of the actors, unless none of theirs can be it, and runs show no other ones."""
    steps = noted()[page.name]
    assert {one.name for one in flat(page.next_state)} - set(steps) == UNTAKEN.get(page.name, set())
    for name, by in seen(page, 4).items():
        assert by <= set(steps[name]), name


def test_pages_of_specs_are_listed_in_the_page_on_models() -> None:
    """docs/models links each, and there are no others."""
    pages = "".join(page.read_text(encoding="utf-8") for page in sorted(FOLDER.parent.glob("*.md")))
    linked = sorted(set(re.findall(r"\(specs/([\w-]+)\.md\)", pages)))
    assert linked == sorted(path.stem for path in FOLDER.glob("*.md")) == sorted(page.name for page in PAGES)


HOUSE = Module("House", "https://example.org/house", "0" * 40, "", 99)


def house(actions: list[str]) -> tuple[str, dict[str, Row]]:
    """A module of our own that defines these actions, each in three lines below a comment, and where it has each."""
    lines, table = ["a line before the module", f"{'-' * 8} MODULE House {'-' * 8}", ""], {}
    for action in actions:
        lines += [f"(* what {action} is about *)"]
        table[action] = Row(HOUSE, len(lines) + 1, len(lines) + 3, "The bell rings.", "The door is open.")
        lines += [f"{action}(guest) ==", "", f"    door[guest] = {action}Open", ""]
    return "\n".join([*lines, "=" * 20, ""]), table


@pytest.fixture
def our_page(tmp_path: Path) -> tuple[Path, Page]:
    """The page on compaction, as if its actions were those of a module that we wrote; and the file of that."""
    (page,) = (page for page in PAGES if page.name == "compaction")
    module, table = house([one.name for one in flat(page.next_state)])
    path = tmp_path / "any-name.txt"
    path.write_text(module, encoding="utf-8")
    return path, attrs.evolve(page, rows=table)


def test_a_page_beside_a_module_shows_its_text(
    our_page: tuple[Path, Page], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every definition is there, whole and nothing more, printed or in a folder; the rest is the plain page."""
    path, page = our_page
    beside([path], None, [page])
    printed = capsys.readouterr().out
    beside([path], tmp_path / "new" / "pages", [page])
    assert (tmp_path / "new" / "pages" / "compaction.md").read_text(encoding="utf-8") == printed
    shown = re.findall(r"^```text\n(.*?)\n```\n\n", printed, re.MULTILINE | re.DOTALL)
    assert shown == [f"{one.name}(guest) ==\n\n    door[guest] = {one.name}Open" for one in flat(page.next_state)]
    without = re.sub(r"^```text\n.*?\n```\n\n", "", printed, flags=re.MULTILINE | re.DOTALL)
    assert without == text(page, noted()[page.name])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: "\n" + text, "does not define Producer in lines 5 to 7"),
        (lambda text: text.replace("Producer(guest)", "Produces(guest)"), "does not define Producer in lines 5 to 7"),
        (lambda text: text.replace("= ProducerOpen", "= ProducerOpen\n    more"), "does not define Producer in lines"),
        (lambda text: text[: text.index("Terminating")], "does not define Terminating in lines"),
        (lambda text: text.replace("MODULE House", "MODULE Hut"), "is the module Hut, which no page is about"),
        (lambda text: text.replace("MODULE House", "House"), "has no line that begins a TLA+ module"),
    ],
)
def test_a_module_that_is_not_the_published_one_is_refused(
    our_page: tuple[Path, Page], change: Callable[[str], str], said: str, tmp_path: Path
) -> None:
    """One that has a definition elsewhere, longer or not at all, and one that is another module."""
    path, page = our_page
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(Refusal, match=re.escape(said)):
        beside([path], tmp_path / "pages", [page])
    assert not (tmp_path / "pages").exists()


def test_a_page_with_the_text_of_a_module_is_never_written_into_the_tree(
    our_page: tuple[Path, Page], tmp_path: Path
) -> None:
    """Wherever in it, and by whatever way there."""
    path, page = our_page
    (tmp_path / "way").symlink_to(ROOT / "docs")
    for out in (FOLDER, ROOT / "new", tmp_path / "way" / "specs"):
        with pytest.raises(Refusal, match="holds no text of others"):
            beside([path], out, [page])


def test_the_program_that_makes_pages_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is not there, or is no text, is one sentence and exit code 2."""
    shutil.copy(ROOT / "docs" / "pictures" / "demo.png", tmp_path / "picture.tla")
    for name in ("missing.tla", "picture.tla"):
        with pytest.raises(SystemExit) as ended:
            main(["--module", str(tmp_path / name)])
        assert ended.value.code == 2
        said = capsys.readouterr()
        assert said.out == "" and said.err.count("\n") == 1 and "name the file of a TLA+ module" in said.err
