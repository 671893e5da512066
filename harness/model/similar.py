"""Mistyped names: which of the known ones were meant, and the sentence that says so."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

CLOSE, CLOSER = 0.65, 0.8
"""How alike two names must be, from 0 to 1, to suggest one for the other; and so if a third contains it."""
MOST_MEANT = 3
MOST_LISTED = 12
"""Known names up to which all are listed, even where one of them is meant."""


def similar(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the known names that may have been meant, at most three: those that contain it, else the most alike.

    Neither case nor punctuation counts. Of names in parts, such as `transactions/gist`, the parts that both begin with
    are left out of the comparison, and the parts that only a known one begins with may be missing.
    """
    names = tuple(dict.fromkeys(known))
    wanted = _bare(name)
    if not wanted:
        return ()
    same = [other for other in names if _bare(other) == wanted]
    inside = [other for other in names if len(wanted) > 1 and wanted in _bare(other)]
    if same:
        return tuple(same[:MOST_MEANT])
    enough = CLOSER if inside else CLOSE
    scores = [(_alike(name, other), other) for other in names if other not in inside]
    close = sorted((score for score in scores if score[0] >= enough), key=lambda score: -score[0])
    return (*inside, *(other for _, other in close))[:MOST_MEANT]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the question which known name was meant, or nothing if no name is similar."""
    meant = similar(name, known)
    if not meant:
        return ""
    *first, last = meant
    return f"did you mean {', '.join(first)} or {last}?" if first else f"did you mean {last}?"


def unknown(said: str, name: str, known: Iterable[str], has: str, see: str = "") -> str:
    """Return one sentence about an unknown name.

    `said` begins it, `has` stands before the list of what is known ("the models are"), `see` says where the names can
    be looked up; it stands instead of a long list.
    """
    names = tuple(dict.fromkeys(known))
    question = did_you_mean(name, names)
    rest = f"{has} {', '.join(names) or 'none'}"
    if see and (question or not has):
        rest = f"see {see}"
    elif question and len(names) > MOST_LISTED:
        rest = ""
    return f"{said}; {' '.join(filter(None, (question, rest)))}"


def _bare(name: str) -> str:
    """Return a name without what is easily mistaken: case and punctuation."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _alike(name: str, other: str) -> float:
    """Return how much alike two names are, from 0 to 1."""
    mine, others = name.casefold().split("/"), other.casefold().split("/")
    shared = 0
    while shared < min(len(mine), len(others)) - 1 and mine[shared] == others[shared]:
        shared += 1
    rest = "/".join(mine[shared:])
    ends = [others[shared:]] if shared else [others[n:] for n in range(len(others))]
    return max(SequenceMatcher(None, rest, "/".join(end)).ratio() for end in ends)
