"""The frozen map, a value that protocols are made of: see `values`."""

from __future__ import annotations

from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, TypeVar, overload

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

_TEXT, _NUMBER = frozenset({str}), frozenset({int})


class FrozenMap(Mapping[K, V]):
    """An immutable map whose items are kept in one order: that of its keys if all are texts, or all are whole numbers.

    Other keys, and those of several kinds, are in the order of their canonical text.
    """

    __slots__ = ("_hash", "_items", "_text")
    _items: dict[K, V]
    _text: str | None
    _hash: int | None

    def __init__(self, items: Mapping[K, V] | Iterable[tuple[K, V]] = ()) -> None:
        given = dict(items)
        has_own = _TEXT.issuperset(map(type, given)) or _NUMBER.issuperset(map(type, given))
        keys: Iterable[K] = sorted(given) if has_own else _sort(given)  # type: ignore[type-var]
        self._items = {key: given[key] for key in keys}
        self._hash = None
        self._text = None

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    @overload
    def get(self, key: K, default: None = None, /) -> V | None: ...
    @overload
    def get(self, key: K, default: V | T, /) -> V | T: ...
    def get(self, key: K, default: Any = None, /) -> Any:
        """Return the value of a key, or `default` if it is missing."""
        return self._items.get(key, default)

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def items(self) -> ItemsView[K, V]:
        return self._items.items()

    def keys(self) -> KeysView[K]:
        return self._items.keys()

    def values(self) -> ValuesView[V]:
        return self._items.values()

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(tuple(self._items.items()))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenMap) and self._items == other._items

    def __repr__(self) -> str:
        return f"FrozenMap({self._items!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (FrozenMap, (self._items,))

    def set(self, key: K, value: V) -> FrozenMap[K, V]:
        """Return this map with one key set."""
        if key in self._items:
            return _in_order({**self._items, key: value})
        return FrozenMap({**self._items, key: value})

    def update(self, changes: Mapping[K, V]) -> FrozenMap[K, V]:
        """Return this map with several keys set."""
        return FrozenMap({**self._items, **changes})

    def without(self, key: K) -> FrozenMap[K, V]:
        """Return this map without a key (which may be absent)."""
        if key not in self._items:
            return self
        kept = self._items.copy()
        del kept[key]
        # If they differ in kind, the remaining keys may be all of one kind, as the map was not.
        return _in_order(kept) if type(next(iter(kept), key)) is type(key) else FrozenMap(kept)


def _in_order(items: dict[K, V]) -> FrozenMap[K, V]:
    """Return a map of items that are in its order already."""
    made: FrozenMap[K, V] = object.__new__(FrozenMap)
    made._items = items
    made._hash = None
    made._text = None
    return made


_sort: Callable[[Iterable[Any]], list[Any]] = sorted


def sort_keys_by(sort: Callable[[Iterable[Any]], list[Any]]) -> None:
    """Have keys that have no order of their own sorted by a function: that of `values`, which needs maps itself."""
    global _sort
    _sort = sort
