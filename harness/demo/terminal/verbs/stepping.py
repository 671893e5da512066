"""The verbs of a demo in a terminal that take steps, inject and heal faults, run, and go back and forth."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from harness.demo.session.as_json import Json
from harness.demo.session.why_disabled import no_fault, why_no_actor, why_no_message
from harness.demo.terminal.console import MOST_SHOWN, Console, Verb, either, first, number, one, shown_steps
from harness.model import Refusal

# Messages


def on_message(verb: str, name: str) -> Callable[[Console, list[str]], None]:
    """Return what does something to a message under way; `verb` is what the session calls it."""

    def do(console: Console, words: list[str]) -> None:
        text = one(words, f"a message to {name}, such as m1")
        message = console.message(text)
        fits = [option for option in console.possible(verb) if option["message"] == message["id"]]
        if not fits:
            fits = [option for option in console.possible(verb) if same(console, option, message)]
        if not fits:
            why = why_no_message(console.session.model, console.present(), verb, message)
            raise Refusal(f"cannot {name} {text} now: {why}")
        console.take_one(fits, f"{name} {text}")

    return do


def same(console: Console, option: Json, message: Json) -> bool:
    """Say whether an option is about a copy of a message: equal messages are one to their receiver."""
    other = next((m for m in console.present()["in_flight"] if m["id"] == option["message"]), None)
    alike = ("from", "to", "type", "fields", "state")
    return other is not None and all(other[key] == message[key] for key in alike)


def numbered(console: Console) -> Iterable[str]:
    """Return the numbers of the messages under way."""
    return (f"m{n}" for n in range(1, len(console.present()["in_flight"]) + 1))


# Actors and links


def on_actor(verb: str) -> Callable[[Console, list[str]], None]:
    """Return what injects or heals a fault of an actor."""

    def do(console: Console, words: list[str]) -> None:
        who = one(words, f"an actor to {verb}")
        fits = [option for option in console.possible(verb) if option["args"][:1] == [who]]
        if not fits:
            raise Refusal(f"cannot {verb} {who} now: {why_not(console, verb, who)}")
        console.take_one(fits, f"{verb} {who}")

    return do


def why_not(console: Console, verb: str, who: str) -> str:
    """Return why an actor cannot be crashed, paused, restarted or resumed."""
    if who not in console.session.lanes:
        return f"there is nobody of that name; there are {', '.join(console.session.lanes)}"
    others = [option["args"][0] for option in console.possible(verb)]
    status = console.present()["gates"].get(who, {}).get("status", "up")
    if others and verb in ("crash", "pause") and status == "up":
        return f"possible are {', '.join(others)}"
    return why_no_actor(console.session.model, console.present(), verb, who)


def able(verb: str) -> Callable[[Console, list[str]], Iterable[str]]:
    """Return what gives the actors for which that is possible."""
    return first(lambda console: (option["args"][0] for option in console.possible(verb)))


def on_link(verb: str, name: str) -> Callable[[Console, list[str]], None]:
    """Return what separates two actors or heals that; only a one-way cut has a direction."""

    def do(console: Console, words: list[str]) -> None:
        if len(words) != 2:
            raise Refusal(f"expected two actors to {name}, found {' '.join(words) or 'nothing'!r}")
        wanted = words if verb == "one_way" else sorted(words)
        fits = [e for e in console.possible(verb) if (e["args"] if verb == "one_way" else sorted(e["args"])) == wanted]
        if not fits:
            pairs = ", ".join(" ".join(option["args"]) for option in console.possible(verb)[:MOST_SHOWN])
            why = "nobody is cut off" if verb == "heal" else no_fault(console.session.model, verb)
            why = f"possible are {pairs}" if pairs else why
            raise Refusal(f"cannot {name} {' '.join(words)} now: {why}")
        console.take_one(fits, f"{name} {' '.join(words)}")

    return do


def linked(verb: str) -> Callable[[Console, list[str]], Iterable[str]]:
    """Return what gives the actors that a link can be cut or healed between."""

    def follows(console: Console, words: list[str]) -> Iterable[str]:
        pairs = [option["args"] for option in console.possible(verb)]
        if verb != "one_way":
            pairs += [pair[::-1] for pair in pairs]
        if not words:
            return (pair[0] for pair in pairs)
        return (pair[1] for pair in pairs if pair[0] == words[0]) if len(words) == 1 else ()

    return follows


def choosing(verb: str) -> Callable[[Console, list[str]], None]:
    """Return what takes a step of a kind: the only one, or the one that the words are about."""

    def do(console: Console, words: list[str]) -> None:
        options = console.possible(verb)
        fits = [option for option in options if all(is_about(word, option) for word in words)]
        if not options:
            raise Refusal(f"there is no {'election' if verb == 'elect' else verb} that could happen now")
        if not fits:
            raise Refusal(f"no such {'election' if verb == 'elect' else verb}; possible are {shown_steps(options)}")
        console.take_one(fits, " ".join([verb, *words]))

    return do


def is_about(word: str, option: Json) -> bool:
    return word in option["args"] or word == option["action"] or word == option["process"]


def choices(verb: str) -> Callable[[Console, list[str]], Iterable[str]]:
    """Return what gives the words that tell the steps of a kind apart."""

    def follows(console: Console, words: list[str]) -> Iterable[str]:
        options = [option for option in console.possible(verb) if all(is_about(word, option) for word in words)]
        return (word for option in options for word in (option["action"], *option["args"]) if word not in words)

    return follows


# Running, and going back and forth


def run(console: Console, words: list[str]) -> None:
    """Let the strategy decide; the console's host takes the steps."""
    steps = int(words.pop(0)) if words and words[0].isdecimal() else None
    if words[:1] == ["until"]:
        until = ":".join(words[1:])
    elif words:
        raise Refusal(f"expected run [N] [until violation | action NAME | step N | end], found {' '.join(words)!r}")
    else:
        until = "violation"
    console.session.start(until, steps)


def runs_until(console: Console, words: list[str]) -> Iterable[str]:
    if words[-1:] == ["until"]:
        return ("violation", "action", "step", "end")
    if words[-2:] == ["until", "action"]:
        return actions(console)
    return () if "until" in words else ("until",)


def actions(console: Console) -> list[str]:
    """Return the actions that have happened or could happen now."""
    session = console.session
    happened = {record.step.action for record in session.branch.records if record.step is not None}
    return sorted(happened | {option["action"] for option in console.present()["enabled"]})


def pause_or(console: Console, words: list[str]) -> None:
    """Pause an actor; without one, stop a run."""
    if words:
        on_actor("pause")(console, words)
    else:
        console.session.pause()


def strategy(console: Console, words: list[str]) -> None:
    if not 1 <= len(words) <= 2 or not all(word.isdecimal() for word in words[1:]):
        raise Refusal(f"expected strategy NAME [SEED], found {' '.join(words) or 'nothing'!r}")
    console.session.set_strategy(words[0], int(words[1]) if len(words) == 2 else None)
    runner = console.session.runner
    console.said = [f"{runner.name} decides in a run, with the seed {runner.seed}"]


def is_on(verb: str, words: list[str]) -> bool:
    """Return whether the only word is `on`. Raises Refusal for any but `on` and `off`."""
    if words not in (["on"], ["off"]):
        raise Refusal(f"expected {verb} on or {verb} off, found {' '.join(words) or 'nothing'!r}")
    return words == ["on"]


def faults(console: Console, words: list[str]) -> None:
    console.session.set_strategy(inject_faults=is_on("faults", words))
    console.said = [f"a run {'may' if words == ['on'] else 'does not'} inject faults"]


def spare(console: Console, words: list[str]) -> None:
    console.session.set_strategy(spares=is_on("spare", words))
    console.said = ["a run neither heals nor restarts what you cut, crashed, paused or held" if words == ["on"]
                    else "a run may mend every fault"]


def speed(console: Console, words: list[str]) -> None:
    console.session.set_strategy(speed=number(words, "steps a second, or 0 for as fast as possible"))


def rewind(console: Console, words: list[str]) -> None:
    console.session.rewind(number(words, "the step to go back to") if words else console.session.at - 1)


def forward(console: Console, words: list[str]) -> None:
    session = console.session
    to = session.branch.length if words == ["end"] else number(words, "the step to go on to") if words else None
    if to is None and session.at == session.branch.length:
        raise Refusal("no step is kept ahead of this one; take one, or run")
    console.stepper.forward(session.at + 1 if to is None else to)


def quit_(console: Console, words: list[str]) -> None:
    console.is_left = True


STEPPING = (
    Verb("deliver M", "let message M arrive", "messages", on_message("deliver", "deliver"), first(numbered)),
    Verb("drop M", "lose message M", "messages", on_message("drop", "drop"), first(numbered)),
    Verb("duplicate M", "send a copy of message M", "messages", on_message("duplicate", "duplicate"), first(numbered)),
    Verb("hold M", "delay message M until it is released", "messages", on_message("delay", "hold"), first(numbered)),
    Verb("release M", "let a held message go on", "messages", on_message("release", "release"), first(numbered)),
    Verb("crash A", "crash actor A: what is not on disk is lost", "actors", on_actor("crash"), able("crash")),
    Verb("restart A", "start A again", "actors", on_actor("restart"), able("restart")),
    Verb("pause [A]", "pause A: its messages wait; without A, stop a run", "actors", pause_or, able("pause")),
    Verb("resume A", "let A go on", "actors", on_actor("resume"), able("resume")),
    Verb("partition A B", "separate A and B", "actors", on_link("partition", "partition"), linked("partition")),
    Verb("cut A B", "cut one way: B does not hear A", "actors", on_link("one_way", "cut"), linked("one_way")),
    Verb("heal A B", "mend what separates A and B", "actors", on_link("heal", "heal"), linked("heal")),
    Verb("elect [WHO]", "hold an election", "actors", choosing("elect"), choices("elect")),
    Verb("timer [NAME|A]", "let a timer fire", "actors", choosing("timer"), choices("timer")),
    Verb("run [N] [until ...]", "let the strategy decide; until violation, action NAME, step N, end", "time", run,
         runs_until),
    Verb("strategy NAME [SEED]", "how a run chooses steps: random, pct or guided", "time", strategy,
         either("random", "pct", "guided")),
    Verb("faults on|off", "whether a run may inject faults", "time", faults, either("on", "off")),
    Verb("spare on|off", "whether a run leaves alone what you cut, crashed, paused or held", "time", spare,
         either("on", "off")),
    Verb("speed N", "steps a second in a run; 0: as fast as possible", "time", speed),
    Verb("rewind [N]", "go back to step N, or one step; what came after is kept", "time", rewind),
    Verb("forward [N|end]", "go on to a kept step", "time", forward, either("end")),
    Verb("undo", "undo the last step, rewind, switch, open or reopen", "time",
         lambda console, words: console.session.undo()),
    Verb("branch NAME", "give this branch a name", "time",
         lambda console, words: console.session.name_branch(" ".join(words))),
    Verb("switch NAME", "go to another branch", "time", lambda console, words: console.session.switch(" ".join(words)),
         first(lambda console: console.session.branches)),
)
LEAVING = (Verb("quit", "leave; Ctrl-D does, too", "this demo", quit_),)
