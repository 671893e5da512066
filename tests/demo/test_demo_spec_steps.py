"""What steps of a session are in the spec: what a refiner says of the whole run, wherever somebody goes."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from support.demo.sessions import HURT, going, opened, ran
from support.runs.named_runs import registering
from support.toys import toy_refinement as toy

from harness.demo.session import questions
from harness.demo.session.live_session import LiveSession
from harness.simulate.trails.replay import Replay
from harness.verify.refinement import Refiner

toys = registering(toy.system(), autouse=False)


def judged(session: LiveSession) -> list[dict[str, Any]]:
    """Return what the steps are in the spec, after holding it against what a refiner says of the whole run."""
    refiner = Refiner(session.model)
    _, trace = refiner.follow(Replay(refiner.tables, session.trail()))
    judged = refiner.judge(trace)
    assert judged.failure is None
    reported = [json.loads(session.spec_of(n)) for n in range(1, session.at + 1)]
    names = [tuple(action.split("(")[0].split(" ")[0] for action in spec["actions"]) for spec in reported]
    assert names == list(judged.taken)
    return reported


@pytest.mark.parametrize("what", [*HURT, "toy/actors"])
def test_steps_are_in_the_spec_what_the_refiner_says(what: str, toys: None) -> None:
    """Also after going back and on along another branch, where responses count from when they are served."""
    kinds: Counter[str] = Counter()
    for seed in range(3):
        session = ran(what, 60, seed, inject_faults=False)
        session.refine(7)
        for back in (session.at, session.at // 2):
            session.rewind(back)
            session.refine()
            judged(session)
            session.start("end", 20)
            while session.run(3):
                session.refine(2)
            session.refine()
            reported = judged(session)
            kinds.update(spec["kind"] for spec in reported)
    assert {"step", "stutter"} <= set(kinds)


def test_step_is_again_in_the_spec_what_it_was_when_somebody_goes_back(toys: None) -> None:
    """A response that was served, and is not applied any more, no longer counts."""
    session = ran("toy/actors", 40, 2, inject_faults=False)
    session.refine()
    for back in range(session.at, -1, -1):
        session.rewind(back)
        session.refine()
        judged(session)


def test_step_outside_the_spec_is_told_and_explained(toys: None) -> None:
    """A follower that takes old values: the step is outside, and the nearest action is named with its guard."""
    session = opened()
    for seed in range(50):
        session.open("toy/actors", settings={"flaw": "takes-old-values"})
        going(session, 30, strategy="random", seed=seed)
        session.refine()
        reported = [json.loads(session.spec_of(n)) for n in range(1, session.at + 1)]
        outside = [n for n, spec in enumerate(reported, 1) if spec["kind"] == "outside"]
        if outside:
            break
    about = questions.about(session, outside[0])()
    assert about["explanation"][0].startswith(f"step {outside[0]} is not a step of the spec: ")
    assert about["explanation"][2:] == [
        "  nearest in the spec: Forget", "    only Crash may be Forget, and this step is Apply"
    ]
    assert any(spec["kind"] != "outside" for spec in reported[outside[0] :])  # the steps after it are judged, too
