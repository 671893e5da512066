"""The gist (seed 000): an earlier diary 02 without CompletePartialTxn, whose followers copy the leader's whole log.

    Next == \\E c : SendInitPidRequest(c), ReceiveInitPidResponse(c, b), SendAddPartitionsToTxnRequest(c),
                   ReceiveAddPartitionsToTxnResponse(c, b)
            \\E b : ReceiveInitPidRequest(b, c), ReceiveAddPartitionsToTxnRequest(b, c)
            \\E b, p : CommitTxnLogAppend(b, p), BecomeLeader(b, p), BecomeFollower(b, p)
            \\E b, tid : CompletePartialTxn(b, tid)                           (repair S5 only)
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.model import Faults, Model, Network, Process, departed
from kafka_proto.transactions import diary_02, spec
from kafka_proto.transactions.properties import SpecState, properties
from kafka_proto.transactions.types import TYPES
from kafka_proto.transactions.versions.departures import DEPARTURES
from kafka_proto.transactions.versions.gist import GIST


def build(
    sizes: Mapping[str, int], settings: Mapping[str, str], network: Network, faults: Faults, history_variables: bool
) -> Model:
    """Build the gist at a size, with the repairs that the settings name."""
    version = departed(GIST, DEPARTURES, settings["repair"])
    constants = spec.names(sizes)
    processes: list[Process] = [spec.SpecClient(c, constants, version) for c in constants.clients]
    processes += [spec.SpecBroker(b, version) for b in constants.brokers]
    for b in constants.brokers:
        for p in constants.txn_log_partitions:
            processes.append(spec.commit(b, p, constants, version))
            processes.append(spec.elect(b, p, constants, version))
            processes.append(spec.become_follower(b, p, constants, version))
    processes += spec.complete_partial_txns(constants, version)
    return Model(
        "transactions/gist", tuple(processes), (spec.initial(constants),), network, faults,
        properties(constants, SpecState(constants)), diary_02.FAIRNESS, history_variables, sizes, settings, types=TYPES,
        waits_for=lambda view: spec.waits_for(constants, view), symmetric=spec.symmetric(constants),
        view_hides=("messages_discard", "aux_coord_ctr"),
    )
