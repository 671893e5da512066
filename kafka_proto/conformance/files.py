"""Files of recorded situations: JSON, plain or compressed with gzip; and where they are by default."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VARIABLE = "KAFKA_PROTO_GROUND_TRUTH"
NEEDED = ("situation", "broker_version", "transaction_version", "family", "steps")
OF_A_SCRIPT = ("situation", "family", "steps")
"""What is needed of a record that is to be played on a broker for the first time."""
OF_CLUSTERS = "cluster"
"""The family of records of clusters of three brokers, in which requests of several kinds of clients are."""
FORMAT = 1


class BadFile(Exception):
    """A file that holds no recorded situations; the message is one sentence."""


def default_files(environment: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Return the files to play by default: those that the variable names, else those of the package.

    The variable holds a path or several, as PATH does. Raises BadFile if there is no file at all.
    """
    named = environment.get(VARIABLE)
    if named:
        return tuple(Path(part) for part in named.split(os.pathsep) if part)
    folder = Path(__file__).with_name("recorded")
    found = tuple(sorted(folder.glob("*.json.gz"))) + tuple(sorted(folder.glob("*.json")))
    if not found:
        raise BadFile(f"there are no recorded situations here; name a file, or set {VARIABLE} to one")
    return found


def load(path: Path, needed: tuple[str, ...] = NEEDED) -> list[dict[str, Any]]:
    """Return the records of a file, each with what is needed. Raises BadFile with one sentence for what is no such."""
    try:
        packed = path.read_bytes()
        data = json.loads(gzip.decompress(packed) if packed[:2] == b"\x1f\x8b" else packed)
    except OSError as error:
        raise BadFile(f"cannot read {path}: {error.strerror}; name a file of recorded situations") from None
    except (ValueError, EOFError) as error:
        raise BadFile(f"{path} is not JSON, plain or gzip: {error}") from None
    records = data.get("records") if isinstance(data, dict) else None
    if not isinstance(records, list):
        raise BadFile(f'{path} holds no recorded situations: expected {{"meta": ..., "records": [...]}}')
    for number, record in enumerate(records, 1):
        if isinstance(record, dict) and "replicas" in record:
            record.setdefault("family", OF_CLUSTERS)
        missing = [key for key in needed if not isinstance(record, dict) or key not in record]
        if missing:
            raise BadFile(f"record {number} of {path} has no {missing[0]}")
    return records
