"""Commands that protocols add, as commands of the command line: loaded when one is asked for.

A command that cannot be loaded is still listed: help says so, and calling it says why.
"""

from __future__ import annotations

import json
from importlib.metadata import entry_points

import click

from harness.cli.live_log import logged
from harness.model import ProtocolCommand, Refusal
from harness.model.plug_in import NotLoaded
from harness.model.plug_in import load as load_entry
from harness.model.protocol_command import COMMANDS


def names() -> set[str]:
    """Return the names of commands that installed protocols add; nothing is loaded."""
    return {entry.name for entry in entry_points(group=COMMANDS)}


def load(name: str) -> click.Command | None:
    """Return a protocol's command, loaded; None if no protocol has it."""
    for entry in entry_points(group=COMMANDS, name=name):
        try:
            return as_click(name, load_entry(entry, ProtocolCommand))
        except NotLoaded as error:
            return _refusing(name, str(error))
    return None


def _refusing(name: str, why: str) -> click.Command:
    """Return a command that says why it cannot be loaded, whatever it is given."""

    def refuse(_: tuple[str, ...]) -> int:
        raise Refusal(why)

    return click.Command(name, callback=refuse, params=[click.Argument(["_"], nargs=-1)], add_help_option=False,
                         short_help="Cannot be loaded.", context_settings={"ignore_unknown_options": True})


def as_click(name: str, command: ProtocolCommand) -> click.Command:
    """Return a protocol's command as a click command, which takes words and prints."""

    def run(arguments: tuple[str, ...] = (), as_json: bool = False, **given: str | None) -> int:
        printed = command.run(arguments, {option.name: given[_field(option.name)] for option in command.options})
        if as_json:
            click.echo(json.dumps(printed.data, ensure_ascii=False, sort_keys=True))
        else:
            click.echo(printed.text)
        return printed.exit_code

    params: list[click.Parameter] = [
        click.Option([option.name, _field(option.name)], metavar=option.metavar, help=option.doc)
        for option in command.options
    ]
    if command.arguments:
        params.append(click.Argument(["arguments"], nargs=-1, metavar=command.arguments))
    params.append(click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON object and nothing else."))
    made = click.Command(name, callback=run, params=params, help=command.doc)
    return logged(made) if command.is_live else made


def _field(option: str) -> str:
    return option.lstrip("-").replace("-", "_")
