"""Make the project's own virtual environment and run a command in it (standard library only)."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

USAGE = """usage: python bootstrap.py COMMAND [ARGS...]

  setup        make the virtual environment, or refresh it when it is out of date
  run          kafka-proto hunt --out out [ARGS...]
  hunt-thorough
               kafka-proto hunt --thorough --out out [ARGS...]: many more silent runs
  quick        ruff, mypy, and the tests that find most per second, in under a minute; ARGS go to pytest
  test         ruff, then mypy beside pytest [ARGS...] on all cores; stops at the first of the three that fails
  test-large   pytest -m large [ARGS...]: the complete runs, which take minutes
  test-browser pytest -m browser [ARGS...]: the demo's page in Chromium or Chrome; left out where there is none
  lint         ruff and mypy
  bench        benchmarks/simulation.py [ARGS...]
  bench-search benchmarks/search.py [ARGS...]
  bench-pipeline
               benchmarks/pipeline.py [ARGS...]
  campaign     20,000 runs of eight scenarios on Spark into out/campaign, then the report; ARGS go to the campaign
  table        benchmarks/published_table.py: the diary's table of model checking runs, beside ours
  site         the demo as a site without a server, in out/site: the models run in the browser
  docs         the pages and an API reference as a site, in out/docs
  demo         kafka-proto demo [ARGS...]: a live cluster in a page on this machine
  clean        remove the virtual environment, caches and build files (out is kept)

Every command but clean starts with setup. Paths in ARGS are relative to the project folder.
The environment variable KAFKA_PROTO_VENV names another folder than .venv.
"""

# Nothing above, and no syntax below, may need a recent Python: an old one must get as far as this sentence.
if sys.version_info[:2] < (3, 11):
    found = ".".join(str(part) for part in sys.version_info[:3])
    print(f"needs Python 3.11 or later, found {found}; run it with e.g. python3.11 bootstrap.py", file=sys.stderr)
    sys.exit(2)

WINDOWS = os.name == "nt"
ROOT = Path(__file__).resolve().parent
VENV = ROOT / Path(os.environ.get("KAFKA_PROTO_VENV") or ".venv").expanduser()
BIN = VENV / ("Scripts" if WINDOWS else "bin")
PYTHON = BIN / ("python.exe" if WINDOWS else "python")
SCRIPT = BIN / ("kafka-proto.exe" if WINDOWS else "kafka-proto")
# The stamp shows that this file made the folder; it holds the digest only once every step has succeeded.
STAMP = VENV / "kafka-proto.stamp"

PIP = [str(PYTHON), "-m", "pip", "install", "--disable-pip-version-check"]
EXTRAS = ("test", "search", "spark", "demo", "gateway", "reproduce", "clients")
# Never compiled here: where one of them has no wheel yet for a Python, the extra that asks for it is left out.
WHEELS = ["--only-binary", "numpy,scipy,pandas,pyarrow,matplotlib,kio,crc32c,confluent-kafka,kafka-python,aiokafka"]
RUFF = ["-m", "ruff", "check", "."]
MYPY = ["-m", "mypy"]
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
# More processes than cores, since each waits now and then for processes of its own, but no more than fit in the memory
# of a laptop: large tests take more of it.
PYTEST = ["-m", "pytest", "-n", str(min(2 * CORES, 4)), "--dist", "worksteal"]
LARGE = ["-m", "pytest", "-n", str(min(CORES + 1, 4)), "--dist", "worksteal", "-m", "large"]
# What finds most per second: rules, the vocabulary, counts against TLC, strategies, exports, the rows of a campaign.
QUICK = [
    "tests/project/test_rules.py",
    "tests/project/test_glossary.py",
    "tests/model/test_values.py",
    "tests/model/test_network.py",
    "tests/model/test_properties.py",
    "tests/explore/test_graph.py",
    "tests/simulate/test_strategies.py",
    "tests/simulate/test_runtimes.py::test_both_runtimes_give_one_digest",
    "tests/render/test_exports.py",
    "tests/verify/test_conditions.py",
    "tests/campaign/test_pipeline_parts.py",
    "tests/cli/test_cli.py::test_list_names_every_model_and_scenario_in_80_columns",
    "tests/cli/test_cli.py::test_replay_of_a_violating_trail_exits_with_1",
    "tests/cli/test_cli.py::test_simulate_takes_sizes_settings_and_steps",
]
# Flawed scenarios of each protocol; their repaired twins are in the campaign, too.
FLAWED = ("s3-wiped-metadata", "s4-copied-tail", "pc-06-replayed-twice", "rp-01-truncate-to-high-watermark")
CAMPAIGN = [name for flawed in FLAWED for name in (flawed, f"{flawed}-repaired")]
PYODIDE = "pyodide@314.0.7"
"""Python for browsers, as its package for Node is called."""
BENCHMARKS = {"bench": "simulation.py", "bench-search": "search.py", "bench-pipeline": "pipeline.py",
              "table": "published_table.py"}
COMMANDS = ("setup", "run", "hunt-thorough", "quick", "test", "test-large", "test-browser", "lint", "campaign", "demo",
            "site", "docs", "clean", *BENCHMARKS)
# Half a minute each time the source of what is compiled has changed, which these make up for.
COMPILED = ("setup", "run", "hunt-thorough", "test", "test-large", "campaign", *BENCHMARKS)
CACHES = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"}


def fail(sentence: str) -> NoReturn:
    print(sentence, file=sys.stderr)
    sys.exit(2)


def digest() -> str:
    """What the environment depends on: these two files, the Python version and (scripts hold it) its own place."""
    state = hashlib.sha256()
    for part in (
        (ROOT / "pyproject.toml").read_bytes(),
        (ROOT / "bootstrap.py").read_bytes(),
        f"{version()} {ROOT} {VENV}".encode(),
    ):
        state.update(hashlib.sha256(part).digest())
    return state.hexdigest()


def is_current() -> bool:
    if not (PYTHON.exists() and SCRIPT.exists() and STAMP.is_file()):
        return False
    return stamped()[:1] == [digest()]


def stamped() -> list[str]:
    """The lines of the stamp: the digest, then the extras that are left out."""
    return STAMP.read_text(encoding="utf-8").split()


def remove_venv() -> None:
    """Delete the environment, but never a folder that somebody else filled."""
    if not VENV.exists() and not VENV.is_symlink():
        return
    if not VENV.is_dir():
        fail(f"{VENV} must be a folder for the virtual environment; remove it or set KAFKA_PROTO_VENV to another path")
    default = VENV == ROOT / ".venv" and not VENV.is_symlink()
    if not default and not STAMP.is_file() and any(VENV.iterdir()):
        fail(f"{VENV} was not made by bootstrap.py and is not empty; set KAFKA_PROTO_VENV to a new or an empty folder")
    # The stamp goes last, so that an interrupted removal can be resumed.
    for entry in sorted(VENV.iterdir(), key=lambda path: path == STAMP):
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def step(command: list[str], failure: str) -> None:
    """Run quietly; on failure show the last lines of the output and one sentence."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        lines = done.stdout.decode(errors="replace").strip().splitlines()
        fail("\n".join([*lines[-20:], failure]))


def setup() -> bool:
    """Make the environment unless it is up to date; return whether there was anything to do."""
    if is_current():
        return False
    print(f"setting up {VENV} with Python {version()} (about a minute)", file=sys.stderr, flush=True)
    expected = digest()
    remove_venv()
    VENV.mkdir(parents=True, exist_ok=True)
    STAMP.write_text("unfinished\n", encoding="utf-8")
    # In an active virtual environment (perhaps the one just removed) the interpreter below it is the one to use.
    base = getattr(sys, "_base_executable", None) or sys.executable
    step(
        [base, "-m", "venv", str(VENV)],
        f"could not make the virtual environment {VENV}; install the venv module of Python {version()} and try again",
    )
    left_out = install()
    compile_kernel()
    STAMP.write_text("\n".join([expected, *left_out, ""]), encoding="utf-8")
    return True


def install() -> list[str]:
    """Install the project and its extras; those that pip cannot install are left out, with a sentence, and returned."""
    if pip(f".[{','.join(EXTRAS)}]").returncode == 0:
        return []
    step(
        [*PIP, "--editable", "."],
        "pip could not install the project; give pip access to a package index (its PIP_* variables and "
        "configuration files apply) and try again",
    )
    left_out = []
    for extra in EXTRAS:
        done = pip(f".[{extra}]")
        if done.returncode != 0:
            left_out.append(extra)
            said = [line for line in done.stdout.splitlines() if line.startswith("ERROR:")] or ["no reason given"]
            print(
                f"the extra `{extra}` is left out: pip cannot install it for Python {version()} "
                f"({said[-1].removeprefix('ERROR: ').partition(';')[0]}); all else works, and what needs it says so. "
                "To try again: python bootstrap.py clean, then setup",
                file=sys.stderr,
            )
    return left_out


def pip(project: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([*PIP, *WHEELS, "--editable", project], cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", check=False)


def version() -> str:
    return f"{sys.version_info[0]}.{sys.version_info[1]}"


def compile_kernel() -> None:
    """Compile the search kernel, with a compiler from the package index where the machine has none.

    Without it everything works too: the search then runs in pure Python.
    """
    kernel = [str(PYTHON), "-m", "harness.explore.packed.kernel"]
    if subprocess.run(kernel, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
        subprocess.run([*PIP, "--quiet", "--editable", ".[kernel]"], cwd=ROOT, check=False)
        done = subprocess.run(kernel, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"the search will run in pure Python: {done.stdout.strip()}", file=sys.stderr)


def compile_harness() -> None:
    """Compile the harness as its source is now, unless that is done; else the same source runs as Python, slower."""
    command = [str(PYTHON), "-m", "harness.compiled"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"runs will take about 1.4 times as long: {done.stdout.strip()}", file=sys.stderr)


def hand_over(command: list[str]) -> NoReturn:
    """Become the command, so that its signals and its exit code are ours."""
    sys.stdout.flush()
    sys.stderr.flush()
    if WINDOWS:  # execv there returns to the caller at once
        sys.exit(subprocess.call(command))
    os.execv(command[0], command)


def check_first(*commands: list[str]) -> None:
    for command in commands:
        code = subprocess.call([str(PYTHON), *command])
        if code != 0:
            sys.exit(code if code > 0 else 128 - code)


def check_beside(command: list[str], tests: list[str]) -> NoReturn:
    """Run both at once; where the check fails the tests are ended, and its code is ours."""
    with subprocess.Popen([str(PYTHON), *tests]) as running:
        try:
            code = subprocess.call([str(PYTHON), *command])
            if code != 0:
                running.terminate()
            code = code or running.wait()
        except KeyboardInterrupt:
            running.wait()  # it is interrupted, too, and says how far it came
            raise
    sys.exit(code if code >= 0 else 128 - code)


def provide_java() -> None:
    """Install a Java from the package index where the machine has none; without it, Spark says what is missing."""
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        subprocess.run([*PIP, "--quiet", "--editable", ".[jdk]"], cwd=ROOT, check=False)


def campaign(rest: list[str]) -> NoReturn:
    """Make the campaign, and then its report; an interrupt is the campaign's own to deal with."""
    provide_java()
    out = ([*rest, "out/campaign"][rest.index("--out") + 1]) if "--out" in rest else "out/campaign"
    signal.signal(signal.SIGINT, lambda *_: None)
    made = subprocess.call([str(SCRIPT), "campaign", *CAMPAIGN, "--runs", "2500", "--out", out, *rest])
    if made != 0:
        sys.exit(made if made > 0 else 128 - made)
    hand_over([str(SCRIPT), "report", out, "--check"])


def test_browser(rest: list[str]) -> None:
    """Run the tests of the demo's page, or say in one line why they are left out."""
    found = subprocess.run([str(PYTHON), "tests/support/demo/browser.py"], capture_output=True, text=True, check=False)
    if found.returncode != 0:
        print(f"test-browser is left out: {found.stdout.strip()}")
        return
    # The driver alone, and only here: the browser is the machine's own.
    step([*PIP, "--editable", ".[browser]"], "pip could not install the extra `browser`; see above")
    print(f"with {found.stdout.strip()}", flush=True)
    try:
        site()
    except SystemExit:
        print("the tests of the site without a server are left out")
    pages = [f"tests/demo/{path.name}" for path in sorted(ROOT.glob("tests/demo/test_demo_page*.py"))]
    hand_over([str(PYTHON), "-m", "pytest", "-m", "browser", *pages, *rest])


def site() -> None:
    """Build the demo as a site without a server, with what it needs from the package indexes of Python and of Node."""
    step([*PIP, "--editable", ".[site]"], "pip could not install the extra `site`; see above")
    parts = Path("out/site-parts")
    parts.mkdir(parents=True, exist_ok=True)
    for old in parts.glob("*.whl"):
        old.unlink()
    if not (parts / f"{PYODIDE.replace('@', '-')}.tgz").is_file():
        npm = shutil.which("npm", path=str(BIN)) or "npm"
        step([npm, "pack", "--silent", "--pack-destination", str(parts), PYODIDE],
             f"npm could not fetch {PYODIDE}, Python for browsers; see above")
    shutil.rmtree(ROOT / "build", ignore_errors=True)  # else the wheel has modules that are gone
    step([str(PYTHON), "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(parts), ".", "attrs"],
         "pip could not build the wheels of the site; see above")
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    step([str(PYTHON), "-m", "harness.demo.web.site", str(parts), "out/site"], "the site was not built; see above")
    print("the site is in out/site: open index.html, or serve the folder", flush=True)


def docs() -> NoReturn:
    """Build the site; a warning, as of a dead link, is an error."""
    step([*PIP, "--editable", ".[docs]"], "pip could not install the extra `docs`; see above")
    hand_over([str(PYTHON), "-m", "sphinx", "-q", "-W", "--keep-going", "-c", "docs", ".", "out/docs"])


def clean() -> None:
    remove_venv()
    if VENV.is_dir() and not VENV.is_symlink():
        VENV.rmdir()
    doomed = [ROOT / "build", ROOT / "dist", *ROOT.glob("*.egg-info")]
    for folder, names, _ in os.walk(ROOT):
        doomed += [Path(folder, name) for name in names if name in CACHES]
        names[:] = [name for name in names if name not in CACHES and name not in (".git", "out")]
    for path in doomed:
        if path.is_dir():
            shutil.rmtree(path)


def main(arguments: list[str]) -> None:
    command, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if command in ("-h", "--help", "help"):
        print(USAGE, end="")
        return
    if command not in COMMANDS:
        print(USAGE, file=sys.stderr)
        fail(f"expected one of the commands above, got {command or 'nothing'}; try python bootstrap.py test")
    if command in ("setup", "lint", "site", "docs", "clean") and rest:
        fail(f"{command} takes no arguments, got {' '.join(rest)}; leave them out")
    os.chdir(ROOT)
    if command == "clean":
        return clean()

    fresh = setup()
    if command in COMPILED:
        compile_harness()
    python = str(PYTHON)
    if command.startswith(("quick", "test")):
        # Else each of the hundreds of processes that the tests start would compile all sources anew.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if command in ("quick", "test", "test-large", "test-browser", "lint") and "test" in stamped():
        fail(f"{command} needs the extra `test`, which pip could not install for Python {version()}; run it with "
             f"another Python (make {command} PYTHON=python3.13), or try again: python bootstrap.py clean, then setup")
    if command == "setup":
        print(f"{VENV} is {'ready' if fresh else 'up to date'}")
    elif command in ("run", "hunt-thorough"):
        how = ["--thorough"] if command == "hunt-thorough" else []
        hand_over([str(SCRIPT), "hunt", *how, "--out", "out", *rest])
    elif command == "quick":
        check_first(RUFF)
        check_beside(MYPY, [*PYTEST, *QUICK, *rest])
    elif command == "test":
        check_first(RUFF)
        check_beside(MYPY, [*PYTEST, *rest])
    elif command == "test-large":
        hand_over([python, *LARGE, *rest])
    elif command == "test-browser":
        test_browser(rest)
    elif command == "lint":
        check_first(RUFF)
        hand_over([python, *MYPY])
    elif command == "campaign":
        campaign(rest)
    elif command == "demo":
        hand_over([str(SCRIPT), "demo", *rest])
    elif command == "site":
        site()
    elif command == "docs":
        docs()
    elif command in BENCHMARKS:
        benchmark = Path("benchmarks", BENCHMARKS[command])
        if not benchmark.is_file():
            fail(f"{ROOT / benchmark} is missing; restore it from version control")
        if command == "bench-pipeline":
            provide_java()
        hand_over([python, str(benchmark), *rest])


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        fail(f"{error}; check that {ROOT} and {VENV} can be read and written, then try again")
