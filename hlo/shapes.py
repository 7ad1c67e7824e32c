"""Shapes: an array (dtype, dimensions, layout), a token, an opaque, or a tuple of shapes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from .dtypes import NO_ARRAYS, DType
from .records import dataclass, replace

ShapeIndex = tuple[int, ...]
"""A path into a tuple shape: () is the whole, (1, 0) the first element of the second element."""

UNBOUNDED = -1
"""The size of a dimension printed as `?`."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The order of an array's elements in memory. minor_to_major[0] is the dimension that varies fastest.

    `extras` is the text of all properties after the colon other than tiles and memory space, e.g. 'E(4)' or 'L(2)'.
    """

    minor_to_major: tuple[int, ...]
    tiles: tuple[tuple[int, ...], ...] = ()
    memory_space: int = 0
    extras: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """One HLO shape. `dims` are upper bounds where `dynamic` is True; only tuples have `elements`.

    layout: None if the text has none, which means row-major.
    wrapper: 'b' for a buffer shape `b(f32[4])`, else ''.
    """

    dtype: DType
    dims: tuple[int, ...] = ()
    layout: Layout | None = None
    dynamic: tuple[bool, ...] = ()
    elements: tuple[Shape, ...] = ()
    wrapper: str = ""

    @property
    def is_tuple(self) -> bool:
        return self.dtype is DType.TUPLE

    @property
    def is_array(self) -> bool:
        return self.dtype not in NO_ARRAYS

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def size(self) -> int:
        """Number of elements of an array; 1 for a scalar. A dynamic dimension counts with its bound."""
        return math.prod(self.dims)

    @property
    def bytes(self) -> int:
        """Bytes of an array's buffer; 0 for all other shapes, also tuples."""
        return self.size * self.dtype.bytes if self.is_array else 0

    @property
    def is_addressable(self) -> bool:
        """Whether the size in bytes of an array fits a signed 64-bit number; every reader of shapes refuses others."""
        return self.bytes < 2**63

    @property
    def is_dynamic(self) -> bool:
        if not self.dynamic and not self.elements:
            return False
        return any(self.dynamic) or any(e.is_dynamic for e in self.elements)

    def holds(self, dims: tuple[int, ...]) -> bool:
        """Whether an array of this shape can have these sizes: equal, or smaller where a dimension is dynamic."""
        if dims == self.dims:
            return True
        flags = self.dynamic or (False,) * self.rank
        return len(dims) == self.rank and all(
            n == bound or (f and n <= bound) for n, bound, f in zip(dims, self.dims, flags, strict=True)
        )

    @property
    def minor_to_major(self) -> tuple[int, ...]:
        """The layout's order of dimensions; row-major if there is no layout."""
        return self.layout.minor_to_major if self.layout is not None else tuple(range(self.rank - 1, -1, -1))

    @property
    def strides(self) -> tuple[int, ...]:
        """For each logical dimension, the distance in memory between neighbours along it, in elements."""
        dims, step = self.dims, 1
        strides = [0] * len(dims)
        for d in self.minor_to_major:
            strides[d] = step
            step *= dims[d] or 1
        return tuple(strides)

    @property
    def is_row_major(self) -> bool:
        """Whether memory order equals logical order; dimensions of size 1 do not matter."""
        if self.layout is None or len(self.dims) < 2:
            return True
        order = [d for d in reversed(self.minor_to_major) if self.dims[d] != 1]
        return order == sorted(order)

    def leaves(self) -> Iterator[tuple[ShapeIndex, Shape]]:
        """(index, shape) of each non-tuple leaf, in order; ((), self) if the shape itself is not a tuple."""
        if not self.is_tuple:
            yield (), self
            return
        for i, element in enumerate(self.elements):
            for index, leaf in element.leaves():
                yield (i, *index), leaf

    def at(self, index: ShapeIndex) -> Shape:
        """The subshape at a path."""
        shape = self
        for i in index:
            shape = shape.elements[i]
        return shape

    def without_layout(self) -> Shape:
        """The same shape without layouts, in tuple elements too."""
        return replace(self, layout=None, elements=tuple(e.without_layout() for e in self.elements))

    def with_layout(self, minor_to_major: tuple[int, ...]) -> Shape:
        return replace(self, layout=Layout(minor_to_major))

    def compatible(self, other: Shape) -> bool:
        """Whether the shapes are equal apart from layouts."""
        return self.without_layout() == other.without_layout()

    def __str__(self) -> str:
        return shape_to_text(self)


def array(dtype: DType, *dims: int) -> Shape:
    """An array shape in row-major order with no explicit layout."""
    return Shape(dtype, tuple(dims))


def tuple_shape(*elements: Shape) -> Shape:
    return Shape(DType.TUPLE, elements=tuple(elements))


TOKEN = Shape(DType.TOKEN)
OPAQUE = Shape(DType.OPAQUE)


_PROPERTY = re.compile(r"(SC|[A-Z#*])((?:\([^()]*\))+)")
PROPERTY_ORDER = ("D", "T", "L", "#", "*", "E", "S", "SC", "M")
"""The order in which XLA reads and prints the properties of a layout."""


def layout_to_text(layout: Layout) -> str:
    """`{minor_to_major:properties}`, with the properties in PROPERTY_ORDER, the only order that XLA reads."""
    found = dict(_PROPERTY.findall(layout.extras))
    if layout.tiles:
        found["T"] = "".join(f"({','.join('*' if d < 0 else str(d) for d in tile)})" for tile in layout.tiles)
    if layout.memory_space:
        found["S"] = f"({layout.memory_space})"
    tail = "".join(key + found[key] for key in PROPERTY_ORDER if key in found)
    return "{" + ",".join(map(str, layout.minor_to_major)) + (":" + tail if tail else "") + "}"


def shape_to_text(shape: Shape, *, layouts: bool = True) -> str:
    """HLO text of a shape, with the `/*index=N*/` marks that XLA prints before every fifth element of a tuple."""
    if shape.is_tuple:
        parts = []
        for i, e in enumerate(shape.elements):
            mark = f"/*index={i}*/" if i and i % 5 == 0 else ""
            parts.append(mark + shape_to_text(e, layouts=layouts))
        text = f"({', '.join(parts)})"
    else:
        dims = []
        for i, d in enumerate(shape.dims):
            dynamic = bool(shape.dynamic and shape.dynamic[i])
            dims.append("?" if d == UNBOUNDED else f"<={d}" if dynamic else str(d))
        text = f"{shape.dtype.value}[{','.join(dims)}]"
        if layouts and shape.layout is not None and (shape.rank or shape.layout != Layout(())):
            text += layout_to_text(shape.layout)
    return f"{shape.wrapper}({text})" if shape.wrapper else text
