"""Settings of the coordinator of groups."""

from __future__ import annotations

import attrs


@attrs.frozen
class GroupConfig:
    """Settings of a broker, by Kafka's names, in milliseconds."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000


KAFKAS_GROUPS = GroupConfig()
