------------------------------ MODULE EmptyIsr -------------------------------
EXTENDS Integers, TLC, Kip320

\* A run of replication/kip-320, log-size=2 max-leader-epoch=2 max-records=2 replicas=2
\* violates IsrNonEmpty: the quorum's ISR is empty in epoch 1, so nobody can be elected
\* Kip320: https://github.com/hachikuji/kafka-specification

(* To have TLC confirm it, put this file and its configuration beside the original module, and run

       java -cp tla2tools.jar tlc2.TLC -config EmptyIsr.cfg EmptyIsr

   What TLC may say, and what it means:
   - "Invariant IsrNonEmpty is violated", after 3 states: confirmed.
   - "No error has been found": a behaviour of Kip320, but one that does not violate IsrNonEmpty.
   - "Invariant TraceBegins is violated": the first state of Trace is no initial state of Kip320.
   - "Deadlock reached": no step of Kip320 leads from the last state shown to the next one of Trace.
*)

CONSTANTS r1, r2

VARIABLE trace_step  \* the number of the state in Trace

TraceLength == 3

\* The states of the run, each below the action that leads to it.
Trace == <<
    \* 1: Initial predicate
    [leaderAndIsrRequests |-> {},
     nextLeaderEpoch |-> 0,
     nextRecordId |-> 0,
     quorumState |-> [isr |-> {r1, r2}, leader |-> "NONE", leaderEpoch |-> -1],
     replicaLog |-> (r1 :> [endOffset |-> 0, records |-> (0 :> -1 @@ 1 :> -1)] @@
                     r2 :> [endOffset |-> 0, records |-> (0 :> -1 @@ 1 :> -1)]),
     replicaState |-> (r1 :> [hw |-> 0, isr |-> {}, leader |-> "NONE", leaderEpoch |-> -1] @@
                       r2 :> [hw |-> 0, isr |-> {}, leader |-> "NONE", leaderEpoch |-> -1])],
    \* 2: ControllerShrinkIsr r1
    [leaderAndIsrRequests |-> {[isr |-> {r2}, leader |-> "NONE", leaderEpoch |-> 0]},
     nextLeaderEpoch |-> 1,
     nextRecordId |-> 0,
     quorumState |-> [isr |-> {r2}, leader |-> "NONE", leaderEpoch |-> 0],
     replicaLog |-> (r1 :> [endOffset |-> 0, records |-> (0 :> -1 @@ 1 :> -1)] @@
                     r2 :> [endOffset |-> 0, records |-> (0 :> -1 @@ 1 :> -1)]),
     replicaState |-> (r1 :> [hw |-> 0, isr |-> {}, leader |-> "NONE", leaderEpoch |-> -1] @@
                       r2 :> [hw |-> 0, isr |-> {}, leader |-> "NONE", leaderEpoch |-> -1])],
    \* 3: ControllerShrinkIsr r2
    [leaderAndIsrRequests |-> {[isr |-> {r2}, leader |-> "NONE", leaderEpoch |-> 0],
                               [isr |-> {}, leader |-> "NONE", leaderEpoch |-> 1]},
     nextLeaderEpoch |-> 2,
     nextRecordId |-> 0,
     quorumState |-> [isr |-> {}, leader |-> "NONE", leaderEpoch |-> 1],
     replicaLog |-> (r1 :> [endOffset |-> 0, records |-> (0 :> -1 @@ 1 :> -1)] @@
                     r2 :> [endOffset |-> 0, records |-> (0 :> -1 @@ 1 :> -1)]),
     replicaState |-> (r1 :> [hw |-> 0, isr |-> {}, leader |-> "NONE", leaderEpoch |-> -1] @@
                       r2 :> [hw |-> 0, isr |-> {}, leader |-> "NONE", leaderEpoch |-> -1])]
  >>

IsrNonEmpty == quorumState.isr # {}

TraceState ==
    /\ leaderAndIsrRequests = Trace[trace_step].leaderAndIsrRequests
    /\ nextLeaderEpoch = Trace[trace_step].nextLeaderEpoch
    /\ nextRecordId = Trace[trace_step].nextRecordId
    /\ quorumState = Trace[trace_step].quorumState
    /\ replicaLog = Trace[trace_step].replicaLog
    /\ replicaState = Trace[trace_step].replicaState

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
       /\ UNCHANGED <<trace_step, leaderAndIsrRequests, nextLeaderEpoch, nextRecordId, quorumState,
                      replicaLog, replicaState>>
==============================================================================
EmptyIsr.cfg:

CONSTANTS
    r1 = r1
    r2 = r2
    Replicas = {r1, r2}
    LogSize = 2
    MaxRecords = 2
    MaxLeaderEpoch = 2
INIT TraceInit
NEXT TraceNext
INVARIANTS TraceBegins IsrNonEmpty
CHECK_DEADLOCK TRUE
