"""A library whose server keeps its state in parts: a shelf is one, its desk another (docs/use/your-own-protocol.md)."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from harness import model as m


@attrs.frozen
class Put(m.Message):
    shelf: str
    book: str


@attrs.frozen
class Borrow(m.Message):
    shelf: str


@attrs.frozen
class Answer(m.Message):
    book: str


@attrs.frozen
class Shelf:
    books: tuple[str, ...] = m.persisted(default=())
    borrowed: int = m.volatile(default=0)  # since the server was started


@attrs.frozen
class Desk:
    readers: frozenset[str] = m.volatile(default=frozenset())


@attrs.frozen
class Reader:
    requests: tuple[m.Message, ...]
    answers: tuple[str, ...] = ()


DESK = m.Part("desk", Desk())
SHELF = m.Parts("shelf", Shelf)


class Library(m.Actor[m.Local]):
    """The server. Its state is in the slots `library[desk]`, `library[shelf][a]`, `library[shelf][b]`, ..."""

    name = "library"
    may_crash = True

    def __init__(self, *shelves: str) -> None:
        self.initial = m.Local.first(self.name, DESK, *(SHELF[shelf] for shelf in shelves))

    def on_message(self, local: m.Local, message: m.Message) -> Iterable[m.Turn[m.Local]]:
        match message:
            case Put(shelf=name, book=book):
                shelf = local[SHELF[name]]
                after = local.put(SHELF[name], attrs.evolve(shelf, books=(*shelf.books, book)))
                yield m.Turn("ReceivePut", (message.source,), after, (self.answer(message, book),), flush=True)
            case Borrow(shelf=name) if local[SHELF[name]].books:
                shelf, desk = local[SHELF[name]], local[DESK]
                after = local.put(SHELF[name], Shelf(shelf.books[1:], shelf.borrowed + 1))
                after = after.put(DESK, Desk(desk.readers | {message.source}))
                yield m.Turn("ReceiveBorrow", (message.source,), after, (self.answer(message, shelf.books[0]),))

    def answer(self, request: m.Message, book: str) -> Answer:
        return Answer(book, source=self.name, dest=request.source)


class Client(m.Actor[Reader]):
    """Sends one request after the other, and keeps the answers."""

    def __init__(self, name: str, *requests: m.Message) -> None:
        self.name = name
        self.initial = Reader(requests)

    def step(self, local: Reader) -> Iterable[m.Turn[Reader]]:
        for first in local.requests[:1]:
            yield m.Turn("Send", (self.name,), attrs.evolve(local, requests=local.requests[1:]), (first,))

    def on_message(self, local: Reader, message: m.Message) -> Iterable[m.Turn[Reader]]:
        if isinstance(message, Answer):
            after = attrs.evolve(local, answers=(*local.answers, message.book))
            yield m.Turn("ReceiveAnswer", (self.name,), after)


def books_of(shelf: Shelf) -> tuple[str, ...]:
    return shelf.books


def no_copy(view: m.View, shelf: str) -> m.Reason:
    """A property that reads what it is about, and no more."""
    books = SHELF[shelf].derived(view, "library", books_of)
    return None if len(set(books)) == len(books) else f"a book stands on shelf {shelf} twice"


def library(faults: m.Faults = m.NO_FAULTS, server: type[Library] = Library) -> m.Model:
    def ask(kind: type[m.Message], **fields: str) -> m.Message:
        return kind(**fields, source="c1", dest="library")  # type: ignore[call-arg]

    requests = (ask(Put, shelf="a", book="x"), ask(Put, shelf="b", book="y"), ask(Borrow, shelf="a"))
    return m.Model(
        "library", (Client("c1", *requests), server("a", "b")), ({},), m.BAG, faults,
        (m.always("NoCopy", no_copy, over=("a", "b")),), types=(Put, Borrow, Answer, Shelf, Desk, Reader),
    )
