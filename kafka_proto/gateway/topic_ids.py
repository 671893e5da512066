"""Topics by id (KIP-516): where a request names them so, it gets their names as it comes, and its response the ids.

Everything between reads names. In a request that goes by id, each topic's row has its name besides; one that no topic
has gets a name that no topic can have, and its partitions the error UNKNOWN_TOPIC_ID.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections import ChainMap
from collections.abc import Iterator, Mapping
from typing import Any
from uuid import UUID

from kafka_proto.errors import BY_NAME
from kafka_proto.gateway import codec, offer
from kafka_proto.gateway.codec import NO_ID, Fields

BY_ID: Mapping[int, int] = {offer.PRODUCE: 13, offer.FETCH: 13, offer.OFFSET_COMMIT: 10, offer.OFFSET_FETCH: 10}
"""The first version of each API that names topics by id alone."""
NAMES = ("name", "topic")
"""What messages call a topic's name."""
NO_TOPIC = "id:"
"""What the name of an unknown topic begins with: a colon is in no topic's name."""


def text(topic_id: UUID) -> str:
    """Return an id as Kafka writes it."""
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def goes_by_id(api_key: int, version: int) -> bool:
    """Say whether requests of an API and version name topics by id alone."""
    return version >= BY_ID.get(api_key, version + 1)


def add_names(message: Fields, names: Mapping[UUID, str]) -> None:
    """Give each topic of a request that goes by id its name besides, by the names of those that there are."""
    for row in _topics(message):
        row.update(dict.fromkeys(NAMES, names.get(row["topic_id"], NO_TOPIC + text(row["topic_id"]))))


def with_ids(message: Fields, response: Fields, ids: dict[str, UUID]) -> Fields:
    """Return the response to a request that has got names, with the ids of its topics."""
    asked = {row["name"]: row["topic_id"] for row in _topics(message)}
    return {name: _identified(value, ChainMap(asked, ids)) for name, value in response.items()}


def _topics(message: Fields) -> Iterator[dict[str, Any]]:
    return (row for row in codec.structures(message) if "topic_id" in row)


def _identified(value: Any, ids: Mapping[str, UUID], unknown: bool = False) -> Any:
    """Return a part of a response; what is under an unknown topic has its error."""
    if isinstance(value, tuple):
        return tuple(_identified(each, ids, unknown) for each in value)
    if not isinstance(value, Mapping):
        return value
    row = dict(value)
    name = next((row[field] for field in NAMES if isinstance(row.get(field), str)), None)
    if name is not None:
        row["topic_id"], unknown = row.get("topic_id", ids.get(name, NO_ID)), name.startswith(NO_TOPIC)
    if unknown and "error_code" in row:
        row["error_code"] = BY_NAME["UNKNOWN_TOPIC_ID"].number
    return {field: _identified(each, ids, unknown) for field, each in row.items()}
