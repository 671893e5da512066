"""The leader of a partition: what may be appended to its log, and how it is read.

Files: `verification` (is the partition part of the transaction? KIP-890), `admission` (may a batch be appended? in
Kafka's order), `appending` (its single checks, and those of a marker), `fetching`, and the `role` of them all.
"""
