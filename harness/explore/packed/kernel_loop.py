"""The inner loop in C: states in the kernel, by its tables, which Python fills where an entry is missing.

The kernel goes batch by batch. Where it needs an entry that it does not have it calls `KernelLoop._miss`; what Python
raises there is kept, the kernel stops, and `expand` raises it again. Where a field got too narrow all states are packed
anew in place, if they still fit the kernel's words.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from weakref import ref

from harness.explore.packed.footprints import Channel, PackedEdge
from harness.explore.packed.kernel import MISS, WORDS, library
from harness.explore.packed.layout import Overflow
from harness.explore.packed.look_ups import NOTHING, LookUp, TableEntry
from harness.explore.packed.loop import ASKED, DEADLOCK, Answered, Arrows, LevelSizes, LoopOptions
from harness.explore.packed.space import Space
from harness.explore.packed.spool import Spool, for_kernel, from_kernel, from_words, to_words
from harness.explore.reduction.symmetry import OrbitTable

BITS = {words: 64 * words - 1 for words in WORDS}
"""How wide a state may be, by the words that it has in the kernel."""
EARLY = 3_000_000
"""States up to which it is early."""
SLICE = 50_000
"""States that are expanded before Python looks around (Ctrl-C, progress)."""
BATCH = 2_048
"""States that are expanded together, by one thread or several; no more."""
NONE = 0xFFFFFFFF
LOOK_UP, CHANNEL = 0, 1
"""What the kernel may miss, besides an image: as in kernel.c."""
NO_MEMORY = -2
Moved = Callable[[Callable[[int], int]], None]
"""Called when states are packed anew, with the function that does it."""


class Full(Exception):
    """There is no more memory: the kernel stops at the state at hand."""


class KernelLoop(LevelSizes):
    """States as some 64-bit words each in the kernel; its tables mirror those of the space."""

    name = "kernel"
    contexts: Mapping[int, int] = MappingProxyType({100_000: 500, 1_000_000: 10_000})

    def __init__(self, space: Space, options: LoopOptions, moved: Moved, reserve: int, words: int) -> None:
        assert not options.hidden
        self.space = space
        self.width = words
        self.reserve = reserve
        """Bits that must be left while it is early: to begin again with narrower states costs little then."""
        self.options = options
        self.moved = moved
        self.c = library(words)
        self.missed = bytearray(8 * words)
        """The state for which the kernel misses something."""
        this = ref(self)  # the kernel's callback must not keep the loop alive, which would keep the kernel alive

        def miss(kind: int, number: int) -> int:
            loop = this()
            return -1 if loop is None else loop._miss(kind, number)

        self.callback = MISS(miss)
        self.kernel = self.c.kernel_new(self.callback, (ctypes.c_char * len(self.missed)).from_buffer(self.missed))
        if self.c.kernel_options(
            self.kernel, options.symmetry is not None, options.deadlocks, options.fingerprints, options.threads,
            BATCH,
        ):
            raise MemoryError
        self.position = 0
        self.ends = []
        self.dropped = 0
        """States that are in the spool and no more in the kernel."""
        self.spool = Spool() if options.fingerprints else None
        self.settled: set[str] = set()
        """Properties whose answers are not needed any more."""
        self.error: BaseException | None = None
        self.asked = 0
        self.may_stop = False
        """Whether it may stop where there is no more memory."""
        self.out_done = 0
        self._forget()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Give the kernel's memory back."""
        if kernel := getattr(self, "kernel", None):
            self.kernel = None
            self.c.kernel_free(kernel)

    def _forget(self) -> None:
        self.look_ups: list[LookUp] = []
        self.channels: list[Channel] = []
        self.entries: list[TableEntry] = []
        self.orbits: list[OrbitTable] = []
        self.numbers: dict[LookUp | Channel | TableEntry | OrbitTable, int] = {}
        """Each one's number in the kernel among its kind."""

    @property
    def generated(self) -> int:
        return self._counts()[2]

    def _counts(self) -> array[int]:
        counts = array("Q", bytes(64))
        self.c.kernel_counts(self.kernel, _at(counts))
        return counts

    def start(self, states: Sequence[int]) -> None:
        self._roots()
        if self.options.symmetry is not None:
            states = [self.options.symmetry.least(state) for state in states]
        self._seed(to_words(states, self.width))
        self.c.kernel_add_generated(self.kernel, len(states))
        self.ends = [self._counts()[1]]

    def restore(self, levels: Iterable[Sequence[int]], position: int, generated: int) -> None:
        self._roots()
        for level in levels:
            self._seed(to_words(level, self.width))
            self.ends.append(self._counts()[1])
        if self.spool is not None:
            for end in self.ends[: -2 if position else -1]:
                self.spool.put(self._read(self.dropped, end))
                self.c.kernel_drop(self.kernel, end - self.dropped)
                self.dropped = end
        self.position = position
        self.c.kernel_add_generated(self.kernel, generated)

    def _seed(self, words: array[int]) -> None:
        if code := self.c.kernel_seed(self.kernel, _at(words), len(words) // self.width):
            self._raise(code)

    def _roots(self) -> None:
        self._entry(NOTHING)
        roots = array("I", [self._look_up(root) for root in self.space.roots])
        bounds = NONE if self.space.bounds is None else self._look_up(self.space.bounds)
        self.c.kernel_roots(self.kernel, _at(roots), len(roots), bounds)
        if self.options.symmetry is not None:
            self._orbit(self.options.symmetry.root)

    def expand(self, answered: Answered) -> Iterator[int]:
        if self.space.settle():
            self._roots()
        if not self.position:
            self.ends.append(self.ends[-1])
        begin = self.ends[-3] if len(self.ends) > 2 else 0
        end = self.ends[-2]
        while self.position < end - begin:
            first = array("Q", [begin + self.position - self.dropped])
            upto = min(end, begin + self.position + SLICE)
            self.may_stop = True
            code = self.c.kernel_expand(self.kernel, _at(first), upto - self.dropped)
            self.may_stop = False
            self.position = first[0] + self.dropped - begin
            self.ends[-1] = self._counts()[1]
            self._events(answered)
            if isinstance(self.error, Full):
                self.error = None
            elif code and not (isinstance(self.error, Overflow) and self._repack()):
                self._raise(code)
            if self.position:  # else nothing is done yet, and the level would look as if it were
                yield self.position
        self.position = 0
        if self.spool is not None:
            self.spool.put(self._read(self.dropped, end))
            self.c.kernel_drop(self.kernel, end - self.dropped)
            self.dropped = end

    def _raise(self, code: int) -> None:
        error, self.error = self.error, None
        if error is not None:
            raise error
        if code == NO_MEMORY:
            raise MemoryError
        raise AssertionError(f"the kernel stopped with code {code}")

    def _events(self, answered: Answered) -> None:
        count = self._counts()[3]
        if not count:
            return
        events = array("Q", bytes(16 * count))
        self.c.kernel_read_events(self.kernel, _at(events))
        by_entry: dict[int, list[int]] = {}
        for n in range(0, len(events), 2):
            by_entry.setdefault(events[n + 1] & NONE, []).append(events[n])
        for number, places in by_entry.items():
            answers = DEADLOCK if number == NONE else self.entries[number].answers
            if all(name in self.settled for name, _ in answers):
                if number != NONE:
                    self.c.kernel_mute(self.kernel, number)
                continue
            answered(answers, [self._state(n + self.dropped) for n in places])

    def _read(self, begin: int, end: int) -> array[int]:
        words = array("Q", bytes(8 * self.width * (end - begin)))
        self.c.kernel_read(self.kernel, begin - self.dropped, end - self.dropped, _at(words))
        return words

    def _state(self, number: int) -> int:
        return from_words(self._read(number, number + 1), self.width)[0]

    def words(self, number: int) -> array[int]:
        if self.spool is not None and number < self.spool.count:
            return self.spool.get(number)
        return self._read(self.ends[number - 1] if number else 0, self.ends[number])

    def level(self, number: int) -> Sequence[int]:
        return from_words(self.words(number), self.width)

    def sample(self, number: int, most: int) -> Sequence[int]:
        words = self.words(number)
        count = len(words) // self.width
        return self._picked(words, range(0, count, max(1, count // most)))

    def sources(self, level: int, targets: set[int]) -> list[int]:
        states = self.words(level)
        number = len(states) // self.width
        wanted = to_words(sorted(targets), self.width)
        found = array("Q", bytes(8 * number))
        count = self.c.kernel_sources(self.kernel, _at(wanted), len(targets), _at(states), number, _at(found))
        if count < 0:
            self._raise(count)
        return self._picked(states, found[:count])

    def _picked(self, words: array[int], places: Iterable[int]) -> list[int]:
        """Return the states at some places only: to make integers of a whole level takes long."""
        return [from_words(words[n * self.width : (n + 1) * self.width], self.width)[0] for n in places]

    def outside(self) -> list[int]:
        count = self._counts()[4]
        if count == self.out_done:
            return []
        words = array("Q", bytes(8 * self.width * count))
        self.c.kernel_read_outside(self.kernel, _at(words))
        done, self.out_done = self.out_done, count
        return from_words(words, self.width)[done:]

    def arrows(self) -> Arrows:
        room = self.generated
        sources, targets, labels = array("i", bytes(4 * room)), array("i", bytes(4 * room)), array("i", bytes(4 * room))
        count = self.c.kernel_graph(
            self.kernel, 0, self.ends[-1], _at(sources), _at(targets), _at(labels), room
        )
        if count < 0:
            self._raise(count)
        edges: list[PackedEdge] = []
        for found in self.entries:
            edges += found.edges
        return Arrows(memoryview(sources)[:count], memoryview(targets)[:count], memoryview(labels)[:count], edges)

    def rearranged(self) -> None:
        self._roots()

    def count(self) -> None:
        hits = array("Q", bytes(8 * len(self.entries)))
        self.c.kernel_hits(self.kernel, _at(hits))
        for found, count in zip(self.entries, hits, strict=True):
            if count:
                self.space.tally(found, count)

    def soon(self) -> int:
        return self._counts()[6]

    @property
    def together(self) -> int:
        """Return how many states were looked up by several threads."""
        return self._counts()[7]

    def _repack(self) -> bool:
        """Give the fields more room and pack all states anew; say whether that was possible."""
        early = self._counts()[1] < EARLY
        if early and self.space.layout.expected() > BITS[self.width] - self.reserve:
            return False
        self.count()
        fields = self.space.layout.fields
        before = [(field.shift, field.low) for field in fields]
        if not self.space.layout.fit_into(BITS[self.width]):
            return False
        self.error = None
        self.space.repack()
        if self.options.symmetry is not None:
            self.options.symmetry.repack()
        shifts, lows = array("I", [shift for shift, _ in before]), array("Q", [low for _, low in before])
        now = array("I", [field.shift for field in fields])
        how = (_at(shifts), _at(lows), _at(now), len(before))
        if code := self.c.kernel_repack(self.kernel, *how):
            self._raise(code)
        if self.spool is not None:
            dropped, self.spool = self.spool, Spool()
            for number in range(dropped.count):
                words = dropped.get(number)
                if code := self.c.kernel_repack_dropped(self.kernel, _at(words), len(words) // self.width, *how):
                    self._raise(code)
                self.spool.put(words)
        self._forget()
        self._roots()
        self.moved(lambda state: sum(
            ((state >> shift) & low) << field.shift for (shift, low), field in zip(before, fields, strict=True)
        ))
        return True

    def _miss(self, kind: int, number: int) -> int:
        """Fill what the kernel misses; called from it, so that errors are kept for later."""
        try:
            self.asked += 1
            if self.asked % ASKED == 0 and self.may_stop and self.options.is_full():
                raise Full
            state = from_kernel(self.missed)
            if kind == LOOK_UP:
                found = self.look_ups[number].fill(state)
                if self.space.narrowed:
                    self._narrow()
                return self._entry(found)
            if kind == CHANNEL:
                channel = self.channels[number]
                field = channel.field
                difference = channel[state & field.mask]
                at = (state >> field.shift) & field.low
                return int(self.c.kernel_difference(self.kernel, number, at, for_kernel(difference, self.width)))
            return self._image(self.orbits[number], state)
        except BaseException as error:
            self.error = error
            return -1

    def _narrow(self) -> None:
        for look_up in self.space.narrowed:
            if (changed := self.numbers.get(look_up)) is not None:
                self.c.kernel_narrow(self.kernel, changed, for_kernel(look_up.mask, self.width))
        self.space.narrowed.clear()

    def _look_up(self, look_up: LookUp) -> int:
        number = self.numbers.get(look_up)
        if number is None:
            mask = for_kernel(look_up.mask, self.width)
            number = self.numbers[look_up] = int(self.c.kernel_look_up(self.kernel, mask))
            self.look_ups.append(look_up)
        return number

    def _channel(self, channel: Channel) -> int:
        number = self.numbers.get(channel)
        if number is None:
            field = channel.field
            number = self.numbers[channel] = int(self.c.kernel_channel(self.kernel, field.shift, field.low))
            self.channels.append(channel)
        return number

    def _entry(self, found: TableEntry) -> int:
        number = self.numbers.get(found)
        if number is None:
            children = [self._look_up(child) for child in found.children]
            words = [found.ways, len(found.answers), len(children), *children]
            words.append(len(found.edges))
            deltas = iter(to_words([edge.delta for edge in found.edges], self.width))
            for edge in found.edges:
                words += [*islice(deltas, self.width), len(edge.channels), *(self._channel(c) for c in edge.channels)]
            flat = array("Q", words)
            number = self.numbers[found] = int(self.c.kernel_entry(self.kernel, _at(flat)))
            self.entries.append(found)
        return number

    def _orbit(self, node: OrbitTable) -> int:
        number = self.numbers.get(node)
        if number is None:
            number = self.numbers[node] = int(self.c.kernel_orbit(self.kernel, for_kernel(node.mask, self.width)))
            self.orbits.append(node)
        return number

    def _image(self, node: OrbitTable, state: int) -> int:
        assert self.options.symmetry is not None
        bits, stays, after, _, _ = self.options.symmetry.fill(node, state)
        following = NONE if after is None else self._orbit(after)
        part, rest = for_kernel(bits, self.width), for_kernel(stays, self.width)
        return int(self.c.kernel_image(self.kernel, part, rest, following))


def _at(values: array[int]) -> int:
    """Return where an array is in memory; keep the array while the kernel uses it."""
    return values.buffer_info()[0]
