"""Which requests a server takes: those that are meant for it, and that do not come from another site's page."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

LOOPBACK = ("127.0.0.1", "localhost", "::1")
OWN_SITES = ("same-origin", "none")
"""What a browser says in Sec-Fetch-Site of a request that this server's own page makes, or the person by an address."""


RequestGuard = Callable[..., str | None]
"""Says why a request is refused, by its headers (names in small letters) and method (GET by default), or None."""


def guard_of(host: str) -> RequestGuard:
    """Return what refuses requests that are not meant for a server on this address, or come from another page."""
    names = {*LOOPBACK, host} if is_loopback(host) else {*LOOPBACK, host, socket.gethostname()}

    def why_not(headers: Mapping[str, str], method: str = "GET") -> str | None:
        asked = headers.get("host", "")
        name = name_in(asked)
        if name not in names and not (not is_loopback(host) and is_address(name)):
            return f"this server answers for {' or '.join(sorted(names))} only, not for {name[:60]!r}"
        origin = headers.get("origin")
        if origin is not None and origin != f"http://{asked}":
            return f"requests from {origin[:60]!r} are refused; open the page of this server itself"
        site = headers.get("sec-fetch-site", "none")
        if method not in ("GET", "HEAD") and site not in OWN_SITES:
            return f"requests from another site's page ({site[:20]}) are refused; open the page of this server itself"
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
