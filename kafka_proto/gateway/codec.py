"""Kafka's messages as bytes: kio's generated schemas say what is in which version, and this reads and writes it.

kio has a reader of its own; it allocates what an array's length says before it looks at what is there, so that a frame
of 20 bytes ends the process. Here no length is believed beyond the bytes that follow it. A message is a dictionary by
field name, as a version has more or fewer of them; durations, moments and error codes are the numbers of the wire.
In a stream of bytes each message has its length before it: that is a frame.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from struct import Struct
from struct import error as StructError
from typing import Any, Literal
from uuid import UUID

from kio.index import UnknownAPIKey, UnknownEntity, load_request_schema, load_response_schema

Fields = Mapping[str, Any]
Kind = Literal["request", "response"]
Reader = Callable[["Source"], Any]
Writer = Callable[[bytearray, Any], None]

MOST_ELEMENTS = 100_000
"""In all arrays of one message; no client asks for as many things at once."""
NULL, THERE = b"\xff", b"\x01"
NO_ID = UUID(int=0)
NO_MOMENT = -1
"""The moment on the wire that means no moment."""


class Malformed(ValueError):
    """Bytes that are not a message of the version that they claim to be."""


class Source:
    """Bytes that are read from front to back."""

    __slots__ = ("at", "data", "elements")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.elements = MOST_ELEMENTS

    @property
    def left(self) -> int:
        return len(self.data) - self.at

    def take(self, size: int) -> bytes:
        """Return the next bytes. Raises Malformed if there are too few."""
        if not 0 <= size <= self.left:
            raise Malformed(f"{size} bytes expected, {self.left} left")
        self.at += size
        return self.data[self.at - size : self.at]

    def varint(self) -> int:
        """Return an unsigned number of at most 32 bits in groups of seven, the lowest first."""
        value = shift = 0
        while shift < 35:
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise Malformed("a number of variable length has more than five bytes")


def write_varint(out: bytearray, value: int) -> None:
    """Append an unsigned number in groups of seven bits, the lowest first."""
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


FORMATS = {
    "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint8": "B", "uint16": "H", "uint32": "I", "uint64": "Q",
    "float64": "d", "bool": "?", "error_code": "h", "timedelta_i32": "i", "timedelta_i64": "q", "datetime_i64": "q",
}


def _fixed(kafka_type: str) -> tuple[Reader, Writer]:
    packed = Struct(">" + FORMATS[kafka_type])

    def read(source: Source) -> Any:
        try:
            (value,) = packed.unpack_from(source.data, source.at)
        except StructError:
            raise Malformed(f"{packed.size} bytes expected, {source.left} left") from None
        source.at += packed.size
        return value

    def write(out: bytearray, value: Any) -> None:
        out += packed.pack(value)

    return read, write


LENGTHS = {"string": _fixed("int16"), "bytes": _fixed("int32"), "records": _fixed("int32")}
ARRAY_LENGTH = _fixed("int32")


def _sized(kafka_type: str, flexible: bool, nullable: bool) -> tuple[Reader, Writer]:
    """Text or bytes after their length: a varint of one more where flexible, else a fixed one; null is -1.

    Where a version has no null, as for the protocol's name in JoinGroup before 7, it is written as empty.
    """
    is_text = kafka_type == "string"
    read_length, write_length = LENGTHS[kafka_type]

    def read(source: Source) -> Any:
        length = source.varint() - 1 if flexible else read_length(source)
        if length < 0:
            if nullable and length == -1:
                return None
            raise Malformed(f"a {kafka_type} of length {length}")
        taken = source.take(length)
        if not is_text:
            return taken
        try:
            return taken.decode()
        except UnicodeDecodeError:
            raise Malformed("a string is not UTF-8") from None

    def write(out: bytearray, value: Any) -> None:
        data = value.encode() if is_text and value is not None else value
        length = len(data or b"") if data is not None or not nullable else -1
        if flexible:
            write_varint(out, length + 1)
        else:
            write_length(out, length)
        out += data or b""

    return read, write


def _uuid(source: Source) -> UUID:
    return UUID(bytes=source.take(16))


def _write_uuid(out: bytearray, value: UUID | None) -> None:
    out += (value or NO_ID).bytes


@cache
def primitive(kafka_type: str, flexible: bool, nullable: bool) -> tuple[Reader, Writer]:
    """Return how a value of a type of Kafka's schemas is read and written."""
    if kafka_type == "uuid":
        return _uuid, _write_uuid
    return _sized(kafka_type, flexible, nullable) if kafka_type in LENGTHS else _fixed(kafka_type)


def _array(element: tuple[Reader, Writer], flexible: bool, nullable: bool) -> tuple[Reader, Writer]:
    read_one, write_one = element

    def read(source: Source) -> tuple[Any, ...] | None:
        length = source.varint() - 1 if flexible else ARRAY_LENGTH[0](source)
        if length == -1 and nullable:
            return None
        source.elements -= length
        if not 0 <= length <= source.left or source.elements < 0:
            raise Malformed(f"an array of {length} elements, and {source.left} bytes left")
        return tuple(read_one(source) for _ in range(length))

    def write(out: bytearray, values: Any) -> None:
        length = -1 if values is None else len(values)
        if flexible:
            write_varint(out, length + 1)
        else:
            ARRAY_LENGTH[1](out, length)
        for value in values or ():
            write_one(out, value)

    return read, write


def _nullable(read_it: Reader, write_it: Writer) -> tuple[Reader, Writer]:
    """Return how a structure is read and written that may be null: a byte says whether it is there."""

    def read(source: Source) -> Any:
        return read_it(source) if source.take(1) == THERE else None

    def write(out: bytearray, value: Any) -> None:
        out += NULL if value is None else THERE
        if value is not None:
            write_it(out, value)

    return read, write


@dataclasses.dataclass(frozen=True)
class Field:
    """A field of a message in one version; with a tag it may be absent, and is where it has its default."""

    name: str
    read: Reader
    write: Writer
    default: Any
    tag: int | None


def _field(field: dataclasses.Field[Any], hint: Any, flexible: bool) -> Field:
    """Return how a field of kio's class is read and written."""
    nullable = isinstance(hint, types.UnionType) and type(None) in typing.get_args(hint)
    inner = next(option for option in typing.get_args(hint) if option is not type(None)) if nullable else hint
    is_array = typing.get_origin(inner) is tuple
    item = typing.get_args(inner)[0] if is_array else inner
    kafka_type = field.metadata.get("kafka_type")
    tag = field.metadata.get("tag")
    if kafka_type is None:
        found = _nullable(*_struct(item)) if nullable and not is_array else _struct(item)
        nothing: Any = None if nullable else () if is_array else {}
    else:
        found = primitive(kafka_type, flexible, nullable and not is_array)
        nothing = None if nullable else "" if kafka_type == "string" else b"" if kafka_type in LENGTHS else 0
        nothing = () if is_array and not nullable else NO_ID if kafka_type == "uuid" else nothing
    read, write = _array(found, flexible, nullable) if is_array else found
    default = nothing if field.default is dataclasses.MISSING else _plain(field.default)
    if default is None and kafka_type in FORMATS and not is_array:
        default = NO_MOMENT
    return Field(field.name, read, write, default, tag)


def _plain(default: Any) -> Any:
    """Return a default of kio's as it is read from the wire."""
    if hasattr(default, "total_seconds"):
        return round(default.total_seconds() * 1000)
    if dataclasses.is_dataclass(default):
        return {field.name: _plain(getattr(default, field.name)) for field in dataclasses.fields(default)}
    return default


@cache
def _struct(cls: Any) -> tuple[Reader, Writer]:
    """Return how a message, or a structure inside it, is read and written."""
    flexible, hints = cls.__flexible__, typing.get_type_hints(cls)
    fields = [_field(field, hints[field.name], flexible) for field in dataclasses.fields(cls)]
    plain = [field for field in fields if field.tag is None]
    tagged = {field.tag: field for field in sorted((f for f in fields if f.tag is not None), key=lambda f: f.tag or 0)}

    def read(source: Source) -> dict[str, Any]:
        message = {field.name: field.read(source) for field in plain}
        if flexible:
            message |= {field.name: field.default for field in tagged.values()} | read_tags(source, tagged)
        return message

    def write(out: bytearray, message: Fields) -> None:
        for field in plain:
            field.write(out, message.get(field.name, field.default))
        if not flexible:
            return
        present = [f for f in tagged.values() if message.get(f.name, f.default) != f.default]
        write_varint(out, len(present))
        for field in present:
            value = bytearray()
            field.write(value, message[field.name])
            write_varint(out, field.tag or 0)
            write_varint(out, len(value))
            out += value

    return read, write


def read_tags(source: Source, known: Mapping[int | None, Field]) -> dict[str, Any]:
    """Return the tagged fields that are known by name; others are skipped (KIP-482)."""
    found: dict[str, Any] = {}
    for _ in range(source.varint()):
        tag, size = source.varint(), source.varint()
        end = source.at + size
        field = known.get(tag)
        if field is None:
            source.take(size)
            continue
        found[field.name] = field.read(source)
        if source.at != end:
            raise Malformed(f"the tagged field {field.name} has not the {size} bytes that it says")
    return found


def structures(value: Any) -> Iterator[dict[str, Any]]:
    """Yield a message and each structure in it, wherever it stands."""
    if isinstance(value, dict):
        yield value
        value = tuple(value.values())
    if isinstance(value, list | tuple):
        for inner in value:
            yield from structures(inner)


@cache
def schema(kind: Kind, api_key: int, version: int) -> Any:
    """Return kio's class of a message. Raises kio's errors if it has none."""
    return (load_request_schema if kind == "request" else load_response_schema)(api_key, version)


def has_version(api_key: int, version: int) -> bool:
    """Say whether requests of an API and version can be written."""
    try:
        return schema("request", api_key, version) is not None
    except (UnknownAPIKey, UnknownEntity):
        return False


def api_name(api_key: int, version: int) -> str:
    """Return what Kafka calls an API, as EndTxn."""
    name: str = schema("request", api_key, version).__name__
    return name.removesuffix("Request")


def has_flexible_header(kind: Kind, api_key: int, version: int) -> bool:
    """Say whether a message's header ends in tagged fields: request header 2, response header 1."""
    return bool(schema(kind, api_key, version).__header_schema__.__flexible__)


def read_message(kind: Kind, api_key: int, version: int, source: Source) -> dict[str, Any]:
    """Return the body of a message; bytes after it are ignored, as brokers do. Raises Malformed."""
    message: dict[str, Any] = _struct(schema(kind, api_key, version))[0](source)
    return message


def write_message(kind: Kind, api_key: int, version: int, message: Fields) -> bytes:
    """Return the body of a message. Fields that the version does not have are left out, absent ones have defaults."""
    out = bytearray()
    _struct(schema(kind, api_key, version))[1](out, message)
    return bytes(out)


SIZE = 4
LONGEST_FRAME = 16 * 1024 * 1024
"""In bytes. Kafka's default is 100 MiB (`socket.request.max.bytes`)."""


class FrameReader:
    """Bytes as they come, in pieces of any size; at most one incomplete frame is kept, as far as it is there."""

    def __init__(self, longest: int = LONGEST_FRAME) -> None:
        self._longest = longest
        self._buffer = bytearray()

    @property
    def waiting(self) -> int:
        """Return how many bytes wait for the rest of their frame."""
        return len(self._buffer)

    def receive(self, data: bytes) -> Iterator[bytes]:
        """Yield the frames that are whole now. Raises Malformed for a length that no frame may have."""
        self._buffer += data
        at = 0
        try:
            while len(self._buffer) - at >= SIZE:
                size = int.from_bytes(self._buffer[at : at + SIZE], "big", signed=True)
                if not 0 <= size <= self._longest:
                    raise Malformed(f"a frame of {size} bytes, where {self._longest} are the most")
                if len(self._buffer) - at - SIZE < size:
                    return
                at += SIZE + size
                yield bytes(self._buffer[at - size : at])
        finally:
            del self._buffer[:at]


def framed(message: bytes | bytearray) -> bytes:
    """Return a message with its length before it."""
    return len(message).to_bytes(SIZE, "big", signed=True) + message
