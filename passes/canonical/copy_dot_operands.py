"""Copy operands of products whose free or contracted dimensions are not one dimension in memory, as XLA's DotDecomposer
does: then they are matrices, and tiles of both stacks take them.

A copy is a transposition: the batch dimensions first, of the other two groups that with the fastest dimension last. Few
columns are copied, too, so that they lie along the depth. Contracted dimensions that are adjacent become one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.records import dataclass, replace
from ...hlo.shapes import Shape
from ..building import Builder
from ..expansion import expand_ops
from ..rewriting import with_attributes
from .dot import SIDES, free_dimensions, numbers

LEAST_PRODUCTS = 1 << 14
"""Products of a dot from which an operand is copied because its contracted dimensions are not one in memory."""

LARGE = 1 << 18
"""The same for free and batch dimensions, for which stacks have loops around their tiles."""

FAR = 64
"""Elements of a batch that lie between two of a matrix, from which it is copied."""

FEW_COLUMNS, DEEP = 8, 32
"""Columns that fill no vector, and the depth from which they are copied, so that a product is a sum along two rows."""

PACKED = frozenset({DType.F16, DType.BF16, DType.F32, DType.F64})
PACKED_ROWS, PACKED_DEPTHS, PACKED_COLUMNS = 16, range(48, 1 << 15), 1 << 15
"""Dtypes, rows, depths and elements of few columns for which stacks copy them in the kernel of the product."""

LEAST_USES = 4
"""How often each element of a copy is read, at least: a copy reads and writes it."""


def copy_dot_operands(module: Module) -> Module:
    """Copy such operands of dots outside kernels."""
    return expand_ops(module, {Op.DOT: with_copies})


def with_copies(i: Instruction, b: Builder) -> Instruction | None:
    """The dot of the copies; None if there is none to make, or if they do not pay."""
    if len(i.operands) != 2 or any(x.shape.is_dynamic for x in i.operands):
        return None
    contracted = i.attributes.get("lhs_contracting_dims", ())
    products = i.shape.size * math.prod(i.operands[0].shape.dims[d] for d in contracted)
    if products < LEAST_PRODUCTS or not contracted:
        return None
    sides = [_Side(x, *numbers(i, side), free_dimensions(i, side)) for x, side in zip(i.operands, SIDES, strict=True)]
    pairs = list(zip(sides[0].contracted, sides[1].contracted, strict=True))
    orders = [pairs, *(_in_memory_order(pairs, n, side.x.shape) for n, side in enumerate(sides))]

    def scattered(order: Sequence[tuple[int, int]]) -> list[int]:
        return [n for n, side in enumerate(sides) if side.is_scattered([p[n] for p in order], products >= LARGE)]

    order = min(orders, key=lambda o: sum(sides[n].x.shape.size for n in scattered(o)))
    copied = scattered(order)
    if any(sides[1 - n].size(sides[1 - n].free) < LEAST_USES for n in copied):
        return None
    narrow = not copied and sides[0].is_row_by(sides[1])
    if narrow:
        copied = [1]
    made = [replace(side, contracted=tuple(p[n] for p in order)) for n, side in enumerate(sides)]
    made = [side.copied(b, along=narrow) if n in copied else side for n, side in enumerate(made)]
    if all(side.is_joined for side in made):
        made = [side.joined(b) for side in made]
    elif not copied:
        return None
    named: dict[str, object] = {}
    for name, side in zip(SIDES, made, strict=True):
        named |= {f"{name}_batch_dims": tuple(side.batch) or None, f"{name}_contracting_dims": tuple(side.contracted)}
    operands = tuple(side.x for side in made)
    return b.add(with_attributes(i, **named).replace(name=b.names.fresh(i.name), operands=operands))


@dataclass(frozen=True, slots=True)
class _Side:
    """An operand and its dimensions by role."""

    x: Instruction
    batch: Sequence[int]
    contracted: Sequence[int]
    free: Sequence[int]

    def size(self, dims: Sequence[int]) -> int:
        return math.prod(self.x.shape.dims[d] for d in dims)

    @property
    def fastest(self) -> int:
        """The dimension with the smallest stride, but for those of size 1."""
        shape = self.x.shape
        return min((d for d in range(shape.rank) if shape.dims[d] != 1), key=lambda d: shape.strides[d], default=0)

    def is_scattered(self, contracted: Sequence[int], large: bool) -> bool:
        """Whether the contracted dimensions in this order are not one; of large products, whether the free ones are
        not, or whether elements of a matrix lie far from each other.
        """
        far = self.fastest in self.batch and self.x.shape.dims[self.fastest] >= FAR
        return not are_one(self.x.shape, contracted) or (large and (far or not are_one(self.x.shape, self.free)))

    def is_row_by(self, columns: _Side) -> bool:
        """Whether rows of this operand lie along its depth, and the few columns of the other one do not, nor are copied
        by stacks.
        """
        few = 1 < columns.size(columns.free) < FEW_COLUMNS <= self.size(self.free)
        depth = self.size(self.contracted)
        if {self.x.shape.dtype, columns.x.shape.dtype} <= PACKED and depth in PACKED_DEPTHS:
            rows = self.size(self.free) if are_one(self.x.shape, self.free) else 0
            if rows >= PACKED_ROWS and columns.size(columns.free) * depth <= PACKED_COLUMNS:
                return False
        return few and depth >= DEEP and self.fastest in self.contracted and columns.fastest not in columns.contracted

    def copied(self, b: Builder, along: bool) -> _Side:
        """A transposed copy. along: with the depth last; else what has the fastest dimension is last."""
        along = along or self.fastest in self.contracted
        places = [*self.batch, *(self.free if along else self.contracted), *(self.contracted if along else self.free)]
        batch, contracted, free = ([places.index(d) for d in g] for g in (self.batch, self.contracted, self.free))
        return _Side(b.transpose(self.x, places), batch, contracted, free)

    @property
    def is_joined(self) -> bool:
        """Whether several contracted dimensions can be one by a reshape."""
        first, count = self.contracted[0], len(self.contracted)
        return count > 1 and self.x.shape.is_row_major and list(self.contracted) == list(range(first, first + count))

    def joined(self, b: Builder) -> _Side:
        first, gone = self.contracted[0], len(self.contracted) - 1
        dims = self.x.shape.dims
        x = b.reshape(self.x, (*dims[:first], self.size(self.contracted), *dims[first + gone + 1 :]))
        batch, free = ([d - gone * (d > first) for d in g] for g in (self.batch, self.free))
        return _Side(x, batch, [first], free)


def _in_memory_order(pairs: Sequence[tuple[int, int]], n: int, shape: Shape) -> list[tuple[int, int]]:
    return sorted(pairs, key=lambda pair: -shape.strides[pair[n]])


def are_one(shape: Shape, dims: Sequence[int]) -> bool:
    """Whether dimensions, outermost first, are one dimension in memory; those of size 1 do not count."""
    live = [d for d in dims if shape.dims[d] != 1]
    return all(shape.strides[a] == shape.strides[c] * shape.dims[c] for a, c in pairwise(live))
