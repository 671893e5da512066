------------------------------ MODULE ReadTwice ------------------------------
EXTENDS Integers, TLC, compaction

\* A run of compaction/pulsar, compactions=1 consumer=false consumptions=2 crashes=1 keys=1 messages=1 producer=true retain-null-key=true values=1
\* violates DuplicateNullKeyMessage: a reader gets null-key message 1 twice: from compacted ledger 1, and from the topic, which it reads after message 0
\* compaction: https://github.com/thetumbled/pulsar-tlaplus, commit 6402c8d

(* To have TLC confirm it, put this file and its configuration beside the original module, and run

       java -cp tla2tools.jar tlc2.TLC -config ReadTwice.cfg ReadTwice

   What TLC may say, and what it means:
   - "Invariant DuplicateNullKeyMessage is violated", after 5 states: confirmed.
   - "No error has been found": a behaviour of compaction, but one that does not violate DuplicateNullKeyMessage.
   - "Invariant TraceBegins is violated": the first state of Trace is no initial state of compaction.
   - "Deadlock reached": no step of compaction leads from the last state shown to the next one of Trace.
*)

VARIABLE trace_step  \* the number of the state in Trace

TraceLength == 5

\* The states of the run, each below the action that leads to it.
Trace == <<
    \* 1: Initial predicate
    [messages |-> <<>>,
     compactedLedgers |-> <<Nil>>,
     cursor |-> Nil,
     compactorState |-> Compactor_In_PhaseOne,
     phaseOneResult |-> Nil,
     compactionHorizon |-> 0,
     compactedTopicContext |-> 0,
     crashTimes |-> 0,
     consumeTimes |-> 0],
    \* 2: Producer key=0 value=0
    [messages |-> <<[id |-> 1, key |-> 0, value |-> 0]>>,
     compactedLedgers |-> <<Nil>>,
     cursor |-> Nil,
     compactorState |-> Compactor_In_PhaseOne,
     phaseOneResult |-> Nil,
     compactionHorizon |-> 0,
     compactedTopicContext |-> 0,
     crashTimes |-> 0,
     consumeTimes |-> 0],
    \* 3: CompactorPhaseOne
    [messages |-> <<[id |-> 1, key |-> 0, value |-> 0]>>,
     compactedLedgers |-> <<Nil>>,
     cursor |-> Nil,
     compactorState |-> Compactor_In_PhaseTwoWrite,
     phaseOneResult |-> [latestForKey |-> <<>>, readPosition |-> 1],
     compactionHorizon |-> 0,
     compactedTopicContext |-> 0,
     crashTimes |-> 0,
     consumeTimes |-> 0],
    \* 4: CompactorPhaseTwoWrite
    [messages |-> <<[id |-> 1, key |-> 0, value |-> 0]>>,
     compactedLedgers |-> <<<<[id |-> 1, key |-> 0, value |-> 0]>>>>,
     cursor |-> Nil,
     compactorState |-> Compactor_In_PhaseTwoUpdateContext,
     phaseOneResult |-> [latestForKey |-> <<>>, readPosition |-> 1],
     compactionHorizon |-> 0,
     compactedTopicContext |-> 0,
     crashTimes |-> 0,
     consumeTimes |-> 0],
    \* 5: CompactorPhaseTwoUpdateContext
    [messages |-> <<[id |-> 1, key |-> 0, value |-> 0]>>,
     compactedLedgers |-> <<<<[id |-> 1, key |-> 0, value |-> 0]>>>>,
     cursor |-> Nil,
     compactorState |-> Compactor_In_PhaseTwoUpdateHorizon,
     phaseOneResult |-> [latestForKey |-> <<>>, readPosition |-> 1],
     compactionHorizon |-> 0,
     compactedTopicContext |-> 1,
     crashTimes |-> 0,
     consumeTimes |-> 0]
  >>

TraceState ==
    /\ messages = Trace[trace_step].messages
    /\ compactedLedgers = Trace[trace_step].compactedLedgers
    /\ cursor = Trace[trace_step].cursor
    /\ compactorState = Trace[trace_step].compactorState
    /\ phaseOneResult = Trace[trace_step].phaseOneResult
    /\ compactionHorizon = Trace[trace_step].compactionHorizon
    /\ compactedTopicContext = Trace[trace_step].compactedTopicContext
    /\ crashTimes = Trace[trace_step].crashTimes
    /\ consumeTimes = Trace[trace_step].consumeTimes

TraceInit ==
    /\ trace_step = 1
    /\ TraceState

TraceBegins == trace_step = 1 => Init

TraceNext ==
    \/ /\ trace_step < TraceLength
       /\ trace_step' = trace_step + 1
       /\ Next
       /\ TraceState'
    \/ /\ trace_step = TraceLength
       /\ UNCHANGED <<trace_step, messages, compactedLedgers, cursor, compactorState, phaseOneResult,
                      compactionHorizon, compactedTopicContext, crashTimes, consumeTimes>>
==============================================================================
ReadTwice.cfg:

CONSTANTS
    Nil = Nil
    Compactor_In_PhaseOne = Compactor_In_PhaseOne
    Compactor_In_PhaseTwoWrite = Compactor_In_PhaseTwoWrite
    Compactor_In_PhaseTwoUpdateContext = Compactor_In_PhaseTwoUpdateContext
    Compactor_In_PhaseTwoUpdateHorizon = Compactor_In_PhaseTwoUpdateHorizon
    Compactor_In_PhaseTwoPersistCusror = Compactor_In_PhaseTwoPersistCusror
    Compactor_In_PhaseTwoDeleteLedger = Compactor_In_PhaseTwoDeleteLedger
    MessageSentLimit = 1
    CompactionTimesLimit = 1
    ModelConsumer = FALSE
    ConsumeTimesLimit = 2
    KeySpace = {1}
    ValueSpace = {1}
    RetainNullKey = TRUE
    MaxCrashTimes = 1
    ModelProducer = TRUE
INIT TraceInit
NEXT TraceNext
INVARIANTS TraceBegins DuplicateNullKeyMessage
CHECK_DEADLOCK TRUE
