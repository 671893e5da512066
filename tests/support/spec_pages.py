"""The pages docs/specs/*.md: each action of a TLA+ module, its Python definition, and the actors' steps it covers.

Run as a program it makes them anew: `python tests/support/spec_pages.py [--runs]`. The text of a definition is in
tests/data/tla, which holds those that the published pages show (they have lost their indentation). Which steps of the
actors are which action is what recorded runs have shown, each held against the spec; `--runs` makes the runs again and
notes it in tests/data/spec_steps.json.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import attrs

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # run as a program, too

from compaction import spec as compaction
from harness.model import Faults, find_model
from harness.model.spec import Action, Next, flat
from harness.simulate.plan import Plan
from harness.verify.refinement import Refiner
from harness.verify.simulated_runs import refine_runs
from kafka_proto.replication.specs import kip_320
from kafka_proto.transactions import correspondence
from kafka_proto.transactions.specs import diary_02
from support.actor_mutants import Sparing, is_aborting
from support.paths import ROOT

DATA, FOLDER = ROOT / "tests" / "data", ROOT / "docs" / "specs"
STEPS = DATA / "spec_steps.json"
DEFINITION = re.compile(r"(?:\\\*)?([A-Z]\w*)(?:\([^)]*\))? ==")
WIDTH = 120
Pairs = Iterator[tuple[str, str]]
"""What an action of the actors was, in runs: it and the action of the spec; an empty name is a stutter."""


@attrs.frozen
class Page:
    """A page: a spec's relation, the module that it is beside, and how its runs are made."""

    name: str
    title: str
    model: str
    next_state: Next
    source: str
    module: str
    """The file below tests/data/tla."""
    note: str
    runs: Callable[[int], Pairs]
    """Runs of the actors; the number says how many of each kind."""
    called: Mapping[str, str] = attrs.field(factory=dict)
    """Actions that the module has under another name."""
    names: Mapping[str, str] = attrs.field(factory=dict)
    """What Kafka and the actors call otherwise: their names, and the spec's."""

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.md"


def of_transactions(runs: int) -> Pairs:
    for name, sizes in (("diary-02", {}), ("repaired", {"elections": 3})):
        model = find_model(f"transactions/{name}/actors").make(sizes, faults=Faults(2, 2, 2, crash=1, targets=("b1",)))
        yield from refine_runs(model, Plan((), steps=120), range(runs)).pairs
    refiner = Refiner(find_model("transactions/repaired/actors").make())
    for seed in range(runs // 4):
        yield from refiner.simulate(Plan((), steps=80), Sparing(seed, is_aborting))[1].pairs


def of_kip_320(runs: int) -> Pairs:
    everybody = ("r1", "r2", "r3")
    sizes = {"replicas": 3, "producers": 2, "consumers": 0, "records": 3, "elections": 2, "fencings": 1}
    model = find_model("replication/kip-320/actors").make(sizes, {}, "bag", Faults(crash=2, delay=2, targets=everybody))
    yield from refine_runs(model, Plan((), 120, mode="timed"), range(runs)).pairs


def of_compaction(runs: int) -> Pairs:
    faults = Faults(1, 1, 1, 1, 1, 1, 1, 2, 1, targets=("broker", "producer", "r1"))
    actors = find_model("compaction/pulsar/actors")
    for repair in ("S11,S12", ""):
        model = actors.make({"messages": 2, "keys": 1}, {"repair": repair}, "fifo", faults)
        yield from refine_runs(model, Plan((), steps=100), range(runs)).pairs


def differing(names: Mapping[str, str]) -> dict[str, str]:
    return {actors: spec for actors, spec in names.items() if actors != spec}


PAGES = (
    Page(
        "diary-02", "Diary 02: InitPid and AddPartitionsToTxn with elections", "transactions/diary-02", diary_02.NEXT,
        "https://github.com/Vanlightly/kafka-tlaplus, transactions/diary/02_AddPartitionsToTxn/tlaplus",
        "kafka_transactions_for_web",
        "The definitions are those of its earlier form, the gist, which calls ElectLeader BecomeLeader, copies the "
        "leader's log (S4), lets every replica follow (S2 is diary 02's own) and has CompletePartialTxn in a comment.",
        of_transactions, {"ElectLeader": "BecomeLeader"}, differing({**correspondence.NAMES, **correspondence.FIELDS}),
    ),
    Page(
        "kip-320", "KIP-320: exchanges fenced by leader epoch", "replication/kip-320", kip_320.NEXT,
        "https://github.com/hachikuji/kafka-specification, Kip320.tla over KafkaReplication.tla", "KafkaReplication",
        "The definitions are those of KafkaReplication. Those of Kip320.tla itself are not part of this repository; "
        "they are read where they are published.", of_kip_320,
    ),
    Page(
        "compaction", "Topic compaction of Pulsar", "compaction/pulsar", compaction.NEXT,
        "https://github.com/thetumbled/pulsar-tlaplus, compaction.tla", "compaction",
        "The consumer is not modelled among the actors, whose readers read; Terminating changes nothing.",
        of_compaction,
    ),
)


def definitions(text: str) -> dict[str, str]:
    """Return the definitions of a file below tests/data/tla by name: they are apart by empty lines."""
    found = {}
    for block in text.strip("\n").split("\n\n"):
        match = DEFINITION.match(block)
        assert match is not None, f"no definition: {block[:40]}"
        found[match[1]] = block
    return found


def noted() -> dict[str, dict[str, list[str]]]:
    """Return, for each page, the actors' steps that runs have shown each action to be."""
    steps: dict[str, dict[str, list[str]]] = json.loads(STEPS.read_text(encoding="utf-8"))
    return steps


def seen(page: Page, runs: int) -> dict[str, set[str]]:
    """Return the actors' actions that are a step of each action of the spec in so many runs of each kind."""
    found: dict[str, set[str]] = {}
    own = {one.name for one in flat(page.next_state)}
    for action, name in page.runs(runs):
        if name in own:
            found.setdefault(name, set()).add(action)
    return found


def row(page: Page, one: Action, tla: Mapping[str, str], steps: Mapping[str, list[str]]) -> list[str]:
    """Return the lines about one action."""
    file = Path(inspect.getfile(one.changes)).relative_to(ROOT).as_posix()
    definition = tla.get(page.called.get(one.name, one.name))
    by = ", ".join(f"`{name}`" for name in steps.get(one.name, ()))
    shown = ["```text", definition, "```"] if definition is not None else [f"Defined in {page.source.split(', ')[-1]}."]
    code = ["```python", inspect.getsource(one.changes).rstrip(), "```"]
    return [
        f"## {one.name}", "", f"Steps of the actors: {by or 'none'}.", "", *shown, "", f"`{file}`", "", *code, "",
    ]


def text(page: Page, steps: Mapping[str, list[str]]) -> str:
    """Return a page as it should be."""
    tla = definitions((DATA / "tla" / f"{page.module}.tla").read_text(encoding="utf-8"))
    fill = f"Each action of `{page.model}` in the order of its `NEXT`: the module's definition, then ours. {page.note}"
    how = (
        "The steps of the actors are those that were an action in recorded runs that were held against the spec step "
        "by step; made by `python tests/support/spec_pages.py --runs`, as this page is."
    )
    lines = [f"# {page.title}", "", *wrapped(fill), "", *wrapped(how), "", *wrapped(f"Module: {page.source}."), ""]
    if page.names:
        fill = "What the spec, and its Python, calls otherwise than Kafka, the decisions and the actors:"
        lines += [fill, "", "| the spec | Kafka |", "| --- | --- |"]
        lines += [f"| `{spec}` | `{actors}` |" for actors, spec in page.names.items()] + [""]
    for one in flat(page.next_state):
        lines += row(page, one, tla, steps)
    return "\n".join(lines).rstrip() + "\n"


def wrapped(sentence: str) -> list[str]:
    """Return a sentence in lines of the width of the docs."""
    lines = [""]
    for word in sentence.split():
        if len(lines[-1]) + len(word) + 1 > WIDTH:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def main() -> None:
    """Write the pages; with `--runs` what runs have shown, too."""
    if "--runs" in sys.argv[1:]:
        found = {page.name: {name: sorted(by) for name, by in sorted(seen(page, 60).items())} for page in PAGES}
        STEPS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    FOLDER.mkdir(exist_ok=True)
    for page in PAGES:
        page.path.write_text(text(page, noted()[page.name]), encoding="utf-8")


if __name__ == "__main__":
    main()
