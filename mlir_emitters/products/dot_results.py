"""What becomes of a tiled product's totals: they are rounded into the result, or handed on to the ops that follow."""

from __future__ import annotations

from collections.abc import Callable

from ...hlo.dtypes import DType
from ...hlo.records import dataclass
from ..core.builder import Index, Unroll, Value
from ..core.elements import Scalar, encode, flatten, raw_type, unflatten
from ..core.graph import Buffer
from ..loops.elemental import Elemental, Indices
from ..numerics.convert import convert_to
from .dot import narrow
from .dot_product import Product


@dataclass(frozen=True, slots=True)
class Totals:
    """Rows of totals of a dtype in memory, of `width` columns each."""

    memory: Value
    dtype: DType
    width: int


class Results:
    """The results of a product. coordinates: of the result, along the loops around a tile; top: the first row of a
    block of rows.
    """

    def __init__(
        self,
        e: Elemental,
        product: Product,
        result: Buffer,
        wide: DType,
        totals: Totals | None,
        write: Callable[[Indices], None] | None,
    ):
        """wide: the dtype of sums. totals: None if they are in the result. write: of Matmul."""
        self.e, self.b, self.result, self.wide, self.totals, self.write = e, e.b, result, wide, totals, write
        self.row, self.column, self.parts = product.row, product.column, product.parts
        self.coordinates: dict[int, Index] = {}
        self.top: Index = 0

    def finish(self, out: Index, rows: tuple[Index, Index], columns: tuple[Index, int], first: Index) -> None:
        """Round rows of totals, from `first` on, into the result, or pass them to `write`. out: the offset of the first
        in the result; rows, columns: the first one and their number, of columns in real numbers.
        """
        b, totals, parts = self.b, self.totals, self.parts
        assert totals is not None
        with (
            b.loop(0, rows[1], unroll=Unroll.NONE) as row,
            b.loop(0, columns[1] // parts, unroll=Unroll.NONE) as column,
        ):
            along = b.mul(column.index, parts)
            at = b.add(first, b.add(b.mul(row.index, totals.width), along))
            value = self._rounded([self._total(totals, b.add(at, part)) for part in range(parts)])
            if self.write is not None:
                place = b.add(b.div(columns[0], parts), column.index)
                self._hand_on(self.write, b.add(rows[0], row.index), place, value)
            else:
                self._store(b.add(out, b.add(b.mul(row.index, self.row.out), along)), value)

    def _total(self, totals: Totals, at: Index) -> Value:
        """A total as a sum of the dtype that factors are multiplied in."""
        b, element = self.b, raw_type(self.b.types, totals.dtype)
        value = b.load(b.pointer(totals.memory, at, element), element, totals.dtype.bytes)
        return value if totals.dtype is self.wide else b.truncate(value, raw_type(b.types, self.wide))

    def _rounded(self, sums: list[Value]) -> Scalar:
        """The parts of a sum as an element of the result."""
        dtype = self.result.dtype
        value = unflatten(sums, dtype)
        return (
            convert_to(self.b, self.wide, dtype, value) if dtype.is_integer else narrow(self.b, self.wide, dtype, value)
        )

    def _store(self, target: Index, value: Scalar) -> None:
        b, dtype = self.b, self.result.dtype
        for part, number in enumerate(flatten(encode(b, dtype, value))):
            place = b.pointer(self.e.pointers[self.result.argument], b.add(target, part), raw_type(b.types, dtype))
            b.store(number, place, dtype.bytes // self.parts)

    def _hand_on(self, write: Callable[[Indices], None], row: Index, column: Index, value: Scalar) -> None:
        b = self.b
        places = self.coordinates | self.row.split(b, b.add(self.top, row)) | self.column.split(b, column)
        index = tuple(places.get(d, 0) for d in range(len(self.result.dims)))
        b.remember((self.result, index, False), value)
        write(index)
