"""The producer of Kafka's clients as pure functions of a frozen value: what `TransactionManager` and `Sender` decide.

`state` is what it keeps, `commands` what an application may ask for, `sending` what is sent next, `answers` what
follows from an answer or a time-out, `idempotent` how sequences go on where no transaction can be aborted, `verdicts`
the one table of what an error code means, `families` which versions of requests a client speaks. Connections, time and
correlation ids belong to whoever carries the requests.
"""

from kafka_proto.clients.producer.answers import AfterAnswer as AfterAnswer
from kafka_proto.clients.producer.answers import answered as answered
from kafka_proto.clients.producer.answers import broker_lost as broker_lost
from kafka_proto.clients.producer.answers import produced as produced
from kafka_proto.clients.producer.commands import IllegalState as IllegalState
from kafka_proto.clients.producer.commands import KafkaError as KafkaError
from kafka_proto.clients.producer.commands import ProducerFenced as ProducerFenced
from kafka_proto.clients.producer.commands import abort_transaction as abort_transaction
from kafka_proto.clients.producer.commands import begin_transaction as begin_transaction
from kafka_proto.clients.producer.commands import commit_transaction as commit_transaction
from kafka_proto.clients.producer.commands import init_transactions as init_transactions
from kafka_proto.clients.producer.commands import send as send
from kafka_proto.clients.producer.commands import send_offsets_to_transaction as send_offsets_to_transaction
from kafka_proto.clients.producer.families import FAMILIES as FAMILIES
from kafka_proto.clients.producer.families import Family as Family
from kafka_proto.clients.producer.sending import next_call as next_call
from kafka_proto.clients.producer.sending import next_produces as next_produces
from kafka_proto.clients.producer.sending import sent_batch as sent_batch
from kafka_proto.clients.producer.sending import sent_call as sent_call
from kafka_proto.clients.producer.state import Batch as Batch
from kafka_proto.clients.producer.state import Producer as Producer
from kafka_proto.clients.producer.state import ProducerStatus as ProducerStatus
from kafka_proto.clients.producer.verdicts import AnswerVerdict as AnswerVerdict
from kafka_proto.clients.producer.verdicts import verdict as verdict
