"""Diary 02 (seed 003): InitPid and AddPartitionsToTxn with elections; also `transactions/repaired`.

    Next == \\E c : SendInitPidRequest(c), ReceiveInitPidResponse(c, b), SendAddPartitionsToTxnRequest(c),
                   ReceiveAddPartitionsToTxnResponse(c, b)
            \\E b : ReceiveInitPidRequest(b, c), ReceiveAddPartitionsToTxnRequest(b, c)
            \\E b, p : CommitTxnLogAppend(b, p), ElectLeader(b, p), BecomeFollower(b, p)
            \\E b, tid : CompletePartialTxn(b, tid)
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from harness.model import BAG, Faults, Model, Network, Process, departed
from kafka_proto.transactions import spec
from kafka_proto.transactions.extensions import ExtendedBroker, ExtendedClient, Extensions, actions
from kafka_proto.transactions.properties import SpecState, properties
from kafka_proto.transactions.types import TYPES
from kafka_proto.transactions.versions.departures import DEPARTURES
from kafka_proto.transactions.versions.version import Version

FAIRNESS = {
    "SendInitPidRequest": "strong",
    "SendAddPartitionsToTxnRequest": "strong",
    "ReceiveInitPidRequest": "weak",
    "ReceiveInitPidResponse": "weak",
    "ReceiveAddPartitionsToTxnRequest": "weak",
    "ReceiveAddPartitionsToTxnResponse": "weak",
    "CommitTxnLogAppend": "weak",
    "BecomeFollower": "weak",
    "CompletePartialTxn": "weak",
}
"""The spec's `Fairness`, per action and its parameters; ElectLeader is not fair."""


def build(
    version: Version, sizes: Mapping[str, int], settings: Mapping[str, str], network: Network, faults: Faults,
    history_variables: bool,
) -> Model:
    """Build a version of diary 02 at a size, with the repairs and the extension actions that the settings name."""
    chosen = departed(version, DEPARTURES, settings.get("repair", ""))
    on = frozenset(name for name in settings["extend"].split(",") if name)
    extensions = Extensions(on, int(settings["bound"] or 1))
    model = compose(chosen, extensions, sizes, settings, network, faults, history_variables)
    return attrs.evolve(model, name=f"transactions/{version.name}")


def compose(
    version: Version, extensions: Extensions, sizes: Mapping[str, int], settings: Mapping[str, str], network: Network,
    faults: Faults, history_variables: bool,
) -> Model:
    """Compose a version of diary 02 with extension actions, if there are any."""
    constants = spec.names(sizes, bool(extensions.on), "FinishLoading" in extensions)
    processes: list[Process] = []
    if extensions.on:
        processes += [ExtendedClient(c, constants, version, extensions) for c in constants.clients]
        processes += [ExtendedBroker(b, constants, version, extensions) for b in constants.brokers]
    else:
        processes += [spec.SpecClient(c, constants, version) for c in constants.clients]
        processes += [spec.SpecBroker(b, version) for b in constants.brokers]
    for b in constants.brokers:
        for p in constants.txn_log_partitions:
            processes.append(spec.commit(b, p, constants, version))
            processes.append(spec.elect(b, p, constants, version))
            processes.append(spec.become_follower(b, p, constants, version))
    processes += spec.complete_partial_txns(constants, version)
    processes += actions(constants, version, extensions)
    return Model(
        "transactions/diary-02", tuple(processes), (extensions.initial(constants, spec.initial(constants)),),
        BAG if extensions.on else network, faults, properties(constants, SpecState(constants)), FAIRNESS,
        history_variables, sizes, settings, types=TYPES,
        waits_for=lambda view: spec.waits_for(constants, view), symmetric=spec.symmetric(constants),
        view_hides=("messages_discard", "aux_coord_ctr"),
    )
