"""Histories after the run: what they look like. Pure functions of a recorded run; nothing here drives or records one.

Rooms: `timeline` reads a history once (actors, the fate of every message, changes), `in_flight` follows messages,
`changes` puts values and state changes into words; `text`, `mermaid`, `svg`, `itf`, `shiviz`, `log` and `tla` are the
forms that `render` writes. State graphs: `graph_picture` (what is seen of one, and DOT), `graph_layout` (where it
goes), `graph_svg`.
"""

from __future__ import annotations

from harness.model import Model, Refusal, unknown
from harness.record import History
from harness.render import itf, mermaid, shiviz, svg, text, tla
from harness.render.timeline import check_typed, timeline_of

FORMS = ("text", "mermaid", "svg", "itf", "shiviz", "log", "tla")

__all__ = ["FORMS", "render"]


def render(
    history: History, model: Model, form: str, width: int = 100, fair_from: int | None = None, whole: bool = False
) -> str:
    """Return a history in one of the `FORMS`.

    `width` is the longest line of `text`, in characters. `fair_from` is the trail's number of steps before the fair
    ending, where it is known; histories do not carry it. `whole` leaves out nothing that is minor. Raises Refusal for
    another form, for a width below 40, for a history that was read without its model, and as `tla` for a model that
    was not written after a TLA+ module.
    """
    if form not in FORMS:
        raise Refusal(unknown(f"there is no form {form!r} of a history", form, FORMS, "the forms are"))
    check_typed(history)
    if form == "itf":
        return itf.write(history, model)
    if form == "tla":
        return tla.write(history, model)
    timeline = timeline_of(history, model, fair_from, whole)
    if form == "log":
        from harness.render.log import render_log  # with structlog, which loads much: only for this form

        return render_log(timeline)
    if form == "text":
        return text.write(timeline, width)
    if form == "mermaid":
        return mermaid.write(timeline)
    return svg.write(timeline) if form == "svg" else shiviz.write(timeline)
