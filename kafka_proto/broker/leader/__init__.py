"""The leader of a partition: what may be appended to its log, and how it is read.

Files: `verification` (is the partition part of the transaction? KIP-890), `appending` (the checks of a batch, in
Kafka's order), `marking` (the checks of a marker), `fetching`, and the `role` that runs them.
"""
