"""The command `kafka-proto serve`: brokers for real clients, until it is told to end."""

from __future__ import annotations

import ipaddress
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from harness.model import Printed, ProtocolCommand, Refusal
from harness.model.protocol_command import CommandOption
from kafka_proto.addresses import address_of
from kafka_proto.gateway.inputs import MOST_BROKERS, MOST_OF_A_TOPIC, Fronted, Settings, Started, TimedFault

if TYPE_CHECKING:
    from kafka_proto.gateway.live_page import LivePage
    from kafka_proto.gateway.server import Seen, Serving, Watch
    from kafka_proto.gateway.story import ToldFront

TOPIC = re.compile(r"([a-zA-Z0-9._-]{1,249})=([1-9][0-9]{0,3})")
NEWEST = "4.4.0"
LOOPBACK = "127.0.0.1"
FROM_STDIN = "-"
VIOLATING = Path("out") / "serve.trail.jsonl"
"""Where the session of a violation is left by default, without an option for its trail."""


def run(arguments: tuple[str, ...], options: Mapping[str, str | None]) -> Printed:
    """Serve until SIGTERM or SIGINT; what clients want to know is printed once they can connect."""
    try:
        from kafka_proto.gateway.applications import declared
        from kafka_proto.gateway.configs import with_configs
        from kafka_proto.gateway.offer import LEVELS, RELEASES
        from kafka_proto.gateway.plans import read_plan
        from kafka_proto.gateway.server import serving
    except ImportError as error:
        raise _no_extra(error) from None
    release = options["--release"] or NEWEST
    if release not in RELEASES:
        raise Refusal(f"there is no release {release!r}; expected one of {', '.join(RELEASES)}")
    level = _number(options["--transaction-version"], "--transaction-version", LEVELS[release][-1], LEVELS[release][-1])
    brokers = _number(options["--brokers"], "--brokers", 1, MOST_BROKERS, lowest=1)
    first = _number(options["--port"], "--port", 0, 65_536 - brokers)
    host, listen = _addresses(options["--host"], options["--listen"])
    each = _number(options["--num-partitions"], "--num-partitions", 1, MOST_OF_A_TOPIC, lowest=1)
    factor = _number(options["--replication-factor"], "--replication-factor", min(3, brokers), brokers, lowest=1)
    in_sync = _number(options["--min-insync-replicas"], "--min-insync-replicas", 1, factor, lowest=1)
    settings = Settings(release, level, host, ports=tuple(first + n if first else 0 for n in range(brokers)),
                        num_partitions=each, replication_factor=factor, min_insync_replicas=in_sync,
                        applications=declared(options["--exactly-once"]) if options["--exactly-once"] else None)
    try:
        settings = with_configs(settings, _configs(options["--config"]))
    except ValueError as error:
        raise Refusal(f"--config: {error}") from None
    seed, faults = _seed(options), options["--faults"]
    plan = read_plan(faults, seed, settings) if faults not in (None, FROM_STDIN) else []
    topics = _topics(arguments)
    page = None if options["--page"] is None else _page(host, _number(options["--page"], "--page", 0, 65_535))
    return _until_signal(lambda watch: serving(settings, topics, watch, plan, listen), options, listen, VIOLATING, page)


def run_proxy(arguments: tuple[str, ...], options: Mapping[str, str | None]) -> Printed:
    """Serve a proxy until SIGTERM or SIGINT; then read what came of the session."""
    try:
        from kafka_proto.gateway.plans import read_plan
        from kafka_proto.gateway.proxy import ProxyHost
        from kafka_proto.gateway.proxying import proxying
    except ImportError as error:
        raise _no_extra(error) from None
    upstream = address_of(options["--upstream"], "--upstream")
    first = _number(options["--port"], "--port", 0, 65_535)
    host, listen = _addresses(options["--host"], options["--listen"])
    seed, faults = _seed(options), options["--faults"]

    def plan(proxy: ProxyHost) -> list[TimedFault]:
        for name, (there, port), node in proxy.names():
            print(f"{name} is node {node}, {there}:{port}", file=sys.stderr, flush=True)
        return read_plan(faults, seed, proxy.settings, proxy.offer) if faults not in (None, FROM_STDIN) else []

    settings = Settings(host=host, ports=(first,))
    return _until_signal(lambda watch: proxying(upstream, settings, watch, plan, listen), options, listen,
                         VIOLATING.with_name("proxy.trail.jsonl"))


def _until_signal(
    served: Callable[[Watch], AbstractAsyncContextManager[Serving]], options: Mapping[str, str | None], listen: str,
    violating: Path, page: LivePage | None = None,
) -> Printed:
    """Serve until a signal, leave the session where it is to be left, and say what it violates."""
    from kafka_proto.gateway.known_bugs import check, explained
    from kafka_proto.gateway.live_log import told
    from kafka_proto.gateway.proxy import ProxyHost
    from kafka_proto.gateway.recording import Recording, check_writable
    from kafka_proto.gateway.server import serve_until_signal

    allow = check(options["--allow"].split(",") if options["--allow"] else ())
    path = Path(options["--trail"]) if options["--trail"] else None
    if path is not None:
        check_writable(path)
    recordings = list[Recording]()

    def watch(host: ToldFront, started: Started | Fronted) -> Seen:
        recordings.append(Recording(host, started))
        see = told(host, recordings[-1].see)
        return see if page is None else page.watch(host, started, see)

    try:
        server = serve_until_signal(
            served(watch), _announce, _seed(options) if options["--faults"] == FROM_STDIN else None,
            None if page is None else page.run)
    except ValueError as error:
        raise Refusal(str(error)) from None
    except OSError as error:
        raise Refusal(f"cannot listen on {listen} port {options['--port'] or 0} ({error.strerror}); leave --port out "
                      f"for a free port, --host for {LOOPBACK}, and --listen for the same as --host") from None
    finally:
        if path is not None:
            for recording in recordings:
                recording.write(path)
    problems, unwritten = server.host.problems(), list[str]()
    known = explained(allow, server.host.software, problems)
    if problems and path is None:
        try:
            recordings[0].write(violating)
            path = violating
        except Refusal as refused:
            unwritten = [str(refused)]
    lines = [f"ended after {server.opened} connections and {server.received} bytes received"]
    lines += [f"{name} is violated{f' ({known[name]}, allowed)' if name in known else ''}: {why}"
              for name, why in problems.items()] + unwritten
    unjudged = server.host.unjudged() if isinstance(server.host, ProxyHost) else ()
    lines += unjudged
    lines += [f"kafka-proto replay {shlex.quote(str(path))}"] if path is not None else []
    data = {"connections": server.opened, "received": server.received, "violated": problems, "allowed": known,
            "trail": None if path is None else str(path)}
    return Printed("\n".join(lines), data | ({"unjudged": unjudged} if unjudged else {}),
                   1 if {*problems} - {*known} else 0)


def _no_extra(error: ImportError) -> Refusal:
    return Refusal(f"serving needs the extra `gateway` ({error.name} is missing): pip install 'kafka-proto[gateway]'")


def _seed(options: Mapping[str, str | None]) -> int:
    return _number(options["--seed"], "--seed", 0, 10**9 - 1)


def _page(host: str, port: int) -> LivePage:
    """Return the page of a session that begins. Raises Refusal if it is not installed, or its port is taken."""
    try:
        from kafka_proto.gateway.live_page import LivePage
    except ImportError as error:
        raise Refusal(f"--page needs the extra `demo` ({error.name} is missing): "
                      "pip install 'kafka-proto[gateway,demo]'") from None
    return LivePage(host, port)


def _announce(address: str) -> None:
    print(f"bootstrap.servers={address}", flush=True)


def _addresses(given: str | None, listen: str | None) -> tuple[str, str]:
    """Return where clients find the brokers and where these listen, after a warning where others can reach them."""
    host = _address(given or LOOPBACK)
    if host is None or host.is_unspecified:
        raise Refusal(f"--host must be an IPv4 address of this machine that clients can reach, not {given!r}")
    here = _address(listen) if listen is not None else host
    if here is None:
        raise Refusal(f"--listen must be an IPv4 address of this machine, or 0.0.0.0 for all of them, not {listen!r}")
    if not here.is_loopback:
        print(f"kafka-proto: warning: anyone who reaches {here} can read and write; there is no authentication and no "
              "encryption", file=sys.stderr, flush=True)
    return str(host), str(here)


def _address(text: str) -> ipaddress.IPv4Address | None:
    try:
        address = ipaddress.IPv4Address(text)
    except ValueError:
        return None
    return None if address.is_multicast else address


def _number(given: str | None, option: str, default: int, highest: int, lowest: int = 0) -> int:
    if given is None:
        return default
    if not given.isascii() or not given.isdigit() or len(given) > 9 or not lowest <= int(given) <= highest:
        raise Refusal(f"{option} must be a number from {lowest} to {highest}, not {given!r}")
    return int(given)


def _configs(given: str | None) -> dict[str, str]:
    parts = [part.partition("=") for part in (given or "").split(",") if part]
    if any(not between for _, between, _ in parts):
        raise Refusal(f"--config should be names with values, as broker.session.timeout.ms=3000, not {given!r}")
    return {name: value for name, _, value in parts}


def _topics(arguments: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for argument in arguments:
        topic = TOPIC.fullmatch(argument)
        if topic is None or topic[1] in (".", ".."):
            raise Refusal(f"{argument!r} is not a topic; expected NAME=PARTITIONS, such as orders=3")
        found[topic[1]] = int(topic[2])
    return found


OF_A_SESSION = (
    CommandOption("--host", "ADDRESS", f"Address to listen on, and to advertise to clients (default: {LOOPBACK})."),
    CommandOption("--listen", "ADDRESS", "Address to listen on, if not --host, such as 0.0.0.0 in a container."),
    CommandOption("--port", "N", "Port of the first broker; the others take the next ones (default: free ports)."),
    CommandOption("--faults", "PLAN", "Faults to inject: verbs ('delay EndTxn for_ms=2500; crash b2 at_ms=500'), "
                  "random ones (delay=2,crash=1), a scenario's (late-end), or verbs as lines on stdin (-)."),
    CommandOption("--seed", "S", "Seed of random faults (default: 0)."),
    CommandOption("--allow", "ISSUE,...", "Known bugs of clients that are no failure, such as KAFKA-17754."),
    CommandOption("--trail", "FILE", "Record the session; `replay FILE` replays it without clients."),
)

serve = ProtocolCommand(
    """Serve brokers to real clients over Kafka's wire protocol.

    Once clients can connect, the first line on stdout is `bootstrap.servers=...`. SIGTERM or Ctrl-C ends it. Clients
    may create more topics. At the end, the properties P1 to P12 are checked. If one is violated, the session is kept
    as a trail, the command to replay it is printed, and the exit code is 1. Details: docs/reference/gateway.md.
    """,
    run, "[TOPIC=PARTITIONS]...", (
        CommandOption("--release", "RELEASE", f"The release of Kafka, such as 3.9.2 (default: {NEWEST})."),
        CommandOption("--transaction-version", "N", "The feature level (default: the release's newest)."),
        CommandOption("--brokers", "N", "Number of brokers, each on its own port (default: 1)."),
        CommandOption("--replication-factor", "N", "Replicas of each partition (default: 3, or all brokers)."),
        CommandOption("--min-insync-replicas", "N", "In-sync replicas that a write with acks=all needs (default: 1)."),
        CommandOption("--config", "NAME=VALUE,...", "Settings of brokers, such as broker.session.timeout.ms=3000."),
        CommandOption("--num-partitions", "N", "Partitions of a topic that a client creates (default: 1)."),
        CommandOption("--exactly-once", "APPLICATION", "An application whose inputs have one committed output each, "
                      "such as 'orders to payments group=billing by=key'."),
        CommandOption("--page", "PORT", "Show the session in the demo's page, on this port (0: a free one)."),
        *OF_A_SESSION,
    ), is_live=True,
)

proxy = ProtocolCommand(
    """Serve a proxy in front of another Kafka, of any make: faults for its clients, and a record of their session.

    Once clients can connect, the first line on stdout is `bootstrap.servers=...`: a port for each broker, named b1, b2
    and so on by node id. SIGTERM or Ctrl-C ends it. Then the partitions that were written to are read, P1 to P11
    are checked, and what cannot be judged from outside is said. Details: docs/reference/gateway.md.
    """,
    run_proxy, "", (
        CommandOption("--upstream", "HOST:PORT", "A broker of the other cluster, without TLS and password."),
        *OF_A_SESSION,
    ), is_live=True,
)
