"""Mutants of the MLIR stack's tables: EMIT of elementwise.py by class of number, RULES of the families by index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ...mlir_emitters.core.builder import Builder
from ...mlir_emitters.core.graph import Node
from ...mlir_emitters.kernel import RULES
from ...mlir_emitters.loops.elemental import Indices, Linear
from ...mlir_emitters.numerics.elementwise import EMIT
from .base import Change, Mutant, Note, Room, attribute_mutants, is_swappable, neighbours, watched, words_of

KINDS = ("floating", "signed", "unsigned", "integer", "pred", "complex")
ROUNDED_COMPLEX = frozenset({Op.ABS, Op.DIVIDE, Op.MULTIPLY, Op.SIGN, Op.SQRT})
"""Exact opcodes that round more than once where the numbers are complex."""


def mutants() -> Sequence[Mutant]:
    return [*(m for op in EMIT for m in of_emit(op)), *(m for op in RULES for m in of_rule(op))]


# --- elementwise ------------------------------------------------------------------------------------------------------
def of_emit(op: Op) -> Iterator[Mutant]:
    row = EMIT[op]
    for kind in KINDS:
        function = getattr(row, kind)
        if function is not None:
            yield from of_kind(op, kind, function)
    if row.floating is not None and not row.exact and kind_is_rounded(op):
        site = f"EMIT/{op.value}/narrow"
        name = f"mlir_emitters/EMIT/{op.value}/not rounded"
        yield Mutant(name, site, lambda: EMIT.update({op: replace(row, exact=True)}), words_of(op))


def kind_is_rounded(op: Op) -> bool:
    """Whether a result of a narrow float has more digits than the type; the sign of a number has not."""
    return op not in (Op.NEGATE, Op.COMPARE, Op.COMPLEX, Op.MAXIMUM, Op.MINIMUM, Op.REDUCE_PRECISION, Op.REMAINDER)


def of_kind(op: Op, kind: str, function: Callable[..., Any]) -> Iterator[Mutant]:
    site = f"EMIT/{op.value}/{kind}"

    def mutant(what: str, new: Callable[..., Any], where: str = site) -> Mutant:
        def apply() -> None:
            EMIT[op] = replace(EMIT[op], **{kind: new})  # type: ignore[arg-type]

        return Mutant(f"mlir_emitters/{site}/{what}", where, apply, words_of(op))

    for other in neighbours(op):
        found = getattr(EMIT.get(other), kind, None)
        if found is not None and found is not function:
            yield mutant(f"as {other.value}", found)
            break
    if is_swappable(op) and not (op is Op.COMPARE and kind == "complex"):  # equal or not: in either order
        yield mutant("operands swapped", lambda b, node, *values: function(b, node, *reversed(values)))
    exact = OPSET[op].ulp == 0 and not (kind == "complex" and op in ROUNDED_COMPLEX)
    what = "one step off" if exact or kind in ("pred", "signed", "unsigned", "integer") else "0.1% off"
    yield mutant(what, lambda b, node, *values: beside(b, function(b, node, *values), exact))
    yield from attribute_mutants("mlir_emitters", site, op, lambda c: mutant("", changed_node(function, c)).apply)


def changed_node(function: Callable[..., Any], change: Change) -> Callable[..., Any]:
    return lambda b, node, *values: function(b, replace(node, attributes=change(node.attributes)), *values)


INFINITY = {16: 0x7C00, 32: 0x7F800000, 64: 0x7FF << 52}


def beside(b: Builder, value: Any, exact: bool) -> Any:
    """The neighbouring value, or one 0.1% off; zeros, infinities and NaN stay."""
    if isinstance(value, tuple):
        return tuple(beside(b, part, exact) for part in value)
    if not b.is_float(value.type):
        return b.binary("xori", value, -1) if value.type == b.types.i1 else b.binary("addi", value, 1)
    if not exact:
        return b.mulf(value, b.like(1.001, value))
    width = 32 if value.type == b.types.f32 else 64
    bits = b.bitcast(value, b.types.integer(width))
    magnitude = b.binary("andi", bits, (1 << (width - 1)) - 1)
    plain = b.compare_integers("ult", b.binary("subi", magnitude, 1), b.like(INFINITY[width] - 1, magnitude))
    return b.bitcast(b.select(plain, b.binary("addi", bits, 1), bits), value.type)


# --- rules of families ------------------------------------------------------------------------------------------------
def of_rule(op: Op) -> Iterator[Mutant]:
    site = f"RULES/{op.value}"
    rule = RULES[op]

    def mutant(what: str, new: Callable[..., Any], where: str = site, optional: bool = False) -> Mutant:
        return Mutant(f"mlir_emitters/{site}/{what}", where, lambda: RULES.update({op: new}), words_of(op), optional)

    def index_off(e: Any, node: Node, number: int, index: Indices, raw: bool) -> Any:
        return rule(e, node, number, moved(e.b, node, number, index), raw)

    def value_off(e: Any, node: Node, number: int, index: Indices, raw: bool) -> Any:
        value = yield from rule(e, node, number, index, raw)
        return beside(e.b, value, not OPSET[op].ulp and op is not Op.MAP)

    if op in REFUSED:
        yield mutant("not refused", passes_through)
        return
    yield mutant("index one off", index_off, f"{site}/index")
    yield mutant("one step off" if not OPSET[op].ulp and op is not Op.MAP else "0.1% off", value_off)
    if is_swappable(op):
        yield mutant(
            "operands swapped", lambda e, node, *rest: rule(e, swapped(node), *rest), f"{site}/swap", optional=True
        )
    yield from attribute_mutants(
        "mlir_emitters", site, op, lambda change: lambda: RULES.update({op: rule_with_attributes(rule, change)})
    )


REFUSED = frozenset({Op.SCATTER, Op.SORT})
"""Opcodes whose rule raises: they are kernels of their own."""


def passes_through(e: Any, node: Node, number: int, index: Indices, raw: bool) -> Any:
    return (yield node.inputs[0], index, raw)


def moved(b: Builder, node: Node, number: int, index: Indices) -> Indices:
    """The next position along the last dimension that has two, around the end."""
    dims = node.outputs[number].dims
    if isinstance(index, Linear):
        size = node.outputs[number].shape.size
        return Linear((b.rem(b.add(index[0], 1), size),))
    live = [d for d, size in enumerate(dims) if size > 1]
    if not live:
        return index
    positions = list(index)
    positions[live[-1]] = b.rem(b.add(positions[live[-1]], 1), dims[live[-1]])
    return tuple(positions)


def swapped(node: Node) -> Node:
    """With the first two inputs of one shape in the wrong order."""
    inputs = list(node.inputs)
    for n in range(len(inputs) - 1):
        if fits(node, n):
            inputs[n], inputs[n + 1] = inputs[n + 1], inputs[n]
            return replace(node, inputs=inputs)
    return node


def fits(node: Node, n: int) -> bool:
    a, b = node.inputs[n], node.inputs[n + 1]
    return a is not b and a.dims == b.dims and a.dtype is b.dtype


def rule_with_attributes(rule: Callable[..., Any], change: Change) -> Callable[..., Any]:
    return lambda e, node, *rest: rule(e, replace(node, attributes=change(node.attributes)), *rest)


# --- what tests reach -------------------------------------------------------------------------------------------------
NARROW_BITS = 16


def record(note: Note) -> None:
    for op, row in list(EMIT.items()):
        functions: dict[str, Any] = {k: f for k in KINDS if (f := getattr(row, k)) is not None}
        EMIT[op] = replace(row, **{k: noting(note, op, k, f) for k, f in functions.items()})  # type: ignore[arg-type]
    for op, rule in list(RULES.items()):
        RULES[op] = noting_rule(note, op, rule)


def noting(note: Note, op: Op, kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(b: Builder, node: Node, *values: Any) -> Any:
        attributes = watched(note, f"EMIT/{op.value}/{kind}", op, node.attributes)
        if node.output.dtype.is_float and node.output.dtype.bits <= NARROW_BITS:
            note(f"EMIT/{op.value}/narrow")
        return function(b, replace(node, attributes=attributes), *values)

    return call


def noting_rule(note: Note, op: Op, rule: Callable[..., Any]) -> Callable[..., Any]:
    def call(e: Any, node: Node, number: int, index: Indices, raw: bool) -> Any:
        attributes = watched(note, f"RULES/{op.value}", op, node.attributes)
        if node.outputs[number].shape.size > 1:
            note(f"RULES/{op.value}/index")
        if any(fits(node, n) for n in range(len(node.inputs) - 1)):
            note(f"RULES/{op.value}/swap")
        return rule(e, replace(node, attributes=attributes), number, index, raw)

    return call


ROOM = Room(("mlir_emitters", "conformance"), mutants, record)
