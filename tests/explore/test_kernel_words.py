"""The kernel with states of two, three and four words: the same search, and wider words where narrower do not do."""

from __future__ import annotations

import pytest
from support.searches.engines import KERNEL, everything, safety
from support.searches.spec_models import MODELS, made

from harness.explore.packed import kernel_loop, layout, python_loop
from harness.explore.packed import search as search_module
from harness.explore.packed.result import Result
from harness.explore.packed.search import Search


@KERNEL
@pytest.mark.parametrize("words", [3, 4])
@pytest.mark.parametrize("how", [{}, {"fingerprints": True}, {"symmetry": True}])
def test_states_of_more_words_are_searched_in_the_same_way(
    how: dict[str, bool], words: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wider states are the same states: with fields in all words, and where they are packed anew on the way."""
    model = made(MODELS["gist"])

    def run(bits: dict[int, int]) -> tuple[Result, int]:
        monkeypatch.setattr(kernel_loop, "BITS", bits)
        search = Search(model, safety(model), engine="kernel", stop=False, deadlock=True, witnesses=True, **how)
        return search.run(), search.loop.width

    fit_into = layout.PackedLayout.fit_into

    def fill(self: layout.PackedLayout, most: int) -> bool:
        fits = fit_into(self, most)
        for n in range(most - self.bits if fits else 0):
            self.fields[n % len(self.fields)].bits += 1
        self._stack()
        return fits

    found, narrow = run({2: 127})
    monkeypatch.setattr(search_module, "SCOUTED", 2)
    monkeypatch.setattr(layout.PackedLayout, "fit_into", fill)
    wide, width = run({words: 64 * words - 1})
    assert (narrow, width) == (2, words)
    assert wide.bits == 64 * words - 1
    assert everything(wide) == everything(found)


@KERNEL
def test_a_search_takes_more_words_where_fields_outgrow_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """States that did not fit any more in the middle of the search are searched in wider ones, from the start."""
    monkeypatch.setattr(search_module, "SCOUTED", 2)
    taken: list[int] = []
    library = kernel_loop.library

    def noted(words: int) -> object:
        taken.append(words)
        return library(words)

    monkeypatch.setattr(kernel_loop, "library", noted)
    model = made(MODELS["diary-02"])
    found = Search(model, safety(model), engine="python", stop=False, witnesses=True).run()
    ways = set()
    for narrow in range(40, 112, 4):
        monkeypatch.setattr(kernel_loop, "BITS", {2: narrow, 3: 191})
        taken.clear()
        search = Search(model, safety(model), engine="kernel", stop=False, witnesses=True)
        assert everything(search.run()) == everything(found)
        assert search.loop.width == taken[-1]
        ways.add((taken[0], taken[-1]))
    assert {(2, 2), (2, 3)} <= ways


@KERNEL
def test_a_search_that_is_closed_gives_its_memory_back() -> None:
    """The states are let go of at once, whatever the collector still knows of the search; twice is not too often."""
    search = Search(made(MODELS["diary-02"]), (), engine="kernel")
    assert search.run().complete
    assert isinstance(search.loop, kernel_loop.KernelLoop) and search.loop.kernel
    search.close()
    assert search.loop.kernel is None
    search.close()
    python = Search(made(MODELS["diary-02"]), (), engine="python")
    assert python.run().complete
    python.close()
    assert isinstance(python.loop, python_loop.PythonLoop) and not (python.loop.seen or python.loop.levels)
