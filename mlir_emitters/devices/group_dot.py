"""Products of devices: a group of items computes a tile of the result.

For a few terms at a time, the items copy what the tile needs of both operands to the group's memory, so that each
element is computed once a tile; then each adds products to a block of sums of its own. What reads the product follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext

from ...codegen.options import GroupShape
from ...hlo.dtypes import DType
from ...hlo.records import dataclass
from ..core.builder import Index, Value
from ..core.elements import flatten
from ..core.graph import Buffer, Node
from ..loops.elemental import Elemental, Indices
from ..loops.form import Answer, fewer, fitting
from ..loops.ranges import positions_of
from ..loops.view import Subject, View
from ..numerics.convert import convert_to
from ..products.dot import accumulator_of, dimension_numbers, multiply_add, narrow, operand_indices
from ..reductions.results import write_together
from .group import Group

MINIMUM_ROWS, MINIMUM_TERMS = 8, 8
"""Below, the tiles of a group are mostly empty, and elements by themselves are no slower."""


@dataclass(frozen=True, eq=False, slots=True)
class Side:
    """One operand of a product. sizes: of its dimensions that are the result's, from `first` on there; each: elements
    along them that an item computes; items: of the group along them; contiguous: whether neighbours in its memory are
    terms of one sum.
    """

    operand: Buffer
    sizes: tuple[int, ...]
    first: int
    items: int
    each: int
    contiguous: bool

    @property
    def size(self) -> int:
        return math.prod(self.sizes)

    @property
    def tile(self) -> int:
        return self.items * self.each

    @property
    def tiles(self) -> int:
        return -(-self.size // self.tile)


@dataclass(frozen=True, eq=False, slots=True)
class Tiling:
    """A product in tiles. left, right: its operands; wide: the one whose dimensions are the fastest of the result."""

    node: Node
    left: Side
    right: Side
    wide: Side
    batch: tuple[int, ...]
    terms: tuple[tuple[int, int, int], ...]  # (dimension of lhs, of rhs, size), the slowest in lhs first
    depth: int  # of the terms that are in memory at once

    @property
    def length(self) -> int:
        return math.prod(size for *_, size in self.terms)

    @property
    def steps(self) -> int:
        return math.prod(self.batch) * self.left.tiles * self.right.tiles


def fits(view: View, subject: Subject) -> Answer:
    assert view.group is not None
    return fitting(tiling_of(subject.node, view.group))


def emit(e: Elemental, subject: Subject, tiling: Tiling, group: Group) -> None:
    TileKernel(e, tiling, group, lambda index: write_together(e, subject.results, index)).emit()


def tiling_of(node: Node, shape: GroupShape) -> Tiling | str:
    """The tiles of a product; why it has none."""
    if accumulator_of(node).is_complex:
        return "sums are of complex numbers"
    lhs, rhs = node.inputs[:2]
    lhs_batch, rhs_batch, lhs_sum, rhs_sum = dimension_numbers(node)
    lefts = [d for d in range(len(lhs.dims)) if d not in (*lhs_batch, *lhs_sum)]
    rights = [d for d in range(len(rhs.dims)) if d not in (*rhs_batch, *rhs_sum)]
    first, second = len(lhs_batch), len(lhs_batch) + len(lefts)
    left_is_wide = node.output.fastest in range(first, second)
    across, down = (shape.across, shape.columns), (shape.down, shape.rows)
    left = side_of(lhs, tuple(lhs.dims[d] for d in lefts), lhs_sum, first, *(across if left_is_wide else down))
    right = side_of(rhs, tuple(rhs.dims[d] for d in rights), rhs_sum, second, *(down if left_is_wide else across))
    pairs = sorted(zip(lhs_sum, rhs_sum, strict=True), key=lambda pair: -lhs.strides[pair[0]])
    terms = tuple((a, c, lhs.dims[a]) for a, c in pairs)
    if (count := math.prod(size for *_, size in terms)) < MINIMUM_TERMS:
        return fewer(count, "terms", MINIMUM_TERMS)
    return tiled(node, (left, right), left_is_wide, tuple(lhs.dims[d] for d in lhs_batch), terms, shape)


def tiled(
    node: Node,
    sides: tuple[Side, Side],
    left_is_wide: bool,
    batch: tuple[int, ...],
    terms: tuple[tuple[int, int, int], ...],
    shape: GroupShape,
) -> Tiling | str:
    """The tiles of these operands; why a group had too little work, or too little memory."""
    other, wide = reversed(sides) if left_is_wide else sides
    if other.size < MINIMUM_ROWS or wide.size < shape.across:
        few = other.size < MINIMUM_ROWS
        return fewer(other.size, "rows", MINIMUM_ROWS) if few else fewer(wide.size, "columns", shape.across)
    length, tiles = math.prod(size for *_, size in terms), sum(side.tile for side in sides)
    depth, items = shape.depth, shape.across * shape.down
    while depth >= 2 * length or depth * tiles * accumulator_of(node).bytes > shape.memory:
        depth //= 2
    if not depth or any(depth * side.tile % items for side in sides):
        return f"{shape.memory} bytes of memory hold {depth} terms, which {items} items do not share evenly"
    return Tiling(node, *sides, wide, batch, terms, depth)


def side_of(operand: Buffer, sizes: tuple[int, ...], summed: Sequence[int], first: int, items: int, most: int) -> Side:
    each = 1
    while each < most and each * items < math.prod(sizes):
        each *= 2
    return Side(operand, sizes, first, items, each, operand.fastest in summed)


class TileKernel:
    """Emits the tile that is the group's step; write(index) for each element, its product known there."""

    def __init__(self, e: Elemental, tiling: Tiling, group: Group, write: Callable[[Indices], None]):
        self.e, self.b, self.tiling, self.group, self.write = e, e.b, tiling, group, write
        self.wide, self.depth = accumulator_of(tiling.node), tiling.depth
        self.zero = self._zero()
        sides = (tiling.left, tiling.right)
        self.shared = {side: group.slots([self.zero.type], self.depth * side.tile) for side in sides}
        self.at_tile()

    def at_tile(self) -> None:
        """Be at the group's tile, by the number that is known since the last barrier."""
        b, left, right = self.b, self.tiling.left, self.tiling.right
        counts = (math.prod(self.tiling.batch), left.tiles, right.tiles)
        batch, one, two = positions_of(b, self.group.step, counts)
        self.batch = positions_of(b, batch, self.tiling.batch)
        self.starts = {left: b.mul(one, left.tile), right: b.mul(two, right.tile)}

    def _zero(self) -> Value:
        b, wide = self.b, self.wide
        if wide.is_float:
            return b.f64(0.0) if wide is DType.F64 else b.f32(0.0)
        return b.constant(0, b.types.i1 if wide is DType.PRED else b.types.integer(wide.bytes * 8))

    def emit(self) -> None:
        b, tiling, depth = self.b, self.tiling, self.depth
        sums = [self.zero] * (tiling.left.each * tiling.right.each)
        with b.loop(0, self.count(), depth, sums) as terms:
            self.group.renew()
            self.at_tile()
            first = self.first_term(terms.index)
            for side in (tiling.left, tiling.right):
                self._copy(side, first)
            self.group.barrier()
            wanted = self.wanted(terms.index)
            with b.loop(0, depth, 1, terms.carried) as inner:
                inner.next = self._products(inner.index, inner.carried, wanted)
            self.group.barrier()
            terms.next = inner.values
        self.group.renew()
        self.at_tile()
        numbers = [(i, j) for i in range(tiling.left.each) for j in range(tiling.right.each)]
        for (i, j), total in zip(numbers, terms.values, strict=True):
            self._finish(i, j, total)

    def count(self) -> int:
        """Terms of the loop around tiles in memory, a multiple of those in memory."""
        return -(-self.tiling.length // self.depth) * self.depth

    def first_term(self, number: Index) -> Index:
        """The first term in memory in the turn that begins at this number of a term."""
        return number

    def wanted(self, number: Index) -> list[Value] | None:
        """For each of the item's elements of the left side, whether the sums have the terms of this turn; None: all."""
        return None

    def _copy(self, side: Side, first: Index) -> None:
        """Copy a side's elements for the terms from `first` on. Neighbouring items copy neighbours in memory."""
        b = self.b
        slow, fast = (side.tile, self.depth) if side.contiguous else (self.depth, side.tile)
        for one, two in self._shares(slow, fast):
            term, free = (two, one) if side.contiguous else (one, two)
            value = self._element(side, b.add(self.starts[side], free), b.add(first, term))
            self.shared[side].write(self._in_memory(side, term, free), [value])

    def _shares(self, slow: int, fast: int) -> Iterator[tuple[Index, Index]]:
        """The positions that the item has of `slow` × `fast` ones. A vector of items sees that they are neighbours
        where the item's two numbers are positions of their own: not in a rest and a quotient.
        """
        b, group = self.b, self.group
        across, down = group.shape.across, group.shape.down
        if group.shape.vectors and not slow % down and not fast % across:
            for i in range(slow // down):
                for j in range(fast // across):
                    yield b.add(group.down, i * down), b.add(group.across, j * across)
        else:
            item = b.add(b.mul(group.down, across), group.across)
            for turn in range(slow * fast // (across * down)):
                number = b.add(item, across * down * turn)
                yield b.div(number, fast), b.rem(number, fast)

    def _in_memory(self, side: Side, term: Index, free: Index) -> Index:
        """The number of an element in the group's memory. A vector of items reads one element of the side that they
        share: terms may be neighbours there, as in the operand, so that the vector that copies stores them at once.
        """
        b = self.b
        if side.contiguous and side is not self.tiling.wide and self.group.shape.vectors:
            return b.add(b.mul(free, self.depth), term)
        return b.add(b.mul(term, side.tile), free)

    def _element(self, side: Side, free: Index, term: Index) -> Value:
        """An element of an operand as a factor; 0 behind the last term. Places behind the last one are read as it."""
        b, tiling = self.b, self.tiling
        inside = None
        if tiling.length % self.depth:
            inside = b.compare_integers("ult", b.materialize(term), b.constant(tiling.length, b.types.i64))
            term = self.at_most(term, tiling.length - 1)
        if side.size % side.tile:
            free = self.at_most(free, side.size - 1)
        value = self.e.value(side.operand, self.operand_index(side, free, term))
        (factor,) = flatten(convert_to(b, side.operand.dtype, self.wide, value))
        return factor if inside is None else b.select(inside, factor, self.zero)

    def operand_index(self, side: Side, free: Index, term: Index) -> Indices:
        """The position in an operand of one of its elements along the result, and of a term."""
        b, tiling = self.b, self.tiling
        indices = operand_indices(tiling.node, self.result({side: free}))
        number = 0 if side is tiling.left else 1
        for pair, position in zip(tiling.terms, positions_of(b, term, [t[2] for t in tiling.terms]), strict=True):
            indices[number][pair[number]] = position
        return tuple(indices[number])

    def at_most(self, place: Index, most: int) -> Index:
        b = self.b
        return b.binary("minui", b.materialize(place), b.constant(most, b.types.i64))

    def _products(self, term: Index, sums: Sequence[Value], wanted: Sequence[Value] | None) -> list[Value]:
        """The sums with the products of one of the terms in memory."""
        b, found = self.b, list[list[Value]]()
        for side in (self.tiling.left, self.tiling.right):
            places = [self._in_memory(side, term, place) for place in self.places(side)]
            found.append([self.shared[side].read(place)[0] for place in places])
        factors = [(x, y) for x in found[0] for y in found[1]]
        made = [self._multiply_add(x, y, total) for (x, y), total in zip(factors, sums, strict=True)]
        if wanted is None:
            return made
        tests = [test for test in wanted for _ in found[1]]
        return [b.select(*chosen) for chosen in zip(tests, made, sums, strict=True)]

    def _multiply_add(self, x: Value, y: Value, total: Value) -> Value:
        if self.wide.is_float:
            return self.b.op("math.fma", x, y, total)
        (made,) = flatten(multiply_add(self.b, self.wide, x, y, total))
        return made

    def places(self, side: Side) -> list[Index]:
        """An item's elements along a side, counted from the tile's first. Those of neighbours lie between them."""
        item = self.group.across if side is self.tiling.wide else self.group.down
        return [self.b.add(item, side.items * n) for n in range(side.each)]

    def _finish(self, i: int, j: int, total: Value) -> None:
        b, tiling = self.b, self.tiling
        at = {s: b.add(self.starts[s], self.places(s)[n]) for s, n in ((tiling.left, i), (tiling.right, j))}
        tests = [
            b.compare_integers("ult", b.materialize(place), b.constant(side.size, b.types.i64))
            for side, place in at.items()
            if side.size % side.tile
        ]
        inside = tests[0] if len(tests) == 1 else b.binary("andi", *tests) if tests else None
        with nullcontext() if inside is None else self.group.only(inside):
            index, output = tuple(self.result(at)), tiling.node.output
            b.remember((output, index, False), narrow(b, self.wide, output.dtype, total))
            self.write(index)

    def result(self, at: dict[Side, Index]) -> Indices:
        """The position in the result of these numbers along the sides; 0 along others."""
        rank = len(self.tiling.node.output.dims)
        found: list[Index] = [*self.batch, *[0] * (rank - len(self.batch))]
        for side, number in at.items():
            found[side.first : side.first + len(side.sizes)] = positions_of(self.b, number, side.sizes)
        return tuple(found)
