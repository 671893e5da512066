"""The web around a session: server-sent events out, POST in, on one address that is loopback unless told otherwise.

Requests whose Host or Origin is foreign are refused, so that no page from elsewhere gets in by a name that points here.
Every error is a JSON object with one sentence.
"""

from __future__ import annotations

import ipaddress
import json
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import trio
from hypercorn.config import Config
from hypercorn.trio import serve as serve_app
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from harness.demo import questions, told
from harness.demo.live import Live
from harness.demo.picture import file_name
from harness.demo.session import LiveSession, Stale, of_trail
from harness.model import Refusal
from harness.record.fields import COUNT, NAMES, NUMBERS, TEXT, TRUTH, Kind, check_given, optional

STATIC = Path(__file__).parent / "static"
TYPES = {
    ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon",
    ".json": "application/json", ".woff2": "font/woff2",
}
LARGEST = 64 * 1024
"""Bytes of a request; a trail may be larger."""
LARGEST_TRAIL = questions.LARGEST_TRAIL
HEADERS = {
    "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
                               "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}
LOOPBACK = ("127.0.0.1", "localhost", "::1")
GRACE = 1.0
"""Seconds that connections get to end."""

T = TypeVar("T")
Body = dict[str, Any]


class Site:
    """The requests that there are."""

    def __init__(self, live: Live) -> None:
        self.live = live

    @property
    def session(self) -> LiveSession:
        return self.live.session

    def routes(self) -> list[Route]:
        """Return the routes of the site."""
        get: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "/": self.page, "/static/{path:path}": self.static, "/api/events": self.events,
            "/api/state": self.state, "/api/trail": self.trail, "/api/catalogue": self.catalogue,
            "/api/step": self.step, "/api/why": self.why, "/api/properties": self.properties,
            "/api/export": self.export, "/api/link": self.link,
        }
        post: dict[str, Callable[[Request], Awaitable[None]]] = {
            "/api/take": self.take, "/api/run": self.run, "/api/pause": self.pause, "/api/rewind": self.rewind,
            "/api/forward": self.forward, "/api/undo": self.undo, "/api/branch": self.branch,
            "/api/switch": self.switch, "/api/strategy": self.strategy, "/api/open": self.open, "/api/load": self.load,
            "/api/tour": self.tour, "/api/shrink": self.shrink,
        }
        return [
            *(Route(path, answer, methods=["GET"]) for path, answer in get.items()),
            *(Route(path, partial(self._verb, answer), methods=["POST"]) for path, answer in post.items()),
        ]

    async def _verb(self, verb: Callable[[Request], Awaitable[None]], request: Request) -> Response:
        await verb(request)
        return as_json({"version": self.session.version})

    # What there is to see

    async def page(self, request: Request) -> Response:
        return static_file("index.html")

    async def static(self, request: Request) -> Response:
        return static_file(request.path_params["path"])

    async def events(self, request: Request) -> Response:
        return EventStream(self.live)

    async def state(self, request: Request) -> Response:
        step, actor = number(request, "step", self.session.at), request.query_params.get("actor")
        before = self.session.state(step - 1) if step > 0 else None
        shown = told.state_json(self.session.lanes, before, self.session.state(step), actor)
        return as_json({"step": step, **shown})

    async def trail(self, request: Request) -> Response:
        text = "".join(f"{line}\n" for line in self.session.trail().each_line())
        return download(text, file_name(self.session), "application/jsonl")

    async def catalogue(self, request: Request) -> Response:
        return Response(self.live.catalogue, media_type="application/json", headers=HEADERS)

    async def step(self, request: Request) -> Response:
        return as_json(await elsewhere(questions.about(self.session, number(request, "n", self.session.at))))

    async def why(self, request: Request) -> Response:
        action = request.query_params.get("action", "")
        if not action or len(action) > 200:
            raise Refusal("expected the name of an action, as in ?action=NAME")
        return as_json(await elsewhere(questions.why(self.session, action)))

    async def properties(self, request: Request) -> Response:
        return as_json(questions.ranges(self.session))

    async def export(self, request: Request) -> Response:
        form = request.query_params.get("as", "text")
        trail, name = self.session.trail(), file_name(self.session).removesuffix("trail.jsonl")
        text = await elsewhere(lambda: questions.exported(trail, form))
        kind = TYPES.get(f".{questions.EXPORTS[form]}", "text/plain; charset=utf-8")
        return download(text, name + questions.EXPORTS[form], kind)

    async def link(self, request: Request) -> Response:
        trail = self.session.trail()
        return as_json({"link": await elsewhere(lambda: questions.link(trail))})

    # What a person does

    async def take(self, request: Request) -> None:
        body = await fields(request, {"index": COUNT, "label": TEXT, "at": COUNT})
        if ("index" in body) is ("label" in body):
            raise Refusal('expected either "index" or "label" of the step to take')
        await self.live.take(body.get("index"), body.get("label"), body.get("at"))

    async def run(self, request: Request) -> None:
        body = await fields(request, {"steps": optional(COUNT), "until": optional(TEXT), "speed": optional(COUNT)})
        until = body.get("until") or ("end" if body.get("steps") else "violation")
        await self.live.change(self.session.start, until, body.get("steps"), body.get("speed"))

    async def pause(self, request: Request) -> None:
        await fields(request, {})
        await self.live.change(self.session.pause)

    async def rewind(self, request: Request) -> None:
        body = await fields(request, {"to": COUNT}, "to")
        await self.live.change(self.session.rewind, body["to"])

    async def forward(self, request: Request) -> None:
        body = await fields(request, {"to": COUNT}, "to")
        await self.live.forward(body["to"])

    async def undo(self, request: Request) -> None:
        await fields(request, {})
        await self.live.change(self.session.undo)

    async def branch(self, request: Request) -> None:
        body = await fields(request, {"name": TEXT}, "name")
        await self.live.change(self.session.name_branch, body["name"])

    async def switch(self, request: Request) -> None:
        body = await fields(request, {"name": TEXT}, "name")
        await self.live.change(self.session.switch, body["name"])

    async def strategy(self, request: Request) -> None:
        body = await fields(request, {"strategy": TEXT, "seed": COUNT, "hurts": TRUTH, "speed": COUNT})
        await self.live.change(
            self.session.set_strategy, body.get("strategy"), body.get("seed"), body.get("hurts"), body.get("speed")
        )

    async def open(self, request: Request) -> None:
        known = {"what": TEXT, "sizes": NUMBERS, "settings": NAMES, "budget": optional(TEXT), "initial": COUNT}
        body = await fields(request, known, "what")
        await self.live.change(
            self.session.open, body["what"], body.get("sizes"), body.get("settings"), body.get("budget"),
            body.get("initial", 0),
        )

    async def load(self, request: Request) -> None:
        text = (await content(request, LARGEST_TRAIL)).decode(errors="replace")
        loaded = await elsewhere(lambda: of_trail(questions.trail_of(text)))
        await self.live.change(self.session.become, loaded)

    async def tour(self, request: Request) -> None:
        body = await fields(request, {"name": TEXT}, "name")
        await self.live.change(self.session.tour, body["name"])

    async def shrink(self, request: Request) -> None:
        await fields(request, {})
        trail, branch = self.session.trail(), self.session.branch
        found, ending = await elsewhere(lambda: questions.shrunk(trail))
        await self.live.show_shrunk(found, ending, branch)


class EventStream(Response):
    """The events of a session, until it ends or nobody listens any more."""

    def __init__(self, live: Live) -> None:
        headers = {**HEADERS, "X-Accel-Buffering": "no", "Connection": "close"}
        super().__init__(None, 200, headers, "text/event-stream")
        del self.headers["content-length"]
        self.live = live

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                nursery.cancel_scope.cancel()

            nursery.start_soon(watch)
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async with aclosing(self.live.events()) as events:
                async for text in events:
                    await send({"type": "http.response.body", "body": text.encode(), "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            nursery.cancel_scope.cancel()


def app_of(live: Live, guard: Callable[[Mapping[str, str]], str | None]) -> ASGIApp:
    """Return the application; `guard` says why a request with some headers is refused, or None."""
    app = Starlette(routes=Site(live).routes(), exception_handlers={
        Stale: partial(failed, 409), Refusal: partial(failed, 400), HTTPException: missing, Exception: broken,
        ClientDisconnect: partial(failed, 400),
    })

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
            why = guard(headers)
            if why is not None:
                await as_json({"error": why}, 403)(scope, receive, send)
                return
        await app(scope, receive, send)

    return guarded


def guard_of(host: str) -> Callable[[Mapping[str, str]], str | None]:
    """Return what refuses requests that are not meant for a server on this address, or come from another page."""
    names = {*LOOPBACK, host} if is_loopback(host) else {*LOOPBACK, host, socket.gethostname()}

    def why_not(headers: Mapping[str, str]) -> str | None:
        asked = headers.get("host", "")
        name = name_in(asked)
        if name not in names and not (not is_loopback(host) and is_address(name)):
            return f"this server answers for {' or '.join(sorted(names))} only, not for {name[:60]!r}"
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{asked}":
            return f"requests from {origin[:60]!r} are refused; open the page of this server itself"
        return None

    return why_not


def name_in(asked: str) -> str:
    """Return the name or address in a Host header, or nothing where it is no such thing."""
    try:
        found = urlsplit(f"//{asked}")
        return found.hostname or "" if found.netloc == asked and "@" not in asked else ""
    except ValueError:
        return ""


def is_address(name: str) -> bool:
    """Say whether a name is an address in numbers, which no name server can turn into another one."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Say whether an address is reached from this machine only."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


async def elsewhere(work: Callable[[], T]) -> T:
    """Do long work in a thread, which is left alone when nobody waits for it any more."""
    return await trio.to_thread.run_sync(work, abandon_on_cancel=True)


def as_json(data: Any, status: int = 200) -> Response:
    """Return data as a response."""
    return Response(told.text_of(data), status, HEADERS, "application/json")


def download(text: str, name: str, kind: str) -> Response:
    """Return a text as a file to save."""
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text.encode(errors="backslashreplace"), 200, headers, kind)


def static_file(path: str) -> Response:
    """Return a file of the page. Raises HTTPException."""
    file = (STATIC / path).resolve()
    if not file.is_relative_to(STATIC.resolve()) or not file.is_file() or file.suffix not in TYPES:
        raise HTTPException(404)
    return Response(file.read_bytes(), 200, HEADERS, TYPES[file.suffix])


async def failed(status: int, request: Request, error: Exception) -> Response:
    return as_json({"error": str(error)}, status)


async def missing(request: Request, error: Exception) -> Response:
    """Answer a request that no route takes, or that is refused before it is read."""
    assert isinstance(error, HTTPException)
    said = {
        404: f"there is nothing at {request.url.path[:80]}; the page is at /",
        405: f"{request.method} is not for {request.url.path[:80]}; see docs/demo.md",
    }
    return as_json({"error": said.get(error.status_code, error.detail)}, error.status_code)


async def broken(request: Request, error: Exception) -> Response:
    return as_json({"error": f"the protocol or the demo failed with {type(error).__name__}: {error}"}, 500)


async def content(request: Request, most: int) -> bytes:
    """Return the body of a request. Raises HTTPException."""
    found = bytearray()
    async with aclosing(request.stream()) as stream:
        async for part in stream:
            found += part
            if len(found) > most:
                raise HTTPException(413, f"expected at most {most:,} bytes; send less")
    return bytes(found)


async def fields(request: Request, known: Mapping[str, Kind], *needed: str) -> Body:
    """Return the JSON object in a request, its fields checked. Raises Refusal, HTTPException."""
    data = await content(request, LARGEST)
    try:
        body = json.loads(data or b"{}")
    except (ValueError, RecursionError):
        raise Refusal("the request is not JSON; expected one JSON object") from None
    if not isinstance(body, dict):
        raise Refusal("expected one JSON object in the request")
    odd = [name for name in body if name not in known]
    if odd:
        raise Refusal(f"there is no field {odd[0][:60]!r} here; the fields are {', '.join(known) or 'none'}")
    lacking = [name for name in needed if name not in body]
    if lacking:
        raise Refusal(f'the field "{lacking[0]}" is missing')
    try:
        check_given(body, known)
    except ValueError as error:
        raise Refusal(str(error)) from None
    return body


def number(request: Request, name: str, default: int) -> int:
    """Return a whole number of a request's query. Raises Refusal."""
    given = request.query_params.get(name)
    if given is None:
        return default
    if not given.isdecimal() or len(given) > 9:
        raise Refusal(f"expected a whole number for {name}, found {given[:40]!r}")
    return int(given)


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
    live = Live(session)
    over = trio.Event()

    async def ended() -> None:
        if stop is not None:
            await stop.wait()
        else:
            with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
                async for _ in signals:
                    break
        live.close()
        over.set()

    async with trio.open_nursery() as nursery:

        async def web(task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED) -> None:
            app = app_of(live, guard_of(host))
            await serve_app(app, config, shutdown_trigger=over.wait, task_status=task_status)  # type: ignore[arg-type]
            nursery.cancel_scope.cancel()

        await nursery.start(live.run)
        nursery.start_soon(ended)
        await nursery.start(web)
        ready(f"http://{f'[{host}]' if ':' in host else host}:{port}/")


def serve_until_interrupted(
    session: LiveSession, listener: socket.socket, host: str, ready: Callable[[str], None]
) -> None:
    """Serve a session on a listening socket until the program is interrupted."""
    trio.run(serve, session, listener, host, ready)
