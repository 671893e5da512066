"""The model of recorded sessions, by name, for whoever has the extra `gateway` or is to be told that it is needed."""

from __future__ import annotations

from collections.abc import Mapping

from harness.model import Faults, Model, ModelSpec, Network, Refusal


def build(
    sizes: Mapping[str, int], settings: Mapping[str, str], network: Network, faults: Faults, history_variables: bool
) -> Model:
    """Build the model. Raises Refusal where the extra is not installed."""
    try:
        from kafka_proto.gateway import model
    except ImportError as error:
        raise Refusal(f"a session of real clients needs the extra `gateway` ({error.name} is missing): "
                      "pip install 'kafka-proto[gateway]'") from None
    return model.build(sizes, settings, network, faults, history_variables)


RECORDED = (
    ModelSpec("gateway", "brokers behind Kafka's wire protocol, as a run with real clients was recorded", build, {}),
)
