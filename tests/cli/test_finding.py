"""Finding one's way on the command line: names that were meant, and what `list` shows."""

from __future__ import annotations

import pytest
from support.commands.command_line import call

from harness.model import did_you_mean, find_model, model_specs, scenarios, tours, unknown
from harness.model.similar import similar
from harness.record.wording import agreeing, counted, some_of

MODELS = ("transactions/diary-01", "transactions/gist", "replication/kip-320", "replication/kip-320/actors")


@pytest.mark.parametrize(("name", "known", "meant"), [
    ("transactions/gits", MODELS, ("transactions/gist",)),
    ("gits", MODELS, ("transactions/gist",)),
    ("diary-1", MODELS, ("transactions/diary-01",)),
    ("Transactions/GIST", MODELS, ("transactions/gist",)),
    ("320/actor", MODELS, ("replication/kip-320/actors",)),
    ("transactions/nope", MODELS, ()),
    ("nobody", MODELS, ()),
    ("txn_log_partitions", ("brokers", "txn-log-partitions"), ("txn-log-partitions",)),
    ("typeok", ("TypeOK", "TypeOKAgain"), ("TypeOK",)),
    ("e", ("election", "crash"), ()),
    ("--", ("election", "--crash"), ()),
    ("s", ("ss", "sss", "ssss", "sssss"), ("ss",)),
    ("crash", ("crash-1", "crash-2", "crash-3", "crash-4"), ("crash-1", "crash-2", "crash-3")),
])
def test_names_that_were_meant_are_found(name: str, known: tuple[str, ...], meant: tuple[str, ...]) -> None:
    """Slips of the finger, of case and of punctuation are seen through; where nothing is alike, nothing is offered."""
    assert similar(name, known) == meant


def test_question_lists_what_may_have_been_meant() -> None:
    """One name, two, or three; a short list of what is known follows, a long one does not."""
    assert did_you_mean("ab", ["abc"]) == "did you mean abc?"
    assert did_you_mean("ab", ["abc", "abd"]) == "did you mean abc or abd?"
    assert did_you_mean("ab", ["abc", "abd", "abe", "abf"]) == "did you mean abc, abd or abe?"
    assert did_you_mean("x", ["abc"]) == ""
    assert unknown("no ab", "ab", ["abc", "xyz"], "there are") == "no ab; did you mean abc? there are abc, xyz"
    assert unknown("no q", "q", ["abc", "xyz"], "there are") == "no q; there are abc, xyz"
    assert unknown("no q", "q", [], "there are") == "no q; there are none"
    many = [f"other-{n}" for n in range(20)]
    assert unknown("no ab", "ab", ["abc", *many], "there are") == "no ab; did you mean abc?"
    assert unknown("no ab", "ab", ["abc", *many], "", "the list") == "no ab; did you mean abc? see the list"
    assert unknown("no q", "q", ["abc", *many], "", "the list") == "no q; see the list"


def test_list_without_words_ends_with_what_else_it_can() -> None:
    """How many there are of each kind, and how one of them is shown in full."""
    counts = f"{len(list(model_specs()))} models, {len(list(scenarios()))} scenarios, {len(tours())} tours; "
    assert counts + "kafka-proto list NAME shows one in full" in " ".join(call("list").out.split())


@pytest.mark.parametrize(("words", "models", "rows", "guided"), [
    (("KAFKA-1211",), [], ["rp-01-truncate-to-high-watermark"], ["rp-01"]),
    (("kafka-6880", "epoch"), [], ["rp-05-unfenced-fetch"], []),
    (("gist", "tail"), [], ["s4-copied-tail", "s4-copied-tail-repaired"], []),
    (("compactedledgerleak",), ["compaction/pulsar", "compaction/pulsar/actors"], [], []),
    (("Diary-01", "INITPID"), ["transactions/diary-01"], [], []),
    (("one_way", "kafka/4.0", "followers"), [], ["isolated-leader"], []),
])
def test_words_choose_what_has_all_of_them(
    words: tuple[str, ...], models: list[str], rows: list[str], guided: list[str]
) -> None:
    """In any order and case, in name, title, model, faults, properties or their sources; the same as text."""
    listed = call("list", *words, "--json")
    listing = listed.json
    named = [[one["name"] for one in listing[kind]] for kind in ("models", "scenarios", "tours")]
    assert named == [models, rows, guided]
    lines = call("list", *words).out.splitlines()
    assert [name for name in (*models, *rows, *guided) if f"  {name}" not in lines] == []
    assert ("Models" in lines[0], "Tours (kafka-proto demo TOUR)" in lines) == (bool(models), bool(guided))
    assert set(listing["models"][0] if models else {}) <= {"name", "title", "networks", "faults", "sizes", "settings"}


@pytest.mark.parametrize(("words", "said"), [
    (("transactions/gits",), "did you mean transactions/gist? kafka-proto list shows them all"),
    (("trunkate",), "did you mean truncated, truncates or truncation?"),
    (("crash", "TLA+"), "no model, scenario or tour matches 'crash' and 'TLA+'"),
    (("gist", "compaction"), "each word matches some, but none matches all; give fewer words"),
])
def test_words_that_nothing_has_are_one_sentence(words: tuple[str, ...], said: str) -> None:
    """With the name or word that may have been meant."""
    assert said in call("list", *words).refusal
    assert said in call("list", *words, "--json").refusal


def test_model_is_shown_in_full() -> None:
    """Sizes with ranges and what they are, settings, faults, actors, properties, its spec, its scenarios, commands."""
    name = "replication/kip-279/actors"
    text, listing = call("list", name).out, call("list", name, "--json").json
    assert (len(listing["models"]), listing["scenarios"], listing["tours"]) == (1, [], [])
    model = listing["models"][0]
    spec, built = find_model(name), find_model(name).make()
    assert model["sizes"]["replicas"] == {"default": 2, "minimum": 1, "maximum": 5, "doc": spec.sizes["replicas"].doc}
    assert model["actors"] == list(built.actors)
    assert [prop["name"] for prop in model["properties"]] == [prop.name for prop in built.properties]
    assert model["refines"]["model"] == "replication/kip-279"
    assert model["scenarios"] == [row.name for row in scenarios() if row.model == name] != []
    assert "crash" in model["fault_kinds"]
    said = " ".join(text.split())
    for part in (
        "replicas=2 1 to 5;", "acks=all all|1|mixed;", "faults drop, duplicate,", "p1, r1, r2, controller",
        "StrongIsr always; KafkaReplication; R1", "replication/kip-279 kafka-proto verify checks each step",
        *model["refines"]["extensions"], "rp-05-unfenced-fetch expected to violate StrongIsr", *model["commands"],
    ):
        assert part in said
    spec_text = " ".join(call("list", "replication/kip-320").out.split())
    assert "faults none; faults are steps of the spec" in spec_text
    assert "kafka-proto check replication/kip-320 " in spec_text
    assert "always, not claimed" in " ".join(call("list", "compaction/pulsar").out.split())


def test_scenario_and_tour_are_shown_in_full() -> None:
    """What differs from the model, what may go wrong, what is claimed and expected, and the twin."""
    text = " ".join(call("list", "last-replica-standing-repaired").out.split())
    assert "partition b1 and b2, at 2 to 600 ms crash b2, at 250 to 300 ms" in text
    assert "expected no violation" in text and "mode timed: the earliest event in virtual time" in text
    text = " ".join(call("list", "late-marker").out.split())
    assert "delay number 1 of WriteTxnMarkersRequest" in text
    flawed = " ".join(call("list", "rp-05-unfenced-fetch").out.split())
    assert "replicas=3 2 in the model" in flawed and "StrongIsr expected to be violated" in flawed
    assert "repaired rp-05-unfenced-fetch-repaired in a spec replication/kip-279 violates StrongIsr" in flawed
    assert "See also rp-05-unfenced-fetch-repaired" in flawed
    twin = " ".join(call("list", "rp-05-unfenced-fetch-repaired").out.split())
    assert "repairs rp-05-unfenced-fetch" in twin
    row = call("list", "exactly-once-lost-answers", "--json").json["scenarios"][0]
    assert row["faults"]["drop"] == 3 and row["runs"] > 0
    tour = " ".join(call("list", "rp-01").out.split())
    for part in ("AckDurability violated in the last state", "16 steps", "kafka-proto demo rp-01"):
        assert part in tour
    assert call("list", "rp-01", "--json").json["tours"][0]["intro"]


def test_everything_can_be_shown_in_full_in_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is longer than the terminal, but for commands, which are to be copied."""
    monkeypatch.setenv("COLUMNS", "80")
    for some in (model_specs(), scenarios(), tours()):
        for one in some:
            shown = call("list", one.name)
            assert shown.code == 0 and f"{one.name}: " in shown.out
            long = [line for line in shown.out.splitlines() if len(line) > 80 and "kafka-proto" not in line]
            assert long == []


@pytest.mark.usefixtures("empty_folder")
@pytest.mark.parametrize("name", ["transactions/gist", "kafka/4.0", "s4-copied-tail", "exactly-once-zombie"])
def test_commands_that_are_shown_can_be_run(name: str) -> None:
    """As they stand, but for fewer runs; the demo, which goes on until it is ended, is asked for its help."""
    listing = call("list", name, "--json").json
    shown = [*listing["models"], *listing["scenarios"]][0]["commands"]
    assert {command.split()[1] for command in shown} >= {"simulate", "demo"}
    for command in shown:
        words = command.replace("--seeds 1000", "--seeds 3").replace("--seeds 100", "--seeds 3").split()[1:]
        if words[0] != "hunt":
            more = ["--help"] if words[0] == "demo" else ["--json"]
            assert call(*words, *more).code in (0, 1), command


def test_verbs_agree_with_the_number_of_what_is_counted() -> None:
    """One history violates, two violate; verbs with a singular of their own have it."""
    assert [counted(n, "history", "violate") for n in (0, 1, 2)] == [
        "0 histories violate", "1 history violates", "2 histories violate"]
    assert [counted(1, "run", verb) for verb in ("are", "were", "have")] == ["1 run is", "1 run was", "1 run has"]
    assert [counted(1_000, "run", verb) for verb in ("are", "leave")] == ["1,000 runs are", "1,000 runs leave"]
    assert (counted(1, "try"), agreeing(1, "leave"), agreeing(7, "leave")) == ("1 try", "leaves", "leave")
    assert some_of(1, 200, "run", "violate") == "1 of 200 runs violates"
    assert some_of(0, 1, "run", "are") == "0 of 1 run are"
