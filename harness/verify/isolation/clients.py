"""Judges a run of a model by what its clients saw, beside what is judged by its states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from harness.model import Model, Value, View
from harness.record import Event
from harness.verify.isolation.anomalies import LEVELS, Breach
from harness.verify.isolation.judge import LogJudge


class Clients:
    """Looks at the events of one run; a model without a view of clients has nothing to be judged."""

    def __init__(self, model: Model) -> None:
        self._view = model.client_view() if model.client_view is not None else None
        self._judge = LogJudge(self._view.level if self._view is not None else LEVELS[0])
        self._values: dict[str, Value] = {}
        self._last = 0

    def seeing(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield events, and look at what begins or ends with each."""
        for event in events:
            if self._view is not None:
                self._values.update(event.writes)
                self._last = event.n
                if event.n:
                    for operation in self._view.look(event):
                        self._judge.look(operation)
            yield event

    def breaches(self) -> tuple[Breach, ...]:
        """Return what is wrong, once the last event was seen."""
        if self._view is None:
            return ()
        for operation in self._view.finish(self._last + 1, View(self._values)):
            self._judge.look(operation)
        return self._judge.anomalies()

    @property
    def left_out(self) -> dict[str, str]:
        """Return what is not judged, and why, once the last event was seen."""
        return dict(self._view.left_out) if self._view is not None else {}


def judged(model: Model, events: Iterable[Event]) -> tuple[Breach, ...]:
    """Return what clients saw in a run that they must not see."""
    clients = Clients(model)
    for _ in clients.seeing(events):
        pass
    return clients.breaches()
