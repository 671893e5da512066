"""A session whose present state is held by tasks on trio, one per actor, and its subscribers.

One task owns the session: verbs come to it one after the other, and between them it takes the steps of a run. What
changes is sent to the subscribers as server-sent events; a slow subscriber gets the whole picture later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import attrs
import trio

from harness.demo.session import as_json
from harness.demo.session.branches import Ending, RunBranch
from harness.demo.session.live_session import LiveSession
from harness.demo.session.opened_model import catalogue
from harness.demo.session.snapshot import change_text, snapshot_text
from harness.demo.web import pace
from harness.demo.web.answers import broken_off
from harness.demo.web.background_search import BackgroundSearch
from harness.memo.interning import long_lived
from harness.simulate.runtimes.actor_tasks import LiveHost
from harness.simulate.trails.shrink import Shrunk

MOST_WAITING = 32
"""Events that wait for a subscriber before the whole picture takes their place."""
OPENING = 0.5
"""Seconds between two pictures of a session that is opened."""
LINGERS = 5
"""Seconds after which a session that nobody looks at lets what happens elsewhere wait."""
BEAT = 15
"""Seconds after which a subscriber that hears nothing else gets a comment, so that a dead connection is noticed."""

Verb = Callable[[], Awaitable[None]]


@attrs.define(eq=False)
class PendingVerb:
    """A verb under way, and what became of it."""

    verb: Verb
    done: trio.Event = attrs.field(factory=trio.Event)
    error: Exception | None = None


class Subscriber:
    """A client that watches the session."""

    def __init__(self) -> None:
        self.waiting: deque[str] = deque()
        self.is_behind = True
        """Whether the whole picture comes next."""
        self.news = trio.Event()
        self.news.set()


class SharedSession:
    """The owner of a session, and its audience."""

    def __init__(self, session: LiveSession, opens_at: int = 0) -> None:
        self.session = session
        self._opens_at = opens_at
        """The kept step that the session goes on to first."""
        self.catalogue = as_json.text_of(catalogue())
        self.subscribers: set[Subscriber] = set()
        self._watched_until = 0.0
        self.is_closed = False
        self._send, self._verbs = trio.open_memory_channel[PendingVerb](100)
        self._host: LiveHost
        self._nursery: trio.Nursery
        self.search = BackgroundSearch(session, self.change, self.report_search)

    async def run(self, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Own the session until cancelled."""
        async with trio.open_nursery() as nursery:
            stage: trio.Nursery = await nursery.start(_stage)
            self._nursery = nursery
            try:
                self._host = LiveHost(self.session, stage)
                await self._host.restore()
                more = self._refine()
                self._publish()
                task_status.started()
                await self._open()
                while True:
                    pending = await self._next_verb(more)
                    if pending is not None:
                        await self._carry_out(pending)
                    if self.session.runner.running:
                        await self._go()
                    self._catch_up()
                    more = self._refine()
                    self._publish()
            finally:
                stage.cancel_scope.cancel()

    async def _open(self) -> None:
        """Go on to the step that the session opens at, as fast as the page can be asked for meanwhile."""
        published = trio.current_time()
        with long_lived():
            while self.session.at < self._opens_at:
                until = trio.current_time() + pace.SLICE
                while self.session.at < self._opens_at and trio.current_time() < until:
                    await self._host.take(self.session.next_kept())
                if trio.current_time() > published + OPENING:
                    self._publish()
                    published = trio.current_time()
                await trio.sleep(pace.SOON)
        self._publish()

    def _catch_up(self) -> None:
        """Show what happened elsewhere, for the time of a slice, if anybody looks."""
        if not self.subscribers and trio.current_time() > self._watched_until:
            return
        until = trio.current_time() + pace.SLICE
        while self.session.may_catch_up and trio.current_time() < until:
            self.session.catch_up()

    async def find(self, runs: int, seed: int) -> None:
        """Begin to search for a violation of what is shown, and report to everybody how far it is."""
        await self.change(self.search.start, self._nursery, runs, seed)

    def report_search(self) -> None:
        """Report to everybody how far the search for a violation is."""
        for subscriber in self.subscribers:
            if not subscriber.is_behind:
                subscriber.waiting.append(self._search_event())
                subscriber.news.set()

    def _search_event(self) -> str:
        shown = {"version": self.session.version, **(self.search.to_json() or {})}
        return event(self.session.version, "finding", as_json.text_of(shown))

    def _refine(self) -> bool:
        """Check the new steps against the spec for a while; say whether some are left."""
        return pace.refine(self.session, trio.current_time)

    async def _next_verb(self, more: bool) -> PendingVerb | None:
        """Return the next verb; while something goes on, wait no longer than to its next frame."""
        wait = pace.wait(self.session, more)
        if self.session.is_fed:
            wait = pace.FRAME if wait is None else min(wait, pace.FRAME)
        if wait is None:
            return await self._verbs.receive()
        with trio.move_on_after(wait):
            return await self._verbs.receive()
        return None

    async def _go(self) -> None:
        """Take the steps of a frame of the run; where that fails, the run breaks off and says why."""
        try:
            await self._steps()
        except Exception as error:  # of the protocol: the session is where it was before the step
            self.session.runner.trouble = broken_off(error)
            self.session.pause()

    async def _steps(self) -> None:
        """Take the steps of a frame of the run."""
        most, until = pace.steps_of_frame(self.session), trio.current_time() + pace.SLICE
        count = 0
        while count < most if most else trio.current_time() < until:
            n = self.session.decide()
            if n < 0:
                return
            await self._host.take(n)
            count += 1

    async def _carry_out(self, pending: PendingVerb) -> None:
        try:
            await pending.verb()
        except Exception as error:  # the caller that asked hears of it
            pending.error = error
        finally:
            await self._host.restore()
            self.search.follow()
            self._refine()
            self._publish()
            pending.done.set()

    async def do(self, verb: Verb) -> None:
        """Let the owner carry out a verb, and wait for that. Raises what it raises."""
        pending = PendingVerb(verb)
        await self._send.send(pending)
        await pending.done.wait()
        if pending.error is not None:
            raise pending.error

    async def take(self, index: int | None = None, label: str | None = None, at: int | None = None) -> None:
        """Take a step that is possible now, or do to what drives the session what has this label."""

        async def verb() -> None:
            if label is None or not self.session.do(label):
                await self._host.take(self.session.chosen(index, label, at))

        await self.do(verb)

    async def forward(self, to: int) -> None:
        """Go on along the kept steps."""

        async def verb() -> None:
            self.session.begin_forward(to)
            await self._go_on(to)

        await self.do(verb)

    async def _go_on(self, to: int) -> None:
        """Take the kept steps up to one of them."""
        while self.session.at < to:
            await self._host.take(self.session.next_kept())
            if not self.session.at % pace.SOME:
                self._publish()
                await trio.lowlevel.checkpoint()

    async def show_shrunk(self, shrunk: Shrunk, ending: Ending | None, of: RunBranch) -> None:
        """Go along the shorter trail that was found for a branch, in a branch of its own."""

        async def verb() -> None:
            self.session.add_shrunk(shrunk, ending, of)
            await self._host.restore()
            await self._go_on(self.session.branch.length)

        await self.do(verb)

    async def change(self, verb: Callable[..., None], *args: Any, **fields: Any) -> None:
        """Carry out a verb of the session that is not a step."""

        async def changed() -> None:
            verb(*args, **fields)

        await self.do(changed)

    def _publish(self) -> None:
        """Send everybody what is new."""
        session = self.session
        if session.is_published:
            return
        keep = session.news()
        if not self.subscribers:
            return
        text = "" if keep is None else event(session.version, "change", change_text(session, keep))
        for subscriber in self.subscribers:
            if not subscriber.is_behind:
                subscriber.waiting.append(text)
            if keep is None or len(subscriber.waiting) > MOST_WAITING:
                subscriber.waiting.clear()
                subscriber.is_behind = True
            subscriber.news.set()

    async def events(self) -> AsyncGenerator[str, None]:
        """Yield what a subscriber gets, from the whole picture on, until the end."""
        subscriber = Subscriber()
        self.subscribers.add(subscriber)
        try:
            while not self.is_closed:
                if subscriber.is_behind:
                    subscriber.is_behind = False
                    yield event(self.session.version, "session", snapshot_text(self.session, self.catalogue))
                    if self.search.to_json() is not None:
                        yield self._search_event()
                elif subscriber.waiting:
                    yield subscriber.waiting.popleft()
                else:
                    subscriber.news = trio.Event()
                    with trio.move_on_after(BEAT) as beat:
                        await subscriber.news.wait()
                    if beat.cancelled_caught:
                        yield ": still here\n\n"
            yield event(self.session.version, "bye", "{}")
        finally:
            self.subscribers.discard(subscriber)
            self._watched_until = trio.current_time() + LINGERS

    def close(self) -> None:
        """Let everybody know that this is the end."""
        self.is_closed = True
        for subscriber in self.subscribers:
            subscriber.news.set()


async def _stage(task_status: trio.TaskStatus[trio.Nursery]) -> None:
    """Hold a nursery for the actors' tasks, which outlive every step of their owner: it ends them itself."""
    async with trio.open_nursery() as nursery:
        nursery.cancel_scope.shield = True
        task_status.started(nursery)
        await trio.sleep_forever()


def event(version: int, name: str, data: str) -> str:
    """Return a server-sent event."""
    return f"id: {version}\nevent: {name}\ndata: {data}\n\n"
