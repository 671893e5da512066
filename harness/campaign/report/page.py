"""The page of a report: the outcome of a campaign in one HTML file that needs no other file.

Numbers come from `summary`, plots from `plots`; here they become sentences and tables. Everything that a table or a
protocol says is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from harness.campaign.checks import CALM, Rate, Share
from harness.campaign.client_checks import ClientsTally
from harness.campaign.clusters import ViolationCluster
from harness.campaign.judging import Rejudged
from harness.campaign.report import plots
from harness.campaign.report.compare import METHOD, Comparison, ViolationChange
from harness.campaign.report.markup import Markup, details, interval, joined, page, percent, section, table, tag, text
from harness.campaign.report.plots import Mark
from harness.campaign.report.summary import Remarkable, ScenarioVerdict, Summary, natural
from harness.campaign.report.witnesses import MOST_DRAWN, Witness
from harness.record.wording import counted

MOST_MIXES = 40
"""Fault mixes of a scenario that are listed, those of the most runs first."""
MOST_FAULT_PLOTS = 12
MOST_NAMES = 60
"""Guards or actions that are listed by name."""


def write(
    summary: Summary, clusters: Sequence[Witness], errors: Sequence[Witness], since: Comparison | None,
    again: Sequence[Rejudged] | None = None,
) -> str:
    """Return the page as HTML."""
    parts = [
        section("verdicts", "Verdicts", _verdicts(summary)),
        section("clusters", "Violations", _clusters(summary, clusters)),
        *([section("clients", "What clients saw", _clients(summary))] if summary.clients else []),
        section("faults", "Rates by faults", _faults(summary.by_faults)),
        *([section("sweep", "Rates by swept value", _sweep(summary.by_sweep))] if summary.by_sweep else []),
        section("coverage", "Coverage", _coverage(summary)),
        section("runs", "Slowest and longest runs", _runs(summary)),
        section("errors", "Errors of the code", _errors(summary, errors)),
        *([section("again", "Histories judged again", _again(again, bool(summary.stale)))]
          if again is not None else []),
        *([section("since", "Since the other campaign", _since(since))] if since is not None else []),
    ]
    links = [Markup(f'<a href="#{found.group(1)}">{found.group(2)}</a>') for part in parts
             if (found := re.search(r'id="(\w+)">\s*<h2>(.*?)</h2>', part))]
    whats = counted(len(summary.verdicts), "scenario or model") if len(summary.verdicts) == 1 else (
        f"{len(summary.verdicts)} scenarios or models")
    title = f"Campaign: {counted(summary.runs, 'run')} of {whats}"
    return page(title, [*_head(summary), tag("nav", joined(links, " ")), *parts])


def _head(summary: Summary) -> Iterator[Markup]:
    steps = sum(tally.steps for tally in summary.tallies)
    days = " and ".join(dict.fromkeys((summary.days[0], summary.days[-1])))
    codes = ", ".join(sorted({f"{tally.cell.package} {tally.cell.code}" for tally in summary.tallies}))
    yield tag("p", f"{counted(steps, 'step')}, {counted(summary.failing, 'violating run')}, "
                   f"{counted(summary.errors, 'error')} of the code. "
                   f"Started on {days} (UTC), by the code {codes}.", "quiet")
    if summary.stale:
        yield tag("p", f"The code of {', '.join(summary.stale)} has changed since these runs were made. What is "
                       "replayed now may end differently; what does not fit any more is shown as found.", "bad")
    yield tag("p", "Commands are for the folder that this page lies in.", "quiet")


def said_again(again: Sequence[Rejudged]) -> str:
    """Return in words how many stored histories were judged again, and how many agree with what their rows say."""
    runs, events = sum(one.runs for one in again), sum(one.events for one in again)
    wrong = sum(one.disagreeing for one in again)
    if not runs:
        return "no histories are stored, so none are judged again"
    agree = "all agree" if not wrong else f"{runs - wrong:,} agree, {wrong:,} DISAGREE"
    return (f"{runs:,} stored {'history' if runs == 1 else 'histories'} judged again from "
            f"{counted(events, 'event')} alone: {agree} with {'its' if runs == 1 else 'their'} record")


def _again(again: Sequence[Rejudged], is_stale: bool) -> Iterator[Markup]:
    """Show the outcome of judging the stored histories again."""
    said = said_again(again)
    yield tag("p", f"{said[:1].upper()}{said[1:]}.")
    if not again:
        return
    yield tag("p", "Digest, invariants and verdict, the record itself, the model's own actors, and the spec where "
                   "there is one, from the stored events alone.", "quiet")
    if is_stale:
        yield tag("p", "The code has changed since: histories that are none of this code's need not be wrong.", "bad")
    rows = [(one.what, one.runs, one.events, one.runs - one.disagreeing, one.refined,
             ", ".join(f"{kind} in {counted(runs, 'run')}" for kind, runs in one.kinds.items()) or "nothing")
            for one in again]
    yield table(("scenario or model", "#histories", "#events", "#agree", "#checked against spec", "found again"), rows)
    wrong = [(one.what, found.seed, ", ".join(found.kinds), found.sentence) for one in again for found in one.findings]
    if wrong:
        yield tag("p", "These do not agree; of each cell the first few are listed.", "bad")
        yield table(("scenario or model", "#seed", "kind", "what is wrong"), wrong)


def _verdicts(summary: Summary) -> Iterator[Markup]:
    judged = [one for one in summary.verdicts if one.as_expected is not None]
    good = sum(bool(one.as_expected) for one in judged)
    yield tag("p", f"{good} of {counted(len(judged), 'scenario')} as expected. Intervals are Wilson's, of 95 %.")
    rows = []
    for one in summary.verdicts:
        mark = {True: tag("span", "✓ as expected", "good"), False: tag("span", "✗ NOT as expected", "bad"),
                None: tag("span", "nothing is expected", "quiet")}[one.as_expected]
        name = joined([tag("b", one.what), tag("span", one.title, "quiet")], "<br>")
        rows.append((mark, name, said_of(one), *_counts(one)))
    heads = ("verdict", "scenario or model", "violated properties", "#runs", "#violating", "#rate", "#interval")
    yield table(heads, rows)
    marks = [Mark(one.failing, one.runs, one.what) for one in summary.verdicts]
    yield _plot(plots.rates(marks, "verdicts", "Rate of violating runs of each scenario"))
    yield tag("p", "A circle is the rate that was seen, within its interval; an arrow to the left stands where no run "
                   "violates anything, at the highest rate that this leaves likely.", "quiet")
    if len(summary.tallies) > len(summary.verdicts):
        inner = [(tally.cell.what, tally.cell.strategy, tally.sweep, *_counts(tally), tally.errors)
                 for tally in summary.tallies]
        heads = ("scenario or model", "strategy", "swept", "#runs", "#violating", "#rate", "#interval")
        yield details(f"By strategy and swept value ({len(inner)} cells)", table((*heads, "#errors"), inner))


def _counts(one: Share) -> tuple[object, ...]:
    """Return the cells of a table that say how many runs there are, how many violate something, and their rate."""
    return one.runs, one.failing, percent(one.rate), interval(one.low, one.high)


def said_of(one: ScenarioVerdict) -> str:
    """Return in words what a scenario's runs violate, what was expected instead, and what they did not reach."""
    said = [f"{name} in {counted(runs, 'run')}" for name, runs in one.properties.items()] or ["none"]
    if one.is_judged and one.expected and one.expected not in one.properties:
        said.append(f"expected {one.expected}")
    if one.errors:
        said.append(f"{counted(one.errors, 'run')} ended in an error of the code")
    if one.missing:
        said.append(f"no run reached {', '.join(one.missing)}")
    return "; ".join(said)


def _clusters(summary: Summary, witnesses: Sequence[Witness]) -> Iterator[Markup]:
    if not summary.clusters:
        yield tag("p", "No run violates anything.")
        return
    yield tag("p", "Violations are one cluster where their shortest witnesses have the same property, actions and "
                   "faults. A witness is a run that was shortened as far as it went.")
    rows = [(Markup(f'<a href="#cluster-{n}">{n}</a>'), one.what, one.property, one.runs, _steps(one),
             ", ".join(one.faults) or CALM) for n, one in enumerate(summary.clusters, 1)]
    yield table(("#", "scenario or model", "property", "#runs", "witness", "faults"), rows)
    for n, (one, witness) in enumerate(zip(summary.clusters, witnesses, strict=True), 1):
        yield Markup(f'<h3 id="cluster-{n}">{n}. {text(one.what)}: {text(one.property)}</h3>')
        yield tag("p", one.reason)
        yield tag("p", f"{counted(one.runs, 'run')}; {_steps(one)}, from the run with seed {one.seed}. Actions: "
                       f"{', '.join(one.actions)}.", "quiet")
        if not witness.trail:
            yield tag("p", "Recorded elsewhere, without a trail: it cannot be replayed here.", "quiet")
            continue
        yield tag("pre", f"{witness.replay}\n{witness.show}")
        if witness.diagram is not None:
            yield Markup(f'<details{" open" if one.shrunk else ""}><summary>Sequence diagram</summary>\n'
                         f'<div class="diagram wide">{witness.diagram}</div></details>')
        elif one.replays:
            yield tag("p", f"No diagram: the run has more than {MOST_DRAWN} steps, or there are many.", "quiet")
        else:
            yield tag("p", "The code has changed: this run does not fit it any more.", "quiet")


def _clients(summary: Summary) -> Iterator[Markup]:
    """Show how operations of clients ended, and which anomalies they saw, by fault mix."""
    yield tag("p", "Judged from what clients sent, were told and read alone, in every run.")
    rows = [(one.what, one.strategy, one.sweep, one.runs, one.anomalous, said_ended(one)) for one in summary.clients]
    yield table(("scenario or model", "strategy", "swept", "#runs", "#with anomalies", "operations that ended"), rows)
    if not summary.anomalies:
        yield tag("p", "No client saw what the promised isolation forbids.")
        return
    found = [(one.what, one.strategy, one.sweep, joined([one.anomaly, tag("span", one.property, "quiet")], "<br>"),
              one.faults, one.runs, one.silent, str(one.seed), one.reason) for one in summary.anomalies[:MOST_MIXES]]
    yield table(("scenario or model", "strategy", "swept", "anomaly", "faults before it", "#runs",
                 "#violating nothing claimed", "#first seed", "what it was"), found)
    left = len(summary.anomalies) - MOST_MIXES
    if left > 0:
        yield tag("p", f"{left:,} more rows are left out; the table anomalies has them.", "quiet")


def said_ended(one: ClientsTally) -> str:
    """Return in words how many operations ended, and how."""
    return ", ".join(f"{count:,} {name}" for name, count in one.ended.items()) or "none"


def _steps(one: ViolationCluster) -> str:
    if not one.shrunk:
        return f"{counted(one.had, 'step')}, as found"
    return f"{one.had} → {counted(one.has, 'step')}{', proved shortest' if one.proved else ''}"


def _faults(rates: Sequence[Rate]) -> Iterator[Markup]:
    """Show the rate with and without each fault, for scenarios that violate something, and all fault mixes."""
    whats = list(dict.fromkeys(rate.what for rate in rates))
    failing = [what for what in whats if any(rate.failing for rate in rates if rate.what == what)]
    if not failing:
        yield tag("p", "No run violates anything, under any faults.")
    for n, what in enumerate(failing[:MOST_FAULT_PLOTS]):
        mine = [rate for rate in rates if rate.what == what]
        marks = [mark for fault in _kinds(mine) for mark in _with_and_without(mine, fault)]
        yield tag("h3", what)
        if marks:
            yield _plot(plots.rates(marks, f"faults-{n}", f"Rate of violating runs of {what}, by fault"))
        else:
            yield tag("p", "Its runs have no faults.")
    if len(failing) > MOST_FAULT_PLOTS:
        yield tag("p", f"{len(failing) - MOST_FAULT_PLOTS} more have no plot; their rates are in the table.")
    yield tag("p", "Circles: runs in which the fault or perturbation happened at least once. Squares: runs in "
                   "which it did not happen.", "quiet")
    rows, left = [], 0
    for what in whats:
        mixes = sorted((rate for rate in rates if rate.what == what), key=lambda rate: (-rate.runs, rate.value))
        left += len(mixes[MOST_MIXES:])
        rows += [(one.what, one.strategy, one.value, *_counts(one)) for one in mixes[:MOST_MIXES]]
    heads = ("scenario or model", "strategy", "faults that happened", "#runs", "#violating", "#rate", "#interval")
    more = [tag("p", f"{left:,} rarer mixes are left out; the table runs has them.", "quiet")] if left else []
    yield details(f"By fault mix ({len(rows):,} rows)", table(heads, rows), *more)


def _kinds(rates: Iterable[Rate]) -> list[str]:
    return sorted({name for rate in rates if rate.value != CALM for name in rate.value.split(" + ")})


def _with_and_without(rates: Sequence[Rate], fault: str) -> Iterator[Mark]:
    for there, word in ((True, "with"), (False, "without")):
        some = [rate for rate in rates if (fault in rate.value.split(" + ")) is there]
        failing, runs = sum(rate.failing for rate in some), sum(rate.runs for rate in some)
        if runs:
            yield Mark(failing, runs, f"{word} {fault}", is_hollow=not there)


def _sweep(rates: Sequence[Rate]) -> Iterator[Markup]:
    for n, what in enumerate(dict.fromkeys(rate.what for rate in rates)):
        mine = sorted((rate for rate in rates if rate.what == what), key=lambda rate: natural(rate.value))
        several = len({rate.strategy for rate in mine}) > 1
        marks = [Mark(rate.failing, rate.runs, rate.value + (f", {rate.strategy}" if several else ""))
                 for rate in mine]
        yield tag("h3", what)
        yield _plot(plots.rates(marks, f"sweep-{n}", f"Rate of violating runs of {what}, by swept value"))
        rows = [(one.strategy, one.value, *_counts(one)) for one in mine]
        yield table(("strategy", "swept", "#runs", "#violating", "#rate", "#interval"), rows)


def _coverage(summary: Summary) -> Iterator[Markup]:
    curves = [one for one in summary.reached if one.curve]
    if curves:
        yield tag("p", "New states of the spec per thousand covered runs, as runs go on: where a curve stays high, "
                       "more runs would still find states.")
        yield _plot(plots.curves(curves, "coverage", "Saturation of coverage: new states per thousand runs"))
        left = len(curves) - plots.PANELS
        if left > 0:
            yield tag("p", f"{left} more have no curve here; the table has their last stretch.", "quiet")
    else:
        yield tag("p", "No states were counted in this campaign (--coverage 0).")
    rows = [(one.what, one.covered, one.states, f"{one.curve[-1].per_thousand:,.0f}" if one.curve else "",
             len(one.actions), len(one.never), one.guards - len(one.one_way), len(one.one_way), len(one.unseen))
            for one in summary.reached]
    yield table(("scenario or model", "#covered runs", "#states", "#new per 1,000 at the end", "#actions taken",
                 "#never taken", "#guards both ways", "#one way", "#never evaluated"), rows)
    for one in summary.reached:
        lists = [("Possible, but never taken", list(one.never)),
                 ("Guards that came out one way", [f"always {str(way).lower()}: {name}" for name, way in one.one_way]),
                 ("Guards that were not evaluated", list(one.unseen))]
        missed = [part for title, names in lists if names for part in (tag("p", title), _list(names))]
        if missed:
            yield details(f"{one.what}: what was not reached", *missed)


def _list(names: Sequence[str]) -> Markup:
    left = len(names) - MOST_NAMES
    return tag("pre", "\n".join([*names[:MOST_NAMES], *([f"... and {left:,} more"] if left > 0 else [])]))


def _runs(summary: Summary) -> Iterator[Markup]:
    for title, some in (("Slowest", summary.slowest), ("Longest", summary.longest)):
        yield tag("h3", title)
        yield table(("scenario or model", "strategy", "swept", "#seed", "outcome", "#steps", "#ms", "to make it again"),
                    [_run(one) for one in some])


def _run(one: Remarkable) -> tuple[object, ...]:
    again = tag("code", one.again) if one.again is not None else tag("span", "see the table runs", "quiet")
    took = f"{one.wall_us / 1e3:,.1f}"
    return one.cell.what, one.cell.strategy, one.cell.swept, str(one.seed), one.outcome, one.steps, took, again


def _errors(summary: Summary, witnesses: Sequence[Witness]) -> Iterator[Markup]:
    if not summary.poisoned:
        yield tag("p", "No run ended in an error of the code.")
        return
    yield tag("p", f"{counted(summary.errors, 'run')} ended in an error of the protocol's own code. A trail goes as "
                   "far as the run did; the next step raises the error.")
    rows = [(one.what, one.error, one.runs, str(one.seed), tag("code", witness.replay))
            for one, witness in zip(summary.poisoned, witnesses, strict=True)]
    yield table(("scenario or model", "error", "#runs", "#first seed", "its trail"), rows)


def _since(since: Comparison) -> Iterator[Markup]:
    yield tag("p", f"{counted(since.compared, 'cell')} compared. A rate has changed where it has {METHOD}; new and "
                   "gone are violations that only one of the two has.")
    if since.is_empty:
        yield tag("p", "Nothing is new, gone or changed.")
    for title, changes in (("Rates", since.cells), ("Clusters", since.clusters)):
        if changes:
            yield tag("h3", title)
            yield table(("change", "where", "property", "before", "now", "apart", "faults and actions"),
                        [_changed(one) for one in changes])
    for title, names in (("Only in the other campaign", since.only_before), ("Only in this one", since.only_after)):
        if names:
            yield joined([tag("h3", title), _list(names)])
    if since.actions:
        rows = [(what, ", ".join(new), ", ".join(gone)) for what, (new, gone) in since.actions.items()]
        yield joined([tag("h3", "Actions"), table(("scenario or model", "taken now only", "taken before only"), rows)])
    if since.different:
        yield joined([tag("h3", "What is different about the cells"),
                      table(("cell", "difference"), sorted(since.different.items()))])


def _changed(one: ViolationChange) -> tuple[object, ...]:
    sides = [f"{side.failing:,} of {side.runs:,} ({interval(side.low, side.high)})" for side in (one.before, one.after)]
    involved = ", ".join(one.faults or ((CALM,) if one.actions else ()))
    return (tag("b", one.change), one.name, one.violated, *sides, "yes" if one.is_apart else "no",
            joined([involved, tag("span", ", ".join(one.actions), "quiet")], "<br>"))


def _plot(drawn: str) -> Markup:
    return Markup(f'<div class="plot wide">{drawn}</div>')
