"""A class name stands for one thing in the whole tree; those that stand for several are listed, and get fewer."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from support.paths import ROOT

SOURCES = sorted(path for top in ("harness", "kafka_proto", "compaction") for path in (ROOT / top).rglob("*.py"))

SHARED_NAMES = (
    "AddPartitionsToTxnRequest", "AddPartitionsToTxnResponse", "LeaderAndIsrRequest", "ProduceRequest",
    "ProduceResponse",
)
"""Names that Kafka and a published spec both have: one is of the broker, one of the spec or of its bare replicas."""


def homes_of_classes(trees: Mapping[str, ast.Module]) -> dict[str, list[str]]:
    """Return the files that define a class of each name."""
    homes: dict[str, list[str]] = {}
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(path)
    return homes


def test_class_name_stands_for_one_thing() -> None:
    """No two classes have one name, but for those of a list that may only shrink: a name that is free leaves it."""
    trees = {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}
    homes = homes_of_classes(trees)
    assert len(homes) > 700
    shared = {name: paths for name, paths in homes.items() if len(paths) > 1}
    assert {name: paths for name, paths in shared.items() if name not in SHARED_NAMES} == {}
    assert [name for name in SHARED_NAMES if name not in shared] == []
    assert [name for name, paths in shared.items() if sum(path.startswith("harness/") for path in paths) > 1] == []


def test_class_names_that_are_shared_are_noticed() -> None:
    """Two files, one of which has its class inside another one."""
    trees = {"a.py": ast.parse("class Row: ..."), "b.py": ast.parse("class Table:\n    class Row: ...")}
    assert homes_of_classes(trees) == {"Row": ["a.py", "b.py"], "Table": ["b.py"]}
