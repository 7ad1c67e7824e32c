"""Names in HLO text: which words XLA reads as a name, and a module whose names XLA accepts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from ...hlo.dtypes import BY_NAME
from ...hlo.ir import CONTROL_PREDECESSORS, Computation, Instruction, Module
from .lexer import NAME

TYPES = frozenset(BY_NAME) | {"f6e2m3fn", "f6e3m2fn"}
"""XLA's names of types, those that this package does not have included. No instruction may be called so."""
RESERVED = TYPES | {
    *("nan", "inf", "true", "false", "HloModule", "ENTRY", "ROOT", "FileNames", "FunctionNames", "FileLocations"),
    *("StackFrames", "maximal", "replicated", "manual", "last_tile_dim_replicate", "shard_as", "shard_like"),
    *("unknown", "unreduced"),
}
"""Words that XLA reads as a name only after `%`."""

_any = re.compile(rf"{NAME}\Z").match
_instruction = re.compile(rf"(?!(?:{'|'.join(sorted(TYPES))})\Z)(?!__(?!xla_)){NAME}\Z").match
_bad = re.compile(r"[^A-Za-z0-9_.\-]")


def with_legal_names(module: Module) -> Module:
    """The module with names that XLA's parser accepts: `module` itself if all are, otherwise a renamed copy.

    As in XLA, an instruction may neither be called like a type (`s1`, `f32`, `token`: becomes `s1_`) nor begin with
    `__` (becomes `a_…`), except with `__xla_`; names of computations and modules may do both. What is no name at all
    (which a proto may hold) has `_` for each wrong character. A new name that is taken is followed by a number.
    """
    if _legal(module):
        return module
    titles = _renamed((c.name for c in module.computations), False)
    made: dict[Computation, Computation] = {}
    for computation in module.computations:
        made[computation] = _copy(computation, titles.get(computation.name, computation.name), made)
    name = _renamed([module.name], False).get(module.name, module.name)
    return Module(name, tuple(made.values()), made[module.entry], module.attributes, module.trees)


def named_for_xla(module: Module) -> bool:
    """Whether XLA reads every name of the module, with `%` before it or without."""
    names = {module.name, *(c.name for c in module.computations), *(i.name for i in module.instructions())}
    return names.isdisjoint(RESERVED) and _legal(module)


def _legal(module: Module) -> bool:
    return bool(
        _any(module.name)
        and all(_any(c.name) for c in module.computations)
        and all(_instruction(i.name) for i in module.instructions())
    )


def _renamed(names: Iterable[str], of_instructions: bool) -> dict[str, str]:
    """Name → legal name, of the names of one scope that are not legal."""
    matches = _instruction if of_instructions else _any
    taken = set(names := tuple(names))
    out: dict[str, str] = {}
    for name in names:
        if name in out or matches(name):
            continue
        stem = _bad.sub("_", name)
        if not _any(stem):
            stem = f"_{stem}"
        if of_instructions and stem in TYPES:
            stem += "_"
        if of_instructions and not matches(stem):
            stem = f"a{stem[1:]}"
        found, number = stem, 0
        while found in taken:
            number += 1
            found = f"{stem}.{number}"
        taken.add(found)
        out[name] = found
    return out


def _copy(computation: Computation, title: str, made: Mapping[Computation, Computation]) -> Computation:
    names = _renamed((i.name for i in computation.instructions), True)

    def value_of(key: str, value: Any) -> Any:
        if key == CONTROL_PREDECESSORS:
            return tuple(names.get(name, name) for name in value)
        if isinstance(value, Computation):
            return made[value]
        if isinstance(value, tuple) and value and isinstance(value[0], Computation):
            return tuple(made[c] for c in value)
        return value

    moved: dict[Instruction, Instruction] = {}
    for i in computation.instructions:
        moved[i] = i.replace(
            name=names.get(i.name, i.name),
            operands=tuple(moved[o] for o in i.operands),
            attributes=MappingProxyType({key: value_of(key, value) for key, value in i.attributes.items()}),
        )
    return Computation(title, tuple(moved.values()), moved[computation.root], computation.attributes)
