"""Values of which some dimensions have a size at run time: a static array, and s32 scalars for the sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape, ShapeIndex
from ..building import Builder

Key = tuple[ShapeIndex, int]
"""A dimension of a leaf of a value."""


@dataclass(frozen=True, eq=False)
class Sized:
    """A value whose shapes are static, and the present sizes (s32 scalars) of those dimensions that are not full."""

    value: Instruction
    sizes: Mapping[Key, Instruction]

    def of(self, dimension: int) -> Instruction | None:
        """The size of an array's dimension; None where it is full."""
        return self.sizes.get(((), dimension))

    @property
    def dims(self) -> tuple[int, ...]:
        return self.value.shape.dims


def static(shape: Shape) -> Shape:
    """The shape with every dimension at its bound."""
    return replace(shape, dynamic=(), elements=tuple(map(static, shape.elements)))


def sizes_of(by_dimension: Mapping[int, Instruction | None]) -> dict[Key, Instruction]:
    return {((), d): size for d, size in by_dimension.items() if size is not None}


def plain(i: Instruction, b: Builder, xs: Sequence[Sized], sizes: Mapping[int, Instruction | None]) -> Sized:
    """The instruction itself on static arrays."""
    made = b.add(i.replace(operands=tuple(x.value for x in xs), shape=static(i.shape)))
    return Sized(made, sizes_of(sizes))


def present(b: Builder, x: Sized, dimension: int) -> Instruction:
    """The size of a dimension as a scalar, full or not."""
    size = x.of(dimension)
    return b.constant(x.dims[dimension], DType.S32) if size is None else size


def least(b: Builder, sizes: Sequence[Instruction | None]) -> Instruction | None:
    """The smallest of the sizes that are known."""
    found = list(dict.fromkeys(s for s in sizes if s is not None))
    whole = found[0] if found else None
    for size in found[1:]:
        assert whole is not None
        whole = b.binary(Op.MINIMUM, whole, size)
    return whole


def masked(b: Builder, x: Sized, dimensions: Sequence[int], fill: Instruction) -> Instruction:
    """The array with `fill`, a scalar, beyond the sizes of some dimensions."""
    value = x.value
    for d in dimensions:
        size = x.of(d)
        if size is not None:
            inside = b.compare(b.iota(DType.S32, x.dims, d), "LT", size)
            value = b.select(inside, b.plain(value), b.broadcast(fill, x.dims))
    return value


def inside(b: Builder, x: Sized) -> Instruction | None:
    """Which elements of the array are there, as an array of pred; None where all are."""
    whole: Instruction | None = None
    for d in range(len(x.dims)):
        size = x.of(d)
        if size is not None:
            test = b.compare(b.iota(DType.S32, x.dims, d), "LT", size)
            whole = test if whole is None else b.binary(Op.AND, whole, test)
    return whole


def leaves_of(x: Sized, sizes: Mapping[int, Instruction | None]) -> Sized:
    """The value with the same sizes for each of its leaves."""
    known = {(path, d): s for path, _ in x.value.shape.leaves() for d, s in sizes.items() if s is not None}
    return Sized(x.value, known)


def zero(b: Builder, dtype: DType) -> Instruction:
    return b.constant(0, dtype)
