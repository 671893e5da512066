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
OUTCOME = edits(f"{DECISIONS}/outcome.py", (
    ("pending-transition-ignored", "    if pending is not None:\n        return Error.CONCURRENT_TRANSACTIONS\n", "",
     REFINEMENT, "fencing", 3),
))
INIT_PRODUCER_ID = edits(f"{DECISIONS}/init_producer_id.py", (
    ("init-served-by-anybody", "    if not leads:\n        return refuse(request, Error.NOT_COORDINATOR)\n", "",
     "FollowersHoldNoUncommitted", "coordinator-moves", 5),
    ("epoch-not-bumped", "producer_epoch=current.producer_epoch + 1, last_producer_epoch=current.producer_epoch,",
     "producer_epoch=max(current.producer_epoch, 0), last_producer_epoch=current.producer_epoch,",
     "ClientsHaveDifferentProducerEpochs", "fencing", 5),
    ("fencing-epoch-not-bumped", "producer_epoch=current.producer_epoch + 1, last_producer_epoch=-1,",
     "producer_epoch=current.producer_epoch, last_producer_epoch=-1,", REFINEMENT, "fencing", 6),
    ("prepared-transaction-overwritten", "    if current.state in PREPARED:\n        return Error.CONCURRENT_TRANS",
     "    if current.state is None:\n        return Error.CONCURRENT_TRANS", "NoBadStateResponse", "fencing", 8),
))
ADD_PARTITIONS = edits(f"{DECISIONS}/add_partitions.py", (
    ("zombie-not-fenced", "request.producer_epoch != metadata.producer_epoch:",
     "request.producer_epoch > metadata.producer_epoch:", REFINEMENT, "fencing", 3),
    ("partitions-replaced", "partitions=metadata.partitions | request.partitions", "partitions=request.partitions",
     REFINEMENT, "two-partitions", 3),
))
COMPLETION = edits(f"{DECISIONS}/completion.py", (
    ("abort-becomes-commit", "TxnState.COMPLETE_COMMIT if commits else",
     "TxnState.COMPLETE_COMMIT if not commits else", "NoBadStateResponse", "fencing", 6),
))
ELECTION = edits(f"{DECISIONS}/election.py", (
    ("same-epoch-followed-again", "return cepoch < epoch and", "return cepoch > epoch and",
     REFINEMENT, "coordinator-moves", 3),
    ("loaded-metadata-ignored", "        return loaded\n", "        return own\n",
     "CommittedTidKnown", "coordinator-moves", 10),
))
CLIENT = edits(f"{DECISIONS}/client.py", (
    ("error-taken-for-success", "if response.error is not Error.OK:", "if response.error is Error.NOT_COORDINATOR:",
     REFINEMENT, "fencing", 3),
    ("concurrent-is-fatal", "if response.error.is_retriable:", "if response.error is Error.NOT_COORDINATOR:",
     REFINEMENT, "fencing", 20),
))
BROKER = edits("kafka_proto/broker/broker.py", (
    ("broker-epoch-forgotten", "broker_epoch=metadata.broker_epoch + 1)", "broker_epoch=1)",
     REFINEMENT, "coordinator-crash", 25),
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
    ("replica-log-forgotten", "log: tuple[Entry, ...] = persisted(default=())",
     "log: tuple[Entry, ...] = volatile(default=())", "LogMatching", "replication-rolling-crash", 70),
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
    ("topic-forgotten", "topic: tuple[Entry, ...] = persisted(default=())",
     "topic: tuple[Entry, ...] = volatile(default=())", "ReaderView", "broker-crash", 6),
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
    *OUTCOME, *INIT_PRODUCER_ID, *ADD_PARTITIONS, *COMPLETION, *ELECTION, *CLIENT, *BROKER, *LEADERSHIP,
    *KAFKA_REPLICATION, *KIP_320, *ISR, *HIGH_WATERMARK, *TRUNCATION, *LEADING, *FOLLOWING, *PARTITION, *REPLICA_STATE,
    *QUORUM, *COMPACTOR, *READER, *COMPACTION_BROKER, *BOOKKEEPER,
)

REDUNDANT: Sequence[tuple[Mutant, str]] = (
    (Mutant("fenced-epoch-not-compared", f"{DECISIONS}/init_producer_id.py",
            "    if fenced.producer_epoch < current.producer_epoch:\n"
            "        return refuse(request, Error.PRODUCER_FENCED)\n", "",
            campaign="fencing", within=10), "search-two-clients"),
    (Mutant("pending-asked-twice", f"{DECISIONS}/add_partitions.py",
            "if pending is not None or metadata.state in PREPARED:", "if metadata.state in PREPARED:",
            campaign="coordinator-moves", within=10), "search-two-clients"),
    (Mutant("states-asked-for-twice", f"{DECISIONS}/outcome.py",
            "if current.state not in VALID_PREVIOUS[becomes]:", "if False:",
            campaign="coordinator-moves", within=10), "search-two-clients"),
    (Mutant("true-leader-presumes", "kafka_proto/replication/leadership.py",
            "quorum_leader == replica and leader == replica and", "quorum_leader == replica and",
            campaign="replication-late-leader-and-isr", within=10), "search-three-replicas"),
    (Mutant("committed-is-not-truncated", "kafka_proto/replication/high_watermark.py",
            "return min(high_watermark, end_offset)", "return high_watermark",
            campaign="replication-late-leader-and-isr", within=10), "search-three-replicas"),
)
"""Edits that leave out a guard and change nothing, and a search of the spec in which the guard is asked."""

SAMPLE = (
    "zombie-not-fenced", "prepared-transaction-overwritten", "one-holder-is-enough", "no-truncation",
    "fence-removed", "first-of-a-key-kept", "cursor-forgotten",
)
"""Rows that are run always: guards removed, comparisons flipped, a field forgotten; of each protocol some."""

IN_TRANSACTIONS = "kafka_proto/transactions"
HUNTED: Sequence[Mutant] = (
    *edits(f"{IN_TRANSACTIONS}/producer.py", (
        ("older-answer-taken", "return local.awaits == kind and local.correlation == correlation",
         "return local.awaits == kind", REFINEMENT, "duplicate-and-reorder", 8),
        ("given-up-is-not-noted", "record = attrs.evolve(self.version.given_up(local.record), coordinator=None)",
         "record = attrs.evolve(local.record, coordinator=None)", REFINEMENT, "lost-responses", 3),
    )),
    *edits(f"{DECISIONS}/init_producer_id.py", (
        ("init-served-before-it-is-loaded",
         "    if loading:\n        return refuse(request, Error.COORDINATOR_LOAD_IN_PROGRESS)\n", "",
         REFINEMENT, "coordinator-moves", 4),
    )),
    *edits(f"{DECISIONS}/add_partitions.py", (
        ("add-served-before-it-is-loaded",
         "    if loading:\n        return refuse(request, Error.COORDINATOR_LOAD_IN_PROGRESS)\n", "",
         REFINEMENT, "coordinator-moves", 8),
    )),
    *edits("kafka_proto/stack/atomic_log.py", (
        ("joined-before-a-crash", "if joined.broker_epoch != local[METADATA].broker_epoch:", "if False:",
         REFINEMENT, "coordinator-crash", 15),
        ("joined-in-an-older-epoch", "if joined.leader_epoch != known(local, p).leader_epoch:",
         "if joined.leader_epoch > known(local, p).leader_epoch:", REFINEMENT, "coordinator-moves", 4),
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
