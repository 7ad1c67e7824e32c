"""Mutants of the legacy stack's tables: EMIT of elementwise.py by kind of number, RULES of the families by index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from llvmlite import ir

from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ...legacy.core.builder import Code
from ...legacy.kernel import RULES
from ...legacy.loops.elemental import Index
from ...legacy.numerics.elementwise import EMIT, Typed
from ...legacy.numerics.real import Real
from .base import (
    Change,
    Mutant,
    Note,
    Room,
    attribute_mutants,
    is_swappable,
    neighbours,
    watched,
    with_attributes,
    words_of,
)

KINDS = tuple(f.name for f in fields(Typed))
BEFORE = {"pred": 1, "integer": 2, "real": 1, "complex": 1}
"""How many arguments stand before the operands."""


def mutants() -> Sequence[Mutant]:
    """The rule of tuple only says that it is never asked."""
    return [*(m for op in EMIT for m in of_emit(op)), *(m for op in RULES if op is not Op.TUPLE for m in of_rule(op))]


# --- elementwise ------------------------------------------------------------------------------------------------------
def of_emit(op: Op) -> Iterator[Mutant]:
    row = EMIT[op]
    if not isinstance(row, Typed):
        yield from of_function(op)
        return
    for kind in KINDS:
        function = getattr(row, kind)
        if function is not None:
            yield from of_kind(op, kind, function)


def of_kind(op: Op, kind: str, function: Callable[..., Any]) -> Iterator[Mutant]:
    first = BEFORE[kind]

    def mutant(what: str, new: Callable[..., Any]) -> Mutant:
        site = f"EMIT/{op.value}/{kind}"
        return Mutant(f"legacy/{site}/{what}", site, lambda: put(op, kind, new), words_of(op))

    for other in neighbours(op):
        there = EMIT.get(other)
        found = getattr(there, kind) if isinstance(there, Typed) else None
        if (
            found is not None
            and found is not function
            and OPSET[other].dtypes <= OPSET[op].dtypes | OPSET[other].dtypes
        ):
            yield mutant(f"as {other.value}", found)
            break
    if is_swappable(op):
        yield mutant("operands swapped", lambda *a: function(*a[:first], *reversed(a[first:])))
    exact = OPSET[op].ulp == 0 and not (kind == "complex" and op in ROUNDED_COMPLEX)
    what = "one step off" if exact or kind in ("pred", "integer") else "0.1% off"
    yield mutant(what, lambda *a: beside(code_of(a[0]), function(*a), exact))


ROUNDED_COMPLEX = frozenset({Op.ABS, Op.DIVIDE, Op.MULTIPLY, Op.SIGN, Op.SQRT})
"""Exact opcodes that round more than once where the numbers are complex."""


def put(op: Op, kind: str, new: Callable[..., Any]) -> None:
    row = EMIT[op]
    assert isinstance(row, Typed)
    EMIT[op] = replace(row, **{kind: new})


def code_of(first: Code | Real) -> Code:
    return first.code if isinstance(first, Real) else first


def of_function(op: Op) -> Iterator[Mutant]:
    """Rows that look at the instruction."""
    site = f"EMIT/{op.value}"
    emit = EMIT[op]

    def mutant(what: str, new: Callable[..., Any], where: str = site) -> Mutant:
        return Mutant(f"legacy/{site}/{what}", where, lambda: EMIT.update({op: new}), words_of(op))

    if is_swappable(op):
        yield mutant("operands swapped", lambda code, i, *values: emit(code, i, *values[:-2], values[-1], values[-2]))
    yield mutant("one step off", lambda code, i, *values: beside(code, emit(code, i, *values), True))
    yield from attribute_mutants(
        "legacy", site, op, lambda change: lambda: EMIT.update({op: emit_with_attributes(emit, change)})
    )


def emit_with_attributes(emit: Callable[..., Any], change: Change) -> Callable[..., Any]:
    return lambda code, i, *values: emit(code, i.replace(attributes=change(i.attributes)), *values)


MASKS = {16: 0x7C00, 32: 0x7F800000, 64: 0x7FF << 52}
"""The bits of infinity."""


def beside(code: Code, value: Any, exact: bool) -> Any:
    """The neighbouring value, or one 0.1% off; zeros, infinities and NaN stay."""
    if isinstance(value, tuple):
        return tuple(beside(code, part, exact) for part in value)
    b, kind = code.b, value.type
    if isinstance(kind, ir.IntType):
        return b.not_(value) if kind.width == 1 else b.add(value, kind(1))
    width = {"half": 16, "float": 32, "double": 64}[str(kind)]
    if not exact and width > 16:
        return b.fmul(value, kind(1.001))
    bits = b.bitcast(value, ir.IntType(width))
    magnitude = b.and_(bits, bits.type((1 << (width - 1)) - 1))
    plain = b.icmp_unsigned("<", b.sub(magnitude, bits.type(1)), bits.type(MASKS[width] - 1))
    return b.bitcast(b.select(plain, b.add(bits, bits.type(1)), bits), kind)


# --- rules of families ------------------------------------------------------------------------------------------------
def of_rule(op: Op) -> Iterator[Mutant]:
    site = f"RULES/{op.value}"
    rule = RULES[op]

    def mutant(what: str, new: Callable[..., Any], where: str = site, optional: bool = False) -> Mutant:
        return Mutant(f"legacy/{site}/{what}", where, lambda: RULES.update({op: new}), words_of(op), optional)

    if op in REFUSED:
        yield mutant("not refused", passes_through)
        return
    yield mutant("index one off", lambda e, i, index: rule(e, i, moved(index)), f"{site}/index")
    if OPSET[op].ulp or op is Op.MAP:
        yield mutant("0.1% off", lambda e, i, index: value_off(rule, e, i, index, False))
    else:
        yield mutant("one step off", lambda e, i, index: value_off(rule, e, i, index, True))
    if is_swappable(op):
        yield mutant("operands swapped", lambda e, i, index: rule(e, swapped(i), index), f"{site}/swap", True)
    yield from attribute_mutants(
        "legacy", site, op, lambda change: lambda: RULES.update({op: rule_with_attributes(rule, change)})
    )


REFUSED = frozenset({Op.SCATTER, Op.SORT})
"""Opcodes whose rule raises: they are kernels of their own."""


def passes_through(e: Any, i: Instruction, index: Index) -> Any:
    return (yield i.operands[0], index)


def moved(index: Index) -> Index:
    """The next position along the last dimension that has two, around the end."""
    live = [d for d, size in enumerate(index.dims) if size > 1]
    if not live:
        return index
    positions = list(index.multi)
    d = live[-1]
    positions[d] = index.code.remainder(index.code.add(positions[d], 1), index.dims[d])
    return Index(index.code, index.dims, index.order, tuple(positions))


def value_off(rule: Callable[..., Any], e: Any, i: Instruction, index: Index, exact: bool) -> Any:
    value = yield from rule(e, i, index)
    return beside(e.code, value, exact)


def swapped(i: Instruction) -> Instruction:
    """With the first two operands of one shape in the wrong order."""
    operands = list(i.operands)
    for n in range(len(operands) - 1):
        if fits(i, n):
            operands[n], operands[n + 1] = operands[n + 1], operands[n]
            return _SWAPPED.setdefault(i, i.replace(operands=tuple(operands)))
    return i


def fits(i: Instruction, n: int) -> bool:
    a, b = i.operands[n], i.operands[n + 1]
    return a is not b and a.shape.dims == b.shape.dims and a.shape.dtype is b.shape.dtype


_SWAPPED: dict[Instruction, Instruction] = {}
"""One changed instruction for each, as values are kept by instruction."""


def rule_with_attributes(rule: Callable[..., Any], change: Change) -> Callable[..., Any]:
    def emit(e: Any, i: Instruction, index: Index) -> Any:
        return rule(e, with_attributes(i, "changed", lambda: change(i.attributes)), index)

    return emit


# --- what tests reach -------------------------------------------------------------------------------------------------
def record(note: Note) -> None:
    for op, row in list(EMIT.items()):
        if isinstance(row, Typed):
            functions = {kind: getattr(row, kind) for kind in KINDS}
            EMIT[op] = Typed(**{k: f and noting(note, f"EMIT/{op.value}/{k}", f) for k, f in functions.items()})
        else:
            EMIT[op] = noting_attributes(note, op, row)
    for op, rule in list(RULES.items()):
        RULES[op] = noting_rule(note, op, rule)


def noting(note: Note, site: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        note(site)
        return function(*arguments)

    return call


def noting_attributes(note: Note, op: Op, emit: Callable[..., Any]) -> Callable[..., Any]:
    def call(code: Code, i: Instruction, *values: Any) -> Any:
        attributes = watched(note, f"EMIT/{op.value}", op, i.attributes)
        return emit(code, i.replace(attributes=attributes), *values)

    return call


def noting_rule(note: Note, op: Op, rule: Callable[..., Any]) -> Callable[..., Any]:
    def call(e: Any, i: Instruction, index: Index) -> Any:
        attributes = watched(note, f"RULES/{op.value}", op, i.attributes)
        if any(size > 1 for size in index.dims):
            note(f"RULES/{op.value}/index")
        if any(fits(i, n) for n in range(len(i.operands) - 1)):
            note(f"RULES/{op.value}/swap")
        return rule(e, with_attributes(i, "watched", lambda: attributes), index)

    return call


ROOM = Room(("legacy", "conformance"), mutants, record)
