"""A row of A times a large B: some rows of B at a time are read along all columns, as a function of a module of its own
that the kernels of all products call. Their factors are in registers, the sums of the columns are in the first cache.

A tile of columns would read a short stretch of each of B's rows: too short for a processor to see what comes next.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from ...hlo.dtypes import DType
from ...hlo.records import dataclass
from ..core.builder import Builder, Index, Pointer, Unroll, Value
from ..core.elements import decode, flatten, raw_type
from ..loops.elemental import load_element
from ..loops.helper import call_helper, memory_types
from ..numerics.convert import convert_to
from .dot_dtypes import read_vector


@dataclass(frozen=True, slots=True)
class RowsOfB:
    """Multiplies `rows` rows of B with a factor each, and adds their sums, in vectors of `lanes`, to totals.

    left, right: dtypes of factors and of B in memory, converted to `wide`. fma: whether the target has fused
    multiply-adds. As many rows behind them are fetched, into the second cache: in the first one, places of rows a page
    apart would be taken twice.
    """

    wide: DType
    left: DType
    right: DType
    rows: int
    lanes: int
    fma: bool

    @property
    def name(self) -> str:
        dtypes = ".".join(d.value for d in (self.wide, self.left, self.right))
        return f"mlir.stream.{dtypes}.{self.rows}x{self.lanes}"

    def types(self, b: Builder) -> list[ir.Type]:
        """Of the parameters: memory of factors, B and totals; their offsets; the distance of factors; that of B's rows;
        the columns, whole vectors; whether sums are added (0 or 1); starts of B's other rows, of which LLVM would
        compute each from the one before.
        """
        held = [raw_type(b.types, d) for d in (self.left, self.right, self.wide)]
        return [*memory_types(b, held), *[b.types.i64] * (6 + self.rows)]

    def call(self, b: Builder, places: Sequence[Pointer], numbers: Sequence[Index]) -> None:
        """Call the function. places: the first factor, of B and the totals; numbers: the others of the parameters."""
        call_helper(b, self, places, numbers, len(places))

    def emit(self, b: Builder, parameters: Sequence[Value]) -> None:
        """The function's body."""
        memory, (left_at, right_at, out_at), numbers = parameters[:3], parameters[3:6], parameters[6:]
        along, row, columns, adds, *others = numbers
        raw, element = raw_type(b.types, self.right), raw_type(b.types, self.wide)
        vector = b.vector(self.lanes, element)
        factors = []
        for k in range(self.rows):
            found = decode(b, self.left, load_element(b, memory[0], self.left, b.add(left_at, b.mul(along, k))))
            (factor,) = flatten(convert_to(b, self.left, self.wide, found))
            factors.append(b.op("vector.broadcast", factor, type=vector))
        nothing = b.filled(-0.0, vector)
        starts = [right_at, *(b.add(right_at, other) for other in others)]
        adding = b.compare_integers("ne", adds, b.constant(0, b.types.i64))
        with b.loop(0, columns, self.lanes, unroll=Unroll.NONE) as column:
            total: Value | None = None
            for factor, start in zip(factors, starts, strict=True):
                place = b.pointer(memory[1], b.add(start, column.index), raw)
                value = read_vector(b, place, self.right, self.wide, self.lanes)
                total = self._added(b, factor, value, total)
            for start in starts:
                ahead = b.add(b.add(start, column.index), b.mul(row, self.rows))
                b.prefetch(b.pointer(memory[1], ahead, raw), second=True)
            assert total is not None
            place = b.pointer(memory[2], b.add(out_at, column.index), element)
            before = b.select(adding, b.load(place, vector, self.wide.bytes), nothing)
            b.store(b.op("arith.addf" if self.wide.is_float else "arith.addi", before, total), place, self.wide.bytes)

    def _added(self, b: Builder, factor: Value, value: Value, total: Value | None) -> Value:
        if self.wide.is_float:
            return b.mulf(factor, value) if total is None else b.fma(factor, value, total)
        product = b.op("arith.muli", factor, value)
        return product if total is None else b.op("arith.addi", total, product)
