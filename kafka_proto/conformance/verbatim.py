"""Requests that a record has as messages of the wire, field by field, and their responses as a record has them.

What differs from run to run has a name in both: `~T` is the topic `T` of this situation (so are groups and
transactional ids), `member-N` a member, `pidN` a producer id, `{"now": 5}` a time, 5 ms after the situation began.
Bytes are `{"bytes": text}`, a batch `{"batch": [[value, ms], ...], ...}` with the other arguments of `write_batch`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kafka_proto.conformance.player import Symbols
from kafka_proto.errors import NAMES
from kafka_proto.gateway import offer
from kafka_proto.gateway.codec import has_version
from kafka_proto.gateway.records import (
    MARKER_KEY,
    BatchHeader,
    WireRecord,
    read_header,
    read_records,
    split,
    write_batch,
)

HOME = "~"
PRODUCER = re.compile(r"pid[0-9]+")
LEFT_OUT = frozenset((
    "throttle_time", "error_message", "host", "port", "cluster_id", "log_append_time", "current_leader",
    "diverging_epoch", "snapshot_id", "preferred_read_replica", "config_source",
))
"""Fields that differ from run to run, are the same in words, or say what is not modelled: where a setting is from,
which other replica to ask.
"""
SORTED_BY = ("name", "partition_index")
MEMBERS = ("member_id", "leader")

UNSEEN = ("snappy", "lz4", "zstd")
"""The codecs that were not read when the files were recorded."""
COMPARED = ("cleanup.policy", "max.message.bytes", "message.timestamp.type", "min.insync.replicas")
"""The settings of topics that records show."""


def api_key(name: str, version: int) -> int:
    """Return the number of an API, as EndTxn.

    Raises KeyError for an API that is not served here, ValueError for an unknown version.
    """
    number = int(vars(offer)[re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()])
    if not has_version(number, version):
        raise ValueError(f"there is no version {version} of {name}")
    return number


def batches(data: bytes | None) -> Iterator[tuple[BatchHeader, list[str]]]:
    """Yield batches with their records as text; those of `UNSEEN` codecs are none."""
    for batch in split(data or b""):
        header = read_header(batch)
        yield header, [] if header.codec in UNSEEN else [_text(header, one) for one in read_records(batch, header)]


def _text(header: BatchHeader, record: WireRecord) -> str:
    """Return a record as its text, a marker as its type."""
    if header.is_control:
        return "COMMIT" if MARKER_KEY.unpack(record.key or b"")[1] else "ABORT"
    return (record.value or b"").decode()


class Verbatim:
    """Messages of one situation, whose names begin with `prefix`; `now_ms` is when it began."""

    def __init__(self, prefix: str, now_ms: int, symbols: Symbols) -> None:
        self._prefix = prefix
        self._now_ms = now_ms
        self._symbols = symbols
        self._said: set[str] = set()
        """Texts of requests that stand for nothing else."""

    def written(self, value: Any) -> Any:
        """Return a request of a record, or a part of it, as the fields of a message."""
        match value:
            case {"now": after}:
                return self._now_ms + after
            case {"bytes": content}:
                return content.encode()
            case {"batch": records, **how}:
                kept = [WireRecord(None, content.encode(), timestamp_delta=after) for content, after in records]
                return write_batch(kept, base_timestamp=self._now_ms, **self.written(how))
            case dict():
                return {name: self.written(part) for name, part in value.items()}
            case list():
                return tuple(map(self.written, value))
            case str() if value.startswith(HOME):
                return self._prefix + value.removeprefix(HOME)
            case str() if PRODUCER.fullmatch(value):
                return self._symbols.producer_id(value)
            case str():
                found = self._symbols.member_id(value)
                if found == value:
                    self._said.add(value)
                return found
        return value

    def shown(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Return a response as a record has it; rows of topics and of partitions are sorted, as brokers hash some."""
        return {name: self._field(name, value) for name, value in message.items() if name not in LEFT_OUT}

    def _field(self, name: str, value: Any) -> Any:
        if name.endswith("error_code"):
            return NAMES.get(value, value)
        if name == "producer_id":
            return self._symbols.producer_name(value)
        if name in MEMBERS and isinstance(value, str):
            return value if value in self._said else self._symbols.member_name(value)
        if name == "timestamp" and value >= 0:
            return {"now": value - self._now_ms}
        if name == "records":
            return [[header.base_offset, texts] for header, texts in batches(value)]
        if name == "configs" and value is not None:
            value = [row for row in value if row["name"] in COMPARED]
        return self._value(value)

    def _value(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return self.shown(value)
        if isinstance(value, tuple | list):
            rows = [self._value(part) for part in value]
            key = next((key for key in SORTED_BY if rows and isinstance(rows[0], dict) and key in rows[0]), None)
            return rows if key is None else sorted(rows, key=lambda row: row[key])
        if isinstance(value, bytes):
            return {"bytes": value.decode()}
        if isinstance(value, str) and value.startswith(self._prefix):
            return HOME + value.removeprefix(self._prefix)
        return value
