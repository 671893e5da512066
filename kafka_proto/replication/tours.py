"""A guided tour through replication: truncation to the high watermark loses a record that was acknowledged (RP-01)."""

from __future__ import annotations

from harness.model import Tour, told

TRUNCATION = told("""
ControllerElectLeader(r1): The controller makes r1 the leader in epoch 0 and tells both replicas. Both are in the ISR,
    the set of in-sync replicas: whoever is in it may be elected, so each member must have all that was acknowledged.
ReceiveLeaderAndIsrRequest(r1,controller) @1: r1 leads. Its log is empty, and its high watermark is 0: records below the
    high watermark are committed.
ReceiveLeaderAndIsrRequest(r2,controller) @1.1: r2 follows. This old version of the protocol has a simple rule for a new
    follower: cut your log to your own high watermark, then fetch. There is nothing to cut yet. r2 asks for the record
    at offset 0.
Send(p1,r1,acks=all): The producer sends its record p1-1 with acks=all: it wants an answer only when every replica of
    the ISR has it.
ReceiveProduceRequest(r1,p1) @4: r1 writes the record at offset 0. The high watermark stays at 0, since r2 does not have
    the record. So the producer waits.
ReceiveFetchRequest(r1,r2) @3: r2's fetch arrives, and gets the record. The answer carries the high watermark, too,
    which is still 0.
ReceiveFetchResponse(r2,r1) @6: r2 writes the record. Both replicas have it now, but r2 knows of high watermark 0 only.
    It asks for offset 1, and that tells r1 how far it is.
ReceiveFetchRequest(r1,r2) @7: A fetch for offset 1 means: I have all below 1. r1 notes it.
IncreaseHighWatermark(r1) to 1: Every member of the ISR has the record, so r1 raises its high watermark to 1: the record
    is committed. It answers the producer. It also answers r2, which could learn of the 1, if only that message arrived
    in time.
ReceiveProduceResponse(p1,r1) @9.1: The producer is told that its record is safe at offset 0. From here on it must never
    get lost while somebody in the ISR is alive (AckDurability).
ControllerElectLeader(r2): The controller makes r2 the leader in epoch 1. That is allowed: r2 is in the ISR. Nobody has
    heard of it yet.
ControllerElectLeader(r1): And back to r1, in epoch 2. Leaders move like this when brokers are restarted one by one.
    Again nobody has heard yet; three messages are on their way to r2, among them the one with the high watermark.
ReceiveLeaderAndIsrRequest(r2,controller) @12.1: Epoch 2 reaches r2 first. r2 is a new follower of r1, so it cuts its
    log to its own high watermark. That is 0: it drops a committed record. It is still in the ISR, without the record:
    StrongIsr fails here. Nothing is lost yet, as r1 has it, and r2 would fetch it again.
ReceiveLeaderAndIsrRequest(r1,controller) @12: r1 leads epoch 2 with the record and high watermark 1. If r2's fetch
    arrived now, all would be well.
ControllerElectLeader(r2): But r1 has to go before that, for whatever reason, and the controller elects r2 in epoch 3.
    It believes that r2 has everything, because r2 is in the ISR.
ReceiveLeaderAndIsrRequest(r2,controller) @15.1: r2 leads with an empty log, and its log is the truth now. The record
    that the producer was told to be safe is gone for all who ask the leader. This was KAFKA-1211. With KIP-101 a new
    follower asks the leader how far their logs agree, instead of trusting its own high watermark.
""")

TOURS: tuple[Tour, ...] = (
    Tour(
        "rp-01", "truncation to the high watermark loses a committed record (KAFKA-1211)",
        "replication/truncate-to-high-watermark/actors", TRUNCATION,
        {"replicas": 2, "producers": 1, "consumers": 0, "records": 1, "elections": 3, "fencings": 0},
        claims=("AckDurability",), violates="AckDurability", witnesses=("RecordAcknowledged", "RecordTruncated"),
        intro="Two replicas of one partition, r1 and r2, a producer p1 and the controller, by the rules that Kafka had "
        "before KIP-101. A record is acknowledged, and then lost, although no disk fails and nobody crashes. It "
        "takes a follower that knows an old high watermark, and two elections in a bad moment.",
    ),
)
