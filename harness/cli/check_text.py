"""What `check` prints: its verdict, counts, bounds, what keeps growing, counterexamples as tables."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from harness.cli.check_expected import first_line
from harness.cli.check_limits import goes_beyond_specs, limit_words
from harness.cli.check_options import PLAIN, SPARK
from harness.record.wording import counted


def summary_lines(summary: Mapping[str, Any], tables: Mapping[str, str]) -> Iterator[str]:
    """Yield what a person is shown of a search; `tables` are its counterexamples, by property."""
    took = f"{summary['seconds']:.1f} s" if summary["engine"] == SPARK else f"{summary['cpu_seconds']:.1f} s of CPU"
    counts = (
        f"{counted(summary['distinct'], 'distinct state')}, {summary['generated']:,} generated, "
        f"depth {summary['depth']}, {took}"
    )
    name = summary["scenario"] or summary["model"]
    if not summary["violated"]:
        yield f"{name}: {first_line(summary, counts)}"
        yield from (f"  {line}" for line in [*_how(summary), *limit_words(summary)])
    for violated in summary["violated"]:
        steps = counted(violated["length"] - 1, "step")
        if violated["kind"] == "temporal":
            again = violated["back_to"]
            if again is not None:
                cycle = violated["length"] + 1 - again
                steps = f"{counted(violated['length'], 'step')}, the last {cycle} forever"
            after = ", then stuttering" if again is None else ""
            headline = f"{violated['property']} is violated by {steps}{after}"
        else:
            fewest = "the fewest possible" if violated["shortest"] else "perhaps not the fewest possible"
            headline = f"{violated['property']} is violated after {steps}, {fewest}"
        expected = summary["expected"]
        as_expected = ", as expected" if violated["property"] == expected else f", expected {expected}" if (
            expected and expected not in (each["property"] for each in summary["violated"])) else ""
        yield f"{name}: {headline}{as_expected}"
        yield textwrap.fill(violated["reason"], 100, initial_indent="  ", subsequent_indent="  ")
        yield f"  {counts}"
        yield from (f"  {line}" for line in _how(summary))
        unmet = [note for note in violated.get("fairness", ()) if not note.endswith("in every state of the cycle")]
        yield from (f"  {note}" for note in unmet)
        if rest := len(violated.get("fairness", ())) - len(unmet):
            yield f"  fair and never enabled in the cycle: {counted(rest, 'other action')}"
        yield tables[violated["property"]]
        yield f"  trail   {violated['trail']}\n  replay  kafka-proto replay {violated['trail']}"
    for prop, holds in summary["properties"].items():
        if holds is None:
            yield f"  {prop}: not checked, as the search is incomplete"
        elif holds:
            yield f"  {prop} holds"
    for prop, witness in summary["witnesses"].items():
        if witness is not None:
            after = "after" if witness["shortest"] else "within"
            yield f"  {prop}: reached {after} {counted(witness['length'] - 1, 'step')}"
        elif summary["complete"]:
            yield f"  {prop}: never reached"
    for timer, number in (summary["timers"] or {}).items():
        if timer and number and timer not in summary["actions"]:
            yield f"  {timer}: no timer of this name fired; see the actions in --json for those that did"
    for prop in summary["unchecked"]:
        instead = f"kafka-proto simulate {name} checks it"
        if summary["engine"] not in (PLAIN, SPARK) and not goes_beyond_specs(summary):
            instead = f"--property {prop} checks it"
        yield f"  {prop}: not checked, as it is a temporal property; {instead}"
    if "collision_probability" in summary:
        chance = summary["collision_probability"]
        yield f"  probability that a state was missed because two have the same fingerprint: about {chance:.1e}"


def _how(summary: Mapping[str, Any]) -> list[str]:
    """Say by which engine, under which faults and within which bounds, if these are not the usual ones."""
    if summary["engine"] != PLAIN and not goes_beyond_specs(summary):
        return []
    within = []
    for kind, number in summary["faults"].items():
        if isinstance(number, int):
            within.append(f"{kind}={number}")
    whom = summary["faults"].get("targets")
    rules = [counted(len(summary["faults"][kind]), noun) for kind, noun in (("rules", "rule"), ("timed", "timed fault"))
             if kind in summary["faults"]]
    faults = ", ".join([*within, *rules]) or "no faults"
    timers = summary["timers"]
    times = "any number of timers"
    if timers is not None:
        times = ", ".join(f"at most {counted(number, name or 'timer')}" for name, number in timers.items()) + " a run"
    on = f" (targets {', '.join(whom)})" if whom else ""
    by = "by --engine plain, " if summary["engine"] == PLAIN else ""
    lines = [f"{by}with {faults}{on}, {times}"]
    if summary["reductions"]:
        lines.append(f"reduced by {', '.join(summary['reductions'])}: each searched state stands for others")
    return lines
