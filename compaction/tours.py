"""A guided tour through topic compaction: a crash leaves a compacted ledger that nothing names (PC-01)."""

from __future__ import annotations

from harness.model import Faults, Tour, told

LEAK = told("""
Send(producer) key=1 value=1: The producer sends a message with key 1. For readers of the compacted topic only the last
    message of each key matters.
AppendEntry(broker) @1: The broker appends it to the topic, on disk. The topic has something that is not compacted yet,
    so the compactor may start.
CompactorPhaseOne(broker): Phase one reads the topic and notes the last message of each key. Then the broker asks the
    store for a new ledger: that is where a compacted topic is kept.
CreateLedger(bookkeeper,1) @3: The store creates ledger 1.
WriteLedger(broker) @4: Phase two writes the messages to keep into ledger 1, and asks to have it sealed.
AddEntries(bookkeeper,1) @5: The store has the entry.
SealLedger(bookkeeper,1) @5.1: Ledger 1 is sealed: complete, durable, and never changed again. So far nobody uses it.
ReceiveLedgerSealed(broker) @7: The broker hears of it. What is left are four effects, one after the other, and the
    order matters: a crash may come between any two of them.
CompactorPhaseTwoUpdateContext(broker): The context names ledger 1: readers are served from it. The context is in the
    broker's memory only.
CompactorPhaseTwoUpdateHorizon(broker): The horizon moves to message 1: up to there readers use the ledger, behind it
    the topic itself.
CompactorPhaseTwoPersistCusror(broker): Now the cursor names ledger 1 on disk. This is what a broker that starts again
    goes by. (The action is spelled as in the spec.)
CompactorPhaseTwoDeleteLedger(broker): Last, the ledger that was replaced would be deleted. There was none. The
    compaction is complete: the store has one ledger, and the cursor names it.
ReceiveSendReceipt(producer) @2: The producer hears that its message is stored, and may send the next one.
Send(producer) key=1 value=2: It sends a new value for key 1. It replaces the first one.
AppendEntry(broker) @14: The message is in the topic, behind the horizon. A second compaction is due.
CompactorPhaseOne(broker): Phase one finds message 2 to be the last one of key 1.
CreateLedger(bookkeeper,2) @3: The store creates ledger 2.
WriteLedger(broker) @17: Message 2 goes into ledger 2, message 1 does not: that is what compaction is for.
AddEntries(bookkeeper,2) @18: The store has the entry.
SealLedger(bookkeeper,2) @18.1: Ledger 2 is sealed, and from now on somebody has to remember that it is there.
ReceiveLedgerSealed(broker) @20: The broker hears of it.
CompactorPhaseTwoUpdateContext(broker): The context names ledger 2. The cursor on disk still names ledger 1. Two effects
    more, and all would be well.
Crash(broker): The broker crashes now. Context and horizon are gone. Topic and cursor survive, and so does the store,
    with ledgers 1 and 2.
Restart(broker): The broker starts again. It serves nobody before it has loaded its state.
LoadCompactedTopic(broker): It reads its cursor, which names ledger 1, and asks the store for that one. Nothing on disk
    says that there was a second compaction.
LoadLedger(bookkeeper,1) @25: The store answers with the contents of ledger 1. It has ledger 2 as well, but it was not
    asked.
ReceiveLedgerLoaded(broker) @26: The broker serves again, from ledger 1. Nothing is wrong with what readers see. But no
    cursor and no context names ledger 2, and nobody will ever delete it: the next compaction writes ledger 3. The spec
    calls this CompactedLedgerLeak. The repair, S11: delete on load what the cursor does not name.
""")

TOURS: tuple[Tour, ...] = (
    Tour(
        "pc-01", "a crash leaves a compacted ledger that nothing names (Pulsar #1302)", "compaction/pulsar/actors",
        LEAK, {"messages": 2, "keys": 1, "values": 2}, {"repair": "S12"},
        faults=Faults(crash=1, targets=("broker",)), claims=("NoLeak",), violates="NoLeak",
        witnesses=("CrashBetweenSealAndCursor",),
        intro="A topic, its producer, the broker that compacts it, and the store that keeps ledgers. A compacted topic "
        "is a ledger with the last message of each key. A new compaction writes a new ledger and deletes the old one. "
        "What if the broker crashes in between?",
    ),
)
