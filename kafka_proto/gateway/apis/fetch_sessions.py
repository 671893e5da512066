"""Fetch sessions (KIP-227): a broker remembers which partitions a reader fetches, and tells only what is new of them.

A session begins with a whole fetch, and goes on under its number with epochs 1, 2 and so on. A broker that stops
forgets its sessions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

import attrs

from kafka_proto.gateway.codec import Fields
from kafka_proto.gateway.connection import WireRequest
from kafka_proto.gateway.context import NO_ERROR, AskedBroker, code
from kafka_proto.gateway.topic_ids import NO_TOPIC, goes_by_id, text

NO_SESSION = 0
FIRST_EPOCH, LAST_EPOCH, NO_EPOCH = 0, 2**31 - 1, -1
MOST_SESSIONS = 1_000
"""Kafka's `max.incremental.fetch.session.cache.slots`."""
UNUSED_MS = 120_000
"""After which a session may give way to a new one (`min.incremental.fetch.session.eviction.ms`)."""
Topic = UUID | str
Key = tuple[Topic, int]
TOLD = ("high_watermark", "log_start_offset")


@attrs.define
class FetchedPartition:
    """A partition of a session: how it is to be read, and what its reader knows of it."""

    wanted: Fields
    told: tuple[int, ...] = (-1, -1)


@attrs.define
class FetchSession:
    """A session: the epoch that its next fetch has to have, and its partitions, those with the oldest news first."""

    by_id: bool
    partitions: dict[Key, FetchedPartition]
    epoch: int = FIRST_EPOCH + 1
    used: int = 0


@attrs.define
class FetchSessions:
    """The sessions of a broker, by number."""

    numbered: dict[int, FetchSession] = attrs.field(factory=dict)
    made: int = 0


class NoSuchSession(Exception):
    """A fetch is of no session that there is; the message is the error's name."""


@attrs.frozen
class FetchContext:
    """What a fetch is about: the partitions to read, those of its session or all that it names."""

    here: AskedBroker
    partitions: dict[Key, FetchedPartition]
    number: int = NO_SESSION
    begins: bool = False
    by_id: bool = False

    def rows(self) -> Iterator[tuple[Key, str, Fields]]:
        """Yield each partition with its topic's name as it is now."""
        for key, partition in tuple(self.partitions.items()):
            yield key, name_of(self.here, key[0]), partition.wanted

    def response(self, found: dict[Key, Fields]) -> Fields:
        """Return the part of the response that is about partitions and the session, of what was found."""
        number = self.number
        if self.begins:
            number = self._begun(found)
        elif number != NO_SESSION:
            found = {key: fields for key, fields in found.items() if self._is_news(key, fields)}
        topics: dict[Topic, list[Fields]] = {}
        for (topic, _), fields in found.items():
            topics.setdefault(topic, []).append(fields)
        return {"session_id": number, "responses": tuple(
            {"topic": name_of(self.here, topic), **({"topic_id": topic} if isinstance(topic, UUID) else {}),
             "partitions": tuple(rows)} for topic, rows in topics.items())}

    def _begun(self, found: dict[Key, Fields]) -> int:
        """Return the number of a new session, if there is room for it."""
        sessions, now = sessions_of(self.here), self.here.cluster.now
        if len(sessions.numbered) >= MOST_SESSIONS:
            oldest = min(sessions.numbered, key=lambda number: sessions.numbered[number].used)
            if now - sessions.numbered[oldest].used <= UNUSED_MS:
                return NO_SESSION
            del sessions.numbered[oldest]
        sessions.made += 1
        for key, partition in self.partitions.items():
            partition.told = _told(found[key])
        sessions.numbered[sessions.made] = FetchSession(self.by_id, self.partitions, used=now)
        return sessions.made

    def _is_news(self, key: Key, fields: Fields) -> bool:
        """Say whether a reader is told of a partition: records, other offsets, an error; with records it goes last."""
        partition = self.partitions.get(key)
        if partition is None:  # forgotten by another fetch meanwhile
            return False
        before, partition.told = partition.told, _told(fields)
        if fields["records"]:
            self.partitions[key] = self.partitions.pop(key)
        if fields["error_code"] != NO_ERROR:
            partition.told = (-1, partition.told[1])
            return True
        return bool(fields["records"]) or before != partition.told or "diverging_epoch" in fields


def context_of(here: AskedBroker, request: WireRequest) -> FetchContext:
    """Return what a fetch is about. Raises NoSuchSession."""
    message = request.message
    number, epoch = message.get("session_id", NO_SESSION), message.get("session_epoch", NO_EPOCH)
    sessions, by_id = sessions_of(here), goes_by_id(request.api_key, request.version)
    given = {(_topic(row, by_id), wanted["partition"]): FetchedPartition(wanted)
             for row in message["topics"] for wanted in row["partitions"]}
    if epoch in (FIRST_EPOCH, NO_EPOCH):
        sessions.numbered.pop(number, None)
        return FetchContext(here, given, begins=epoch == FIRST_EPOCH, by_id=by_id)
    session = sessions.numbered.get(number)
    if session is None:
        raise NoSuchSession("FETCH_SESSION_ID_NOT_FOUND")
    if session.epoch != epoch:
        raise NoSuchSession("INVALID_FETCH_SESSION_EPOCH")
    if session.by_id != by_id:
        raise NoSuchSession("FETCH_SESSION_TOPIC_ID_ERROR")
    for key, partition in given.items():
        session.partitions.setdefault(key, partition).wanted = partition.wanted
    for row in message.get("forgotten_topics_data", ()):
        for index in row["partitions"]:
            session.partitions.pop((_topic(row, by_id), index), None)
    session.epoch, session.used = epoch % LAST_EPOCH + 1, here.cluster.now
    if not session.partitions:
        del sessions.numbered[number]
        return FetchContext(here, {})
    return FetchContext(here, session.partitions, number)


def refused(error: NoSuchSession) -> Fields:
    """Return the response to a fetch of no session."""
    return {"error_code": code(str(error)), "session_id": NO_SESSION, "responses": ()}


def sessions_of(here: AskedBroker) -> FetchSessions:
    """Return the sessions of the broker that is asked."""
    return here.cluster.kept(here.name, FetchSessions)


def name_of(here: AskedBroker, topic: Topic) -> str:
    """Return a topic's name; one that no topic has for an id that no topic has."""
    return topic if isinstance(topic, str) else here.cluster.topic_names.get(topic, NO_TOPIC + text(topic))


def _topic(row: Fields, by_id: bool) -> Any:
    return row["topic_id"] if by_id else row["topic"]


def _told(fields: Fields) -> tuple[int, ...]:
    return tuple(fields.get(name, -1) for name in TOLD)


def partitions_in(topics: Iterable[Fields]) -> Iterator[Fields]:
    """Yield the partitions of a response."""
    return (fields for topic in topics for fields in topic["partitions"])
