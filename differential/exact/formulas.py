"""HLO on integers as formulas of z3: what one element of an elementwise computation is, by the rules of the language.

The width of the integers is a number, so that a rewrite of one type can be proved for types that HLO does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import z3

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op

Number = Callable[[Instruction], int]
"""The value of a constant, of all its elements."""


class NoFormulaError(Exception):
    """The computation is not one of integers, element by element."""


@dataclass
class Formulas:
    """Translates instructions. width: of a type's integers. number: the value of a constant in that width.
    terms: by opcode.
    """

    width: Callable[[DType], int]
    number: Number
    terms: Mapping[Op, Callable[..., Any]] = field(default_factory=lambda: TERMS)
    known: dict[Instruction, Any] = field(default_factory=dict)

    def of(self, i: Instruction) -> Any:
        """A bit-vector for an integer, a Boolean for a pred. Raises NoFormulaError."""
        if i not in self.known:
            self.known[i] = self._made(i)
        return self.known[i]

    def _made(self, i: Instruction) -> Any:
        dtype = i.shape.dtype
        if not i.shape.is_array or not (dtype.is_integer or dtype is DType.PRED):
            raise NoFormulaError(str(i.shape))
        if i.opcode is Op.PARAMETER:
            name = f"p{i.parameter_number}"
            return z3.Bool(name) if dtype is DType.PRED else z3.BitVec(name, self.width(dtype))
        if i.opcode is Op.CONSTANT:
            value = self.number(i)
            return z3.BoolVal(bool(value)) if dtype is DType.PRED else z3.BitVecVal(value, self.width(dtype))
        if i.opcode is Op.BROADCAST and not i.operands[0].shape.rank:
            return self.of(i.operands[0])
        preds = i.opcode in LOGIC or not any(o.shape.dtype is DType.PRED for o in i.operands)
        if i.opcode in self.terms and preds and all(o.shape.dims in ((), i.shape.dims) for o in i.operands):
            return self.terms[i.opcode](i, *map(self.of, i.operands))
        raise NoFormulaError(i.opcode.value)


def splat(i: Instruction) -> int:
    """The value of a constant whose elements are all equal."""
    values = np.unique(np.asarray(i.literal.array))
    if len(values) != 1:
        raise NoFormulaError("a constant of several values")
    return int(values[0])


def _signed(i: Instruction) -> bool:
    return i.operands[0].shape.dtype.is_signed


def _less(i: Instruction, x: Any, y: Any) -> Any:
    if z3.is_bool(x):
        return z3.And(z3.Not(x), y)
    return x < y if _signed(i) else z3.ULT(x, y)


def _compared(i: Instruction, x: Any, y: Any) -> Any:
    return {
        "EQ": lambda: x == y,
        "NE": lambda: x != y,
        "LT": lambda: _less(i, x, y),
        "GT": lambda: _less(i, y, x),
        "LE": lambda: z3.Not(_less(i, y, x)),
        "GE": lambda: z3.Not(_less(i, x, y)),
    }[i.attributes["direction"]]()


def _least(i: Instruction, x: Any, y: Any) -> Any:
    return z3.If(_less(i, y, x), y, x)


def _most(i: Instruction, x: Any, y: Any) -> Any:
    return z3.If(_less(i, x, y), y, x)


def _quotient(i: Instruction, x: Any, y: Any) -> Any:
    """x / 0 is -1; of unsigned numbers, all ones."""
    return z3.If(y == 0, z3.BitVecVal(-1, x.size()), x / y) if _signed(i) else z3.UDiv(x, y)


def _shifted(shift: Callable[[Any, Any], Any], all_out: Callable[[Any], Any]) -> Callable[..., Any]:
    """A shift by the width or more moves all bits out; an amount is unsigned."""

    def made(i: Instruction, x: Any, y: Any) -> Any:
        out = z3.Not(z3.ULT(z3.ZeroExt(8, y), x.size()))
        return z3.If(out, all_out(x), shift(x, y))

    return made


def _either(logic: Callable[[Any, Any], Any], bits: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda i, x, y: logic(x, y) if z3.is_bool(x) else bits(x, y)


def _converted(i: Instruction, x: Any) -> Any:
    """To a pred whether it is not 0; to an integer the low bits, or the number in more bits."""
    source, target = i.operands[0].shape.dtype, i.shape.dtype
    if target is DType.PRED:
        return x if z3.is_bool(x) else x != 0
    if z3.is_bool(x):
        return z3.If(x, z3.BitVecVal(1, target.bits), z3.BitVecVal(0, target.bits))
    return resized(x, target.bits, source.is_signed)


def resized(x: Any, bits: int, signed: bool) -> Any:
    """The low bits of a bit-vector, or its number in more bits."""
    more = bits - x.size()
    if more <= 0:
        return z3.Extract(bits - 1, 0, x) if more else x
    return z3.SignExt(more, x) if signed else z3.ZeroExt(more, x)


def ones_in(x: Any) -> Any:
    """How many bits of a bit-vector are 1."""
    width = x.size()
    return sum((z3.ZeroExt(width - 1, z3.Extract(n, n, x)) for n in range(width)), z3.BitVecVal(0, width))


def zeros_above(x: Any) -> Any:
    """How many bits of a bit-vector are 0 from the top."""
    width, found = x.size(), z3.BitVecVal(x.size(), x.size())
    for n in range(width):
        found = z3.If(z3.Extract(n, n, x) == 1, z3.BitVecVal(width - 1 - n, width), found)
    return found


TERMS: Mapping[Op, Callable[..., Any]] = {
    Op.ADD: lambda i, x, y: x + y,
    Op.SUBTRACT: lambda i, x, y: x - y,
    Op.MULTIPLY: lambda i, x, y: x * y,
    Op.NEGATE: lambda i, x: -x,
    Op.ABS: lambda i, x: z3.If(x < 0, -x, x) if _signed(i) else x,
    Op.SIGN: lambda i, x: z3.If(x == 0, x, z3.If(_less(i, x, x - x), z3.BitVecVal(-1, x.size()), 1)),
    Op.NOT: lambda i, x: z3.Not(x) if z3.is_bool(x) else ~x,
    Op.AND: _either(z3.And, lambda x, y: x & y),
    Op.OR: _either(z3.Or, lambda x, y: x | y),
    Op.XOR: _either(z3.Xor, lambda x, y: x ^ y),
    Op.MINIMUM: _least,
    Op.MAXIMUM: _most,
    Op.DIVIDE: _quotient,
    Op.REMAINDER: lambda i, x, y: z3.SRem(x, y) if _signed(i) else z3.URem(x, y),
    Op.SHIFT_LEFT: _shifted(lambda x, y: x << y, lambda x: z3.BitVecVal(0, x.size())),
    Op.SHIFT_RIGHT_LOGICAL: _shifted(z3.LShR, lambda x: z3.BitVecVal(0, x.size())),
    Op.SHIFT_RIGHT_ARITHMETIC: _shifted(lambda x, y: x >> y, lambda x: x >> (x.size() - 1)),
    Op.COMPARE: _compared,
    Op.SELECT: lambda i, p, x, y: z3.If(p, x, y),
    Op.CLAMP: lambda i, low, x, high: _least(i, _most(i, low, x), high),
    Op.COPY: lambda i, x: x,
}
"""Opcode → what an element of its result is, by those of its operands."""

OF_BITS: Mapping[Op, Callable[..., Any]] = {
    **TERMS,
    Op.CONVERT: _converted,
    Op.COUNT_LEADING_ZEROS: lambda i, x: zeros_above(x),
    Op.POPCNT: lambda i, x: ones_in(x),
}
"""The same with those that are formulas only where integers have the bits of their types."""

LOGIC = frozenset({Op.NOT, Op.AND, Op.OR, Op.XOR, Op.MINIMUM, Op.MAXIMUM, Op.COMPARE, Op.SELECT, Op.COPY, Op.CONVERT})
"""Those of them that take preds, too."""
