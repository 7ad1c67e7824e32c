"""Loads, stores and constants: moves values of every dtype between memory and registers."""

from __future__ import annotations

import numpy as np
from llvmlite import ir

from ...codegen.field.element import constants
from ...hlo.dtypes import DType
from ...hlo.ir import Instruction, Literal
from ...hlo.records import dataclass
from ..core.builder import Code, IndexValue
from ..core.registers import BOOL, I8, I32, NATIVE_FLOAT, Register, memory_type, real_constant, table
from ..numerics.convert import wrap_integer


@dataclass(frozen=True, slots=True)
class Pointer:
    """The start of a buffer that holds one array."""

    value: ir.Value


def address(code: Code, pointer: Pointer, dtype: DType, offset: IndexValue) -> ir.Value:
    """The address of the element at `offset` (in elements)."""
    if isinstance(offset, int) and offset == 0:
        return pointer.value
    if dtype.is_complex:
        offset = code.multiply(offset, 2)
    return code.b.gep(pointer.value, [code.value(offset)], inbounds=True, source_etype=memory_type(dtype))


def prefetch(
    code: Code, pointer: Pointer, dtype: DType, offset: IndexValue, write: bool = False, second: bool = False
) -> None:
    """Ask for the cache line of an element, which may lie behind the array's end. write: it will be written. second:
    into the second cache, not the nearest.
    """
    offset = code.multiply(offset, 2 if dtype.is_complex else 1)
    place = code.b.gep(pointer.value, [code.value(offset)], source_etype=memory_type(dtype))
    hints = [I32(int(write)), I32(2 if second else 3), I32(1)]  # read or write; the nearest cache is 3; of data
    code.intrinsic("llvm.prefetch.p0", ir.VoidType(), [place, *hints])


def load(code: Code, pointer: Pointer, dtype: DType, offset: IndexValue) -> Register:
    """Load one element."""
    b = code.b
    type_ = memory_type(dtype)
    size = dtype.component.bytes
    place = address(code, pointer, dtype, offset)
    first = b.load(place, typ=type_, align=size)
    if dtype.is_complex:
        second = b.gep(place, [ir.IntType(64)(1)], inbounds=True, source_etype=type_)
        return first, b.load(second, typ=type_, align=size)
    if dtype is DType.PRED:
        return b.icmp_unsigned("!=", first, I8(0))
    return wrap_integer(code, dtype, first) if dtype.is_integer else first


def store(code: Code, pointer: Pointer, dtype: DType, offset: IndexValue, value: Register) -> None:
    """Store one element."""
    b = code.b
    type_, size = memory_type(dtype), dtype.component.bytes
    place = address(code, pointer, dtype, offset)
    if dtype.is_complex:
        b.store(value[0], place, align=size)
        b.store(value[1], b.gep(place, [ir.IntType(64)(1)], inbounds=True, source_etype=type_), align=size)
        return
    if dtype is DType.PRED:
        value = b.zext(value, I8)
    elif dtype.bits < 8:
        value = b.and_(value, I8((1 << dtype.bits) - 1))
    b.store(value, place, align=size)


def immediate(literal: Literal) -> Register:
    """The registers of a one-element literal, or of the first element if all are equal."""
    dtype, element = literal.shape.dtype, literal.array.reshape(-1)[:1]
    if dtype.is_complex:
        part = memory_type(dtype)
        return real_constant(part, float(element[0].real)), real_constant(part, float(element[0].imag))
    if dtype is DType.PRED:
        return BOOL(int(element[0]))
    element = constants(element, dtype)
    if dtype in NATIVE_FLOAT:
        return _float_constant(dtype, element)
    type_ = memory_type(dtype)
    if dtype.is_integer:
        return type_(int(element[0]))
    return type_(int(element.view(np.dtype(f"u{dtype.bytes}"))[0]))


def _float_constant(dtype: DType, element: np.ndarray) -> ir.Constant:
    """A float constant, exact for every bit pattern: a NaN keeps its sign and payload."""
    type_ = NATIVE_FLOAT[dtype]
    if dtype is DType.F16:
        return ir.FormattedConstant(type_, f"0xH{int(element.view(np.uint16)[0]):04X}")
    with np.errstate(invalid="ignore"):
        wide = element.astype(np.float64)
    return ir.FormattedConstant(type_, f"0x{int(wide.view(np.uint64)[0]):016X}")


def is_splat(literal: Literal) -> bool:
    """Whether all elements have the same bits."""
    flat = np.ascontiguousarray(literal.array).reshape(-1)
    raw = flat.view(np.uint8).reshape(flat.size, -1)
    return bool((raw == raw[:1]).all())


def constant_array(code: Code, instruction: Instruction) -> Pointer:
    """A private global with the elements of a non-scalar constant, in the layout of its shape."""
    found = code.constants.get(instruction)
    if found is None:
        shape = instruction.shape
        physical = np.transpose(
            constants(instruction.literal.array, shape.dtype), tuple(reversed(shape.minor_to_major))
        )
        data = np.ascontiguousarray(physical).tobytes()
        name = f"{code.function.name}.constant{len(code.constants)}"
        found = code.constants[instruction] = table(code.module, name, ir.ArrayType(I8, len(data)), bytearray(data))
    return Pointer(found)
