"""What `verify` refuses in one sentence: events that cannot be, files that are no histories, wrong use."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.commands.command_line import call
from support.runs.history_edits import compact
from support.toys.toy_histories import Edit, edited


def one_field(**fields: Any) -> Edit:
    return lambda events: events[2].update(fields)


BAD_EVENTS: list[tuple[str, Edit, str]] = [
    ("an unknown kind", one_field(kind="miracle"), '"kind" should be step or command or timer'),
    ("a kind that is a number", one_field(kind=3), '"kind" should be step or command or timer'),
    ("an unknown outcome", one_field(op={"process": "f1", "name": "x", "outcome": "maybe", "value": 1}),
     '"outcome" should be invoke or ok or fail or info'),
    ("an op without a process", one_field(op={"name": "x", "outcome": "ok", "value": 1}),
     'the field "process" is missing'),
    ("an unknown field", one_field(surprise=1), "unknown fields surprise"),
    ("a message that is a number", one_field(sent=[3]), "what is received, sent, lost and held should be messages"),
    ("a message of an unknown type", one_field(sent=[{"$type": "Letter"}]), "unknown type 'Letter'"),
    ("a slot of another model", one_field(writes={"tc_log[b1]": 1}), "this is not an event of toy/actors"),
]


@pytest.mark.parametrize(("edit", "said"), [row[1:] for row in BAD_EVENTS], ids=[row[0] for row in BAD_EVENTS])
def test_event_that_cannot_be_is_refused(edit: Edit, said: str, history: Path) -> None:
    """An event of an unknown kind, or with fields that are none, is bad input, named with its line."""
    path = edited(history, edit)
    assert refused(path).startswith(f"{path}, line 4: ")
    assert said in refused(path)


def refused(*what: object) -> str:
    return call("verify", *what).refusal


def with_header(**fields: Any) -> Callable[[str], str]:
    def damage(text: str) -> str:
        first, _, rest = text.partition("\n")
        return f"{compact({**json.loads(first), **fields})}\n{rest}"

    return damage


BAD_FILES: list[tuple[str, Callable[[str], str], str]] = [
    ("an unknown model", with_header(model="toy/else"), "there is no model 'toy/else'; the models are"),
    ("another version", with_header(version=4), "is of format version 4, this program reads version 1"),
    ("another format", with_header(format="zip"), "is neither a trail nor a history"),
    ("cut in the middle of a line", lambda text: text[: len(text) // 2], "the history is cut off or damaged there"),
    ("cut after a line", lambda text: text[: text.index("\n", len(text) // 2) + 1], "is cut off: a history ends with"),
    ("an edit without a new digest", lambda text: text.replace('"value":1', '"value":2', 1),
     "its events do not have the digest of its end line"),
    ("claims left out", with_header(claims=[]), "its header does not have the digest of its end line"),
    ("nothing", lambda text: "", "is empty"),
]


@pytest.mark.parametrize(("damage", "said"), [row[1:] for row in BAD_FILES], ids=[row[0] for row in BAD_FILES])
def test_file_that_is_no_history_of_a_known_model_is_refused(
    damage: Callable[[str], str], said: str, history: Path
) -> None:
    """Another model or version, or a file cut off, is bad input: one sentence, exit code 2."""
    path = history.with_name("bad.history.jsonl")
    path.write_text(damage(history.read_text(encoding="utf-8")), encoding="utf-8")
    assert said in refused(path)


def test_wrong_use_is_refused(tmp_path: Path) -> None:
    """What is no file, no folder with runs, or no model is named, with what to do."""
    assert "there is no trail or history at" in refused(tmp_path / "none")
    assert "give a folder of recorded runs" in refused(tmp_path)
    assert "give --seeds N to judge N runs of it" in refused("toy-crashing")
    assert "give --seeds N and a model" in refused(tmp_path, "--size", "values=2")
    assert "has no refinement" in refused("transactions/diary-02", "--seeds", 2)
    assert "there is no model 'nobody'" in refused("nobody", "--seeds", 2)
