"""What searches found before: whether it is of the code as it is, and of all that a scenario may do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from harness.model import Faults, Model, ModelSpec, Network, Scenario, Size, System, register, unregister
from harness.model.faults import NO_FAULTS
from harness.record import search_results
from harness.record.search_results import Searched, code_digest, code_of, write

PACKAGE = "made_for_a_search"
CODE = '''"""A package."""
from made_for_a_search import steps
'''
STEPS = '''"""Steps."""


def step(state):
    """Take a step."""
    # one more
    return state + 1, "# this is no comment"
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of two modules, found but not loaded."""
    here = tmp_path / PACKAGE
    here.mkdir()
    (here / "__init__.py").write_text(CODE)
    (here / "steps.py").write_text(STEPS)
    (here / "beside.py").write_text("unused = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    forget()
    yield here
    forget()


def forget() -> None:
    """Read what there is anew, as another process would."""
    for known in (search_results.code_digest, search_results.entries_of, search_results.folder_of):
        known.cache_clear()


def digest() -> str:
    forget()
    return code_digest(PACKAGE)


@pytest.mark.parametrize(("old", "new", "is_other"), [
    ("# one more", "# and one more", False),
    ('"""Take a step."""', '"""Take one step,\n\n    and no other: \'so\'."""', False),
    ("\n\n\ndef", "\n\n\n\n\ndef", False),
    ("state + 1", "state + 2", True),
    ("# this is no comment", "# this was no comment", True),
    ('"""Steps."""', '"""Steps."""\nx = 1  # new', True),
])
def test_digest_of_code_is_of_what_the_models_do(folder: Path, old: str, new: str, is_other: bool) -> None:
    """Comments, docstrings and empty lines change nothing; code does, also that of a module that is imported."""
    before = digest()
    (folder / "beside.py").write_text("unused = 2\n")
    assert digest() == before
    text = STEPS.replace(old, new)
    assert text != STEPS
    (folder / "steps.py").write_text(text)
    assert (digest() != before) is is_other


def test_digest_of_code_is_not_of_how_the_harness_is_compiled() -> None:
    """Compiled or not, results are equal: tests of builds hold that."""
    modules = code_of("kafka_proto.transactions")
    assert {"harness", "harness.model.values", "kafka_proto.transactions.properties"} <= {*modules}, sorted(modules)
    assert not [name for name in modules if name.startswith("harness.compiled")]


def build(sizes: dict[str, int], settings: dict[str, str], network: Network, faults: Faults, history: bool) -> Model:
    raise AssertionError("nobody needs the model")


@pytest.fixture
def entry(folder: Path) -> Iterator[Searched]:
    """What a search found of a scenario of that package, written and read."""
    spec = ModelSpec("counting", "", build, {"most": Size(3)}, networks=("bag",), may_fault=True)
    register(System("counting", (spec,), (ROW,), package=PACKAGE))
    write(PACKAGE, [Searched(
        "counts", "counting", {"most": 3}, {}, "bag", {"crash": 1}, {"": 1}, ("numbers",), ("Small", "Even"), True, 17,
        4, None, False, code_digest(PACKAGE),
    )])
    found = search_results.searched("counts")
    assert found is not None
    yield found
    unregister("counting")


ROW = Scenario("counts", "", "counting", faults=Faults(crash=1), claims=("Small",), timeouts=1)


def test_entry_is_of_the_code_as_it_is_until_that_changes(entry: Searched, folder: Path) -> None:
    """Written and read it is the same; another step, and it is of other code."""
    assert entry.is_of_this_code and entry.reductions == ("numbers",)
    assert entry.within == "most=3, crash=1, 1 timer"
    (folder / "steps.py").write_text(STEPS.replace("+ 1", "+ 3"))
    forget()
    assert not entry.is_of_this_code
    assert search_results.searched("another") is None


@pytest.mark.parametrize("change", [
    lambda e, s: (e, attrs.evolve(s, sizes={"most": 4})),
    lambda e, s: (e, attrs.evolve(s, faults=NO_FAULTS)),
    lambda e, s: (e, attrs.evolve(s, faults=Faults(crash=2))),
    lambda e, s: (e, attrs.evolve(s, timeouts=2)),
    lambda e, s: (e, attrs.evolve(s, claims=("Small", "Ends"))),
    lambda e, s: (e, attrs.evolve(s, mode="timed")),
    lambda e, s: (attrs.evolve(e, complete=False), s),
])
def test_search_covers_a_scenario_of_its_size_and_budget_only(
    entry: Searched, change: Callable[[Searched, Scenario], tuple[Searched, Scenario]]
) -> None:
    """Not of another size or other faults, of more timers or claims, of time, and not if it ended before."""
    assert entry.covers(ROW)
    made, row = change(entry, ROW)
    assert not made.covers(row)
