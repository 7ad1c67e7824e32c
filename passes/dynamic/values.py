"""Values with dynamic dimensions: a static array, and an s32 scalar for each dynamic size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass, replace
from ...hlo.shapes import Shape, ShapeIndex
from ..building import Builder

Key = tuple[ShapeIndex, int]
"""(leaf, dimension of that leaf) of a value."""


@dataclass(frozen=True, eq=False)
class Sized:
    """A value with static shapes, and the present sizes (s32 scalars) of the dimensions that are not full."""

    value: Instruction
    sizes: Mapping[Key, Instruction]

    def of(self, dimension: int) -> Instruction | None:
        """The size of a dimension of an array; None if it is full."""
        return self.sizes.get(((), dimension))

    @property
    def dims(self) -> tuple[int, ...]:
        return self.value.shape.dims


DynamicRule = Callable[[Instruction, Builder, Sequence[Sized]], Sized | None]
"""(instruction, builder, operands with sizes) → the result with its sizes; None if the op is not supported."""


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
    """The present size of a dimension as an s32 scalar, constant if it is full."""
    size = x.of(dimension)
    return b.constant(x.dims[dimension], DType.S32) if size is None else size


def least(b: Builder, sizes: Sequence[Instruction | None]) -> Instruction | None:
    """The minimum of the sizes; None stands for a full dimension."""
    found = list(dict.fromkeys(s for s in sizes if s is not None))
    whole = found[0] if found else None
    for size in found[1:]:
        assert whole is not None
        whole = b.binary(Op.MINIMUM, whole, size)
    return whole


def masked(b: Builder, x: Sized, dimensions: Sequence[int], fill: Instruction) -> Instruction:
    """The array with the scalar `fill` beyond the sizes of some dimensions."""
    value = x.value
    for d in dimensions:
        size = x.of(d)
        if size is not None:
            inside = b.compare(b.iota(DType.S32, x.dims, d), "LT", size)
            value = b.select(inside, b.plain(value), b.broadcast(fill, x.dims))
    return value


def inside(b: Builder, x: Sized) -> Instruction | None:
    """A pred array of the elements that are within the sizes; None if all are."""
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
