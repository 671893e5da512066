"""The versions of the transaction protocol, a module for each diary, and the departures from them.

A new version is a module here that lists its decisions, and a line in `kafka_proto.transactions.models`.
"""
