"""The group coordinator: offsets as records of a log, staged by producer until a marker, and which members may commit.

The log is a partition's log as any other; a batch of it holds `OffsetRecord`s, or the `GroupMetadata` of a group. The
classic group protocol is in `rebalance`; a commit is fenced by its members and generations (KIP-447).
"""
