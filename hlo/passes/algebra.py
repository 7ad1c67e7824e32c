"""Algebraic simplification: a table of small rules by opcode, each exact for every value of its types.

A rule gets an instruction and a builder and answers with what stands for it, or None. Floats: x + 0 keeps -0 only where
the zero is negative; x · 0, x - x and x / x are never folded (NaN, infinities).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ..dtypes import DType
from ..ir import Computation, Instruction, Module
from ..opclasses import CONTROL_PREDECESSORS, same_bytes
from ..opcodes import Op
from .building import Builder, Rule, sole_binary
from .constant_folding import number_of, splat_of
from .fuel import spend
from .rewriting import Names, rebuild


def simplify_algebra(module: Module) -> Module:
    """Apply RULES to every instruction of every computation, operands first."""
    names = Names.of(module)
    return rebuild(module, lambda c: _simplify(c, names))


def _simplify(computation: Computation, names: Names) -> Computation:
    if not any(i.opcode in RULES for i in computation.instructions):
        return computation
    pinned = {n for i in computation.instructions for n in i.attributes.get(CONTROL_PREDECESSORS, ())}
    new: dict[Instruction, Instruction] = {}
    out: dict[Instruction, None] = {}
    for old in computation.instructions:
        operands = tuple(new[o] for o in old.operands)
        i = old if operands == old.operands else old.replace(operands=operands)
        made = None
        if i.opcode in RULES and i.name not in pinned and CONTROL_PREDECESSORS not in i.attributes:
            made = _rewritten(i, names)
        if made is None:
            out[i] = None
            new[old] = i
        else:
            out.update(dict.fromkeys(made[0]))
            new[old] = made[1]
    if tuple(out) == computation.instructions:
        return computation
    return Computation(computation.name, tuple(out), new[computation.root], computation.attributes)


def _rewritten(i: Instruction, names: Names) -> tuple[list[Instruction], Instruction] | None:
    """(new instructions, the value): of the first rule that fits."""
    shapes = (i.shape, *(o.shape for o in i.operands))
    if any(not s.is_array or s.is_dynamic or not s.is_row_major for s in shapes):
        return None
    for rule in RULES[i.opcode]:
        b = Builder(names, i.name, i.location)
        result = rule(i, b)
        if result is None or b.computations or not spend():
            continue
        if not b.instructions:  # an operand, or what an operand is made of
            return ([], result) if same_bytes(result.shape, i.shape) else None
        return b.instructions, b.finish(result, i)
    return None


def _is(x: Instruction, value: complex) -> bool:
    """Whether x is one number all over, equal to `value` to the sign of zero."""
    number = number_of(x)
    if number is None or x.shape.dtype is DType.PRED:
        return False
    return bool(number == value) and (bool(number) or _sign(number) == math.copysign(1, complex(value).real))


def _sign(number: np.generic) -> float:
    return math.copysign(1, complex(number).real)


def _is_zero(x: Instruction) -> bool:
    return _is(x, 0.0) or _is(x, -0.0)


def _exact(i: Instruction) -> bool:
    """Integers or pred: no NaN, one zero."""
    return i.shape.dtype.is_integer or i.shape.dtype is DType.PRED


# --- arithmetic ------------------------------------------------------------------------------------------------------


def add_zero(i: Instruction, b: Builder) -> Instruction | None:
    """x + 0 of integers; x + -0 of floats, which is x even for x = -0."""
    for x, y in (i.operands, i.operands[::-1]):
        if (_exact(i) and _is_zero(y)) or (i.shape.dtype.is_float and _is(y, -0.0)):
            return x
    return None


def subtract_zero(i: Instruction, b: Builder) -> Instruction | None:
    """x - 0, where the zero is positive."""
    x, y = i.operands
    return x if (_exact(i) and _is_zero(y)) or (i.shape.dtype.is_float and _is(y, 0.0)) else None


def subtract_itself(i: Instruction, b: Builder) -> Instruction | None:
    """x - x of integers."""
    same = i.operands[0] is i.operands[1] and i.shape.dtype.is_integer
    return b.constant(0, i.shape.dtype, i.shape.dims) if same else None


def multiply_one(i: Instruction, b: Builder) -> Instruction | None:
    for x, y in (i.operands, i.operands[::-1]):
        if _is(y, 1) and not i.shape.dtype.is_complex:
            return x
    return None


def multiply_zero(i: Instruction, b: Builder) -> Instruction | None:
    """x · 0 of integers."""
    return next((o for o in i.operands if i.shape.dtype.is_integer and _is_zero(o)), None)


def divide_one(i: Instruction, b: Builder) -> Instruction | None:
    return i.operands[0] if _is(i.operands[1], 1) and not i.shape.dtype.is_complex else None


def divide_power_of_two(i: Instruction, b: Builder) -> Instruction | None:
    """x / 2^k is x · 2^-k, exactly, where both are normal numbers."""
    number = number_of(i.operands[1])
    if number is None or i.shape.dtype not in (DType.F32, DType.F64):
        return None
    value = float(number)
    if not math.isfinite(value) or value == 0 or abs(math.frexp(value)[0]) != 0.5 or abs(math.log2(abs(value))) > 100:
        return None
    return b.binary(Op.MULTIPLY, i.operands[0], 1 / value) if value not in (1, -1) else None


def unsigned_divide_power_of_two(i: Instruction, b: Builder) -> Instruction | None:
    """x / 2^k of unsigned integers is a shift."""
    number = number_of(i.operands[1]) if i.shape.dtype.is_unsigned and i.shape.dtype.bits >= 8 else None
    value = 0 if number is None else int(number)
    if value < 2 or value & (value - 1):
        return None
    return b.binary(Op.SHIFT_RIGHT_LOGICAL, i.operands[0], value.bit_length() - 1)


def unsigned_remainder_power_of_two(i: Instruction, b: Builder) -> Instruction | None:
    """x % 2^k of unsigned integers is a mask."""
    number = number_of(i.operands[1]) if i.shape.dtype.is_unsigned and i.shape.dtype.bits >= 8 else None
    value = 0 if number is None else int(number)
    return None if value < 1 or value & (value - 1) else b.binary(Op.AND, i.operands[0], value - 1)


def power_small(i: Instruction, b: Builder) -> Instruction | None:
    """x^1, x^2 and x^3 as products, x^0 as 1 and x^-1 as a quotient."""
    number = number_of(i.operands[1]) if i.shape.dtype in (DType.F32, DType.F64) else None
    x = i.operands[0]
    if number is None:
        return None
    if number == 1:
        return x
    if number == 0:
        return b.constant(1, i.shape.dtype, i.shape.dims)
    if number == 2:
        return b.binary(Op.MULTIPLY, x, x)
    if number == 3:
        return b.binary(Op.MULTIPLY, b.binary(Op.MULTIPLY, x, x), x)
    return b.binary(Op.DIVIDE, b.constant(1, i.shape.dtype, i.shape.dims), x) if number == -1 else None


def twice(i: Instruction, b: Builder) -> Instruction | None:
    """-(-x), ~~x."""
    inner = i.operands[0]
    return inner.operands[0] if inner.opcode is i.opcode else None


def idempotent(i: Instruction, b: Builder) -> Instruction | None:
    """f(f(x)) = f(x): abs, floor, ceil, rounding, sign."""
    same = i.operands[0].opcode is i.opcode and not i.shape.dtype.is_complex
    return i.operands[0] if same else None


def abs_of_negated(i: Instruction, b: Builder) -> Instruction | None:
    inner = i.operands[0]
    return b.unary(Op.ABS, inner.operands[0]) if inner.opcode is Op.NEGATE and i.shape.dtype.is_float else None


# --- bits and choices ------------------------------------------------------------------------------------------------


def same_operands(i: Instruction, b: Builder) -> Instruction | None:
    """x op x = x: and, or, minimum, maximum."""
    return i.operands[0] if i.operands[0] is i.operands[1] else None


def shift_by_zero(i: Instruction, b: Builder) -> Instruction | None:
    return i.operands[0] if _is_zero(i.operands[1]) else None


def _truth(x: Instruction) -> bool | None:
    number = number_of(x) if x.shape.dtype is DType.PRED else None
    return None if number is None else bool(number)


def logic_known(i: Instruction, b: Builder) -> Instruction | None:
    """x and true, x or false are x; x and false, x or true are the constant."""
    for x, y in (i.operands, i.operands[::-1]):
        truth = _truth(y)
        if truth is not None:
            return x if truth is (i.opcode is Op.AND) else y
    return None


def compare_itself(i: Instruction, b: Builder) -> Instruction | None:
    """x = x and the like where no NaN can be: integers and pred."""
    x, y = i.operands
    if x is not y or not _exact(x):
        return None
    return b.constant(i.attributes["direction"] in ("EQ", "LE", "GE"), DType.PRED, i.shape.dims)


def compare_unsigned_with_zero(i: Instruction, b: Builder) -> Instruction | None:
    """u < 0 is false and u ≥ 0 true."""
    x, y = i.operands
    direction = i.attributes["direction"]
    if not x.shape.dtype.is_unsigned or not _is_zero(y) or direction not in ("LT", "GE"):
        return None
    return b.constant(direction == "GE", DType.PRED, i.shape.dims)


def select_known(i: Instruction, b: Builder) -> Instruction | None:
    """A known test, or two values that are one."""
    test, x, y = i.operands
    if x is y:
        return x
    truth = _truth(test)
    return None if truth is None else (x if truth else y)


def select_of_not(i: Instruction, b: Builder) -> Instruction | None:
    test, x, y = i.operands
    if test.opcode is not Op.NOT:
        return None
    return b.op(Op.SELECT, i.shape.without_layout(), test.operands[0], y, x)


def clamp_twice(i: Instruction, b: Builder) -> Instruction | None:
    """clamp(a, clamp(a, x, b), b)."""
    inner = i.operands[1]
    same = inner.opcode is Op.CLAMP and inner.operands[0] is i.operands[0] and inner.operands[2] is i.operands[2]
    return inner if same else None


def iota_of_one(i: Instruction, b: Builder) -> Instruction | None:
    return b.constant(0, i.shape.dtype, i.shape.dims) if i.shape.dims[i.attributes["iota_dimension"]] == 1 else None


def convert_back(i: Instruction, b: Builder) -> Instruction | None:
    """convert(convert(x)) where the type between holds every value of the other."""
    inner = i.operands[0]
    if inner.opcode is not Op.CONVERT or inner.operands[0].shape.dtype is not i.shape.dtype:
        return None
    small, wide = i.shape.dtype, inner.shape.dtype
    floats = {(DType.F16, DType.F32), (DType.BF16, DType.F32), (DType.F16, DType.F64), (DType.BF16, DType.F64),
              (DType.F32, DType.F64)}  # fmt: skip
    grows = small.is_integer and wide.is_integer and wide.bits > small.bits
    return inner.operands[0] if (small, wide) in floats or grows else None


# --- reductions and products -----------------------------------------------------------------------------------------


def reduce_of_reduce(i: Instruction, b: Builder) -> Instruction | None:
    """Two reductions by maximum, minimum, and or or, from the same start, are one over both sets of dimensions."""
    inner = i.operands[0]
    if len(i.operands) != 2 or inner.opcode is not Op.REDUCE or len(inner.operands) != 2:
        return None
    op = sole_binary(i.attributes["to_apply"])
    if op not in (Op.MAXIMUM, Op.MINIMUM, Op.AND, Op.OR) or op is not sole_binary(inner.attributes["to_apply"]):
        return None
    a, c = splat_of(i.operands[1]), splat_of(inner.operands[1])
    if a is None or c is None or a.literal != c.literal:
        return None
    kept = [d for d in range(inner.operands[0].shape.rank) if d not in inner.dimensions]
    dims = tuple(sorted((*inner.dimensions, *(kept[d] for d in i.dimensions))))
    return b.op(
        Op.REDUCE, i.shape.without_layout(), *inner.operands, dimensions=dims, to_apply=i.attributes["to_apply"]
    )


def dot_of_nothing(i: Instruction, b: Builder) -> Instruction | None:
    """A dot that sums over no elements is zero."""
    x = i.operands[0]
    empty = any(x.shape.dims[d] == 0 for d in i.attributes.get("lhs_contracting_dims", ()))
    return b.constant(0, i.shape.dtype, i.shape.dims) if empty else None


RULES: Mapping[Op, tuple[Rule, ...]] = {
    Op.ADD: (add_zero,),
    Op.SUBTRACT: (subtract_zero, subtract_itself),
    Op.MULTIPLY: (multiply_one, multiply_zero),
    Op.DIVIDE: (divide_one, divide_power_of_two, unsigned_divide_power_of_two),
    Op.REMAINDER: (unsigned_remainder_power_of_two,),
    Op.POWER: (power_small,),
    Op.NEGATE: (twice,),
    Op.NOT: (twice,),
    Op.ABS: (idempotent, abs_of_negated),
    Op.FLOOR: (idempotent,),
    Op.CEIL: (idempotent,),
    Op.ROUND_NEAREST_EVEN: (idempotent,),
    Op.ROUND_NEAREST_AFZ: (idempotent,),
    Op.SIGN: (idempotent,),
    Op.AND: (same_operands, logic_known),
    Op.OR: (same_operands, logic_known),
    Op.MAXIMUM: (same_operands,),
    Op.MINIMUM: (same_operands,),
    Op.SHIFT_LEFT: (shift_by_zero,),
    Op.SHIFT_RIGHT_LOGICAL: (shift_by_zero,),
    Op.SHIFT_RIGHT_ARITHMETIC: (shift_by_zero,),
    Op.COMPARE: (compare_itself, compare_unsigned_with_zero),
    Op.SELECT: (select_known, select_of_not),
    Op.CLAMP: (clamp_twice,),
    Op.IOTA: (iota_of_one,),
    Op.CONVERT: (convert_back,),
    Op.REDUCE: (reduce_of_reduce,),
    Op.DOT: (dot_of_nothing,),
}
"""By opcode; the first rule that answers wins."""
