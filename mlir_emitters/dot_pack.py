"""Copies whole panels of a product's right operand, as functions that the kernels of all products call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlir import ir

from ..hlo.dtypes import DType
from .builder import Builder, Index, Pointer, Unroll, Value
from .convert import convert_to
from .dot_dtypes import IN_VECTORS, converts_in_vectors
from .dot_tile import CACHE_LINE
from .elemental import load_element
from .elements import decode, flatten, raw_type
from .helper import call_helper, memory_types

ACROSS = 128  # contracting elements that are packed together where B is stored by columns: half of the first cache
NEXT_ROWS = 6  # rows of B that are fetched before they are packed: often a page apart, which no processor foresees


@dataclass(frozen=True, slots=True)
class Pack:
    """Copies rows of `columns` elements of dtype `source` to adjacent rows of `wide`.

    unit: which stride of B is 1: along rows (n), of contracting elements (k), which the inner loop follows, or none
    (-). lanes: of a vector, which the columns are a multiple of. fetches: rows are fetched ahead. fma: whether the
    target has fused multiply-adds. parts: neighbours in memory that stay neighbours, columns each.
    """

    source: DType
    wide: DType
    columns: int
    lanes: int
    unit: str
    fetches: bool
    fma: bool
    parts: int = 1

    @property
    def name(self) -> str:
        shape = f"{self.columns}x{self.lanes}{self.unit}{'a' * self.fetches}{'c' * (self.parts - 1)}"
        return f"mlir.pack.{self.source.value}.{self.wide.value}.{shape}"

    def types(self, b: Builder) -> list[ir.Type]:
        """Of the parameters: memory of B and of the panel; B's offset; the depth; the strides of rows and columns."""
        held = [raw_type(b.types, d) for d in (self.source, self.wide)]
        return [*memory_types(b, held), *[b.types.i64] * 4]

    def call(self, b: Builder, source: Pointer, panel: Value, numbers: Sequence[Index]) -> None:
        """Call the function. numbers: the depth, the strides of rows and columns."""
        call_helper(b, self, [source, panel], numbers, 1)

    def emit(self, b: Builder, parameters: Sequence[Value]) -> None:
        """The function's body."""
        source, panel, start, depth, row, column = parameters
        raw, element = (raw_type(b.types, d) for d in (self.source, self.wide))
        places = self.columns // self.parts

        def place(k: Index, n: Index) -> Index:
            across = b.mul(k, self.parts) if self.unit == "k" else b.mul(k, row)
            return b.add(b.add(start, across), n if self.unit == "n" else b.mul(n, column))

        def copy(k: Index, n: Index) -> None:
            if self.parts > 1:
                pair = b.load(
                    b.pointer(source, place(k, b.mul(n, self.parts)), raw),
                    ir.VectorType.get([self.parts], raw),
                    self.source.bytes,
                )
                at = b.add(b.mul(k, self.columns), b.mul(n, self.parts))
                b.store(pair, b.pointer(panel, at, element), self.wide.bytes)
                return
            code = load_element(b, source, self.source, place(k, n))
            value = flatten(convert_to(b, self.source, self.wide, decode(b, self.source, code)))[0]
            b.store(value, b.pointer(panel, b.add(b.mul(k, self.columns), n), element), self.wide.bytes)

        def strip(first: Index, count: Index) -> None:
            with b.loop(0, places, unroll=Unroll.NONE) as slow, b.loop(0, count, unroll=Unroll.NONE) as fast:
                copy(b.add(first, fast.index), slow.index)

        if self.unit == "k":
            rest = b.rem(depth, ACROSS)
            whole = b.sub(depth, rest)
            with b.loop(0, whole, ACROSS, unroll=Unroll.NONE) as group:
                strip(group.index, ACROSS)
            strip(whole, rest)
            return
        with b.loop(0, depth, unroll=Unroll.NONE) as slow:
            if self.fetches:
                for n in range(0, self.columns, CACHE_LINE // self.source.bytes):
                    at = place(b.add(slow.index, NEXT_ROWS), n)
                    b.prefetch(b.pointer(source, at, raw))
            if self._in_vectors:
                # LLVM would not: it has to test whether panel and source overlap, which takes as long as a short row.
                for n in range(0, self.columns, self.lanes):
                    self._copy_vector(b, b.pointer(source, place(slow.index, n), raw), panel, (slow.index, n))
            else:
                with b.loop(0, places, unroll=Unroll.NONE) as fast:
                    copy(slow.index, fast.index)

    @property
    def _in_vectors(self) -> bool:
        """Whether rows of B are copied, and converted, a vector at a time."""
        converts = converts_in_vectors(self.source, self.wide)
        return self.unit == "n" and (self.source is self.wide or converts)

    def _copy_vector(self, b: Builder, place: Pointer, panel: Value, to: tuple[Index, int]) -> None:
        raw, element = (raw_type(b.types, d) for d in (self.source, self.wide))
        value = b.load(place, ir.VectorType.get([self.lanes], raw), self.source.bytes)
        if self.source is not self.wide:
            value = IN_VECTORS[self.source](b, value, ir.VectorType.get([self.lanes], element))
        k, n = to
        b.store(value, b.pointer(panel, b.add(b.mul(k, self.columns), n), element), self.lanes * self.wide.bytes)
