"""Sessions as trails: replayed without clients, with the same digest, refused where other bytes would be sent."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import attrs
import pytest

pytest.importorskip("kio", reason="needs the extra `gateway`")

from support.gateway.drawn_sessions import DrawnSession
from support.gateway.drawn_sessions import replayed as digest_of
from support.gateway.recorded import Recorded, late_after_abort
from support.gateway.wire import Producer, inject
from support.paths import ROOT
from support.toys.toy_histories import edited

from harness.model import FrozenMap, Refusal, canonical_text
from harness.record import (
    EventRecorder,
    Recorder,
    Trail,
    header_of,
    read_history,
    read_trail,
    trail_of_text,
    write_history,
)
from harness.simulate.states.tables import Tables
from harness.simulate.trails.replay import replay_plain, replayed_history
from harness.simulate.trails.shrink import shrink
from harness.verify.judge import FileJudge
from kafka_proto.gateway.inputs import Opened

SESSION = ROOT / "tests" / "data" / "gateway" / "librdkafka.trail.jsonl.gz"


def replayed(trail: Trail) -> tuple[str, dict[str, Any], Any]:
    """Replay a trail; return the digest, the last state and the verdict."""
    tables, recorder = Tables(trail.build()), EventRecorder()
    run = replay_plain(trail, recorder, tables)
    *_, state = recorder.history({}, run.verdict.to_json(), tables.model).states()
    return run.digest, state, run.verdict


def test_a_trail_whose_bytes_were_others_is_refused() -> None:
    """Where the host of today would send something else than what was sent, the replay stops at that step."""
    clients = Recorded()
    Producer(clients)
    trail = clients.recording.trail()
    choices = [attrs.evolve(chosen, label=re.sub(r",[0-9a-f]{12}\)", ",000000000000)", chosen.label))
               for chosen in trail.choices]
    replay_plain(trail)
    with pytest.raises(Refusal, match="the trail does not fit at step 3"):
        replay_plain(attrs.evolve(trail, choices=tuple(choices)))


def test_a_violation_is_found_again_by_its_replay() -> None:
    """TX-02: 3.5.2 takes a batch of an abandoned connection after the abort, 3.9.2 does not; the trail says so."""
    for release, level, wrong in (("3.9.2", 1, None), ("3.5.2", 0, "NoHangingTransaction")):
        clients, _ = late_after_abort(release, level)
        trail = clients.recording.trail()
        assert trail.violates == wrong
    verdict = replayed(trail)[2]
    assert verdict.violated == "NoHangingTransaction"
    assert verdict.step == len(trail.choices)
    short = shrink(trail)
    assert replayed(short.trail)[2].violated == "NoHangingTransaction"
    assert short.has < short.had - 2, "neither the end nor a new connection is needed: a late batch is enough"


def test_a_recorded_session_of_librdkafka_replays_without_it() -> None:
    """The committed session, on three brokers: each answer of today is, byte for byte, the one that it got."""
    text = gzip.decompress(SESSION.read_bytes()).decode()
    _, state, verdict = replayed(trail_of_text(SESSION.name, text))
    assert verdict.ok
    observed = state["observed"]
    assert observed.counts == FrozenMap({"shop": 3})
    assert [heard.committed for heard in observed.heard] == [True, False, True]


def test_a_history_of_a_session_has_what_is_new_of_each_step(tmp_path: Path) -> None:
    """It is read back as it was, with a model and without one, and grows with the inputs, not with their square."""
    session = DrawnSession(1, 400)
    trail, path = session.recording.trail(), tmp_path / "history.jsonl"
    tables, recorder = Tables(trail.build()), Recorder()
    run = replay_plain(trail, recorder, tables)
    write_history(path, header_of(trail, tables.model, "plain"), recorder, run.verdict.to_json())
    history = read_history(path, tables.model)
    _, kept = replayed_history(trail)
    assert [*history.states()] == [*kept.states()]
    assert history.digest == kept.digest == run.digest
    *_, last = history.states()
    *_, plain = read_history(path).states()
    for slot, value in last.items():
        assert json.loads(canonical_text(value).replace('"$type"', '"type"')) == json.loads(canonical_text(plain[slot]))
    half = sum(map(len, recorder.lines[: len(recorder.lines) // 2]))
    assert sum(map(len, recorder.lines)) < 3 * half


def test_a_history_of_a_session_is_judged_by_its_file_alone(tmp_path: Path) -> None:
    """Each step is one that brokers would take, and the first state is one that they start in; another one is not."""

    def elsewhere(events: list[dict[str, Any]]) -> None:
        """Let the first batch be acknowledged at another offset than it was."""
        told = next(told for event in events if (told := event.get("writes", {}).get("observed", {}).get(
            "fields", {}).get("acknowledged")) is not None)
        told["fields"]["rest"]["items"][0]["offset"] += 1

    def started(events: list[dict[str, Any]]) -> None:
        """Let the session begin with a transaction."""
        events[0]["initial"]["observed"]["counts"] = {"app": 1}

    trail, path = DrawnSession(1, 100).recording.trail(), tmp_path / "history.jsonl"
    model, recorder = trail.build(), Recorder()
    run = replay_plain(trail, recorder)
    write_history(path, header_of(trail, model, "plain"), recorder, run.verdict.to_json())
    assert FileJudge().file(path).findings == ()
    for edit, found in ((elsewhere, "actors"), (started, "record")):
        assert found in FileJudge().file(edited(path, edit)).findings


@pytest.mark.parametrize("brokers", [1, 12])
def test_a_crash_closes_connections_by_number_whatever_came_first(brokers: int) -> None:
    """Connection 9 is closed before 10, on b10 as on b1, however they were opened; the replay closes them so, too."""
    clients = Recorded(ports=tuple(range(1, brokers + 1)))
    for number in (10, 2, 9, 11, 1):
        clients.give(Opened(number, clients.now, brokers))
    closed = inject(clients, 1, "crash", broker=brokers)
    assert [close.connection for close in closed] == [1, 2, 9, 10, 11]
    assert replayed(clients.recording.trail()) == replayed(clients.recording.trail())


@pytest.mark.parametrize(("seeds", "inputs"), [
    (range(10), 200), *(pytest.param(seeds, inputs, marks=pytest.mark.large) for seeds, inputs in (
        (range(100, 300), 400), (range(300, 301), 5_000))),
], ids=("some", "two hundred that are longer", "one whose choices do not stay in memory"))
def test_drawn_sessions_replay_with_the_digest_that_they_had(seeds: range, inputs: int) -> None:
    """30 connections, brokers that crash, are paused and cut off from each other, elections: each step is the same."""
    kinds: Counter[str] = Counter()
    for seed in seeds:
        session = DrawnSession(seed, inputs)
        assert digest_of(session.recording.trail()) == str(session.digest), f"seed {seed}"
        kinds += session.kinds
        kinds["heard"] += len(session.host.observed.heard)
    assert min(kinds[kind] for kind in ("crash", "partition", "cut", "pause", "elect", "heard")) >= len(seeds) // 3
    assert kinds["closed"] > 2 * len(seeds), "crashes end several connections at once"


def test_drawn_sessions_replay_in_another_process(tmp_path: Path) -> None:
    """What comes of a session does not depend on PYTHONHASHSEED, by which Python orders sets."""
    drawn = Path(str(sys.modules[DrawnSession.__module__].__file__))
    digests = []
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
        done = subprocess.run([sys.executable, str(drawn), str(tmp_path), "20", "22", "200"], env=environment,
                              capture_output=True, text=True, check=True)
        digests.append(done.stdout.split())
    assert digests[0] == digests[1] == [
        digest_of(read_trail(tmp_path / f"{seed}.trail.jsonl")) for seed in range(20, 22)]


@pytest.mark.parametrize(("field", "now", "said"), [
    ('"release":"4.4.0"', '"release":"4.5.0"', "no release 4.5.0; there are 3.5.2, "),
    ('"transaction_version":2', '"transaction_version":3', "Kafka 4.4.0 has transaction.version 0, 1, 2, not 3"),
])
def test_a_trail_of_a_release_that_there_is_not_is_refused(field: str, now: str, said: str) -> None:
    """No other release takes its place, and it is no finding of a run."""
    text = gzip.decompress(SESSION.read_bytes()).decode()
    assert text.count(field) == 1
    with pytest.raises(Refusal, match=re.escape(said)):
        replay_plain(trail_of_text(SESSION.name, text.replace(field, now)))
