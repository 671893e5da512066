"""Which options of `check` go together, and its search on Spark, which is loaded only when asked for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.explore.any_model import NUMBERS, ORDER, REDUCTIONS, SYMMETRY
from harness.explore.bounded import Bounded
from harness.model import Model, Refusal, did_you_mean, unknown
from harness.model.fresh import declared
from harness.record.expressions import expressions_of

if TYPE_CHECKING:
    from harness.campaign.search.spark_search import SparkSearch

SPARK, PLAIN = "spark", "plain"
ALL_OF_THEM, NONE = "all", "none"
MANIFEST = "search.json"
"""What only the folder of a search on Spark has, and no other checkpoint."""
LEAST_MEMORY = 1e-9
"""A byte, in gigabytes."""


def check_options(
    model: Model, temporal: tuple[str, ...], memory: float | None, reducing: Mapping[str, bool]
) -> None:
    """Raise Refusal for unknown temporal properties, for properties that other options exclude, and for no memory."""
    known = [prop.name for prop in model.properties if prop.is_temporal]
    for name in temporal:
        if name not in known:
            has = f"its temporal properties are {', '.join(known)}" if known else "it has none"
            safe = any(prop.name == name and prop.is_safety for prop in model.properties)
            hint = f"; {name} is an invariant, give it with --invariant" if safe else ""
            meant = did_you_mean(name, known)
            raise Refusal(f"{model.name} has no temporal property {name!r}; {meant}{' ' if meant else ''}{has}{hint}")
    for option, is_on in reducing.items():
        if temporal and is_on:
            raise Refusal(
                f"temporal properties cannot be checked with {option}: it merges states, and a cycle of merged states "
                f"may not be real; leave {option} or --property out"
            )
    if memory is not None and not LEAST_MEMORY <= memory < math.inf:
        raise Refusal(f"--memory takes gigabytes, more than 0, not {memory:g}; leave it out for most of what is free")


def refuse_together(
    engine: str, checkpoint: Path | None, only: Mapping[str, Any], others: Mapping[str, Any]
) -> None:
    """Raise Refusal for options that are given, and that the engine does not have: `only` are Spark's, `others` not."""
    if engine == SPARK:
        given = [name for name, value in others.items() if value]
        if given:
            raise Refusal(f"--engine spark does not support {given[0]}; leave it out, or use another engine")
        return
    given = [name for name, value in only.items() if value is not None]
    if given:
        raise Refusal(f"{given[0]} needs --engine spark; give both, or leave it out")
    if checkpoint is not None and (checkpoint / MANIFEST).exists():
        raise Refusal(f"the search in {checkpoint} was made by --engine spark; resume with that engine, "
                      "or give another folder")


def refuse_expressions(model: Model, options: Mapping[str, bool]) -> None:
    """Raise Refusal for an invariant of the user's own with an option that takes states as one which it may tell apart.

    Spark's workers know the invariants of the model only.
    """
    own, given = expressions_of(model), [name for name, is_on in options.items() if is_on]
    if own and given:
        raise Refusal(f"{given[0]} is for the invariants of the model, not for {own[0]!r}; leave one of them out")


def reductions_of(model: Model, given: Iterable[str], symmetry: bool) -> tuple[str, ...]:
    """Return the reductions that are asked for, or of `all` those that the model has something for. Raises Refusal.

    `order` is none of `all`: what it finds need not be shortest.
    """
    named = [name for text in given for name in text.split(",") if name]
    has = {NUMBERS: bool(declared(model.types)) and not model.auxiliary, SYMMETRY: bool(model.symmetric)}
    if symmetry and not model.symmetric:
        raise Refusal(f"{model.name} has no interchangeable names; leave --symmetry out")
    chosen, known = {SYMMETRY} if symmetry else set(), (*REDUCTIONS, ORDER, ALL_OF_THEM, NONE)
    for name in named:
        if name not in known:
            raise Refusal(unknown(f"there is no reduction {name!r}", name, known, "give"))
        if name == NUMBERS and model.auxiliary:
            kept = ", ".join(variable.name for variable in model.auxiliary)
            raise Refusal(f"{model.name} has auxiliary variables ({kept}), whose numbers are not renamed; leave "
                          f"--reduce {name} out")
        if not has.get(name, True):
            lacks = "interchangeable names" if name == SYMMETRY else "numbers that are only compared"
            raise Refusal(f"{model.name} declares no {lacks}, so --reduce {name} has no effect; "
                          "leave it out")
        if name == ORDER:
            from harness.explore.reduction.order import refuse

            refuse(model)
        chosen |= {each for each in REDUCTIONS if has[each]} if name == ALL_OF_THEM else {name} - {NONE}
    if NONE in named and (len(named) > 1 or symmetry):
        raise Refusal("--reduce none excludes other reductions; leave one of them out")
    return tuple(name for name in (*REDUCTIONS, ORDER) if name in chosen)


def engine_for(model: Model, engine: str, reduce: tuple[str, ...], others: Mapping[str, Any]) -> str:
    """Return the engine that searches a model: the plain one if reductions need it. Raises Refusal.

    `others` are options that the plain engine does not have.
    """
    needs = beyond_specs(model)
    given = [name for name, value in others.items() if value]
    if engine == "python" and others.get("--threads"):
        raise Refusal("--threads is of the compiled kernel; leave it out, or use another engine")
    if needs and engine == SPARK:
        raise Refusal(f"{model.name} has {needs}, which --engine {engine} does not support yet; use another engine")
    own = [name for name in reduce if name != SYMMETRY or needs]
    if own and engine not in (PLAIN, "auto"):
        raise Refusal(f"--engine {engine} does not support --reduce {own[0]}; give --engine plain, or leave it out")
    if engine == PLAIN or own:
        if given:
            why = f", which --reduce {own[0]} needs," if own else ""
            raise Refusal(f"--engine plain{why} does not support {given[0]}; leave it out")
        return PLAIN
    if needs and "--property" in given:
        raise Refusal(
            f"{model.name} has {needs}, and temporal properties are checked on specs only; leave --property out, or "
            f"use kafka-proto simulate"
        )
    return engine


def beyond_specs(model: Model) -> str:
    """Return what a model has that no spec has, and that may keep it from ending; nothing for a spec."""
    return "actors" if model.actors else "faults" if model.faulty else (
        "a bound on timers" if isinstance(model, Bounded) else ""
    )


def on_spark(
    model: Model, invariants: tuple[str, ...], folder: Path | None, master: str | None, parts: int | None,
    stop: bool, deadlock: bool,
) -> SparkSearch:
    """Return a search on Spark. Raises Refusal if Spark or Java is missing."""
    from harness.campaign.requirements import require_java, require_packages

    require_packages()
    from harness.campaign.search.spark_search import SparkSearch

    made = SparkSearch(model, invariants, folder=folder, master="local[*]" if master is None else master,
                       parts=parts or 0, stop=stop, deadlock=deadlock)
    require_java()
    return made
