"""The kernel with several threads: the very states of one thread, in its order, and all that is reported of them."""

from __future__ import annotations

from typing import Any

import pytest
from support.searches.engines import KERNEL, everything, safety
from support.searches.spec_models import MODELS, made

from harness.explore.bounded import bounded
from harness.explore.packed import kernel_loop
from harness.explore.packed import search as search_module
from harness.explore.packed.result import Result
from harness.explore.packed.search import Search
from harness.model import Faults, Model, find_model

NARROW = 50
"""States of a level for which threads are not worth while, even four by four."""
SMALL = {"producers": 1, "transactional-ids": 1, "transactions": 1, "records": 1, "partitions": 1, "brokers": 1}


def late() -> Model:
    """Return whole transactions in which a request may be late, and one timer fires."""
    model = find_model("kafka/3.5").make(SMALL, faults=Faults(delay=1))
    return bounded(model, {"": 1})


def searched(model: Model, threads: int, **how: Any) -> tuple[Result, list[bytes], int]:
    """Search all of a model; return what was found, the states level by level, and how many threads found ready."""
    search = Search(model, safety(model), engine="kernel", threads=threads, stop=False, witnesses=True, **how)
    found = search.run()
    loop = search.loop
    assert isinstance(loop, kernel_loop.KernelLoop)
    levels = [loop.words(number).tobytes() for number in range(len(loop.ends))]
    return everything(found), levels, loop.together


@KERNEL
@pytest.mark.parametrize(("name", "how"), [
    *((name, {"deadlock": True}) for name in MODELS), ("late", {}), ("gist", {"fingerprints": True}),
    ("gist", {"symmetry": True}), ("late", {"states": 1_000}),
])
def test_several_threads_meet_the_very_states_of_one_in_its_order(
    name: str, how: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """States within bounds and out of them, answers, deadlocks, counts and limits are those of one thread."""
    monkeypatch.setattr(kernel_loop, "BATCH", 4)
    monkeypatch.setattr(search_module, "SCOUTED", 2)
    model = late() if name == "late" else made(MODELS[name])
    *found, alone = searched(model, 1, **how)
    assert alone == 0
    for threads in (2, 5):
        *together, ready = searched(model, threads, **how)
        assert together == found
        assert ready > 0 or max(map(len, found[1])) < 16 * NARROW


@KERNEL
def test_threads_begin_where_little_is_missing() -> None:
    """States that lack something are looked up once, by the thread that may ask; a small search has no other."""
    model = made(MODELS["gist"])
    *_, ready = searched(model, 2)
    assert ready == 0


@KERNEL
def test_threads_pack_anew_and_let_their_tables_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a field gets too narrow late, threads share the work; the tables of each have grown many times by then."""
    packed: list[int] = []
    packs = kernel_loop.KernelLoop._repack

    def noted(loop: kernel_loop.KernelLoop) -> bool:
        packed.append(loop._counts()[1])
        return packs(loop)

    monkeypatch.setattr(kernel_loop.KernelLoop, "_repack", noted)
    sizes = {"brokers": 4, "txn-log-partitions": 1, "transactional-ids": 2}
    model = find_model("transactions/diary-01").make(sizes, history_variables=True)
    *found, _ = searched(model, 1)
    for threads in (2, 5):
        *together, ready = searched(model, threads)
        assert together == found
        assert ready > 10_000
    assert max(packed) > 10_000
