"""The verbs of a demo in a terminal that open something else, and those that read and write files.

A file appears complete or not at all, and an existing one is replaced only on request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from harness.demo.session.live_session import of_trail
from harness.demo.session.opened_model import BUDGETS
from harness.demo.session.questions import EXPORTS, LINKS, exported, trail_of
from harness.demo.session.snapshot import about_tour
from harness.demo.terminal.console import Console, Verb, either, first, number, one
from harness.model import Refusal, find_model, find_scenario, model_specs, scenarios, tours
from harness.record import read_trail
from harness.record.files import write_atomically

OVER = "over"
"""The word that lets a file be replaced."""


def target(words: list[str], usage: str) -> Path:
    """Return the file that words name. Raises Refusal if it must not be written."""
    over = len(words) > 1 and words[-1] == OVER
    name = " ".join(words[:-1] if over else words)
    if not name:
        raise Refusal(f"expected {usage}, found no file")
    path = path_of(name)
    if path.exists() and not over:
        raise Refusal(f"{name} is there already; say {OVER} after it to replace it")
    return path


def path_of(name: str) -> Path:
    """Return the path that a name is. Raises Refusal for a folder, and for what no file can be called."""
    try:
        path = Path(name).expanduser()
        path.resolve()
        with suppress(FileNotFoundError, NotADirectoryError):
            path.stat()  # from Python 3.14 on, is_dir() says no to a name that is too long
        is_folder = path.is_dir()
    except (OSError, ValueError, RuntimeError):
        raise Refusal(f"no file can be called {name[:60]!r}; give another path") from None
    if is_folder:
        raise Refusal(f"{name} is a folder; give the path of a file")
    return path


def write(path: Path, lines: Iterable[str]) -> None:
    """Write a file. Raises Refusal."""
    try:
        write_atomically(path, lines)
    except Refusal as error:
        raise Refusal(str(error).replace("give another place with --out", "give another place")) from None


def save(console: Console, words: list[str]) -> None:
    """Write the trail of the run up to the present."""
    path = target(words, "save FILE")
    trail = console.session.trail()
    write(path, trail.each_line())
    console.note_saved()
    count = len(trail.choices)
    console.said = [f"{count} step{'s' * (count != 1)} written to {path}; kafka-proto replay {path} makes them again"]


def load(console: Console, words: list[str]) -> None:
    """Show the end of a trail that was written before, by whichever command, or that a link of the page carries."""
    name = " ".join(words)
    if not name:
        raise Refusal("expected load FILE, found no file")
    is_link = any(mark in name for mark in LINKS)
    trail = trail_of(name) if is_link else read_trail(path_of(name))
    console.session.become(of_trail(trail))
    console.said = [f"{'the link' if is_link else name}: {where_it_ends(console)}"]


def trails(console: Console) -> Iterable[str]:
    """Return the trails that are here, and those where the other commands write them."""
    return sorted(str(path) for folder in (Path(), Path("out")) for path in folder.glob("*.trail.jsonl"))


def where_it_ends(console: Console) -> str:
    """Return what is to be seen at the present step, in words."""
    session = console.session
    found = session.violation
    ends = f"violates {found.violated}" if found is not None else "no violation"
    return f"at step {session.at} of {session.branch.length}, {ends}"


def open_(console: Console, words: list[str]) -> None:
    """Show a model, a scenario or a tour from its start: `open WHAT [NAME=VALUE ...] [own|generous]`."""
    if not words:
        raise Refusal("expected open MODEL, SCENARIO or TOUR, found nothing; Tab completes their names")
    what, *rest = words
    budget = rest.pop() if rest and rest[-1] in BUDGETS else None
    if is_tour(what):
        if rest or budget:
            raise Refusal(f"a tour has its own sizes; leave out {' '.join(words[1:])}")
        tour(console, [what])
        return
    sizes, settings = chosen(what, rest)
    console.session.open(what, sizes, settings, budget)
    console.said = [f"{what}: {console.session.opened.title}"]


def reopen(console: Console, words: list[str]) -> None:
    """Show a session again that was left for another one."""
    console.session.reopen(number(words, "the number of a session, as sessions lists them"))
    console.said = [f"{console.session.opened.title}: {where_it_ends(console)}"]


def kept(console: Console) -> Iterable[str]:
    """Return the numbers of the sessions that can be reopened."""
    return (str(session.number) for session in console.session.kept_sessions.listed())


def is_tour(name: str) -> bool:
    return any(found.name == name for found in tours())


def chosen(what: str, pairs: list[str]) -> tuple[dict[str, int], dict[str, str]]:
    """Return the sizes and settings that `NAME=VALUE` words give. Raises Refusal."""
    sizes: dict[str, int] = {}
    settings: dict[str, str] = {}
    known = sizes_of(what) if pairs else {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise Refusal(f"expected NAME=VALUE, own or generous after {what}, found {pair!r}")
        if name not in known:
            settings[name] = value
        elif value.isdecimal():
            sizes[name] = int(value)
        else:
            raise Refusal(f"size {name} must be a whole number, not {value!r}")
    return sizes, settings


def sizes_of(what: str) -> Mapping[str, object]:
    scenario = find_scenario(what)
    return find_model(scenario.model if scenario is not None else what).sizes


def things(console: Console, words: list[str]) -> Iterable[str]:
    """Return what can be opened."""
    if words:
        return sorted(f"{name}=" for name in sizes_of(words[0])) if not is_tour(words[0]) else ()
    return sorted((
        *(spec.name for spec in model_specs()), *(row.name for row in scenarios()), *(found.name for found in tours()),
    ))


def tour(console: Console, words: list[str]) -> None:
    """Begin a tour: before its first step, with all steps kept ahead."""
    name = one(words, "a tour")
    console.session.tour(name)
    console.said = [f"{about_tour(console.session)} Enter on an empty line, or next, goes on"]


def next_(console: Console, words: list[str]) -> None:
    """Go on to the next kept step; in a tour, to the next caption."""
    session = console.session
    if session.at == session.branch.length:
        raise Refusal("no step is kept ahead of this one; take one, or run")
    console.stepper.forward(session.at + 1)


def export(console: Console, words: list[str]) -> None:
    """Write the run in another form, as `kafka-proto show --as FORM` does, or as a history."""
    if not words or words[0] not in EXPORTS:
        found = " ".join(words) or "nothing"
        raise Refusal(f"expected export FORM FILE with the form {', '.join(EXPORTS)}, found {found!r}")
    path = target(words[1:], f"export {words[0]} FILE")
    write(path, exported(console.session.trail(), words[0]).removesuffix("\n").split("\n"))
    console.said = [f"written to {path}"]


FILES = (
    Verb("open WHAT [NAME=N]", "show a model, scenario or tour from its start; NAME=N sets a size", "this demo", open_,
         things),
    Verb("reopen N", "show session N again", "this demo", reopen, first(kept)),
    Verb("tour NAME", "begin a guided tour", "this demo", tour, first(lambda _: (found.name for found in tours()))),
    Verb("next", "the next step of a tour, or the next kept one", "this demo", next_),
    Verb("save FILE [over]", "write the run as a trail; over: replace the file", "this demo", save),
    Verb("load FILE|LINK", "show a trail, or what a link carries", "this demo", load, first(trails)),
    Verb("export FORM FILE", f"write it as {', '.join(EXPORTS)}", "this demo", export, either(*EXPORTS)),
)
