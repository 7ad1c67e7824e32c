"""The representation of each dtype in memory and in registers of the generated code.

Narrow floats keep their storage bits while they are only moved (f16 as half, bf16 and smaller as integers); arithmetic
decodes them to f32 and encodes its result. A complex value is a Python tuple (re, im) of two registers.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TypeAlias

from llvmlite import ir

from ...codegen.field.element import constant
from ...hlo.dtypes import DType

BOOL = ir.IntType(1)
I8, I16, I32, I64 = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64)
HALF, FLOAT, DOUBLE = ir.HalfType(), ir.FloatType(), ir.DoubleType()
POINTER = ir.PointerType()


class _BFloat(ir.Type):
    """bfloat, which llvmlite lacks. Only an intrinsic takes it: bf16 is i16 elsewhere."""

    def _to_string(self) -> str:
        return "bfloat"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BFloat)

    def __hash__(self) -> int:
        return hash(_BFloat)


BFLOAT = _BFloat()

NATIVE_FLOAT = {DType.F16: HALF, DType.F32: FLOAT, DType.F64: DOUBLE}

V: TypeAlias = ir.Value

Register: TypeAlias = ir.Value | tuple["Register", ...]
"""One register, (re, im) of a complex value, or the values of a tuple-shaped instruction."""


def memory_type(dtype: DType) -> ir.Type:
    """The LLVM type of one element in memory (of one component, if complex)."""
    part = dtype.component
    return NATIVE_FLOAT.get(part) or ir.IntType(8 * part.bytes)


def register_type(dtype: DType) -> ir.Type:
    """The LLVM type of one value in a register (of one component, if complex)."""
    return BOOL if dtype is DType.PRED else memory_type(dtype)


def flatten(value: Register) -> list[ir.Value]:
    """All registers of a value, in order."""
    if isinstance(value, tuple):
        return [register for part in value for register in flatten(part)]
    return [value]


def unflatten(like: Register, registers: list[ir.Value]) -> Register:
    """The inverse of `flatten` for a value of the form of `like`. Removes them from the front of `registers`."""
    if isinstance(like, tuple):
        return tuple(unflatten(part, registers) for part in like)
    return registers.pop(0)


def chosen(b: ir.IRBuilder, condition: ir.Value, yes: Register, no: Register) -> Register:
    """A select on each part of a value."""
    return unflatten(yes, [b.select(condition, x, y) for x, y in zip(flatten(yes), flatten(no), strict=True)])


def real_constant(type_: ir.Type, value: float) -> ir.Constant:
    """A half, float or double constant, exact for every bit pattern of the type."""
    if isinstance(type_, ir.FloatType):
        value = _to_single(value)
    value = constant(value)
    if type_ is HALF or isinstance(type_, ir.HalfType):
        return ir.FormattedConstant(type_, f"0xH{_half_bits(value):04X}")
    return ir.FormattedConstant(type_, f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}")


def _half_bits(value: float) -> int:
    import numpy as np

    with np.errstate(over="ignore"):
        return int(np.float16(value).view(np.uint16))


def _to_single(value: float) -> float:
    import numpy as np

    with np.errstate(over="ignore"):
        return float(np.float32(value))


def table(module: ir.Module, name: str, type_: ir.ArrayType, elements: bytearray | list[ir.Constant]) -> ir.Value:
    """A private constant array of a module, by its name."""
    found = module.globals.get(name)
    if found is None:
        found = ir.GlobalVariable(module, type_, name)
        found.initializer = ir.Constant(type_, elements)
        found.linkage, found.global_constant, found.align = "private", True, 64
    return found


class _Text(ir.Constant):
    """A constant by its text: llvmlite writes each lane of a vector, and LLVM reads each."""

    def __init__(self, type_: ir.Type, text: str):
        super().__init__(type_, None)
        self._text = text

    def get_reference(self) -> str:
        return self._text


def poison(type_: ir.Type) -> ir.Constant:
    """A value that is not used."""
    return _Text(type_, "poison")


def shuffled(b: ir.IRBuilder, x: ir.Value, lanes: Sequence[int], y: ir.Value | None = None) -> ir.Value:
    """The lanes of a vector, or of two, which are numbered one after the other, in this order."""
    mask = ir.Constant(ir.VectorType(I32, len(lanes)), list(lanes))
    return b.shuffle_vector(x, poison(x.type) if y is None else y, mask)


def splat(b: ir.IRBuilder, value: ir.Value, lanes: int) -> ir.Value:
    """A vector that has the value in each lane."""
    type_ = ir.VectorType(value.type, lanes)
    if isinstance(value, ir.Constant):
        return _Text(type_, f"splat ({value.type} {value.get_reference()})")
    blank = poison(type_)
    one = b.insert_element(blank, value, I32(0))
    return b.shuffle_vector(one, blank, ir.Constant(ir.VectorType(I32, lanes), None))


def transposed(b: ir.IRBuilder, block: Sequence[ir.Value]) -> list[ir.Value]:
    """A square block of vectors, transposed by exchanging corners of increasing size (log2(lanes) steps)."""
    rows, lanes = list(block), len(block)
    step = 1
    while step < lanes:
        upper = [j if not j & step else lanes + j - step for j in range(lanes)]
        lower = [j + step if not j & step else lanes + j for j in range(lanes)]
        for i in range(lanes):
            if not i & step:
                x, y = rows[i], rows[i + step]
                rows[i], rows[i + step] = shuffled(b, x, upper, y), shuffled(b, x, lower, y)
        step *= 2
    return rows
