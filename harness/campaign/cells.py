"""What a campaign's runs are made of: a cell is everything about a run but its seed, and has a key of its own.

Cells come from scenarios or models, strategies, and the values that settings, sizes or faults are swept over. The key
covers the code that makes the runs, too: one cell and one seed are one run, wherever and whenever it is made.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import attrs

from harness.model import Faults, Model, Refusal, Scenario, find_model, find_runnable, unknown
from harness.model.faults import FAULT_KINDS, TIMED_KINDS
from harness.record import Trail, faults_from_json, faults_to_json
from harness.record.files import compact
from harness.simulate.runs.plan import Plan, everything, plan_of
from harness.simulate.strategies.by_name import NAMES

MAKERS = ("harness/model", "harness/record", "harness/simulate")
"""The harness's folders with code that a run depends on, besides that of the protocol."""
ChooseFaults = Callable[[Faults, Model], Faults]
"""Given the faults of a scenario, or none, and its model without faults, the faults of its runs. Raises Refusal."""
KEY = 16
"""Hexadecimal digits of keys and code versions."""


@attrs.frozen
class Cell:
    """Everything about a run but its seed."""

    what: str
    """The scenario's name, or the model's if no scenario is meant."""
    model: str
    sizes: Mapping[str, int]
    settings: Mapping[str, str]
    network: str
    faults: Mapping[str, Any]
    """As in the header of a trail."""
    claims: tuple[str, ...]
    mode: str
    steps: int
    timeouts: int
    scenario: str | None
    strategy: str
    sweep: Mapping[str, str]
    """What was swept, and the value here; it is among sizes, settings or faults too."""
    package: str
    """The top package of the protocol; empty for histories of a system that is none of ours."""
    code: str
    """The version of the code that makes the runs; `imported` for runs that were recorded elsewhere."""

    @property
    def swept(self) -> str:
        """The swept values, as `crash=1, brokers=3`, or nothing."""
        return ", ".join(f"{name}={value}" for name, value in self.sweep.items())

    @property
    def key(self) -> str:
        """The digest that identifies the cell."""
        identity = {name: value for name, value in self.to_json().items() if name != "sweep"}
        return _digest([compact(identity).encode()])

    @property
    def is_foreign(self) -> bool:
        """Whether its histories are of a system that is none of our models."""
        return not self.package

    def build(self) -> Model:
        """Build the model. Raises Refusal."""
        return find_model(self.model).make(self.sizes, self.settings, self.network, faults_from_json(self.faults))

    @property
    def plan(self) -> Plan:
        return Plan(self.claims, self.steps, self.mode, self.timeouts, self.scenario)

    def trail(self, seed: int) -> Trail:
        """Return the trail of a run before its first step."""
        return Trail(self.model, self.sizes, self.settings, self.network, faults_from_json(self.faults), self.claims,
                     (), self.mode, self.strategy, seed, self.scenario)

    def to_json(self) -> dict[str, Any]:
        """Return the cell as a JSON object."""
        return {**attrs.asdict(self), "claims": list(self.claims)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Cell:
        """Return the cell of a JSON object."""
        return cls(**{**data, "claims": tuple(data["claims"])})


def cells(
    whats: Iterable[str], strategies: Iterable[str] = ("random",), sweeps: Sequence[str] = (),
    sizes: Mapping[str, int] | None = None, settings: Mapping[str, str] | None = None, steps: int | None = None,
    faults: ChooseFaults | None = None,
) -> tuple[Cell, ...]:
    """Return the cells of scenarios or models under strategies, one for each combination of what is swept. Refusal."""
    for strategy in strategies:
        if strategy not in NAMES:
            raise Refusal(unknown(f"there is no strategy {strategy!r}", strategy, NAMES, "the strategies are"))
    swept = [_sweep(text) for text in sweeps]
    names = [name for name, _ in swept]
    if len(set(names)) < len(names):
        raise Refusal(f"{max(names, key=names.count)} is swept twice; give all its values in one --sweep")
    found: dict[str, Cell] = {}
    for what in whats:
        for values in product(*(values for _, values in swept)):
            sweep = dict(zip(names, values, strict=True))
            for strategy in strategies:
                cell = _cell(what, strategy, sweep, sizes or {}, settings or {}, steps, faults)
                found.setdefault(cell.key, cell)
    return tuple(found.values())


def _sweep(text: str) -> tuple[str, list[str]]:
    name, equals, values = text.partition("=")
    given = values.split(",")
    if not name or not equals or not any(given):
        raise Refusal(f"expected --sweep NAME=VALUE,VALUE,..., found {text!r}")
    return name, list(dict.fromkeys(given))


def _cell(
    what: str, strategy: str, sweep: Mapping[str, str], sizes: Mapping[str, int], settings: Mapping[str, str],
    steps: int | None, choose: ChooseFaults | None,
) -> Cell:
    scenario, spec = find_runnable(what)
    base = scenario or Scenario(what, spec.title, what)
    sizes, settings = {**base.sizes, **sizes}, {**base.settings, **settings}
    for name, value in sweep.items():
        if name in spec.settings:
            settings[name] = value
        elif name in spec.sizes:
            sizes[name] = _number(name, value)
    own = base.faults
    if choose is not None:
        own = choose(own, spec.make(sizes, settings, base.network, Faults()))
    faults = _plain(own)
    for name, value in sweep.items():
        if name in FAULT_KINDS:
            faults[name] = _number(name, value)
            if name in TIMED_KINDS and not (faults.get("targets") or faults.get("links")):
                raise Refusal(f"{name} of {what} has no target, so it cannot be swept")
        elif name not in spec.settings and name not in spec.sizes:
            known = (*spec.settings, *spec.sizes, *FAULT_KINDS)
            raise Refusal(unknown(f"{name} of {what} cannot be swept", name, known, "these can be:"))
    faults = {name: value for name, value in faults.items() if value}
    model = spec.make(sizes, settings, base.network, faults_from_json(faults))
    plan = everything(model) if scenario is None else plan_of(scenario)
    package = getattr(spec.build, "func", spec.build).__module__.partition(".")[0]  # that of a partial is functools
    return Cell(
        what, model.name, dict(model.sizes), dict(model.settings), model.network.name, _plain(model.faults),
        plan.claims, plan.mode, steps or plan.steps, plan.timeouts, plan.scenario, strategy, dict(sweep),
        package, code_version(package),
    )


def _number(name: str, value: str) -> int:
    if not value.isdecimal():
        raise Refusal(f"{name} takes whole numbers, not {value!r}")
    return int(value)


def _plain(faults: Faults) -> dict[str, Any]:
    """Return faults as they come back from a file."""
    data: dict[str, Any] = json.loads(compact(faults_to_json(faults)))
    return data


@cache
def code_version(package: str, makers: tuple[str, ...] = MAKERS) -> str:
    """Return the version of the code that makes runs of a protocol: a digest of its sources and of the harness's.

    `makers` are folders and files of the harness.
    """
    root = Path(str(import_module("harness").__file__)).parent.parent
    files = [(folder, root / folder) for folder in makers]
    where = getattr(sys.modules.get(package) or import_module(package), "__file__", None)
    if where:
        path = Path(where)
        files.append((package, path.parent if path.stem == "__init__" else path))
    texts = []
    for name, path in files:
        sources = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        for source in sources:
            inside = source.relative_to(path).as_posix() if source != path else ""
            texts += [f"{name}/{inside}".encode(), source.read_bytes()]
    return _digest(texts)


def _digest(texts: Iterable[bytes]) -> str:
    sha = hashlib.sha256()
    for text in texts:
        sha.update(len(text).to_bytes(8, "big") + text)
    return sha.hexdigest()[:KEY]
