"""Requests and answers of the wire in words, for people: what each is about, partition by partition, shortened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kafka_proto.errors import NAMES
from kafka_proto.gateway import offer
from kafka_proto.gateway.codec import Fields, structures
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.faults import name_of
from kafka_proto.gateway.observed import NOBODY, header_of, produced
from kafka_proto.gateway.records import BadBatch, BatchHeader, WireRecord, read_header, read_records, split
from kafka_proto.requests import partition_name

About = tuple[tuple[str, str], ...]
LONGEST = 24
"""Characters of a key, a value or a name."""
MOST_RECORDS = 6
"""Records of a batch that are shown; the others are counted."""
NO_ERROR = 0
OLD = "v3_and_below_"
NAMED = {
    "key": "key", "group_id": "group", "generation_id": "generation", "generation_id_or_member_epoch": "generation",
    "member_id": "member", "protocol_name": "protocol", "leader": "leader", "node_id": "coordinator",
    "producer_id": "producer", "producer_epoch": "epoch", "producer_id_or_epoch": "epoch",
}
"""The fields of messages that are shown, by Kafka's names, and what they are called."""
OF_PARTITIONS = {
    "committed_offset": "offset ", "fetch_offset": "from ", "offset": "offset ", "base_offset": "offset ",
    "timestamp": "at time ", "end_offset": "ends at ", "low_watermark": "begins at ", "count": "partitions: ",
}
"""The fields of partitions that are shown, and what stands before their values."""
TOPICS, INDEXES = ("name", "topic"), ("partition_index", "partition", "index")
TIMES = {-1: "latest", -2: "earliest", -3: "largest time"}
MINOR = (offer.METADATA, offer.FIND_COORDINATOR, offer.HEARTBEAT, offer.API_VERSIONS, offer.DESCRIBE_CLUSTER)
"""What clients ask for now and then, whatever they do."""


def text(data: bytes | str | None, longest: int = LONGEST) -> str:
    """Return bytes or text as it can be printed, shortened."""
    if data is None:
        return "null"
    whole = data if isinstance(data, str) else data[: 4 * longest].decode(errors="backslashreplace")
    printable = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in whole)
    return printable if len(printable) <= longest else f"{printable[: longest - 1]}…"


def record_text(record: WireRecord) -> str:
    """Return a record as `key: value`, or its value alone."""
    value = text(record.value)
    return value if record.key is None else f"{text(record.key)}: {value}"


def batches(data: bytes | None) -> Iterator[tuple[BatchHeader, list[WireRecord]]]:
    """Yield the batches of a partition with their records, none if they cannot be read."""
    try:
        for batch in split(data or b""):
            header = read_header(batch)
            yield header, list(read_records(batch, header))
    except BadBatch:
        return


def records_text(data: bytes | None, at_offsets: bool) -> str:
    """Return the records of a partition in words."""
    found = []
    for header, records in batches(data):
        for record in records:
            if header.is_control:
                found.append("COMMIT" if record.key is not None and record.key[-1] else "ABORT")
            else:
                where = f"@{header.base_offset + record.offset_delta} " if at_offsets else ""
                found.append(f"{where}{record_text(record)}")
    more = [f"{len(found) - MOST_RECORDS} more"] if len(found) > MOST_RECORDS else []
    return f"[{'; '.join((*found[:MOST_RECORDS], *more))}]"


def asked(request: WireRequest, transaction: str = NOBODY) -> tuple[str, About]:
    """Return a request as its name and what it is about; with the transaction that it is of."""
    message, name = request.message, name_of(request)
    about: list[tuple[str, str]] = []
    if request.api_key == offer.END_TXN:
        name = f"{name} {'commit' if message['committed'] else 'abort'}"
    if request.api_key == offer.PRODUCE:
        about = list(_produced(message))
    elif request.api_key != offer.METADATA:
        about = [*_partitions(message), *_named(message)]
    own = message.get("transactional_id") or message.get(f"{OLD}transactional_id")
    if transaction or own:
        about.append(("transaction", text(transaction or own)))
    return name, tuple(dict.fromkeys(about))


def _produced(message: Fields) -> Iterator[tuple[str, str]]:
    header = None
    for topic, index, data in produced(message):
        header = header or header_of(data)
        yield partition_name(topic, index), records_text(data, at_offsets=False)
    if header is not None and header.producer_id >= 0:
        yield from (("producer", str(header.producer_id)), ("epoch", str(header.producer_epoch)),
                    ("sequence", str(header.base_sequence)))
    if message["acks"] != -1:
        yield "acks", str(message["acks"])


def answered(request: WireRequest, answer: Fields | None) -> tuple[str, About]:
    """Return the answer to a request as its name, with its errors, and what it says."""
    found = errors(answer)
    answer = answer and {name: value for name, value in answer.items() if name != "node_endpoints"}
    about: list[tuple[str, str]] = []
    if answer is not None and request.api_key == offer.FETCH:
        about = [*_fetched(answer)]
    elif answer is not None and request.api_key not in (offer.METADATA, offer.DESCRIBE_CONFIGS):
        known = asked(request)[1]
        about = [pair for pair in (*_partitions(answer), *_named(answer)) if pair[1] and pair not in known]
        about = [(name, "" if [value] == found else value) for name, value in about]  # the name has the error
    return f"{name_of(request)}: {', '.join(found) or 'ok'}", tuple(dict.fromkeys(about))


def errors(answer: Fields | None) -> list[str]:
    """Return the error codes of an answer by name, each once."""
    parts = structures(answer) if answer is not None else ()
    codes = {each.get("error_code") or each.get("partition_error_code") or NO_ERROR for each in parts}
    return sorted(NAMES[code] for code in codes - {NO_ERROR})


def has_records(answer: Fields | None) -> bool:
    """Say whether the answer to a Fetch has any records."""
    return any(each.get("records") for each in structures(answer)) if answer is not None else False


def _fetched(answer: Fields) -> Iterator[tuple[str, str]]:
    for topic in answer["responses"]:
        for partition in topic["partitions"]:
            name = partition_name(topic["topic"], partition["partition_index"])
            if partition["records"]:
                yield name, records_text(partition["records"], at_offsets=True)
            elif partition["error_code"] != NO_ERROR:
                yield name, NAMES[partition["error_code"]]


def _partitions(message: Fields) -> Iterator[tuple[str, str]]:
    """Yield the partitions and topics that a message is about, each with what it says of it."""
    for field, value in message.items():
        for row in value if isinstance(value, tuple) else ():
            if not isinstance(row, Mapping):
                if field.endswith(("keys", "groups", "names")):
                    yield field.rpartition("_")[2].removesuffix("s"), text(str(row))
                continue
            topic = next((str(row[name]) for name in TOPICS if row.get(name)), None)
            inner = next((each for each in row.values() if isinstance(each, tuple) and each), ())
            found = [pair for part in inner if (pair := _partition(topic, part)) is not None] if topic else []
            if found:
                yield from found
            elif topic is not None and field in ("topics", "responses"):
                yield topic, _said(row) or (f"{row['num_partitions']} partitions" if "num_partitions" in row else "")
            else:
                yield from _partitions(row)
                yield from _named(row)


def _partition(topic: str | None, part: Any) -> tuple[str, str] | None:
    if isinstance(part, int):
        return partition_name(topic or "", part), ""
    index = next((part[name] for name in INDEXES if name in part), None) if isinstance(part, Mapping) else None
    return None if index is None else (partition_name(topic or "", index), _said(part))


def _said(part: Mapping[str, Any]) -> str:
    """Return what a message says of a partition or topic."""
    error = part.get("error_code") or part.get("partition_error_code") or NO_ERROR
    if error != NO_ERROR:
        return NAMES[error]
    for name, before in OF_PARTITIONS.items():
        value = part.get(name)
        if name == "committed_offset" and value == -1:
            return "none"
        if name == "timestamp" and value in TIMES and "offset" not in part:
            return TIMES[value]
        if value is not None and value != -1 and not (name == "timestamp" and "offset" in part):
            return f"{before}{value}"
    return ""


def _named(message: Fields) -> Iterator[tuple[str, str]]:
    for field, value in message.items():
        name = NAMED.get(field.removeprefix(OLD))
        if name is not None and value not in (None, "", -1) and isinstance(value, str | int):
            yield name, f"b{value}" if name == "coordinator" else text(str(value))
