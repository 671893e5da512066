"""A search for a violation beside the session that is shown, wherever it runs: how far it is, and its outcome."""

from __future__ import annotations

from typing import Any

from harness.demo.session.live_session import LiveSession
from harness.demo.session.violation_search import ViolationSearch
from harness.model import Refusal
from harness.simulate.runs.failures import alone


class SearchBeside:
    """The search for a violation of the session that is shown, if one goes on, and the outcome of the last one."""

    def __init__(self, session: LiveSession) -> None:
        self._session = session
        self._search: ViolationSearch | None = None
        self._epoch = 0
        self._last: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any] | None:
        """Return how far the search is, or the outcome of the last one, as a JSON object; None before the first one."""
        if self._search is not None:
            return {"on": True, **self._search.to_json(), "outcome": None, "found": False}
        return self._last

    def begin(self, runs: int, seed: int) -> ViolationSearch:
        """Return a search of what is shown now; the caller carries it out. Raises Refusal."""
        session = self._session
        if self._search is not None:
            raise Refusal("a search for a violation is running; stop it first")
        session.pause()
        self._search = ViolationSearch(session.opened, runs, seed, session.runner.inject_faults)
        self._epoch = session.epoch
        return self._search

    def stop(self) -> None:
        """End the search, if one goes on; its outcome is reported by itself."""
        if self._search is not None:
            self._search.stop()

    def follow(self) -> None:
        """End the search where something else is shown by now."""
        if not self.is_of_what_is_shown:
            self.stop()

    @property
    def is_of_what_is_shown(self) -> bool:
        """Whether the session still shows what was searched."""
        return self._session.epoch == self._epoch

    def end(self, search: ViolationSearch, error: Exception | None = None) -> None:
        """Note the outcome of the search; `error` is what it failed with."""
        outcome = search.outcome() if error is None else f"the search broke off: {_words(error)}"
        search.stop()
        self._last = {"on": False, **search.to_json(), "outcome": outcome, "found": search.found is not None}
        self._search = None


def _words(error: BaseException) -> str:
    """Return what went wrong, in a sentence."""
    error = alone(error)
    return str(error) if isinstance(error, Refusal) else f"the protocol failed with {type(error).__name__}: {error}"
