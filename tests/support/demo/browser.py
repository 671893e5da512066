"""The demo as a browser shows it, as tests and scripts use it: a server in a process of its own, Chromium, a page.

Run by itself, it prints which browser there is.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
SETTING = "KAFKA_PROTO_CHROMIUM"
COMMAND = (sys.executable, "-c", "from harness.cli import main; main()", "demo")


MISSING = f"no Chromium on this machine; apt-get install chromium, or set {SETTING} to the path of Chromium or Chrome"


def find_chromium() -> str | None:
    """Return the path of a Chromium or Chrome on this machine, or None."""
    named = os.environ.get(SETTING)
    return next((path for name in ((named,) if named else NAMES) if (path := shutil.which(name))), None)


def lacking() -> str | None:
    """Return in a sentence what this machine lacks to drive a browser, or None."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed; make test-browser brings it, or pip install 'kafka-proto[browser]'"
    return None if find_chromium() is not None else MISSING


@contextmanager
def served(
    *arguments: object, port: str = "0", cwd: Path | None = None
) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serve a demo on a port, or a free one; yield its address and its process."""
    command = [*COMMAND, *map(str, arguments), "--port", port]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=cwd)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            # The command has said in a sentence what it did not like.
            sys.exit(process.wait())
        yield "http://" + line.split("http://")[1].split()[0], process
    finally:
        process.terminate()
        process.communicate(timeout=30)


@contextmanager
def browser() -> Iterator[Any]:
    """Start Chromium without a window."""
    from playwright.sync_api import sync_playwright

    path = find_chromium()
    assert path is not None, "there is no Chromium here"
    # A browser started by root, as in a container, has no sandbox.
    arguments = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=path, args=arguments)
        try:
            yield started
        finally:
            started.close()


class Tab:
    """One tab that shows a demo."""

    def __init__(self, page: Any, address: str) -> None:
        self.page = page
        self.address = address
        self.troubles: list[str] = []
        page.set_default_timeout(10_000)
        page.on("console", lambda said: self.troubles.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.go()

    def go(self) -> None:
        """Load the page, and wait until it has drawn the session."""
        self.page.goto(self.address)
        self.page.wait_for_selector("#heads [data-lane]")
        self.drawn()

    def drawn(self) -> None:
        """Wait until what the tab knows is what it shows."""
        self.page.wait_for_function("() => document.documentElement.dataset.drawn > 0")

    def post(self, verb: str, **body: Any) -> int:
        """Have the server do something, and wait until the tab shows what came of it."""
        answer = self.page.request.post(f"{self.address}api/{verb}", data=body)
        assert answer.ok, answer.text()
        version: int = answer.json()["version"]
        self.shows(version)
        return version

    def shows(self, version: int) -> None:
        """Wait until the tab has drawn the session as of a version of it."""
        self.page.wait_for_function("v => Number(document.documentElement.dataset.drawn) >= v", arg=version)

    def known(self, expression: str) -> Any:
        """Return what an expression over the tab's `store` comes to."""
        return self.page.evaluate(
            f"async () => {{ const {{ store }} = await import('/static/store.js'); return {expression}; }}"
        )

    def at(self, step: int) -> None:
        """Wait until the present is this step, and drawn."""
        self.page.wait_for_function(
            "n => { const { drawn, step } = document.documentElement.dataset; return drawn && step === String(n); }",
            arg=step,
        )

    def until(self, expression: str, patience_s: float = 15) -> None:
        """Wait until an expression over the tab's `store` is true."""
        end = time.monotonic() + patience_s
        while not self.known(f"Boolean({expression})"):
            assert time.monotonic() < end, f"waited in vain for {expression}"
            self.page.wait_for_timeout(20)
        self.drawn()

    def take(self, label: str) -> None:
        """Click the enabled step of that label at the present, and wait until it is drawn."""
        step = self.known("store.present.step")
        self.page.locator(f'#present .chip[title="{label}"]').first.click()
        self.at(step + 1)


class FileTab(Tab):
    """A tab whose page is a file: its scripts have other names, and nobody is behind it."""

    def known(self, expression: str) -> Any:
        return self.page.evaluate(
            f"async () => {{ const {{ store }} = await import('page/store.js'); return {expression}; }}"
        )


if __name__ == "__main__":
    print(find_chromium() or MISSING)
    sys.exit(0 if find_chromium() else 1)
