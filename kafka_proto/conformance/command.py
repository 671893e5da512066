"""The command `kafka-proto conformance`: recorded situations played against our brokers, and the table of agreement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs

from harness.model import CommandOption, Printed, ProtocolCommand, Refusal, unknown
from kafka_proto.addresses import address_of
from kafka_proto.broker.versions import version_of
from kafka_proto.conformance.files import FORMAT, NEEDED, OF_A_SCRIPT, VARIABLE, BadFile, default_files, load
from kafka_proto.conformance.junit import junit
from kafka_proto.conformance.player import kind_of
from kafka_proto.conformance.playing import (
    FEWEST_REPLICATED,
    MOST_REPLICATED,
    RecordVerdict,
    is_of_a_cluster,
    is_of_the_wire,
    judge,
    play,
)
from kafka_proto.conformance.replicated import check_note

FILTERS = {"--release": "broker_version", "--family": "family", "--situation": "situation"}
FILTERS_AS = {"--as": "broker_version", "--family": "family", "--situation": "situation"}
NEEDS_GATEWAY = "the extra `gateway`: pip install 'kafka-proto[gateway]'"
ALL = ("all", "", "")
"""The last row of the table, behind those of releases, which are numbers."""
MOST_SHOWN = 20
"""How many records have their differences printed, and how many of each."""


def run(arguments: tuple[str, ...], options: Mapping[str, str | None]) -> Printed:
    """Play the records of files and say which are equal. Exit code 1 where one differs."""
    report = Path(options["--junit"]) if options["--junit"] else None
    if options["--record"] is not None:
        if report is not None:
            raise Refusal("--junit writes what differs, and --record compares nothing; leave one of them out")
        return _record(arguments, options, Path(options["--record"]))
    verdicts, said = _played_here(arguments, options) if options["--broker"] is None else _played_at(arguments, options)
    differing = [verdict for verdict in verdicts if not verdict.equal]
    data = {"records": [attrs.asdict(verdict) for verdict in verdicts]}
    if report is not None:
        from harness.record.files import write_atomically

        write_atomically(report, junit(verdicts, said))
    text = "\n".join((*_table(verdicts), *said, *_differences(differing)))
    return Printed(text, data, 1 if differing else 0)


def _played_here(
    arguments: tuple[str, ...], options: Mapping[str, str | None]
) -> tuple[list[RecordVerdict], tuple[str, ...]]:
    """Play records against the versions that stand for their releases."""
    if options["--as"] is not None:
        raise Refusal("--as needs a broker to play the records at; give --broker HOST:PORT as well")
    records = _loaded(arguments, options, NEEDED, FILTERS)
    try:
        for record in records:
            version_of(str(record["broker_version"]), record["transaction_version"])
    except ValueError as error:
        raise Refusal(str(error)) from None
    played = [record for record in records if _has_gateway() or not is_of_the_wire(record)]
    left = len(records) - len(played)
    said = (f"{left} not played: they hold bytes of the wire protocol, which need {NEEDS_GATEWAY}",) if left else ()
    return [judge(record, player=partial(play, brokers=_brokers(options["--brokers"]))) for record in played], said


def _brokers(given: str | None) -> int:
    """Return how many brokers play. Raises Refusal."""
    counts = ("1", *map(str, range(FEWEST_REPLICATED, MOST_REPLICATED + 1)))
    if given is None:
        return 1
    if given not in counts:
        raise Refusal(f"--brokers must be 1, or {FEWEST_REPLICATED} to {MOST_REPLICATED} with replicated logs, "
                      f"not {given!r}")
    return int(given)


def _played_at(
    arguments: tuple[str, ...], options: Mapping[str, str | None]
) -> tuple[list[RecordVerdict], tuple[str, ...]]:
    """Play records over the wire at a broker: those of its release, or with `--as` those of another."""
    if options["--brokers"] is not None:
        raise Refusal("--brokers is for playing in process; leave it or --broker out")
    host, port, _ = _broker_of(options)
    from kafka_proto.conformance.at_broker import play_at

    is_of_another = options["--as"] is not None
    records = _loaded(arguments, options, NEEDED, FILTERS_AS if is_of_another else FILTERS)
    return play_at(records, host, port, any_level=is_of_another)


def _loaded(
    arguments: tuple[str, ...], options: Mapping[str, str | None], needed: tuple[str, ...], filters: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the records of the files that are named, those that the options choose."""
    try:
        paths = tuple(map(Path, arguments)) or default_files()
        records = [record for path in paths for record in load(path, needed)]
    except BadFile as error:
        raise Refusal(str(error)) from None
    for option, field in filters.items():
        records = _chosen(records, option, field, options[option])
    for record in records:
        for number, step in enumerate(record["steps"], 1):
            try:
                check_note(step) if is_of_a_cluster(record) else kind_of(step)
            except ValueError as error:
                raise Refusal(f"step {number} of {record['situation']}: {error}; "
                              "docs/reference/conformance.md lists the notes") from None
    return records


def _record(arguments: tuple[str, ...], options: Mapping[str, str | None], path: Path) -> Printed:
    """Play situations at a broker, and write what it answers to a file as records."""
    if options["--as"] is not None:
        raise Refusal("--record writes the answers of a broker of any release; leave --as out")
    host, port, release = _broker_of(options)
    from harness.record.files import compact, write_atomically
    from kafka_proto.conformance.at_broker import record_at

    filters = {option: field for option, field in FILTERS.items() if option != "--release"}
    scripts = {(each["situation"], each["family"]): each
               for each in reversed(_loaded(arguments, options, OF_A_SCRIPT, filters))}
    records, said = record_at([scripts[key] for key in sorted(scripts)], host, port, release)
    write_atomically(path, (compact({"meta": {"format": FORMAT}, "records": records}),), path.suffix == ".gz")
    stable = sum(record["stable"] for record in records)
    text = f"recorded {len(records)} situations in {path}, of which {stable} were the same twice"
    return Printed("\n".join((text, *said)), {"records": records}, 0)


def _broker_of(options: Mapping[str, str | None]) -> tuple[str, int, str]:
    """Return host, port and release of the broker that is asked for."""
    address, release = options["--broker"], options["--release"]
    if address is None:
        raise Refusal("--record writes the answers of a broker; give --broker HOST:PORT as well")
    if not _has_gateway():
        raise Refusal(f"playing over the wire needs {NEEDS_GATEWAY}")
    if release is not None and options["--as"] is not None:
        raise Refusal("--as chooses the release already; leave --release out")
    release = release or options["--as"]
    if release is None:
        raise Refusal("a broker does not tell its release; give --release as well, such as 4.4.0")
    return *address_of(address), release


def _has_gateway() -> bool:
    return all(find_spec(name) is not None for name in ("kio", "crc32c", "cramjam"))


def _chosen(records: list[dict[str, Any]], option: str, field: str, wanted: str | None) -> list[dict[str, Any]]:
    """Return the records that an option chooses. Raises Refusal if it chooses none."""
    found = [record for record in records if wanted in (None, record[field])]
    if records and not found and wanted is not None:
        known = sorted({str(record[field]) for record in records})
        said = f"no record has {wanted!r} for {option}"
        raise Refusal(unknown(said, wanted, known, "there are"))
    return found


def _table(verdicts: Sequence[RecordVerdict]) -> Iterator[str]:
    """Yield the lines of the table of agreement: by release, level and family of clients, then all of them."""
    counts = {ALL: Counter(records=0)}
    for verdict in verdicts:
        for row in ((verdict.broker_version, str(verdict.transaction_version), verdict.family), ALL):
            counts.setdefault(row, Counter()).update(records=1, equal=verdict.equal)
    yield f"{'release':<8} {'level':>5}  {'family':<9} {'records':>7} {'equal':>6} {'differ':>6}"
    for (release, level, family), count in sorted(counts.items()):
        records, equal = count["records"], count["equal"]
        yield f"{release:<8} {level:>5}  {family:<9} {records:>7} {equal:>6} {records - equal:>6}"


def _differences(verdicts: Sequence[RecordVerdict]) -> list[str]:
    """Return the lines about records that differ."""
    lines = []
    for verdict in verdicts[:MOST_SHOWN]:
        lines.append("")
        lines.append(f"{verdict.situation} on {verdict.broker_version} at level {verdict.transaction_version}, "
                     f"{verdict.family}: differs")
        lines += [f"  {difference}" for difference in verdict.differences[:MOST_SHOWN]]
    return lines


conformance = ProtocolCommand(
    f"""Play recordings of real brokers against ours.

    Each record is played request by request against our version of its release. Compared are the answers and the state
    left behind: coordinator, logs, offsets, aborted transactions, producers. Without FILE: the files that {VARIABLE}
    names, else those of the package. The exit code is 1 if a record differs.
    """,
    run, "[FILE]...", (
        CommandOption("--release", "RELEASE", "Only records of this release, such as 4.4.0."),
        CommandOption("--family", "FAMILY", "Only records of this family of clients, such as tv2."),
        CommandOption("--situation", "NAME", "Only records of this situation, such as commit_one."),
        CommandOption("--brokers", "N", "In process: the number of brokers; from 3 on, logs are replicated."),
        CommandOption("--broker", "HOST:PORT", "Play over the wire against this broker, ours or a real one."),
        CommandOption("--as", "RELEASE", "With --broker: play the records of this release, whatever the broker's."),
        CommandOption("--record", "FILE", "Write the broker's answers as records instead of comparing them."),
        CommandOption("--junit", "FILE", "Write the verdicts as JUnit's XML, too."),
    ),
)
