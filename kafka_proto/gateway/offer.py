"""Which APIs a broker offers, in which versions: by release of Kafka, as far as they are served here.

The ranges are those that brokers of a release announce in KRaft mode, read from the `ApiKeys` of its kafka-clients.
Only APIs that the gateway may serve are in the table; a client sees those of them that are served.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import attrs

from kafka_proto.broker import versions
from kafka_proto.gateway.codec import Fields, has_version

(PRODUCE, FETCH, LIST_OFFSETS, METADATA) = range(4)
(OFFSET_COMMIT, OFFSET_FETCH, FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP) = range(8, 15)
DESCRIBE_GROUPS, LIST_GROUPS = 15, 16
(API_VERSIONS, CREATE_TOPICS, DELETE_TOPICS, DELETE_RECORDS, INIT_PRODUCER_ID) = range(18, 23)
OFFSET_FOR_LEADER_EPOCH = 23
(ADD_PARTITIONS_TO_TXN, ADD_OFFSETS_TO_TXN, END_TXN, WRITE_TXN_MARKERS, TXN_OFFSET_COMMIT) = range(24, 29)
DESCRIBE_ACLS, DESCRIBE_CONFIGS, ALTER_CONFIGS, DESCRIBE_LOG_DIRS, CREATE_PARTITIONS = 29, 32, 33, 35, 37
DELETE_GROUPS, ELECT_LEADERS, INCREMENTAL_ALTER_CONFIGS = 42, 43, 44
LIST_PARTITION_REASSIGNMENTS, OFFSET_DELETE, DESCRIBE_CLIENT_QUOTAS, DESCRIBE_USER_SCRAM_CREDENTIALS = 46, 47, 48, 50
DESCRIBE_QUORUM, DESCRIBE_CLUSTER, DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 55, 60, 61, 65, 66
LIST_CONFIG_RESOURCES = 74
CONSUMER_GROUP_HEARTBEAT, CONSUMER_GROUP_DESCRIBE, DESCRIBE_TOPIC_PARTITIONS = 68, 69, 75
ALTER_REPLICA_LOG_DIRS, ALTER_PARTITION_REASSIGNMENTS = 34, 45
SASL_HANDSHAKE, CREATE_ACLS, DELETE_ACLS, SASL_AUTHENTICATE = 17, 30, 31, 36
ALTER_CLIENT_QUOTAS, ALTER_USER_SCRAM_CREDENTIALS = 49, 51
OF_GROUPS = (OFFSET_COMMIT, JOIN_GROUP, HEARTBEAT, LEAVE_GROUP, SYNC_GROUP, TXN_OFFSET_COMMIT, CONSUMER_GROUP_HEARTBEAT)
"""What a coordinator of groups answers."""

Range = tuple[int, int]
NOWHERE: Range = (0, -1)

KAFKA_3_5: Mapping[int, Range] = {
    PRODUCE: (0, 9), FETCH: (0, 15), LIST_OFFSETS: (0, 8), METADATA: (0, 12), OFFSET_COMMIT: (0, 8),
    OFFSET_FETCH: (0, 8), FIND_COORDINATOR: (0, 4), JOIN_GROUP: (0, 9), HEARTBEAT: (0, 4), LEAVE_GROUP: (0, 5),
    SYNC_GROUP: (0, 5), API_VERSIONS: (0, 3), CREATE_TOPICS: (0, 7), DELETE_TOPICS: (0, 6), DELETE_RECORDS: (0, 2),
    INIT_PRODUCER_ID: (0, 4), ADD_PARTITIONS_TO_TXN: (0, 3), ADD_OFFSETS_TO_TXN: (0, 3), END_TXN: (0, 3),
    WRITE_TXN_MARKERS: (0, 1), TXN_OFFSET_COMMIT: (0, 3), DESCRIBE_CONFIGS: (0, 4), DESCRIBE_CLUSTER: (0, 0),
    DESCRIBE_PRODUCERS: (0, 0), DESCRIBE_TRANSACTIONS: (0, 0), LIST_TRANSACTIONS: (0, 0),
    OFFSET_FOR_LEADER_EPOCH: (0, 4), INCREMENTAL_ALTER_CONFIGS: (0, 1), DESCRIBE_GROUPS: (0, 5), LIST_GROUPS: (0, 4),
    DESCRIBE_ACLS: (0, 3), ALTER_CONFIGS: (0, 2), DESCRIBE_LOG_DIRS: (0, 4), CREATE_PARTITIONS: (0, 3),
    DELETE_GROUPS: (0, 2), ELECT_LEADERS: (0, 2), LIST_PARTITION_REASSIGNMENTS: (0, 0), OFFSET_DELETE: (0, 0),
    DESCRIBE_CLIENT_QUOTAS: (0, 1), DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0), ALTER_REPLICA_LOG_DIRS: (0, 2),
    ALTER_PARTITION_REASSIGNMENTS: (0, 0), SASL_HANDSHAKE: (0, 1), CREATE_ACLS: (0, 3), DELETE_ACLS: (0, 3),
    SASL_AUTHENTICATE: (0, 2), ALTER_CLIENT_QUOTAS: (0, 1), ALTER_USER_SCRAM_CREDENTIALS: (0, 0),
    DESCRIBE_QUORUM: (0, 1),
}
KAFKA_3_6 = {**KAFKA_3_5, ADD_PARTITIONS_TO_TXN: (0, 4)}
KAFKA_3_7 = {
    **KAFKA_3_6, PRODUCE: (0, 10), FETCH: (0, 16), OFFSET_COMMIT: (0, 9), OFFSET_FETCH: (0, 9),
    DESCRIBE_CLUSTER: (0, 1), LIST_CONFIG_RESOURCES: (0, 0),
}
KAFKA_3_8 = {
    **KAFKA_3_7, PRODUCE: (0, 11), FIND_COORDINATOR: (0, 5), INIT_PRODUCER_ID: (0, 5), ADD_PARTITIONS_TO_TXN: (0, 5),
    ADD_OFFSETS_TO_TXN: (0, 4), END_TXN: (0, 4), TXN_OFFSET_COMMIT: (0, 4), LIST_TRANSACTIONS: (0, 1),
    LIST_GROUPS: (0, 5), DESCRIBE_TOPIC_PARTITIONS: (0, 0),
}
KAFKA_3_9 = {
    **KAFKA_3_8, FETCH: (0, 17), LIST_OFFSETS: (0, 9), FIND_COORDINATOR: (0, 6), API_VERSIONS: (0, 4),
    DESCRIBE_QUORUM: (0, 2),
}
KAFKA_4_0 = {
    **KAFKA_3_9, PRODUCE: (3, 12), FETCH: (4, 17), LIST_OFFSETS: (1, 10), METADATA: (0, 13), OFFSET_COMMIT: (2, 9),
    OFFSET_FETCH: (1, 9), JOIN_GROUP: (2, 9), CREATE_TOPICS: (2, 7), DELETE_TOPICS: (1, 6), END_TXN: (0, 5),
    WRITE_TXN_MARKERS: (1, 1), TXN_OFFSET_COMMIT: (0, 5), DESCRIBE_CONFIGS: (1, 4), DESCRIBE_CLUSTER: (0, 2),
    OFFSET_FOR_LEADER_EPOCH: (2, 4), DESCRIBE_GROUPS: (0, 6), DESCRIBE_ACLS: (1, 3), DESCRIBE_LOG_DIRS: (1, 4),
    CONSUMER_GROUP_HEARTBEAT: (0, 1), CONSUMER_GROUP_DESCRIBE: (0, 1), ALTER_REPLICA_LOG_DIRS: (1, 2),
    CREATE_ACLS: (1, 3), DELETE_ACLS: (1, 3),
}
KAFKA_4_1 = {
    **KAFKA_4_0, PRODUCE: (3, 13), FETCH: (4, 18), JOIN_GROUP: (0, 9), LIST_TRANSACTIONS: (0, 2),
    LIST_CONFIG_RESOURCES: (0, 1), ALTER_PARTITION_REASSIGNMENTS: (0, 1),
}
KAFKA_4_2 = {
    **KAFKA_4_1, LIST_OFFSETS: (1, 11), OFFSET_COMMIT: (2, 10), OFFSET_FETCH: (1, 10), WRITE_TXN_MARKERS: (1, 2),
}
KAFKA_4_3 = {**KAFKA_4_2, DESCRIBE_LOG_DIRS: (1, 5)}
KAFKA_4_4 = {**KAFKA_4_3, API_VERSIONS: (0, 5), TXN_OFFSET_COMMIT: (0, 6), DELETE_GROUPS: (0, 3)}

RELEASES: Mapping[str, Mapping[int, Range]] = {
    "3.5.2": KAFKA_3_5, "3.6.2": KAFKA_3_6, "3.7.2": KAFKA_3_7, "3.8.1": KAFKA_3_8, "3.9.2": KAFKA_3_9,
    "4.0.0": KAFKA_4_0, "4.1.1": KAFKA_4_1, "4.2.0": KAFKA_4_2, "4.3.1": KAFKA_4_3, "4.4.0": KAFKA_4_4,
}
LEVELS: Mapping[str, tuple[int, ...]] = {
    release: tuple(range(len(versions.RELEASES[release]))) for release in RELEASES
}
"""The levels of `transaction.version` that a release knows; the last one is what a new cluster gets."""

SERVED_HERE: Mapping[int, Range] = {
    PRODUCE: (3, 13), FETCH: (4, 18), LIST_OFFSETS: (1, 11), OFFSET_COMMIT: (2, 10), OFFSET_FETCH: (1, 10),
    CREATE_TOPICS: (2, 7), DELETE_TOPICS: (1, 6), WRITE_TXN_MARKERS: (1, 2), TXN_OFFSET_COMMIT: (0, 5),
    DESCRIBE_CONFIGS: (1, 4), API_VERSIONS: (0, 4), LIST_TRANSACTIONS: (0, 1), OFFSET_FOR_LEADER_EPOCH: (2, 4),
    DESCRIBE_ACLS: (1, 3), DESCRIBE_LOG_DIRS: (1, 5), DELETE_GROUPS: (0, 2), ALTER_REPLICA_LOG_DIRS: (1, 2),
    CREATE_ACLS: (1, 3), DELETE_ACLS: (1, 3),
}
"""Where less is served than a release offers; kio begins at these versions."""

ANNOUNCED_PRODUCE_FROM = 0
"""What brokers of 4.0 announce besides, though they refuse versions below 3: librdkafka looks at it (KAFKA-18659)."""

UNSUPPORTED_VERSION, INVALID_REQUEST = 35, 42
SOFTWARE = re.compile(r"(?![.-])[A-Za-z0-9.-]+(?<![.-])")


@attrs.frozen
class Offer:
    """What one broker offers: ranges by API, and the finalised level of `transaction.version`."""

    release: str
    transaction_version: int
    ranges: Mapping[int, Range] = attrs.field(eq=False, repr=False)
    announced: Fields | None = attrs.field(default=None, eq=False, repr=False)
    """What a broker of another make says in ApiVersions, as far as its ranges are known here."""

    @property
    def is_of_others(self) -> bool:
        """Say whether it is of a broker of another make."""
        return self.announced is not None

    def takes(self, api_key: int, version: int) -> bool:
        """Say whether a request of this API and version is taken."""
        first, last = self.ranges.get(api_key, NOWHERE)
        return first <= version <= last


def offer_of(release: str, transaction_version: int, served: Iterable[int]) -> Offer:
    """Return what a broker of a release offers, of the APIs that are served.

    Raises ValueError for an unknown release or level, or an API that no release has.
    """
    if release not in RELEASES:
        raise ValueError(f"no release {release}; there are {', '.join(RELEASES)}")
    if transaction_version not in LEVELS[release]:
        known = ", ".join(map(str, LEVELS[release]))
        raise ValueError(f"Kafka {release} has transaction.version {known}, not {transaction_version}")
    unknown = sorted({*served}.difference(*RELEASES.values()))
    if unknown:
        raise ValueError(f"API {unknown[0]} is in no table of a release")
    ranges = {}
    for api in sorted({*served, API_VERSIONS}):
        first, last = RELEASES[release].get(api, NOWHERE)
        lowest, highest = SERVED_HERE.get(api, (first, last))
        if max(first, lowest) <= min(last, highest):
            ranges[api] = max(first, lowest), min(last, highest)
    return Offer(release, transaction_version, ranges)


def offer_before(announced: Fields) -> Offer:
    """Return what is offered before a broker that answered ApiVersions: of its ranges what can be read here."""
    ranges, rows = {}, []
    for row in announced["api_keys"]:
        api, first, last = row["api_key"], row["min_version"], row["max_version"]
        known = [version for version in range(first, last + 1) if has_version(api, version)]
        if known:
            ranges[api] = known[0], known[-1]
            rows.append({"api_key": api, "min_version": first if api == PRODUCE else known[0],
                         "max_version": known[-1]})
    return Offer("", 0, ranges, {**announced, "api_keys": tuple(rows)})


def unsupported_api_versions(offer: Offer) -> Fields:
    """Answer ApiVersions in a version that is not offered: the range that is, in the layout of version 0 (KIP-511)."""
    first, last = offer.ranges[API_VERSIONS]
    return {"version": 0, "error_code": UNSUPPORTED_VERSION,
            "api_keys": ({"api_key": API_VERSIONS, "min_version": first, "max_version": last},)}


def answer_api_versions(offer: Offer, version: int, request: Fields) -> Fields:
    """Answer ApiVersions: what is offered, and from version 3 on the finalised features (KIP-584).

    A client that names its software badly gets only INVALID_REQUEST (`ApiVersionsRequest.isValid`). A feature whose
    lowest version is 0 is not among the supported ones before version 4.
    """
    software = request.get("client_software_name", "-"), request.get("client_software_version", "-")
    if version >= 3 and not all(SOFTWARE.fullmatch(text) for text in software):
        return {"version": version, "error_code": INVALID_REQUEST}
    if offer.announced is not None:
        there = (each for each in offer.announced.get("supported_features", ()) if each["min_version"] or version >= 4)
        return {**offer.announced, "version": version, "supported_features": tuple(there)}
    keys = tuple(
        {"api_key": api, "max_version": last,
         "min_version": ANNOUNCED_PRODUCE_FROM if api == PRODUCE and offer.release >= "4" else first}
        for api, (first, last) in offer.ranges.items()
    )
    feature, highest = "transaction.version", LEVELS[offer.release][-1]
    supported = ({"name": feature, "min_version": 0, "max_version": highest},) if version >= 4 and highest else ()
    level = offer.transaction_version
    finalised = ({"name": feature, "max_version_level": level, "min_version_level": level},) if level else ()
    return {"version": version, "error_code": 0, "api_keys": keys, "supported_features": supported,
            "finalized_features": finalised, "finalized_features_epoch": 1}
