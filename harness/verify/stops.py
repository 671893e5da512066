"""How a condition came out inside a comprehension: the items it was asked for, and the one that decided.

Nothing of this is seen in the lines that were executed, so the expression is evaluated again with the variables that
were known then: the functions of a protocol are pure.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

Comprehension = ast.GeneratorExp | ast.ListComp | ast.SetComp
MOST_ITEMS = 200


@attrs.frozen
class Missed:
    """Why a comprehension gives nothing for an item: the condition that is false, or the loop that has no items."""

    line: int
    text: str
    values: Mapping[str, Any]


def missed(node: Comprehension, scope: Mapping[str, Any], args: tuple[str, ...]) -> Missed | None:
    """Return why a comprehension gives nothing, for the item that is most like some arguments; None if it gives.

    `scope` are the variables that it sees. None, too, where it cannot be evaluated.
    """
    found: list[Missed] = []
    try:
        for _, why in _items(node, 0, dict(scope), {}):
            if why is None:
                return None
            found.append(why)
            if len(found) >= MOST_ITEMS:
                break
    except Exception:
        return None  # an expression that was never evaluated in this state
    return max(found, key=lambda one: sum(str(value) in args for value in one.values.values()), default=None)


def _items(
    node: Comprehension, depth: int, scope: dict[str, Any], bound: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], Missed | None]]:
    """Yield for each item the variables that it binds, and why it is left out, or None if it is not."""
    if depth == len(node.generators):
        yield bound, None
        return
    loop, is_empty = node.generators[depth], True
    for item in value_of(loop.iter, scope):
        is_empty = False
        names = _bind(loop.target, item)
        inner, bindings = {**scope, **names}, {**bound, **names}
        false = next((test for test in loop.ifs if not value_of(test, inner)), None)
        if false is not None:
            yield bindings, Missed(false.lineno, f"if {ast.unparse(false)}", bindings)
        else:
            yield from _items(node, depth + 1, inner, bindings)
    if is_empty:
        text = f"for {ast.unparse(loop.target)} in {ast.unparse(loop.iter)}"
        yield bound, Missed(loop.iter.lineno, text, bound)


def deciding(test: ast.expr, scope: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of the item that decided an `all(...)` that is false, or an `any(...)` that is true."""
    for call in ast.walk(test):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ("all", "any")):
            continue
        if len(call.args) == 1 and isinstance(call.args[0], ast.GeneratorExp | ast.ListComp):
            try:
                return _decided(call.args[0], call.func.id == "any", dict(scope))
            except Exception:  # an expression that was never evaluated in this state
                continue
    return {}


def _decided(node: ast.GeneratorExp | ast.ListComp, wanted: bool, scope: dict[str, Any]) -> dict[str, Any]:
    """Return the variables of the first item for which the element is as wanted."""
    for bound, why in _items(node, 0, scope, {}):
        if why is None and bool(value_of(node.elt, {**scope, **bound})) is wanted:
            return bound
    return {}


def value_of(node: ast.expr, scope: dict[str, Any]) -> Any:
    """Return the value of an expression. Raises whatever it raises."""
    return eval(compile(ast.Expression(node), "<condition>", "eval"), scope)


def _bind(target: ast.expr, item: Any) -> dict[str, Any]:
    """Return the variables that a target of a loop binds. Raises ValueError for a target that is no name or tuple."""
    if isinstance(target, ast.Name):
        return {target.id: item}
    if isinstance(target, ast.Tuple):
        parts = list(item)
        bound = [_bind(one, part) for one, part in zip(target.elts, parts, strict=True)]
        return {name: value for names in bound for name, value in names.items()}
    raise ValueError("an unusual target")
