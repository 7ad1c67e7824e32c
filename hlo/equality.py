"""Structural equality of modules: the same names, shapes, attributes, operands and order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .ir import Computation, Instruction, Module


def modules_equal(a: Module, b: Module) -> bool:
    """Whether two modules are the same apart from source locations."""
    return difference(a, b) is None


def difference(a: Module, b: Module) -> str | None:
    """The first difference of two modules in words, or None."""
    return next(_differences(a, b), None)


def _differences(a: Module, b: Module) -> Iterator[str]:
    if a.name != b.name:
        yield f"module names {a.name!r} and {b.name!r}"
    if len(a.computations) != len(b.computations):
        yield f"{len(a.computations)} and {len(b.computations)} computations"
        return
    match = dict(zip(a.computations, b.computations, strict=True))
    if match.get(a.entry) is not b.entry:
        yield f"entry computations {a.entry.name!r} and {b.entry.name!r}"
    yield from _attributes("module", a.attributes, b.attributes, match)
    for left, right in match.items():
        yield from _computations(left, right, match)


def _computations(a: Computation, b: Computation, match: Mapping[Computation, Computation]) -> Iterator[str]:
    if a.name != b.name:
        yield f"computation names {a.name!r} and {b.name!r}"
    yield from _attributes(f"computation {a.name}", a.attributes, b.attributes, match)
    if len(a.instructions) != len(b.instructions):
        yield f"computation {a.name} has {len(a.instructions)} and {len(b.instructions)} instructions"
        return
    same = dict(zip(a.instructions, b.instructions, strict=True))
    if same.get(a.root) is not b.root:
        yield f"roots of computation {a.name}"
    for left, right in same.items():
        if left.opcode is not right.opcode or left.name != right.name:
            yield f"{left.name} ({left.opcode.value}) and {right.name} ({right.opcode.value}) in {a.name}"
        if left.shape != right.shape:
            yield f"shapes {left.shape} and {right.shape} of {left.name}"
        if tuple(map(same.get, left.operands)) != right.operands:
            yield f"operands of {left.name}"
        yield from _attributes(left.name, left.attributes, right.attributes, match)


def _attributes(
    owner: str, a: Mapping[str, Any], b: Mapping[str, Any], match: Mapping[Computation, Computation]
) -> Iterator[str]:
    for key in a.keys() | b.keys():
        if key not in a or key not in b:
            yield f"attribute {key!r} of {owner} is on one side only"
        elif not _values_equal(a[key], b[key], match):
            yield f"attribute {key!r} of {owner}"


def _values_equal(a: Any, b: Any, match: Mapping[Computation, Computation]) -> bool:
    if isinstance(a, Computation):
        return match.get(a) is b
    if isinstance(a, Instruction):
        return isinstance(b, Instruction) and a.name == b.name
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_values_equal(x, y, match) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b)
    return type(a) is type(b) and a == b
