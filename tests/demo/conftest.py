"""What the tests of the demo share: a browser, a server for a module's tests, a tab or a site for each test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.demo.browser import MISSING, Tab, browser, find_chromium, served
from support.demo.sessions import opened


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """One browser for all tests of a module."""
    if find_chromium() is None:
        pytest.skip(MISSING)
    pytest.importorskip("playwright")
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """One server for all tests of a module, which shows the module's FIRST; each test opens what it needs."""
    with served(request.module.FIRST) as (where, _):
        yield where


@pytest.fixture
def tab(chromium: Any, address: str) -> Iterator[Tab]:
    """A tab of its own for each test, which must not have complained by its end."""
    context = chromium.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    shown = Tab(context.new_page(), address)
    yield shown
    context.close()
    assert shown.troubles == []


@pytest.fixture
def site() -> Iterator[Any]:
    """A server that shows the actors of transactions; its libraries are an extra."""
    from support.demo.served_site import Site

    session = opened()
    session.set_strategy(speed=0)
    with Site(session) as found:
        yield found
