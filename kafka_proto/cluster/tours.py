"""Guided tours through whole transactions: a commit, an abort, a zombie that is fenced, and an end that comes late."""

from __future__ import annotations

from harness.model import Tour, told
from kafka_proto.cluster.properties import INVARIANTS

BEGUN = told("""
InitTransactions(c1): The application calls init_transactions. Its transactional id is tid1, whose coordinator is b1; c1
    asks it for a producer id.
ReceiveInitProducerIdRequest(b1,c1) @1: b1 has never heard of tid1. It gives it producer id 0 with epoch 0, and writes
    that to the transaction log.
ReceiveInitProducerIdResponse(c1,b1) @2: c1 knows its producer id and epoch. Every request and every batch from now on
    carries both.
BeginTransaction(c1): begin_transaction asks nobody: no broker knows of the transaction before something is written in
    it.
""")

COMMIT = (*BEGUN, *told("""
Poll(r1,T-0): The consumer r1 fetches T-0 from its start, with isolation level read_committed. There is nothing yet, so
    b2 will keep the request waiting.
Send(c1,T-0): The application sends the first record, c1.1#1. c1 speaks the requests of Kafka 4: it sends the batch to
    the leader of T-0 at once, and does not tell the coordinator before.
ReceiveProduceRequest(b2,c1) @6: b2 leads T-0 and knows of no open transaction of producer id 0 there. It does not
    append yet. It asks the coordinator to make T-0 part of the transaction (KIP-890).
ReceiveAddPartitionsToTxnRequest(b1,b2) @7: b1 finds that producer id and epoch are right. The transaction is Ongoing
    now, with T-0 in it: b1 will know where to write the markers, whatever becomes of c1.
ReceiveAddPartitionsToTxnResponse(b2,b1) @8: b2 appends the record at offset 0: open, dashed. The high watermark (HW) is
    past it, the last stable offset (LSO) is not. Point at the head of T-0: it remembers epoch, sequence, and where the
    transaction begins.
ReceiveProduceResponse(c1,b2) @9: c1 hears that its record is at offset 0. Acknowledged is not committed: r1 still
    waits, as everything from the last stable offset on may yet be aborted.
Send(c1,T-0): A second record of the same transaction, with the next sequence, 1.
ReceiveProduceRequest(b2,c1) @11: b2 has the transaction open already, so it asks nobody: sequence 1 follows 0, and the
    record gets offset 1.
ReceiveProduceResponse(c1,b2) @12: All that was sent is acknowledged. Only now may the transaction be ended.
CommitTransaction(c1): commit_transaction sends EndTxn to the coordinator. What it answers decides, not what is in the
    partitions.
ReceiveEndTxnRequest(b1,c1) @14: PrepareCommit is in the transaction log: this is the moment in which the transaction is
    committed. Nothing can abort it any more. b1 answers, with epoch 1 for the next transaction, and sends the marker to
    b2.
ReceiveEndTxnResponse(c1,b1) @15: The application hears that it is committed, and goes on with epoch 1. In T-0 the
    records are still open: the marker is under way, and will arrive, however often b1 has to repeat it.
ReceiveWriteTxnMarkersRequest(b2,b1) @15.1: b2 appends the COMMIT marker. Both records are committed now, and the last
    stable offset goes past them. The marker has epoch 1 (e1): a late batch of epoch 0 would be refused from here on.
ReceiveWriteTxnMarkersResponse(b1,b2) @17: The last marker is acknowledged. b1 writes CompleteCommit; the next
    transaction of tid1 may begin.
ReceiveConsumerFetchRequest(b2,r1) @5: There is something below the last stable offset: the fetch that waited is
    answered, with no aborted transaction to be left out.
ReceiveConsumerFetchResponse(r1,b2) @19: r1 gives its application both records, both at once: underlined. The marker
    moves its position on, and is not given to anybody. All or nothing, and in order.
"""))

ABORT = (*BEGUN, *told("""
Send(c1,T-0): The application sends one record, c1.1#1.
ReceiveProduceRequest(b2,c1) @5: b2 asks the coordinator to make T-0 part of the transaction before it appends anything.
ReceiveAddPartitionsToTxnRequest(b1,b2) @6: The transaction is Ongoing, with T-0 in it.
ReceiveAddPartitionsToTxnResponse(b2,b1) @7: The record is in the log for good: Kafka never takes a record out again
    because of an abort. For now it is open, and the last stable offset stays before it.
ReceiveProduceResponse(c1,b2) @8: c1 hears that its record is at offset 0.
AbortTransaction(c1): The application changes its mind: abort_transaction sends EndTxn with committed=False.
ReceiveEndTxnRequest(b1,c1) @10: PrepareAbort is in the transaction log. b1 answers c1 and sends the marker to the
    partitions that it has listed: T-0 only.
ReceiveEndTxnResponse(c1,b1) @11: c1 is ready for its next transaction, with epoch 1.
ReceiveWriteTxnMarkersRequest(b2,b1) @11.1: The ABORT marker makes the record before it void: crossed out. b2 also puts
    it into its index of aborted transactions. The last stable offset is past both.
ReceiveWriteTxnMarkersResponse(b1,b2) @13: CompleteAbort: the coordinator is done.
Poll(r1,T-0): A consumer of committed records comes, and fetches T-0 from its start.
ReceiveConsumerFetchRequest(b2,r1) @15: b2 sends all batches up to the last stable offset, the aborted one too, and
    beside them a list: what producer id 0 wrote from offset 0 on was aborted. A broker filters nothing.
ReceiveConsumerFetchResponse(r1,b2) @16: The consumer leaves out what is on the list, up to the ABORT marker. Its
    position is 2, its application got nothing, so nothing is underlined. With read_uncommitted it would have got the
    record.
"""))

ZOMBIE = (*BEGUN, *told("""
Send(c1,T-0): c1 sends one record. So far all is as in any transaction.
ReceiveProduceRequest(b2,c1) @5: b2 asks the coordinator to add T-0.
ReceiveAddPartitionsToTxnRequest(b1,b2) @6: The transaction of tid1 is Ongoing, with T-0.
ReceiveAddPartitionsToTxnResponse(b2,b1) @7: The record is open at offset 0, written with epoch 0 (e0).
ReceiveProduceResponse(c1,b2) @8: Now c1 falls silent: a long pause, a lost network. Somebody takes it for dead and
    starts another one.
InitTransactions(c2): c2 takes its place, with the same transactional id, tid1. That is what the id is for: it names the
    application, not the process.
ReceiveInitProducerIdRequest(b1,c2) @10: b1 finds c1's transaction open. It raises the epoch, which fences c1, and
    aborts: PrepareAbort, and a marker with epoch 2. c2 is told to try again (CONCURRENT_TRANSACTIONS).
ReceiveWriteTxnMarkersRequest(b2,b1) @11.1: The ABORT marker is in T-0, and c1's record is void. From now on the
    partition knows epoch 2 (e2): what comes with an older one is refused.
ReceiveInitProducerIdResponse(c2,b1) @11: c2 waits a little before it asks again.
ReceiveWriteTxnMarkersResponse(b1,b2) @12: CompleteAbort: c1's transaction is over, without c1.
RetryBackoff(c2): c2 asks once more.
ReceiveInitProducerIdRequest(b1,c2) @15: Nothing is open any more. c2 gets producer id 0 with epoch 3.
ReceiveInitProducerIdResponse(c2,b1) @16: c2 is ready. It can be sure that nothing of c1's is to come.
Send(c1,T-0): But c1 was not dead. It wakes up, knows of nothing, and goes on with its transaction: a zombie.
ReceiveProduceRequest(b2,c1) @18: Its batch has epoch 0. For b2 it would begin a transaction, so the coordinator is
    asked first.
ReceiveAddPartitionsToTxnRequest(b1,b2) @19: The coordinator has epoch 3 for producer id 0, the request has 0:
    INVALID_PRODUCER_EPOCH. Nothing is added.
ReceiveAddPartitionsToTxnResponse(b2,b1) @20: b2 appends nothing. T-0 is as it was.
ReceiveProduceResponse(c1,b2) @21: c1 learns that its epoch is not valid. From a partition that is an abortable error:
    its transaction cannot be committed any more.
AbortTransaction(c1): So the application aborts, as it should after such an error.
ReceiveEndTxnRequest(b1,c1) @23: An EndTxn with epoch 0. The coordinator answers PRODUCER_FENCED: there is a newer
    producer.
ReceiveEndTxnResponse(c1,b1) @24: That is fatal. c1 can do nothing but close. Not one record of the zombie's got in
    after c2 was ready, and c2 noticed nothing.
"""))

LATE_END = (*BEGUN, *told("""
Send(c1,T-0): An older client, by the requests of Kafka 3.5: before the first batch of a partition it tells the
    coordinator itself that T-0 belongs to its transaction, c1.1.
ReceiveAddPartitionsToTxnRequest(b1,c1) @5: The transaction is Ongoing, with T-0 in it.
ReceiveAddPartitionsToTxnResponse(c1,b1) @6: Now c1 may send the batch.
ReceiveProduceRequest(b1,c1) @7: The record c1.1#1 is open at offset 0.
ReceiveProduceResponse(c1,b1) @8: And it is acknowledged.
AbortTransaction(c1): The application aborts. EndTxn goes to b1 with producer id 0 and epoch 0, and is late: keep an eye
    on its arrow.
RequestTimeout(c1,b1): No answer comes, so c1 gives the connection up and sends the same EndTxn on another one. What is
    in the old connection is not gone: some socket still has it.
ReceiveEndTxnRequest(b1,c1) @11: The second one arrives first, as it is on another connection. b1 prepares the abort.
ReceiveEndTxnResponse(c1,b1) @12: The application hears that c1.1 is aborted. True, and all is well so far.
ReceiveWriteTxnMarkersRequest(b1,b1) @12.1: The ABORT marker, caused by c1.1, makes c1.1#1 void.
ReceiveWriteTxnMarkersResponse(b1,b1) @14: CompleteAbort. The epoch is still 0: in this version an end does not change
    it.
BeginTransaction(c1): The application begins its next transaction, c1.2. Same producer id, same epoch.
Send(c1,T-0): It writes a record, c1.2#1.
ReceiveAddPartitionsToTxnRequest(b1,c1) @17: Ongoing again, with T-0.
ReceiveAddPartitionsToTxnResponse(c1,b1) @18: The batch may be sent.
ReceiveProduceRequest(b1,c1) @19: c1.2#1 is open at offset 2.
ReceiveProduceResponse(c1,b1) @20: It is acknowledged. The application wants to commit it in a moment.
ReceiveEndTxnRequest(b1,c1) @10: Now the first EndTxn comes out of the old connection. An abort for producer id 0, epoch
    0; that is what b1 has under way. Nothing tells it that another transaction is meant. It aborts c1.2.
ReceiveWriteTxnMarkersRequest(b1,b1) @22.1: The marker, caused by c1.1, ends c1.2#1: MarkerAttribution fails. Had the
    late EndTxn been a commit, half a transaction would be committed. KAFKA-17754; with KIP-890 each end has an epoch of
    its own, and this one is refused.
"""))
NEW = "kafka/4.0"
ALONE = {"producers": 1, "brokers": 2, "partitions": 1, "transactions": 1, "records": 2, "consumers": 1}

TOURS: tuple[Tour, ...] = (
    Tour(
        "commit", "a transaction is committed: what happens when", NEW, COMMIT, ALONE, claims=INVARIANTS,
        witnesses=("TransactionCommitted",), shows_logs=True, then="tx-01",
        intro="A producer c1, two brokers and a consumer r1 of committed records, as in Kafka 4. b1 coordinates the "
        "transactional id tid1, b2 leads T-0, the only partition. Topics, at the side, shows what is in it and "
        "in the transaction log: watch when the records become committed, and when r1 gets them.",
    ),
    Tour(
        "abort", "a transaction is aborted, and a consumer leaves its record out", NEW, ABORT, ALONE, claims=INVARIANTS,
        witnesses=("TransactionAborted", "AbortedRecordSkipped"), shows_logs=True,
        intro="It begins as the tour of a commit, with the same cluster. Then the application aborts. What becomes of "
        "the record that is in the log already?",
    ),
    Tour(
        "zombie", "a producer that was taken for dead comes back and is fenced", NEW, ZOMBIE,
        {**ALONE, "producers": 2, "consumers": 0}, claims=INVARIANTS, witnesses=("ProducerIsFenced",), shows_logs=True,
        intro="Two producers with one transactional id, tid1: c2 takes the place of c1, which is not dead. What can c1 "
        "still do?",
    ),
    Tour(
        "tx-01", "an EndTxn that comes late ends the next transaction (KAFKA-17754)", "kafka/3.5", LATE_END,
        {"producers": 1, "brokers": 1, "partitions": 1, "transactions": 2, "records": 1},
        claims=("MarkerAttribution",), violates="MarkerAttribution", witnesses=("TransactionAborted",),
        shows_logs=True,
        intro="One producer and one broker, by the rules that Kafka had up to 3.9. Nobody crashes, nothing is lost. "
        "One request is slow, and its connection is given up. A record is written in one transaction, and another "
        "transaction's abort makes it void.",
    ),
)
