"""The command `kafka-proto demo`: a live cluster in a page on this machine, or in the terminal."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import click

from harness.cli import OneOf
from harness.cli.group import SETTINGS, SIZES, cli, pairs
from harness.cli.live_log import logged
from harness.demo.session.live_session import LiveSession, of_tour, of_trail
from harness.demo.session.opened_model import BUDGETS, open_what
from harness.model import Refusal, find_scenario, model_specs, tours
from harness.record import read_trail

FIRST = "commit"
"""What is shown by default."""
HOST, PORT = "127.0.0.1", 8642


@logged
@cli.command()
@click.argument("what", metavar="[MODEL|SCENARIO|TRAIL|TOUR]", default=FIRST, required=False)
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, metavar="N",
              help="Port of the page; 0 for any free port.")
@click.option("--host", default=HOST, show_default=True, metavar="ADDRESS",
              help="Address to listen on; any but loopback lets other machines in.")
@click.option("--faults", "budget", type=OneOf(BUDGETS), help="Faults that you may inject: those of the "
              "scenario (own), or all (generous). Default: own for a scenario, generous for a model.")
@click.option("--terminal", is_flag=True, help="Run in the terminal, without a page.")
@SIZES
@SETTINGS
def demo(
    what: str, port: int, host: str, budget: str | None, terminal: bool, sizes: tuple[str, ...],
    settings: tuple[str, ...],
) -> int:
    """Step a live cluster by hand, break it, rewind it.

    Opens a model, a scenario, a guided tour or a recorded trail in a page on this machine. Ctrl-C ends it.
    """
    session = opened(what, pairs(sizes, int), pairs(settings, str), budget, ahead=not terminal)
    if terminal:
        return int(import_module("harness.demo.terminal.terminal").run(session))
    return _serve(session, host, port)


def opened(
    what: str, sizes: dict[str, int], settings: dict[str, str], budget: str | None, ahead: bool = False
) -> LiveSession:
    """Return a session of what the command line names; `ahead` keeps a trail's inputs ahead. Raises Refusal."""
    path = Path(what)
    tour = next((tour for tour in tours() if tour.name == what), None)
    is_named = find_scenario(what) is not None or any(spec.name == what for spec in model_specs())
    if tour is None and (is_named or not (path.is_file() or what.endswith(".jsonl"))):
        return LiveSession(open_what(what, sizes, settings, budget))
    if sizes or settings or budget:
        kind = "trail" if tour is None else "tour"
        raise Refusal(f"a {kind} has its own model and faults; leave out --size, --set and --faults")
    if tour is not None:
        return of_tour(tour)
    trail = read_trail(path)
    return of_trail(trail, ahead and all(chosen.input is not None for chosen in trail.choices))


def _serve(session: LiveSession, host: str, port: int) -> int:
    try:
        from harness.demo.web.server import listen, serve_until_interrupted
    except ImportError as error:
        raise Refusal(
            f"the page needs {error.name}, which is not installed; pip install 'kafka-proto[demo]', "
            "or use --terminal"
        ) from None

    def ready(address: str) -> None:
        click.echo(f"the demo is at {address} (Ctrl-C ends it)")

    opens_at = session.branch.length if session.model.tells else 0
    serve_until_interrupted(session, listen(host, port), host, ready, opens_at)
    return 0
