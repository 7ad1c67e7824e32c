"""Words of narrow integers: adjacent contracting elements, all of which an instruction multiplies with those of another
word. Sums have 32 bits and wrap, as sums of single products do, so that results are exact.

Of four bytes, those of A are unsigned and those of B signed (vpdpbusd of x86). A's signed ones have their highest bits
flipped, which adds 128; what that adds to the sums of a column is taken off before the first word. Two 16-bit integers
are signed (pmaddwd; where VNNI multiplies and adds at once, LLVM makes one instruction of it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from ..hlo.dtypes import DType
from .builder import Builder, Index, Value
from .convert import convert_to
from .elemental import load_element
from .elements import decode, flatten
from .graph import Buffer

OF_BYTES = frozenset({DType.S2, DType.S4, DType.S8, DType.U2, DType.U4, DType.U8})
OF_PAIRS = OF_BYTES | {DType.S16}

FOUR = {256: "llvm.x86.avx512.vpdpbusd.256", 512: "llvm.x86.avx512.vpdpbusd.512"}  # bits of a vector → intrinsic
TWO = {128: "llvm.x86.sse2.pmadd.wd", 256: "llvm.x86.avx2.pmadd.wd", 512: "llvm.x86.avx512.pmaddw.d.512"}


@dataclass(frozen=True, slots=True)
class Words:
    """Words of `size` elements. depth: the number of contracting elements; flipped: whether A's bytes are signed."""

    size: int
    depth: int
    flipped: bool

    @staticmethod
    def of(b: Builder, left: DType, right: DType, wide: DType, depth: int) -> Words | None:
        """Words for a product with sums of dtype `wide`; None if the target has no instruction for it."""
        if b.products == 1 or not {left, right} <= OF_PAIRS or wide not in (DType.S32, DType.U32):
            return None
        four = b.products == 4 and left in OF_BYTES and right in OF_BYTES - {DType.U8}
        return Words(4 if four else 2, depth, four and not left.is_unsigned)

    def are_whole(self, buffer: Buffer, stride: int) -> bool:
        """Whether each word is as it is in memory."""
        return self.size == 4 and stride == 1 and buffer.dtype.bits == 8 and self.depth % 4 == 0

    def load_vector(self, b: Builder, pointer: Value, offset: Index, lanes: int) -> Value:
        """`lanes` words of a row of A as they are multiplied, where they are whole. offset: of the first element."""
        place = b.pointer(pointer, offset, b.types.i8)
        bytes_ = b.load(place, ir.VectorType.get([4 * lanes], b.types.i8), 1)
        words = ir.VectorType.get([lanes], b.types.i32)
        found = b.op("vector.bitcast", bytes_, type=words)
        if not self.flipped:
            return found
        return b.op("arith.xori", found, b.op("vector.broadcast", b.constant(0x80808080, b.types.i32), type=words))

    def load(self, b: Builder, pointer: Value, buffer: Buffer, offset: Index, stride: int, place: Index) -> Value:
        """Word `place` of a row of A or a column of B, with zeros behind the last element. offset: of its first one;
        stride: of elements.
        """
        if self.are_whole(buffer, stride):
            four = b.load(b.pointer(pointer, offset, b.types.i8), ir.VectorType.get([4], b.types.i8), 1)
            one = b.op("vector.bitcast", four, type=ir.VectorType.get([1], b.types.i32))
            first = {"static_position": ir.DenseI64ArrayAttr.get([0])}
            return b.op("vector.extract", one, type=b.types.i32, attributes=first)
        bits, word = 32 // self.size, b.constant(0, b.types.i32)
        for n in range(self.size):
            at, inside = offset if n == 0 else b.add(offset, n * stride), None
            if self.depth % self.size:
                over = b.sub(b.add(b.mul(place, self.size), n), self.depth - 1)
                inside = b.compare_integers("sle", b.materialize(over), b.materialize(0))
                back = b.binary("maxsi", b.materialize(over), b.materialize(0))
                at = b.sub(at, b.mul(back, stride))
            raw = load_element(b, pointer, buffer.dtype, at)
            (value,) = flatten(convert_to(b, buffer.dtype, DType.S32, decode(b, buffer.dtype, raw)))
            if n < self.size - 1:
                value = b.binary("andi", value, (1 << bits) - 1)
            value = b.binary("shli", value, bits * n) if n else value
            word = b.binary("ori", word, value if inside is None else b.select(inside, value, b.like(0, value)))
        return word

    def flip(self, b: Builder, word: Value) -> Value:
        """A word of A as it is multiplied."""
        return b.binary("xori", word, 0x80808080) if self.flipped else word

    def first_sums(self, b: Builder, rows: Sequence[Value], sums: Sequence[Value]) -> list[Value]:
        """Sums of columns, to which a word of each has been added as if all of A were zero."""
        if not self.flipped:
            return list(sums)
        zero = b.op("vector.broadcast", b.constant(0x80808080, b.types.i32), type=rows[0].type)
        return [multiply_add(b, self.size, zero, x, total) for x, total in zip(rows, sums, strict=True)]


def multiply_add(b: Builder, size: int, left: Value, right: Value, total: Value) -> Value:
    """total + the products of vectors of words."""
    (lanes,) = total.type.shape
    parts = ir.VectorType.get([lanes * size], b.types.integer(32 // size))
    left, right = (b.op("vector.bitcast", x, type=parts) for x in (left, right))
    if size == 4:
        four = b.external(FOUR[lanes * 32], [total.type, parts, parts], total.type)
        return b.call(four, total.type, [total, left, right])
    products = b.call(b.external(TWO[lanes * 32], [parts, parts], total.type), total.type, [left, right])
    return b.op("arith.addi", total, products)
