"""The web around a session: server-sent events out, POST in, on one address, which is loopback by default.

Requests whose Host or Origin is foreign are refused, so that no page from elsewhere gets in by a name that points here.
Every error is a JSON object with one sentence.
"""

from __future__ import annotations

import signal
import socket
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar

import trio
from hypercorn.config import Config
from hypercorn.trio import serve as serve_app
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from harness.demo.session import questions
from harness.demo.session.interactive_run import Stale
from harness.demo.session.live_session import LiveSession, of_trail
from harness.demo.web import answers
from harness.demo.web.request_guard import RequestGuard, guard_of
from harness.demo.web.responses import (
    HEADERS,
    LARGEST_TRAIL,
    broken,
    content,
    download,
    failed,
    fields,
    json_response,
    missing,
    static_file,
)
from harness.demo.web.shared_session import SharedSession
from harness.model import Refusal
from harness.model.live import tell

GRACE = 0.3
"""Seconds that connections get to end."""

T = TypeVar("T")


class Endpoints:
    """The requests that there are: `answers` has what is said to them."""

    def __init__(self, shared: SharedSession) -> None:
        self.shared = shared

    @property
    def session(self) -> LiveSession:
        return self.shared.session

    def routes(self) -> list[Route]:
        """Return the routes of the site."""
        get: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "/": self.page, "/static/{path:path}": self.static, "/api/events": self.events,
            "/api/catalogue": self.catalogue,
            **{f"/api/{name}": partial(self.reading, name) for name in answers.READINGS},
            **{f"/api/{name}": partial(self.file, name) for name in answers.FILES},
        }
        post: dict[str, Callable[[Request], Awaitable[None]]] = {
            "take": self.take, "forward": self.forward, "load": self.load, "shrink": self.shrink, "find": self.find,
            "stop": self.stop, **{name: partial(self.change, name) for name in answers.CHANGES},
        }
        return [
            *(Route(path, answer, methods=["GET"]) for path, answer in get.items()),
            *(Route(f"/api/{verb}", partial(self._verb, answer), methods=["POST"]) for verb, answer in post.items()),
        ]

    async def _verb(self, verb: Callable[[Request], Awaitable[None]], request: Request) -> Response:
        await verb(request)
        tell("verb", verb=request.url.path.rpartition("/")[2], at=self.session.at)
        return json_response({"version": self.session.version})

    # What there is to see

    async def page(self, request: Request) -> Response:
        return static_file("index.html")

    async def static(self, request: Request) -> Response:
        return static_file(request.path_params["path"])

    async def events(self, request: Request) -> Response:
        headers = {**HEADERS, "X-Accel-Buffering": "no", "Connection": "close"}
        return EventStream(self.shared.events(), headers=headers, media_type="text/event-stream")

    async def catalogue(self, request: Request) -> Response:
        return Response(self.shared.catalogue, media_type="application/json", headers=HEADERS)

    async def reading(self, name: str, request: Request) -> Response:
        return json_response(await elsewhere(answers.READINGS[name](self.session, request.query_params)))

    async def file(self, name: str, request: Request) -> Response:
        return download(await elsewhere(answers.FILES[name](self.session, request.query_params)))

    # What a person does

    async def change(self, verb: str, request: Request) -> None:
        await self.shared.change(answers.CHANGES[verb][0], self.session, **await fields(request, verb))

    async def take(self, request: Request) -> None:
        await self.shared.take(**await fields(request, "take"))

    async def forward(self, request: Request) -> None:
        await self.shared.forward(**await fields(request, "forward"))

    async def load(self, request: Request) -> None:
        text = (await content(request, LARGEST_TRAIL)).decode(errors="replace")
        loaded = await elsewhere(lambda: of_trail(questions.trail_of(text)))
        await self.shared.change(self.session.become, loaded)

    async def find(self, request: Request) -> None:
        await self.shared.find(**await fields(request, "find"))

    async def stop(self, request: Request) -> None:
        await fields(request, "stop")
        self.shared.search.stop()

    async def shrink(self, request: Request) -> None:
        await fields(request, "shrink")
        trail, branch = self.session.trail(), self.session.branch
        found, ending = await elsewhere(lambda: questions.shrunk(trail))
        await self.shared.show_shrunk(found, ending, branch)


class EventStream(StreamingResponse):
    """The events of a session, until it ends or its listener has gone."""

    async def stream_response(self, send: Send) -> None:
        async with aclosing(self.body_iterator):  # type: ignore[type-var]
            await super().stream_response(send)


def app_of(shared: SharedSession, guard: RequestGuard) -> ASGIApp:
    """Return the application; `guard` says why a request with some headers is refused, or None."""
    app = Starlette(routes=Endpoints(shared).routes(), exception_handlers={
        Stale: partial(failed, 409), Refusal: partial(failed, 400), HTTPException: missing, Exception: broken,
        ClientDisconnect: partial(failed, 400),
    })

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            why = guard(headers, scope["method"])
            if why is not None:
                await json_response({"error": why}, 403)(scope, receive, send)
                return
        await app(scope, receive, send)

    return guarded


async def elsewhere(work: Callable[[], T]) -> T:
    """Do long work in a thread, which is left alone when its result is no longer awaited."""
    return await trio.to_thread.run_sync(work, abandon_on_cancel=True)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address. Raises Refusal."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, kind)
        try:
            if hasattr(socket, "SO_REUSEADDR"):
                found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
            found.listen(100)
        except OSError:
            found.close()
            raise
    except (OSError, OverflowError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise Refusal(f"cannot listen on {host} port {port}: {why}; give another one with --port N") from None
    return found


async def serve(
    session: LiveSession, listener: socket.socket, host: str, ready: Callable[[str], None],
    stop: trio.Event | None = None, opens_at: int = 0,
) -> None:
    """Serve a session on a listening socket until `stop` is set, or, without it, until an interrupt comes.

    It goes on to the kept step `opens_at` first, which is seen while it does.
    """
    port = listener.getsockname()[1]
    config = Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.graceful_timeout = GRACE
    config.errorlog = config.accesslog = None
    config.include_server_header = False
    shared = SharedSession(session, opens_at)
    over = trio.Event()

    async def ended() -> None:
        if stop is not None:
            await stop.wait()
        else:
            with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for _ in signals:
                    break
        shared.close()
        over.set()

    async with trio.open_nursery() as nursery:

        async def web(task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED) -> None:
            app = app_of(shared, guard_of(host))
            await serve_app(app, config, shutdown_trigger=over.wait, task_status=task_status)  # type: ignore[arg-type]
            nursery.cancel_scope.cancel()

        await nursery.start(shared.run)
        nursery.start_soon(ended)
        await nursery.start(web)
        ready(f"http://{f'[{host}]' if ':' in host else host}:{port}/")


def serve_until_interrupted(
    session: LiveSession, listener: socket.socket, host: str, ready: Callable[[str], None], opens_at: int = 0
) -> None:
    """Serve a session on a listening socket until the program is interrupted; see `serve`."""
    trio.run(serve, session, listener, host, ready, None, opens_at)
