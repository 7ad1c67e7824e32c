"""Mutants of the oracle's table, evaluator/rules.py: another function, operands swapped, results or attributes off."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ...evaluator.evaluator import Evaluator
from ...evaluator.reference.context import Pending
from ...evaluator.rules import RULES
from ...hlo.dtypes import FROM_NUMPY
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ...hlo.records import replace
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

Run = Callable[..., Any]
Wrap = Callable[[Instruction, Callable[[Instruction], Run]], Run]
"""(instruction, how its step is made) → another step."""

NO_ARRAY = frozenset({Op.AFTER_ALL, Op.OUTFEED, Op.SEND_DONE, Op.SEND, Op.CUSTOM_CALL})
"""Opcodes whose results hold no array that a change of the value could show in."""


def mutants() -> Sequence[Mutant]:
    return [m for op in RULES for m in of_op(op)]


def of_op(op: Op) -> Iterator[Mutant]:
    def mutant(what: str, apply: Callable[[], None], site: str = "", optional: bool = False) -> Mutant:
        row = f"RULES/{op.value}"
        return Mutant(f"evaluator/{row}/{what}", f"{row}/{site}" if site else row, apply, words_of(op), optional)

    other = next((o for o in neighbours(op) if o in RULES and differs(op, o)), None)
    if other is not None:
        yield mutant(f"as {other.value}", lambda: take(op, other))
    if is_swappable(op) and op is not Op.AFTER_ALL:
        yield mutant("operands swapped", lambda: patch_step(op, swapped), "swap")
    if op is Op.CONSTANT:
        yield Mutant("evaluator/RULES/constant/one step off", "", constants_off, words_of(op))
    elif op not in NO_ARRAY:
        what = "one step off" if OPSET[op].ulp == 0 else "0.1% off"
        yield mutant(what, lambda: patch_step(op, off(OPSET[op].ulp == 0)))
    yield from attribute_mutants("evaluator", f"RULES/{op.value}", op, lambda c: lambda: patch_step(op, changed(c)))


def differs(op: Op, other: Op) -> bool:
    return RULES[op].form is RULES[other].form and RULES[op].function is not RULES[other].function


def take(op: Op, other: Op) -> None:
    RULES[op] = RULES[other]


def patch_step(op: Op, wrap: Wrap) -> None:
    """Change what is done at the instructions of one opcode."""
    make = Evaluator.step

    def step(self: Evaluator, instruction: Instruction) -> Run:
        if instruction.opcode is not op:
            return make(self, instruction)
        return wrap(instruction, lambda i: make(self, i))

    Evaluator.step = step  # type: ignore[method-assign]


def constants_off() -> None:
    """The interpreter calls this row's function itself."""
    row = RULES[Op.CONSTANT]
    RULES[Op.CONSTANT] = replace(row, function=lambda *arguments: beside(row.function(*arguments), True))


def swapped(instruction: Instruction, make: Callable[[Instruction], Run]) -> Run:
    run = make(instruction)
    if instruction.opcode is Op.CLAMP:  # the lower bound and the value may change places
        return lambda low, x, high: run(low, high, x)
    return lambda *operands: run(*operands[1::-1], *operands[2:])


def changed(change: Change) -> Wrap:
    return lambda i, make: make(with_attributes(i, "changed", lambda: change(i.attributes)))


def off(exact: bool) -> Wrap:
    """The neighbouring value of each element, or one farther away where results are rounded."""

    def wrap(instruction: Instruction, make: Callable[[Instruction], Run]) -> Run:
        run = make(instruction)
        return lambda *operands: beside(run(*operands), exact)

    return wrap


def beside(value: Any, exact: bool) -> Any:
    if isinstance(value, Pending):
        return Pending(lambda: beside(value.result(), exact))
    if isinstance(value, tuple):
        return tuple(beside(part, exact) for part in value)
    if value is None:
        return None
    x = np.asarray(value)
    if x.dtype == np.bool_:
        return ~x
    dtype = FROM_NUMPY[x.dtype]
    if dtype.is_complex:
        return (x + (np.spacing(np.abs(x.real) + np.abs(x.imag)) if exact else np.abs(x) * 1e-3)).astype(x.dtype)
    if dtype.is_integer:
        return (x.astype(np.int64) + 1).astype(x.dtype)
    if not exact:
        return (x.astype(np.float64) * 1.001 + 1e-3).astype(x.dtype)
    bits = np.ascontiguousarray(x).reshape(x.shape).view(f"u{x.dtype.itemsize}")
    plain = np.isfinite(x) & (x != 0)
    return np.where(plain, bits + np.uint8(1), bits).astype(bits.dtype).view(x.dtype)


def record(note: Note) -> None:
    make = Evaluator.step

    def step(self: Evaluator, instruction: Instruction) -> Run:
        op, row = instruction.opcode, f"RULES/{instruction.opcode.value}"
        run = make(
            self, with_attributes(instruction, "watched", lambda: watched(note, row, op, instruction.attributes))
        )

        def noting(*operands: Any) -> Any:
            watched(note, row, op, instruction.attributes)
            if len(operands) > 1:
                note(f"{row}/swap")
            return run(*operands)

        return noting

    Evaluator.step = step  # type: ignore[method-assign]


ROOM = Room(("evaluator", "conformance"), mutants, record)
