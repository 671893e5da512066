"""The consumer of Kafka's clients as pure functions: what it asks of a leader, which records of an answer it shows."""

from kafka_proto.consumer.consumer import Consumer, Polled, fetched, next_fetch

__all__ = ["Consumer", "Polled", "fetched", "next_fetch"]
