"""The two artifacts of a run: trail (the decisions) and history (what happened). Reading, writing, digests."""

from harness.record.choices import Chosen, ChosenInput, SpooledChoices
from harness.record.history import (
    EventRecorder,
    History,
    HistoryFile,
    Recorder,
    header_of,
    model_of_history,
    open_history,
    read_events,
    read_frame,
    read_history,
    write_history,
)
from harness.record.recorded_events import Event
from harness.record.tours import tour_trail
from harness.record.trail import Trail, faults_from_json, faults_to_json, read_trail, trail_of_text

__all__ = [
    "Chosen", "ChosenInput", "Event", "EventRecorder", "History", "HistoryFile", "Recorder", "SpooledChoices",
    "Trail", "faults_from_json", "faults_to_json", "header_of", "model_of_history", "open_history",
    "read_events", "read_frame", "read_history", "read_trail", "tour_trail", "trail_of_text", "write_history",
]
