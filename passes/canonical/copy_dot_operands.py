"""Copy operands of products whose free or contracted dimensions are not one dimension in memory, as XLA's DotDecomposer
does: then they are matrices, and tiles of both stacks take them.

A copy is a transposition: the batch dimensions first, of the other two groups that with the fastest dimension last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
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

LEAST_USES = 4
"""How often each element of a copy is read, at least: a copy reads and writes it."""


def copy_dot_operands(module: Module) -> Module:
    """Copy such operands of dots outside kernels."""
    return expand_ops(module, {Op.DOT: with_copies})


def with_copies(i: Instruction, b: Builder) -> Instruction | None:
    """The dot of the copies; None if there is none to make, or if they do not pay."""
    if len(i.operands) != 2 or any(x.shape.is_dynamic for x in i.operands):
        return None
    sides = [_Side(x, *numbers(i, side), free_dimensions(i, side)) for x, side in zip(i.operands, SIDES, strict=True)]
    products = i.shape.size * sides[0].size(sides[0].contracted)
    if products < LEAST_PRODUCTS or len(sides[0].contracted) == 0:
        return None
    pairs = list(zip(sides[0].contracted, sides[1].contracted, strict=True))
    orders = [pairs, *(_in_memory_order(pairs, n, side.x.shape) for n, side in enumerate(sides))]

    def scattered(order: Sequence[tuple[int, int]]) -> list[int]:
        return [n for n, side in enumerate(sides) if side.is_scattered([p[n] for p in order], products >= LARGE)]

    order = min(orders, key=lambda o: sum(sides[n].x.shape.size for n in scattered(o)))
    copied = scattered(order)
    if not copied or any(sides[1 - n].size(sides[1 - n].free) < LEAST_USES for n in copied):
        return None
    operands, named = [], {}
    for n, (name, side) in enumerate(zip(SIDES, sides, strict=True)):
        made = replace(side, contracted=tuple(p[n] for p in order))
        made = made.copied(b) if n in copied else made
        operands.append(made.x)
        named |= {f"{name}_batch_dims": made.batch or None, f"{name}_contracting_dims": made.contracted}
    return b.add(with_attributes(i, **named).replace(name=b.names.fresh(i.name), operands=tuple(operands)))


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

    def copied(self, b: Builder) -> _Side:
        inner = [self.free, self.contracted] if self.fastest in self.contracted else [self.contracted, self.free]
        places = [*self.batch, *inner[0], *inner[1]]
        batch, contracted, free = ([places.index(d) for d in g] for g in (self.batch, self.contracted, self.free))
        return _Side(b.transpose(self.x, places), tuple(batch), tuple(contracted), tuple(free))


def _in_memory_order(pairs: Sequence[tuple[int, int]], n: int, shape: Shape) -> list[tuple[int, int]]:
    return sorted(pairs, key=lambda pair: -shape.strides[pair[n]])


def are_one(shape: Shape, dims: Sequence[int]) -> bool:
    """Whether dimensions, outermost first, are one dimension in memory; those of size 1 do not count."""
    live = [d for d in dims if shape.dims[d] != 1]
    return all(shape.strides[a] == shape.strides[c] * shape.dims[c] for a, c in pairwise(live))
