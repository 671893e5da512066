"""A search for a violation that goes on beside a session on trio: in a thread, reported to all subscribers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio

from harness.demo.session.live_session import LiveSession, of_trail
from harness.demo.session.search_beside import SearchBeside
from harness.demo.session.violation_search import ViolationSearch

REPORT_S = 0.25
"""Seconds between two reports of how far a search is."""


class BackgroundSearch(SearchBeside):
    """A search in a thread; `change` carries out a verb of the session, `report` says to everybody how far it is."""

    def __init__(
        self, session: LiveSession, change: Callable[..., Awaitable[None]], report: Callable[[], None]
    ) -> None:
        super().__init__(session)
        self._change, self._report = change, report

    def start(self, nursery: trio.Nursery, runs: int, seed: int) -> None:
        """Begin to search what is shown now. Raises Refusal."""
        nursery.start_soon(self._go, self.begin(runs, seed))

    async def _go(self, search: ViolationSearch) -> None:
        """Search, report how far it is, and show what is found; the run that was shown is kept."""
        failed: Exception | None = None
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._keep_reporting)
                found = await trio.to_thread.run_sync(search.run, abandon_on_cancel=True)
                nursery.cancel_scope.cancel()
            if found is not None:
                other = await trio.to_thread.run_sync(lambda: of_trail(found), abandon_on_cancel=True)
                if self.is_of_what_is_shown:
                    await self._change(self._session.become, other)
        except Exception as error:  # of the protocol: the session is as it was
            failed = error
        finally:
            self.end(search, failed)
            self._report()

    async def _keep_reporting(self) -> None:
        while True:
            self._report()
            await trio.sleep(REPORT_S)
