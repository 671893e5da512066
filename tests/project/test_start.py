"""The installed command beside packages of others that have the same names: one sentence, before anything is run.

Wheels are installed as pip does it, which writes one over the other without a word.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.commands.wheels import Environment, built, foreign

FAILS = "raise RuntimeError('this harness is another one')\n"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's wheel."""
    return built(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def environment(wheel: Path, tmp_path: Path) -> Environment:
    """An environment with the project and its dependencies."""
    made = Environment(tmp_path / "venv")
    made.install(wheel)
    return made


def refusal(environment: Environment, **variables: str) -> str:
    """Return the one sentence by which the command refuses to start."""
    done = environment.call("list", **variables)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (sentence,) = done.stderr.splitlines()
    return sentence


def starts(environment: Environment, **variables: str) -> bool:
    """Return whether the command does what it is asked for."""
    done = environment.call("--version", **variables)
    return (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("kafka-proto, version ")


def test_package_installed_over_ours_is_named(environment: Environment, tmp_path: Path) -> None:
    """Its `__init__.py` would be run; uninstalled, it takes ours along, which is noticed, too, and mended by pip."""
    assert starts(environment)
    environment.install(foreign(tmp_path, "harness", {"harness/__init__.py": FAILS, "harness/theirs.py": ""}))
    assert refusal(environment) == (
        "kafka-proto: the package harness 0.1.0 has installed a module `harness` over kafka-proto's; "
        "install kafka-proto into an environment without it")
    environment.uninstall("harness")
    assert refusal(environment) == (
        f"kafka-proto: harness/__init__.py is missing in {environment.packages.resolve()}; install kafka-proto again: "
        "pip install --force-reinstall kafka-proto")


def test_package_under_ours_is_named(wheel: Path, tmp_path: Path) -> None:
    """Where ours came later its files are whole, but a command of the other one would run ours."""
    environment = Environment(tmp_path / "venv")
    environment.install(foreign(tmp_path, "some_sediment", {"compaction.py": FAILS}))
    environment.install(wheel)
    assert "the package some_sediment 0.1.0 has installed a module `compaction` over" in refusal(environment)
    environment.uninstall("some_sediment")
    assert starts(environment)


def test_folder_before_ours_on_the_path_is_named(environment: Environment, tmp_path: Path) -> None:
    """A `harness` that would be imported in place of ours; one that comes behind it is nobody's affair."""
    theirs = tmp_path / "theirs" / "harness"
    theirs.mkdir(parents=True)
    (theirs / "__init__.py").write_text(FAILS, encoding="utf-8")
    assert refusal(environment, PYTHONPATH=str(theirs.parent)).startswith(
        f"kafka-proto: `import harness` finds {theirs}, not the package of kafka-proto in ")
    (environment.packages / "later.pth").write_text(f"{theirs.parent}\n", encoding="utf-8")
    assert starts(environment)


def test_packages_with_other_names_are_no_trouble(environment: Environment, tmp_path: Path) -> None:
    """Names that begin alike are not the same."""
    environment.install(foreign(tmp_path, "harness_tools", {"harness_tools/__init__.py": "", "harnessed.py": ""}))
    assert starts(environment)
