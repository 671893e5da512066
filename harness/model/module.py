"""The TLA+ module that a model was written after: all that it takes to run the model checker on the model.

A protocol package that was written after TLA+ has a file `tla_modules` with a table `MODULES`, from the name of a model
to a function of its sizes and settings that returns the module. It is read only on request, by `module_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec

import attrs

from harness.model.registry import GROUP

FILE = "tla_modules"


@attrs.frozen
class TlaModule:
    """A module and its constants at a model's size, as text of TLA+."""

    name: str
    sets: Mapping[str, tuple[str, ...]]
    """Constants that are sets of model values, which nobody declares but those who name them."""
    plain: Mapping[str, str]
    """Constants that are something else."""
    model_values: tuple[str, ...] = ()
    """Constants that are model values themselves."""
    invariants: tuple[str, ...] = ()
    """The model's invariants that the module defines in a form that can be evaluated."""
    definitions: Mapping[str, str] = attrs.field(factory=dict)
    """The model's other invariants, in terms of the module: name to the text after `==`."""
    actions: tuple[str, ...] = ()
    """The disjuncts of `Next`, where it is LOCAL in the module, so that a module that extends it does not have it."""
    chosen: Mapping[str, str] = attrs.field(factory=dict)
    """Operators by which `Init` CHOOSEs, where TLA+ leaves the choice open: name and parameter, to what holds for the
    first of the states of `Trace` only."""
    source: str = ""
    """Where the module is published."""
    as_written: bool = True
    """False if the model repairs something, so that the published module does other steps."""

    @property
    def names(self) -> tuple[str, ...]:
        """The model values that are elements of constants."""
        return tuple(dict.fromkeys(name for names in self.sets.values() for name in names))


ModuleOf = Callable[[Mapping[str, int], Mapping[str, str]], TlaModule]


def module_of(model: str, sizes: Mapping[str, int], settings: Mapping[str, str]) -> TlaModule | None:
    """Return the TLA+ module of a model, or None if its protocol names none."""
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        file = f"{entry.module}.{FILE}"
        if not _exists(file):
            continue
        modules: Mapping[str, ModuleOf] = import_module(file).MODULES
        if model in modules:
            return modules[model](sizes, settings)
    return None


def _exists(module: str) -> bool:
    """Say whether there is a module; none is inside a system that is one file, or that cannot be loaded."""
    try:
        return find_spec(module) is not None
    except Exception:
        return False
