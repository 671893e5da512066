"""`--log LEVEL` and `--log-json`: what a command does as it happens, a line each on stderr, by structlog."""

from __future__ import annotations

import sys

import click

from harness.model import live

LEVELS = ("debug", "info", "warning", "error")
AS_JSON = "log as JSON"


def logged(command: click.Command) -> click.Command:
    """Give a command the two options."""
    command.params += [
        click.Option(["--log"], type=click.Choice(LEVELS), metavar="LEVEL", callback=_begin, expose_value=False,
                     help=f"Log events to stderr, from this level on: {', '.join(LEVELS)}."),
        click.Option(["--log-json"], is_flag=True, is_eager=True, callback=_note, expose_value=False,
                     help="Log each event as one JSON object; without --log, from info on."),
    ]
    return command


def _note(context: click.Context, _: click.Parameter, as_json: bool) -> None:
    context.meta[AS_JSON] = as_json


def _begin(context: click.Context, _: click.Parameter, level: str | None) -> None:
    """Write events to stderr until the command ends."""
    if level is None and not context.meta[AS_JSON]:
        return
    import structlog

    shown = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), sort_keys=False)
    logger = structlog.wrap_logger(
        structlog.PrintLogger(sys.stderr),
        [structlog.processors.add_log_level, structlog.processors.TimeStamper("iso"),
         structlog.processors.JSONRenderer(ensure_ascii=False) if context.meta[AS_JSON] else shown],
        structlog.make_filtering_bound_logger(level or "info"),
    )
    context.with_resource(live.watched(lambda at, event, fields: getattr(logger, at)(event, **fields)))
