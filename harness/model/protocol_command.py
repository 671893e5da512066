"""A command that a protocol adds to the command line, found through the entry point group `harness.commands`.

The protocol declares the command's options and answers with text and data. The command line does the parsing and
printing, so that no protocol depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

COMMANDS = "harness.commands"
"""The entry point group: a name of a command, and where its `ProtocolCommand` is."""


@attrs.frozen
class CommandOption:
    """An option with a value: its long name with the hyphens, what stands for the value, and what it is for."""

    name: str
    metavar: str
    doc: str


@attrs.frozen
class Printed:
    """What a command says: lines for a person, one JSON object for a program, and its exit code."""

    text: str
    data: dict[str, Any]
    exit_code: int = 0


@attrs.frozen
class ProtocolCommand:
    """A command: its help (the first sentence is its title), its options, and what stands for its arguments.

    `run` gets the arguments and the value of each option, by its name, None if it was not given. It raises Refusal for
    impossible input.
    """

    doc: str
    run: Callable[[tuple[str, ...], Mapping[str, str | None]], Printed]
    arguments: str = ""
    options: tuple[CommandOption, ...] = ()
    is_live: bool = False
    """Whether it tells what happens (`harness.model.live`), so that it has `--log`."""
