"""What a person may do in a session of the demo, at random, and all there is to see of one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from harness.demo.session.live_session import LiveSession
from harness.demo.session.snapshot import snapshot_text
from harness.simulate.strategies.chance import Seeded

HURT = ("kafka/4.0", "replication/kip-320/actors", "compaction/pulsar/actors")


def snapshot(session: LiveSession) -> dict[str, Any]:
    """Return all of a session, as a page gets it but for the catalogue."""
    found: dict[str, Any] = json.loads(snapshot_text(session, "null"))
    return found


def seen(session: LiveSession) -> dict[str, Any]:
    """Return all there is to see of a session that verbs bring about and take back."""
    session.refine()
    shown = snapshot(session)
    for name in ("version", "epoch", "spec"):
        del shown[name]
    for name in ("can_undo", "strategy", "seed", "until"):
        del shown["present"][name]
    return shown


def meddle(session: LiveSession, chance: Seeded, verbs: int) -> Iterator[str]:
    """Do what a person may do, at random, and say each time what was done."""
    for _ in range(verbs):
        verb = ("take", "take", "take", "rewind", "forward", "switch", "run")[chance.index(7, "verb")]
        if verb == "take" and session.node.options:
            session.take(chance.index(len(session.node.options), "step"), at=session.at)
        elif verb == "rewind":
            session.rewind(session.at - chance.index(min(session.at, 8) + 1, "back"))
        elif verb == "forward":
            session.forward(session.at + chance.index(session.branch.length - session.at + 1, "on"))
        elif verb == "switch":
            session.switch(list(session.branches)[chance.index(len(session.branches), "branch")])
        elif verb == "run":
            session.start("end", 3)
            session.run()
        else:
            continue
        yield verb
