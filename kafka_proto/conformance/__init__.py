"""Conformance: situations recorded on real brokers, played request by request against the broker of a version.

A record holds the requests, the answers, and what was left behind after each step; the format is in
docs/reference/conformance.md. Files: `files` (reading), `player` (the steps), `requests` (a record's JSON and our
values), `playing` (brokers as values, and what differs), `command`. With the extra `gateway`: `situations`,
`odd_batches`, `verbatim` (messages of the wire), `at_broker` (brokers at an address).
"""

from kafka_proto.conformance.files import BadFile, default_files, load
from kafka_proto.conformance.playing import RecordVerdict, judge, play

__all__ = ["BadFile", "RecordVerdict", "default_files", "judge", "load", "play"]
