"""Random requests to the broker of each version: what must hold whatever clients send, and after an election, too."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.brokers.node import BROKER, elected, new_node

from kafka_proto import requests
from kafka_proto.broker import versions
from kafka_proto.broker.coordinator.transaction import VALID_PREVIOUS, TxnState
from kafka_proto.broker.group.coordinator import load
from kafka_proto.broker.versions import BrokerVersion, version_of
from kafka_proto.conformance.playing import PlayedCluster
from kafka_proto.log import RecordBatch, rebuild
from kafka_proto.requests import Error

LEVEL_1 = version_of("4.4.0", 1)
VERSIONS = (
    versions.KIP_98_0_11, versions.KIP_98, versions.KIP_360, versions.KIP_890_PART_1_3_6, versions.KIP_890_PART_1_3_7,
    versions.KIP_890_PART_1, versions.KIP_890, versions.KIP_890_4_1, versions.KIP_890_4_2, LEVEL_1,
    versions.KIP_890_4_4,
)
PARTITIONS = ("T-0", "T-1")
OFFSETS = "__consumer_offsets-0"
LOGS = (*PARTITIONS, OFFSETS)
KINDS = ("init", "init", "go on", "add", "offsets", "produce", "produce", "produce", "end", "end", "commit offsets",
         "plain commit", "late", "hold", "deliver", "wait", "elect")
MOVES = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 1), st.integers(0, 1), st.booleans(),
                           st.integers(-1, 1)), max_size=40)
Move = tuple[str, int, int, bool, int]


def request_of(node: PlayedCluster, move: Move, sequences: dict[Any, int]) -> object:
    """Return what a client sends that knows its producer id, and its epoch up to a step before or after."""
    kind, who, where, flag, off = move
    tid, name = f"tid-{who}", PARTITIONS[where]
    known = node.coordinator(tid).transactions.get(tid)
    if kind == "init" or known is None:
        return requests.InitProducerIdRequest(4, tid, 50)
    producer = known.metadata.producer_id, max(0, known.metadata.producer_epoch + (off if kind == "late" else 0))
    batch = RecordBatch(("r",), *producer, sequences.get((*producer, name), 0), True)
    others = {
        "go on": requests.InitProducerIdRequest(4, tid, 50, *producer),
        "add": requests.AddPartitionsToTxnRequest(3, tid, *producer, (name,)),
        "offsets": requests.AddOffsetsToTxnRequest(3, tid, *producer, OFFSETS),
        "end": requests.EndTxnRequest(5 if off >= 0 else 3, tid, *producer, flag),
        "commit offsets": requests.TxnOffsetCommitRequest(
            5 if flag else 3, tid, "G", *producer, name, sequences["offset"]),
        "plain commit": requests.OffsetCommitRequest(8, "G", name, 100 + where),
    }
    return others.get(kind, requests.ProduceRequest(12 if flag else 9, tid, -1, name, batch))


def take(node: PlayedCluster, move: Move, sequences: dict[Any, int]) -> None:
    """Take a move, and keep the sequence that follows where a batch was taken."""
    kind = move[0]
    if kind == "hold":
        node.holds_markers = True
    elif kind == "deliver":
        node.deliver_held()
    elif kind == "wait":
        if not node.time_out():
            node.pass_time(node.now)
    elif kind == "elect":
        node.holds_markers = False
        elected(node)
    else:
        sequences["offset"] = sequences.get("offset", 0) + 1
        request = request_of(node, move, sequences)
        response = node.ask(request)
        if isinstance(request, requests.ProduceRequest) and response.error is Error.NONE:
            key = (request.batch.producer_id, request.batch.producer_epoch, request.partition)
            sequences[key] = sequences.get(key, 0) + 1


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.name)
@settings(max_examples=60)
@given(MOVES)
def test_whatever_clients_send(version: BrokerVersion, moves: list[Move]) -> None:
    """Logs, offsets, states and producer ids stay true to their logs, and no producer id is given twice."""
    node, sequences = new_node(version, partitions=PARTITIONS), {}
    owners: dict[int, str] = {}
    for move in moves:
        before = node.entries
        take(node, move, sequences)
        for name in LOGS:
            log = node.log(name)
            assert rebuild(log) == log, name
            grew = [batch.base_offset for batch in log.batches]
            assert grew == sorted(set(grew)) and log.last_stable_offset <= log.high_watermark
        assert load(node.log(OFFSETS).batches) == node.groups(BROKER).offsets
        for tid, entry in node.entries.items():
            assert owners.setdefault(entry.producer_id, tid) == tid
            last = before.get(tid)
            assert last is None or last == entry or reaches(last.state, entry.state)
            assert last is None or last.producer_id != entry.producer_id or last.producer_epoch <= entry.producer_epoch


def reaches(before: TxnState, after: TxnState) -> bool:
    """Say whether a state may follow another in one request: by one change, or by several that follow by themselves."""
    found, ahead = set(), [before]
    for _ in range(3):
        ahead = [state for state, earlier in VALID_PREVIOUS.items() if set(earlier) & set(ahead)]
        found |= set(ahead)
    return after in found


@pytest.mark.parametrize("version", [versions.KIP_890_4_2, versions.KIP_890_4_4], ids=lambda version: version.name)
@settings(max_examples=60)
@given(MOVES)
def test_p5_no_transaction_hangs_where_new_clients_only(version: BrokerVersion, moves: list[Move]) -> None:
    """At rest, with all requests of the newest versions: what is open in a partition is listed by its coordinator."""
    node, sequences = new_node(version, partitions=PARTITIONS), {}
    for kind, who, where, _, off in moves:
        flag = True if kind != "end" else off == 0
        take(node, (kind, who, where, flag, max(0, off) if kind == "end" else off), sequences)
        listed = {(entry.producer_id, name) for entry in node.entries.values() for name in entry.partitions}
        opened = {(txn.producer_id, name) for name in LOGS for txn in node.log(name).open}
        assert opened <= listed
