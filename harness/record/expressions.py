"""Invariants of a user's own: a Python expression over a model's variables, as `client["c1"].state != "HasPid"`.

The expression is the property's name, so that a trail which violates it replays like any other. A trail may come from
an untrusted source, so only expressions that look at values are taken: no statement, no call but of a few functions, no
name that begins with an underscore.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs

from harness.model import Model, Property, Refusal, View, always, unknown
from harness.model.message import Message
from harness.model.view import parts, slot

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    function.__name__: function for function in (abs, all, any, len, max, min, range, set, sorted, sum, zip)
}
METHODS = ("get", "items", "keys", "values")
MESSAGES = "messages"
"""Every message in flight, in a model that has no variable of this name."""
SOURCE = "an expression of the user's"
"""The source of such a property."""
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
TAKEN = (
    ast.Expression, ast.expr_context, ast.BoolOp, ast.boolop, ast.UnaryOp, ast.unaryop, ast.Compare, ast.cmpop,
    ast.BinOp, *OPERATORS, ast.IfExp, ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Call,
    ast.Tuple, ast.List, ast.Set, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.comprehension,
)


@attrs.frozen(eq=False)
class Indexed(Mapping[str, Any]):
    """A variable with an index, read as far as it is looked at: `tc_log["b1"]["p1"]`."""

    view: View
    name: tuple[str, ...]
    tree: Mapping[str, Any]

    def __getitem__(self, index: Any) -> Any:
        if str(index) not in self.tree:
            raise KeyError(f"{slot(*self.name)} has no {index!r}; it has {', '.join(self.tree)}")
        return _value(self.view, (*self.name, str(index)), self.tree[str(index)])

    def __iter__(self) -> Iterator[str]:
        return iter(self.tree)

    def __len__(self) -> int:
        return len(self.tree)


def _value(view: View, name: tuple[str, ...], tree: Mapping[str, Any]) -> Any:
    return Indexed(view, name, tree) if tree else view[slot(*name)]


def with_expressions(model: Model, names: tuple[str, ...]) -> Model:
    """Return the model with an invariant for each name that is an expression. Raises Refusal for an invalid expression.

    What is a property's name, or could be one, is no expression.
    """
    known = {prop.name for prop in model.properties}
    own = [name for name in dict.fromkeys(names) if name not in known and not name.isidentifier()]
    found = tuple(expressed(model, name) for name in own)
    return attrs.evolve(model, properties=(*model.properties, *found)) if found else model


def expressions_of(model: Model) -> list[str]:
    """Return the expressions that a model has as invariants."""
    return [prop.name for prop in model.properties if prop.source == SOURCE]


def expressed(model: Model, text: str) -> Property:
    """Return the invariant that an expression is. Raises Refusal if it cannot be evaluated in an initial state."""
    initial = model.initial_states()[0]
    variables: dict[str, Any] = {}
    for name in initial:
        tree = variables
        for part in parts(name):
            tree = tree.setdefault(part, {})
    expression, used = _parsed(text, model.name, {*variables, MESSAGES})
    arguments = ast.arguments([], [ast.arg(name) for name in used], kwonlyargs=[], kw_defaults=[], defaults=[])
    function = ast.Expression(ast.Lambda(arguments, expression))
    holds = eval(compile(ast.fix_missing_locations(function), "expression", "eval"),
                 {"__builtins__": {}, **FUNCTIONS})

    def argument(name: str, view: View) -> Any:
        return _value(view, (name,), variables[name]) if name in variables else _in_flight(model, view)

    def check(view: View) -> str | None:
        try:
            return None if holds(*(argument(name, view) for name in used)) else "the expression is false"
        except Exception as error:
            why = error.args[0] if isinstance(error, KeyError) else error
            raise Refusal(f"{text!r} cannot be evaluated in a state of {model.name}: {why}") from None

    check(View(initial))
    return always(text, check, source=SOURCE)


def _in_flight(model: Model, view: View) -> tuple[Message, ...]:
    return tuple(message for mine in model.inboxes.values() for inbox in mine
                 for message in inbox.network.contents(view[inbox.slot]))


def _parsed(text: str, model: str, variables: set[str]) -> tuple[ast.expr, tuple[str, ...]]:
    """Return an expression and the variables in it. Raises Refusal for what is no expression over these."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        said = error.msg if isinstance(error, SyntaxError) else error
        raise Refusal(f"{text!r} is neither an invariant of {model} nor an expression over its variables "
                      f"({said})") from None
    nodes = list(ast.walk(tree))
    own = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    used: dict[str, None] = {}
    for node in nodes:
        hidden = isinstance(node, ast.Attribute) and node.attr.startswith("_")
        strange = isinstance(node, ast.Call) and not (
            (isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS)
            or (isinstance(node.func, ast.Attribute) and node.func.attr in METHODS)
        )
        strange |= isinstance(node, ast.BinOp) and not isinstance(node.op, OPERATORS)
        if hidden or strange or not isinstance(node, TAKEN):
            raise Refusal(f"an invariant may not say {ast.unparse(node)!r}; expected an expression that compares "
                          f"values, with calls of {', '.join(FUNCTIONS)} only")
        if isinstance(node, ast.Name) and node.id not in own and node.id not in FUNCTIONS:
            used[node.id] = None
            if node.id not in variables:
                known = sorted(variables)
                raise Refusal(unknown(f"{model} has no variable {node.id!r}", node.id, known, "it has"))
    return tree.body, tuple(used)
