"""The spec models that searches are compared on, and the counts that were published."""

from __future__ import annotations

from harness.model import Model, find_model

SMALL = {"clients": 2, "brokers": 2, "txn-log-partitions": 2, "topic-partitions": 1, "transactional-ids": 2,
         "elections": 1}
PUBLISHED = {"clients": 2, "brokers": 3, "txn-log-partitions": 2, "transactional-ids": 2}
PULSAR = {"messages": 2, "compactions": 2, "keys": 1, "values": 1, "crashes": 1}
Given = tuple[str, dict[str, int], dict[str, str]]
MODELS: dict[str, Given] = {
    "diary-01": ("transactions/diary-01", {"clients": 2, "brokers": 2}, {}),
    "diary-01-S6": ("transactions/diary-01", {"clients": 2, "transactional-ids": 2}, {"repair": "S6"}),
    "diary-02": ("transactions/diary-02", SMALL | {"clients": 1}, {}),
    "diary-02-S2": ("transactions/diary-02", {"clients": 1, "brokers": 3}, {}),
    "gist": ("transactions/gist", {"clients": 1, "elections": 2}, {}),
    "repaired": ("transactions/repaired", {"clients": 1, "brokers": 3}, {}),
    "truncate": ("replication/truncate-to-high-watermark", {"max-leader-epoch": 1}, {}),
    "kip-320": ("replication/kip-320", {"max-leader-epoch": 1}, {}),
    "async-isr": ("replication/async-isr", {}, {}),
    "async-isr-3": ("replication/async-isr", {"replicas": 3, "max-version": 1}, {}),
    "pulsar": ("compaction/pulsar", PULSAR, {}),
    "pulsar-all": ("compaction/pulsar", PULSAR | {"compactions": 3}, {"producer": "true", "consumer": "true"}),
}
"""Models with one initial state and several, a constraint, steps that count twice, steps that change nothing."""


def made(given: Given, history_variables: bool = True) -> Model:
    """Build a model."""
    name, sizes, settings = given
    return find_model(name).make(sizes, settings, history_variables=history_variables)
