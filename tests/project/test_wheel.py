"""The wheel: it holds the page's files and the recordings, and works in an environment that has nothing else."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
import zipfile
from email import message_from_string
from pathlib import Path

import pytest
from support.commands.wheels import PACKAGES, PIP, Environment, built, run
from support.docs.docs_blocks import PAGES
from support.docs.docs_runner import LEFT_OUT, RAN, follow, guide
from support.paths import RECORDED, ROOT
from support.spark.spark_session import need_java

EXAMPLES, TWO_PHASE = ROOT / "docs" / "examples", ROOT / "tests" / "data" / "two_phase"
PLAIN = (ROOT / "tests" / "support" / "searches" / "plain_search.py").read_text(encoding="utf-8") + """
import json
from harness.explore.bounded import ALL, bounded
from harness.model import Faults, find_model
for name, faults in (("lock-service", Faults(duplicate=1)), ("two-phase", Faults(drop=1))):
    found = search(bounded(find_model(name).make({}, {}, None, faults), {ALL: 1}))
    print(json.dumps([found.distinct, found.generated, found.depth]))
"""
"""The plain search of two protocols of other packages, with a fault and at most one timer."""
STATIC = ROOT / "harness" / "demo" / "web" / "static"
PATIENCE_S = 60


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel."""
    return built(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of a clean environment with the wheel, all its extras, and pytest."""
    need_java()
    venv = tmp_path_factory.mktemp("guides") / "venv"
    run(sys.executable, "-m", "venv", venv)
    run(venv / "bin" / "pip", "install", "--disable-pip-version-check", "--quiet", f"{wheel}[all]", "pytest")
    return venv / "bin"


@pytest.mark.large
@pytest.mark.parametrize("page", [page for page in PAGES if guide(page) or page.name == "README.md"],
                         ids=lambda page: page.stem)
def test_readme_and_guides_are_followed_in_an_empty_folder_with_nothing_but_the_wheel(
    page: Path, installed: Path, tmp_path: Path
) -> None:
    """Every block of a page, campaigns too, in a clean environment: files saved, commands run, outputs as shown."""
    assert set(follow(page, tmp_path, large=True, installed=installed).values()) <= {RAN, LEFT_OUT}


def get(address: str) -> bytes:
    """Return what a server answers."""
    with urllib.request.urlopen(address, timeout=PATIENCE_S) as answer:
        body: bytes = answer.read()
    return body


def test_wheel_has_every_file_of_the_page(wheel: Path) -> None:
    """What is in the folder of static files is in the wheel, byte for byte, and no compiled file of somebody's."""
    wanted = {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in STATIC.rglob("*") if path.is_file()}
    assert "harness/demo/web/static/index.html" in wanted
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        assert {name: packed.read(name) for name in names if name.startswith("harness/demo/web/static/")} == wanted
    assert not [name for name in names if name.endswith(".pyc")]


def test_wheel_has_the_recordings_its_types_and_what_an_index_shows(wheel: Path) -> None:
    """Each recorded situation, a `py.typed` for each package, and metadata: readme, author, licence, extras."""
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        (about,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        head, _, body = packed.read(about).decode().partition("\n\n")
        recorded = {name for name in names if name.startswith("kafka_proto/conformance/recorded/")}
        assert {Path(name).name: packed.read(name) for name in recorded} == {
            path.name: path.read_bytes() for path in RECORDED.iterdir()}
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    found = message_from_string(head)
    assert (found["Name"], found["Author"], found["License-Expression"]) == (
        "kafka-proto", "The maintainers of kafka-proto", "Apache-2.0")
    assert found["Description-Content-Type"] == "text/markdown"
    assert body == (ROOT / "README.md").read_text(encoding="utf-8")
    assert {"Typing :: Typed", "Framework :: Pytest"} <= set(found.get_all("Classifier"))
    extras = {name for name in found.get_all("Provides-Extra")}
    (everything,) = (line for line in found.get_all("Requires-Dist") if line.endswith('extra == "all"'))
    assert set(re.findall(r"\w+", everything.partition("[")[2].partition("]")[0])) == extras - {
        "all", "gateway", "clients", "browser", "site", "docs", "test"}, "`reproduce` brings `gateway`"


def test_commands_need_no_checkout(wheel: Path, tmp_path: Path) -> None:
    """From the wheel, in an empty folder: what was recorded is played, a scenario hunted, its trail replayed."""
    environment = Environment(tmp_path / "venv")
    environment.install(wheel)
    folder = tmp_path / "empty"
    folder.mkdir()
    played = environment.call("conformance", "--release", "4.4.0", "--family", "rdkafka", cwd=folder)
    assert (played.returncode, played.stderr) == (0, "")
    _, *rows, everything = (line.split() for line in played.stdout.splitlines())
    assert [row[:3] for row in rows] == [["4.4.0", level, "rdkafka"] for level in "012"]
    assert everything[0] == "all" and everything[1] == everything[2] and int(everything[1]) >= 256
    # kio imports hypothesis where that is installed, as it is for these tests; and that makes a folder.
    assert {path.name for path in folder.iterdir()} <= {".hypothesis"}
    hunted = environment.call("hunt", "s4-copied-tail", "--out", "found", cwd=folder)
    assert hunted.returncode == 0, hunted.stderr
    replayed = environment.call("replay", "found/s4-copied-tail.trail.jsonl", cwd=folder)
    assert replayed.returncode == 1 and "violates LogsAgreeUpToHwm at step 8" in replayed.stdout


@pytest.mark.large
def test_demo_works_from_an_installed_wheel_in_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    """Page, static files and catalogue are served from a clean environment; an interrupt ends the server with 0."""
    venv, folder = tmp_path / "venv", tmp_path / "empty"
    folder.mkdir()
    run(sys.executable, "-m", "venv", venv)
    run(venv / "bin" / "pip", "install", "--disable-pip-version-check", "--quiet", f"{wheel}[demo]")
    command = [venv / "bin" / "kafka-proto", "demo", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            said = server.stdout.readline()
            address = re.search(r"http://127\.0\.0\.1:\d+", said)
            assert address is not None, said + server.communicate(timeout=PATIENCE_S)[1]
            page = get(address[0] + "/").decode()
            assert page.encode() == (STATIC / "index.html").read_bytes()
            for path in sorted(path for path in STATIC.rglob("*") if path.is_file()):
                assert get(f"{address[0]}/static/{path.relative_to(STATIC).as_posix()}") == path.read_bytes()
            catalogue = json.loads(get(address[0] + "/api/catalogue"))
            assert "rp-01" in [tour["name"] for tour in catalogue["tours"]]
            server.send_signal(signal.SIGINT)
            _, err = server.communicate(timeout=PATIENCE_S)
            assert (server.returncode, err) == (0, "")
        finally:
            server.kill()
    lines = subprocess.run(
        [*command[:2], "--terminal"], cwd=folder, input="tour rp-01\nforward end\nquit\n", text=True,
        capture_output=True, timeout=PATIENCE_S,
    )
    assert lines.returncode == 0 and "FAILS 5 AckDurability" in lines.stdout
    assert list(folder.iterdir()) == []


@pytest.mark.large
def test_check_takes_protocols_of_other_packages_in_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    """Two packages are installed beside the wheel: violations are trails that replay, counts the plain search's."""
    venv, folder = tmp_path / "venv", tmp_path / "empty"
    folder.mkdir()
    wheels = tmp_path / "wheels"
    for source in (EXAMPLES, TWO_PHASE):
        copy = tmp_path / source.name
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        run(*PIP, "wheel", "--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", wheels, copy)
    run(sys.executable, "-m", "venv", venv)
    run(venv / "bin" / "pip", "install", "--disable-pip-version-check", "--quiet", wheel, *sorted(wheels.glob("*.whl")))

    def called(*words: str) -> tuple[int, str]:
        done = subprocess.run([venv / "bin" / words[0], *words[1:]], cwd=folder, capture_output=True, text=True,
                              timeout=PATIENCE_S)
        assert done.stderr == "", done.stderr
        return done.returncode, done.stdout

    plain = [json.loads(line) for line in called("python", "-c", PLAIN)[1].splitlines()]
    for name, faults, counts in zip(("lock-service", "two-phase"), ("duplicate=1", "drop=1"), plain, strict=True):
        code, out = called("kafka-proto", "check", name, "--faults", faults, "--timers", "1", "--json")
        found = json.loads(out)
        assert (code, [found["distinct"], found["generated"], found["depth"]]) == (0, counts)
    for scenario, violated, steps in (("double-release", "MutualExclusion", 13), ("first-yes", "Atomicity", 5)):
        code, out = called("kafka-proto", "check", scenario, "--json")
        (entry,) = json.loads(out)["violated"]
        assert (code, entry["property"], entry["length"]) == (1, violated, steps + 1)
        code, out = called("kafka-proto", "replay", entry["trail"], "--json")
        verdict = json.loads(out)["verdict"]
        assert (code, verdict["violated"], verdict["step"]) == (1, violated, steps)
