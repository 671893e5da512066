"""The published state counts of diary 01 beside ours: longest path, distinct states and time of every row.

    python benchmarks/published_table.py [--engine auto|python|kernel] [--json]

Published are the figures of the text on the InitPid specification (module at Vanlightly/kafka-tlaplus, commit 9f1a1c8,
TLC with 16 workers). Ours are whole processes `kafka-proto check ... --json`, start-up included. Where both are well
defined they must be equal, or the program ends with code 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import textwrap

import attrs
from measure import check, sizes

MODEL = "transactions/diary-01"
LIVENESS = ("--property", "EventuallyAllClientsGetPid")
SYMMETRY = ("--symmetry",)
BOTH = ("--symmetry", "--view")

EXACT = (
    "symmetry with a view is not well defined in TLC: it picks the least renaming of the whole state and then looks "
    "through the view, so its count depends on which states it meets first. Ours is the exact number of classes."
)
FIGURE_4 = (
    "figure 4 is simplified: its 10 states need a view that also drops last_state and last_error. Ours is the "
    "module's view; both from one initial state (init=choose)."
)
FIGURE_5 = "figure 5 is simplified, no published module gives 33. Ours is TLC's count (init=choose)."


@attrs.frozen
class Row:
    """A published row: how many of what, how it was reduced, the longest path, the states, the time as printed."""

    partitions: int
    ids: int
    clients: int
    brokers: int
    reduction: str
    arguments: tuple[str, ...]
    published: tuple[int, int]
    time: str
    ours: tuple[int, int]
    note: str = ""

    def command(self) -> list[str]:
        given = {"txn-log-partitions": self.partitions, "transactional-ids": self.ids, "clients": self.clients,
                 "brokers": self.brokers}
        return [MODEL, *sizes(given), *self.arguments]


ROWS = (
    Row(1, 1, 2, 2, "liveness", LIVENESS, (18, 968), "1 s", (18, 968)),
    Row(2, 2, 2, 2, "liveness", LIVENESS, (18, 23_312), "1 s", (18, 23_312)),
    Row(2, 2, 2, 3, "liveness", LIVENESS, (24, 322_596), "8 m 33 s", (24, 322_596)),
    Row(2, 2, 2, 3, "symmetry", SYMMETRY, (24, 7_052), "10 s", (24, 7_052)),
    Row(2, 2, 3, 3, "symmetry", SYMMETRY, (37, 492_040), "1 m 6 s", (37, 492_040)),
    Row(2, 2, 2, 3, "symmetry, view", BOTH, (16, 1_839), "10 s", (15, 1_472), EXACT),
    Row(2, 2, 3, 3, "symmetry, view", BOTH, (24, 37_546), "20 s", (23, 32_776), EXACT),
    Row(1, 1, 1, 3, "view, figure 4", ("--set", "init=choose", "--view"), (5, 10), "", (8, 18), FIGURE_4),
    Row(1, 1, 1, 3, "none, figure 5", ("--set", "init=choose"), (11, 33), "", (11, 36), FIGURE_5),
)
"""Every row of the text in its order, its figures 4 and 5 last; pairs are longest path and distinct states."""


def main() -> None:
    """Run every row and print it as it comes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--engine", choices=("auto", "python", "kernel"), default="auto")
    parser.add_argument("--json", action="store_true", help="one JSON array instead of the table")
    given = parser.parse_args()
    notes = list(dict.fromkeys(row.note for row in ROWS if row.note))
    reported, wrong = [], 0
    if not given.json:
        print(f"{'':36}  published                      ours\n"
              f"{'p':>1} {'ids':>3} {'clients':>7} {'brokers':>7}  {'reduction':14}  {'length':>6} {'states':>8} "
              f"{'time':>9}     {'length':>6} {'states':>8} {'CPU s':>8} {'wall s':>8}")
    for row in ROWS:
        found, cost = check([*row.command(), "--engine", given.engine])
        counts = (found["depth"], found["distinct"])
        wrong += counts != row.ours
        reported.append({
            "sizes": found["sizes"], "reduction": row.reduction, "published": row.published, "published_time": row.time,
            "ours": counts, "cpu_seconds": round(cost.cpu_seconds, 3), "wall_seconds": round(cost.wall_seconds, 3),
            "expected": row.ours, "note": row.note,
        })
        if given.json:
            continue
        mark = f"[{notes.index(row.note) + 1}]" if row.note else ""
        mark += "" if counts == row.ours else f"  expected {row.ours[0]} and {row.ours[1]:,}"
        print(
            f"{row.partitions} {row.ids:3} {row.clients:7} {row.brokers:7}  {row.reduction:14}  "
            f"{row.published[0]:6} {row.published[1]:8,} {row.time:>9}     {counts[0]:6} {counts[1]:8,} "
            f"{cost.cpu_seconds:8.2f} {cost.wall_seconds:8.2f}  {mark}".rstrip(), flush=True
        )
    if given.json:
        print(json.dumps(reported, indent=1))
    else:
        print("p: partitions of the transaction log; length: states on the longest shortest path")
        for number, note in enumerate(notes, 1):
            print(textwrap.fill(f"[{number}] {note}", 100, subsequent_indent="    "))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
