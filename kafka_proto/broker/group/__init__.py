"""The group coordinator: offsets as records of a log, staged by producer until a marker, and who may commit them.

The log is a partition's log as any other; a batch of it holds `OffsetRecord`s. The group protocol is not modelled, but
its members and generations are, since a commit is fenced by them (KIP-447).
"""
