"""Which blocks of runs a campaign lacks, and how they are spread over Spark's tasks: pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from harness.campaign.cells import Cell
from harness.campaign.store import CommittedBlock, Manifest
from harness.campaign.worker import BlockTask
from harness.simulate.strategies.by_name import IN_ORDER

BLOCK, BLOCKS = 500, 100
"""Seeds of a block, if nothing else is said: seconds of work; in a cell of more blocks than this, a multiple."""
COVERAGE = 0.02
"""By default, the part of the runs whose coverage is measured: it takes several times as long."""
PREFIX = 0.1
"""The part of the first block that is covered where less than this is, so that a small campaign is not all coverage."""
PER_CORE, PER_TASK = 4, 16
"""Tasks for each core, at least; and the blocks of a task, at most."""


def usual_block(runs: int) -> int:
    """Return how many seeds a block has in a campaign of so many for each cell, so that its files stay few."""
    return BLOCK * max(1, -(-runs // (BLOCK * BLOCKS)))


def covered(manifest: Manifest, strategy: str, first: int) -> int:
    """Return up to which seed coverage is measured in the block of a seed; 0 if it is not measured.

    It is every nth block, from the first on. Where few are, it is the one in the middle of each n blocks and a tenth
    of the first block, but for strategies whose runs learn from one another.
    """
    number, size = first // manifest.block, manifest.block
    if manifest.coverage <= 0:
        return 0
    every = max(1, round(1 / manifest.coverage))
    if manifest.coverage >= PREFIX or strategy in IN_ORDER:
        return 0 if number % every else (number + 1) * size
    if number == 0:
        return max(1, round(size * PREFIX))
    return (number + 1) * size if number % every == every // 2 else 0


def missing(manifest: Manifest, runs: int, committed: Iterable[CommittedBlock]) -> list[BlockTask]:
    """Return the blocks that are to be made so that each cell has the runs with the seeds 0 to `runs` - 1."""
    made: dict[str, list[CommittedBlock]] = {cell.key: [] for cell in manifest.cells}
    for block in committed:
        made.setdefault(block.cell, []).append(block)
    return [
        BlockTask(cell, first, last, manifest.keep, first < covered(manifest, cell.strategy, first))
        for cell in manifest.cells
        for gap in _gaps(cell, manifest.block, runs, made[cell.key])
        for first, last in _cut(cell, gap, covered(manifest, cell.strategy, gap[0]))
    ]


def _gaps(cell: Cell, size: int, runs: int, made: Sequence[CommittedBlock]) -> Iterator[tuple[int, int]]:
    """Yield the seeds that a cell lacks, from the first up to the last, which is not one of them, in blocks."""
    if any(block.runs < block.last - block.first for block in made):
        return  # a systematic search has ended
    at = 0
    for block in [*sorted(made, key=lambda block: block.first), None]:
        until = runs if block is None else min(block.first, runs)
        while at < until:
            last = until if cell.strategy == "systematic" else min((at // size + 1) * size, until)
            yield at, last
            at = last
        at = max(at, 0 if block is None else block.last)


def _cut(cell: Cell, gap: tuple[int, int], at: int) -> Iterator[tuple[int, int]]:
    """Yield a gap in the part before a seed and the part from there on, if it has both and runs may be parted."""
    first, last = gap
    if first < at < last and cell.strategy not in IN_ORDER:
        yield first, at
        first = at
    yield first, last


def spread(tasks: Sequence[BlockTask], cores: int) -> list[list[BlockTask]]:
    """Return blocks in lists to be worked on, those that take long first, neighbours together."""
    long = [[task] for task in tasks if task.covered]
    short = [task for task in tasks if not task.covered]
    size = max(1, min(PER_TASK, -(-len(short) // (cores * PER_CORE))))
    return [*long, *(short[n : n + size] for n in range(0, len(short), size))]
