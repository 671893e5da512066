"""State graphs as encoded data, brought into the one form in which they are compared."""

from __future__ import annotations

import json
from typing import Any


def normal(data: Any) -> Any:
    """Return encoded data with every set in one order, whoever wrote it."""
    if isinstance(data, list):
        return [normal(item) for item in data]
    if not isinstance(data, dict):
        return data
    if "$set" in data:
        return {"$set": sorted((normal(item) for item in data["$set"]), key=text)}
    return {key: normal(item) for key, item in data.items()}


def text(data: Any) -> str:
    """Return encoded data as the text by which two states are compared."""
    return json.dumps(normal(data), sort_keys=True)
