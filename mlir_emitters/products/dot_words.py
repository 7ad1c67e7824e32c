"""Words of narrow elements: adjacent contracting ones, all of which an instruction multiplies with those of another
word. Sums have 32 bits. Those of integers wrap, as sums of single products do, so that results are exact; those of two
bf16 are f32, rounded at each product (vdpbf16ps).

Of four bytes, those of A are unsigned and those of B signed (vpdpbusd of x86). A's signed ones have their highest bits
flipped, which adds 128; what that adds to the sums of a column is taken off before the first word. Two 16-bit integers
are signed (pmaddwd; where VNNI multiplies and adds at once, LLVM makes one instruction of it).
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from ...hlo.dtypes import DType
from ...hlo.records import dataclass
from ..core.builder import Builder, Index, Pointer, Value
from ..core.elements import decode, flatten
from ..core.facts import Facts
from ..loops.elemental import load_element
from ..numerics.convert import convert_to

OF_BYTES = frozenset({DType.S2, DType.S4, DType.S8, DType.U2, DType.U4, DType.U8})
OF_PAIRS = OF_BYTES | {DType.S16}
WORD_BITS = 32
"""Bits of a word."""

WHOLE = frozenset({DType.S8, DType.U8, DType.S16, DType.BF16})  # what fills its bytes
FLIP = 0x80808080
"""The highest bits of a word's bytes."""

MINIMUM_BF16_ELEMENTS = 4
"""Contracting elements: fewer may be one product, which keeps the sign of a zero."""


FOUR = {256: "llvm.x86.avx512.vpdpbusd.256", 512: "llvm.x86.avx512.vpdpbusd.512"}  # bits of a vector → intrinsic
BF16 = "llvm.x86.avx512bf16.dpbf16ps.512"
TWO = {128: "llvm.x86.sse2.pmadd.wd", 256: "llvm.x86.avx2.pmadd.wd", 512: "llvm.x86.avx512.pmaddw.d.512"}


@dataclass(frozen=True, slots=True)
class Words:
    """Words of `size` elements. depth: the number of contracting elements; flipped: whether A's bytes are signed;
    wraps: whether they are integers.
    """

    size: int
    depth: int
    flipped: bool
    wraps: bool = True

    @staticmethod
    def of(facts: Facts, left: DType, right: DType, wide: DType, depth: int) -> Words | None:
        """Words for a product with sums of dtype `wide`; None if the target has no instruction for it."""
        if facts.bf16_pairs and left is right is DType.BF16 and wide is DType.F32 and depth >= MINIMUM_BF16_ELEMENTS:
            return Words(2, depth, False, False)
        if facts.integer_products == 1 or not {left, right} <= OF_PAIRS or wide not in (DType.S32, DType.U32):
            return None
        four = facts.integer_products == 4 and left in OF_BYTES and right in OF_BYTES - {DType.U8}
        return Words(4 if four else 2, depth, four and not left.is_unsigned)

    def are_read(self, stride: int) -> bool:
        """Whether a tile reads words of A where they lie, and no copy. stride: of contracting elements."""
        return not self.wraps and self.is_memory(DType.BF16, stride)

    def is_memory(self, dtype: DType, stride: int) -> bool:
        """Whether words are as they lie in memory. stride: of contracting elements."""
        return stride == 1 and self.size * dtype.bits == WORD_BITS and self.depth % self.size == 0

    def are_packed(self, dtype: DType, unit: str) -> bool:
        """Whether a function packs words of B. unit: as of Pack."""
        if unit == "n":
            return dtype in WHOLE and self.depth % self.size == 0
        return unit == "k" and self.is_memory(dtype, 1)

    def load_several(self, b: Builder, pointer: Value, offset: Index, count: int) -> Value:
        """Words of integers in A that are as in memory, as they are multiplied."""
        words = b.vector(count, b.types.i32)
        element = b.types.integer(WORD_BITS // self.size)
        parts = b.vector(self.size * count, element)
        raw = b.load(b.pointer(pointer, offset, element), parts, element.width // 8)
        found = b.op("vector.bitcast", raw, type=words)
        if not self.flipped:
            return found
        return b.op("arith.xori", found, b.filled(FLIP, words))

    def load(self, b: Builder, pointer: Value, dtype: DType, offset: Index, stride: int, place: Index) -> Value:
        """Word `place` of a row of A or a column of B, with zeros behind the last element. offset: of its first one;
        stride: of elements.
        """
        if self.is_memory(dtype, stride):
            word = word_of(b, pointer, offset, self.size)
            return word if self.wraps else b.bitcast(word, b.types.f32)
        bits, word = WORD_BITS // self.size, b.constant(0, b.types.i32)
        for n in range(self.size):
            at, inside = offset if n == 0 else b.add(offset, n * stride), None
            if self.depth % self.size:
                over = b.sub(b.add(b.mul(place, self.size), n), self.depth - 1)
                inside = b.compare_integers("sle", b.materialize(over), b.materialize(0))
                back = b.greatest(over, 0)
                at = b.sub(at, b.mul(back, stride))
            raw = load_element(b, pointer, dtype, at)
            if self.wraps:
                (value,) = flatten(convert_to(b, dtype, DType.S32, decode(b, dtype, raw)))
            else:
                value = b.extui(raw, b.types.i32)
            if n < self.size - 1 and self.wraps:
                value = b.binary("andi", value, (1 << bits) - 1)
            value = b.binary("shli", value, bits * n) if n else value
            word = b.binary("ori", word, value if inside is None else b.select(inside, value, b.like(0, value)))
        return word if self.wraps else b.bitcast(word, b.types.f32)

    def flip(self, b: Builder, word: Value) -> Value:
        """A word of A as it is multiplied."""
        return b.binary("xori", word, FLIP) if self.flipped else word

    def first_sums(self, b: Builder, rows: Sequence[Value], sums: Sequence[Value]) -> list[Value]:
        """Sums of columns, to which a word of each has been added as if all of A were zero."""
        if not self.flipped:
            return list(sums)
        zero = b.filled(FLIP, rows[0].type)
        return [multiply_add(b, self.size, zero, x, total) for x, total in zip(rows, sums, strict=True)]


def word_of(b: Builder, pointer: Pointer, offset: Index, size: int) -> Value:
    """The number of neighbours in an i32."""
    bits = WORD_BITS // size
    element = b.types.integer(bits)
    several = b.load(b.pointer(pointer, offset, element), b.vector(size, element), bits // 8)
    one = b.op("vector.bitcast", several, type=b.vector(1, b.types.i32))
    return b.lane(one, 0)


def multiply_add(b: Builder, size: int, left: Value, right: Value, total: Value) -> Value:
    """total + the products of vectors of words."""
    (lanes,) = total.type.shape
    if total.type.element_type == b.types.f32:
        pairs = b.vector(2 * lanes, ir.BF16Type.get())
        left, right = (b.op("vector.bitcast", x, type=pairs) for x in (left, right))
        return b.call(b.external(BF16, [total.type, pairs, pairs], total.type), total.type, [total, left, right])
    parts = b.vector(lanes * size, b.types.integer(32 // size))
    left, right = (b.op("vector.bitcast", x, type=parts) for x in (left, right))
    if size == 4:
        four = b.external(FOUR[lanes * 32], [total.type, parts, parts], total.type)
        return b.call(four, total.type, [total, left, right])
    products = b.call(b.external(TWO[lanes * 32], [parts, parts], total.type), total.type, [left, right])
    return b.op("arith.addi", total, products)
