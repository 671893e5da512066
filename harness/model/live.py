"""What runs live says as it happens, as a request of a real client. It goes nowhere unless it is watched."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Watcher = Callable[[str, str, dict[str, Any]], None]
"""Is handed each event: its level (`debug`, `info`, `warning` or `error`), its name and its fields."""
_watchers: list[Watcher] = []


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Hand every event to a watcher while the block lasts."""
    _watchers.append(watcher)
    try:
        yield
    finally:
        _watchers.remove(watcher)


def is_watched() -> bool:
    return bool(_watchers)


def tell(event: str, level: str = "info", **fields: Any) -> None:
    """Say what happened; a driver says it once, as it happens. Fields that are None or empty are left out."""
    for watcher in _watchers:
        watcher(level, event, {name: value for name, value in fields.items() if value not in (None, "", ())})
