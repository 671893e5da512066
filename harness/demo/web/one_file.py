"""The page in one file, its style sheets and scripts inside: it can be opened anywhere, and asks no network."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Mapping
from html import escape
from pathlib import Path

from harness.demo.session.recording import recorded_trail
from harness.record import Trail

STATIC = Path(__file__).parent / "static"
ASKS_NOBODY = ("default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data: blob:; "
               "base-uri 'none'; form-action 'none'")
"""What a page that is a recording may load: only what is in it."""


def page_of_trail(trail: Trail) -> str:
    """Return the run of a trail as a page in one file. Raises Refusal if it does not fit or is too long."""
    return page_of_recording(recorded_trail(trail), trail.scenario or trail.model)


def page_of_recording(recording: str, title: str) -> str:
    """Return a page that shows a recording, which is JSON text."""
    return page("recording", title, {"recording": packed(recording.encode(errors="backslashreplace"))}, ASKS_NOBODY)


def packed(content: bytes) -> str:
    """Return bytes as `packed.js` unpacks them: as base64 of their gzip."""
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()


def recording_in(text: str) -> str:
    """Return the recording that is in a page, as JSON text."""
    found = re.search(r'<script type="text/plain" id="recording">([^<]*)</script>', text)
    assert found is not None, "the page has a recording"
    return gzip.decompress(base64.b64decode(found[1])).decode()


def page(
    answers: str, title: str, data: Mapping[str, str], policy: str, said: Mapping[str, str] | None = None
) -> str:
    """Return the page with all its files inside; `answers` says what answers it, as in `api.js`.

    `data` are texts that its scripts find by their ids. They are for the page's own scripts, and must not hold `<`.
    What is `said` stands with the page, by name.
    """
    text = (STATIC / "index.html").read_text(encoding="utf-8")
    text = re.sub(r'<link rel="stylesheet" href="/static/([^"]+)">', _style, text)
    text = text.replace('href="/static/icon.svg"', f'href="{_data_url(STATIC / "icon.svg", "image/svg+xml")}"')
    scripts = {f"page/{path.name}": _data_url(path, "text/javascript") for path in sorted(STATIC.glob("*.js"))}
    parts = [
        *(f'<script type="text/plain" id="{escape(name)}">{content}</script>' for name, content in data.items()),
        f'<script type="importmap">{json.dumps({"imports": scripts})}</script>',
        '<script type="module">import "page/main.js";</script>',
    ]
    text = text.replace('<script type="module" src="/static/main.js"></script>\n', "")
    text = text.replace("<title>kafka-proto demo</title>", f"<title>{escape(title)}</title>")
    text = text.replace("</body>", "\n".join([*parts, "</body>"]))
    rule = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
    text = text.replace('<meta charset="utf-8">\n', f'<meta charset="utf-8">\n{rule}')
    marks = "".join(f' data-{name}="{escape(value)}"' for name, value in {"answers": answers, **(said or {})}.items())
    return text.replace('<html lang="en">', f'<html lang="en"{marks}>')


def _style(link: re.Match[str]) -> str:
    return f"<style>\n{(STATIC / link[1]).read_text(encoding='utf-8')}</style>"


def _data_url(path: Path, kind: str) -> str:
    """Return the content of a file as an address; scripts name each other as the page's import map does."""
    content = path.read_text(encoding="utf-8")
    if path.suffix == ".js":
        content = content.replace('"./', '"page/')
    return f"data:{kind};base64,{base64.b64encode(content.encode()).decode()}"
