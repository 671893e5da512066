"""A client's features as a program: a name on stdin, one line of JSON on stdout, as those of Java and Go."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping

Feature = Callable[..., None]


def same(expected: object, found: object) -> None:
    """Raise AssertionError where two values differ."""
    if expected != found:
        raise AssertionError(f"expected {expected}, found {found}")


def answer_lines(features: Mapping[str, Feature]) -> None:
    """Run features, by name with arguments, as long as there are lines; the program's argument says where brokers are.

    A failure is the answer, and nothing else: whoever asks judges it.
    """
    for line in sys.stdin:
        name, *arguments = line.split()
        error = ""
        try:
            if name not in features:
                raise AssertionError("no feature of this client")
            features[name](sys.argv[1], *arguments)
        except Exception as problem:
            error = f"{type(problem).__name__}: {problem}"
        print(json.dumps({"feature": line.strip(), "error": error}), flush=True)
