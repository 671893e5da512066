"""Guided tours through the diaries' specs: what figure 3 of entry 2 and figures 1 and 2 of entry 5 show."""

from __future__ import annotations

from harness.model import Tour, told

RETRY = told("""
SendInitPidRequest(c1,b1) tid1: c1 wants a producer id for the transactional id tid1. It may ask any broker, and asks
    b1.
SendInitPidRequest(c2,b2) tid1: c2 has the same transactional id, and asks b2.
ReceiveInitPidRequest(b1,c1) @1: b1 is the coordinator of tid1. It takes producer id 1 and writes it with epoch 0 to the
    transaction log. Until the entry is committed, the metadata that answers are made of stay as they are.
ReceiveInitPidRequest(b2,c2) @2: b2 does not lead the log partition of tid1, so it answers
    NotCoordinatorForTransactionalId.
ReceiveInitPidResponse(c2) @4: c2 is Ready again. Nothing stops it from asking b2 once more, for ever: that is why
    sending to each broker must be strongly fair.
CompleteInitPidRequest(b1,p1): The entry of c1 is committed. Now b1 answers.
ReceiveInitPidResponse(c1) @6: c1 has producer id 1 with epoch 0, and does nothing more in this entry.
SendInitPidRequest(c2,b1) tid1: c2 asks another broker this time.
ReceiveInitPidRequest(b1,c2) @8: b1 knows tid1 already: the producer id stays, the epoch becomes 1.
CompleteInitPidRequest(b1,p1): Committed and answered.
ReceiveInitPidResponse(c2) @10: Both clients have a producer id, as EventuallyAllClientsGetPid asks. It is the same one;
    by its epoch c1 is fenced from now on, though nobody has told it.
""")

ADDED = told("""
SendInitPidRequest(c1) tid1: In entry 5 a client finds its coordinator first: c1 asks b1.
ReceiveInitPidRequest(b1,c1) @1: b1 chooses producer id 1 and appends an entry with epoch 0 to its transaction log.
CommitTxnLogAppend(b1,p1): The other broker has the entry, too, and the high watermark is 1. The answer was kept with
    the entry, and goes out now.
ReceiveInitPidResponse(c1,b1) @3: c1 is in state HasPid.
SendAddPartitionsToTxnRequest(c1) tp1: The first partition of the transaction. For c1 the transaction has begun.
ReceiveAddPartitionsToTxnRequest(b1,c1) @5: Producer id and epoch are the current ones. b1 appends that the transaction
    is Ongoing, with tp1 in it.
CommitTxnLogAppend(b1,p1): Committed: whatever becomes of c1, a coordinator knows where the markers must go.
ReceiveAddPartitionsToTxnResponse(c1,b1) @7: c1 has added all its partitions. This spec ends here: no records, no
    EndTxn.
""")

FENCED = (*ADDED[:-1], (ADDED[-1][0], "c1 has added tp1. So far it was the happy path."), *told("""
SendInitPidRequest(c2) tid1: Another producer starts with the same transactional id, as after a restart.
ReceiveInitPidRequest(b1,c2) @9: The transaction of the former producer is Ongoing. b1 raises the epoch to 1, which
    fences c1, and appends PrepareAbort: the open transaction has to end first.
CommitTxnLogAppend(b1,p1): The abort is decided. c2 is told ConcurrentTransactions, which means: try again. b1 appends
    CompleteAbort; markers are not in this spec.
ReceiveInitPidResponse(c2,b1) @11: c2 is Ready again.
CommitTxnLogAppend(b1,p1): CompleteAbort is committed.
SendInitPidRequest(c2) tid1: c2 tries again.
ReceiveInitPidRequest(b1,c2) @14: Nothing is open any more. b1 gives the same producer id, with epoch 2.
CommitTxnLogAppend(b1,p1): Committed and answered.
ReceiveInitPidResponse(c2,b1) @16: c2 may begin. c1 still believes that its transaction is open; what it sends with
    epoch 0 will be refused.
"""))

INVARIANTS = ("TypeOK", "NoBadStateResponse", "ClientsHaveDifferentProducerEpochs", "TCsHaveDifferentEpochs")

TOURS: tuple[Tour, ...] = (
    Tour(
        "diary-01-retry", "a client asks the wrong coordinator, and tries again (entry 2, figure 3)",
        "transactions/diary-01", RETRY, {"clients": 2, "brokers": 2}, claims=INVARIANTS[:2],
        witnesses=("NotCoordinatorRetrySucceeds",),
        intro="The first spec of Verifying Kafka transactions: two clients with one transactional id, tid1, and two "
        "brokers, of which b1 is its coordinator. A client only wants a producer id.",
    ),
    Tour(
        "diary-02-adds", "a producer gets its id and adds a partition (entry 5, figure 1)", "transactions/diary-02",
        ADDED, {"clients": 1, "brokers": 2, "elections": 0}, claims=INVARIANTS,
        intro="The second spec. The transaction log is replicated: an entry counts, and its request is answered, once "
        "it is committed. One client, two brokers; b1 is the coordinator of tid1.",
    ),
    Tour(
        "diary-02-fenced", "a second producer with the same id aborts the first one's transaction (entry 5, figure 2)",
        "transactions/diary-02", FENCED, {"clients": 2, "brokers": 2, "elections": 0}, claims=INVARIANTS,
        intro="It begins as figure 1, with a second client, c2, that has the same transactional id.",
    ),
)
