"""Settings of the coordinator of groups."""

from __future__ import annotations

from enum import StrEnum

import attrs


class MigrationPolicy(StrEnum):
    """Which way a group may go from one protocol to the other while it has members (`ConsumerGroupMigrationPolicy`)."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def upgrades(self) -> bool:
        """Whether a classic group may become one of consumers."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def downgrades(self) -> bool:
        """Whether a group of consumers may become a classic one."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


@attrs.frozen
class GroupConfig:
    """Settings of a broker, by Kafka's names, in milliseconds."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_consumer_migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL


KAFKAS_GROUPS = GroupConfig()
