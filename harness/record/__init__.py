"""The two artifacts of a run: trail (the decisions) and history (what happened). Reading, writing, digests."""

from harness.record.history import (
    Event,
    History,
    Recorder,
    header_of,
    history_of,
    model_of_history,
    read_history,
    write_history,
)
from harness.record.trail import Chosen, Trail, faults_from_json, faults_to_json, read_trail

__all__ = [
    "Chosen", "Event", "History", "Recorder", "Trail", "faults_from_json", "faults_to_json", "header_of", "history_of",
    "model_of_history", "read_history", "read_trail", "write_history",
]
