"""Coordinators of whole transactions checked against diary 02's, step by step.

`mapping` says what a state of brokers is in its terms (`decided`), and composes diary 02's coordinators with what
Kafka's do besides: `requests`, `ends`, `entries`. `departures` has the decisions that are others by design, each with
its source; `drafts` lets them change what diary 02 decides before anything is written.
"""

from kafka_proto.cluster.refinement.mapping import refinement

__all__ = ["refinement"]
