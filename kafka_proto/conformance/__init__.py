"""Conformance: situations recorded on real brokers, played request by request against the broker of a version.

A record holds the requests, the answers, and what was left behind after each step; see docs/conformance.md for the
format. Files: `files` (reading), `symbols`, `requests` and `observing` (a record's JSON and our values), `playing`
(the steps), `verdict` (what differs, and why that may be), `table`, `command`.
"""

from kafka_proto.conformance.files import BadFile, default_files, load
from kafka_proto.conformance.playing import play
from kafka_proto.conformance.table import agreement
from kafka_proto.conformance.verdict import RecordVerdict, judge

__all__ = ["BadFile", "RecordVerdict", "agreement", "default_files", "judge", "load", "play"]
