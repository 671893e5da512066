"""Pulsar topic compaction (seed specification: CompactedLedger).

The executable specification of this system is the next step of the project; nothing is here yet.
"""
