"""A console on the whole screen of a terminal: keys, the input line with its history and completion, and redrawing.

This is the home of prompt_toolkit. `screen` says what is drawn, `console` what a line means.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import Float, FloatContainer, HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl, FormattedTextControl
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import AfterInput, BeforeInput, ConditionalProcessor
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style

from harness.demo.terminal.console import Console, LongJob
from harness.demo.terminal.screen import STYLE, DemoScreen
from harness.model import Refusal

SLICE = 20
"""Steps of a run between two looks at the keys."""
TELL = 0.25
"""Seconds between two looks at how far a job is."""
LEAVE = "Ctrl-C again leaves, as quit does"


class Words(Completer):
    """Completes the word before the cursor."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterable[Completion]:
        *before, last = document.text_before_cursor.split(" ")
        before = [word for word in before if word]
        for word in self.console.completions(before, last):
            verb = self.console.verbs.get(word) if not before else None
            space = " " if verb is not None and verb.usage != verb.name else ""
            yield Completion(word + space, -len(last), display=word)


class FullScreen:
    """A console on the whole screen of a terminal."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.session = console.session
        self.screen = DemoScreen(console, "│" if "utf" in (sys.stdout.encoding or "").lower() else "|")
        self.screen.note = ("good", "help lists the verbs, Tab completes, quit leaves")
        self._may_leave = False
        self._job: LongJob | None = None
        """What is worked out in a thread."""
        self._task: asyncio.Task[None] | None = None
        self.buffer = Buffer(completer=Words(console), history=InMemoryHistory(), accept_handler=self._accept,
                             multiline=False, complete_while_typing=False)
        self.app = self._app()

    def run(self) -> None:
        """Use the terminal until the user leaves."""
        self.app.run()

    def _app(self) -> Application[None]:
        empty = Condition(lambda: not self.buffer.text)
        hint = ConditionalProcessor(AfterInput(self._hint, style="class:dim"), empty)
        control = BufferControl(self.buffer, input_processors=[BeforeInput("> ", style="class:number"), hint])
        body = HSplit([
            Window(FormattedTextControl(self._picture), always_hide_cursor=True, wrap_lines=False),
            Window(control, height=1, wrap_lines=False),
        ])
        menu = Float(CompletionsMenu(max_height=8, scroll_offset=1), xcursor=True, ycursor=True)
        depth = ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else None
        app: Application[None] = Application(
            Layout(FloatContainer(body, [menu]), control), style=Style.from_dict(STYLE), key_bindings=self._keys(),
            full_screen=True, color_depth=depth, mouse_support=False,
        )
        app.ttimeoutlen = 0.05
        app.before_render += self._begin_at_the_corner
        return app

    def _begin_at_the_corner(self, app: Application[None]) -> None:
        """Paint a whole screen from its corner, wherever the cursor is: a resize may cut off what was being written."""
        if app.renderer.last_rendered_screen is None:
            app.renderer.clear()

    def _picture(self) -> StyleAndTextTuples:
        size = self.app.output.get_size()
        found: StyleAndTextTuples = []
        for line in self.screen.lines(size.columns, size.rows - 1):
            found += [(f"class:{style}" if style else "", text) for style, text in line]
            found.append(("", "\n"))
        return found[:-1]

    def _hint(self) -> str:
        session = self.session
        if session.runner.running:
            return "Ctrl-C stops the run"
        if session.at < session.branch.length:
            return "Enter: the next step"
        return "a number, or a verb"

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add("c-c")
        @keys.add("<sigint>")
        def interrupt(event: KeyPressEvent) -> None:
            self._interrupt()

        @keys.add("c-d")
        def leave(event: KeyPressEvent) -> None:
            if self.buffer.text:
                self.buffer.delete()
            else:
                event.app.exit()

        @keys.add("pageup")
        def up(event: KeyPressEvent) -> None:
            self.screen.scroll(-1 if self.screen.text is not None else 1)

        @keys.add("pagedown")
        def down(event: KeyPressEvent) -> None:
            self.screen.scroll(1 if self.screen.text is not None else -1)

        @keys.add("escape", eager=True)
        def back(event: KeyPressEvent) -> None:
            self.buffer.cancel_completion()
            self.screen.put_away()

        return keys

    def _interrupt(self) -> None:
        """Stop what is under way; else forget the line; and leave when there is neither, twice."""
        if self.session.runner.running:
            self.session.pause()
        elif self._job is not None:
            self.screen.note = ("good", f"gave up {self._job.says}")
            if self._job.stop is not None:
                self._job.stop()
            self._job = None
        elif self._may_leave and not self.buffer.text:
            self.app.exit()
        else:
            self.buffer.reset()
            self._may_leave = True
            self.screen.note = ("good", LEAVE)

    def _accept(self, buffer: Buffer) -> bool:
        """Carry out the line that was typed; an empty one is the next kept step."""
        self._may_leave = False
        line = buffer.text.strip() or ("next" if self.session.at < self.session.branch.length else "")
        if self._does(lambda: self.console.do(line)) and line:
            self._go_on()
        return False

    def _does(self, what: Callable[[], None]) -> bool:
        """Do something to the console and show its answer, or why it cannot be done; say whether it was done."""
        version = self.session.version
        try:
            what()
        except Refusal as error:
            self.screen.note = ("refused", " ".join(str(error).split()))
            return False
        said = self.console.said
        if len(said) > 1:
            self.screen.read(said)
        elif version != self.session.version:
            self.screen.put_away()
        self.screen.note = ("good", said[0] if len(said) == 1 else "")
        return True

    def _go_on(self) -> None:
        """Begin what the last line wants to go on beside the keys: leaving, a run, a job."""
        job = self.console.job
        if self.console.is_left:
            self.app.exit()
        elif job is not None:
            self._job = job
            self.screen.note = ("good", f"{job.says}; Ctrl-C gives up")
            self.app.create_background_task(self._work(job))
        elif self.session.runner.running and (self._task is None or self._task.done()):
            self._task = self.app.create_background_task(self._run())

    async def _run(self) -> None:
        """Take the steps of a run, as fast as it is to go, and look at the keys in between."""
        session = self.session
        while self.console.stepper.run(1 if session.runner.speed else SLICE):
            self.app.invalidate()
            await asyncio.sleep(1 / session.runner.speed if session.runner.speed else 0)
        self.screen.note = ("good", self.console.why_it_stopped())
        self.app.invalidate()

    async def _work(self, job: LongJob) -> None:
        """Do a job in a thread, and show its result, unless it was given up or another one was begun."""
        done = asyncio.get_running_loop().run_in_executor(None, job.work)
        while job.progress is not None and not done.done():
            await asyncio.wait([done], timeout=TELL)
            if self._job is not job:
                break
            self.screen.note = ("good", f"{job.says}: {job.progress()}; Ctrl-C gives up")
            self.app.invalidate()
        with suppress(Refusal):
            await done
        if self._job is job:
            self._job = None
            self._does(lambda: job.then(done.result()))
            self.app.invalidate()
