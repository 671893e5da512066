"""The demo in a terminal: typed at a pseudo-terminal, read from a pipe, and its screen at any size."""

from __future__ import annotations

import random
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.commands.command_line import call
from support.commands.pseudo_terminal import END, ENTER, ESCAPE, INTERRUPT, PAGE_DOWN, TAB, UP, Person
from support.demo.sessions import TXN, opened, run_script, told
from support.paths import ROOT, TRAILS

from harness.demo.session.questions import EXPORTS
from harness.demo.terminal.screen import DemoScreen, plain
from harness.demo.terminal.terminal import console_of
from harness.demo.terminal.trio_stepper import TrioStepper
from harness.model import Refusal, find_tour

SIZES = ((40, 12), (80, 24), (100, 30), (129, 24), (160, 50), (300, 80))


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    """Somebody who has started the demo of a model, in a folder of their own."""
    with Person("demo", "--terminal", TXN, folder=tmp_path) as somebody:
        somebody.wait("can happen", "InitTransactions(c1)", "> a number, or a verb")
        yield somebody


def test_step_by_hand_partition_heal_and_leave(person: Person) -> None:
    """Numbers take steps, verbs hurt and mend, the header counts, Tab completes, and quit ends with 0."""
    person.say("1", "step 1,", "InitTransactions(c1) [init invoke]", "RequestTimeout(c1,b1)")
    person.say("RequestTimeout(c1,b1)", "step 2,", "<- m1 InitProducerIdRequest")
    person.type("part" + TAB, "> partition")
    person.type("b1 c1" + ENTER, "step 3,", "Partition(b1,c1) [fault]")
    person.say("deliver m1", "cannot deliver m1 now: b1 is partitioned from c1; heal them first")
    person.say("heal c1 b1", "step 4,", "Heal(b1,c1) [heal]")
    person.say("deliver 1", "step 5,", "ReceiveInitProducerIdRequest(b1,c1)")
    person.say("quit")
    assert person.ended() == 0
    assert person.sees(f"left {TXN} after 5 steps, not saved")


def test_help_completion_and_earlier_lines(person: Person) -> None:
    """Help fills the screen and is put away; Tab offers what may follow; Up brings back what was said."""
    person.say("help", "deliver M", "partition A B", "PageDown")
    person.type(PAGE_DOWN + PAGE_DOWN, "save FILE [over]")
    person.type(ESCAPE, "can happen")
    person.type("crash " + TAB, "> crash b", " b1", " b2")
    person.type(TAB, "> crash b1")
    person.type(INTERRUPT)
    person.wait_until(lambda: not person.sees("> crash"))
    person.say("help drop", "drop M  lose message M")
    person.type(UP, "> help drop")
    person.type(INTERRUPT + END)
    assert person.ended() == 0


def test_rewind_branch_switch_and_save_a_trail_that_replays(person: Person, tmp_path: Path) -> None:
    """Another step after a rewind makes a branch; the saved trail replays on the command line to the same digest."""
    for line in ("1", "1", "1"):
        person.say(line)
    person.wait("step 3,")
    person.say("rewind 1", "step 1 of 3")
    person.say("crash b1", "step 2,", "branch 2", "Crash(b1) [fault]")
    person.say("branch without b1")
    person.say("branches", "main: 3 steps", "* without b1: 2 steps, left main after step 1, here at step 2")
    person.say("switch main", "step 1 of 3", "main")
    person.say("forward end")
    person.say("where", "digest")
    digest = next(found[1] for line in person.look() if (found := re.search(r"digest +([0-9a-f]{64})", line)))
    person.say("save by-hand.trail.jsonl", "3 steps written to by-hand.trail.jsonl")
    person.type("load by" + TAB, "> load by-hand.trail.jsonl")
    person.type(INTERRUPT)
    assert call("replay", tmp_path / "by-hand.trail.jsonl", "--json").json["digest"] == digest
    person.say("save by-hand.trail.jsonl", "by-hand.trail.jsonl is there already; say over after it to replace it")
    person.say("load by-hand.trail.jsonl", "at step 3 of 3, no violation")


def test_tour_of_the_lost_record_ends_in_its_violation(person: Person) -> None:
    """Enter alone goes from caption to caption, up to the last one."""
    tour = find_tour("rp-01")
    person.say("tour rp-01", "step 0 of 16", "Two replicas of one partition")
    for n in range(1, 17):
        person.type(ENTER, f"step {n}", tour.steps[n - 1][1][:40])
    person.wait("violates AckDurability: p1-1 was acknowledged at offset 0, where the leader r2 has nothing")
    person.type(ENTER, "step 16, 3 FAIL")


def test_interrupt_stops_a_run_but_not_the_session(person: Person) -> None:
    """A run is stopped between two steps; then it takes two more interrupts to leave."""
    person.say("faults on")
    person.say("speed 4")
    person.say("run until end", "running: random")
    person.wait_until(lambda: not person.sees("step 0,") and not person.sees("step 1,"))
    person.type(INTERRUPT, "stopped at step")
    assert not person.sees("running:")
    person.say("rewind 0", "step 0 of")
    person.type(INTERRUPT, "Ctrl-C again leaves")
    person.type(INTERRUPT)
    assert person.ended() == 0


def test_end_asked_for_by_a_signal_leaves_with_a_sentence(person: Person) -> None:
    """The terminal is as it was, and the exit code is that of every interrupted command."""
    person.say("run until end", "stopped at step")
    person.process.send_signal(signal.SIGTERM)
    assert person.ended() == 130
    assert person.sees("kafka-proto: interrupted; files that were saved are complete")


def test_window_of_another_size_is_filled_again(person: Person) -> None:
    """Smaller and larger, the input line stays the last one, and nothing is cut off without a mark."""
    person.say("tour commit")
    person.type(ENTER * 3, "step 3 of 20")
    for columns, rows in ((80, 24), (160, 50), (60, 20)):
        person.resize(columns, rows)
        person.wait_until(lambda: person.look()[-1].startswith("> ") and person.sees("can happen", "step 3 of 20"))
        assert len(person.look()) == rows


def test_painting_that_a_resize_cuts_off_is_made_good(person: Person) -> None:
    """The terminal's cursor is then not where the demo left it; the whole screen is painted all the same."""
    person.say("tour commit", "step 0 of 20", "can happen")
    person.wait_until(lambda: person.look()[-1].startswith("> "))
    person.lose_the_cursor()
    person.resize(80, 24)
    person.wait_until(lambda: person.look()[0].startswith(" commit:") and person.sees("can happen", "step 0 of 20"))


@pytest.mark.parametrize(("line", "sentence"), [
    ("99", "expected a step from 1 to 15, found 99; steps all lists them"),
    ("dance", "'dance' is not a verb or a step; help lists the verbs, steps the possible steps"),
    ("Crash", "'Crash' is several steps: 13 Crash(b1), 15 Crash(b2); give the number of one"),
    ("deliver", "expected a message to deliver, such as m1, found 'nothing'"),
    ("drop m1", "no message is under way"),
    ("crash b9", "cannot crash b9 now: there is nobody of that name; there are c1, b1, b2"),
    ("restart b1", "cannot restart b1 now: it is up"),
    ("heal b1 b2", "cannot heal b1 b2 now: nobody is cut off"),
    ("partition b1", "expected two actors to partition, found 'b1'"),
    ("timer", "there is no timer that could happen now"),
    ("run backwards", "expected run [N] [until violation | action NAME | step N | end], found 'backwards'"),
    ("run until never", "expected to run until violation, end, action:NAME or step:N, found 'never'"),
    ("strategy", "expected strategy NAME [SEED], found 'nothing'"),
    ("strategy luck", "there is no strategy 'luck' here; the strategies are random, pct, guided"),
    ("faults", "expected faults on or faults off, found 'nothing'"),
    ("speed fast", "expected steps a second, or 0 for as fast as possible, found 'fast'"),
    ("rewind 5", "expected a step from 0 to 0 to go back to, found 5"),
    ("forward", "no step is kept ahead of this one; take one, or run"),
    ("undo", "there is nothing to undo"),
    ("switch elsewhere", "there is no branch 'elsewhere'; the branches are main"),
    ("state b9", "expected one of c1, b1, b2, found 'b9'"),
    ("state b1 at 9", "expected a step from 0 to 0, found 9"),
    ("message m1", "no message is under way"),
    ("help dance", "there is no verb 'dance'; help lists them"),
    ("save", "expected save FILE, found no file"),
    ("save a\0b", "no file can be called 'a\\x00b'; give another path"),
    ("load ~nobody-of-this-name/x", "no file can be called '~nobody-of-this-name/x'; give another path"),
    ("save " + "x" * 999, f"no file can be called '{'x' * 60}'; give another path"),
    ("save .", ". is a folder; give the path of a file"),
    ("load nowhere.trail.jsonl", "there is no trail at nowhere.trail.jsonl; give the path of"),
    ("open nothing", "there is no model 'nothing'"),
    (f"open {TXN} producers=many", "size producers must be a whole number, not 'many'"),
    ("open commit producers=2", "a tour has its own sizes; leave out producers=2"),
    ("tour comit", "there is no tour 'comit'; did you mean commit? the tours are commit, abort"),
    ("next", "no step is kept ahead of this one; take one, or run"),
    ("export png x", "expected export FORM FILE with the form svg, text, mermaid"),
    ("spec", "no step was taken yet; spec explains a step"),
    ("spec 7", "expected a step from 0 to 0, found 7"),
    ("why", "expected an action, such as the name of a step, found 'nothing'"),
    ("why Dance", "no action 'Dance' was possible anywhere near; Tab after why completes those that were"),
    ("shrink", "no claim is violated up to here, so there is nothing to shrink"),
    ("load #s=abc", "this is neither a trail nor a link to one; expected JSON Lines, or what follows #trail="),
    ("undo twice", "undo takes no arguments, found 'twice'"),
])
def test_bad_line_is_answered_in_one_sentence_and_the_session_goes_on(line: str, sentence: str) -> None:
    """The next line is carried out as if nothing had happened; the exit code says that something was refused."""
    code, out, err = run_script(line, "1")
    assert code == 2
    assert len(err.splitlines()) == 1 and err.startswith(f"kafka-proto: {sentence}"), err
    assert "   1 ok 14/14  InitTransactions(c1)" in out


@pytest.mark.parametrize("seed", range(4))
def test_any_words_are_carried_out_or_refused(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever follows whatever: an answer or one sentence, never anything else, and a screen that can be drawn."""
    monkeypatch.chdir(tmp_path)
    chance = random.Random(seed)
    what = ("fencing-battle", "transactions/gist", "leaders-crash", "compaction/pulsar")[seed]
    session = opened(what)
    with TrioStepper(session) as stepper:
        console = console_of(session, stepper)
        verbs = sorted(console.verbs.keys() - {"quit", "run", "shrink", "why", "export"})
        words = [*verbs, "1", "7", "0", "-1", "m1", "m99", "b1", "c1", "on", "over", "at", "end", "commit", "\0"]
        carried_out = 0
        for _ in range(150):
            line = " ".join([chance.choice([*verbs, "1", "2", "3"]), *chance.choices(words, k=chance.randrange(3))])
            try:
                console.do(line)
                carried_out += 1
            except Refusal as error:
                assert "\n" not in str(error)
            assert len(DemoScreen(console).lines(80, 24)) == 24
            console.completions(line.split()[: chance.randrange(3)], chance.choice(["", "b", "1"]))
    assert carried_out > 9


def test_lines_from_a_pipe_are_carried_out_and_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps come as a timeline, answers as text, blank lines and comments are passed over, quit ends before the end."""
    monkeypatch.chdir(tmp_path)
    lines = ("1", "1", "drop m1", "state c1", "run 4", "undo", "export text run.txt", "quit", "dance")
    out = told("# by hand", "", *lines)
    assert "   3 ok 14/14  |                   Drop [fault]" in out and "x> InitProducerIdRequest" in out
    assert "c1 after step 3" in out and "stopped at step 7" in out and "at step 3 of 3, main" in out
    assert "dance" not in out
    assert "Drop [fault]" in (tmp_path / "run.txt").read_text()


@pytest.mark.parametrize("what", ["fencing-battle", "leaders-crash", "compaction/pulsar", "rp-05-unfenced-fetch"])
def test_tasks_on_trio_and_plain_tables_tell_the_same(what: str) -> None:
    """Steps by hand, runs, rewinds, branches and another model: every line and digest is equal."""
    lines = ("1", "faults on", "run 25 until end", "where", "rewind 9", "1", "run 10 until end", "undo", "switch main",
             "forward end", "where", "tour pc-01", "forward 24", "2", "forward", "where", "dance")
    plain_ = run_script(*lines, what=what)
    assert plain_ == run_script(*lines, what=what, on_trio=True)
    assert plain_[1].count("digest ") == 3


@pytest.mark.parametrize("form", [form for form in EXPORTS if form != "tla"])
def test_export_writes_each_form_and_replaces_nothing_unasked(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second time it takes the word `over`. The digest stands in those forms that have one."""
    monkeypatch.chdir(tmp_path)
    export = f"export {form} a file"
    code, out, err = run_script("run 10", export, export, f"{export} over", "where")
    assert code == 2 and len(err.splitlines()) == 1 and "is there already" in err
    text, digest = (tmp_path / "a file").read_text(encoding="utf-8"), re.search(r"digest +([0-9a-f]{64})", out)
    assert digest is not None and len(text) > 300
    assert digest[1] in text or form in ("mermaid", "shiviz", "log")
    assert [path.name for path in tmp_path.iterdir()] == ["a file"]


@pytest.mark.parametrize("what", [TXN, "transactions/gist", "leaders-crash", "compaction/pulsar", "rolling-restart"])
@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_screen_fits_at_any_size(what: str, columns: int, rows: int) -> None:
    """Exactly as many lines as there is room for, none longer than the screen is wide; the run, a text, a refusal."""
    console = console_of(opened(what))
    screen = DemoScreen(console)
    for line in ("", "faults on", "run 30 until end", "help", "rewind 7", "state"):
        console.do(line)
        console.session.run()
        screen.put_away()
        if len(console.said) > 1:
            screen.read(console.said)
        screen.note = ("refused", "expected something else, found this " * 9)
        for pages in (0, 1, -1, 99, -99):
            screen.scroll(pages)
            lines = plain(screen.lines(columns, rows))
            assert len(lines) == rows
            assert max(map(len, lines)) <= columns


def test_screen_marks_what_does_not_fit() -> None:
    """Lines that are left out are counted, and PageUp shows where it is."""
    console = console_of(opened())
    console.do("faults on")
    console.do("run 30")
    console.session.run()
    screen = DemoScreen(console)
    shown = plain(screen.lines(80, 24))
    assert "step 30" in shown[0]
    screen.scroll(1)
    assert any("lines more, PageDown goes there" in line for line in plain(screen.lines(80, 24)))
    screen.scroll(99)
    assert any(line.startswith("   1 ok") for line in plain(screen.lines(80, 24)))


def test_reasons_name_the_spec_the_guards_and_what_an_action_stops_at() -> None:
    """What a step is in the spec, with the values that its guards read; per instance why an action is not possible."""
    out = told("tour zombie", "forward 2", "spec", "why ReceiveInitProducerIdRequest")
    assert "is ReceiveInitPidRequest and then CommitTxnLogAppend in the spec" in out
    assert "guards, here" in out and "guards, in the spec" in out
    assert "not ReceiveInitProducerIdRequest(b1,c2)\n      no Request is on its way to b1" in out


def test_shrunk_run_is_a_branch_and_a_link_carries_it() -> None:
    """The tour of the leaked ledger is longer than need be; the link is opened as the run it was made of."""
    out = told("tour pc-01", "forward end", "shrink", "link", "where", "branches")
    assert "27 steps became 22; they are the branch shrunk" in out and "* shrunk: 22 steps" in out
    digest = re.search(r"digest +([0-9a-f]{64})", out)
    link = next(line for line in out.splitlines() if line.startswith("#trail="))
    again = told(f"load {link}", "where")
    assert digest is not None
    assert "the link: at step 22 of 22, violates NoLeak" in again and digest[1] in again


def test_shrink_at_the_terminal_leaves_the_keys_free(person: Person) -> None:
    """It is worked out beside the session, and its answer comes when it is there."""
    person.say(f"load {TRAILS / 's4-copied-tail.trail.jsonl'}", "violates LogsAgreeUpToHwm")
    person.say("shrink", "8 steps became 8, and there is no shorter one; they are the branch shrunk", "step 8, shrunk")
    person.say("why Dance", "no action 'Dance' was possible anywhere near")


def test_every_verb_is_documented_and_every_documented_verb_is_there() -> None:
    """The table of docs/use/demo.md says each verb as help does."""
    page = (ROOT / "docs" / "use" / "demo.md").read_text(encoding="utf-8")
    table = page.partition("\n| verb | |\n")[2].partition("\n\n")[0]
    documented = {usage.replace("\\|", "|") for line in table.splitlines() if line.startswith("| `")
                  for usage in re.findall(r"`([^`]+)`", line.split(" | ")[0])}
    verbs = console_of(opened()).verbs.values()
    assert documented == {verb.usage for verb in verbs} | {"N"}


def test_tour_named_on_the_command_line_is_opened(tmp_path: Path) -> None:
    """A tour says itself what it is about; sizes beside it are refused."""
    refused = call("demo", "--terminal", "commit", "--size", "producers=2").refusal
    assert refused == "a tour has its own model and faults; leave out --size, --set and --faults"
    with Person("demo", "--terminal", "zombie", columns=160, rows=50, folder=tmp_path) as person:
        person.wait("zombie: kafka/4.0", "step 0 of 25", "1> InitTransactions(c1)", "Two producers with one")
        person.type(INTERRUPT + INTERRUPT)
        assert person.ended() == 0
