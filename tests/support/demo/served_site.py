"""The demo's server in a thread of the tests, and tabs that hear its events as a page does."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import trio

from harness.demo.session.live_session import LiveSession
from harness.demo.web import server
from support.commands.command_line import PATIENCE_S

Json = dict[str, Any]


class Site:
    """A server in a thread, and requests to it."""

    def __init__(self, session: LiveSession, host: str = "127.0.0.1") -> None:
        self.session = session
        self.listener = server.listen(host, 0)
        self.port = self.listener.getsockname()[1]
        self.host = host
        self.error: BaseException | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        async def main() -> None:
            self._token, self._stop = trio.lowlevel.current_trio_token(), trio.Event()
            await server.serve(self.session, self.listener, self.host, lambda _: self._ready.set(), self._stop)

        try:
            trio.run(main)
        except BaseException as error:
            self.error = error
        finally:
            self._ready.set()

    def __enter__(self) -> Site:
        self._thread.start()
        assert self._ready.wait(PATIENCE_S) and self.error is None, self.error
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        assert self.error is None, self.error

    def stop(self) -> None:
        """End the server in order, and wait for that."""
        if self._thread.is_alive():
            trio.from_thread.run_sync(self._stop.set, trio_token=self._token)
            self._thread.join(PATIENCE_S)
            assert not self._thread.is_alive()

    def ask(
        self, method: str, path: str, body: bytes | str | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes, http.client.HTTPMessage]:
        """Return status, body and headers of a request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.read(), response.headers
        finally:
            connection.close()

    def get(self, path: str) -> Json:
        """Return the JSON of a GET that is well."""
        status, body, _ = self.ask("GET", path)
        assert status == 200, body
        found: Json = json.loads(body)
        return found

    def post(self, path: str, body: Json | str | None = None) -> int:
        """Post what is well, and return the version."""
        text = body if isinstance(body, str) else json.dumps(body or {})
        status, said, _ = self.ask("POST", path, text.encode())
        assert status == 200, said
        return int(json.loads(said)["version"])

    def refused(
        self, status: int, method: str, path: str, body: bytes | str | None = None,
        headers: dict[str, str] | None = None,
    ) -> str:
        """Return the sentence with which a request is refused."""
        found, said, _ = self.ask(method, path, body, headers)
        assert found == status, (found, said)
        answer = json.loads(said)
        assert list(answer) == ["error"] and "Traceback" not in answer["error"]
        return str(answer["error"])


class Tab:
    """A browser's tab: it hears events and keeps the picture as the page does."""

    def __init__(self, site: Site) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", site.port, timeout=PATIENCE_S)
        self.connection.request("GET", "/api/events")
        self.response = self.connection.getresponse()
        assert self.response.headers["Content-Type"].startswith("text/event-stream")
        self.picture: Json = {}
        self.kinds: list[str] = []
        self.longest = 0
        self.found: Json | None = None
        """What was reported last of a search for a violation."""

    def event(self) -> str:
        """Take the next event, and return its kind."""
        fields: dict[str, str] = {}
        while line := self.response.readline().decode().rstrip("\n"):
            name, _, value = line.partition(": ")
            if name:
                fields[name] = value
        if "event" not in fields:
            return ""
        data = json.loads(fields["data"])
        if fields["event"] == "session":
            self.picture = data
        elif fields["event"] == "change":
            self.picture |= {**data, "steps": [*self.picture["steps"][: data["keep"]], *data["steps"]]}
            self.longest = max(self.longest, len(data["steps"]))
        elif fields["event"] == "finding":
            self.found = data
        if fields["event"] != "bye":
            assert data["version"] == int(fields["id"])
        self.kinds.append(fields["event"])
        return fields["event"]

    def until(self, version: int) -> Json:
        """Take events until the picture is at least of a version."""
        while self.picture.get("version", -1) < version:
            assert self.event() != "bye"
        return self.picture

    def until_paused(self) -> Json:
        """Take events until no run goes on."""
        while not self.picture or self.picture["present"]["running"]:
            assert self.event() != "bye"
        return self.picture

    def close(self) -> None:
        """Vanish."""
        self.response.close()
        self.connection.close()


@contextmanager
def tabs(site: Site, count: int = 1) -> Iterator[list[Tab]]:
    """Open tabs, and close them."""
    opened = [Tab(site) for _ in range(count)]
    try:
        yield opened
    finally:
        for tab in opened:
            tab.close()
