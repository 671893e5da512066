"""The group of all commands, and what they share: it is light, and loads a command's module on request."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from harness.cli import protocol_commands
from harness.model import Refusal, unknown
from harness.record.files import reason_of

COMMANDS = {
    "list": "listing", "hunt": "commands", "simulate": "commands", "replay": "commands", "shrink": "commands",
    "show": "commands", "check": "check", "graph": "graph", "verify": "verify",
    "campaign": "campaign", "import": "importing", "report": "report", "compare": "report",
    "demo": "demo",
}
"""Each command and the module of `harness.cli` that it is in; protocols add others (`protocol_commands`)."""
OUT = click.option("--out", type=click.Path(path_type=Path), default=Path("out"), show_default=True, metavar="DIR",
                   help="Folder for trails and histories.")
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
SIZES = click.option("--size", "sizes", multiple=True, metavar="NAME=N", help="A size of the model; may be repeated.")
SETTINGS = click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting of the model; may be repeated."
)


class Commands(click.Group):
    """The group of all commands, which lists them if an unknown one is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return sorted({*COMMANDS, *protocol_commands.names()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, its module loaded."""
        if cmd_name not in COMMANDS:
            return protocol_commands.load(cmd_name)
        import_module(f"harness.cli.{COMMANDS[cmd_name]}")
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name, or refuse it with the list of commands."""
        if args[0] not in COMMANDS and args[0] not in (known := self.list_commands(ctx)):
            said = f"there is no command {args[0]!r}"
            raise click.UsageError(unknown(said, args[0], known, "the commands are"), ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=Commands, invoke_without_command=True, subcommand_metavar="COMMAND [ARGS]...",
             context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="kafka-proto", prog_name="kafka-proto")
@click.pass_context
def cli(context: click.Context) -> None:
    """Simulate, break, replay and check executable prototypes of Kafka's protocols."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        raise click.UsageError("expected a command; start with kafka-proto hunt", context)


def emit(data: dict[str, Any]) -> None:
    """Print one JSON object on stdout."""
    click.echo(json.dumps(data, ensure_ascii=False, sort_keys=True))


def answer(as_json: bool, data: dict[str, Any], lines: Iterable[str]) -> None:
    """Print an answer on stdout: as one JSON object, or as lines for a person."""
    if as_json:
        emit(data)
        return
    for line in lines:
        click.echo(line)


def check_folder(folder: Path) -> None:
    """Refuse a folder that nothing can be written to, before any work is done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, RuntimeError) as error:
        why = "it is not a folder" if isinstance(error, FileExistsError) else reason_of(error)
        raise Refusal(f"cannot write into {folder}: {why}; give another place with --out") from None


def check_file(path: Path) -> None:
    """Refuse a file that cannot be written, before any work is done."""
    if path.is_dir():
        raise Refusal(f"cannot write {path}: it is a folder; give the path of a file with --out")
    check_folder(path.parent)


def pairs(given: tuple[str, ...], kind: type) -> dict[str, Any]:
    """Return `NAME=VALUE` arguments as a dictionary. Raises Refusal."""
    found: dict[str, Any] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise Refusal(f"expected NAME={'N' if kind is int else 'VALUE'}, found {pair!r}; see kafka-proto list")
        try:
            found[name] = kind(value)
        except ValueError:
            raise Refusal(f"size {name} must be a whole number, not {value!r}") from None
    return found
