"""The web around a session: server-sent events out, POST in, on one address, which is loopback by default.

Requests whose Host or Origin is foreign are refused, so that no page from elsewhere gets in by a name that points here.
Every error is a JSON object with one sentence.
"""

from __future__ import annotations

import signal
import socket
from collections.abc import Awaitable, Callable, Mapping
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

from harness.demo.session import as_json, questions, recording
from harness.demo.session.interactive_run import Stale
from harness.demo.session.live_session import LiveSession, of_trail
from harness.demo.session.snapshot import file_name
from harness.demo.session.violation_search import MOST_RUNS
from harness.demo.web.one_file import page_of_recording
from harness.demo.web.request_guard import RequestGuard, guard_of
from harness.demo.web.responses import (
    HEADERS,
    LARGEST_TRAIL,
    TYPES,
    broken,
    content,
    download,
    failed,
    fields,
    json_response,
    missing,
    number,
    static_file,
)
from harness.demo.web.shared_session import SharedSession
from harness.model import Refusal
from harness.model.live import tell
from harness.record.fields import COUNT, NAMES, NUMBERS, TEXT, TRUTH, FieldKind, optional

GRACE = 0.3
"""Seconds that connections get to end."""

T = TypeVar("T")


class Endpoints:
    """The requests that there are."""

    def __init__(self, shared: SharedSession) -> None:
        self.shared = shared

    @property
    def session(self) -> LiveSession:
        return self.shared.session

    def routes(self) -> list[Route]:
        """Return the routes of the site."""
        get: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "/": self.page, "/static/{path:path}": self.static, "/api/events": self.events,
            "/api/state": self.state, "/api/trail": self.trail, "/api/catalogue": self.catalogue,
            "/api/step": self.step, "/api/why": self.why, "/api/properties": self.properties,
            "/api/export": self.export, "/api/link": self.link, "/api/logs": self.logs,
        }
        post: dict[str, Callable[[Request], Awaitable[None]]] = {
            "/api/take": self.take, "/api/run": self.run, "/api/forward": self.forward, "/api/load": self.load,
            "/api/shrink": self.shrink, "/api/find": self.find, "/api/stop": self.stop,
            **{f"/api/{name}": partial(self.change, *verb) for name, verb in self.changes().items()},
        }
        return [
            *(Route(path, answer, methods=["GET"]) for path, answer in get.items()),
            *(Route(path, partial(self._verb, answer), methods=["POST"]) for path, answer in post.items()),
        ]

    def changes(self) -> dict[str, tuple[Callable[..., None], Mapping[str, FieldKind], Mapping[str, FieldKind]]]:
        """Return the verbs that are the session's own, each with the arguments it needs, and others that it takes."""
        session = self.session
        return {
            "pause": (session.pause, {}, {}), "undo": (session.undo, {}, {}),
            "rewind": (session.rewind, {"to": COUNT}, {}), "reopen": (session.reopen, {"number": COUNT}, {}),
            "branch": (session.name_branch, {"name": TEXT}, {}), "switch": (session.switch, {"name": TEXT}, {}),
            "tour": (session.tour, {"name": TEXT}, {}),
            "strategy": (session.set_strategy, {}, {
                "strategy": TEXT, "seed": COUNT, "inject_faults": TRUTH, "speed": COUNT, "spares": TRUTH}),
            "open": (session.open, {"what": TEXT}, {
                "sizes": NUMBERS, "settings": NAMES, "budget": optional(TEXT), "initial": COUNT}),
        }

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

    async def state(self, request: Request) -> Response:
        step, actor = number(request, "step", self.session.at), request.query_params.get("actor")
        after = self.session.state(step)
        before = self.session.state(step - 1) if step > 0 else None
        shown = as_json.state_json(self.session.lanes, before, after, actor)
        return json_response({"step": step, **shown})

    async def logs(self, request: Request) -> Response:
        step = number(request, "step", self.session.at)
        return json_response({"step": step, "logs": as_json.logs_json(self.session.model, self.session.state(step))})

    async def trail(self, request: Request) -> Response:
        return download(self.session.trail().text(), file_name(self.session), "application/jsonl")

    async def catalogue(self, request: Request) -> Response:
        return Response(self.shared.catalogue, media_type="application/json", headers=HEADERS)

    async def step(self, request: Request) -> Response:
        return json_response(await elsewhere(questions.about(self.session, number(request, "n", self.session.at))))

    async def why(self, request: Request) -> Response:
        action = request.query_params.get("action", "")
        if not action or len(action) > 200:
            raise Refusal("expected the name of an action, as in ?action=NAME")
        return json_response(await elsewhere(questions.why(self.session, action)))

    async def properties(self, request: Request) -> Response:
        return json_response(questions.ranges(self.session))

    async def export(self, request: Request) -> Response:
        form = request.query_params.get("as", "text")
        if form == "html":
            return await self._page()
        trail, name = self.session.trail(), file_name(self.session).removesuffix("trail.jsonl")
        text = await elsewhere(lambda: questions.exported(trail, form))
        kind = TYPES.get(f".{questions.EXPORTS[form]}", "text/plain; charset=utf-8")
        return download(text, name + questions.EXPORTS[form], kind)

    async def _page(self) -> Response:
        """Return the run with all its branches as a page in one file."""
        branches, current = recording.branches_of(self.session)
        name = file_name(self.session).removesuffix(".trail.jsonl")
        text = await elsewhere(lambda: page_of_recording(recording.recorded(branches, current), name))
        return download(text, f"{name}.html", TYPES[".html"])

    async def link(self, request: Request) -> Response:
        trail = self.session.trail()
        return json_response({"link": await elsewhere(lambda: questions.link(trail))})

    # What a person does

    async def take(self, request: Request) -> None:
        body = await fields(request, {"index": COUNT, "label": TEXT, "at": COUNT})
        if ("index" in body) is ("label" in body):
            raise Refusal('expected either "index" or "label" of the step to take')
        await self.shared.take(body.get("index"), body.get("label"), body.get("at"))

    async def run(self, request: Request) -> None:
        body = await fields(request, {"steps": optional(COUNT), "until": optional(TEXT), "speed": optional(COUNT)})
        until = body.get("until") or ("end" if body.get("steps") else "violation")
        await self.shared.change(self.session.start, until, body.get("steps"), body.get("speed"))

    async def change(
        self, verb: Callable[..., None], needed: Mapping[str, FieldKind], others: Mapping[str, FieldKind],
        request: Request,
    ) -> None:
        body = await fields(request, {**needed, **others}, *needed)
        await self.shared.change(partial(verb, **body))

    async def forward(self, request: Request) -> None:
        body = await fields(request, {"to": COUNT}, "to")
        await self.shared.forward(body["to"])

    async def load(self, request: Request) -> None:
        text = (await content(request, LARGEST_TRAIL)).decode(errors="replace")
        loaded = await elsewhere(lambda: of_trail(questions.trail_of(text)))
        await self.shared.change(self.session.become, loaded)

    async def find(self, request: Request) -> None:
        body = await fields(request, {"runs": COUNT, "seed": COUNT})
        await self.shared.find(body.get("runs", MOST_RUNS), body.get("seed", 0))

    async def stop(self, request: Request) -> None:
        await fields(request, {})
        self.shared.search.stop()

    async def shrink(self, request: Request) -> None:
        await fields(request, {})
        trail, branch = self.session.trail(), self.session.branch
        found, ending = await elsewhere(lambda: questions.shrunk(trail))
        await self.shared.show_shrunk(found, ending, branch)


class EventStream(StreamingResponse):
    """The events of a session, until it ends or nobody listens any more."""

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
    """Do long work in a thread, which is left alone when nobody waits for it any more."""
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
    stop: trio.Event | None = None,
) -> None:
    """Serve a session on a listening socket until `stop` is set, or, without it, until an interrupt comes."""
    port = listener.getsockname()[1]
    config = Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.graceful_timeout = GRACE
    config.errorlog = config.accesslog = None
    config.include_server_header = False
    shared = SharedSession(session)
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
    session: LiveSession, listener: socket.socket, host: str, ready: Callable[[str], None]
) -> None:
    """Serve a session on a listening socket until the program is interrupted."""
    trio.run(serve, session, listener, host, ready)
