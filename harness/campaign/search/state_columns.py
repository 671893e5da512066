"""States as columns that every process can read: of each field the canonical text of its value, in a dictionary.

Numbers of values are a process's own, so they never travel. What identifies a state everywhere is a key of
128 bits: of each field a digest of its number and text, all of them together by exclusive or. Two states that differ
in a field have the same key with probability 2^-128.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from harness.explore.packed.layout import Overflow, PackedField, PackedLayout
from harness.model import decode

KEY_BYTES = 16
KEYS = 2**128
"""How many keys there are."""
HIGH, LOW = "hi", "lo"
"""The columns of a key: its words."""
ROWS = 50_000
"""States that are read, and expanded, at once."""
LEVEL = 3
"""Of zstd."""
Array = np.ndarray[Any, np.dtype[Any]]


@attrs.frozen
class Keys:
    """Keys as two arrays of 64-bit words."""

    high: Array
    low: Array

    def __len__(self) -> int:
        return len(self.high)

    @classmethod
    def of(cls, table: pa.Table | pa.RecordBatch) -> Keys:
        """Return the keys of some states."""
        high, low = (table.column(name) for name in (HIGH, LOW))
        return cls(high.to_numpy(), low.to_numpy())

    @classmethod
    def joined(cls, several: Iterable[Keys]) -> Keys:
        """Return all keys of several, sorted, each of them once."""
        parts = list(several)
        empty = np.zeros(0, np.uint64)
        high = np.concatenate([empty, *(part.high for part in parts)])
        low = np.concatenate([empty, *(part.low for part in parts)])
        order = np.lexsort((low, high))
        high, low = high[order], low[order]
        keep = is_first(high, low)
        return cls(high[keep], low[keep])

    def among(self, others: Keys) -> Array:
        """Say of each key whether it is among others, which are sorted."""
        at = np.searchsorted(others.high, self.high)
        found = np.zeros(len(self), bool)
        ahead = np.flatnonzero(at < len(others))
        while len(ahead):
            ahead = ahead[others.high[at[ahead]] == self.high[ahead]]
            found[ahead] |= others.low[at[ahead]] == self.low[ahead]
            at[ahead] += 1
            ahead = ahead[at[ahead] < len(others)]
        return found

    def numbers(self) -> set[int]:
        """Return the keys as integers."""
        return {high << 64 | low for high, low in zip(self.high.tolist(), self.low.tolist(), strict=True)}

    def part(self, parts: int) -> Array:
        """Return of each key the part of the states that it belongs to."""
        return (self.high % np.uint64(parts)).astype(np.int64)


def is_first(high: Array, low: Array) -> Array:
    """Say of each of some sorted keys whether it is another one than that before."""
    first = np.ones(len(high), bool)
    first[1:] = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    return first


class Coder:
    """Turns packed states of a layout into columns, and back; values not met before are interned. Raises Overflow."""

    def __init__(self, layout: PackedLayout, types: Mapping[str, type]) -> None:
        self.layout = layout
        self.types = types
        self._texts: list[list[str]] = [[] for _ in layout.fields]
        self._digests: list[Array] = [np.zeros((0, 2), np.uint64) for _ in layout.fields]

    def keys(self, states: Sequence[int]) -> Keys:
        """Return the keys of packed states."""
        return self._keys(self._words(states))

    def tables(self, states: Sequence[int], parts: int) -> Iterator[tuple[int, pa.Table]]:
        """Yield packed states as tables, one for each part that has some."""
        words = self._words(states)
        keys = self._keys(words)
        ids = [self._ids(words, field) for field in self.layout.fields]
        part = keys.part(parts)
        for number in np.unique(part).tolist():
            rows = np.flatnonzero(part == number)
            columns = {HIGH: pa.array(keys.high[rows]), LOW: pa.array(keys.low[rows])}
            for field, each in zip(self.layout.fields, ids, strict=True):
                columns[str(field.number)] = self._column(field, each[rows])
            yield number, pa.table(columns)

    def packed(self, batch: pa.RecordBatch) -> list[int]:
        """Return the states of a batch as this layout packs them. Raises Overflow."""
        width = self._width()
        words = np.zeros((batch.num_rows, width), np.uint64)
        for field in self.layout.fields:
            column = batch.column(str(field.number))
            numbers = [self._intern(field, text) for text in column.dictionary.to_pylist()]
            ids = np.array(numbers, np.uint64)[column.indices.to_numpy()]
            at, shift = divmod(field.shift, 64)
            words[:, at] |= ids << np.uint64(shift)
            if shift + field.bits > 64:
                words[:, at + 1] |= ids >> np.uint64(64 - shift)
        size = 8 * width
        data = words.astype("<u8").tobytes()
        return [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]

    def _width(self) -> int:
        return (self.layout.bits + 63) // 64

    def _words(self, states: Sequence[int]) -> Array:
        width = self._width()
        data = b"".join([state.to_bytes(8 * width, "little") for state in states])
        return np.frombuffer(data, "<u8").reshape(-1, width)

    def _ids(self, words: Array, field: PackedField) -> Array:
        at, shift = divmod(field.shift, 64)
        found = words[:, at] >> np.uint64(shift)
        if shift + field.bits > 64:
            found = found | words[:, at + 1] << np.uint64(64 - shift)
        return (found & np.uint64(field.low)).astype(np.int64)

    def _keys(self, words: Array) -> Keys:
        self._learn()
        found = np.zeros((len(words), 2), np.uint64)
        for field in self.layout.fields:
            found ^= self._digests[field.number][self._ids(words, field)]
        return Keys(found[:, 0].copy(), found[:, 1].copy())

    def _learn(self) -> None:
        """Take note of the values that fields have got since."""
        for field, texts in zip(self.layout.fields, self._texts, strict=True):
            if len(texts) == len(field.values):
                continue
            more = list(islice(field.ids, len(texts), None))
            digests = b"".join([
                blake2b(f"{field.number}:{text}".encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()
                for text in more
            ])
            texts += more
            words = np.frombuffer(digests, "<u8").reshape(-1, 2).astype(np.uint64)
            self._digests[field.number] = np.concatenate([self._digests[field.number], words])

    def _column(self, field: PackedField, ids: Array) -> pa.DictionaryArray:
        """Return a field of some states: texts of values, each of them once, and numbers of these."""
        texts = self._texts[field.number]
        is_used = np.zeros(len(texts), bool)
        is_used[ids] = True
        used = np.flatnonzero(is_used)
        number = np.zeros(len(texts), np.int32)
        number[used] = np.arange(len(used), dtype=np.int32)
        return pa.DictionaryArray.from_arrays(
            pa.array(number[ids]), pa.array([texts[n] for n in used.tolist()], pa.string())
        )

    def _intern(self, field: PackedField, text: str) -> int:
        found = field.ids.get(text)
        if found is None:
            found = field.intern(tuple(decode(value, self.types) for value in json.loads(f"[{text}]")))
        elif found > field.low:
            raise Overflow(field)
        return found


def to_bytes(table: pa.Table) -> bytes:
    """Return a table as it travels between processes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_bytes(data: bytes) -> pa.Table:
    """Return the table that `to_bytes` made bytes of."""
    with pa.ipc.open_stream(data) as stream:
        return stream.read_all()


def merged(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the states of several tables, each of them once, sorted by key."""
    table = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
    keys = Keys.of(table)
    order = np.lexsort((keys.low, keys.high))
    keep = is_first(keys.high[order], keys.low[order])
    return table.take(pa.array(order[keep]))


def write(path: Path, table: pa.Table) -> None:
    """Write states to a file that can be checked when it is read. Raises OSError."""
    names = [name for name in table.schema.names if name not in (HIGH, LOW)]
    pq.write_table(table, path, compression="zstd", compression_level=LEVEL, use_dictionary=names,
                   dictionary_pagesize_limit=1 << 28, write_statistics=False, store_schema=False,
                   write_page_checksum=True, row_group_size=1 << 20)


def read(path: Path, fields: int) -> Iterator[pa.RecordBatch]:
    """Yield a file's states in batches. Raises OSError and pa.ArrowException for a damaged file."""
    columns = [str(n) for n in range(fields)]
    with pq.ParquetFile(path, read_dictionary=columns, page_checksum_verification=True) as file:
        yield from file.iter_batches(ROWS)


def read_keys(path: Path) -> Keys:
    """Return the keys of a file. Raises OSError and pa.ArrowException for a damaged file."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        return Keys.of(file.read([HIGH, LOW]).combine_chunks())
