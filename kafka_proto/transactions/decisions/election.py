"""What an election means to a coordinator: the followers and their logs, and what the new leader knows of its ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafka_proto.transactions.records import Entry, Response, TxnMetadata

Log = tuple[Entry, ...]


def every_replica_follows(broker: str, known_leader: str, cepoch: int, leader: str, epoch: int) -> bool:
    """Say whether a broker becomes a follower under the controller's leader and epoch (`BecomeFollower`'s guard).

    The gist's, and S2 repaired: every replica that is behind and was not elected.
    """
    return cepoch < epoch and broker != leader


def deposed_leader_follows(broker: str, known_leader: str, cepoch: int, leader: str, epoch: int) -> bool:
    """S2, as diary 02 has it: only the deposed leader learns of a new epoch."""
    return broker == known_leader and every_replica_follows(broker, known_leader, cepoch, leader, epoch)


def truncated_log(log: Log, hwm: int, leaders: Callable[[], Log]) -> Log:
    """Return the log of a new follower: its own up to its high watermark."""
    return log[:hwm]


def leaders_log(log: Log, hwm: int, leaders: Callable[[], Log]) -> Log:
    """S4, as the gist has it: a copy of the leader's whole log."""
    return leaders()


def uncommitted(log: Log, hwm: int) -> Log:
    """Return the entries above the high watermark."""
    return log[hwm:]


def failed_responses(entries: Iterable[Entry]) -> tuple[Response, ...]:
    """Return the error responses owed for entries that a deposed coordinator gives up, each once, in log order."""
    return tuple(dict.fromkeys(entry.callback.err for entry in entries if entry.callback.err is not None))


def materialized_beside_others(
    on_partition: bool, loaded: TxnMetadata | None, own: TxnMetadata | None
) -> TxnMetadata | None:
    """Return an elected broker's metadata of an id: as loaded on its partition, as it was elsewhere (S3 repaired)."""
    if on_partition:
        return loaded
    return own


def materialized_alone(
    on_partition: bool, loaded: TxnMetadata | None, own: TxnMetadata | None
) -> TxnMetadata | None:
    """S3, as written: what the broker knows of ids on other partitions is forgotten."""
    return materialized_beside_others(on_partition, loaded, None)
