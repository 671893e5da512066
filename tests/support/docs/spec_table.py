"""What the pages docs/specs/*.md say of each action: where its module has it, and its guard and effect in our words.

The line numbers are those of the published file at the commit named: a definition, from its first to its last line,
without the comment above it. Guards and effects are read off our Python, not off the modules.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen
class Module:
    """A published file: what its module is called, where it is, and how many lines it has."""

    name: str
    repository: str
    commit: str
    folder: str
    lines: int

    @property
    def file(self) -> str:
        return f"{self.name}.tla"

    @property
    def address(self) -> str:
        """Where the file is published, at the commit that the line numbers are of."""
        return f"{self.repository}/blob/{self.commit}/{self.folder}{self.file}"


@attrs.frozen
class Row:
    """An action: its module, the first and the last line of its definition there, when it may happen, what it does."""

    module: Module
    first: int
    last: int
    guard: str
    effect: str

    @property
    def link(self) -> str:
        lines = f"lines {self.first} to {self.last}"
        return f"[{self.module.file}, {lines}]({self.module.address}#L{self.first}-L{self.last})"


DIARY_02 = Module(
    "kafka_transactions", "https://github.com/Vanlightly/kafka-tlaplus", "b4c8a64dbb198dfe9c68d4748b4e81f1e95f13f2",
    "transactions/diary/02_AddPartitionsToTxn/tlaplus/", 1039,
)
KIP_320, KAFKA_REPLICATION = (
    Module(name, "https://github.com/hachikuji/kafka-specification", "d68782b5772f93e2ef01f8a9ff68bbd9370f6b7f", "",
           lines)
    for name, lines in (("Kip320", 176), ("KafkaReplication", 351))
)
COMPACTION = Module(
    "compaction", "https://github.com/thetumbled/pulsar-tlaplus", "6402c8d2721efb5addb8bd72d63ee10535184809", "", 309
)

TRANSACTIONS: Mapping[str, Row] = {
    "SendInitPidRequest": Row(
        DIARY_02, 176, 189, "The client is `Ready`; a client that has asked for an id before asks for the same one.",
        "It asks the broker that leads the id's partition in the controller's eyes, and waits.",
    ),
    "ReceiveInitPidRequest": Row(
        DIARY_02, 645, 688, "There is a request from this client to this broker.",
        "A broker that does not lead the id's partition refuses (`NotCoordinator`), as does one that has a transition "
        "of the id pending or prepared (`ConcurrentTransactions`). An id not seen before gets the next producer id. "
        "Else an entry with the next epoch is appended and pending; where a transaction is ongoing, one that aborts "
        "it.",
    ),
    "ReceiveInitPidResponse": Row(
        DIARY_02, 204, 224, "There is a response for this client, and the client has asked for a producer id.",
        "With `OK` the client has its producer id, epoch and coordinator, and no last error. With an error it notes "
        "state and error and is `Ready` again.",
    ),
    "SendAddPartitionsToTxnRequest": Row(
        DIARY_02, 237, 253,
        "The client has a producer id, no partition that it waits for, and there is one not in its transaction.",
        "It asks the coordinator that it knows to add that partition, which it waits for from now on.",
    ),
    "ReceiveAddPartitionsToTxnRequest": Row(
        DIARY_02, 722, 757, "There is a request from this client to this broker.",
        "Refused, in this order: not the leader; an id without metadata or another producer id; another epoch; a "
        "transition that is pending or a transaction that is prepared. Else an entry with the partitions added, in "
        "state `Ongoing`, is appended and pending.",
    ),
    "ReceiveAddPartitionsToTxnResponse": Row(
        DIARY_02, 279, 308, "There is a response for this client, and the client has begun a transaction.",
        "With `OK` the partitions are in its transaction. After an error that may pass it waits for none and, if that "
        "was `NotCoordinator`, looks the coordinator up. After any other error it is `Terminated`.",
    ),
    "CommitTxnLogAppend": Row(
        DIARY_02, 850, 871,
        "The broker's log goes beyond its high watermark, the controller has it as leader, and every broker knows the "
        "epoch that this one knows.",
        "The next entry is in every broker's log and below every high watermark, and is the id's metadata at the "
        "leader. Nothing is pending, the stored response is sent; after a prepared entry the completing one follows "
        "at once, pending.",
    ),
    "ElectLeader": Row(
        DIARY_02, 405, 429, "An election is left, and the broker does not take itself for the leader.",
        "It leads the partition in the next epoch, for the controller and for itself. Of the partition's ids it knows "
        "what the deposed leader knew, of all others nothing (S3).",
    ),
    "BecomeFollower": Row(
        DIARY_02, 493, 523,
        "The broker takes itself for the leader, in an epoch below the controller's, which has another leader.",
        "It knows the new leader and epoch, cuts its log to its high watermark, forgets metadata and transitions of "
        "the partition's ids, and fails every request whose entry it cut off.",
    ),
    "CompletePartialTxn": Row(
        DIARY_02, 446, 465, "The broker leads, the id's metadata says prepared, and no transition of it is pending.",
        "The entry that completes the transaction is appended and pending.",
    ),
}

REPLICATION: Mapping[str, Row] = {
    "ControllerElectLeader": Row(
        KAFKA_REPLICATION, 176, 179, "The replica is in the quorum's ISR, does not lead, and an epoch is left.",
        "It leads for the quorum in the next epoch, with the same ISR; a request says so.",
    ),
    "ControllerShrinkIsr": Row(
        KAFKA_REPLICATION, 158, 168, "The replica leads for the quorum, or is in its ISR; an epoch is left.",
        "It is out of the ISR, in the next epoch, and a request says so. If it led, nobody does from now on, and the "
        "last member stays in the ISR. A last member that does not lead goes (S8).",
    ),
    "BecomeLeader": Row(
        KAFKA_REPLICATION, 186, 195, "A request names a leader whose own epoch is below the request's.",
        "That replica has the request's leader, epoch and ISR; its high watermark stays.",
    ),
    "FencedLeaderExpandIsr": Row(
        KIP_320, 110, 117,
        "The leader leads in its own eyes and the quorum's, in one epoch. The follower is not in its ISR, follows its "
        "epoch and has reached its high watermark, which is past all records of earlier epochs.",
        "The follower is in the ISR, the quorum's and the leader's.",
    ),
    "FencedLeaderShrinkIsr": Row(
        KIP_320, 78, 85,
        "The leader leads in its own eyes and the quorum's, in one epoch. The follower is another member of its ISR "
        "that does not follow its epoch, or whose log ends below the leader's: two ways, counted one by one.",
        "The follower is out of the ISR, the quorum's and the leader's.",
    ),
    "LeaderWrite": Row(
        KAFKA_REPLICATION, 202, 207, "The replica takes itself for the leader; a record and room in its log are left.",
        "Its log ends with the next record, of the epoch that it knows.",
    ),
    "FencedLeaderIncHighWatermark": Row(
        KIP_320, 63, 70,
        "The leader's log goes beyond its high watermark, and each member of the ISR it knows follows its epoch and "
        "holds the record there. An ISR of nobody asks nothing.",
        "Its high watermark is one higher.",
    ),
    "FencedBecomeFollowerAndTruncate": Row(
        KIP_320, 134, 148,
        "A request names another replica as leader, in an epoch above the replica's; that leader takes itself for it "
        "in the very epoch of the request. A request without a leader is never obeyed (S10).",
        "The replica has the request's leader, epoch and ISR. Its log ends after the last record that it shares with "
        "the leader's, and its high watermark is no higher than that.",
    ),
    "FencedFollowerFetch": Row(
        KIP_320, 49, 56,
        "The follower follows a presumed leader in that one's epoch, and its log ends below the leader's.",
        "It has the leader's next record, and the leader's high watermark as far as its own log goes.",
    ),
}

PULSAR: Mapping[str, Row] = {
    "Producer": Row(
        COMPACTION, 83, 87, "A message is left to send.",
        "The next message is there, with any key and any value, null among them.",
    ),
    "CompactorPhaseOne": Row(
        COMPACTION, 93, 100, "The compactor is in phase one and has no result of it; there is a message.",
        "It has noted how many messages there are, and the last one of each key but the null key.",
    ),
    "CompactorPhaseTwoWrite": Row(
        COMPACTION, 121, 132, "The compactor is to write and has a result of phase one; a ledger is left.",
        "The next ledger has, of the messages noted, the last one of each key; those without a key all or not at all.",
    ),
    "CompactorPhaseTwoUpdateContext": Row(
        COMPACTION, 135, 139, "The compactor is to update the context.", "Readers use the newest ledger.",
    ),
    "CompactorPhaseTwoUpdateHorizon": Row(
        COMPACTION, 141, 145, "The compactor is to update the horizon.",
        "The horizon is where phase one stopped reading.",
    ),
    "CompactorPhaseTwoPersistCusror": Row(
        COMPACTION, 147, 151, "The compactor is to persist the cursor.", "The cursor holds horizon and context.",
    ),
    "CompactorPhaseTwoDeleteLedger": Row(
        COMPACTION, 153, 165, "The compactor is to delete a ledger.",
        "The last ledger but one is gone, if there are two; the result of phase one is, too.",
    ),
    "BrokerCrash": Row(
        COMPACTION, 169, 182, "A crash is left.",
        "The compactor is back in phase one without a result; horizon and context are the cursor's, or 0 without one. "
        "Ledgers that the cursor does not name stay (S11).",
    ),
    "Consumer": Row(COMPACTION, 185, 186, "The consumer is modelled.", "Nothing changes (S13)."),
    "Terminating": Row(
        COMPACTION, 205, 214,
        "All messages are sent, the compactor is to write and all its ledgers are used; a consumer that is modelled "
        "has consumed as often as it should.",
        "Nothing changes.",
    ),
}
