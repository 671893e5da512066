"""What complete searches of a package's scenarios found: a file beside its code, which says of which code it speaks.

`searched.json` in a package's folder has one entry for each scenario that was searched; our own are made by
`tests/support/searches/check_table.py`. An entry has the digest of its code, and speaks of no other code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs

from harness.model import Scenario, find_model, find_scenario, systems
from harness.record.trail import faults_to_json
from harness.record.wording import counted

FILE = "searched.json"
LIBRARY = "harness"
COMPILED = "harness.compiled"
"""How the harness is run, with equal results: no part of what is searched."""
IMPORTED = re.compile(r"^([ \t]*)(?:from\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n]+)|import\s+([\w.]+))", re.MULTILINE)

WORDS = re.compile(
    r'#[^\n]*+|^[ \t]*+"""(?:[^"\\]++|\\.|"(?!""))*+"""[ \t]*+$'
    r"""|(?P<text>\"{3}(?:[^"\\]++|\\.|"(?!""))*+\"{3}|"(?:[^"\\\n]++|\\.)*+"|'(?:[^'\\\n]++|\\.)*+')""",
    re.MULTILINE | re.DOTALL,
)
"""Comments, and texts that stand alone (docstrings); or else a text that may contain what looks like them."""


@attrs.frozen(eq=False)
class Searched:
    """What a search of a scenario found, at a size and within a budget."""

    scenario: str
    model: str
    sizes: Mapping[str, int]
    settings: Mapping[str, str]
    network: str
    faults: Mapping[str, Any]
    timers: Mapping[str, int] | None
    """How many timers may fire in a run, by name or in all; None for any number."""
    reductions: tuple[str, ...]
    checked: tuple[str, ...]
    """The properties that were checked."""
    complete: bool
    """Whether each state was visited, or all of the levels up to a violation."""
    states: int
    """States that were visited; with reductions, each stands for others."""
    steps: int
    """Of the schedules that were all looked at: up to a violation, or up to where the search ended."""
    violated: str | None
    is_shortest: bool
    """Whether no schedule of fewer steps violates anything; of lassos that is not proved."""
    digest: str
    """The digest of the code that was searched."""

    @property
    def is_of_this_code(self) -> bool:
        """Whether the code is still what was searched."""
        package = next((s.package for s in systems() for row in s.scenarios if row.name == self.scenario), "")
        return bool(package) and code_digest(package) == self.digest

    @property
    def within(self) -> str:
        """The size and what bounds it, in words, with the settings and the network that are not the scenario's own."""
        row = find_scenario(self.scenario)
        is_own = row is not None and row.model == self.model
        own = _settings(row) if row is not None and is_own else {}
        settings = [f"{name}={value}" for name, value in self.settings.items() if own.get(name) != value]
        network = _network(row) if row is not None and is_own else None
        settings += [f"network={self.network}"] if network not in (None, self.network) else []
        sizes = [f"{name}={number}" for name, number in self.sizes.items()]
        rules = len(self.faults.get("rules", ()))
        faults = [f"{kind}={number}" for kind, number in self.faults.items() if isinstance(number, int)]
        timers = [counted(number, name or "timer") for name, number in sorted((self.timers or {}).items())]
        said = [" ".join([*sizes, *settings]), *faults, *([counted(rules, "rule")] if rules else []), *timers]
        return ", ".join(said)

    def covers(self, scenario: Scenario) -> bool:
        """Say whether every run of a scenario that ends within its own bound on timers was looked at."""
        enough = self.timers is None or all(number >= scenario.timeouts for number in self.timers.values())
        return (
            self.complete and enough and scenario.mode == "free" and not scenario.faults.timed
            and self.is_at_size_of(scenario) and set(scenario.claims) <= set(self.checked)
        )

    def numbers(self, scenario: Scenario) -> bool:
        """Say whether its states are just those that runs of a scenario may visit, before their fair endings.

        Reductions count several states as one, a bound on timers one as several.
        """
        return self.covers(scenario) and not self.reductions and not any((self.timers or {}).values())

    def is_at_size_of(self, scenario: Scenario) -> bool:
        """Say whether the search had the scenario's sizes, settings, network and faults."""
        return (
            (self.model, self.sizes, self.settings) == (scenario.model, _sizes(scenario), _settings(scenario))
            and self.network == _network(scenario) and self.faults == faults_to_json(scenario.faults)
        )

    def command(self, scenario: Scenario, free: int) -> str:
        """Return the command that makes this search again; what is the scenario's own is left out.

        By default, a search may visit `free` states.
        """
        sizes, settings = _sizes(scenario), _settings(scenario)
        words = [f"--size {name}={number}" for name, number in self.sizes.items() if sizes.get(name) != number]
        words += [f"--set {name}={value}" for name, value in self.settings.items() if settings.get(name) != value]
        words += [f"--network {self.network}"] if self.network != _network(scenario) else []
        words += self._fault_options(faults_to_json(scenario.faults))
        if self.timers is not None and self.timers != {"": scenario.searched_timers}:
            words.append("--timers " + ",".join(f"{name}={n}" if name else f"{n}" for name, n in self.timers.items()))
        words += [f"--reduce {','.join(self.reductions)}"] if self.reductions else []
        size = 10 ** (len(f"{self.states}") - 1)
        words += [f"--states {(self.states // size + 1) * size}"] if self.timers and self.states >= free else []
        return " ".join(["kafka-proto check", scenario.name, *words])

    def _fault_options(self, own: Mapping[str, Any]) -> list[str]:
        """Return the options that make of a scenario's own faults those of the search."""
        if self.faults == own:
            return []
        anew = any(name not in self.faults for name in own)
        kinds = ["none"] if anew else []
        numbers = {kind: n for kind, n in self.faults.items() if isinstance(n, int)}
        kinds += [f"{kind}={n}" for kind, n in numbers.items() if anew or own.get(kind) != n]
        targets = self.faults.get("targets", ())
        words = [f"--faults {','.join(kinds)}"] if kinds else []
        return [*words, *(f"--target {name}" for name in targets if anew or name not in own.get("targets", ()))]

    def to_json(self) -> dict[str, Any]:
        """Return the entry as a JSON object."""
        return attrs.asdict(self)


def _sizes(scenario: Scenario) -> dict[str, int]:
    return {name: size.default for name, size in find_model(scenario.model).sizes.items()} | dict(scenario.sizes)


def _settings(scenario: Scenario) -> dict[str, str]:
    spec = find_model(scenario.model)
    return {name: setting.default for name, setting in spec.settings.items()} | dict(scenario.settings)


def _network(scenario: Scenario) -> str:
    return scenario.network or find_model(scenario.model).networks[0]


def searched(scenario: str) -> Searched | None:
    """Return what a search of a scenario found, or None if the package of its model has no word of one."""
    package = next((s.package for s in systems() for row in s.scenarios if row.name == scenario), "")
    return entries_of(package).get(scenario) if package else None


def file_of(package: str) -> Path:
    """Return the file that a package's entries are in."""
    return folder_of(package) / FILE


def write(package: str, entries: Sequence[Searched]) -> None:
    """Write the entries of a package, an entry a line."""
    lines = ",\n".join(json.dumps(entry.to_json()) for entry in entries)
    file_of(package).write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    entries_of.cache_clear()


@lru_cache
def entries_of(package: str) -> Mapping[str, Searched]:
    path = file_of(package)
    rows = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    made = (Searched(**{**row, "reductions": tuple(row["reductions"]), "checked": tuple(row["checked"])})
            for row in rows)
    return {entry.scenario: entry for entry in made}


@lru_cache
def code_digest(package: str) -> str:
    """Return the SHA-256 of the code that a package's models are made of, docstrings and comments left out.

    These are its modules, and all that they import, in absolute form, of the project that they belong to and of the
    harness. Imports inside functions of another package's `__init__` belong to the callers, and are not counted.
    """
    made = sha256()
    for name, text in sorted(code_of(package).items()):
        made.update(f"{name}\n{_without_words(text)}\n".encode())
    return made.hexdigest()


def code_of(package: str) -> Mapping[str, str]:
    """Return the text of each module that the digest of a package's code is of, by name."""
    tops = (package.partition(".")[0], LIBRARY)
    texts: dict[str, str] = {}
    names = [package]
    while names:
        name = names.pop()
        path = _module(name)
        if path is None or name in texts or name == COMPILED:
            continue
        text = texts[name] = path.read_text(encoding="utf-8")
        whole = name == package or path.name != "__init__.py"
        names += [found for found in _imported(text, whole) if found.partition(".")[0] in tops]
        if "." in name:
            names.append(name.rpartition(".")[0])
    return texts


@lru_cache
def folder_of(package: str) -> Path:
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def _module(name: str) -> Path | None:
    """Return the file of a module, without loading it; None for what is in a module."""
    top, *rest = name.split(".")
    inside = folder_of(top).joinpath(*rest)
    found = (inside.with_suffix(".py") if rest else inside / "__init__.py", inside / "__init__.py")
    return next((path for path in found if path.is_file()), None)


def _imported(text: str, inside: bool) -> Iterator[str]:
    """Yield what a module imports, `inside` its functions as well."""
    for indent, base, names, plain in IMPORTED.findall(text):
        if indent and not inside:
            continue
        yield base or plain
        yield from (f"{base}.{name}" for name in re.findall(r"(\w+)(?:\s+as\s+\w+)?", names))


def _without_words(text: str) -> str:
    """Return the lines of a module without its docstrings, comments and empty lines."""
    kept = WORDS.sub(lambda found: found["text"] or "", text)
    return "\n".join(line.rstrip() for line in kept.splitlines() if line.strip())
