"""Plug-ins of others that cannot be loaded: each is one sentence with its name, file and line; the rest works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.commands.command_line import run

SYSTEMS, COMMANDS = "harness.systems", "harness.commands"
WORKING = '''
from harness.model import Model, ModelSpec, System, Size


def system():
    build = lambda sizes, settings, network, faults, history: Model("lamps", (), ({"lit": 0},), network, faults)
    return System("lamps", (ModelSpec("lamps", "lamps that nobody switches", build, {"lamps": Size(1)}),))
'''
Install = Callable[[str, str, str], Path]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Install:
    """Install a package of one module with an entry point of its name; returns the module's file."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def installed(name: str, group: str, text: str) -> Path:
        about = tmp_path / f"{name}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8")
        (about / "entry_points.txt").write_text(f"[{group}]\n{name} = {name}:system\n", encoding="utf-8")
        module = tmp_path / f"{name}.py"
        module.write_text(text, encoding="utf-8")
        return module

    return installed


def sentence_of(module: Path, group: str, why: str, line: int | None) -> str:
    """Return what is to be said about a plug-in that cannot be loaded."""
    name = module.stem
    where = "" if line is None else f" in {module}, line {line}"
    return (f"the plug-in {name} ({name}:system, of the entry points {group}) cannot be loaded: {why}{where}; "
            "repair or uninstall it")


BROKEN = [
    ("x = 1\ndef system(:\n", "SyntaxError: invalid syntax", 2),
    ("import attrs\n\nimport no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'", 3),
    ("def system():\n    return 1 / 0\n", "ZeroDivisionError: division by zero", 2),
    ("system = {}\n", "it is of the type dict, not System", None),
    ("", "AttributeError: module 'mine' has no attribute 'system'", None),
]


@pytest.mark.parametrize(("text", "why", "line"), BROKEN)
def test_a_broken_system_is_one_sentence_and_the_others_are_listed(
    install: Install, text: str, why: str, line: int | None
) -> None:
    """`list` names the plug-in, the error, its file and its line, after the models of all others."""
    install("lamps", SYSTEMS, WORKING)
    module = install("mine", SYSTEMS, text)
    done = run("list", "--json")
    assert done.sentence == f"warning: {sentence_of(module, SYSTEMS, why, line)}"
    assert {"lamps", "transactions/gist", "compaction/pulsar"} <= {model["name"] for model in done.json["models"]}
    assert done.code == 0


@pytest.mark.parametrize("asked", [
    ("simulate", "mine"), ("simulate", "mine/actors"), ("hunt", "mine"), ("check", "mine"), ("demo", "mine"),
])
def test_what_a_broken_system_may_have_is_refused_with_the_reason(install: Install, asked: tuple[str, ...]) -> None:
    """A model that is not found may be in the plug-in that cannot be loaded, so that comes first."""
    module = install("mine", SYSTEMS, "def system(:\n")
    said = run(*asked).refusal
    assert said.startswith(sentence_of(module, SYSTEMS, "SyntaxError: invalid syntax", 1) + "; without it there is no ")


@pytest.mark.parametrize("asked", [
    ("simulate", "exactly-once-zombie", "--seeds", 1), ("simulate", "transactions/gist", "--seeds", 1, "--steps", 1),
    ("show", "found/transactions-gist-random-0.trail.jsonl", "--as", "tla"),
])
def test_what_other_systems_have_works_beside_a_broken_one(install: Install, asked: tuple[object, ...]) -> None:
    """The command does what it is asked for; at most one more sentence is said."""
    assert run("simulate", "transactions/gist", "--seed", 0, "--steps", 3, "--out", "found").code == 0
    module = install("mine", SYSTEMS, "def system(:\n")
    done = run(*asked)
    assert done.code == 0, done.err
    assert done.err in ("", f"kafka-proto: warning: {sentence_of(module, SYSTEMS, 'SyntaxError: invalid syntax', 1)}\n")


def test_a_broken_command_is_refused_and_help_names_it(install: Install) -> None:
    """Only who calls it is refused, whatever the arguments; help lists it with the others."""
    module = install("mine", COMMANDS, "from harness.model import (\n")
    for arguments in ((), ("word", "--option", "3"), ("--help",)):
        assert run("mine", *arguments).refusal == sentence_of(
            module, COMMANDS, "SyntaxError: '(' was never closed", 1)
    helped = run("--help")
    assert helped.code == 0
    assert "mine         Cannot be loaded." in helped.out
    assert "serve        Serve brokers" in helped.out
