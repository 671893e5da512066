"""Wrong edits of the protocols' decisions, one at a time, and what catches each: a property, or the refinement.

A row is the edit, what catches it, in which campaign and within how many runs, or in which search. The wrong text is
what a tired author could have written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from support.mutants.source_mutants import REFINEMENT, Mutant

Row = tuple[str, str, str, str, str, int]
"""Name, old text, new text, what catches it, campaign or search, runs."""


def edits(file: str, rows: Iterable[Row]) -> tuple[Mutant, ...]:
    """Return the mutants of a file."""
    return tuple(Mutant(name, file, *rest) for name, *rest in rows)


DECISIONS = "kafka_proto/transactions/decisions"
SPECS = (
    *edits(f"{DECISIONS}/init_producer_id.py", (
        ("spec-epoch-not-bumped",
         "pepoch=current.pepoch + 1,\n            last_pepoch=current.pepoch,",
         "pepoch=max(current.pepoch, 0),\n            last_pepoch=current.pepoch,",
         "ClientsHaveDifferentProducerEpochs", "search-two-clients", 0),
        ("spec-prepared-transaction-overwritten",
         "    if current.state in PREPARED:\n        return SpecError.CONCURRENT_TRANS",
         "    if current.state is None:\n        return SpecError.CONCURRENT_TRANS", "NoBadStateResponse",
         "search-two-clients", 0),
    )),
    *edits(f"{DECISIONS}/election.py", (
        ("spec-loaded-metadata-ignored", "        return loaded\n", "        return own\n",
         "CommittedTidKnown", "search-two-clients", 0),
    )),
)
COORDINATOR = "kafka_proto/broker/coordinator"
INIT_PRODUCER_ID = edits(f"{COORDINATOR}/init_producer_id.py", (
    ("epoch-not-bumped", "epoch, last = known.producer_epoch + 1, NO_PRODUCER_EPOCH",
     "epoch, last = max(known.producer_epoch, 0), NO_PRODUCER_EPOCH", REFINEMENT, "exactly-once-zombie", 5),
    ("fencing-epoch-not-bumped", "+ (0 if cached.has_failed_epoch_fence else 1)", "+ 0",
     REFINEMENT, "exactly-once-zombie", 40),
))
ADD_PARTITIONS = edits(f"{COORDINATOR}/add_partitions.py", (
    ("partitions-replaced", "tuple(sorted({*known.partitions, *wanted(request)}))", "tuple(sorted(wanted(request)))",
     REFINEMENT, "exactly-once-zombie", 3),
))
END_TXN = edits(f"{COORDINATOR}/end_txn_bumping.py", (
    ("zombie-not-fenced",
     "    if known.state in (TxnState.ONGOING, TxnState.EMPTY):\n"
     "        return request.producer_epoch == known.producer_epoch\n",
     "    if known.state in (TxnState.ONGOING, TxnState.EMPTY):\n"
     "        return request.producer_epoch <= known.producer_epoch\n", REFINEMENT, "exactly-once-zombie", 20),
))
PREPARING = edits(f"{COORDINATOR}/end_txn.py", (
    ("commit-becomes-abort", "return TxnState.PREPARE_COMMIT if committed else TxnState.PREPARE_ABORT",
     "return TxnState.PREPARE_ABORT if committed else TxnState.PREPARE_COMMIT", "AcknowledgedOutcome",
     "exactly-once-commits", 5),
))
LOADING = edits(f"{COORDINATOR}/loading.py", (
    ("loaded-metadata-ignored", "state = Coordinator(cache, FrozenMap(),",
     "state = Coordinator(FrozenMap(), FrozenMap(),", "NoHangingTransaction", "leaders-move", 10),
))
BROKER = edits("kafka_proto/broker/broker.py", (
    ("broker-epoch-forgotten", "broker_epoch=metadata.broker_epoch + 1)", "broker_epoch=metadata.broker_epoch)",
     "OperationsEnd", "leaders-crash", 25),
))

IN_REPLICATION = "kafka_proto/replication"
LEADERSHIP = edits(f"{IN_REPLICATION}/leadership.py", (
    ("elects-from-outside", "return candidate in isr and candidate != leader", "return candidate != leader",
     "LeaderInIsrOrNone", "search-two-replicas", 0),
    ("deposed-leader-may-alter", "leader == replica and leader_epoch == quorum_epoch", "leader == replica",
     "WeakIsr", "search-two-replicas", 0),
))
KAFKA_REPLICATION = edits(f"{IN_REPLICATION}/specs/kafka_replication.py", (
    ("obeys-the-same-epoch-again", "if request.leader_epoch > epoch_of(view, request.leader):",
     "if request.leader_epoch >= epoch_of(view, request.leader):", "WeakIsr", "search-two-replicas", 0),
))
KIP_320 = edits(f"{IN_REPLICATION}/specs/kip_320.py", (
    ("fence-removed", "epoch_of(view, leader) == epoch_of(view, follower)", "True",
     "StrongIsr", "search-three-replicas", 0),
    ("fence-one-sided", "epoch_of(view, leader) == epoch_of(view, follower)",
     "epoch_of(view, leader) >= epoch_of(view, follower)", "StrongIsr", "search-three-replicas", 0),
))
ISR = edits(f"{IN_REPLICATION}/isr.py", (
    ("let-in-too-early", "or end < leader.high_watermark:", "or end < leader.high_watermark - 1:",
     "StrongIsr", "search-two-replicas", 0),
    ("unheard-of-let-in", "if end is None or end <", "if end is not None and end <",
     "IsrEligibility", "replication-late-leader-and-isr", 6),
    ("old-epoch-is-good-enough", "return record is not None and record.epoch == leader_epoch",
     "return record is not None", "StrongIsr", "search-three-replicas", 0),
    ("failed-leader-stays", "return None, (isr if isr == {replica} else isr - {replica})", "return None, isr",
     REFINEMENT, "replication-rolling-crash", 8),
))
HIGH_WATERMARK = edits(f"{IN_REPLICATION}/high_watermark.py", (
    ("high-watermark-above-the-log", "return min(leader_high_watermark, end_offset)",
     "return max(leader_high_watermark, end_offset)", "StrongIsr", "search-three-replicas", 0),
    ("one-holder-is-enough", "return all(end is not None", "return any(end is not None",
     "StrongIsr", "rp-05-unfenced-fetch-repaired", 5),
    ("unheard-of-counts-as-holding", "end is not None and offset < end", "end is None or offset < end",
     "StrongIsr", "rp-05-unfenced-fetch-repaired", 10),
    ("proposed-members-not-counted", "return isr | pending_isr", "return isr",
     "StrongIsr", "rp-10-unseen-member-repaired", 40),
))
TRUNCATION = edits(f"{IN_REPLICATION}/truncation.py", (
    ("epoch-below-answered", "if leader_log[offset].epoch <= epoch:", "if leader_log[offset].epoch < epoch:",
     REFINEMENT, "rp-03-unknown-epoch-repaired", 4),
    ("epoch-below-answered-until-a-record-is-lost", "if leader_log[offset].epoch <= epoch:",
     "if leader_log[offset].epoch < epoch:", "StrongIsr", "rp-03-unknown-epoch-repaired", 70),
    ("epoch-end-off", "if leader_log[-1].epoch == epoch:", "if leader_log[-1].epoch >= epoch:",
     "StrongIsr", "search-by-epoch", 0),
))
LEADING = edits(f"{IN_REPLICATION}/leading.py", (
    ("acknowledged-too-early", "if at < offset)\n", "if at <= offset)\n",
     "AckDurability", "replication-late-leader-and-isr", 5),
    ("acks-all-as-one", "if acks == \"1\" else ()", "if acks != \"0\" else ()",
     "AckDurability", "replication-late-leader-and-isr", 5),
))
FOLLOWING = edits(f"{IN_REPLICATION}/following.py", (
    ("any-response-is-awaited",
     "return s.request is not None and (response.broker_epoch, response.correlation) == (\n"
     "        s.request.broker_epoch, s.request.correlation\n    )",
     "return s.request is not None", "FollowerLogMatches", "replication-doubled-and-reordered", 8),
    ("no-truncation", "    end_offset = min(offset, len(s.log))\n", "    end_offset = len(s.log)\n",
     "FollowerLogMatches", "rp-04-fast-failover-repaired", 8),
))
PARTITION = edits(f"{IN_REPLICATION}/partition.py", (
    ("word-for-an-older-broker-epoch", "if announced.broker_epoch != s.broker_epoch:", "if False:",
     "FollowersCatchUp", "replication-rolling-crash", 20),
))
REPLICA_STATE = edits(f"{IN_REPLICATION}/replica_state.py", (
    ("replica-log-forgotten", "log: tuple[ReplicaEntry, ...] = persisted(default=())",
     "log: tuple[ReplicaEntry, ...] = volatile(default=())", "LogMatching", "replication-rolling-crash", 70),
    ("leader-epoch-forgotten", "leader_epoch: int = persisted(default=NIL)",
     "leader_epoch: int = volatile(default=NIL)", REFINEMENT, "replication-rolling-crash", 12),
))
QUORUM = edits(f"{IN_REPLICATION}/quorum.py", (
    ("epoch-not-counted", "epoch = q.leader_epoch + 1", "epoch = max(q.leader_epoch, 0)",
     REFINEMENT, "replication-late-leader-and-isr", 3),
))

COMPACTOR = edits("compaction/compactor.py", (
    ("first-of-a-key-kept", "return result.latest_for_key.get(key) == id_",
     "return result.latest_for_key.get(key, 0) >= id_", REFINEMENT, "compaction", 3),
    ("older-ones-kept-only", "return result.latest_for_key.get(key) == id_",
     "return result.latest_for_key.get(key) != id_", "CompactionEquivalence", "compaction", 3),
    ("null-keys-dropped", "        return retain_null_key\n", "        return False\n",
     "CompactionEquivalence", "compaction", 5),
    ("reads-one-too-few", "return PhaseOneResult(len(keys), latest_for_key(enumerate(keys, 1)))",
     "return PhaseOneResult(len(keys), latest_for_key(enumerate(keys)))", REFINEMENT, "compaction", 3),
    ("phase-two-stops-early", "keys[: result.read_position]", "keys[: result.read_position - 1]",
     REFINEMENT, "compaction", 5),
    ("recovers-nothing", "return (0, 0) if cursor is None else (cursor.compaction_horizon,",
     "return (0, 0) if cursor is None else (0,", "ReaderView", "broker-crash", 6),
    ("collects-what-is-named", "if ledger != context)", "if ledger == context)", "NoLeak", "broker-crash", 6),
    ("collects-older-ones-only", "if ledger != context)", "if ledger < context)", "NoLeak", "broker-crash", 6),
))
READER = edits("compaction/reader.py", (
    ("skips-behind-the-horizon", "return Position(last + 1) if last < end else None",
     "return Position(last + 2) if last + 1 < end else None", "ReaderView", "compaction", 5),
))
COMPACTION_BROKER = edits("compaction/broker.py", (
    ("cursor-forgotten", "cursor: Cursor | None = persisted(default=None)",
     "cursor: Cursor | None = volatile(default=None)", REFINEMENT, "broker-crash", 6),
    ("topic-forgotten", "topic: tuple[TopicEntry, ...] = persisted(default=())",
     "topic: tuple[TopicEntry, ...] = volatile(default=())", "ReaderView", "broker-crash", 6),
    ("resent-entry-appended-again", "if request.entry.id > local.end:", "if True:",
     "ReaderView", "compaction-lossy", 10),
    ("cursor-with-the-old-ledger", "cursor = Cursor(local.horizon, local.context)",
     "cursor = Cursor(local.horizon, local.old_ledger)", "ReaderView", "broker-crash", 3),
))
BOOKKEEPER = edits("compaction/bookkeeper.py", (
    ("ledger-id-given-twice", "new = max(local.ledgers, default=0) + 1", "new = len(local.existing) + 1",
     "CompactionEquivalence", "compaction", 10),
))

MUTANTS: Sequence[Mutant] = (
    *SPECS, *INIT_PRODUCER_ID, *ADD_PARTITIONS, *END_TXN, *PREPARING, *LOADING, *BROKER, *LEADERSHIP,
    *KAFKA_REPLICATION, *KIP_320, *ISR, *HIGH_WATERMARK, *TRUNCATION, *LEADING, *FOLLOWING, *PARTITION, *REPLICA_STATE,
    *QUORUM, *COMPACTOR, *READER, *COMPACTION_BROKER, *BOOKKEEPER,
)

REDUNDANT: Sequence[tuple[Mutant, str]] = (
    (Mutant("fenced-epoch-not-compared", f"{DECISIONS}/init_producer_id.py",
            "    if fenced.pepoch < current.pepoch:\n"
            "        return refuse(request, SpecError.PRODUCER_FENCED)\n", ""), "search-two-clients"),
    (Mutant("pending-asked-twice", f"{DECISIONS}/add_partitions.py",
            "if pending is not None or metadata.state in PREPARED:", "if metadata.state in PREPARED:"),
     "search-two-clients"),
    (Mutant("states-asked-for-twice", f"{DECISIONS}/outcome.py",
            "if current.state not in VALID_PREVIOUS[becomes]:", "if False:"), "search-two-clients"),
    (Mutant("true-leader-presumes", "kafka_proto/replication/leadership.py",
            "quorum_leader == replica and leader == replica and", "quorum_leader == replica and",
            campaign="replication-late-leader-and-isr", within=10), "search-three-replicas"),
    (Mutant("committed-is-not-truncated", "kafka_proto/replication/high_watermark.py",
            "return min(high_watermark, end_offset)", "return high_watermark",
            campaign="replication-late-leader-and-isr", within=10), "search-three-replicas"),
)
"""Edits that leave out a guard and change nothing, and a search of the spec in which the guard is asked.

No runs are made where the spec alone has the guard.
"""

SAMPLE = (
    "zombie-not-fenced", "epoch-not-bumped", "one-holder-is-enough", "no-truncation",
    "fence-removed", "first-of-a-key-kept", "cursor-forgotten",
)
"""Rows that are run always: guards removed, comparisons flipped, a field forgotten; of each protocol some."""

HUNTED: Sequence[Mutant] = (
    *edits(f"{COORDINATOR}/coordinator.py", (
        ("who-loads-is-no-coordinator", "Answer(Error.COORDINATOR_LOAD_IN_PROGRESS)", "Answer(Error.NOT_COORDINATOR)",
         REFINEMENT, "exactly-once-crashes", 20),
    )),
    *edits(f"{COORDINATOR}/role.py", (
        ("given-up-by-another-code", "AnsweredRequest(callback.token, callback.request, Answer(Error.NOT_COORDINATOR))",
         "AnsweredRequest(callback.token, callback.request, Answer(code))", REFINEMENT, "leaders-move", 60),
    )),
    *edits(f"{COORDINATOR}/end_txn_bumping.py", (
        ("last-epoch-is-not-kept", "last_producer_epoch=known.producer_epoch, next_producer_id=following,",
         "next_producer_id=following,", REFINEMENT, "exactly-once-commits", 5),
        ("who-asks-again-is-told-no-epoch",
         "return Outcome(Answer(Error.NONE, known.producer_id, known.producer_epoch))", "return Outcome(Answer())",
         REFINEMENT, "fencing-battle", 60),
    )),
    *edits(f"{COORDINATOR}/init_producer_id.py", (
        ("diary-02s-last-epoch", "epoch, last = known.producer_epoch + 1, NO_PRODUCER_EPOCH",
         "epoch, last = known.producer_epoch + 1, known.producer_epoch", REFINEMENT, "exactly-once-zombie", 5),
    )),
    *edits(f"{COORDINATOR}/loading.py", (
        ("log-is-read-whole", "CachedTransaction(decisions.recovered(entry))", "CachedTransaction(entry)",
         REFINEMENT, "leaders-crash", 20),
    )),
    *edits(f"{IN_REPLICATION}/leading.py", (
        ("followers-of-an-older-epoch-remembered", "followers=FrozenMap(), proposal=None,",
         "proposal=None,", REFINEMENT, "replication-late-leader-and-isr", 14),
    )),
    *edits("compaction/broker.py", (
        ("cursor-is-not-durable", "cursor: Cursor | None = persisted(default=None)",
         "cursor: Cursor | None = volatile(default=None)", REFINEMENT, "pc-01-leaked-ledger-repaired", 5),
    )),
)
"""Wrong edits of actors that turn a row of the hunt's board red though no property fails: the row, and its runs."""
