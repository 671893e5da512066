----------------------------- MODULE LostRecord ------------------------------
EXTENDS Integers, TLC, Kip101

\* A run of replication/kip-101, log-size=3 max-leader-epoch=2 max-records=3 replicas=2
\* violates WeakIsr: r2 is in r1's own ISR but does not hold r1's record at offset 0, while r1 presumes to lead epoch 2 with the high watermark 1
\* Kip101: https://github.com/hachikuji/kafka-specification

(* To have TLC confirm it, put this file and its configuration beside the original module, and run

       java -cp tla2tools.jar tlc2.TLC -config LostRecord.cfg LostRecord

   What TLC may say, and what it means:
   - "Invariant WeakIsr is violated", after 12 states: confirmed.
   - "No error has been found": a behaviour of Kip101, but one that does not violate WeakIsr.
   - "Invariant TraceBegins is violated": the first state of Trace is no initial state of Kip101.
   - "Deadlock reached": no step of Kip101 leads from the last state shown to the next one of Trace.
*)

CONSTANTS r1, r2

VARIABLE trace_step  \* the number of the state in Trace

TraceLength == 12

\* The states of the run, each below the action that leads to it.
Trace == <<
    \* 1: Initial predicate
    [leaderAndIsrRequests |-> {},
     nextLeaderEpoch |-> 0,
     nextRecordId |-> 0,
     quorumState |-> [isr |-> {r1, r2}, leader |-> "NONE", leaderEpoch |-> -1],
     replicaLog |-> (r1 :> [endOffset |-> 0, records |-> (0 :> -1 @@ 1 :> -1 @@ 2 :> -1)] @@
                     r2 :> [endOffset |-> 0, records |-> (0 :> -1 @@ 1 :> -1 @@ 2 :> -1)]),
     replicaState |-> (r1 :> [hw |-> 0, isr |-> {}, leader |-> "NONE", leaderEpoch |-> -1] @@
                       r2 :> [hw |-> 0, isr |-> {}, leader |-> "NONE", leaderEpoch |-> -1])],
    \* 2: ControllerElectLeader r1
    [leaderAndIsrRequests |-> {[isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 0]},
     nextLeaderEpoch |-> 1,
     nextRecordId |-> 0,
     quorumState |-> [isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 0],
     replicaLog |-> (r1 :> [endOffset |-> 0, records |-> (0 :> -1 @@ 1 :> -1 @@ 2 :> -1)] @@
                     r2 :> [endOffset |-> 0, records |-> (0 :> -1 @@ 1 :> -1 @@ 2 :> -1)]),
     replicaState |-> (r1 :> [hw |-> 0, isr |-> {}, leader |-> "NONE", leaderEpoch |-> -1] @@
                       r2 :> [hw |-> 0, isr |-> {}, leader |-> "NONE", leaderEpoch |-> -1])],
    \* 3: ControllerElectLeader r2
    [leaderAndIsrRequests |-> {[isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 0],
                               [isr |-> {r1, r2}, leader |-> r2, leaderEpoch |-> 1]},
     nextLeaderEpoch |-> 2,
     nextRecordId |-> 0,
     quorumState |-> [isr |-> {r1, r2}, leader |-> r2, leaderEpoch |-> 1],
     replicaLog |-> (r1 :> [endOffset |-> 0, records |-> (0 :> -1 @@ 1 :> -1 @@ 2 :> -1)] @@
                     r2 :> [endOffset |-> 0, records |-> (0 :> -1 @@ 1 :> -1 @@ 2 :> -1)]),
     replicaState |-> (r1 :> [hw |-> 0, isr |-> {}, leader |-> "NONE", leaderEpoch |-> -1] @@
                       r2 :> [hw |-> 0, isr |-> {}, leader |-> "NONE", leaderEpoch |-> -1])],
    \* 4: ControllerElectLeader r1
    [leaderAndIsrRequests |-> {[isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 0],
                               [isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2],
                               [isr |-> {r1, r2}, leader |-> r2, leaderEpoch |-> 1]},
     nextLeaderEpoch |-> 3,
     nextRecordId |-> 0,
     quorumState |-> [isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2],
     replicaLog |-> (r1 :> [endOffset |-> 0, records |-> (0 :> -1 @@ 1 :> -1 @@ 2 :> -1)] @@
                     r2 :> [endOffset |-> 0, records |-> (0 :> -1 @@ 1 :> -1 @@ 2 :> -1)]),
     replicaState |-> (r1 :> [hw |-> 0, isr |-> {}, leader |-> "NONE", leaderEpoch |-> -1] @@
                       r2 :> [hw |-> 0, isr |-> {}, leader |-> "NONE", leaderEpoch |-> -1])],
    \* 5: BecomeLeader r1 epoch 0
    [leaderAndIsrRequests |-> {[isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 0],
                               [isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2],
                               [isr |-> {r1, r2}, leader |-> r2, leaderEpoch |-> 1]},
     nextLeaderEpoch |-> 3,
     nextRecordId |-> 0,
     quorumState |-> [isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2],
     replicaLog |-> (r1 :> [endOffset |-> 0, records |-> (0 :> -1 @@ 1 :> -1 @@ 2 :> -1)] @@
                     r2 :> [endOffset |-> 0, records |-> (0 :> -1 @@ 1 :> -1 @@ 2 :> -1)]),
     replicaState |-> (r1 :> [hw |-> 0, isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 0] @@
                       r2 :> [hw |-> 0, isr |-> {}, leader |-> "NONE", leaderEpoch |-> -1])],
    \* 6: BecomeLeader r2 epoch 1
    [leaderAndIsrRequests |-> {[isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 0],
                               [isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2],
                               [isr |-> {r1, r2}, leader |-> r2, leaderEpoch |-> 1]},
     nextLeaderEpoch |-> 3,
     nextRecordId |-> 0,
     quorumState |-> [isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2],
     replicaLog |-> (r1 :> [endOffset |-> 0, records |-> (0 :> -1 @@ 1 :> -1 @@ 2 :> -1)] @@
                     r2 :> [endOffset |-> 0, records |-> (0 :> -1 @@ 1 :> -1 @@ 2 :> -1)]),
     replicaState |-> (r1 :> [hw |-> 0, isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 0] @@
                       r2 :> [hw |-> 0, isr |-> {r1, r2}, leader |-> r2, leaderEpoch |-> 1])],
    \* 7: LeaderWrite r1 record 0
    [leaderAndIsrRequests |-> {[isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 0],
                               [isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2],
                               [isr |-> {r1, r2}, leader |-> r2, leaderEpoch |-> 1]},
     nextLeaderEpoch |-> 3,
     nextRecordId |-> 1,
     quorumState |-> [isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2],
     replicaLog |-> (r1 :> [endOffset |-> 1, records |-> (0 :> [id |-> 0, epoch |-> 0] @@ 1 :> -1 @@ 2 :> -1)] @@
                     r2 :> [endOffset |-> 0, records |-> (0 :> -1 @@ 1 :> -1 @@ 2 :> -1)]),
     replicaState |-> (r1 :> [hw |-> 0, isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 0] @@
                       r2 :> [hw |-> 0, isr |-> {r1, r2}, leader |-> r2, leaderEpoch |-> 1])],
    \* 8: BecomeLeader r1 epoch 2
    [leaderAndIsrRequests |-> {[isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 0],
                               [isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2],
                               [isr |-> {r1, r2}, leader |-> r2, leaderEpoch |-> 1]},
     nextLeaderEpoch |-> 3,
     nextRecordId |-> 1,
     quorumState |-> [isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2],
     replicaLog |-> (r1 :> [endOffset |-> 1, records |-> (0 :> [id |-> 0, epoch |-> 0] @@ 1 :> -1 @@ 2 :> -1)] @@
                     r2 :> [endOffset |-> 0, records |-> (0 :> -1 @@ 1 :> -1 @@ 2 :> -1)]),
     replicaState |-> (r1 :> [hw |-> 0, isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2] @@
                       r2 :> [hw |-> 0, isr |-> {r1, r2}, leader |-> r2, leaderEpoch |-> 1])],
    \* 9: LeaderWrite r1 record 1
    [leaderAndIsrRequests |-> {[isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 0],
                               [isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2],
                               [isr |-> {r1, r2}, leader |-> r2, leaderEpoch |-> 1]},
     nextLeaderEpoch |-> 3,
     nextRecordId |-> 2,
     quorumState |-> [isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2],
     replicaLog |-> (r1 :> [endOffset |-> 2,
                            records |-> (0 :> [id |-> 0, epoch |-> 0] @@ 1 :> [id |-> 1, epoch |-> 2] @@
                                         2 :> -1)] @@
                     r2 :> [endOffset |-> 0, records |-> (0 :> -1 @@ 1 :> -1 @@ 2 :> -1)]),
     replicaState |-> (r1 :> [hw |-> 0, isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2] @@
                       r2 :> [hw |-> 0, isr |-> {r1, r2}, leader |-> r2, leaderEpoch |-> 1])],
    \* 10: LeaderWrite r2 record 2
    [leaderAndIsrRequests |-> {[isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 0],
                               [isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2],
                               [isr |-> {r1, r2}, leader |-> r2, leaderEpoch |-> 1]},
     nextLeaderEpoch |-> 3,
     nextRecordId |-> 3,
     quorumState |-> [isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2],
     replicaLog |-> (r1 :> [endOffset |-> 2,
                            records |-> (0 :> [id |-> 0, epoch |-> 0] @@ 1 :> [id |-> 1, epoch |-> 2] @@
                                         2 :> -1)] @@
                     r2 :> [endOffset |-> 1, records |-> (0 :> [id |-> 2, epoch |-> 1] @@ 1 :> -1 @@ 2 :> -1)]),
     replicaState |-> (r1 :> [hw |-> 0, isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2] @@
                       r2 :> [hw |-> 0, isr |-> {r1, r2}, leader |-> r2, leaderEpoch |-> 1])],
    \* 11: BecomeFollowerTruncateKip101 r2 of r1 epoch 2 from 1
    [leaderAndIsrRequests |-> {[isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 0],
                               [isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2],
                               [isr |-> {r1, r2}, leader |-> r2, leaderEpoch |-> 1]},
     nextLeaderEpoch |-> 3,
     nextRecordId |-> 3,
     quorumState |-> [isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2],
     replicaLog |-> (r1 :> [endOffset |-> 2,
                            records |-> (0 :> [id |-> 0, epoch |-> 0] @@ 1 :> [id |-> 1, epoch |-> 2] @@
                                         2 :> -1)] @@
                     r2 :> [endOffset |-> 1, records |-> (0 :> [id |-> 2, epoch |-> 1] @@ 1 :> -1 @@ 2 :> -1)]),
     replicaState |-> (r1 :> [hw |-> 0, isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2] @@
                       r2 :> [hw |-> 0, isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2])],
    \* 12: LeaderIncHighWatermark r1 to 1
    [leaderAndIsrRequests |-> {[isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 0],
                               [isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2],
                               [isr |-> {r1, r2}, leader |-> r2, leaderEpoch |-> 1]},
     nextLeaderEpoch |-> 3,
     nextRecordId |-> 3,
     quorumState |-> [isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2],
     replicaLog |-> (r1 :> [endOffset |-> 2,
                            records |-> (0 :> [id |-> 0, epoch |-> 0] @@ 1 :> [id |-> 1, epoch |-> 2] @@
                                         2 :> -1)] @@
                     r2 :> [endOffset |-> 1, records |-> (0 :> [id |-> 2, epoch |-> 1] @@ 1 :> -1 @@ 2 :> -1)]),
     replicaState |-> (r1 :> [hw |-> 1, isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2] @@
                       r2 :> [hw |-> 0, isr |-> {r1, r2}, leader |-> r1, leaderEpoch |-> 2])]
  >>

NextOfKip101 ==  \* Next, which is LOCAL there
    \/ ControllerElectLeader
    \/ ControllerShrinkIsr
    \/ BecomeLeader
    \/ LeaderExpandIsr
    \/ LeaderShrinkIsr
    \/ LeaderWrite
    \/ LeaderIncHighWatermark
    \/ BecomeFollowerTruncateKip101
    \/ FollowerReplicate

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
       /\ NextOfKip101
       /\ TraceState'
    \/ /\ trace_step = TraceLength
       /\ UNCHANGED <<trace_step, leaderAndIsrRequests, nextLeaderEpoch, nextRecordId, quorumState,
                      replicaLog, replicaState>>
==============================================================================
LostRecord.cfg:

CONSTANTS
    r1 = r1
    r2 = r2
    Replicas = {r1, r2}
    LogSize = 3
    MaxRecords = 3
    MaxLeaderEpoch = 2
INIT TraceInit
NEXT TraceNext
INVARIANTS TraceBegins WeakIsr
CHECK_DEADLOCK TRUE
