"""The command `graph`: the whole state graph of a model as a file, in the encoding of the reference graphs or drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import click

from harness.cli.group import AS_JSON, SETTINGS, SIZES, answer, check_file, cli, pairs
from harness.cli.screen import TerminalOutput
from harness.explore.graph_file import Graph, build_graph, graph_lines, hidden
from harness.model import Model, Refusal, find_model, unknown
from harness.record.files import write_atomically
from harness.record.wording import counted
from harness.render.graph_picture import picture, write_dot
from harness.render.graph_svg import write_svg

FORMS = ("json", "dot", "svg")
MOST_STATES = 1_000_000
MOST_DRAWN = 300
"""The most states of a graph that is drawn; larger pictures cannot be read."""


@cli.command()
@click.argument("model")
@SIZES
@SETTINGS
@click.option("--view", is_flag=True,
              help="Apply the model's VIEW: states that differ only in hidden variables become one.")
@click.option("--hide", multiple=True, metavar="VARIABLE[.FIELD]",
              help="Hide this variable, or this field of its records: states that differ only there become one; "
                   "may be repeated.")
@click.option("--as", "form", default="json", show_default=True, metavar="|".join(FORMS))
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="FILE",
              help="File to write; JSON is compressed if the name ends in .gz.")
@AS_JSON
def graph(
    model: str, sizes: tuple[str, ...], settings: tuple[str, ...], view: bool, hide: tuple[str, ...], form: str,
    out: Path, as_json: bool,
) -> int:
    """Write the state graph of a spec, or draw a small one."""
    if form not in FORMS:
        raise Refusal(unknown(f"there is no form {form!r} of a graph", form, FORMS, "give one of") + " with --as")
    built = find_model(model).make(pairs(sizes, int), pairs(settings, str), history_variables=True)
    names = (*hide, *(_view_of(built) if view else ()))
    hiding = hidden(built, names)
    check_file(out)
    most = MOST_STATES if form == "json" else MOST_DRAWN
    screen = TerminalOutput(quiet=as_json)
    with screen.progress("searching", noun="states") as progress:
        found = build_graph(
            built, hiding, most, lambda number: Refusal(_too_many(built, number, form)),
            lambda done, known, edges: progress(done, 0, f"{known - done:,} to go on from, {edges:,} steps"),
        )
        _write(found, form, out)
    summary = {
        "model": built.name, "sizes": dict(built.sizes), "settings": dict(built.settings), "hidden": sorted(set(names)),
        "initial": len(found.initial), "states": len(found.rows), "edges": len(found.edges),
        "depth": max(found.depths()) + 1, "form": form, "out": str(out),
    }
    size = f"{counted(len(found.rows), 'state')}, {counted(len(found.edges), 'step')}, depth {summary['depth']}"
    answer(as_json, summary, [f"{built.name}: {size}, written to {out}"])
    return 0


def _view_of(model: Model) -> tuple[str, ...]:
    """Return the names that the model's own view hides."""
    names: tuple[str, ...] = getattr(model, "view_hides", ())
    if not names:
        raise Refusal(f"{model.name} has no view of its own; say what does not tell states apart with --hide")
    return names


def _too_many(model: Model, most: int, form: str) -> str:
    said = f"{model.name} has more than {most:,} states at this size"
    if form == "json":
        return f"{said}, too many for a file; use smaller sizes"
    return f"{said}, too many to draw as {form}; use smaller sizes, hide variables with --hide, or write them with " \
           "--as json"


def _write(found: Graph, form: str, out: Path) -> None:
    if form == "json":
        lines = graph_lines(found.model, found.initial, found.states(), found.edges)
        write_atomically(out, lines, compress=out.suffix == ".gz")
        return
    draw: Callable[..., str] = write_dot if form == "dot" else write_svg
    drawn: Iterable[str] = draw(picture(found)).removesuffix("\n").split("\n")
    write_atomically(out, drawn)
