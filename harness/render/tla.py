"""A history as a TLA+ module of states with the original variable names, for TLC to confirm beside the original module.

The module extends the one that the model was written after. Its `TraceNext` takes the original `Next` from each state
of `Trace` to the one after it, so that TLC ends in one of these ways:

- `TraceBegins` is violated, or a deadlock: the first state of `Trace` is no initial one, or the last state that TLC
  shows has no step of `Next` to the state after it in `Trace`; no behaviour;
- another invariant is violated, in a trace as long as `Trace`: a behaviour that violates what the run says it does;
- no error: a behaviour.

What lives here: values as text of TLA+, the module and its configuration. What does not: which module and which
constants belong to a model (`harness.model.module`).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from harness.model import UNORDERED_SET, FrozenMap, Message, Model, Refusal, State, Value, record_of, slot
from harness.model.module import TlaModule, module_of
from harness.record import History

NAME = "Trace"
"""What the module is called if it has no file to be called after."""
WIDTH = 110
IDENTIFIER = re.compile(r"(?=.*[A-Za-z])(?!WF_|SF_)[A-Za-z0-9_]+")
NUMBER = re.compile(r"-?[0-9]+")
RULE = "=" * 78

EXPLANATION = r"""
(* To have TLC confirm it, put this file and its configuration beside the original module, and run

       java -cp tla2tools.jar tlc2.TLC -config {name}.cfg {name}

   What TLC may say, and what it means:
{meaning}
   - "Invariant TraceBegins is violated": the first state of Trace is no initial state of {extends}.
   - "Deadlock reached": no step of {extends} leads from the last state shown to the next one of Trace.
*)"""
VIOLATED = """\
   - "Invariant {invariant} is violated", after {length} states: confirmed.
   - "No error has been found": a behaviour of {extends}, but one that does not violate {invariant}."""
ONLY_STEPS = """\
   - "No error has been found": confirmed, a behaviour of {extends}."""


def write(history: History, model: Model, name: str = NAME, extends: str | None = None) -> str:
    """Return the module, with its configuration after its end, where TLA+ reads no further.

    `extends` names the original module where it is called otherwise than the one that the model was written after.
    Raises Refusal for a model without a module, and without `extends` for a model that repairs its module.
    """
    return _Export(history, model, name, extends).text()


def files(history: History, model: Model, out: Path | None, extends: str | None = None) -> dict[Path | None, str]:
    """Return the files of an export: the module for `out`, and for a NAME.tla its configuration NAME.cfg before it.

    Such a module is called NAME, as TLC wants it. Raises Refusal as `write` does, and for a NAME that TLA+ refuses.
    """
    if out is None or out.suffix != ".tla":
        return {out: write(history, model, extends=extends)}
    export = _Export(history, model, out.stem, extends)
    return {out.with_suffix(".cfg"): "\n".join(export.config()) + "\n", out: export.text()}


def tla_text(value: Value, names: Iterable[str] = (), width: int = 0, indent: int = 0) -> str:
    """Return a value as TLA+: text is a model value, None the model value `None`, `{"$str": x}` a string.

    A map is a function where its keys are numbers or among `names`, else a record; attrs classes are records, a
    message's with its `type`. With a `width`, what does not fit into a line is broken into several, the first of which
    begins in column `indent`. Raises TypeError for a value that TLA+ does not have.
    """
    return _Writer(frozenset(names), width).write(value, indent)


@attrs.frozen
class _Writer:
    """Writes values, given which texts are keys of functions."""

    names: frozenset[str]
    width: int

    def write(self, value: Value, indent: int) -> str:
        if value is None:
            return "None"
        if isinstance(value, str):
            return identifier(value)
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, int):
            return str(value)
        if isinstance(value, tuple):
            return self._list("<<", [("", item) for item in value], ">>", indent)
        if isinstance(value, frozenset):
            items = sorted(value, key=lambda item: tla_text(item, self.names))
            return self._list("{", [("", item) for item in items], "}", indent)
        if isinstance(value, FrozenMap):
            return self._map(value, indent)
        if attrs.has(type(value)):
            return self._list("[", [(f"{name} |-> ", item) for name, item in record_of(value).items()], "]", indent)
        raise TypeError(f"a {type(value).__name__} has no form in TLA+; use the values of harness.model.values")

    def _map(self, value: FrozenMap[Any, Any], indent: int) -> str:
        if set(value) == {"$str"}:
            return '"' + str(value["$str"]).replace("\\", "\\\\").replace('"', '\\"') + '"'
        keys = [key if isinstance(key, str) else str(key) for key in value]
        numbers = all(NUMBER.fullmatch(key) for key in keys)
        if numbers and sorted(map(int, keys)) == list(range(1, len(keys) + 1)):
            in_order = sorted(value, key=int)
            return self._list("<<", [("", value[key]) for key in in_order], ">>", indent)
        items = list(zip(map(identifier, keys), value.values(), strict=True))
        if numbers or set(keys) <= self.names:
            items = [(f"{key} :> ", item) for key, item in items]
            return self._list("(", items, ")", indent, between=" @@ ")
        return self._list("[", [(f"{key} |-> ", item) for key, item in items], "]", indent)

    def _list(self, begin: str, items: list[tuple[str, Value]], end: str, indent: int, between: str = ", ") -> str:
        flat = _Writer(self.names, 0)
        line = begin + between.join(lead + flat.write(item, 0) for lead, item in items) + end
        if not self.width or indent + len(line) <= self.width:
            return line
        return begin + self._filled(items, indent + len(begin), len(end), between) + end

    def _filled(self, items: list[tuple[str, Value]], indent: int, end: int, between: str) -> str:
        """As many items on a line as fit, and those that are too long for any line over several."""
        flat, text, column = _Writer(self.names, 0), "", indent
        for n, (lead, item) in enumerate(items):
            following = len(between.rstrip()) if n < len(items) - 1 else end
            word = lead + flat.write(item, 0)
            if n and column + len(between) + len(word) + following > self.width:
                text, column = f"{text}{between.rstrip()}\n{' ' * indent}", indent
            elif n:
                text, column = text + between, column + len(between)
            if column + len(word) + following > self.width:
                word = lead + self.write(item, column + len(lead))
            text += word
            column = column + len(word) if "\n" not in word else self.width
        return text


def identifier(text: str) -> str:
    """Return a name as TLA+ allows it. Raises Refusal for one that cannot be made so."""
    found = re.sub(r"[^A-Za-z0-9_]", "_", str(text))
    if not IDENTIFIER.fullmatch(found) and not NUMBER.fullmatch(str(text)):
        raise Refusal(f"{text!r} cannot be a name in TLA+, where names have a letter; export the run in another form")
    return str(text) if NUMBER.fullmatch(str(text)) else found


class _Export:
    """One history on its way to a module."""

    def __init__(self, history: History, model: Model, name: str, extends: str | None) -> None:
        self.history = history
        self.model = model
        self.name = name
        self.module = _module(model, extends)
        self.states = list(_with_variables(history, model))
        for said in (name, self.module.name):
            if not IDENTIFIER.fullmatch(said):
                raise Refusal(f"{said!r} cannot be the name of a TLA+ module; use letters, digits and underscores")
        if name == self.module.name:
            raise Refusal(f"the module cannot have the name {name} of the module that it extends; choose another name")

    def text(self) -> str:
        variables = list(self.states[0])
        names = self.module.names
        lines = [
            f"{f' MODULE {self.name} ':-^78}",
            f"EXTENDS Integers, TLC, {self.module.name}",
            "",
            *self._invariant_lines(),
            "",
            *([*_filled("CONSTANTS ", [identifier(name) for name in names]), ""] if names else []),
            "VARIABLE trace_step  \\* the number of the state in Trace",
            "",
            f"TraceLength == {len(self.states)}",
            "",
            "\\* The states of the run, each below the action that leads to it.",
            "Trace == <<",
            *self._trace(variables),
            "  >>",
            "",
            *self._definitions(),
            "TraceState ==",
            *(f"    /\\ {variable} = Trace[trace_step].{variable}" for variable in variables),
            "",
            "TraceInit ==",
            "    /\\ trace_step = 1",
            "    /\\ TraceState",
            "",
            "TraceBegins == trace_step = 1 => Init",
            "",
            "TraceNext ==",
            "    \\/ /\\ trace_step < TraceLength",
            "       /\\ trace_step' = trace_step + 1",
            f"       /\\ {self._next}",
            "       /\\ TraceState'",
            "    \\/ /\\ trace_step = TraceLength",
            *_filled("       /\\ UNCHANGED <<", ["trace_step", *variables], ">>"),
            RULE,
            f"{self.name}.cfg:",
            "",
            *self.config(),
        ]
        return "\n".join(lines) + "\n"

    def config(self) -> list[str]:
        module = self.module
        lines = ["CONSTANTS"]
        lines += [f"    {name} = {name}" for name in map(identifier, (*module.names, *module.model_values))]
        lines += [f"    {name} = {{{', '.join(items)}}}" for name, items in module.sets.items()]
        lines += [f"    {name} = {text}" for name, text in module.plain.items()]
        lines += [f"    {name} <- Trace{name}" for name in (said.partition("(")[0] for said in module.chosen)]
        lines = lines if len(lines) > 1 else []
        checked = [self._invariant] if self._invariant else []
        return [*lines, "INIT TraceInit", "NEXT TraceNext", f"INVARIANTS {' '.join(['TraceBegins', *checked])}",
                "CHECK_DEADLOCK TRUE"]

    @property
    def _invariant(self) -> str | None:
        """The property that the run violates, where it is an invariant that TLC can check."""
        violated = self.history.end["verdict"].get("violated")
        known = (*self.module.invariants, *self.module.definitions)
        return violated if violated in known else None

    def _invariant_lines(self) -> list[str]:
        verdict, extends, length = self.history.end["verdict"], self.module.name, len(self.states)
        if self._invariant:
            meaning = VIOLATED.format(invariant=self._invariant, extends=extends, length=length)
        else:
            meaning = ONLY_STEPS.format(extends=extends)
        said = "nothing is violated" if verdict["ok"] else f"violates {verdict['violated']}: {verdict['reason']}"
        given = {**self.history.header["sizes"], **self.history.header["settings"]}
        facts = " ".join(f"{name}={value}" for name, value in sorted(given.items()) if value != "")
        source = [f"\\* {extends}: {self.module.source}"] if self.module.source else []
        return [
            f"\\* A run of {self.model.name}, {facts}",
            f"\\* {_plain(said)}",
            *source,
            *EXPLANATION.format(name=self.name, meaning=meaning, extends=extends).split("\n"),
        ]

    @property
    def _next(self) -> str:
        """The name of the next-state relation."""
        return f"NextOf{self.module.name}" if self.module.actions else "Next"

    def _definitions(self) -> list[str]:
        """What the original module does not say, or keeps to itself: what the property means, and `Next`."""
        module, lines = self.module, []
        if module.chosen:
            lines += ["\\* Init CHOOSEs, and TLA+ leaves open what. The configuration lets it choose what the run did."]
        for said, text in module.chosen.items():
            lines += _definition(f"Trace{said}", text)
        text = module.definitions.get(self._invariant or "", "")
        if text and self._invariant not in module.invariants:
            lines += _definition(self._invariant or "", text)
        if module.actions:
            lines += [f"{self._next} ==  \\* Next, which is LOCAL there"]
            lines += [*(f"    \\/ {action}" for action in module.actions), ""]
        return lines

    def _trace(self, variables: list[str]) -> Iterator[str]:
        names = self.module.names
        last = len(self.states) - 1
        for n, (event, state) in enumerate(zip(self.history.events, self.states, strict=True)):
            yield f"    \\* {n + 1}: {event.name}{' ' + _plain(event.detail) if event.detail else ''}"
            for at, variable in enumerate(variables):
                lead = f"    {' ' if at else '['}{variable} |-> "
                end = "," if at < len(variables) - 1 else "]" + ("," if n < last else "")
                yield lead + tla_text(state[variable], names, WIDTH, len(lead)) + end


def _filled(begin: str, words: Iterable[str], end: str = "") -> list[str]:
    """Return words with commas between them, in lines that go on below where the first word stands."""
    return textwrap.wrap(
        ", ".join(words) + end, WIDTH, initial_indent=begin, subsequent_indent=" " * len(begin),
        break_long_words=False, break_on_hyphens=False,
    )


def _definition(name: str, text: str) -> list[str]:
    gap = "" if text.startswith("\n") else " "
    return [*f"{name} =={gap}{text}".split("\n"), ""]


def _plain(text: str) -> str:
    """Return a text for a comment of one line."""
    return " ".join(text.split())


def _module(model: Model, extends: str | None) -> TlaModule:
    """Return the module that a model's runs are behaviours of. Raises Refusal if none is known."""
    found = module_of(model.name, model.sizes, model.settings)
    if found is None:
        raise Refusal(f"{model.name} follows no known TLA+ module; export the run in another form")
    if extends is None and not found.as_written:
        repairs = model.settings.get("repair") or "what is wrong with it"
        raise Refusal(f"{model.name} repairs {repairs}, so it differs from the published {found.name}; "
                      "name the module to check this run against with --module")
    return found if extends is None else attrs.evolve(found, name=extends, source="")


def _with_variables(history: History, model: Model) -> Iterator[Mapping[str, Value]]:
    """Yield the spec's variables in each state, history variables included, whether the run kept them or not."""
    keeps = model.network is UNORDERED_SET and not model.history_variables
    full = attrs.evolve(model, history_variables=True) if keeps else model
    taken: dict[str, Value] = {slot("discarded", a): frozenset() for a in model.addresses} if keeps else {}
    for event, state in zip(history.events, history.states(), strict=True):
        if keeps and isinstance(event.received, Message):
            name = slot("discarded", event.received.dest)
            taken[name] = taken[name] | {event.received}
        given: State = {**state, **taken}
        yield full.variables(given)
