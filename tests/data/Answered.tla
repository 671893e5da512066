------------------------------ MODULE Answered -------------------------------
EXTENDS Integers, TLC, kafka_transactions

\* A run of transactions/diary-01, brokers=1 clients=1 init=published transactional-ids=1 txn-log-partitions=1
\* nothing is violated
\* kafka_transactions: https://github.com/Vanlightly/kafka-tlaplus, transactions/diary/01_InitPidRequest/tlaplus, commit 9f1a1c88

(* To have TLC confirm it, put this file and its configuration beside the original module, and run

       java -cp tla2tools.jar tlc2.TLC -config Answered.cfg Answered

   What TLC may say, and what it means:
   - "No error has been found": confirmed, a behaviour of kafka_transactions.
   - "Invariant TraceBegins is violated": the first state of Trace is no initial state of kafka_transactions.
   - "Deadlock reached": no step of kafka_transactions leads from the last state shown to the next one of Trace.
*)

CONSTANTS p1, b1, c1, tid1

VARIABLE trace_step  \* the number of the state in Trace

TraceLength == 5

\* The states of the run, each below the action that leads to it.
Trace == <<
    \* 1: Initial predicate
    [client |-> (c1 :> [state |-> Ready, tid |-> None, pid |-> -1, epoch |-> -1, last_state |-> None,
                        last_error |-> None]),
     messages |-> {},
     messages_discard |-> {},
     pid_source |-> 0,
     t_to_p_mapping |-> (tid1 :> p1),
     tc_part_metadata |-> (b1 :> (p1 :> [cepoch |-> 1])),
     tc_txn_metadata |-> (b1 :> (tid1 :> None)),
     tc_txn_transition |-> (b1 :> (tid1 :> None)),
     txn_log |-> (p1 :> <<>>),
     txn_log_hwm |-> (p1 :> 0)],
    \* 2: SendInitPidRequest(c1,b1) tid1
    [client |-> (c1 :> [state |-> SentInitPidRequest, tid |-> tid1, pid |-> -1, epoch |-> -1,
                        last_state |-> None, last_error |-> None]),
     messages |-> {[type |-> InitPidRequest, source |-> c1, dest |-> b1, tid |-> tid1]},
     messages_discard |-> {},
     pid_source |-> 0,
     t_to_p_mapping |-> (tid1 :> p1),
     tc_part_metadata |-> (b1 :> (p1 :> [cepoch |-> 1])),
     tc_txn_metadata |-> (b1 :> (tid1 :> None)),
     tc_txn_transition |-> (b1 :> (tid1 :> None)),
     txn_log |-> (p1 :> <<>>),
     txn_log_hwm |-> (p1 :> 0)],
    \* 3: ReceiveInitPidRequest(b1,c1) InitPidRequest c1->b1 tid=tid1
    [client |-> (c1 :> [state |-> SentInitPidRequest, tid |-> tid1, pid |-> -1, epoch |-> -1,
                        last_state |-> None, last_error |-> None]),
     messages |-> {},
     messages_discard |-> {[type |-> InitPidRequest, source |-> c1, dest |-> b1, tid |-> tid1]},
     pid_source |-> 1,
     t_to_p_mapping |-> (tid1 :> p1),
     tc_part_metadata |-> (b1 :> (p1 :> [cepoch |-> 1])),
     tc_txn_metadata |-> (b1 :> (tid1 :> [pid |-> 1, pepoch |-> -1, last_pepoch |-> -1, state |-> Empty,
                                          partitions |-> {}, last_pid |-> -1])),
     tc_txn_transition |-> (b1 :> (tid1 :> [pid |-> 1, pepoch |-> 0, last_pepoch |-> -1, state |-> Empty,
                                            partitions |-> {}, last_pid |-> 1])),
     txn_log |-> (p1 :> <<[client_id |-> c1, tid |-> tid1,
                           transition |-> [pid |-> 1, pepoch |-> 0, last_pepoch |-> -1, state |-> Empty,
                                           partitions |-> {}, last_pid |-> 1]]>>),
     txn_log_hwm |-> (p1 :> 0)],
    \* 4: CompleteInitPidRequest(b1,p1)
    [client |-> (c1 :> [state |-> SentInitPidRequest, tid |-> tid1, pid |-> -1, epoch |-> -1,
                        last_state |-> None, last_error |-> None]),
     messages |-> {[type |-> InitPidResponse, source |-> b1, dest |-> c1, code |-> OK, pid |-> 1,
                    pepoch |-> 0]},
     messages_discard |-> {[type |-> InitPidRequest, source |-> c1, dest |-> b1, tid |-> tid1]},
     pid_source |-> 1,
     t_to_p_mapping |-> (tid1 :> p1),
     tc_part_metadata |-> (b1 :> (p1 :> [cepoch |-> 1])),
     tc_txn_metadata |-> (b1 :> (tid1 :> [pid |-> 1, pepoch |-> 0, last_pepoch |-> -1, state |-> Empty,
                                          partitions |-> {}, last_pid |-> 1])),
     tc_txn_transition |-> (b1 :> (tid1 :> None)),
     txn_log |-> (p1 :> <<[client_id |-> c1, tid |-> tid1,
                           transition |-> [pid |-> 1, pepoch |-> 0, last_pepoch |-> -1, state |-> Empty,
                                           partitions |-> {}, last_pid |-> 1]]>>),
     txn_log_hwm |-> (p1 :> 1)],
    \* 5: ReceiveInitPidResponse(c1) InitPidResponse b1->c1 code=OK pid=1 pepoch=0
    [client |-> (c1 :> [state |-> HasPid, tid |-> tid1, pid |-> 1, epoch |-> 0, last_state |-> None,
                        last_error |-> None]),
     messages |-> {},
     messages_discard |-> {[type |-> InitPidRequest, source |-> c1, dest |-> b1, tid |-> tid1],
                           [type |-> InitPidResponse, source |-> b1, dest |-> c1, code |-> OK, pid |-> 1,
                            pepoch |-> 0]},
     pid_source |-> 1,
     t_to_p_mapping |-> (tid1 :> p1),
     tc_part_metadata |-> (b1 :> (p1 :> [cepoch |-> 1])),
     tc_txn_metadata |-> (b1 :> (tid1 :> [pid |-> 1, pepoch |-> 0, last_pepoch |-> -1, state |-> Empty,
                                          partitions |-> {}, last_pid |-> 1])),
     tc_txn_transition |-> (b1 :> (tid1 :> None)),
     txn_log |-> (p1 :> <<[client_id |-> c1, tid |-> tid1,
                           transition |-> [pid |-> 1, pepoch |-> 0, last_pepoch |-> -1, state |-> Empty,
                                           partitions |-> {}, last_pid |-> 1]]>>),
     txn_log_hwm |-> (p1 :> 1)]
  >>

TraceState ==
    /\ client = Trace[trace_step].client
    /\ messages = Trace[trace_step].messages
    /\ messages_discard = Trace[trace_step].messages_discard
    /\ pid_source = Trace[trace_step].pid_source
    /\ t_to_p_mapping = Trace[trace_step].t_to_p_mapping
    /\ tc_part_metadata = Trace[trace_step].tc_part_metadata
    /\ tc_txn_metadata = Trace[trace_step].tc_txn_metadata
    /\ tc_txn_transition = Trace[trace_step].tc_txn_transition
    /\ txn_log = Trace[trace_step].txn_log
    /\ txn_log_hwm = Trace[trace_step].txn_log_hwm

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
       /\ UNCHANGED <<trace_step, client, messages, messages_discard, pid_source, t_to_p_mapping,
                      tc_part_metadata, tc_txn_metadata, tc_txn_transition, txn_log, txn_log_hwm>>
==============================================================================
Answered.cfg:

CONSTANTS
    p1 = p1
    b1 = b1
    c1 = c1
    tid1 = tid1
    InitPidRequest = InitPidRequest
    InitPidResponse = InitPidResponse
    Ready = Ready
    SentInitPidRequest = SentInitPidRequest
    HasPid = HasPid
    Empty = Empty
    PrepareCommit = PrepareCommit
    PrepareAbort = PrepareAbort
    CompleteAbort = CompleteAbort
    CompleteCommit = CompleteCommit
    Ongoing = Ongoing
    PrepareEpochFence = PrepareEpochFence
    Dead = Dead
    Begin = Begin
    Abort = Abort
    Commit = Commit
    None = None
    IllegalState = IllegalState
    OK = OK
    NotCoordinatorForTransactionalId = NotCoordinatorForTransactionalId
    ConcurrentTransactions = ConcurrentTransactions
    ProducerFenced = ProducerFenced
    InvalidTxnState = InvalidTxnState
    InvalidTransition = InvalidTransition
    NotSupportedYet = NotSupportedYet
    TxnLogPartitions = {p1}
    Brokers = {b1}
    Clients = {c1}
    TransactionIds = {tid1}
INIT TraceInit
NEXT TraceNext
INVARIANTS TraceBegins
CHECK_DEADLOCK TRUE
