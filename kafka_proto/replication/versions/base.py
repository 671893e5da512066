"""The decisions of the base module KafkaReplication that are flawed as published, S8 and S10."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kafka_proto.replication.isr import shrink_to_nobody
from kafka_proto.replication.leadership import leaders_named
from kafka_proto.replication.records import Isr


@attrs.frozen(kw_only=True)
class BaseVersion:
    """A version of the base module."""

    shrink_by_controller: Callable[[str, str | None, Isr], tuple[str | None, Isr] | None]
    leaders: Callable[[tuple[str, ...], str], tuple[str, ...]]


AS_WRITTEN = BaseVersion(shrink_by_controller=shrink_to_nobody, leaders=leaders_named)
