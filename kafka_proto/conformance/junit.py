"""Verdicts about recorded situations as JUnit's XML, which continuous integration shows: a test case for each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from xml.sax.saxutils import escape, quoteattr

from kafka_proto.conformance.playing import RecordVerdict

NOT_XML = re.compile(r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 has no way to write."""


def junit(verdicts: Sequence[RecordVerdict], said: Iterable[str]) -> Iterator[str]:
    """Yield the lines of a report: a suite for each release, level and family of clients; `said` is what was left out.
    """
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<testsuites name="kafka-proto conformance" {_counts(verdicts)}>'
    for suite, rows in groupby(sorted(verdicts, key=_suite), key=_suite):
        cases = list(rows)
        yield f"  <testsuite name={quoteattr(suite)} {_counts(cases)}>"
        for case in cases:
            head = f"    <testcase classname={quoteattr(suite)} name={quoteattr(case.situation)}"
            if case.equal:
                yield f"{head}/>"
                continue
            first, *_ = (*case.differences, "differs")
            yield f'{head}><failure message={quoteattr(_text(first))}>{escape(_text(chr(10).join(case.differences)))}'
            yield "    </failure></testcase>"
        yield "  </testsuite>"
    yield f"  <system-out>{escape(_text(chr(10).join(said)))}</system-out>"
    yield "</testsuites>"


def _suite(verdict: RecordVerdict) -> str:
    return f"{verdict.broker_version}.level{verdict.transaction_version}.{verdict.family}"


def _counts(verdicts: Sequence[RecordVerdict]) -> str:
    return f'tests="{len(verdicts)}" failures="{sum(not each.equal for each in verdicts)}"'


def _text(text: str) -> str:
    return NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)
