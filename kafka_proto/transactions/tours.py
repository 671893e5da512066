"""Guided tours through the transaction protocol: the two figures of diary entry 5, and an election between them.

Each is a run of the actors at the smallest size that shows it, with a caption per step. All begin with figure 1.
"""

from __future__ import annotations

from harness.model import Tour
from kafka_proto.transactions.properties import ACTOR_INVARIANTS

ACTORS = "transactions/repaired/actors"
SMALL = {
    "clients": 1, "brokers": 2, "txn-log-partitions": 1, "topic-partitions": 1, "transactional-ids": 1, "elections": 0,
}

Steps = tuple[tuple[str, str], ...]

FIGURE_1: Steps = (
    (
        "Init(c1,tid1)",
        "The application asks its producer c1 to start with the transactional id tid1. The id is the producer's name: "
        "it stays the same when the application is started again.",
    ),
    (
        "SendFindCoordinatorRequest(c1,b2)",
        "c1 does not know who coordinates tid1, and asks a broker. Any broker will do; here it is b2.",
    ),
    (
        "ReceiveFindCoordinatorRequest(b2,c1) @2",
        "tid1 belongs to partition p1 of the transaction log. Whoever leads p1 is the coordinator of tid1. b2 was "
        "told that this is b1, and says so. The spec leaves this question out: there a client just knows.",
    ),
    (
        "ReceiveFindCoordinatorResponse(c1,b2) @3",
        "Now c1 knows whom to talk to. Each answer repeats the correlation number of its request; an answer to a "
        "request that was given up would be ignored.",
    ),
    (
        "SendInitProducerIdRequest(c1)",
        "c1 asks b1 for a producer id. The spec calls this action SendInitPidRequest.",
    ),
    (
        "ReceiveInitProducerIdRequest(b1,c1) @5",
        "b1 has never heard of tid1, and takes the next free producer id, 1, with epoch 0. It does not answer yet. It "
        "appends an entry to its log, and the answer waits until that is committed: what is not in the log may be "
        "forgotten.",
    ),
    (
        "AppendTxnLogEntry(b1,p1) offset 0",
        "The entry reaches the log partition p1 at offset 0. How a partition is replicated is no part of this model: "
        "p1 is one service that puts entries in order.",
    ),
    (
        "CommitTxnLogAppend(b1,p1) tid1",
        "The entry is committed: it is on every broker from now on, and no election can undo it. The spec does this "
        "and all that follows from it in one step. Here the brokers hear of it by messages.",
    ),
    (
        "ReceiveCommitted(b1,p1) offset 0",
        "b1 hears of the commit. Now the callback of the entry runs: tid1 is in the state Empty, with producer id 1 "
        "and epoch 0, and c1 gets its answer.",
    ),
    (
        "ReceiveCommitted(b2,p1) offset 0",
        "b2 has the entry as well. It keeps the log only, and no callbacks; it may have to take over one day.",
    ),
    (
        "ReceiveInitProducerIdResponse(c1,b1) @9",
        "c1 has its producer id. Together with the epoch it is what c1 signs each further request with. The epoch "
        "will tell it from anybody who comes later with the same transactional id.",
    ),
    ("AddPartitions(c1,tp1)", "The application wants to write to the topic partition tp1 as part of a transaction."),
    (
        "SendAddPartitionsToTxnRequest(c1)",
        "Before a record may go to tp1, the coordinator must know that tp1 takes part: at the end a marker has to be "
        "written there, for commit or for abort.",
    ),
    (
        "ReceiveAddPartitionsToTxnRequest(b1,c1) @13",
        "b1 checks the producer id, then the epoch, then that nothing else is pending for tid1. All is well: it "
        "appends that the transaction is Ongoing with tp1 in it. Until that commits, every other request about tid1 "
        "is told ConcurrentTransactions.",
    ),
    ("AppendTxnLogEntry(b1,p1) offset 1", "The entry is in the partition, at offset 1, and not committed yet."),
    (
        "CommitTxnLogAppend(b1,p1) tid1",
        "It is committed. From here on the transaction is open, whatever happens to b1.",
    ),
    (
        "ReceiveCommitted(b1,p1) offset 1",
        "b1 takes the new state over, so nothing is pending any more, and answers c1.",
    ),
    ("ReceiveCommitted(b2,p1) offset 1", "b2 has the entry, too: its copy of the log says what b1's says."),
    (
        "ReceiveAddPartitionsToTxnResponse(c1,b1) @17",
        "c1 has an open transaction with tp1 in it, and could write to tp1 now. This is figure 1, the happy path. "
        "Specs and models of this diary end here: they write no records and no markers.",
    ),
)

FIGURE_2: Steps = (
    *FIGURE_1,
    (
        "Init(c2,tid1)",
        "A second producer starts with the same transactional id. Think of an application that was started again "
        "elsewhere because its first instance seemed dead. c1 is not dead, and does not know.",
    ),
    ("SendFindCoordinatorRequest(c2,b2)", "c2 looks for the coordinator of tid1, as c1 did."),
    (
        "ReceiveFindCoordinatorRequest(b2,c2) @21",
        "b2 names b1 again. There is one coordinator for an id, so whoever uses it meets there.",
    ),
    (
        "ReceiveFindCoordinatorResponse(c2,b2) @22",
        "c2 knows its coordinator.",
    ),
    ("SendInitProducerIdRequest(c2)", "c2 asks for a producer id under the name tid1."),
    (
        "ReceiveInitProducerIdRequest(b1,c2) @24",
        "tid1 has an Ongoing transaction. It is c1's, and nobody will end it any more, so it must be aborted first. "
        "b1 fences: it raises the epoch from 0 to 1, so that c1's requests will be refused, and appends PrepareAbort. "
        "In the spec the transition is called PrepareEpochFence.",
    ),
    (
        "AppendTxnLogEntry(b1,p1) offset 2",
        "PrepareAbort reaches the partition. While it is pending, b1 starts nothing.",
    ),
    (
        "CommitTxnLogAppend(b1,p1) tid1",
        "PrepareAbort is committed: the abort is decided, and cannot be taken back. A new coordinator would have to "
        "finish it (CompletePartialTxn in the spec).",
    ),
    (
        "ReceiveCommitted(b1,p1) offset 2",
        "b1 hears of it and does two things: it appends CompleteAbort, and it tells c2 ConcurrentTransactions. c2 got "
        "nothing yet, but set the abort in motion. Markers for tp1 would be written here.",
    ),
    (
        "ReceiveCommitted(b2,p1) offset 2",
        "b2 has PrepareAbort in its log, and could finish the abort if b1 failed now.",
    ),
    (
        "ReceiveInitProducerIdResponse(c2,b1) @28",
        "c2 learns that it has to try again. ConcurrentTransactions is retriable: it says `not now`, not `never`.",
    ),
    ("AppendTxnLogEntry(b1,p1) offset 3", "CompleteAbort is in the partition."),
    ("CommitTxnLogAppend(b1,p1) tid1", "CompleteAbort is committed. The transaction of c1 is over."),
    (
        "ReceiveCommitted(b1,p1) offset 3",
        "tid1 is in the state CompleteAbort: free for whoever asks next. Nobody waits for this entry, so nobody is "
        "answered.",
    ),
    ("ReceiveCommitted(b2,p1) offset 3", "b2 has it as well."),
    (
        "SendInitProducerIdRequest(c2)",
        "c2 tries again. Had it been faster, it would have been told ConcurrentTransactions again.",
    ),
    (
        "ReceiveInitProducerIdRequest(b1,c2) @35",
        "Now tid1 has a finished transaction, and c2 may have it: the same producer id 1, and the next epoch, 2. The "
        "state becomes Empty, as for a new id.",
    ),
    ("AppendTxnLogEntry(b1,p1) offset 4", "The entry that gives tid1 to c2 is in the partition."),
    ("CommitTxnLogAppend(b1,p1) tid1", "It is committed: from now on only epoch 2 counts."),
    ("ReceiveCommitted(b1,p1) offset 4", "b1 takes it over and answers c2."),
    ("ReceiveCommitted(b2,p1) offset 4", "b2 has it as well."),
    (
        "ReceiveInitProducerIdResponse(c2,b1) @39",
        "c2 has producer id 1 with epoch 2, while c1 still believes to hold 1 with epoch 0. The same id with "
        "different epochs is fine. The spec forbids the same id with the same epoch: "
        "ClientsHaveDifferentProducerEpochs.",
    ),
    (
        "AddPartitions(c1,tp2)",
        "c1, which has noticed nothing of all this, goes on with its transaction and wants tp2 in.",
    ),
    (
        "SendAddPartitionsToTxnRequest(c1)",
        "It signs its request with producer id 1 and epoch 0, which are out of date.",
    ),
    (
        "ReceiveAddPartitionsToTxnRequest(b1,c1) @43",
        "b1 compares epochs, 0 against 2, and refuses: ProducerFenced. Nothing is appended. This one comparison keeps "
        "a producer that was given up from adding to somebody else's transaction.",
    ),
    (
        "ReceiveAddPartitionsToTxnResponse(c1,b1) @44",
        "c1 learns that it was fenced, and stops for ever. Would it start again, the two could fence each other "
        "without end; the spec rules that out in the same way. This is figure 2.",
    ),
)

ELECTION: Steps = (
    *FIGURE_1,
    ("AddPartitions(c1,tp2)", "c1 has an open transaction with tp1 in it. The application wants tp2 in it, too."),
    ("SendAddPartitionsToTxnRequest(c1)", "c1 sends its request to b1, the coordinator it knows."),
    (
        "ReceiveAddPartitionsToTxnRequest(b1,c1) @21",
        "b1 appends that tp2 is part of the transaction, at offset 2 of its own log. The entry is on its way to the "
        "partition, and c1 waits for an answer.",
    ),
    (
        "ElectLeader(b2,p1)",
        "In this moment the controller makes b2 the leader of p1, in epoch 2. Leading p1 means to coordinate tid1. "
        "The controller tells both brokers; neither has heard yet, so b1 still acts as the coordinator.",
    ),
    (
        "TakeOver(b2,p1) epoch 2",
        "b2 hears that it was elected. It does not serve yet: it forgets what it may know of tid1 and asks the "
        "partition for all that is committed. Until then it answers CoordinatorLoadInProgress.",
    ),
    (
        "JoinEpoch(b2,p1) epoch 2",
        "The partition notes that epoch 2 has begun under b2. Whatever comes from epoch 1 is void from now on. Two "
        "brokers may believe to lead at the same time, but not in the same epoch (TCsHaveDifferentEpochs).",
    ),
    (
        "AppendTxnLogEntry(b1,p1) offset 2, fenced off",
        "b1's entry arrives with epoch 1, too late. It is fenced off, and will never be committed. That is all the "
        "protection that a deposed coordinator needs: it can decide what it wants, nothing of it counts.",
    ),
    (
        "LoadTxnLog(b2,p1) epoch 2",
        "b2 reads the two committed entries and knows all that b1 had promised to anybody: tid1 has producer id 1, "
        "epoch 0, and an Ongoing transaction with tp1. Now b2 serves.",
    ),
    (
        "BecomeFollower(b1,p1) epoch 2",
        "b1 hears that it is deposed. It truncates its log to the high watermark, so the entry with tp2 is gone, and "
        "tells c1 NotCoordinator, as the spec's BecomeFollower does.",
    ),
    (
        "JoinEpoch(b1,p1) epoch 2",
        "b1 has joined epoch 2. Entries commit only when every broker has joined the leader's epoch; otherwise "
        "nothing would be committed any more (that is flaw S2 of the spec, with a third broker).",
    ),
    (
        "ReceiveAddPartitionsToTxnResponse(c1,b1) @28",
        "c1 learns that b1 is the wrong one. The transaction stays open: only this request failed, and it can be "
        "repeated. The application sees nothing of it.",
    ),
    ("SendFindCoordinatorRequest(c1,b1)", "c1 forgets its coordinator and asks a broker again."),
    (
        "ReceiveFindCoordinatorRequest(b1,c1) @31",
        "b1 follows b2 by now, and says so. A broker that has not heard yet would give a stale answer; then c1 is "
        "told NotCoordinator once more, and asks again.",
    ),
    (
        "ReceiveFindCoordinatorResponse(c1,b1) @32",
        "c1 knows the new coordinator.",
    ),
    ("LoadTxnLog(b1,p1) epoch 2", "b1, as a follower, has what is committed. Both logs hold the same two entries."),
    (
        "SendAddPartitionsToTxnRequest(c1)",
        "c1 sends the same request to b2, with the producer id and epoch that b1 gave.",
    ),
    (
        "ReceiveAddPartitionsToTxnRequest(b2,c1) @35",
        "b2 knows producer id and epoch from the log, finds that they fit, and appends Ongoing with tp1 and tp2 at "
        "offset 2, in epoch 2.",
    ),
    ("AppendTxnLogEntry(b2,p1) offset 2", "It takes the place that b1's entry did not get."),
    ("CommitTxnLogAppend(b2,p1) tid1", "Both brokers are in epoch 2, so it commits."),
    ("ReceiveCommitted(b2,p1) offset 2", "b2 takes the state over and answers c1."),
    ("ReceiveCommitted(b1,p1) offset 2", "b1 has it as well; it may be elected again one day."),
    (
        "ReceiveAddPartitionsToTxnResponse(c1,b2) @39",
        "The transaction has both partitions. It was opened at one coordinator and goes on at another: the diary "
        "calls that `only a hiccup`.",
    ),
)

TOURS: tuple[Tour, ...] = (
    Tour(
        "figure-1", "the happy path: a producer gets an id and adds a partition", ACTORS, FIGURE_1, SMALL,
        claims=ACTOR_INVARIANTS,
        intro="Figure 1 of diary entry 5. c1 is a producer, b1 and b2 are brokers, log-p1 is a partition of the "
        "transaction log, led by b1. A producer needs an id before it can do anything else, and each topic "
        "partition has to be added before anything is written to it.",
    ),
    Tour(
        "figure-2", "a second producer fences the first and aborts its transaction", ACTORS, FIGURE_2,
        {**SMALL, "clients": 2, "topic-partitions": 2}, claims=ACTOR_INVARIANTS, witnesses=("ProducerFenced",),
        intro="Figure 2 of diary entry 5. It begins as figure 1. Then a second producer, c2, comes with the same "
        "transactional id. What becomes of c1 and its open transaction?",
    ),
    Tour(
        "election", "the coordinator changes in the middle of a transaction", ACTORS, ELECTION,
        {**SMALL, "topic-partitions": 2, "elections": 1}, claims=ACTOR_INVARIANTS,
        witnesses=("NotCoordinatorRetrySucceeds",),
        intro="It begins as figure 1. Then the leader of p1 is replaced while a request is under way. The diary says "
        "that this causes a hiccup, and no more. Watch why.",
    ),
)
