"""The entry of the command line: errors become one sentence and an exit code, interrupts end work in order.

Bad input is one sentence on stderr, never a traceback. The exit code is the command's own, 2 for wrong use or bad
input, 130 when interrupted, 141 when the reader of stdout went away. Nothing heavy is imported here: interrupts are
listened to before the commands are loaded.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import click

NAME = "kafka-proto"
WRONG_USE = 2
INTERRUPTED = 130
CLOSED_PIPE = 141
RARELY = 100_000, 20, 20
"""How often the garbage collector looks: classes and frozen values have no cycles, and a command makes many of them."""


def main() -> NoReturn:
    """Run the command line, and exit: the only place where errors become exit codes."""
    signal.signal(signal.SIGINT, _interrupt)
    signal.signal(signal.SIGTERM, _interrupt)
    gc.set_threshold(*RARELY)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _invoke(sys.argv[1:])
        if sys.stdout is not None:
            sys.stdout.flush()
    except click.ClickException as error:
        code = _say(_sentence(error), WRONG_USE)
    except KeyboardInterrupt as error:
        interrupt_handled()
        code = _say(str(error) or "interrupted; nothing was written", INTERRUPTED)
    except MemoryError:
        code = _say("out of memory; use smaller sizes, --symmetry or --memory", WRONG_USE)
    except BrokenPipeError:
        _forget_stdout()
        code = CLOSED_PIPE
    except OSError as error:
        _forget_stdout()
        why = error.strerror or error
        code = _say(f"cannot go on: {why}; check where the output goes and try again", WRONG_USE)
    interrupt_handled()
    sys.exit(code)


def _forget_stdout() -> None:
    """Keep the interpreter from writing its buffered output to a stream that does not take it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _invoke(arguments: Sequence[str]) -> int:
    from harness.cli.group import cli
    from harness.model import Refusal
    from harness.model.registry import not_loaded

    try:
        with cli.make_context(NAME, list(arguments)) as context:
            code = cli.invoke(context)
    except Refusal as error:
        return _say(str(error), WRONG_USE)
    except click.exceptions.Exit as done:  # --help, --version
        code = done.exit_code
    for sentence in not_loaded():
        _say(f"warning: {sentence}", WRONG_USE)
    return code if isinstance(code, int) else 0


def _interrupt(*_: Any) -> NoReturn:
    """End the work under way. What follows is short, so that further interrupts are not listened to.

    The interpreter drops an exception that is raised in one of its callbacks, so this one is raised again every second
    until it is `interrupt_handled`.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _interrupt)
        signal.setitimer(signal.ITIMER_REAL, 1)
    raise KeyboardInterrupt


def interrupt_handled() -> None:
    """Note that an interrupt has come to where it is dealt with."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def after_the_run() -> Iterator[Callable[[], bool]]:
    """Hold interrupts back until a run is over, and give a function that says whether there was one.

    An interrupt in the middle would tear the tasks of a run on trio apart, or a trail from its history. The third one
    gives the run up, with all that was not yet written.
    """
    count = 0

    def note(*_: Any) -> None:
        nonlocal count
        count += 1
        if count == 3:
            from harness.record.parts import remove_parts

            remove_parts()
            _say("interrupted; the run under way was given up and nothing was written", INTERRUPTED)
            os._exit(INTERRUPTED)

    before = [(number, signal.signal(number, note)) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield lambda: count > 0
    finally:
        for number, handler in before:
            signal.signal(number, handler)
    if count:
        _interrupt()


def _say(sentence: str, code: int) -> int:
    click.echo(f"{NAME}: {' '.join(sentence.split())}", err=True)
    return code


def _sentence(error: click.ClickException) -> str:
    """Return what click has to say, as a sentence like all others, with what to do next."""
    said = error.format_message().strip().removesuffix(".")
    context = getattr(error, "ctx", None)
    if isinstance(error, click.NoSuchOption) and context is not None:
        from harness.model import did_you_mean

        known = [option for param in context.command.params for option in (*param.opts, *param.secondary_opts)]
        meant = did_you_mean(error.option_name, [option for option in known if option.startswith("-")])
        said = f"no such option {error.option_name!r}" + (f"; {meant}" if meant else "")
    todo = f" see {context.command_path} --help" if context is not None else ""
    return f"{said[:1].lower()}{said[1:]}{';' if todo and not said.endswith('?') else ''}{todo}"


class OneOf(click.Choice):  # type: ignore[type-arg]
    """The type of an option that takes one of some names; for a mistyped name, the error suggests the nearest one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name. Raises BadParameter."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            from harness.model import did_you_mean

            meant = did_you_mean(str(value), [str(choice) for choice in self.choices])
            if not meant:
                raise
            raise click.BadParameter(f"{error.message.rstrip('.')}; {meant}", ctx, param) from None


def whole(minimum: int) -> Callable[[str], int]:
    """Return the type of an option that is a whole number of at least some minimum."""

    def number(value: str) -> int:
        try:
            found = int(value)
        except ValueError:
            found = minimum - 1
        if found < minimum:
            raise click.BadParameter(f"expected a whole number of at least {minimum}, found {value[:40]!r}")
        return found

    return number
