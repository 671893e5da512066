"""What docs/reference/gateway.md says in tables is what the code has: versions by release, options, bounds."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.paths import ROOT

from kafka_proto.gateway.apis import TABLE
from kafka_proto.gateway.codec import LONGEST_FRAME, MOST_ELEMENTS, api_name
from kafka_proto.gateway.command import MOST_BROKERS, NEWEST, serve
from kafka_proto.gateway.connection import MOST_PIPELINED
from kafka_proto.gateway.offer import LEVELS, RELEASES, offer_of
from kafka_proto.gateway.server import IDLE_SECONDS, MOST_CONNECTIONS, MOST_UNREAD

PAGE = (ROOT / "docs" / "reference" / "gateway.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table whose first line begins so."""
    table = PAGE[PAGE.index(heading) :].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def ranges(release: str) -> Iterator[tuple[str, str]]:
    """Yield each API that a release offers, with its versions as the page writes them."""
    offer = offer_of(release, LEVELS[release][-1], TABLE)
    for api, (first, last) in offer.ranges.items():
        yield api_name(api, last), written(first, last)


def written(first: int, last: int) -> str:
    return f"{first}-{last}" if first < last else str(first)


def changes(versions: str) -> dict[str, str]:
    """Return the versions of an API by the release that begins to offer them, from `0, 0-1 from 3.7.2`."""
    pairs = (row.split(" from ") for row in versions.split(", "))
    return {since[0] if since else next(iter(RELEASES)): each for each, *since in pairs}


def test_versions_are_those_that_are_offered() -> None:
    """Each API is in the table once, with the versions of each release."""
    _, _, *table = rows("| API | versions")
    cells = {name: changes(versions) for names, versions in table for name in names.split(", ")}
    assert sum(len(names.split(", ")) for names, _ in table) == len(cells)
    offered: dict[str, str] = {}
    for release in RELEASES:
        offered |= {name: since[release] for name, since in cells.items() if release in since}
        assert offered == dict(ranges(release))
    assert all(set(since) <= set(RELEASES) for since in cells.values())


def test_releases_and_levels_are_those_that_are_offered() -> None:
    """Each release is in the table once, with its levels of `transaction.version`."""
    _, _, *table = rows("| releases | levels")
    found = [(release, levels) for releases, levels in table for release in releases.split(", ")]
    assert found == [(release, written(levels[0], levels[-1])) for release, levels in LEVELS.items()]


def test_options_and_bounds_are_those_of_the_code() -> None:
    """Every option is there; the highest of what is bounded is what the code compares with."""
    named = re.findall("`(--[a-z-]+)`", " ".join(row[0] for row in rows("| option | without it")))
    assert named == [*(option.name for option in serve.options), "--json"]
    options = {row[0]: row[1:] for row in rows("| option | without it")}
    assert options["`--release`"][0] == NEWEST and options["`--brokers`"][1].endswith(f"up to {MOST_BROKERS}")
    bounds = {row[0]: row[1] for row in rows("| what | at most")}
    mib = 2**20
    assert bounds["a frame"] == f"{LONGEST_FRAME // mib} MiB (Kafka: 100)"
    assert bounds["elements of the arrays of a message"] == f"{MOST_ELEMENTS:,}"
    assert bounds["requests under way on a connection"] == f"{MOST_PIPELINED:,}"
    assert bounds["connections"] == f"{MOST_CONNECTIONS:,}"
    assert bounds["a connection without bytes"] == f"{IDLE_SECONDS / 60:.0f} minutes"
    assert bounds["answers that a client does not read"] == f"{MOST_UNREAD // mib} MiB"
