"""A console on the whole screen of a terminal: keys, the input line with its history and completion, and redrawing.

This is the home of prompt_toolkit. `screen` says what is drawn, `verbs` what a line means.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable

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

from harness.demo.screen import STYLE, Screen
from harness.demo.verbs import Console
from harness.model import Refusal

SLICE = 20
"""Steps of a run between two looks at the keys."""
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
        self.screen = Screen(console, "│" if "utf" in (sys.stdout.encoding or "").lower() else "|")
        self.screen.note = ("good", "help lists the verbs, Tab completes, quit leaves")
        self._may_leave = False
        self._task: asyncio.Task[None] | None = None
        self.buffer = self._buffer()
        self.app = self._app()

    def run(self) -> None:
        """Use the terminal until somebody leaves."""
        self.app.run()

    def _buffer(self) -> Buffer:
        return Buffer(completer=Words(self.console), history=InMemoryHistory(), accept_handler=self._accept,
                      multiline=False, complete_while_typing=False)

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
        return app

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
        """Stop a run; else forget the line; and leave when there is neither, twice."""
        if self.session.runner.running:
            self.session.pause()
        elif self._may_leave and not self.buffer.text:
            self.app.exit()
        else:
            self.buffer.reset()
            self._may_leave = True
            self.screen.note = ("good", LEAVE)

    def _accept(self, buffer: Buffer) -> bool:
        """Carry out the line that was typed; an empty one is the next kept step."""
        self._may_leave = False
        at, version = self.session.at, self.session.version
        line = buffer.text.strip() or ("next" if at < self.session.branch.length else "")
        try:
            self.console.do(line)
        except Refusal as error:
            self.screen.note = ("refused", " ".join(str(error).split()))
            return False
        said = self.console.said
        if len(said) > 1:
            self.screen.read(said)
        elif line and version != self.session.version:
            self.screen.put_away()
        self.screen.note = ("good", said[0] if len(said) == 1 else "")
        if self.console.is_left:
            self.app.exit()
        elif self.session.runner.running and (self._task is None or self._task.done()):
            self._task = self.app.create_background_task(self._run())
        return False

    async def _run(self) -> None:
        """Take the steps of a run, as fast as it is to go, and look at the keys in between."""
        session = self.session
        try:
            while session.run(1 if session.runner.speed else SLICE):
                self.app.invalidate()
                await asyncio.sleep(1 / session.runner.speed if session.runner.speed else 0)
            self.screen.note = ("good", self.console.why_it_stopped())
        except Refusal as error:
            session.pause()
            self.screen.note = ("refused", str(error))
        self.app.invalidate()
