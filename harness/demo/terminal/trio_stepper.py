"""A session whose present state is held by tasks on trio, one per actor, for a caller that is not on trio.

Trio runs in a thread of its own. One task there steps the others; the caller waits until it has done so, and touches
the session only in between.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from threading import Thread
from types import TracebackType
from typing import Any

import trio

from harness.demo.session.live_session import LiveSession
from harness.simulate.runtimes.actor_tasks import LiveHost

Work = Callable[[LiveHost], Awaitable[Any]]


class TrioStepper:
    """Takes the steps of a session by the actors' tasks. Used as a context, in which the tasks live."""

    def __init__(self, session: LiveSession) -> None:
        self.session = session
        self._ready: Future[tuple[trio.lowlevel.TrioToken, trio.MemorySendChannel[tuple[Work, Future[Any]]]]] = Future()
        self._thread = Thread(target=self._host, daemon=True)

    def __enter__(self) -> TrioStepper:
        self._thread.start()
        self._token, self._jobs = self._ready.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        trio.from_thread.run_sync(self._jobs.close, trio_token=self._token)
        self._thread.join()

    def _host(self) -> None:
        try:
            trio.run(self._main)
        except BaseException as error:
            if not self._ready.done():
                self._ready.set_exception(error)
            raise

    async def _main(self) -> None:
        send, receive = trio.open_memory_channel[tuple[Work, Future[Any]]](1)
        async with trio.open_nursery() as nursery:
            host = LiveHost(self.session, nursery)
            await host.restore()
            self._ready.set_result((trio.lowlevel.current_trio_token(), send))
            async for work, done in receive:
                try:
                    await host.restore()
                    done.set_result(await work(host))
                except Exception as error:  # the caller's to deal with
                    done.set_exception(error)
            nursery.cancel_scope.cancel()

    def _do(self, work: Work) -> Any:
        """Let the task that owns the others do something, and wait for it. Raises what it raises."""
        done: Future[Any] = Future()
        trio.from_thread.run_sync(self._jobs.send_nowait, (work, done), trio_token=self._token)
        return done.result()

    def take(self, index: int) -> None:
        """Take a step that is possible now. Raises Refusal."""
        n = self.session.chosen(index)
        self._do(lambda host: host.take(n))

    def forward(self, to: int) -> None:
        """Go on along the kept steps. Raises Refusal."""

        async def work(host: LiveHost) -> None:
            session = self.session
            session.begin_forward(to)
            while session.at < to:
                await host.take(session.next_kept())

        self._do(work)

    def run(self, most: int) -> bool:
        """Take at most so many steps of a run that was started; say whether it goes on."""

        async def work(host: LiveHost) -> bool:
            for _ in range(most):
                n = self.session.decide()
                if n < 0:
                    break
                await host.take(n)
            return self.session.runner.running

        return bool(self._do(work))
