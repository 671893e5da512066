"""One driver at a time works on a folder, and workers that outlive their driver commit nothing there.

The driver locks a file in the folder, which names its process. The system takes the lock away with the process, however
that ends. Each driver draws a token; a worker that commits something for it compares tokens while it holds a second
lock, and a new driver writes its own token under that lock.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.model import Refusal
from harness.record.files import reason_of

DRIVER, COMMIT = ".driver", ".commit"
"""The locked files: of the driver, as long as it works; and of a process that commits something, for that moment."""
BUSY = (errno.EAGAIN, errno.EACCES)


@contextmanager
def alone(folder: Path, option: str) -> Iterator[str]:
    """Have a folder as its only driver until the block ends, and yield the token of that. Raises Refusal.

    `option` is the one of the command line by which another folder is given.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(folder / DRIVER, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise _unlockable(folder, error, option) from None
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in BUSY:
                raise Refusal(f"{folder} is in use by {_owner(folder)}; wait until that has ended, or give another "
                              f"folder with {option}") from None
            raise _unlockable(folder, error, option) from None
        token = secrets.token_hex(8)
        mine = {"pid": os.getpid(), "host": socket.gethostname(), "token": token}
        try:
            with _locked(folder):
                _rewrite(handle, json.dumps(mine) + "\n")
        except OSError as error:
            raise _unlockable(folder, error, option) from None
        try:
            yield token
        finally:
            _rewrite(handle, "")
    finally:
        os.close(handle)


@contextmanager
def committing(folder: Path, token: str) -> Iterator[None]:
    """Be the only one to commit something to a folder. Raises Refusal if it has another driver, and OSError."""
    with _locked(folder):
        if _driver_of(folder).get("token") != token:
            raise Refusal(f"{folder} is no longer worked on by the driver of this worker")
        yield


def shut_out(folder: Path) -> None:
    """As a folder's driver, let no remaining worker commit anything from now on. Raises OSError."""
    with _locked(folder):
        handle = os.open(folder / DRIVER, os.O_RDWR)
        try:
            _rewrite(handle, json.dumps(_driver_of(folder) | {"token": secrets.token_hex(8)}) + "\n")
        finally:
            os.close(handle)


def is_abandoned(folder: Path) -> bool:
    """Say whether a folder of ours had a driver that was killed, and has none now."""
    try:
        if folder.stat().st_uid != os.getuid() or not _driver_of(folder):
            return False
        handle = os.open(folder / DRIVER, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    handle = os.open(folder / COMMIT, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _rewrite(handle: int, text: str) -> None:
    """Write a file that stays open so that other machines see it, too."""
    os.ftruncate(handle, 0)
    os.pwrite(handle, text.encode(), 0)
    os.fsync(handle)


def _driver_of(folder: Path) -> dict[str, Any]:
    """Return what the file of the driver says, which is nothing while it is being written."""
    try:
        data = json.loads((folder / DRIVER).read_bytes())
    except (OSError, ValueError):
        data = None
    return data if isinstance(data, dict) else {}


def _owner(folder: Path) -> str:
    driver = _driver_of(folder)
    if not {"pid", "host"} <= set(driver):
        return "another process"
    return f"process {driver['pid']} on {'this machine' if driver['host'] == socket.gethostname() else driver['host']}"


def _unlockable(folder: Path, error: OSError, option: str) -> Refusal:
    return Refusal(f"cannot lock {folder}: {reason_of(error)}; give another folder with {option}")
