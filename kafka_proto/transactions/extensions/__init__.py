"""What running actors do beyond diary 02: named extension actions that wrap its spec from outside, with reasons.

With any of them on, requests carry numbers, messages travel in a bag (copies count), and a leader may have stopped
serving: it neither answers as coordinator nor runs callbacks. Spurious steps (a crash, a lost message) are
paid for, so that a search ends; a model that recorded steps are held against has no bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from harness.model import BAG, NO_FAULTS, Faults, Model, Network, Refusal, departed
from harness.model.spec import Around, Next, chosen, extended, reasons, writing
from kafka_proto.transactions.correspondence import of_actors
from kafka_proto.transactions.extensions import brokers, clients, elections
from kafka_proto.transactions.extensions.replicated_log import EXTENSIONS as ON_REPLICAS
from kafka_proto.transactions.extensions.replicated_log import on_replicas
from kafka_proto.transactions.extensions.serving import (
    ExtendedNames,
    begins_to_serve,
    deposes_who_knows,
    ends_serving,
    extended_initial,
    is_serving,
    with_actions,
)
from kafka_proto.transactions.specs import diary_02
from kafka_proto.transactions.specs.names import Names
from kafka_proto.transactions.versions.departures import DEPARTURES
from kafka_proto.transactions.versions.version import Version

ACTIONS: Next = (
    clients.request_timeout, clients.ignore_response, clients.stale_look_up, brokers.refuse_request,
    (
        brokers.resign_early, brokers.commit_unanswered, brokers.drop_uncommitted, brokers.load_txn_log,
        brokers.finish_loading, brokers.fail_committed, elections.elect_from_log, elections.take_over_late,
        elections.follow_late, brokers.crash,
    ),
    (clients.lose_message, clients.copy_message),
)
AROUND: Mapping[str, Around] = {
    **clients.OF_REQUESTS,
    "CommitTxnLogAppend": Around((is_serving,)),
    "ElectLeader": Around((deposes_who_knows,), (writing(begins_to_serve),)),
    "BecomeFollower": Around((), (ends_serving,)),
}
"""What is added to the spec's own actions where any extension action is on."""
EXTENSIONS: Mapping[str, str] = reasons(ACTIONS)
"""The extension actions, and why the truth has each."""
OF_FAULTS = ("Crash", "LoseMessage", "CopyMessage")
"""Those that are faults themselves: a model that has no faults does not need them."""
EXCHANGE = (
    "SendInitPidRequest", "SendAddPartitionsToTxnRequest", "ReceiveInitPidRequest", "ReceiveAddPartitionsToTxnRequest",
    "ReceiveInitPidResponse", "ReceiveAddPartitionsToTxnResponse",
)
ASKS, IS_ASKED = (tuple(of_actors(name) for name in EXCHANGE[at : at + 2]) for at in (0, 2))
SENDS = (*ASKS, *IS_ASKED, "ReceiveCommitted", "BecomeFollower")
"""Actions of actors that send requests or responses: faults by rule, cut links and dead receivers strike there."""
FOLLOWS = ("BecomeFollower", "JoinEpoch")
BY_EITHER: Mapping[str, tuple[str, ...]] = {
    **{name: (of_actors(name),) for name in (*EXCHANGE, "CompletePartialTxn")},
    "RequestTimeout": ("RequestTimeout",),
    "IgnoreResponse": ("IgnoreResponse",),
    "StaleLookUp": (ASKS[0], "ReceiveFindCoordinatorResponse"),
    "RefuseRequest": IS_ASKED,
    "Crash": ("Crash",),
}
"""What `BY` says of steps that do not depend on what the log is."""
BY: Mapping[str, tuple[str, ...]] = {
    **BY_EITHER,
    "CommitTxnLogAppend": ("CommitTxnLogAppend", "ReceiveCommitted", "JoinEpoch"),
    "ElectLeader": ("JoinEpoch",),
    "BecomeFollower": FOLLOWS,
    "ResignEarly": ("BecomeFollower",),
    "CommitUnanswered": ("CommitTxnLogAppend", "BecomeFollower", "Crash"),
    "DropUncommitted": ("JoinEpoch", "BecomeFollower", "Crash"),
    "LoadTxnLog": ("JoinEpoch",),
    "ElectFromLog": ("JoinEpoch",),
    "FinishLoading": ("LoadTxnLog",),
    "TakeOverLate": ("JoinEpoch",),
    "FollowLate": FOLLOWS,
    "FailCommitted": ("BecomeFollower",),
    "LoseMessage": ("Drop", "Crash", *SENDS),
    "CopyMessage": ("Duplicate", *SENDS),
}
"""Which actions of the actors may be these steps: a step that leaves the same state by chance does not count."""


def build(
    version: Version, sizes: Mapping[str, int], settings: Mapping[str, str], network: Network, faults: Faults,
    history_variables: bool,
) -> Model:
    """Build a version of diary 02 at a size, with the repairs and the extension actions that the settings name."""
    model = diary_02.build(version, sizes, settings, network, faults, history_variables)
    on = frozenset(name for name in settings["extend"].split(",") if name)
    repaired = departed(version, DEPARTURES, settings.get("repair", ""))
    return wrapped(model, repaired, on, int(settings["bound"] or 1)) if on else model


def unbounded(version: Version, sizes: Mapping[str, int], settings: Mapping[str, str], on: Iterable[str]) -> Model:
    """Return a version of diary 02 with any number of extension actions, which recorded steps are held against."""
    model = diary_02.compose(diary_02.NEXT, Names.of(sizes, version=version), sizes, settings, BAG, NO_FAULTS, False)
    return wrapped(model, version, frozenset(on))


def wrapped(model: Model, version: Version, on: frozenset[str], bound: int | None = None) -> Model:
    """Wrap a model of diary 02 in extension actions, which are of an atomic log or of a replicated one. Refusal."""
    if on <= EXTENSIONS.keys():
        return with_extensions(model, version, on, bound)
    if on <= ON_REPLICAS.keys():
        return on_replicas(model, version, on, bound)
    one, other = min(on - ON_REPLICAS.keys()), min(on - EXTENSIONS.keys())
    raise Refusal(f"{one} is of coordinators on an atomic log, {other} of those on a replicated one: not of both")


def with_extensions(model: Model, version: Version, on: Iterable[str], bound: int | None = None) -> Model:
    """Wrap a model of diary 02 in extension actions, with at most so many spurious steps."""
    k = ExtendedNames.of(model.sizes, version=version, on=frozenset(on), bound=bound)
    return with_actions(model, k, extended(diary_02.NEXT, AROUND, chosen(ACTIONS, k.on)), extended_initial(k))
