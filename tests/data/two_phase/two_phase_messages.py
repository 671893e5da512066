"""The messages of two-phase commit."""

import attrs

from harness import model as m


@attrs.frozen
class Prepare(m.Message):
    """The coordinator asks for a vote."""


@attrs.frozen
class Vote(m.Message):
    """A participant's answer."""

    yes: bool


@attrs.frozen
class Decision(m.Message):
    """What the coordinator decided."""

    commit: bool
