"""The vocabulary: values, messages, steps, views, networks, faults, processes, properties, models, scenarios.

Everything else in the harness, and every protocol, speaks it. Nothing here drives: no clock, chance, I/O or threads.
"""

from harness.model.auxiliary import Auxiliary
from harness.model.command import Command, OperationFailed
from harness.model.departure import Departure, departed
from harness.model.faults import NO_FAULTS, Faults, Rule, Timed
from harness.model.fresh import fresh, ordered
from harness.model.frozen_map import FrozenMap
from harness.model.gate import OPEN, Gate
from harness.model.linearizability import (
    Answered,
    Call,
    Called,
    Calls,
    Linearization,
    Operation,
    calls_of,
    linearizable,
    linearize,
)
from harness.model.links import Link, both_ways
from harness.model.local_state import Local, Part, Parts, durable, nested, persisted, survivor, volatile
from harness.model.logs import EntryKind, LogEntry, LogMark, Logs, ShownLog
from harness.model.message import Message, brief_input, brief_value, record_of
from harness.model.model import Choice, Effects, Model
from harness.model.network import BAG, CONNECTIONS, FIFO, NETWORKS, RELIABLE, UNORDERED_SET, Network
from harness.model.process import Actor, Decided, Process, Turn
from harness.model.properties import Property, Reason, always, eventually, leads_to, sometimes
from harness.model.protocol_command import CommandOption, Printed, ProtocolCommand
from harness.model.refinement import Exchange, Refinement, refinement_of
from harness.model.refusal import Refusal
from harness.model.registry import (
    Checked,
    ModelSpec,
    Scenario,
    Setting,
    Size,
    System,
    find_model,
    find_runnable,
    find_scenario,
    find_tour,
    model_of,
    model_specs,
    register,
    scenarios,
    systems,
    tours,
    unregister,
)
from harness.model.similar import did_you_mean, unknown
from harness.model.step import Input, Kind, Op, Step
from harness.model.telling import DELIVERED, ShownMessage, Telling, ToldMessage
from harness.model.tour import Tour, told
from harness.model.values import (
    Value,
    absent_if_none,
    canonical_bytes,
    canonical_sort,
    canonical_text,
    decode,
    encode,
)
from harness.model.view import State, View, parts, slot

__all__ = [
    "BAG", "CONNECTIONS", "DELIVERED", "FIFO", "NETWORKS", "NO_FAULTS", "OPEN", "RELIABLE", "UNORDERED_SET", "Actor",
    "Answered", "Auxiliary", "Call", "Called", "Calls", "Checked", "Choice", "Command", "CommandOption", "Decided",
    "Departure", "Effects", "EntryKind", "Exchange", "Faults", "FrozenMap", "Gate", "Input", "Kind", "Linearization",
    "Link", "Local", "LogEntry", "LogMark", "Logs", "Message", "Model", "ModelSpec", "Network", "Op", "Operation",
    "OperationFailed", "Part", "Parts", "Printed", "Process", "Property", "ProtocolCommand", "Reason", "Refinement",
    "Refusal", "Rule", "Scenario", "Setting", "ShownLog", "ShownMessage", "Size", "State", "Step", "System", "Telling",
    "Timed", "ToldMessage", "Tour", "Turn", "Value", "View", "absent_if_none", "always", "both_ways", "brief_input",
    "brief_value", "calls_of", "canonical_bytes", "canonical_sort", "canonical_text", "decode", "departed",
    "did_you_mean", "durable", "encode", "eventually", "find_model", "find_runnable", "find_scenario", "find_tour",
    "fresh", "leads_to", "linearizable", "linearize", "model_of", "model_specs", "nested", "ordered", "parts",
    "persisted", "record_of", "refinement_of", "register", "scenarios", "slot", "sometimes", "survivor", "systems",
    "told", "tours", "unknown", "unregister", "volatile",
]
