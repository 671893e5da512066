"""The command `kafka-proto serve`: one broker for real clients, until it is told to end."""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.model import Printed, ProtocolCommand, Refusal
from harness.model.protocol_command import CommandOption

TOPIC = re.compile(r"([a-zA-Z0-9._-]{1,249})=([1-9][0-9]{0,3})")
NEWEST = "4.4.0"


def run(arguments: tuple[str, ...], options: Mapping[str, str | None]) -> Printed:
    """Serve until SIGTERM or SIGINT; what clients want to know is printed once they can connect."""
    try:
        from kafka_proto.gateway.broker import Settings
        from kafka_proto.gateway.offer import LEVELS, RELEASES
        from kafka_proto.gateway.server import serve_until_signal
    except ImportError as error:
        raise Refusal(f"serving needs the extra `gateway` ({error.name} is missing): "
                      "pip install 'kafka-proto[gateway]'") from None
    release = options["--release"] or NEWEST
    if release not in RELEASES:
        raise Refusal(f"there is no release {release!r}; expected one of {', '.join(RELEASES)}")
    level = _number(options["--transaction-version"], "--transaction-version", LEVELS[release][-1], LEVELS[release][-1])
    port = _number(options["--port"], "--port", 0, 65_535)
    try:
        served = serve_until_signal(Settings(release, level, port=port), _topics(arguments), _announce)
    except ValueError as error:
        raise Refusal(str(error)) from None
    except OSError as error:
        raise Refusal(f"port {port} of 127.0.0.1 cannot be listened on ({error.strerror}); leave --port out for a free "
                      "one") from None
    text = f"ended after {served.connections} connections and {served.received} bytes received"
    return Printed(text, {"connections": served.connections, "received": served.received})


def _announce(address: str) -> None:
    print(f"bootstrap.servers={address}", flush=True)


def _number(given: str | None, option: str, default: int, highest: int) -> int:
    if given is None:
        return default
    if not given.isascii() or not given.isdigit() or len(given) > 5 or int(given) > highest:
        raise Refusal(f"{option} should be a number from 0 to {highest}, not {given!r}")
    return int(given)


def _topics(arguments: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for argument in arguments:
        topic = TOPIC.fullmatch(argument)
        if topic is None or topic[1] in (".", ".."):
            raise Refusal(f"{argument!r} is no topic; expected its name and how many partitions it has, as orders=3")
        found[topic[1]] = int(topic[2])
    return found


serve = ProtocolCommand(
    f"""Serve a broker to real clients over Kafka's wire protocol.

    The first line on stdout is `bootstrap.servers=...`, once clients can connect; SIGTERM or Ctrl-C ends it. There is
    one broker on 127.0.0.1, whose topics are those of the arguments and those that clients make. Without --release:
    {NEWEST}.
    """,
    run, "[TOPIC=PARTITIONS]...", (
        CommandOption("--release", "RELEASE", "The release of Kafka that it is, as 3.9.2."),
        CommandOption("--transaction-version", "N", "The level of the feature; without it, the release's newest."),
        CommandOption("--port", "N", "The port to listen on; without it, a free one."),
    ),
)
