"""Products of devices: a group of items computes a tile of the result.

For a few terms at a time, the items copy what the tile needs of both operands to the group's memory, so that each
element is computed once a tile; then each adds products to a block of sums of its own. What reads the product follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product

from llvmlite import ir

from ...codegen.options import GroupShape
from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import IndexValue
from ..core.registers import Register, register_type
from ..loops.access import fastest_dimension
from ..loops.elemental import Elemental, Index
from ..loops.form import Fit, Task, at_least, form, needs
from ..numerics.convert import convert
from ..products.dot import accumulator_dtype, contracting_order, multiply_add, rounded, zero
from ..products.dot_dims import DotDims
from ..reductions.results import finishes, products_of_all
from .group import Group, SharedArray

MINIMUM_ROWS = 8
"""With fewer, the tiles of a group are mostly empty, and elements by themselves are no slower."""

MINIMUM_TERMS = 8
"""As above, for the terms of a sum."""


@dataclass(frozen=True, slots=True)
class Side:
    """One operand of a product. sizes: of its dimensions that are the result's, from `first` on there; tile: how many
    elements along them a group needs; each: of an item; along: whether neighbours in its memory are terms of one sum.
    """

    operand: Instruction
    number: int
    sizes: tuple[int, ...]
    first: int
    each: int
    tile: int
    along: bool

    @property
    def size(self) -> int:
        return math.prod(self.sizes)

    @property
    def tiles(self) -> int:
        return -(-self.size // self.tile)


@dataclass(frozen=True, slots=True)
class Tiling:
    """A product in tiles. columns: the side whose dimensions are the fastest of the result. depth: terms in memory."""

    instruction: Instruction
    rows: Side
    columns: Side
    batch: tuple[int, ...]
    terms: tuple[int, ...]
    depth: int

    def grouped(self, shape: GroupShape) -> tuple[int, int, int]:
        steps = math.prod(self.batch) * self.rows.tiles * self.columns.tiles
        return steps, shape.across, shape.down


def tiling_of(instruction: Instruction, shape: GroupShape) -> Tiling:
    """The tiles of a product. Raises Unfit if there is too little of it."""
    dims, result = DotDims.of(instruction), instruction.shape
    lhs, rhs = instruction.operands[:2]
    terms = tuple(lhs.shape.dims[dims.lhs_contracting[k]] for k in contracting_order(lhs.shape, dims))
    batches, lefts = len(dims.lhs_batch), len(dims.lhs_free)
    fastest = fastest_dimension(result) or 0
    swapped = batches <= fastest < batches + lefts
    counts = [(shape.columns, shape.across), (shape.rows, shape.down)]
    if not swapped:
        counts.reverse()
    sizes = [tuple(o.shape.dims[d] for d in free) for o, free in ((lhs, dims.lhs_free), (rhs, dims.rhs_free))]
    left = side_of(lhs, 0, sizes[0], dims.lhs_contracting, batches, *counts[0])
    right = side_of(rhs, 1, sizes[1], dims.rhs_contracting, batches + lefts, *counts[1])
    rows, columns = (right, left) if swapped else (left, right)
    length = math.prod(terms)
    at_least(length, MINIMUM_TERMS, "terms of a sum")
    depth = depth_of(rows, columns, length, accumulator_dtype(instruction), shape)
    batch = tuple(lhs.shape.dims[d] for d in dims.lhs_batch)
    return Tiling(instruction, rows, columns, batch, terms, depth)


def side_of(
    operand: Instruction, number: int, sizes: tuple[int, ...], summed: Sequence[int], first: int, most: int, items: int
) -> Side:
    size = math.prod(sizes)
    each = next((n for n in (1, 2, 4, 8) if n >= most or n * items >= size), most)
    fastest = fastest_dimension(operand.shape)
    return Side(operand, number, sizes, first, each, each * items, fastest in summed)


def depth_of(rows: Side, columns: Side, length: int, dtype: DType, shape: GroupShape) -> int:
    """How many terms are in memory at once: no more than there are, and than there is room for. Raises Unfit if these
    are too few for each item to copy some, or tiles are mostly empty.
    """
    needs(not dtype.is_complex, "complex numbers")
    at_least(rows.size, MINIMUM_ROWS, "rows")
    at_least(columns.size, shape.across, "columns")
    depth, items = shape.depth, shape.across * shape.down
    while depth // 2 >= length or depth * (rows.tile + columns.tile) * dtype.bytes > shape.memory:
        depth //= 2
    even = all(depth * side.tile % items == 0 and depth for side in (rows, columns))
    needs(even, f"{depth} terms of a tile's sides are not for all of {items} items to copy")
    return depth


class Tile:
    """The tile of one group, which is its step."""

    def __init__(self, e: Elemental, tiling: Tiling, group: Group):
        self.e, self.code, self.tiling, self.group = e, e.code, tiling, group
        self.dtype, self.depth = accumulator_dtype(tiling.instruction), tiling.depth
        like = zero(self.dtype)
        sides = (tiling.rows, tiling.columns)
        self.shared = {side: SharedArray(group, like, self.depth * side.tile) for side in sides}
        self.at_tile()

    def at_tile(self) -> None:
        """Be at the group's tile, by the number that is known since the last barrier."""
        code, tiling = self.code, self.tiling
        counts = (math.prod(tiling.batch), tiling.rows.tiles, tiling.columns.tiles)
        batch, row, column = code.split(self.group.step, counts)
        self.batch = code.split(batch, tiling.batch)
        self.starts = {
            tiling.rows: code.multiply(row, tiling.rows.tile),
            tiling.columns: code.multiply(column, tiling.columns.tile),
        }

    def emit(self, finish: Callable[[Index], None]) -> None:
        """Emit the sums, then call `finish(index)` for each element of the result, its sum bound there."""
        columns = self.tiling.columns
        sums = self.add_up([zero(self.dtype)] * (self.tiling.rows.each * columns.each))
        self.group.renew()
        self.at_tile()
        for number, total in enumerate(sums):
            self._finish(*divmod(number, columns.each), total, finish)

    def add_up(self, sums: list[Register]) -> list[Register]:
        """The sums with the products of all terms."""
        code, length = self.code, math.prod(self.tiling.terms)
        terms = code.loop(-(-length // self.depth) * self.depth, step=self.depth, carried=sums)
        self.group.renew()
        self.at_tile()
        for side in (self.tiling.rows, self.tiling.columns):
            self._copy(side, terms.index)
        self.group.barrier()
        chosen = self.chosen()
        inner = code.loop(self.depth, carried=terms.carried)
        sums = inner.close(self._products(inner.index, inner.carried, chosen))
        self.group.barrier()
        return terms.close(sums)

    def chosen(self) -> list[ir.Value] | None:
        """For each of the item's sums, whether it has the terms in memory; None if all have."""
        return None

    def _copy(self, side: Side, first: IndexValue) -> None:
        """Copy a side's elements for the terms from `first` on. Neighbouring items copy neighbours in memory."""
        code, length = self.code, math.prod(self.tiling.terms)
        for term, free in self._copied(side):
            value = self._element(side, code.add(self.starts[side], free), code.add(first, term), length)
            self.shared[side].write(self._number(side, term, free), value)

    def _copied(self, side: Side) -> Iterator[tuple[IndexValue, IndexValue]]:
        """(A term in memory, a place along the side) of each element that the item copies."""
        code, shape, item = self.code, self.group.shape, self.group
        sizes = (side.tile, self.depth) if side.along else (self.depth, side.tile)
        if shape.vectors and sizes[0] % shape.down == sizes[1] % shape.across == 0:
            for slow, fast in product(range(0, sizes[0], shape.down), range(0, sizes[1], shape.across)):
                one, other = code.add(item.down, slow), code.add(item.across, fast)
                yield (other, one) if side.along else (one, other)
            return
        number = code.add(code.multiply(item.down, shape.across), item.across)
        for before in range(0, math.prod(sizes), shape.across * shape.down):
            one, other = code.split(code.add(number, before), sizes)
            yield (other, one) if side.along else (one, other)

    def _number(self, side: Side, term: IndexValue, free: IndexValue) -> IndexValue:
        """Where an element lies in the group's memory. Items across share those of rows, so a vector of items reads
        one of them whatever its neighbours are; they lie as the vector that copies them finds them.
        """
        code = self.code
        if side.along and side is self.tiling.rows and self.group.shape.vectors:
            return code.add(code.multiply(free, self.depth), term)
        return code.add(code.multiply(term, side.tile), free)

    def _element(self, side: Side, free: IndexValue, term: IndexValue, length: int) -> Register:
        """An element of an operand as a factor; 0 behind the last term. Places behind the last one are read as it."""
        code, operand = self.code, side.operand
        inside: ir.Value | None = None
        if length % self.depth:
            inside = code.b.icmp_unsigned("<", code.value(term), ir.IntType(64)(length))
            term = code.minimum(term, length - 1)
        if side.size % side.tile:
            free = code.minimum(free, side.size - 1)
        value = self.e.value(operand, Index.at(code, operand.shape, self.operand_at(side, free, term)))
        value = convert(code, operand.shape.dtype, self.dtype, value)
        return value if inside is None else code.b.select(inside, value, zero(self.dtype))

    def operand_at(self, side: Side, free: IndexValue, term: IndexValue) -> list[IndexValue]:
        """The position in an operand of one of its elements along the result, and of a term."""
        dims = DotDims.of(self.tiling.instruction)
        inner: list[IndexValue] = [0] * len(self.tiling.terms)
        order = contracting_order(self.tiling.instruction.operands[0].shape, dims)
        for k, position in zip(order, self.code.split(term, self.tiling.terms), strict=True):
            inner[k] = position
        return dims.operand_positions(self.result({side: free}), inner)[side.number]

    def _products(
        self, term: IndexValue, sums: Sequence[Register], chosen: Sequence[ir.Value] | None
    ) -> list[Register]:
        """The sums with the products of one of the terms in memory."""
        rows, columns = self.tiling.rows, self.tiling.columns
        left, right = (
            [self.shared[side].read(self._number(side, term, place)) for place in self.places(side)]
            for side in (rows, columns)
        )
        factors = [(a, b) for a in left for b in right]
        found = [self._multiply_add(total, a, b) for total, (a, b) in zip(sums, factors, strict=True)]
        if chosen is None:
            return found
        return [self.code.b.select(*way) for way in zip(chosen, found, sums, strict=True)]

    def _multiply_add(self, total: Register, a: Register, b: Register) -> Register:
        if self.dtype in (DType.F32, DType.F64):
            return self.code.intrinsic(f"llvm.fma.f{self.dtype.bits}", register_type(self.dtype), [a, b, total])
        return multiply_add(self.code, self.dtype, total, a, b, in_order=True)

    def places(self, side: Side) -> list[IndexValue]:
        """An item's elements along a side, counted from the tile's first. Those of neighbours lie between them."""
        shape, wide = self.group.shape, side is self.tiling.columns
        first, items = (self.group.across, shape.across) if wide else (self.group.down, shape.down)
        return [self.code.add(first, items * n) for n in range(side.each)]

    def _finish(self, row: int, column: int, total: Register, finish: Callable[[Index], None]) -> None:
        code, tiling = self.code, self.tiling
        at = {
            side: code.add(self.starts[side], self.places(side)[number])
            for side, number in ((tiling.rows, row), (tiling.columns, column))
        }
        cut = [(side, place) for side, place in at.items() if side.size % side.tile]
        tests = [code.b.icmp_unsigned("<", code.value(place), ir.IntType(64)(side.size)) for side, place in cut]
        instruction = tiling.instruction
        with code.when(code.all_of(tests)):
            index = Index.at(code, instruction.shape, self.result(at))
            self.e.bind(instruction, index, rounded(code, self.dtype, instruction.shape.dtype, total))
            finish(index)

    def result(self, at: dict[Side, IndexValue]) -> list[IndexValue]:
        """The position in the result of these numbers along the sides; 0 along others."""
        found: list[IndexValue] = [*self.batch, *[0] * (self.tiling.instruction.shape.rank - len(self.batch))]
        for side, number in at.items():
            found[side.first : side.first + len(side.sizes)] = self.code.split(number, side.sizes)
        return found


@form(
    "groups/dot",
    lambda e, results, tiling, group: Tile(e, tiling, group).emit(finishes(e, results)),
    MINIMUM_ROWS="rows",
    MINIMUM_TERMS="terms of a sum",
)
def tiled(task: Task) -> Fit:
    """Products: a group computes a tile of the result, with the terms in its memory."""
    assert task.group is not None
    return Fit(tiling_of(products_of_all(task, Op.DOT)[0], task.group))
