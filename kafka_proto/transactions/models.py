"""The models of the transaction protocol, with their sizes and settings."""

from __future__ import annotations

from functools import partial

from harness.model import ModelSpec, Setting, Size
from kafka_proto.transactions.specs import diary_01, diary_02
from kafka_proto.transactions.versions import DIARY_02, GIST, REPAIRED, Version

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
    return Setting(flaws, several=True, doc="flaws of the spec to repair, see docs/models/transactions.md")


def spec_model(version: Version, title: str, *flaws: str) -> ModelSpec:
    """Return the spec of a version; `flaws` are those that may be repaired."""
    name = f"transactions/{version.name}"
    settings = {"repair": repairs(*flaws)} if flaws else {}
    return ModelSpec(name, title, partial(diary_02.build, version), SIZES, settings, ("unordered-set", "bag"))


MODELS: tuple[ModelSpec, ...] = (
    ModelSpec(
        "transactions/diary-01", "InitPid with any broker asked (diary 01)", diary_01.build, DIARY_01_SIZES,
        {
            "repair": repairs("S1", "S6"),
            "init": Setting(("published", "choose"), "published", doc="every balanced mapping, or one"),
        },
    ),
    spec_model(DIARY_02, "InitPid and AddPartitionsToTxn with elections (diary 02)", "S1", "S2", "S3"),
    ModelSpec(
        "transactions/gist", "diary 02's earlier form (the gist)", partial(diary_02.build, GIST, actions=diary_02.GIST),
        SIZES, {"repair": repairs("S1", "S3", "S4", "S5")},
    ),
    spec_model(REPAIRED, "diary 02 with S1, S2 and S3 repaired"),
)
