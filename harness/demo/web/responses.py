"""How requests are read and answered: checked fields, files of the page, one sentence where something fails."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from harness.demo.session import as_json, questions
from harness.demo.web.one_file import STATIC
from harness.model import Refusal
from harness.record.fields import FieldKind, check_given

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

Body = dict[str, Any]


def json_response(data: Any, status: int = 200) -> Response:
    """Return data as a response."""
    return Response(as_json.text_of(data), status, HEADERS, "application/json")


def download(text: str, name: str, kind: str) -> Response:
    """Return a text as a file to save."""
    headers = {**HEADERS, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text.encode(errors="backslashreplace"), 200, headers, kind)


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
    return json_response({"error": f"the protocol or the demo failed with {type(error).__name__}: {error}"}, 500)


async def content(request: Request, most: int) -> bytes:
    """Return the body of a request. Raises HTTPException."""
    found = bytearray()
    async with aclosing(request.stream()) as stream:
        async for part in stream:
            found += part
            if len(found) > most:
                raise HTTPException(413, f"expected at most {most:,} bytes; send less")
    return bytes(found)


async def fields(request: Request, known: Mapping[str, FieldKind], *needed: str) -> Body:
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
