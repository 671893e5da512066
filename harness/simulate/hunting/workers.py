"""Processes that work for a driver: they leave Ctrl-C to it, count what they make with it, and end with it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any


def counter() -> Any:
    """Return a counter that workers share with the process that starts them."""
    return multiprocessing.get_context("spawn").Value("q", 0)


@contextmanager
def workers(processes: int, made: Any) -> Iterator[Executor | None]:
    """Give processes to work in, or None for none; they end with the block, at once if it raises."""
    if not processes:
        _share(made)
        yield None
        return
    others = multiprocessing.active_children()
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(processes, context, initializer=_start_worker, initargs=(made,))
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            if process not in others:
                process.terminate()
        raise
    finally:
        executor.shutdown()


@contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Block Ctrl-C while workers start: they inherit that, so that none of them ever dies of it with a traceback."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker(made: Any) -> None:
    """A worker leaves Ctrl-C to the process that started it, and ends with it, however that ends."""
    _share(made)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent()


_MADE: Any = None
"""Where workers were started, and in each of them: the counter that all workers share."""


def _share(made: Any) -> None:
    global _MADE
    _MADE = made


def count_run() -> None:
    """Count a run, if a counter is shared."""
    if _MADE is not None:
        with _MADE.get_lock():
            _MADE.value += 1


def end_with_parent() -> None:
    """Let this worker end with the process that started it, however that ends."""
    threading.Thread(target=_await_parent, daemon=True).start()


def _await_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
