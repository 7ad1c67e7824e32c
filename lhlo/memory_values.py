"""Memory as values: what the bytes of a program's allocations hold, as HLO instructions of one computation.

A piece of memory is the array that was written last to exactly these bytes. A read of the same bytes with the same type
gives that array; any other read goes through bytes (u8), so views that change types, overlap or cut are right too.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import Any

import numpy as np

from ..hlo.analysis.effects import has_side_effect
from ..hlo.attributes import SliceDim
from ..hlo.dtypes import DType
from ..hlo.ir import NO_ATTRIBUTES, Computation, Instruction, Literal
from ..hlo.opcodes import Op
from ..hlo.records import dataclass, field
from ..hlo.shapes import Shape, array, tuple_shape
from ..planning.plan import BufferSlice

NARROW = {DType.S1: DType.S8, DType.S2: DType.S8, DType.S4: DType.S8, DType.U1: DType.U8, DType.U2: DType.U8}
NARROW |= {DType.U4: DType.U8, DType.PRED: DType.U8}
"""Types of less than a byte (pred among them) → the type of their bytes, which a conversion gives."""


class Names:
    """Names that are unique in a module."""

    def __init__(self) -> None:
        self.taken: dict[str, int] = {}

    def fresh(self, stem: str) -> str:
        if stem not in self.taken:
            self.taken[stem] = 1
            return stem
        while True:
            name = f"{stem}.{self.taken[stem]}"
            self.taken[stem] += 1
            if name not in self.taken:
                self.taken[name] = 1
                return name


@dataclass(slots=True)
class Code:
    """A computation being made."""

    names: Names
    instructions: list[Instruction] = field(default_factory=list)

    def add(
        self, op: Op, shape: Shape, *operands: Instruction, name: str | None = None, **attributes: Any
    ) -> Instruction:
        return self.put(
            Instruction(
                op, name or op.value, shape, operands, MappingProxyType(attributes) if attributes else NO_ATTRIBUTES
            )
        )

    def put(self, instruction: Instruction) -> Instruction:
        """Append an instruction under a name of its own."""
        named = instruction.replace(name=self.names.fresh(instruction.name))
        self.instructions.append(named)
        return named

    def elements(self, value: Instruction) -> list[Instruction]:
        """The array leaves of a value, in order; tokens are leaves too."""
        if not value.shape.is_tuple:
            return [value]
        parts = [self.add(Op.GET_TUPLE_ELEMENT, shape, value, index=n) for n, shape in enumerate(value.shape.elements)]
        return [leaf for part in parts for leaf in self.elements(part)]

    def tuple(self, values: Iterable[Instruction]) -> Instruction:
        values = tuple(values)
        return self.add(Op.TUPLE, tuple_shape(*(v.shape for v in values)), *values)

    def finish(self, stem: str, root: Instruction) -> Computation:
        """The computation, without instructions that its root does not need and that have no effect."""
        needed = {root}
        kept = []
        for i in reversed(self.instructions):
            if i in needed or i.opcode is Op.PARAMETER or has_side_effect(i):
                needed.update(i.operands)
                kept.append(i)
        return Computation(self.names.fresh(stem), tuple(reversed(kept)), root)


# --- arrays and their bytes ------------------------------------------------------------------------------------------
def plain(dtype: DType, *dims: int) -> Shape:
    """A row-major array shape with an explicit layout."""
    shape = array(dtype, *dims)
    return shape.with_layout(tuple(range(len(dims) - 1, -1, -1))) if dims else shape


def flat(code: Code, value: Instruction) -> Instruction:
    """The elements of an array in the order of its bytes, as one dimension."""
    shape = value.shape
    order = tuple(reversed(shape.minor_to_major))
    if order != tuple(range(shape.rank)):
        dims = [shape.dims[d] for d in order]
        value = code.add(Op.TRANSPOSE, plain(shape.dtype, *dims), value, dimensions=order)
    return reshaped(code, value, (shape.size,))


def unflat(code: Code, value: Instruction, shape: Shape) -> Instruction:
    """The array of a shape whose elements, in the order of its bytes, are those of a flat array."""
    order = tuple(reversed(shape.minor_to_major))
    value = reshaped(code, value, tuple(shape.dims[d] for d in order))
    if order == tuple(range(shape.rank)):
        return code.add(Op.COPY, shape, value) if value.shape.minor_to_major != shape.minor_to_major else value
    back = tuple(order.index(d) for d in range(shape.rank))
    return code.add(Op.TRANSPOSE, shape, value, dimensions=back)


def reshaped(code: Code, value: Instruction, dims: tuple[int, ...]) -> Instruction:
    return value if value.shape.dims == dims else code.add(Op.RESHAPE, plain(value.shape.dtype, *dims), value)


def to_bytes(code: Code, value: Instruction) -> Instruction:
    """The bytes of an array, as u8[n]."""
    value = flat(code, value)
    dtype = value.shape.dtype
    count = value.shape.size
    if dtype.is_complex:
        part = plain(dtype.component, count)
        halves = [reshaped(code, code.add(op, part, value), (count, 1)) for op in (Op.REAL, Op.IMAG)]
        value = code.add(Op.CONCATENATE, plain(dtype.component, count, 2), *halves, dimensions=(1,))
        return to_bytes(code, value)
    if dtype is DType.F4E2M1FN:
        value, dtype = code.add(Op.BITCAST_CONVERT, plain(DType.U4, count), value), DType.U4
    if dtype in NARROW:
        dtype = NARROW[dtype]
        value = code.add(Op.CONVERT, plain(dtype, count), value)
    if dtype is DType.U8:
        return value
    dims = (count,) if dtype.bytes == 1 else (count, dtype.bytes)
    return reshaped(code, code.add(Op.BITCAST_CONVERT, plain(DType.U8, *dims), value), (count * dtype.bytes,))


def from_bytes(code: Code, value: Instruction, shape: Shape) -> Instruction:
    """The array of a shape that lies in these bytes, u8[n]."""
    return unflat(code, _elements(code, value, shape.dtype, shape.size), shape)


def _elements(code: Code, value: Instruction, dtype: DType, count: int) -> Instruction:
    if dtype.is_complex:
        pairs = reshaped(code, _elements(code, value, dtype.component, 2 * count), (count, 2))
        halves = []
        for n in range(2):
            dims = (SliceDim(0, count, 1), SliceDim(n, n + 1, 1))
            half = code.add(Op.SLICE, plain(dtype.component, count, 1), pairs, slice=dims)
            halves.append(reshaped(code, half, (count,)))
        return code.add(Op.COMPLEX, plain(dtype, count), *halves)
    if dtype is DType.F4E2M1FN:
        return code.add(Op.BITCAST_CONVERT, plain(dtype, count), _elements(code, value, DType.U4, count))
    if dtype is DType.PRED:
        zero = zeros(code, plain(DType.U8, count))
        return code.add(Op.COMPARE, plain(dtype, count), value, zero, direction="NE")
    if dtype in NARROW:
        return code.add(Op.CONVERT, plain(dtype, count), _elements(code, value, NARROW[dtype], count))
    if dtype is DType.U8:
        return value
    if dtype.bytes > 1:
        value = reshaped(code, value, (count, dtype.bytes))
    return code.add(Op.BITCAST_CONVERT, plain(dtype, count), value)


def constant(code: Code, value: np.ndarray, shape: Shape) -> Instruction:
    value.flags.writeable = False
    return code.add(Op.CONSTANT, shape, literal=Literal(shape, value))


def zeros(code: Code, shape: Shape) -> Instruction:
    """An array of zeros, whose size costs nothing."""
    zero = constant(code, np.zeros((), shape.dtype.numpy), plain(shape.dtype))
    return code.add(Op.BROADCAST, shape, zero, dimensions=())


def as_shape(code: Code, value: Instruction, shape: Shape) -> Instruction:
    """The array that reads a value's bytes as another shape of equally many bytes."""
    if _same(value.shape, shape):
        return value
    if not shape.size:
        return constant(code, np.zeros(shape.dims, shape.dtype.numpy), shape)
    if value.shape.dtype is shape.dtype:
        return unflat(code, flat(code, value), shape)
    return from_bytes(code, to_bytes(code, value), shape)


def _same(a: Shape, b: Shape) -> bool:
    return (a.dtype, a.dims) == (b.dtype, b.dims) and a.strides == b.strides


# --- memory ----------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes [start, end) of an allocation that hold an array."""

    start: int
    end: int
    value: Instruction


class Memory:
    """What the allocations hold at one point of a computation. Bytes that nothing has written read as zero."""

    def __init__(self, code: Code):
        self.code = code
        self.pieces: dict[int, list[Piece]] = {}

    def read(self, place: BufferSlice, shape: Shape) -> Instruction:
        """The array of a shape that lies at a place."""
        if not shape.size:
            return constant(self.code, np.zeros(shape.dims, shape.dtype.numpy), shape)
        start, end = place.offset, place.offset + shape.bytes
        touched = [p for p in self.pieces.get(place.allocation, ()) if p.start < end and start < p.end]
        if len(touched) == 1 and (touched[0].start, touched[0].end) == (start, end):
            return as_shape(self.code, touched[0].value, shape)
        return from_bytes(self.code, self._bytes(touched, start, end), shape)

    def write(self, place: BufferSlice, value: Instruction) -> None:
        if not value.shape.size:
            return
        start, end = place.offset, place.offset + value.shape.bytes
        kept = []
        for piece in self.pieces.get(place.allocation, ()):
            if piece.end <= start or end <= piece.start:
                kept.append(piece)
                continue
            for low, high in ((piece.start, start), (end, piece.end)):
                if low < high:
                    kept.append(Piece(low, high, self._bytes([piece], low, high)))
        self.pieces[place.allocation] = sorted([*kept, Piece(start, end, value)], key=lambda p: p.start)

    def _bytes(self, touched: list[Piece], start: int, end: int) -> Instruction:
        """Bytes [start, end) of pieces in order; zeros between them."""
        parts, at = [], start
        for piece in touched:
            if at < piece.start:
                parts.append(self._zeros(piece.start - at))
                at = piece.start
            stop = min(piece.end, end)
            whole = to_bytes(self.code, piece.value)
            parts.append(self._cut(whole, at - piece.start, stop - piece.start))
            at = stop
        if at < end:
            parts.append(self._zeros(end - at))
        if len(parts) == 1:
            return parts[0]
        return self.code.add(Op.CONCATENATE, plain(DType.U8, end - start), *parts, dimensions=(0,))

    def _cut(self, value: Instruction, start: int, end: int) -> Instruction:
        if (start, end) == (0, value.shape.size):
            return value
        return self.code.add(Op.SLICE, plain(DType.U8, end - start), value, slice=(SliceDim(start, end, 1),))

    def _zeros(self, count: int) -> Instruction:
        return zeros(self.code, plain(DType.U8, count))


@dataclass(frozen=True, slots=True)
class Access:
    """A step's read or write of a place, as an array of a shape."""

    place: BufferSlice
    shape: Shape
    written: bool


@dataclass(frozen=True, slots=True)
class Cell:
    """Memory that a loop or branch carries, as an array of a shape."""

    place: BufferSlice
    shape: Shape


def cells_of(accesses: Iterable[Access]) -> list[Cell]:
    """Disjoint cells that cover all accesses: typed where all accesses of a cell agree, else bytes."""
    by_allocation: dict[int, list[Access]] = {}
    for access in accesses:
        if access.shape.size:
            by_allocation.setdefault(access.place.allocation, []).append(access)
    cells = []
    for allocation, found in sorted(by_allocation.items()):
        found.sort(key=lambda a: a.place.offset)
        group: list[Access] = []
        end = 0
        for access in found:
            if access.place.offset >= end > 0:
                cells.append(_cell(allocation, group, end))
                group = []
            group.append(access)
            end = max(end, access.place.offset + access.shape.bytes)
        cells.append(_cell(allocation, group, end))
    return cells


def _cell(allocation: int, group: list[Access], end: int) -> Cell:
    start, shape = group[0].place.offset, group[0].shape
    place = BufferSlice(allocation, start, end - start)
    if all(a.place.offset == start and _same(a.shape, shape) for a in group):
        return Cell(place, shape)
    same = [a for a in group if a.place.offset == start and a.shape.bytes == end - start]
    if len(same) == len(group) and len({a.shape.dtype for a in group}) == 1:
        return Cell(place, shape)
    return Cell(place, plain(DType.U8, end - start))
