"""A search for a violation that goes on beside a session on trio: in a thread, reported to everybody who watches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import trio

from harness.demo.session.live_session import LiveSession, of_trail
from harness.demo.session.violation_search import ViolationSearch
from harness.model import Refusal
from harness.simulate.runs.failures import alone

REPORT_S = 0.25
"""Seconds between two reports of how far a search is."""


class BackgroundSearch:
    """The search for a violation of the session that is shown, if one goes on, and the outcome of the last one.

    `change` carries out a verb of the session; `report` says to everybody how far the search is.
    """

    def __init__(
        self, session: LiveSession, change: Callable[..., Awaitable[None]], report: Callable[[], None]
    ) -> None:
        self._session, self._change, self._report = session, change, report
        self._search: ViolationSearch | None = None
        self._epoch = 0
        self._last: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any] | None:
        """Return how far the search is, or the outcome of the last one, as a JSON object; None before the first one."""
        if self._search is not None:
            return {"on": True, **self._search.to_json(), "outcome": None, "found": False}
        return self._last

    def start(self, nursery: trio.Nursery, runs: int, seed: int) -> None:
        """Begin to search what is shown now. Raises Refusal."""
        session = self._session
        if self._search is not None:
            raise Refusal("a search for a violation goes on; stop it first")
        session.pause()
        self._search = ViolationSearch(session.opened, runs, seed, session.runner.inject_faults)
        self._epoch = session.epoch
        nursery.start_soon(self._go, self._search)

    def stop(self) -> None:
        """End the search, if one goes on; its outcome is reported by itself."""
        if self._search is not None:
            self._search.stop()

    def follow(self) -> None:
        """End the search where something else is shown by now."""
        if self._search is not None and self._session.epoch != self._epoch:
            self._search.stop()

    async def _go(self, search: ViolationSearch) -> None:
        """Search, report how far it is, and show what is found; the run that was shown is kept."""
        outcome = ""
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._keep_reporting)
                found = await trio.to_thread.run_sync(search.run, abandon_on_cancel=True)
                nursery.cancel_scope.cancel()
            outcome = search.outcome()
            if found is not None:
                other = await trio.to_thread.run_sync(lambda: of_trail(found), abandon_on_cancel=True)
                if self._session.epoch == self._epoch:
                    await self._change(self._session.become, other)
        except Exception as error:  # of the protocol: the session is as it was
            outcome = f"the search broke off: {_words(error)}"
        finally:
            search.stop()
            self._last = {"on": False, **search.to_json(), "outcome": outcome, "found": search.found is not None}
            self._search = None
            self._report()

    async def _keep_reporting(self) -> None:
        while True:
            self._report()
            await trio.sleep(REPORT_S)


def _words(error: BaseException) -> str:
    """Return what went wrong, in a sentence."""
    error = alone(error)
    return str(error) if isinstance(error, Refusal) else f"the protocol failed with {type(error).__name__}: {error}"
