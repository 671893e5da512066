"""Judges a run of a model by what its clients saw, beside what is judged by its states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from harness.model import Model, Value, View
from harness.model.log_operations import FAIL, INFO, MIXED, OK, LogOperation, TakenStep
from harness.record import Event
from harness.record.events import Happening
from harness.verify.isolation.anomalies import LEVELS, Breach
from harness.verify.isolation.judge import LogJudge

ENDED = (OK, FAIL, INFO)


@attrs.frozen
class ClientsStep:
    """A step of a run that is not written down, as a view of clients looks at it."""

    n: int
    process: str
    action: str
    args: tuple[str, ...]
    received: Value
    sent: tuple[Value, ...]
    op: Mapping[str, Any] | None


class Clients:
    """Looks at the steps of one run; a model without a view of clients has nothing to be judged."""

    def __init__(self, model: Model) -> None:
        self._view = model.client_view() if model.client_view is not None else None
        self._judge = LogJudge(self._view.level if self._view is not None else LEVELS[0])
        self._values: dict[str, Value] = {}
        self._last = 0
        self.ended: Counter[str] = Counter()
        """How many sends, polls and transactions ended, by name and outcome: `txn ok`, `poll info`."""

    @property
    def are_judged(self) -> bool:
        """Whether the model has a view of its clients."""
        return self._view is not None

    def seeing(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield events, and look at what begins or ends with each."""
        for event in events:
            if self._view is not None:
                self._values.update(event.writes)
                if event.n:
                    self.look(event)
            yield event

    def happened(self, n: int, what: Happening) -> None:
        """Look at step n of a run."""
        step = what.step
        if step is not None and what.process is not None:
            op = None if step.op is None else {"name": step.op.name, "outcome": step.op.outcome}
            self.look(ClientsStep(n, what.process, step.action, step.args, step.consumed, step.sent, op))

    def known(self, n: int, event: Event) -> None:
        """Look at an event as number n, which may have come before with another number."""
        self._values.update(event.writes)
        if n:
            self.look(ClientsStep(n, event.process, event.action, event.args, event.received, event.sent, event.op))

    def look(self, step: TakenStep) -> None:
        """Look at what begins or ends with the next step."""
        assert self._view is not None
        self._last = step.n
        for operation in self._view.look(step):
            self._see(operation)

    def breaches(self, last: View | None = None) -> tuple[Breach, ...]:
        """Return what is wrong, once the last step was seen; without a last state, events said what was written."""
        if self._view is None:
            return ()
        for operation in self._view.finish(self._last + 1, View(self._values) if last is None else last):
            self._see(operation, (INFO,))  # the others are of a reader who is none of the clients
        return self._judge.anomalies()

    def _see(self, operation: LogOperation, counted: Sequence[str] = ENDED) -> None:
        if operation.outcome in counted:
            count(self.ended, operation)
        self._judge.look(operation)

    @property
    def left_out(self) -> dict[str, str]:
        """Return what is not judged, and why, once the last event was seen."""
        return dict(self._view.left_out) if self._view is not None else {}


def count(ended: Counter[str], operation: LogOperation) -> None:
    """Count a send, a poll or a transaction that has ended, by name and outcome."""
    if operation.name in MIXED and operation.outcome in ENDED:
        ended[f"{operation.name} {operation.outcome}"] += 1


def judged(model: Model, events: Iterable[Event]) -> tuple[Breach, ...]:
    """Return what clients saw in a run that they must not see."""
    clients = Clients(model)
    for _ in clients.seeing(events):
        pass
    return clients.breaches()
