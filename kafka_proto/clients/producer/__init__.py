"""The producer of Kafka's clients as pure functions of a frozen value: what `TransactionManager` and `Sender` decide.

`state` is what it keeps, `commands` what an application may ask for, `sending` what is sent next, `answers` what
follows from an answer or a time-out, `idempotent` how sequences go on where no transaction can be aborted, `verdicts`
the one table of what an error code means, `families` which versions of requests a client speaks. Connections, time and
correlation ids belong to whoever carries the requests.
"""

from kafka_proto.clients.producer.answers import AfterAnswer, answered, broker_lost, produced
from kafka_proto.clients.producer.commands import (
    IllegalState,
    KafkaError,
    ProducerFenced,
    abort_transaction,
    begin_transaction,
    commit_transaction,
    init_transactions,
    send,
    send_offsets_to_transaction,
)
from kafka_proto.clients.producer.families import FAMILIES, Family
from kafka_proto.clients.producer.sending import next_call, next_produces, sent_batch, sent_call
from kafka_proto.clients.producer.state import Batch, Producer, ProducerStatus, TransactionalCall
from kafka_proto.clients.producer.verdicts import AnswerVerdict, verdict

__all__ = [
    "FAMILIES",
    "AfterAnswer",
    "AnswerVerdict",
    "Batch",
    "Family",
    "IllegalState",
    "KafkaError",
    "Producer",
    "ProducerFenced",
    "ProducerStatus",
    "TransactionalCall",
    "abort_transaction",
    "answered",
    "begin_transaction",
    "broker_lost",
    "commit_transaction",
    "init_transactions",
    "next_call",
    "next_produces",
    "produced",
    "send",
    "send_offsets_to_transaction",
    "sent_batch",
    "sent_call",
    "verdict",
]
