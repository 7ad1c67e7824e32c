"""Products of narrow elements whose sums have 32 bits: words of adjacent contracting elements, of which an instruction
multiplies all and adds the products to a lane. Sums of integers wrap as any sum of this width does, so the result is
exact; those of bf16 are rounded to f32 at each product.

Four bytes of A are unsigned and those of B signed (vpdpbusd of x86): A's signed ones are packed with 128 more, and sums
begin at -128 times those of B's columns. Two 16-bit integers are signed (pmaddwd, which LLVM joins with the addition
where VNNI has an instruction for both). Two numbers of bf16 are multiplied by vdpbf16ps.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ...hlo.dtypes import DType
from ..core.builder import Code, IndexValue, Unroll
from ..core.registers import BFLOAT, FLOAT, I8, I16, I32, I64, splat
from ..loops.memory import Pointer, load
from ..numerics.convert import convert
from .dot_problem import Problem

BYTES = {512: "llvm.x86.avx512.vpdpbusd.512", 256: "llvm.x86.avx512.vpdpbusd.256"}
PAIRS = {512: "llvm.x86.avx512.pmaddw.d.512", 256: "llvm.x86.avx2.pmadd.wd", 128: "llvm.x86.sse2.pmadd.wd"}
"""Width of a vector in bits → the intrinsic."""

BF16 = "llvm.x86.avx512bf16.dpbf16ps.512"
"""The intrinsic of vectors of 512 bits."""

OFFSET = 128
"""What makes a signed byte unsigned."""


def multiply_add(code: Code, group: int, total: ir.Value, factors: ir.Value, columns: ir.Value) -> ir.Value:
    """total + the products of words. factors: of A; columns: of B; all of them vectors of i32, or of f32."""
    b, lanes = code.b, total.type.count
    if total.type.element == FLOAT:
        pairs = ir.VectorType(BFLOAT, 2 * lanes)
        return code.intrinsic(BF16, total.type, [total, b.bitcast(factors, pairs), b.bitcast(columns, pairs)])
    type_ = ir.VectorType(ir.IntType(32 // group), lanes * group)
    factors, columns = b.bitcast(factors, type_), b.bitcast(columns, type_)
    if group == 4:
        return code.intrinsic(BYTES[32 * lanes], total.type, [total, factors, columns])
    return b.add(total, code.intrinsic(PAIRS[32 * lanes], total.type, [factors, columns]))


def word(code: Code, p: Problem, source: Pointer, start: IndexValue, stride: int, place: IndexValue) -> ir.Value:
    """A word of B, zeros behind the last contracting element. start: the offset of its column; place: its number."""
    elements: list[ir.Value] = []
    for n in range(p.group):
        k = code.add(code.multiply(place, p.group), n)
        last = p.elements - 1
        inside = p.elements % p.group and code.b.icmp_signed("<=", code.value(k), I64(last))
        offset = code.add(start, code.multiply(code.minimum(k, last) if inside else k, stride))
        value: ir.Value = load(code, source, p.right, offset)
        elements.append(code.b.select(inside, value, ir.Constant(value.type, 0)) if inside else value)
    return joined(code, p.right, elements)


def joined(code: Code, dtype: DType, elements: Sequence[ir.Value]) -> ir.Value:
    """The word of elements, in an i32, or in an f32 of bf16."""
    b, bits = code.b, 32 // len(elements)
    total: ir.Value = I32(0)
    for n, element in enumerate(elements):
        value = b.zext(element, I32) if dtype.is_float else convert(code, dtype, DType.S32, element)
        if n < len(elements) - 1:
            value = b.and_(value, I32((1 << bits) - 1))
        total = b.or_(total, b.shl(value, I32(bits * n)))
    return b.bitcast(total, FLOAT) if dtype.is_float else total


def element(code: Code, p: Problem, value: ir.Value) -> ir.Value:
    """An element of A as a part of a word."""
    if not p.wraps:
        return value
    type_ = I8 if p.group == 4 else I16
    part = code.b.trunc(convert(code, p.left, DType.S32, value), type_)
    return code.b.xor(part, type_(OFFSET)) if is_offset(p) else part


def is_offset(p: Problem) -> bool:
    """Whether A is packed with OFFSET more."""
    return p.group == 4 and not p.left.is_unsigned


def first_sums(code: Code, p: Problem, panel: Pointer, depth: int, target: Pointer) -> None:
    """Store what the sums of each column of a panel begin with, for `depth` words."""
    vector, align = ir.VectorType(I32, p.lanes), p.lanes * 4
    zeros = [ir.Constant(vector, None)] * p.vectors

    def at(pointer: Pointer, row: IndexValue, v: int) -> ir.Value:
        offset = code.add(code.multiply(row, p.panel), v * p.lanes)
        return code.b.gep(pointer.value, [code.value(offset)], source_etype=I32)

    sums = zeros
    if is_offset(p):
        offsets = splat(code.b, I32(OFFSET * 0x01010101 - (1 << 32)), p.lanes)
        rows = code.loop(depth, carried=zeros, unroll=Unroll.NEVER)
        words = [code.b.load(at(panel, rows.index, v), typ=vector, align=align) for v in range(p.vectors)]
        pairs = zip(rows.carried, words, strict=True)
        sums = rows.close([multiply_add(code, p.group, total, offsets, columns) for total, columns in pairs])
    for v, total in enumerate(sums):
        code.b.store(code.b.sub(zeros[v], total), at(target, 0, v), align=align)
