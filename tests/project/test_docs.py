"""README and docs are true: every block of commands and of Python is run, and what it shows is what comes out.

Where one fails because an output has changed on purpose, `python tests/support/docs/docs_blocks.py --update [PAGE]`
writes the pages anew; then read the difference.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from support.docs.docs_blocks import PAGES, Block, DocsError, agrees, blocks, commands, masked, renewed, update
from support.docs.docs_runner import EXCEPTIONS, LATER, LEFT_OUT, RAN, Answer, check_target, follow, guide

from harness.cli.group import cli

MOST_EXCEPTIONS = 5
RUNNABLE = ("console", "python")
ALL = [block for page in PAGES for block in blocks(page)]


def names(large: bool) -> list[str]:
    """The pages with something to run; with `large`, those with something that takes long."""
    found = {block.page.name for block in ALL if ("large" in block.marks or not large) and block.language in RUNNABLE}
    return sorted(found)


def page_called(name: str) -> Path:
    return next(page for page in PAGES if page.name == name)


@pytest.mark.parametrize(("name", "large"), [
    *((name, False) for name in names(large=False)),
    *(pytest.param(name, True, marks=pytest.mark.large) for name in names(large=True) if not guide(page_called(name))),
])
def test_docs_page_is_true(name: str, large: bool, tmp_path: Path) -> None:
    """Each block of the page runs in order and shows what it says, but for those that are excepted.

    Those that take long are left for the large tests, which leave nothing.
    """
    done = follow(page_called(name), tmp_path, large)
    assert set(done.values()) <= {RAN, LEFT_OUT, *([] if large else [LATER])}


def test_docs_blocks_that_no_test_runs_are_few_and_have_a_reason() -> None:
    """Every console and Python block is run by the tests above, but for at most five that are named."""
    there = {(block.page.name, block.name) for block in ALL}
    assert len(EXCEPTIONS) <= MOST_EXCEPTIONS
    assert all(reason for reason in EXCEPTIONS.values())
    assert set(EXCEPTIONS) <= there
    assert len([block for block in ALL if block.language in RUNNABLE]) > 40
    ran = set(names(large=False)) | set(names(large=True))
    assert {block.page.name for block in ALL if block.language in RUNNABLE} == ran


def spans() -> Iterator[tuple[str, list[str]]]:
    """Yield what stands between backticks in a line of prose and is a command, with its page."""
    for page in PAGES:
        prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        for found in re.findall(r"`((?:kafka-proto|make) [^`]+)`", prose):
            yield page.name, found.split()


def test_docs_name_commands_options_and_targets_that_there_are() -> None:
    """What prose names in passing: each command of kafka-proto, its options, each target of make."""
    wrong = []
    for page, (program, what, *rest) in spans():
        if program == "make":
            check_target(what)
        elif not what.startswith(("-", "[")):
            command = cli.get_command(click.Context(cli), what)
            known = {option for one in command.params for option in one.opts} if command is not None else set()
            options = {word.partition("=")[0] for word in rest if re.match(r"--[a-z]", word)}
            wrong += [(page, what, option) for option in sorted(options - known)]
            wrong += [(page, what)] if command is None else []
    assert wrong == []


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page of its own."""
    from support.docs import docs_blocks

    monkeypatch.setattr(docs_blocks, "ROOT", tmp_path)
    return tmp_path / "bring-your-logs.md"


CHECK = "$ kafka-proto check transactions/diary-01 --size brokers=9"
TRUE = "kafka-proto: size brokers of transactions/diary-01 must be between 1 and 5, not 9"


@pytest.mark.parametrize(("text", "why"), [
    pytest.param("```\n$ echo\n```", "expected one of", id="no-language"),
    pytest.param("```sh\n$ echo\n```", "found 'sh'", id="another-language"),
    pytest.param("```text\n$ kafka-proto list\n```", "a command in a block of text", id="a-prompt-in-text"),
    pytest.param("```text\nkafka-proto list\n```", "a command in a block of text", id="a-command-in-text"),
    pytest.param("```console\nkafka-proto list\n```", "begins with a command", id="no-prompt"),
    pytest.param("```console exits=1\n$ echo\n```", "no mark exits", id="unknown-mark"),
    pytest.param("```console exit=1,2\n$ echo\n```", "2 codes for 1 commands", id="too-many-codes"),
    pytest.param("```json\n{}\n```", "says file=NAME", id="json-from-nowhere"),
    pytest.param("```console\n$ echo", "has no end", id="no-end"),
    pytest.param("- so\n  ```console\n  $ echo\n  ```", "at the beginning of a line", id="indented"),
    pytest.param("~~~\n$ echo\n~~~", "three backticks", id="tildes"),
    pytest.param("So:\n\n    $ kafka-proto list\n", "outside a fenced block", id="no-fence"),
    pytest.param(f"```console exit=2\n{CHECK}\n{TRUE.replace('5', '6')}\n```", "must be between", id="another-output"),
    pytest.param(f"```console\n{CHECK}\n{TRUE}\n```", "exit code 2, the page says 0", id="another-code"),
    pytest.param("```console\n$ make nothing\n```", "no target nothing", id="no-target"),
    pytest.param("```python\nprint(1 + 1)  # 3\n```", "+2", id="another-print"),
    pytest.param("```python\nraise KeyError\n```", "exit code 1", id="python-raises"),
    pytest.param("```python from=x.py\na = 2\n```", "does not stand in x.py", id="no-excerpt"),
    pytest.param("```json shows=x.py\na = 3\n```", "+a = 1", id="another-file"),
])
def test_docs_page_that_is_wrong_is_refused(text: str, why: str, page: Path, tmp_path: Path) -> None:
    """A block of unknown kind, a command that hides, an output, an exit code or an excerpt that is not so."""
    page.write_text(text, encoding="utf-8")
    (tmp_path / "x.py").write_text("a = 1\n", encoding="utf-8")
    with pytest.raises(DocsError) as error:
        follow(page, tmp_path)
    assert why in str(error.value)


@pytest.mark.parametrize("text", [
    f"```console exit=2\n{CHECK}\n{TRUE}\n```",
    "```python\nprint(1 + 1)  # 2\n```",
    "```python from=x.py\na = 1\n```",
    "```json shows=x.py\na = 1\n```",
    "```python file=y.py\nb = 1\n```\n\n```console\n$ python -c 'import y; print(y.b)'\n1\n```",
    "```text\na picture\n```",
])
def test_docs_page_that_is_right_passes(text: str, page: Path, tmp_path: Path) -> None:
    """The same pages, with what is so."""
    page.write_text(text, encoding="utf-8")
    (tmp_path / "x.py").write_text("a = 1\n", encoding="utf-8")
    assert set(follow(page, tmp_path).values()) == {RAN}


@pytest.mark.parametrize(("shown", "found", "same"), [
    (["a", "...", "c"], ["a", "b", "b", "c"], True),
    (["a", "...", "c"], ["a", "c"], True),
    (["a", "...", "c"], ["a", "b"], False),
    (["...", "b", "...", "d"], ["a", "b", "c", "d"], True),
    (["...", "b", "...", "d"], ["a", "c", "d"], False),
    (["a", "..."], ["b"], False),
    (["a"], ["a", "b"], False),
    (["3 states, 0.2 s of CPU"], ["3 states, 11.4 s of CPU"], True),
    (["3 states, 0.2 s of CPU"], ["4 states, 0.2 s of CPU"], False),
    (["84 steps"], ["85 steps"], False),
    (["took   9 s"], ["took 1,200 s"], True),
])
def test_docs_output_is_compared_without_times(shown: list[str], found: list[str], same: bool) -> None:
    """Times differ from run to run; nothing else may, but where dots leave lines out."""
    assert agrees(shown, found) is same


@pytest.mark.parametrize(("shown", "found", "new"), [
    (["a 1 s"], ["a 2 s"], ["a 1 s"]),
    (["a", "...", "d"], ["A", "b", "c", "d"], ["A", "...", "d"]),
    (["a", "...", "d"], ["a", "b", "c", "D"], ["a", "...", "D"]),
    (["a", "b"], ["a", "x", "b"], ["a", "x", "b"]),
    (["a", "b"], ["a"], ["a"]),
])
def test_docs_output_is_renewed_where_it_is_out_of_date(shown: list[str], found: list[str], new: list[str]) -> None:
    """What is still true stays as it is, times included; what was left out stays left out."""
    assert renewed(shown, found) == new
    assert agrees(new, found)


def test_docs_update_writes_outputs_and_exit_codes_anew(page: Path) -> None:
    """Outputs of any length and codes are replaced, and all other lines stay."""
    rest = "```\nB\n```console large\n$ three\n```\nC\n"
    page.write_text(f"# A\n```console\n$ one\nold\n\n$ two \\\n    more\nx\ny\n{rest}", encoding="utf-8")

    def run(block: Block) -> list[Answer]:
        return [Answer(command, int(command.text == "one"), ["1", "2", "3"]) for command in commands(block)]

    assert update(page, run, iter(blocks(page))) == 1
    renewed_lines = "# A\n```console exit=1,0\n$ one\n1\n2\n3\n\n$ two \\\n    more\n1\n2\n3\n"
    assert page.read_text(encoding="utf-8") == renewed_lines + rest


def test_docs_masks_hide_figures_where_a_block_says_so() -> None:
    """Decimals of a table of measurements are hidden, counts are not."""
    assert masked("2  322,596  0.93", figures=True) == "2 322,596 #"
    assert masked("2  322,596  0.93") == "2  322,596  0.93"
