"""Plots as SVG texts for a page: the only home of matplotlib.

What is seen is shown by markers, line ends and words; colours repeat it. Ink is the colour of the page's text, so that
plots are readable in light and in dark. Equal numbers give equal bytes.
"""

from __future__ import annotations

import io
import logging
import math
import re
from collections.abc import Sequence
from html import escape
from typing import Any

import attrs

from harness.campaign.checks import Reached, Share

INK, GRID = "#010203", "#808080"
"""What stands for the page's own colour, and a grey that is seen on any ground."""
SEEN, SILENT = "#d9730d", "#2f81c7"
WIDTH = 9.0
"""Of a plot, in inches; 72 points each."""
LONGEST = 44
"""Characters of a label."""
LEAST = 1e-5
"""The least rate that is drawn."""
DROPPED = (r"<metadata>.*?</metadata>\s*", r"<style[^>]*>.*?</style>\s*", r'\sxmlns(:\w+)?="[^"]*"',
           r' id="[a-z0-9_.]+_\d+"', r"(?m)[ \t]+$")
"""Of an SVG document what has no place in a page; names of parts are the same in each plot, and nothing uses them."""
PANELS = 12
"""Curves that are drawn; there are tables for all."""
STYLE: dict[str, Any] = {
    "svg.fonttype": "none", "font.family": ["DejaVu Sans"], "font.size": 9.0, "axes.spines.top": False,
    "axes.spines.right": False, "axes.edgecolor": INK, "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK,
    "ytick.color": INK, "axes.titlesize": 9.0, "axes.titlelocation": "left", "figure.facecolor": "none",
    "axes.facecolor": "none", "savefig.facecolor": "none", "path.simplify": False,
}


@attrs.frozen
class Mark(Share):
    """A line of a plot of rates."""

    label: str
    is_hollow: bool = False


def rates(marks: Sequence[Mark], name: str, about: str) -> str:
    """Return a plot of rates with their intervals, one below the other; a rate of nothing is an upper bound."""
    with _styled(name):
        from matplotlib.figure import Figure
        from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

        figure = Figure(figsize=(WIDTH, 0.75 + 0.27 * len(marks)))
        axes = figure.subplots()
        axes.set_xscale("log")
        least = min([mark.low for mark in marks if mark.failing] + [mark.high for mark in marks if not mark.failing])
        left = 10.0 ** math.floor(math.log10(max(least, LEAST)))
        for n, mark in enumerate(marks):
            _interval(axes, n, mark, left)
        axes.set_xlim(left, 1.0)
        axes.set_ylim(len(marks) - 0.4, -0.6)
        axes.set_yticks(range(len(marks)), [shorten(mark.label) for mark in marks])
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_locator(LogLocator(10.0))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
        axes.grid(axis="x", color=GRID, alpha=0.35, linewidth=0.7)
        axes.set_xlabel("runs that violate something, with intervals of 95 %")
        return _svg(figure, about)


def _interval(axes: Any, n: int, mark: Mark, left: float) -> None:
    """Draw one line: a circle (or a square) within its interval, or an arrow from the upper bound of a silent one."""
    colour = SEEN if mark.failing else SILENT
    if mark.failing:
        ends, seen = (max(mark.low, left), mark.high), mark.rate
        axes.plot(ends, (n, n), "-|", color=colour, markersize=7, linewidth=1.6, clip_on=False)
        axes.plot([seen], [n], "s" if mark.is_hollow else "o", color=colour, markersize=6, clip_on=False,
                  markerfacecolor="none" if mark.is_hollow else colour)
    else:
        axes.plot((left, mark.high), (n, n), ":", color=colour, linewidth=1.6)
        axes.plot([mark.high], [n], "<", color=colour, markersize=6, markerfacecolor="none", clip_on=False)
    axes.annotate(f"{mark.failing:,} of {mark.runs:,}", (1.0, n), xytext=(8, 0), textcoords="offset points",
                  va="center", xycoords="data", annotation_clip=False)


def curves(some: Sequence[Reached], name: str, about: str) -> str:
    """Return the saturation curves, a panel each: new states per thousand runs, as runs go on."""
    shown = [one for one in some if one.curve][:PANELS]
    with _styled(name):
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator

        columns = min(3, len(shown))
        lines = -(-len(shown) // columns)
        figure = Figure(figsize=(WIDTH * columns / 3, 0.3 + 1.9 * lines), layout="constrained")
        panels = figure.subplots(lines, columns, squeeze=False)
        for n, axes in enumerate(panels.flat):
            if n >= len(shown):
                axes.set_axis_off()
                continue
            one = shown[n]
            axes.plot([point.runs for point in one.curve], [point.per_thousand for point in one.curve], "-o",
                      color=SILENT, markersize=3, linewidth=1.4)
            axes.set_title(shorten(one.what, 42), fontsize=7.0)
            axes.set_ylim(bottom=0)
            axes.set_xlim(left=0)
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_locator(MaxNLocator(4, integer=True))
                axis.set_major_formatter("{x:,.0f}")
            axes.tick_params(labelsize=8)
            axes.grid(color=GRID, alpha=0.35, linewidth=0.7)
        figure.supxlabel("covered runs", fontsize=9)
        figure.supylabel("new states per thousand runs", fontsize=9)
        return _svg(figure, about)


def shorten(text: str, most: int = LONGEST) -> str:
    """Return a text that is no longer than a label may be."""
    return text if len(text) <= most else text[: most - 1] + "…"


def _styled(name: str) -> Any:
    """Draw in this project's style, whatever the user's own is; names within the SVG depend on the plot's name."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # about its caches
    import matplotlib

    defaults = {key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith("backend")}
    chosen: Any = {**defaults, **STYLE, "svg.hashsalt": name}
    return matplotlib.rc_context(chosen)


def _svg(figure: Any, about: str) -> str:
    """Return a figure as the element that a page holds: no declaration, date, style sheet or address."""
    file = io.StringIO()
    figure.savefig(file, format="svg", bbox_inches="tight", pad_inches=0.05,
                   metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    for dropped in DROPPED:
        text = re.sub(dropped, "", text, flags=re.DOTALL)
    text = text.replace(INK, "currentColor")
    return text.replace("<svg", f'<svg role="img" aria-label="{escape(about, quote=True)}"', 1)
