"""Guided tours: a schedule of a model, step by step, with a caption for each step that explains it."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from harness.model.faults import NO_FAULTS, Faults


@attrs.frozen(eq=False)
class Tour:
    """A schedule that is worth looking at: a model at a size, and its labelled steps with captions.

    Opened in the demo it stands before its first step; the user goes on step by step.
    """

    name: str
    title: str
    model: str
    steps: tuple[tuple[str, str], ...]
    """Label and caption of each step, from the first on. A label is the whole one, as in a trail."""
    sizes: Mapping[str, int] = attrs.field(factory=dict)
    settings: Mapping[str, str] = attrs.field(factory=dict)
    network: str | None = None
    faults: Faults = NO_FAULTS
    claims: tuple[str, ...] = ()
    """Names of the properties that the run is judged by."""
    violates: str | None = None
    """The claim that fails in the last state, and in none before; or None if every claim holds to the end."""
    witnesses: tuple[str, ...] = ()
    """Names of the sometimes properties that the tour reaches: they show that it makes its point."""
    intro: str = ""
    """What to know before the first step."""
    shows_logs: bool = False
    """Whether the model's logs are what to look at beside the run."""
    then: str = ""
    """The name of the tour that continues this one; empty if there is no such tour."""

    @property
    def captions(self) -> tuple[tuple[int, str], ...]:
        """The captions, each with the number of its step; 0 is the start, which has the introduction."""
        opening = ((0, self.intro),) if self.intro else ()
        return (*opening, *((n, caption) for n, (_, caption) in enumerate(self.steps, 1)))


def told(text: str) -> tuple[tuple[str, str], ...]:
    """Return steps as they are told: a line for each, its label before its caption, which may go on in indented lines.
    """
    steps = (line.split(": ", 1) for line in text.strip().replace("\n    ", " ").split("\n"))
    return tuple((label, caption) for label, caption in steps)
