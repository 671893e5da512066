"""bootstrap.py: which Pythons it takes, and what it does where pip cannot install an extra.

A small project of the same name stands in for this one, and an empty folder for the package index: nothing is fetched.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from support.gateway.client_programs import PYTHON
from support.paths import ROOT, TESTS

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
PYPROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
BACKEND = '''
"""Makes the wheel of a project that is one module with one command."""
import os, zipfile

def build_editable(folder, config_settings=None, metadata_directory=None):
    name, info = "kafka_proto-0.1.0-py3-none-any.whl", "kafka_proto-0.1.0.dist-info/"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("stand_in.py", "import sys\\ndef main():\\n    print('ran', *sys.argv[1:])\\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "METADATA", open("METADATA").read())
        wheel.writestr(info + "entry_points.txt", "[console_scripts]\\nkafka-proto = stand_in:main\\n")
        wheel.writestr(info + "RECORD", "")
    return name
'''
METADATA = """Metadata-Version: 2.1
Name: kafka-proto
Version: 0.1.0
"""


def project(folder: Path, *metadata: str) -> Path:
    """Make a project with the real bootstrap.py, whose metadata has all extras and these further lines."""
    shutil.copy(ROOT / "bootstrap.py", folder)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    (folder / "backend.py").write_text(BACKEND)
    names = ("test", "search", "spark", "demo", "gateway", "reproduce", "clients", "kernel")
    extras = (f"Provides-Extra: {extra}" for extra in names)
    (folder / "METADATA").write_text(METADATA + "\n".join((*extras, *metadata, "")))
    (folder / "index").mkdir()
    return folder


def bootstrap(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run it as a user does, with an index that has nothing."""
    index = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder / "index"), "PIP_CONFIG_FILE": os.devnull}
    there = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "KAFKA_PROTO_"))}
    return subprocess.run([sys.executable, str(folder / "bootstrap.py"), *arguments], env={**there, **index},
                          capture_output=True, text=True, check=False)


@pytest.mark.large
def test_extra_that_pip_cannot_install_is_left_out_with_a_sentence(tmp_path: Path) -> None:
    """The others are there, commands run, and those that need what is left out say that."""
    folder = project(tmp_path, 'Requires-Dist: numpy>=1.26; extra == "search"', 'Requires-Dist: nose; extra == "test"')
    made = bootstrap(folder, "run", "--seed", "1")
    assert (made.returncode, made.stdout) == (0, "ran hunt --out out --seed 1\n"), made.stderr
    said = [line for line in made.stderr.splitlines() if line.startswith("the extra ")]
    assert said == [
        f"the extra `{extra}` is left out: pip cannot install it for Python {HERE} (No matching distribution found for "
        f"{wanted}); all else works, and what needs it says so. To try again: python bootstrap.py clean, then setup"
        for extra, wanted in (("test", "nose"), ("search", "numpy>=1.26"))
    ]
    again = bootstrap(folder, "setup")
    assert (again.returncode, again.stderr) == (0, "") and again.stdout.endswith(" is up to date\n")
    for command in ("test", "test-large", "lint"):
        refused = bootstrap(folder, command)
        assert refused.returncode == 2 and refused.stdout == ""
        assert refused.stderr.startswith(f"{command} needs the extra `test`, which pip could not install"), refused


@pytest.mark.large
def test_project_that_pip_cannot_install_ends_the_setup(tmp_path: Path) -> None:
    """What the core needs is not left out."""
    folder = project(tmp_path, "Requires-Dist: attrs>=23.2")
    made = bootstrap(folder, "setup")
    assert made.returncode == 2 and made.stdout == ""
    assert made.stderr.splitlines()[-1].startswith("pip could not install the project; give pip access")
    assert (folder / ".venv" / "kafka-proto.stamp").read_text() == "unfinished\n"


@pytest.mark.parametrize(("version", "code", "out", "err"), [
    *((version, 0, "usage: python bootstrap.py COMMAND", "") for version in (
        (3, 11, 0), (3, 14, 0), (3, 15, 0), (4, 0, 0))),
    ((3, 10, 4), 2, "", "needs Python 3.11 or later, found 3.10.4; run it with e.g. python3.11 bootstrap.py\n"),
], ids=str)
def test_no_python_is_too_new_and_an_old_one_is_told_what_is_needed(
    version: tuple[int, int, int], code: int, out: str, err: str
) -> None:
    """Nothing but an old syntax is refused, in one sentence: the help, in an interpreter that says to be another."""
    pretended = f"import sys, runpy; sys.version_info = {version}; del sys.argv[0]; "
    run = "runpy.run_path(sys.argv[0], run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", pretended + run, str(ROOT / "bootstrap.py"), "help"],
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, err)
    assert done.stdout.startswith(out) and bool(done.stdout) == bool(out)


STAND_IN = """#!{python}
import os, pathlib, sys, time
what = sys.argv[2]
with pathlib.Path("ran").open("a") as ran:
    ran.write(what + "\\n")
while what == "mypy" and "pytest" not in pathlib.Path("ran").read_text():
    time.sleep(0.01)
if what == "pytest" and os.environ["CODES"].split()[1] != "0":
    time.sleep(60)
sys.exit(int(os.environ["CODES"].split()[["ruff", "mypy", "pytest"].index(what)]))
"""


@pytest.mark.parametrize(("codes", "ran", "code"), [
    ("0 0 0", {"ruff", "mypy", "pytest"}, 0), ("0 0 5", {"ruff", "mypy", "pytest"}, 5),
    ("0 3 0", {"ruff", "mypy", "pytest"}, 3), ("1 0 0", {"ruff"}, 1),
])
@pytest.mark.parametrize("target", ["quick", "test"])
def test_linters_and_tests_all_count(target: str, codes: str, ran: set[str], code: int, tmp_path: Path,
                                     monkeypatch: pytest.MonkeyPatch) -> None:
    """ruff comes first; mypy runs while pytest does, and where it fails the tests are not waited for."""
    bootstrap = imported(monkeypatch)
    (tmp_path / "python").write_text(STAND_IN.format(python=sys.executable))
    (tmp_path / "python").chmod(0o755)
    for name, value in (("ROOT", tmp_path), ("PYTHON", tmp_path / "python"), ("setup", lambda: False),
                        ("stamped", lambda: []), ("compile_harness", lambda: None)):
        monkeypatch.setattr(bootstrap, name, value)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CODES", codes)
    with pytest.raises(SystemExit) as end:
        bootstrap.main([target])
    lines = (tmp_path / "ran").read_text().splitlines()
    assert (end.value.code, lines[0], set(lines)) == (code, "ruff", ran)


def imported(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return bootstrap.py as a module."""
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("bootstrap")


@pytest.mark.parametrize(("target", "runs"), [
    ("run", ["kafka-proto", "hunt", "--out", "out"]),
    ("hunt-thorough", ["kafka-proto", "hunt", "--thorough", "--out", "out"]),
    ("demo", ["kafka-proto", "demo"]),
    ("table", ["python", "benchmarks/published_table.py"]),
])
def test_make_runs_what_the_readme_says(target: str, runs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """`make run` hunts, `make demo` starts the demo, `make table` prints the table; nothing is checked before."""
    bootstrap = imported(monkeypatch)
    given = []
    monkeypatch.setattr(bootstrap, "setup", lambda: False)
    monkeypatch.setattr(bootstrap, "check_first", lambda *checked: given.extend(checked))
    monkeypatch.setattr(bootstrap, "hand_over", lambda command: sys.exit(given.append(command)))
    monkeypatch.chdir(ROOT)
    with pytest.raises(SystemExit):
        bootstrap.main([target])
    assert [[Path(command[0]).name, *command[1:]] for command in given] == [runs]


def test_the_suite_runs_on_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """More processes than cores, as some wait, and never more than fit in memory."""
    bootstrap = imported(monkeypatch)
    for options, most in ((bootstrap.PYTEST, 2 * bootstrap.CORES), (bootstrap.LARGE, bootstrap.CORES + 1)):
        assert options[:3] == ["-m", "pytest", "-n"] and int(options[3]) == min(most, 4)


def test_setup_installs_whatever_a_test_is_skipped_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each package that tests import if it is there is in an extra of the set-up, real clients of Kafka included."""
    bootstrap = imported(monkeypatch)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    installed = {re.split(r"[\[<>=;]", wanted)[0] for extra in bootstrap.EXTRAS for wanted in extras[extra]}
    asked = {name for path in TESTS.rglob("test_*.py")
             for name in re.findall(r'importorskip\("(\w+)"', path.read_text(encoding="utf-8"))}
    asked |= set(PYTHON.values())
    assert asked >= {"aiokafka", "confluent_kafka", "kafka", "kio", "starlette"}
    assert {{"kafka": "kafka-python"}.get(name, name.replace("_", "-")) for name in asked} <= installed
    compiled = set(bootstrap.WHEELS[1].split(","))
    assert {"aiokafka", "confluent-kafka", "kafka-python"} <= compiled, "none of them is compiled by a set-up"
