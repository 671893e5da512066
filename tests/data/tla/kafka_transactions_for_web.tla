SendInitPidRequest(c) ==
/\ client[c].state = Ready
/\ \E tid \in TransactionIds :
\* If this is a retry, then reuse the same tid, else use whichever.
/\ IF client[c].tid # None THEN tid = client[c].tid ELSE TRUE
/\ Send([type |-> InitPidRequest,
tid |-> tid,
dest |-> FindCoordinator(tid),
source |-> c])
/\ client' = [client EXCEPT ![c].tid = tid,
![c].state = SentInitPidRequest]
/\ UNCHANGED << tc_tid_vars, tc_log_vars, txn_log_vars, topic_vars, aux_vars >>

ReceiveInitPidRequest(b, c) ==
\E msg \in messages :
/\ msg.dest = b
/\ msg.source = c
/\ msg.type = InitPidRequest
/\ LET md_result == GetOrCreateTxnMetadata(b, msg.tid)
trans_result == GetInitPidTransition(b, msg.tid,
md_result.txn_metadata)
partition == PartitionFor(msg.tid)
IN
IF md_result.code # OK
THEN /\ Reply(msg, MakeErrorPidResponse(b, c, md_result.code))
/\ UNCHANGED <<pid_source, tc_tid_vars, tc_log_vars>>
ELSE /\ pid_source' = md_result.txn_metadata.pid
/\ tc_tid_metadata' = [tc_tid_metadata EXCEPT ![b][msg.tid] = md_result.txn_metadata]
/\ CASE
\* CASE 1 - Can't make a transition right now.
trans_result.code # OK ->
/\ Reply(msg, MakeErrorPidResponse(b, c, trans_result.code))
/\ UNCHANGED << tc_tid_transition, tc_log >>
\* CASE 2 - Need to fence the current producer and abort its txn
[] trans_result.transition.state = PrepareEpochFence ->
EndTransaction(msg, b, c,
md_result.txn_metadata,
trans_result.transition,
partition,
Abort, FALSE)
\* CASE 3 - All ok, write the transition to the local txn log partition
[] OTHER ->
/\ Discard(msg) \* We'll reply once the transition is complete
/\ AppendTxnLogEntry(b, partition, msg.tid, tc_log,
trans_result.transition,
[type |-> InitPidRequest,
response |-> MakePidResponse(b, c, OK,
trans_result.transition.pid,
trans_result.transition.pepoch),
err |-> MakeErrorPidResponse(b, c, NotCoordinator)])
/\ UNCHANGED << client, tc_log_hwm, tc_log_metadata, txn_log_vars,
topic_vars, t_to_p_mapping, aux_coord_ctr >>

ReceiveInitPidResponse(c, b) ==
/\ client[c].state = SentInitPidRequest
/\ \E msg \in messages :
/\ msg.dest = c
/\ msg.source = b
/\ msg.type = InitPidResponse
/\ IF msg.code = OK
THEN client' = [client EXCEPT ![c].state = HasPid,
![c].tc = msg.source,
![c].pid = msg.pid,
![c].epoch = msg.pepoch]
ELSE client' = [client EXCEPT ![c].state = Ready,
![c].last_state = client[c].state,
![c].last_error = msg.code]
/\ Discard(msg)
/\ UNCHANGED << tc_tid_vars, tc_log_vars, txn_log_vars, topic_vars, aux_vars >>

SendAddPartitionsToTxnRequest(c) ==
/\ client[c].state \in { HasPid, BegunTxn }
/\ client[c].pending_partitions = {}
/\ \E p \in TopicPartitions :
/\ p \notin client[c].partitions
/\ Send([type |-> AddPartitionsToTxnRequest,
tid |-> client[c].tid,
pid |-> client[c].pid,
pepoch |-> client[c].epoch,
partitions |-> {p}, \* one partition for now
dest |-> client[c].tc,
source |-> c])
/\ client' = [client EXCEPT ![c].pending_partitions = {p},
![c].state = BegunTxn]
/\ UNCHANGED << tc_tid_vars, tc_log_vars, txn_log_vars, topic_vars, aux_vars >>

ReceiveAddPartitionsToTxnRequest(b, c) ==
\E msg \in messages :
/\ msg.dest = b
/\ msg.source = c
/\ msg.type = AddPartitionsToTxnRequest
/\ LET md_result == GetTxnMetadata(b, msg.tid)
trans_result == GetAddPartitionsTransition(b, msg.tid,
md_result.txn_metadata,
msg.partitions)
partition == PartitionFor(msg.tid)
IN
CASE md_result.code = None ->
ReplyWithError(msg, b, c, InvalidProducerIdMapping)
[] md_result.code = NotCoordinator ->
ReplyWithError(msg, b, c, NotCoordinator)
[] msg.pid # md_result.txn_metadata.pid ->
ReplyWithError(msg, b, c, InvalidProducerIdMapping)
[] msg.pepoch # md_result.txn_metadata.pepoch ->
ReplyWithError(msg, b, c, ProducerFenced)
[] tc_tid_transition[b][msg.tid] # None ->
ReplyWithError(msg, b, c, ConcurrentTransactions)
[] md_result.txn_metadata.state \in {PrepareCommit, PrepareAbort} ->
ReplyWithError(msg, b, c, ConcurrentTransactions)
[] trans_result.code # OK ->
ReplyWithError(msg, b, c, trans_result.code)
[] OTHER ->
/\ Discard(msg) \* We'll reply once the transition is complete
/\ AppendTxnLogEntry(b, partition, msg.tid, tc_log,
trans_result.transition,
[type |-> AddPartitionsToTxnRequest,
response |-> MakeAddPartsResponse(b, c, OK, trans_result.transition.partitions),
err |-> MakeAddPartsResponse(b, c, NotCoordinator, {})])
/\ UNCHANGED <<tc_tid_metadata, tc_log_hwm, tc_log_metadata, txn_log_vars,
topic_vars, client, aux_vars>>

ReceiveAddPartitionsToTxnResponse(c, b) ==
/\ client[c].state = BegunTxn
/\ \E msg \in messages :
/\ msg.dest = c
/\ msg.source = b
/\ msg.type = AddPartitionsToTxnResponse
/\ CASE msg.code = OK ->
client' = [client EXCEPT ![c].pending_partitions = @ \ msg.partitions,
![c].partitions = @ \union msg.partitions]
[] msg.code \in {ConcurrentTransactions, NotCoordinator} ->
\* Retriable error, so may be try again
client' = [client EXCEPT ![c].pending_partitions = {},
![c].last_state = client[c].state,
![c].last_error = msg.code,
![c].tc = IF msg.code = NotCoordinator
THEN FindCoordinator(client[c].tid)
ELSE client[c].tc]
[] OTHER ->
\* Some non-retriable error such as ProducerFenced. Go to the
\* Terminated state to prevent an infinite battle (and infinite
\* state space) with another client.
client' = [client EXCEPT ![c].state = Terminated,
![c].last_state = client[c].state,
![c].last_error = msg.code,
![c].pending_partitions = {},
![c].partitions = {}]
/\ Discard(msg)
/\ UNCHANGED << tc_tid_vars, tc_log_vars, txn_log_vars, topic_vars, aux_vars >>

CommitTxnLogAppend(b, p) ==
/\ tc_log_hwm[b][p] < Len(tc_log[b][p])
/\ LET next_offset == tc_log_hwm[b][p] + 1
entry == tc_log[b][p][next_offset]
log_after_rep == LogAfterReplication(b, p, entry)
IN /\ CanCommit(b, p)
/\ AdvanceLogHwm(b, p, next_offset)
/\ SetTxnMetadata(b, entry.tid, entry.transition)
/\ CASE entry.callback.type \in {PrepareAbort, PrepareCommit } ->
HandlePrepareAbortOrCommit(b, p, log_after_rep, entry)
[] entry.callback.type \in {CompleteAbort, CompleteCommit } ->
HandleCompleteAbortOrCommit(b, log_after_rep, entry)
[] entry.callback.type = InitPidRequest ->
HandleInitPid(b, log_after_rep, entry)
[] entry.callback.type = AddPartitionsToTxnRequest ->
HandleAddPartitions(b, p, log_after_rep, entry)
[] OTHER -> SetIllegalState
/\ UNCHANGED << client, txn_log_vars, tc_log_metadata, topic_vars, aux_vars >>

BecomeLeader(b, p) ==
/\ aux_coord_ctr < MaxCoordinatorChanges
/\ b # tc_log_metadata[b][p].leader
\* Bump the coordinator epoch of the partition leadership that is moving to
\* to this broker.
/\ LET cepoch == txn_log_epoch[p] + 1
IN
\* Controller elects the new leader and bump the txn log partition epoch
/\ txn_log_leader' = [txn_log_leader EXCEPT ![p] = b]
/\ txn_log_epoch' = [txn_log_epoch EXCEPT ![p] = cepoch]
\* The new leader updates its txn log partition metadata with the new epoch.
/\ tc_log_metadata' = [tc_log_metadata EXCEPT ![b][p] =
[cepoch |-> cepoch,
leader |-> b]]
\* Materialize the txn metadata stored by this txn log partition
/\ tc_tid_metadata' = [tc_tid_metadata EXCEPT ![b] =
[tid \in TransactionIds |->
IF PartitionFor(tid) = p
THEN MaterializeState(tid)
ELSE None]]
/\ aux_coord_ctr' = aux_coord_ctr + 1
/\ UNCHANGED <<tc_tid_transition, tc_log, tc_log_hwm, client,
topic_vars, pid_source, t_to_p_mapping, net_vars>>

BecomeFollower(b, p) ==
/\ tc_log_metadata[b][p].cepoch < txn_log_epoch[p]
/\ b # txn_log_leader[p]
/\ LET first_uncommitted_offset == tc_log_hwm[b][p]+1
uncommitted_offsets == first_uncommitted_offset..Len(tc_log[b][p])
uncommitted_entries == { tc_log[b][p][offset] : offset \in uncommitted_offsets }
err_responses == { entry.callback.err : entry \in uncommitted_entries }
IN
\* Update local log state (truncates the log to match the leader)
/\ tc_log_metadata' = [tc_log_metadata EXCEPT ![b][p] =
[cepoch |-> txn_log_epoch[p],
leader |-> txn_log_leader[p]]]
/\ tc_log' = [tc_log EXCEPT ![b][p] = tc_log[CurrentTC(p)][p]]
/\ tc_log_hwm' = [tc_log_hwm EXCEPT ![b][p] = tc_log_hwm[CurrentTC(p)][p]]
\* Clear out txn state of the affected tids
/\ tc_tid_metadata' = [tc_tid_metadata EXCEPT ![b] =
[tid \in TransactionIds |->
IF PartitionFor(tid) = p
THEN None
ELSE tc_tid_metadata[b][tid]]]
\* Clear out txn pending transitions of the affected tids
/\ tc_tid_transition' = [tc_tid_transition EXCEPT ![b] =
[tid \in TransactionIds |->
IF PartitionFor(tid) = p
THEN None
ELSE tc_tid_transition[b][tid]]]
\* Send error responses for pending ops
/\ SendAll(RemoveNoneResponses(err_responses))
/\ UNCHANGED << tc_log_hwm, txn_log_vars, topic_vars, client, aux_vars>>

\*CompletePartialTxn(b, tid) ==
\* LET p == PartitionFor(tid)
\* txn_metadata == tc_tid_metadata[b][tid]
\* trans_result == GetCompleteTransition(b, tid, txn_metadata)
\* IN
\* /\ IsPartitionLeader(b, p)
\* /\ txn_metadata # None
\* /\ txn_metadata.state \in {PrepareAbort, PrepareCommit} \* Prepare in-progress
\* /\ tc_tid_transition[b][tid] = None \* but no current transition
\* /\ trans_result.code = OK
\* /\ AppendTxnLogEntry(b, p, tid, tc_log,
\* trans_result.transition,
\* [type |-> trans_result.transition.state,
\* response |-> None,
\* err |-> None])
\* /\ UNCHANGED <<tc_tid_metadata, tc_log_hwm, tc_log_metadata,
\* txn_log_vars, topic_vars, client, aux_vars, net_vars>>
