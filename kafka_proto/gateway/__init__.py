"""Kafka's wire protocol: the layer between a TCP connection and a request as a value. It needs the extra `gateway`.

`connection` is bytes in and out, without I/O; it is made of `codec` (where a message ends, and its fields, by kio's
schemas) and `offer` (which APIs and versions there are, by release). `records` reads and writes record batches. `model`
is a recorded session, as a model that is not listed.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.model import Faults, Model, ModelSpec, Network, Refusal, System


def build(
    sizes: Mapping[str, int], settings: Mapping[str, str], network: Network, faults: Faults, history_variables: bool
) -> Model:
    """Build the model. Raises Refusal if the extra is not installed."""
    try:
        from kafka_proto.gateway import model
    except ImportError as error:
        raise Refusal(f"a session of real clients needs the extra `gateway` ({error.name} is missing): "
                      "pip install 'kafka-proto[gateway]'") from None
    return model.build(sizes, settings, network, faults, history_variables)


RECORDED = (
    ModelSpec("gateway", "brokers behind Kafka's wire protocol, as a run with real clients was recorded", build, {}),
)


def system() -> System:
    """Return the model of recorded sessions, which is not listed."""
    return System("gateway", (), recorded=RECORDED)
