---------------------------- MODULE WipedMetadata ----------------------------
EXTENDS Integers, TLC, kafka_transactions

\* A run of transactions/diary-02, brokers=2 clients=2 elections=1 topic-partitions=1 transactional-ids=2 txn-log-partitions=2
\* violates CommittedTidKnown: b1 leads p1, whose log has tid1 with producer id 1, but has no metadata of tid1
\* kafka_transactions: https://github.com/Vanlightly/kafka-tlaplus, transactions/diary/02_AddPartitionsToTxn/tlaplus

(* To have TLC confirm it, put this file and its configuration beside the original module, and run

       java -cp tla2tools.jar tlc2.TLC -config WipedMetadata.cfg WipedMetadata

   What TLC may say, and what it means:
   - "Invariant CommittedTidKnown is violated", after 5 states: confirmed.
   - "No error has been found": a behaviour of kafka_transactions, but one that does not violate CommittedTidKnown.
   - "Invariant TraceBegins is violated": the first state of Trace is no initial state of kafka_transactions.
   - "Deadlock reached": no step of kafka_transactions leads from the last state shown to the next one of Trace.
*)

CONSTANTS p1, p2, tp1, b1, b2, c1, c2, tid1, tid2

VARIABLE trace_step  \* the number of the state in Trace

TraceLength == 5

\* The states of the run, each below the action that leads to it.
Trace == <<
    \* 1: Initial predicate
    [aux_coord_ctr |-> 0,
     client |-> (c1 :> [state |-> Ready, tc |-> None, tid |-> None, pid |-> -1, epoch |-> -1,
                        last_state |-> None, last_error |-> None, pending_partitions |-> {},
                        partitions |-> {}] @@
                 c2 :> [state |-> Ready, tc |-> None, tid |-> None, pid |-> -1, epoch |-> -1,
                        last_state |-> None, last_error |-> None, pending_partitions |-> {},
                        partitions |-> {}]),
     messages |-> {},
     messages_discard |-> {},
     pid_source |-> 0,
     t_to_p_mapping |-> (tid1 :> p1 @@ tid2 :> p2),
     tc_log |-> (b1 :> (p1 :> <<>> @@ p2 :> <<>>) @@ b2 :> (p1 :> <<>> @@ p2 :> <<>>)),
     tc_log_hwm |-> (b1 :> (p1 :> 0 @@ p2 :> 0) @@ b2 :> (p1 :> 0 @@ p2 :> 0)),
     tc_log_metadata |-> (b1 :> (p1 :> [cepoch |-> 1, leader |-> b1] @@ p2 :> [cepoch |-> 1, leader |-> b2]) @@
                          b2 :> (p1 :> [cepoch |-> 1, leader |-> b1] @@ p2 :> [cepoch |-> 1, leader |-> b2])),
     tc_tid_metadata |-> (b1 :> (tid1 :> None @@ tid2 :> None) @@ b2 :> (tid1 :> None @@ tid2 :> None)),
     tc_tid_transition |-> (b1 :> (tid1 :> None @@ tid2 :> None) @@ b2 :> (tid1 :> None @@ tid2 :> None)),
     topic_partitions |-> (tp1 :> <<>>),
     txn_log_epoch |-> (p1 :> 1 @@ p2 :> 1),
     txn_log_leader |-> (p1 :> b1 @@ p2 :> b2)],
    \* 2: SendInitPidRequest(c1) tid1
    [aux_coord_ctr |-> 0,
     client |-> (c1 :> [state |-> SentInitPidRequest, tc |-> None, tid |-> tid1, pid |-> -1, epoch |-> -1,
                        last_state |-> None, last_error |-> None, pending_partitions |-> {},
                        partitions |-> {}] @@
                 c2 :> [state |-> Ready, tc |-> None, tid |-> None, pid |-> -1, epoch |-> -1,
                        last_state |-> None, last_error |-> None, pending_partitions |-> {},
                        partitions |-> {}]),
     messages |-> {[type |-> InitPidRequest, source |-> c1, dest |-> b1, tid |-> tid1]},
     messages_discard |-> {},
     pid_source |-> 0,
     t_to_p_mapping |-> (tid1 :> p1 @@ tid2 :> p2),
     tc_log |-> (b1 :> (p1 :> <<>> @@ p2 :> <<>>) @@ b2 :> (p1 :> <<>> @@ p2 :> <<>>)),
     tc_log_hwm |-> (b1 :> (p1 :> 0 @@ p2 :> 0) @@ b2 :> (p1 :> 0 @@ p2 :> 0)),
     tc_log_metadata |-> (b1 :> (p1 :> [cepoch |-> 1, leader |-> b1] @@ p2 :> [cepoch |-> 1, leader |-> b2]) @@
                          b2 :> (p1 :> [cepoch |-> 1, leader |-> b1] @@ p2 :> [cepoch |-> 1, leader |-> b2])),
     tc_tid_metadata |-> (b1 :> (tid1 :> None @@ tid2 :> None) @@ b2 :> (tid1 :> None @@ tid2 :> None)),
     tc_tid_transition |-> (b1 :> (tid1 :> None @@ tid2 :> None) @@ b2 :> (tid1 :> None @@ tid2 :> None)),
     topic_partitions |-> (tp1 :> <<>>),
     txn_log_epoch |-> (p1 :> 1 @@ p2 :> 1),
     txn_log_leader |-> (p1 :> b1 @@ p2 :> b2)],
    \* 3: ReceiveInitPidRequest(b1,c1) InitPidRequest c1->b1 tid=tid1
    [aux_coord_ctr |-> 0,
     client |-> (c1 :> [state |-> SentInitPidRequest, tc |-> None, tid |-> tid1, pid |-> -1, epoch |-> -1,
                        last_state |-> None, last_error |-> None, pending_partitions |-> {},
                        partitions |-> {}] @@
                 c2 :> [state |-> Ready, tc |-> None, tid |-> None, pid |-> -1, epoch |-> -1,
                        last_state |-> None, last_error |-> None, pending_partitions |-> {},
                        partitions |-> {}]),
     messages |-> {},
     messages_discard |-> {[type |-> InitPidRequest, source |-> c1, dest |-> b1, tid |-> tid1]},
     pid_source |-> 1,
     t_to_p_mapping |-> (tid1 :> p1 @@ tid2 :> p2),
     tc_log |-> (b1 :> (p1 :> <<[tid |-> tid1,
                                 transition |-> [pid |-> 1, pepoch |-> 0, last_pepoch |-> -1, state |-> Empty,
                                                 partitions |-> {}],
                                 callback |-> [type |-> InitPidRequest,
                                               response |-> [type |-> InitPidResponse, source |-> b1,
                                                             dest |-> c1, code |-> OK, pid |-> 1,
                                                             pepoch |-> 0],
                                               err |-> [type |-> InitPidResponse, source |-> b1, dest |-> c1,
                                                        code |-> NotCoordinator, pid |-> -1, pepoch |-> -1]]]>> @@
                        p2 :> <<>>) @@
                 b2 :> (p1 :> <<>> @@ p2 :> <<>>)),
     tc_log_hwm |-> (b1 :> (p1 :> 0 @@ p2 :> 0) @@ b2 :> (p1 :> 0 @@ p2 :> 0)),
     tc_log_metadata |-> (b1 :> (p1 :> [cepoch |-> 1, leader |-> b1] @@ p2 :> [cepoch |-> 1, leader |-> b2]) @@
                          b2 :> (p1 :> [cepoch |-> 1, leader |-> b1] @@ p2 :> [cepoch |-> 1, leader |-> b2])),
     tc_tid_metadata |-> (b1 :> (tid1 :> [pid |-> 1, pepoch |-> -1, last_pepoch |-> -1, state |-> Empty,
                                          partitions |-> {}, last_pid |-> -1] @@
                                 tid2 :> None) @@
                          b2 :> (tid1 :> None @@ tid2 :> None)),
     tc_tid_transition |-> (b1 :> (tid1 :> [pid |-> 1, pepoch |-> 0, last_pepoch |-> -1, state |-> Empty,
                                            partitions |-> {}] @@
                                   tid2 :> None) @@
                            b2 :> (tid1 :> None @@ tid2 :> None)),
     topic_partitions |-> (tp1 :> <<>>),
     txn_log_epoch |-> (p1 :> 1 @@ p2 :> 1),
     txn_log_leader |-> (p1 :> b1 @@ p2 :> b2)],
    \* 4: CommitTxnLogAppend(b1,p1)
    [aux_coord_ctr |-> 0,
     client |-> (c1 :> [state |-> SentInitPidRequest, tc |-> None, tid |-> tid1, pid |-> -1, epoch |-> -1,
                        last_state |-> None, last_error |-> None, pending_partitions |-> {},
                        partitions |-> {}] @@
                 c2 :> [state |-> Ready, tc |-> None, tid |-> None, pid |-> -1, epoch |-> -1,
                        last_state |-> None, last_error |-> None, pending_partitions |-> {},
                        partitions |-> {}]),
     messages |-> {[type |-> InitPidResponse, source |-> b1, dest |-> c1, code |-> OK, pid |-> 1,
                    pepoch |-> 0]},
     messages_discard |-> {[type |-> InitPidRequest, source |-> c1, dest |-> b1, tid |-> tid1]},
     pid_source |-> 1,
     t_to_p_mapping |-> (tid1 :> p1 @@ tid2 :> p2),
     tc_log |-> (b1 :> (p1 :> <<[tid |-> tid1,
                                 transition |-> [pid |-> 1, pepoch |-> 0, last_pepoch |-> -1, state |-> Empty,
                                                 partitions |-> {}],
                                 callback |-> [type |-> InitPidRequest,
                                               response |-> [type |-> InitPidResponse, source |-> b1,
                                                             dest |-> c1, code |-> OK, pid |-> 1,
                                                             pepoch |-> 0],
                                               err |-> [type |-> InitPidResponse, source |-> b1, dest |-> c1,
                                                        code |-> NotCoordinator, pid |-> -1, pepoch |-> -1]]]>> @@
                        p2 :> <<>>) @@
                 b2 :> (p1 :> <<[tid |-> tid1,
                                 transition |-> [pid |-> 1, pepoch |-> 0, last_pepoch |-> -1, state |-> Empty,
                                                 partitions |-> {}],
                                 callback |-> [type |-> InitPidRequest,
                                               response |-> [type |-> InitPidResponse, source |-> b1,
                                                             dest |-> c1, code |-> OK, pid |-> 1,
                                                             pepoch |-> 0],
                                               err |-> [type |-> InitPidResponse, source |-> b1, dest |-> c1,
                                                        code |-> NotCoordinator, pid |-> -1, pepoch |-> -1]]]>> @@
                        p2 :> <<>>)),
     tc_log_hwm |-> (b1 :> (p1 :> 1 @@ p2 :> 0) @@ b2 :> (p1 :> 1 @@ p2 :> 0)),
     tc_log_metadata |-> (b1 :> (p1 :> [cepoch |-> 1, leader |-> b1] @@ p2 :> [cepoch |-> 1, leader |-> b2]) @@
                          b2 :> (p1 :> [cepoch |-> 1, leader |-> b1] @@ p2 :> [cepoch |-> 1, leader |-> b2])),
     tc_tid_metadata |-> (b1 :> (tid1 :> [pid |-> 1, pepoch |-> 0, last_pepoch |-> -1, state |-> Empty,
                                          partitions |-> {}] @@
                                 tid2 :> None) @@
                          b2 :> (tid1 :> None @@ tid2 :> None)),
     tc_tid_transition |-> (b1 :> (tid1 :> None @@ tid2 :> None) @@ b2 :> (tid1 :> None @@ tid2 :> None)),
     topic_partitions |-> (tp1 :> <<>>),
     txn_log_epoch |-> (p1 :> 1 @@ p2 :> 1),
     txn_log_leader |-> (p1 :> b1 @@ p2 :> b2)],
    \* 5: ElectLeader(b1,p2)
    [aux_coord_ctr |-> 1,
     client |-> (c1 :> [state |-> SentInitPidRequest, tc |-> None, tid |-> tid1, pid |-> -1, epoch |-> -1,
                        last_state |-> None, last_error |-> None, pending_partitions |-> {},
                        partitions |-> {}] @@
                 c2 :> [state |-> Ready, tc |-> None, tid |-> None, pid |-> -1, epoch |-> -1,
                        last_state |-> None, last_error |-> None, pending_partitions |-> {},
                        partitions |-> {}]),
     messages |-> {[type |-> InitPidResponse, source |-> b1, dest |-> c1, code |-> OK, pid |-> 1,
                    pepoch |-> 0]},
     messages_discard |-> {[type |-> InitPidRequest, source |-> c1, dest |-> b1, tid |-> tid1]},
     pid_source |-> 1,
     t_to_p_mapping |-> (tid1 :> p1 @@ tid2 :> p2),
     tc_log |-> (b1 :> (p1 :> <<[tid |-> tid1,
                                 transition |-> [pid |-> 1, pepoch |-> 0, last_pepoch |-> -1, state |-> Empty,
                                                 partitions |-> {}],
                                 callback |-> [type |-> InitPidRequest,
                                               response |-> [type |-> InitPidResponse, source |-> b1,
                                                             dest |-> c1, code |-> OK, pid |-> 1,
                                                             pepoch |-> 0],
                                               err |-> [type |-> InitPidResponse, source |-> b1, dest |-> c1,
                                                        code |-> NotCoordinator, pid |-> -1, pepoch |-> -1]]]>> @@
                        p2 :> <<>>) @@
                 b2 :> (p1 :> <<[tid |-> tid1,
                                 transition |-> [pid |-> 1, pepoch |-> 0, last_pepoch |-> -1, state |-> Empty,
                                                 partitions |-> {}],
                                 callback |-> [type |-> InitPidRequest,
                                               response |-> [type |-> InitPidResponse, source |-> b1,
                                                             dest |-> c1, code |-> OK, pid |-> 1,
                                                             pepoch |-> 0],
                                               err |-> [type |-> InitPidResponse, source |-> b1, dest |-> c1,
                                                        code |-> NotCoordinator, pid |-> -1, pepoch |-> -1]]]>> @@
                        p2 :> <<>>)),
     tc_log_hwm |-> (b1 :> (p1 :> 1 @@ p2 :> 0) @@ b2 :> (p1 :> 1 @@ p2 :> 0)),
     tc_log_metadata |-> (b1 :> (p1 :> [cepoch |-> 1, leader |-> b1] @@ p2 :> [cepoch |-> 2, leader |-> b1]) @@
                          b2 :> (p1 :> [cepoch |-> 1, leader |-> b1] @@ p2 :> [cepoch |-> 1, leader |-> b2])),
     tc_tid_metadata |-> (b1 :> (tid1 :> None @@ tid2 :> None) @@ b2 :> (tid1 :> None @@ tid2 :> None)),
     tc_tid_transition |-> (b1 :> (tid1 :> None @@ tid2 :> None) @@ b2 :> (tid1 :> None @@ tid2 :> None)),
     topic_partitions |-> (tp1 :> <<>>),
     txn_log_epoch |-> (p1 :> 1 @@ p2 :> 2),
     txn_log_leader |-> (p1 :> b1 @@ p2 :> b1)]
  >>

\* Init CHOOSEs, and TLA+ leaves open what. The configuration lets it choose what the run did.
TraceBalancedTidToPartSpread(mapping) ==
    /\ mapping = Trace[1].t_to_p_mapping
    /\ LET held == {Cardinality({tid \in TransactionIds : mapping[tid] = p}) : p \in TxnLogPartitions}
       IN \A most, least \in held : most - least <= 1

TraceBalancedPartitionLeadership(part_leader) ==
    /\ part_leader = Trace[1].txn_log_leader
    /\ LET led == {Cardinality({p \in TxnLogPartitions : part_leader[p] = b}) : b \in Brokers}
       IN \A most, least \in led : most - least <= 1

CommittedTidKnown ==
    \A p \in TxnLogPartitions, b \in Brokers :
        txn_log_leader[p] = b =>
            \A n \in 1..tc_log_hwm[b][p] :
                LET entry == tc_log[b][p][n]
                    later == {m \in n + 1..tc_log_hwm[b][p] : tc_log[b][p][m].tid = entry.tid}
                IN later = {} =>
                    /\ tc_tid_metadata[b][entry.tid] # None
                    /\ tc_tid_metadata[b][entry.tid].pid = entry.transition.pid

TraceState ==
    /\ aux_coord_ctr = Trace[trace_step].aux_coord_ctr
    /\ client = Trace[trace_step].client
    /\ messages = Trace[trace_step].messages
    /\ messages_discard = Trace[trace_step].messages_discard
    /\ pid_source = Trace[trace_step].pid_source
    /\ t_to_p_mapping = Trace[trace_step].t_to_p_mapping
    /\ tc_log = Trace[trace_step].tc_log
    /\ tc_log_hwm = Trace[trace_step].tc_log_hwm
    /\ tc_log_metadata = Trace[trace_step].tc_log_metadata
    /\ tc_tid_metadata = Trace[trace_step].tc_tid_metadata
    /\ tc_tid_transition = Trace[trace_step].tc_tid_transition
    /\ topic_partitions = Trace[trace_step].topic_partitions
    /\ txn_log_epoch = Trace[trace_step].txn_log_epoch
    /\ txn_log_leader = Trace[trace_step].txn_log_leader

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
       /\ UNCHANGED <<trace_step, aux_coord_ctr, client, messages, messages_discard, pid_source,
                      t_to_p_mapping, tc_log, tc_log_hwm, tc_log_metadata, tc_tid_metadata, tc_tid_transition,
                      topic_partitions, txn_log_epoch, txn_log_leader>>
==============================================================================
WipedMetadata.cfg:

CONSTANTS
    p1 = p1
    p2 = p2
    tp1 = tp1
    b1 = b1
    b2 = b2
    c1 = c1
    c2 = c2
    tid1 = tid1
    tid2 = tid2
    InitPidRequest = InitPidRequest
    InitPidResponse = InitPidResponse
    AddPartitionsToTxnRequest = AddPartitionsToTxnRequest
    AddPartitionsToTxnResponse = AddPartitionsToTxnResponse
    Ready = Ready
    SentInitPidRequest = SentInitPidRequest
    HasPid = HasPid
    BegunTxn = BegunTxn
    Terminated = Terminated
    Empty = Empty
    PrepareCommit = PrepareCommit
    PrepareAbort = PrepareAbort
    CompleteAbort = CompleteAbort
    CompleteCommit = CompleteCommit
    Ongoing = Ongoing
    PrepareEpochFence = PrepareEpochFence
    Dead = Dead
    Abort = Abort
    Commit = Commit
    None = None
    IllegalState = IllegalState
    OK = OK
    NotCoordinator = NotCoordinator
    ConcurrentTransactions = ConcurrentTransactions
    ProducerFenced = ProducerFenced
    InvalidTransition = InvalidTransition
    NotSupportedYet = NotSupportedYet
    InvalidProducerIdMapping = InvalidProducerIdMapping
    TxnLogPartitions = {p1, p2}
    TopicPartitions = {tp1}
    Brokers = {b1, b2}
    Clients = {c1, c2}
    TransactionIds = {tid1, tid2}
    MaxTxnLogLeaderElections = 1
    BalancedTidToPartSpread <- TraceBalancedTidToPartSpread
    BalancedPartitionLeadership <- TraceBalancedPartitionLeadership
INIT TraceInit
NEXT TraceNext
INVARIANTS TraceBegins CommittedTidKnown
CHECK_DEADLOCK TRUE
