Producer ==
/\ Len(messages) < MessageSentLimit
/\ \E inputKey \in KeySet, inputValue \in ValueSet:
messages' = Append(messages, ConstructMessage(Len(messages) + 1, inputKey, inputValue))
/\ UNCHANGED <<compactedLedgers, cursor, compactorVars, otherVars>>

CompactorPhaseOne ==
/\ compactorState = Compactor_In_PhaseOne
/\ phaseOneResult = Nil
/\ Len(messages) > 0 \* there are messages to be compacted
/\ phaseOneResult' = [readPosition |-> Len(messages),
latestForKey |-> [key \in GetKeys(messages) |-> Max({i \in 1..Len(messages) : messages[i].key = key})]]
/\ compactorState' = Compactor_In_PhaseTwoWrite
/\ UNCHANGED <<bookieVars, otherVars, compactionHorizon, compactedTopicContext>>

CompactorPhaseTwoWrite ==
/\ phaseOneResult # Nil
/\ compactorState = Compactor_In_PhaseTwoWrite
/\ LET
maxledgerId == MaxCompactedLedgerId(compactedLedgers)
newCompactedLedgerId == maxledgerId + 1
compactedMessages == CompactMessages(messages, phaseOneResult)
IN
/\ newCompactedLedgerId \in 1..CompactionTimesLimit
/\ compactedLedgers' = [compactedLedgers EXCEPT ![newCompactedLedgerId] = compactedMessages]
/\ compactorState' = Compactor_In_PhaseTwoUpdateContext
/\ UNCHANGED <<messages, cursor, otherVars, compactionHorizon, compactedTopicContext, phaseOneResult>>

CompactorPhaseTwoUpdateContext ==
/\ compactorState = Compactor_In_PhaseTwoUpdateContext
/\ compactorState' = Compactor_In_PhaseTwoUpdateHorizon
/\ compactedTopicContext' = MaxCompactedLedgerId(compactedLedgers)
/\ UNCHANGED <<bookieVars, otherVars, phaseOneResult, compactionHorizon>>

CompactorPhaseTwoUpdateHorizon ==
/\ compactorState = Compactor_In_PhaseTwoUpdateHorizon
/\ compactorState' = Compactor_In_PhaseTwoPersistCusror
/\ compactionHorizon' = phaseOneResult.readPosition
/\ UNCHANGED <<bookieVars, otherVars, phaseOneResult, compactedTopicContext>>

CompactorPhaseTwoPersistCusror ==
/\ compactorState = Compactor_In_PhaseTwoPersistCusror
/\ compactorState' = Compactor_In_PhaseTwoDeleteLedger
/\ cursor' = [compactionHorizon |-> compactionHorizon, compactedTopicContext |-> compactedTopicContext]
/\ UNCHANGED <<messages, compactedLedgers, otherVars, phaseOneResult, compactionHorizon, compactedTopicContext>>

CompactorPhaseTwoDeleteLedger ==
/\ compactorState = Compactor_In_PhaseTwoDeleteLedger
/\ compactorState' = Compactor_In_PhaseOne
/\ phaseOneResult' = Nil
/\ LET
maxledgerId == MaxCompactedLedgerId(compactedLedgers)
\* for simplicity, we delete the second to last compacted ledger
oldCompactedLedgerId == IF maxledgerId = 1 THEN Nil ELSE maxledgerId - 1
IN
IF oldCompactedLedgerId = Nil \/ compactedLedgers[oldCompactedLedgerId] = Nil
THEN UNCHANGED compactedLedgers
ELSE compactedLedgers' = [compactedLedgers EXCEPT ![oldCompactedLedgerId] = Nil]
/\ UNCHANGED <<messages, cursor, otherVars, compactedTopicContext, compactionHorizon>>

BrokerCrash ==
/\ crashTimes < MaxCrashTimes
/\ crashTimes' = crashTimes + 1
\* reset compactor state and phase one result
/\ compactorState' = Compactor_In_PhaseOne
/\ phaseOneResult' = Nil
\* reload the compaction horizon and compacted topic context from cursor
/\ IF cursor # Nil
THEN /\ compactionHorizon' = cursor.compactionHorizon
/\ compactedTopicContext' = cursor.compactedTopicContext
\* if the cursor is Nil, we reset the compaction horizon and compacted topic context to 0
ELSE /\ compactionHorizon' = 0
/\ compactedTopicContext' = 0
/\ UNCHANGED <<bookieVars, consumeTimes>>

Consumer ==
UNCHANGED vars

Terminating ==
\* The producer send complete
/\ Len(messages) = MessageSentLimit
\* The compactor compact complete, the last phase is phase two write(if there are messages to be compacted)
\* or phase one(if there are no messages to be compacted, but we don't care about this case)
/\ compactorState = Compactor_In_PhaseTwoWrite
/\ MaxCompactedLedgerId(compactedLedgers) = CompactionTimesLimit
\* The consumer consume complete
/\ ModelConsumer => consumeTimes = ConsumeTimesLimit
/\ UNCHANGED vars
