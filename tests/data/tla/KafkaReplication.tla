ControllerElectLeader == \E newLeader \in quorumState.isr :
/\ quorumState.leader # newLeader
/\ ControllerUpdateIsr(newLeader, quorumState.isr)
/\ UNCHANGED <<nextRecordId, replicaLog, replicaState>>

ControllerShrinkIsr == \E replica \in Replicas :
/\ \/ /\ quorumState.leader = replica
/\ quorumState.isr = {replica}
/\ ControllerUpdateIsr(None, quorumState.isr)
\/ /\ quorumState.leader = replica
/\ quorumState.isr # {replica}
/\ ControllerUpdateIsr(None, quorumState.isr \ {replica})
\/ /\ quorumState.leader # replica
/\ replica \in quorumState.isr
/\ ControllerUpdateIsr(quorumState.leader, quorumState.isr \ {replica})
/\ UNCHANGED <<nextRecordId, replicaLog, replicaState>>

BecomeLeader == \E leaderAndIsrRequest \in leaderAndIsrRequests :
LET leader == leaderAndIsrRequest.leader
IN /\ leader # None
/\ leaderAndIsrRequest.leaderEpoch > replicaState[leader].leaderEpoch
/\ replicaState' = [replicaState EXCEPT ![leader] = [
hw |-> @.hw,
leaderEpoch |-> leaderAndIsrRequest.leaderEpoch,
leader |-> leader,
isr |-> leaderAndIsrRequest.isr]]
/\ UNCHANGED <<nextRecordId, replicaLog, quorumState, nextLeaderEpoch, leaderAndIsrRequests>>

LeaderWrite == \E replica \in Replicas, id \in RecordSeq!IdSet, offset \in ReplicaLog!Offsets :
/\ ReplicaPresumesLeadership(replica)
/\ RecordSeq!NextId(id)
/\ LET record == [id |-> id, epoch |-> replicaState[replica].leaderEpoch]
IN ReplicaLog!Append(replica, record, offset)
/\ UNCHANGED <<replicaState, nextLeaderEpoch, quorumState, leaderAndIsrRequests>>
