"""Values of every model's types read back as what they were: by name, and members of enumerations as members."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import attrs
import pytest
from support.commands.command_line import call

from harness.model import FrozenMap, Model
from harness.model.registry import model_specs


def all_types() -> set[type]:
    """Return the types of all models at their default sizes, and what the fields of those types may be."""
    found: set[type] = set()
    for spec in model_specs():
        found.update(spec.make().types)
    return found


def is_enum(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, StrEnum)


def lost(hint: Any) -> Iterator[Any]:
    """Yield the parts of a hint in which a member of an enumeration would come back as mere text."""
    arguments = get_args(hint)
    kinds = [argument for argument in arguments if is_enum(argument)]
    if kinds and get_origin(hint) is tuple and any(argument is str for argument in arguments):
        yield hint
    for argument in arguments:
        if any(is_enum(inner) for inner in get_args(argument)):
            yield hint


def test_members_of_enumerations_are_where_reading_finds_them() -> None:
    """As a field, or in a tuple, a set or the values of a map that is a field."""
    wrong = {f"{cls.__name__}.{name}" for cls in all_types() if attrs.has(cls)
             for name, hint in get_type_hints(cls).items() if list(lost(hint))}
    assert wrong == set()
    assert list(lost(tuple[tuple[str, StrEnum], ...])) and list(lost(tuple[str, StrEnum]))
    assert not list(lost(FrozenMap[str, StrEnum])) and not list(lost(StrEnum | None))


def test_two_types_of_a_model_have_two_names() -> None:
    """Else recorded values of one would be read as the other."""
    one, other = attrs.make_class("Same", ["x"], frozen=True), attrs.make_class("Same", ["y"], frozen=True)
    with pytest.raises(ValueError, match="several types that are called Same"):
        Model("m", (), types=(one, other))
    Model("m", (), types=(one, one))


def test_run_with_leaders_that_crash_reads_back(tmp_path: Path) -> None:
    """The history of every role on replicated logs is judged by its own actors."""
    assert call("simulate", "leaders-crash", "--seed", 1, "--out", tmp_path).code == 0
    judged = call("verify", tmp_path / "leaders-crash-random-1.history.jsonl")
    assert (judged.code, judged.err) == (0, "")
