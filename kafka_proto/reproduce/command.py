"""The command `kafka-proto reproduce`: a schedule found in simulation, played against a real broker."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from harness.model import CommandOption, Printed, ProtocolCommand, Refusal
from harness.model.live import tell
from harness.record import Recorder, Trail, read_trail
from harness.simulate.trails.replay import replay_plain
from kafka_proto.addresses import address_of
from kafka_proto.reproduce.judging import JUDGED, shown, violations
from kafka_proto.reproduce.schedule import RunStep, Schedule, Unplayable, schedule_of

FAMILY = "kafka/"


def run(arguments: tuple[str, ...], options: Mapping[str, str | None]) -> Printed:
    """Play the schedule of a trail. Exit code 1 where the broker's logs do not show a violation."""
    if len(arguments) != 1:
        raise Refusal("reproduce takes one TRAIL; kafka-proto hunt writes them")
    path, (host, port) = Path(arguments[0]), address_of(options["--broker"])
    schedule = _schedule(path, read_trail(path))
    try:
        from kafka_proto.reproduce.playing import play
    except ImportError as error:
        raise Refusal(f"playing against a real broker needs the extra `reproduce` ({error.name} is missing): "
                      "pip install 'kafka-proto[reproduce]'") from None
    try:
        played = play(schedule, host, port, _progress)
    except (OSError, ValueError) as error:
        raise Refusal(f"{host}:{port} does not answer as a broker ({error}); start one, as benchmarks/real_broker.py "
                      "does") from None
    found = violations(played.logs, played.ledger)
    lines = [f"{name} is violated: {why}" for name, why in found.items()] or [
        "not reproduced: the logs show no violation of " + ", ".join(JUDGED)]
    lines += shown(played.logs)
    lines += [f"the client heard: {line}" for line in played.heard]
    data = {"violated": found, "logs": list(shown(played.logs)), "heard": list(played.heard)}
    return Printed("\n".join(lines), data, 0 if found else 1)


def _schedule(path: Path, trail: Trail) -> Schedule:
    if not trail.model.startswith(FAMILY):
        raise Refusal(f"{path} is a run of {trail.model}; only runs of whole transactions ({FAMILY}...) can be played "
                      "against a real broker")
    try:
        choices = replay_plain(trail, Recorder(keep=False)).trail.choices
        return schedule_of([RunStep(choice.label, choice.subject, choice.sent) for choice in choices])
    except Unplayable as error:
        raise Refusal(f"{path} cannot be played against a real broker: {error}") from None


def _progress(event: str) -> None:
    tell(event)
    print(event, file=sys.stderr, flush=True)


reproduce = ProtocolCommand(
    """Play the schedule of a trail against a real broker.

    librdkafka makes the calls of the trail's producers. A proxy delays and loses requests as in the trail. The exit
    code is 0 if the broker's logs then show a violation, else 1. Only trails of whole transactions (`kafka/...`) can be
    played, with no faults but delays and losses.
    """,
    run, "TRAIL", (
        CommandOption("--broker", "HOST:PORT", "The broker, such as 127.0.0.1:9092; topics are created on it."),
    ), is_live=True,
)
