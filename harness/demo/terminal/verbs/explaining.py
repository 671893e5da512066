"""The verbs of a demo in a terminal that answer why: the spec's view of a step, reasons, shorter runs, links."""

from __future__ import annotations

from collections.abc import Sequence

from harness.demo.session import questions
from harness.demo.session.as_json import Json
from harness.demo.session.branches import Ending
from harness.demo.session.live_session import LiveSession, of_trail
from harness.demo.session.violation_search import MOST_RUNS, ViolationSearch
from harness.demo.terminal.console import Console, LongJob, Verb, first, number, one
from harness.demo.terminal.verbs.stepping import actions
from harness.model import Refusal
from harness.record.wording import counted
from harness.simulate.trails.shrink import Shrunk

MOST_INSTANCES = 8


def spec(console: Console, words: list[str]) -> None:
    """Tell what a step is in the spec, and which guards it came past, with the values that they read."""
    session = console.session
    step = number(words, "the number of a step") if words else session.at
    if not step:
        raise Refusal("no step was taken yet; spec explains a step")
    session.refine()
    found = questions.about(session, step)()
    in_spec = found["step"]["spec"] or {"text": "this model has no spec to check its steps against"}
    console.said = [f"step {step}: {found['step']['label']}", f"  {in_spec['text']}"]
    console.said += _guards("guards, here", found["guards"]) + _guards("guards, in the spec", found["spec_guards"])
    if found["explanation"]:
        console.said += ["", *found["explanation"]]


def _guards(title: str, guards: Sequence[Json]) -> list[str]:
    if not guards:
        return []
    lines = ["", title]
    for guard in guards:
        lines.append(f"  {'yes' if guard['outcome'] else 'no ':3}  {guard['text']}")
        lines += [f"         {value}" for value in guard["values"]]
        if guard["inner"]:
            lines.append(f"         decided in {guard['inner']}")
    return lines


def why(console: Console, words: list[str]) -> None:
    """Tell why an action is not possible now: per instance, what it stops at."""
    action = one(words, "an action, such as the name of a step")
    console.session.refine()

    def tell(found: Json) -> None:
        console.said = _reasons(action, found)

    console.job = LongJob(f"looking for what {action} stops at", questions.why(console.session, action), tell)


def _reasons(action: str, found: Json) -> list[str]:
    """Return what there is to say about an action. Raises Refusal for an unknown one."""
    levels = [("", found["model"]), *([("in the spec", found["spec"])] if found["spec"] else [])]
    if not any(level["seen"] for _, level in levels):
        raise Refusal(f"no action {action!r} was possible anywhere near; Tab after why completes those that were")
    return [line for where, level in levels for line in _level(action, where, level)]


def _level(action: str, where: str, level: Json) -> list[str]:
    title = f"{level['name']}{f', {where}' if where else ''}"
    if not level["seen"]:
        return [title, f"  {action} was possible nowhere near"]
    lines = [title, *(f"  possible now: {label}" for label in level["enabled"])]
    for instance in level["not"][:MOST_INSTANCES]:
        lines += [f"  not {instance['instance']}", f"      {instance['why']}"]
    more = level["more"] + max(0, len(level["not"]) - MOST_INSTANCES)
    return [*lines, *([f"  and {more} more"] if more else [])]


def shrink(console: Console, words: list[str]) -> None:
    """Find a shorter run that violates the same, and show it in a branch of its own."""
    session = console.session
    trail, branch = session.trail(), session.branch

    def show(found: tuple[Shrunk, Ending | None]) -> None:
        shorter, ending = found
        session.add_shrunk(shorter, ending, branch)
        console.stepper.forward(session.branch.length)
        proof = ", and there is no shorter one" if shorter.proved else ""
        became = f"{counted(shorter.had, 'step')} became {shorter.has}{proof}"
        console.said = [f"{became}; they are the branch {session.branch.name}"]

    console.job = LongJob("looking for a shorter run", lambda: questions.shrunk(trail), show)


def find(console: Console, words: list[str]) -> None:
    """Look for a violation from the start, one seed and strategy after the other, and show the first hit."""
    runs = number(words, "how many runs to make at most") if words else MOST_RUNS
    session = console.session
    epoch = session.epoch
    search = ViolationSearch(session.opened, runs, 0, session.runner.inject_faults)

    def work() -> LiveSession | None:
        found = search.run()
        return of_trail(found) if found is not None else None

    def show(found: LiveSession | None) -> None:
        kept = ""
        if found is not None and session.epoch == epoch:
            session.become(found)
            kept = "; shrink makes it shorter, undo leads back"
        console.said = [f"{search.outcome()}{kept}"]

    console.job = LongJob("looking for a violation", work, show, search.progress, search.stop)


def link(console: Console, words: list[str]) -> None:
    """Tell the link that carries the run, for the page."""
    console.said = ["put this behind the address of a demo's page, or say load and this:",
                    questions.link(console.session.trail())]


EXPLAINING = (
    Verb("spec [N]", "what step N is in the spec, and the guards it came past", "looking", spec),
    Verb("why ACTION", "why an action is not possible now", "looking", why, first(actions)),
    Verb("shrink", "a shorter run with the same violation, in a branch", "time", shrink),
    Verb("find [RUNS]", "find a violation: try seeds and strategies, show the first hit", "time", find),
    Verb("link", "the run as a link for the page", "this demo", link),
)
