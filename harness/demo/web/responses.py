"""How requests are read and answered: checked fields, files of the page, one sentence where something fails."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from harness.demo.session import as_json, questions
from harness.demo.web.answers import Body, NamedFile, body_of, broken_off
from harness.demo.web.one_file import STATIC

TYPES = {
    ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png", ".ico": "image/x-icon",
    ".json": "application/json", ".jsonl": "application/jsonl", ".woff2": "font/woff2",
}
LARGEST = 64 * 1024
"""Bytes of a request; a trail may be larger."""
LARGEST_TRAIL = questions.LARGEST_TRAIL
HEADERS = {
    "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
                               "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}


def json_response(data: Any, status: int = 200) -> Response:
    """Return data as a response."""
    return Response(as_json.text_of(data), status, HEADERS, "application/json")


def download(file: NamedFile) -> Response:
    """Return a file to save."""
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{file.name}"'}
    kind = TYPES.get(Path(file.name).suffix, "text/plain; charset=utf-8")
    return Response(file.text.encode(errors="backslashreplace"), 200, headers, kind)


def static_file(path: str) -> Response:
    """Return a file of the page. Raises HTTPException."""
    if not path.isprintable():  # a null byte is no part of a path
        raise HTTPException(404)
    file = (STATIC / path).resolve()
    if not file.is_relative_to(STATIC.resolve()) or not file.is_file() or file.suffix not in TYPES:
        raise HTTPException(404)
    return Response(file.read_bytes(), 200, HEADERS, TYPES[file.suffix])


async def failed(status: int, request: Request, error: Exception) -> Response:
    return json_response({"error": str(error)}, status)


async def missing(request: Request, error: Exception) -> Response:
    """Answer a request that no route takes, or that is refused before it is read."""
    assert isinstance(error, HTTPException)
    said = {
        404: f"there is nothing at {request.url.path[:80]}; the page is at /",
        405: f"{request.method} is not for {request.url.path[:80]}; see docs/use/demo.md",
    }
    return json_response({"error": said.get(error.status_code, error.detail)}, error.status_code)


async def broken(request: Request, error: Exception) -> Response:
    return json_response({"error": broken_off(error)}, 500)


async def content(request: Request, most: int) -> bytes:
    """Return the body of a request. Raises HTTPException."""
    found = bytearray()
    async with aclosing(request.stream()) as stream:
        async for part in stream:
            found += part
            if len(found) > most:
                raise HTTPException(413, f"expected at most {most:,} bytes; send less")
    return bytes(found)


async def fields(request: Request, verb: str) -> Body:
    """Return the JSON object in the request of a verb, its fields checked. Raises Refusal, HTTPException."""
    return body_of(verb, await content(request, LARGEST))
