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
    LeaderAndIsr,
    MessageType,
    RegisterBroker,
)
from kafka_proto.transactions.producer import Producer
from kafka_proto.transactions.records import Entry
from kafka_proto.transactions.specs.names import Names


def acked_is_logged(constants: Names, home: Mapping[str, str]) -> Property:
    """Return `AckedIsLogged`: what a client holds is committed in the log of its id; `home` is each id's partition."""

    def check(view: View, c: str) -> Reason:
        local: Producer = view[c]
        record = local.record
        if record.pid == -1 or record.tid is None:
            return None
        p = home[record.tid]
        partition: log.LogPartition = view[log.log_name(p)]
        mine = [
            entry.transition.partitions for entry in partition.committed
            if (entry.tid, entry.transition.pid, entry.transition.pepoch) == (record.tid, record.pid, record.epoch)
        ]
        lacks = f"which no committed entry of {record.tid} on {p} has"
        if not mine:
            return f"{c} holds producer id {record.pid} with epoch {record.epoch}, {lacks}"
        added = sorted(record.partitions - frozenset().union(*mine))
        return f"{c} added {', '.join(added)} in epoch {record.epoch}, {lacks}" if added else None

    return always("AckedIsLogged", check, over=constants.clients, source="ours: what a client holds is durable")


def service_type_ok(constants: Names, home: Mapping[str, str], typed: MessageType) -> Property:
    """Return `ServiceTypeOK`: messages to and from controller and logs are well typed; `typed` are those of clients."""
    logs = {log.log_name(p): p for p in constants.txn_log_partitions}
    brokers = frozenset(constants.brokers)

    def is_entry(entry: Entry, p: str) -> bool:
        now, callback = entry.transition, entry.callback
        answers = (answer for answer in (callback.response, callback.err) if answer is not None)
        return (
            home.get(entry.tid) == p and now.pid >= 1 and now.pepoch >= 0
            and now.partitions <= typed.topic_partitions and all(answer in typed for answer in answers)
        )

    def is_asked(message: Message) -> bool:
        """Say whether a broker may send this to a service."""
        p = logs.get(message.dest, "")
        match message:
            case RegisterBroker() | AllocateProducerIdsRequest():
                return message.dest == CONTROLLER
            case log.AppendEntry(cepoch=cepoch, offset=offset, entry=entry):
                return cepoch >= 1 and offset >= 0 and is_entry(entry, p)
            case log.JoinEpoch(cepoch=cepoch, incarnation=incarnation):
                return bool(p) and cepoch >= 1 and incarnation >= 0
        return False

    def is_answered(message: Message) -> bool:
        """Say whether a service may send this to a broker."""
        match message:
            case LeaderAndIsr(partition=p, leader=leader, cepoch=cepoch):
                known = p in constants.txn_log_partitions and leader in brokers and cepoch >= 1
                return message.source == CONTROLLER and known
            case AllocateProducerIdsResponse(start=start, length=length):
                return message.source == CONTROLLER and start >= 1 and length >= 1
            case log.Joined(partition=p, cepoch=cepoch, committed=committed):
                whole = cepoch >= 1 and all(is_entry(entry, p) for entry in committed)
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
