"""Actors of the whole transaction protocol: a broker of all roles, and transactional producers, on a faulty network."""

from __future__ import annotations

from harness.model import System


def system() -> System:
    """Return the models of the composition."""
    from kafka_proto.composition.models import MODELS

    return System("kafka", MODELS, (), ())
