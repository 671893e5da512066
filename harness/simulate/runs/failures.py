"""Shows a failed test its own error, without the frames of the harness and trio around it."""

from __future__ import annotations

from harness.simulate.states.guards import package_of

AROUND = ("harness", "trio", "outcome")
"""The packages whose frames come before those of a test that they call."""


def alone(error: BaseException) -> BaseException:
    """Return the one error that a nursery raised in a group, or the group if there are several."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def of_the_test(error: BaseException) -> BaseException:
    """Return the error that a test raised, out of a group where it is alone, its traceback beginning in the test."""
    found = alone(error)
    _trim(found)
    return found


def _trim(error: BaseException) -> None:
    """Remove the frames that led into the test; if an error is the harness's alone, all are kept."""
    first = error.__traceback__
    while first is not None and package_of(first.tb_frame) in AROUND:
        first = first.tb_next
    if first is not None:
        error.__traceback__ = first
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            _trim(one)
