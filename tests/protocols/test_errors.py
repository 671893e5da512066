"""The table of error codes against the names and numbers of Kafka's own sources."""

from __future__ import annotations

import csv
from pathlib import Path

import attrs
import pytest

from kafka_proto import errors
from kafka_proto.errors import CODES, Code, Error
from kafka_proto.transactions.records import SpecError as TransactionError

KAFKAS = Path(__file__).parents[1] / "data" / "kafka" / "errors.csv"
"""All of the enum `Errors` (4.0), with the exception of each and whether that is a RetriableException."""


def departures(codes: tuple[Code, ...]) -> list[str]:
    """Return the codes whose number, or whether they are retriable, is not Kafka's."""
    with KAFKAS.open(encoding="utf-8") as file:
        theirs = {row["name"]: (int(row["number"]), row["retriable"] == "true") for row in csv.DictReader(file)}
    return [code.name for code in codes if code.number is not None
            and theirs.get(code.name) != (code.number, code.retriable)]


def test_table_is_kafkas() -> None:
    """By name, number and whether a client may ask again; the one without a number is no code of Kafka's."""
    assert departures(CODES) == []
    assert [code.name for code in CODES if code.number is None] == ["DIVERGING_EPOCH"]
    numbers = [code.number for code in CODES if code.number is not None]
    assert numbers == sorted(set(numbers)) and len(errors.BY_NAME) == sum(1 + len(code.spec) for code in CODES)


@pytest.mark.parametrize("wrong", [{"number": 17}, {"retriable": False}, {"name": "NOT_THE_COORDINATOR"}])
def test_wrong_row_is_noticed(wrong: dict[str, object]) -> None:
    """A row with another number, name or verdict is none of Kafka's."""
    row = attrs.evolve(errors.BY_NAME["NotCoordinator"], **wrong)  # type: ignore[arg-type]
    assert departures((row,)) == [row.name]


@pytest.mark.parametrize("code", [*TransactionError, *Error])
def test_code_of_actors_or_specs_has_a_row(code: TransactionError | Error) -> None:
    """Every code that a model uses is in the table: by the name that it has there."""
    assert code.value in (code.kafka.name, *code.kafka.spec)


def test_success_is_neither_retried_nor_a_proof_that_nothing_was_done() -> None:
    """What is no error, a time-out and a deposed leader's refusals are not definite; a fenced producer did nothing."""
    unclear = ("NONE", "REQUEST_TIMED_OUT", "NOT_LEADER_OR_FOLLOWER", "NOT_COORDINATOR")
    assert not any(errors.BY_NAME[name].definite for name in unclear) and not errors.BY_NAME["OK"].retriable
    assert TransactionError.PRODUCER_FENCED.is_definite and not TransactionError.PRODUCER_FENCED.is_retriable
