"""Properties: what must always, sometimes, eventually be true; each answers with a sentence, or nothing.

A check of an `always` property returns why it does not hold, or None. It reads state through a view, so that drivers
know what it depends on; `over` splits it into one check per index, which read less each. A check `on="message"` is made
once per message in flight. A check `on="step"` sees the view before a step, and the step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from harness.model.view import View

Reason = str | None


@attrs.frozen(eq=False)
class Property:
    """A named property. `form` is its temporal shape: `[]`, `sometimes`, `<>`, `<>[]`, `[]<>` or `~>`."""

    name: str
    form: str
    check: Callable[..., Any]
    on: str = "state"
    over: tuple[Any, ...] | None = None
    leads_to: Callable[..., Any] | None = None
    source: str = ""

    @property
    def is_safety(self) -> bool:
        return self.form == "[]"

    @property
    def is_temporal(self) -> bool:
        return self.form in ("<>", "<>[]", "[]<>", "~>")

    def reason(self, view: View) -> Reason:
        """Return why the property (or, for a temporal one, its state predicate) does not hold in this state."""
        if self.over is None:
            return self.check(view)  # type: ignore[no-any-return]
        return next((why for index in self.over if (why := self.check(view, index)) is not None), None)


def always(
    name: str, check: Callable[..., Reason], *, over: tuple[Any, ...] | None = None, on: str = "state", source: str = ""
) -> Property:
    """An invariant: `check` returns the reason if it fails, else None."""
    return Property(name, "[]", check, on, over, source=source)


def sometimes(name: str, check: Callable[..., bool], *, on: str = "state", source: str = "") -> Property:
    """A witness against vacuous success: some run must make `check` true."""
    return Property(name, "sometimes", check, on, source=source)


def eventually(
    name: str, check: Callable[[View], Reason], *, stays: bool = True, again: bool = False, source: str = ""
) -> Property:
    """`<>[]P` (`stays`), `[]<>P` (`again`), else `<>P`; `check` returns what is still pending, or None."""
    form = "[]<>" if again else "<>[]" if stays else "<>"
    return Property(name, form, check, source=source)


def leads_to(
    name: str, first: Callable[[View], bool], then: Callable[[View], Reason], *, source: str = ""
) -> Property:
    """`P ~> Q`: whenever `first` is true, `then` holds then or later; `then` returns what is still pending, or None."""
    return Property(name, "~>", first, leads_to=then, source=source)
