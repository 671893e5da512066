"""The models of the transaction protocol, with their sizes and settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from harness.model import Model, ModelSpec, Setting, Size
from kafka_proto.transactions import actors, diary_01, diary_02, gist
from kafka_proto.transactions.extensions import EXTENSIONS

SIZES = {
    "clients": Size(2, maximum=6, doc="transactional clients"),
    "brokers": Size(2, maximum=5, doc="brokers, each a transaction coordinator"),
    "txn-log-partitions": Size(1, maximum=4, doc="partitions of the transaction log"),
    "topic-partitions": Size(1, maximum=4, doc="partitions that a transaction adds"),
    "transactional-ids": Size(1, maximum=4, doc="transactional ids"),
    "elections": Size(1, minimum=0, maximum=4, doc="elections of the controller (0: none)"),
}
DIARY_01_SIZES = {name: size for name, size in SIZES.items() if name not in ("topic-partitions", "elections")}


def repairs(*flaws: str) -> Setting:
    return Setting(flaws, several=True, doc="flaws of the spec to repair, see docs/models.md")


EXTEND = {
    "extend": Setting(
        tuple(EXTENSIONS), several=True, doc="extension actions: what the spec abstracts from, see docs/models.md"
    ),
    "bound": Setting(
        ("0", "1", "2", "3", "4"), doc="spurious extension steps (a crash, a lost message) in a run; or else 1"
    ),
}


def repaired(sizes: Mapping[str, int], settings: Mapping[str, str], *rest: Any) -> Model:
    """Build `transactions/repaired`: diary 02 with S1, S2 and S3 repaired."""
    model = diary_02.build(sizes, {**settings, "repair": "S1,S2,S3"}, *rest)
    return attrs.evolve(model, name="transactions/repaired", settings=settings)


MODELS: tuple[ModelSpec, ...] = (
    ModelSpec(
        "transactions/diary-01", "InitPid with any broker asked (diary 01)", diary_01.build, DIARY_01_SIZES,
        {
            "repair": repairs("S1", "S6"),
            "init": Setting(("published", "choose"), "published", doc="every balanced mapping, or one"),
        },
    ),
    ModelSpec(
        "transactions/diary-02", "InitPid and AddPartitionsToTxn with elections (diary 02)", diary_02.build, SIZES,
        {"repair": repairs("S1", "S2", "S3"), **EXTEND}, ("unordered-set", "bag"),
    ),
    ModelSpec(
        "transactions/gist", "diary 02's earlier form (the gist)", gist.build, SIZES,
        {"repair": repairs("S1", "S3", "S4", "S5")},
    ),
    ModelSpec(
        "transactions/repaired", "diary 02 with S1, S2 and S3 repaired", repaired, SIZES, EXTEND,
        ("unordered-set", "bag"),
    ),
    ModelSpec(
        "transactions/diary-02/actors", "diary 02's rules as actors on a faulty network", actors.build_diary_02, SIZES,
        {"repair": repairs("S1", "S2", "S3")}, ("bag", "fifo"), may_fault=True,
    ),
    ModelSpec(
        "transactions/repaired/actors", "the repaired rules as actors on a faulty network", actors.build_repaired,
        SIZES, networks=("bag", "fifo"), may_fault=True,
    ),
)
