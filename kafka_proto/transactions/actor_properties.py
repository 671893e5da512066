"""The properties that only the actor composition has: what clients are answered is logged, what services are sent.

A spec's client is answered in the step that commits, and its services take no messages; among actors both can go wrong.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.model import RELIABLE, Message, Property, Reason, View, always
from kafka_proto.transactions import log
from kafka_proto.transactions.controller import CONTROLLER
from kafka_proto.transactions.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    BrokerRegistrationRequest,
    LeaderAndIsrRequest,
    MessageType,
)
from kafka_proto.transactions.producer import Producer
from kafka_proto.transactions.properties import Logged
from kafka_proto.transactions.records import ClientRecord, Entry
from kafka_proto.transactions.specs.names import Names


def is_of(entry: Logged, record: ClientRecord) -> bool:
    """Say whether an entry of the log is of a client's id, and has its producer id and epoch."""
    now, mine = entry.transition, (record.transactional_id, record.producer_id, record.producer_epoch)
    return (entry.transactional_id, now.producer_id, now.producer_epoch) == mine


def acked_is_logged(constants: Names, home: Mapping[str, str]) -> Property:
    """Return `AckedIsLogged`: what a client holds is committed in the log of its id; `home` is each id's partition."""

    def check(view: View, c: str) -> Reason:
        local: Producer = view[c]
        record = local.record
        if record.producer_id == -1 or record.transactional_id is None:
            return None
        p = home[record.transactional_id]
        partition: log.LogPartition = view[log.log_name(p)]
        mine = [
            entry.transition.partitions for entry in partition.committed
            if is_of(entry, record)
        ]
        lacks = f"which no committed entry of {record.transactional_id} on {p} has"
        if not mine:
            return f"{c} holds producer id {record.producer_id} with epoch {record.producer_epoch}, {lacks}"
        added = sorted(record.partitions - frozenset().union(*mine))
        return f"{c} added {', '.join(added)} in epoch {record.producer_epoch}, {lacks}" if added else None

    return always("AckedIsLogged", check, over=constants.clients, source="ours: what a client holds is durable")


def service_type_ok(constants: Names, home: Mapping[str, str], typed: MessageType) -> Property:
    """Return `ServiceTypeOK`: messages to and from controller and logs are well typed; `typed` are those of clients."""
    logs = {log.log_name(p): p for p in constants.txn_log_partitions}
    brokers = frozenset(constants.brokers)

    def is_entry(entry: Entry, p: str) -> bool:
        now, callback = entry.transition, entry.callback
        answers = (answer for answer in (callback.response, callback.err) if answer is not None)
        return (
            home.get(entry.transactional_id) == p and now.producer_id >= 1 and now.producer_epoch >= 0
            and now.partitions <= typed.topic_partitions and all(answer in typed for answer in answers)
        )

    def is_asked(message: Message) -> bool:
        """Say whether a broker may send this to a service."""
        p = logs.get(message.dest, "")
        match message:
            case BrokerRegistrationRequest() | AllocateProducerIdsRequest():
                return message.dest == CONTROLLER
            case log.AppendEntry(leader_epoch=epoch, offset=offset, entry=entry):
                return epoch >= 1 and offset >= 0 and is_entry(entry, p)
            case log.JoinEpoch(leader_epoch=epoch, broker_epoch=broker_epoch):
                return bool(p) and epoch >= 1 and broker_epoch >= 0
        return False

    def is_answered(message: Message) -> bool:
        """Say whether a service may send this to a broker."""
        match message:
            case LeaderAndIsrRequest(partition=p, leader=leader, leader_epoch=epoch):
                known = p in constants.txn_log_partitions and leader in brokers and epoch >= 1
                return message.source == CONTROLLER and known
            case AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=length):
                return message.source == CONTROLLER and start >= 1 and length >= 1
            case log.Joined(partition=p, leader_epoch=epoch, committed=committed):
                whole = epoch >= 1 and all(is_entry(entry, p) for entry in committed)
                return message.source == log.log_name(p) and whole
            case log.Committed(partition=p, offset=offset, entry=entry):
                return message.source == log.log_name(p) and offset >= 0 and is_entry(entry, p)
        return False

    def check(view: View, address: str) -> Reason:
        for message in RELIABLE.contents(view.at("inbox", address, RELIABLE.name)):
            fits = is_answered(message) if address in brokers else message.source in brokers and is_asked(message)
            if not fits or message.dest != address:
                return f"no message between brokers and services: {message.brief()}"
        return None

    return always("ServiceTypeOK", check, over=(*constants.brokers, CONTROLLER, *logs), source="ours")
