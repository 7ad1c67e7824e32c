"""Memory of kernels as flat memrefs: slices of allocations, stack arrays, constant arrays; their loads and stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from mlir import ir

from ...hlo.records import dataclass
from .arithmetic import Value
from .index_arithmetic import Index, IndexArithmetic


@dataclass(frozen=True, slots=True)
class Place:
    """An element of a memref: its number there, counted in the memref's elements."""

    memref: Value
    offset: Index


Pointer: TypeAlias = Value | Place
"""The address of an element; a memref is that of its first one."""

DYNAMIC = -(2**63)
"""Marks a run-time size or offset in a memref's operations."""


class Memory(IndexArithmetic):
    """Creates memrefs and their accesses."""

    def argument_types(self, sizes: Sequence[int], elements: Sequence[ir.Type | None]) -> list[ir.Type]:
        """The types of a kernel's arguments. sizes: in bytes; elements: what they hold, None for bytes."""
        i8 = self.types.i8
        return [self._flat(size, i8 if e is None else e) for size, e in zip(sizes, elements, strict=True)]

    def _flat(self, size: int, element: ir.Type) -> ir.Type:
        return ir.MemRefType.get([size // bytes_of(element)], element)

    def pointer(self, base: Pointer, offset: Index, element: ir.Type) -> Pointer:
        """The address of the element at index `offset` from base. A memref of bytes is seen as one of `element`."""
        place = base if isinstance(base, Place) else Place(base, 0)
        element = self._stored(element)
        held = ir.MemRefType(place.memref.type).element_type
        if held != element:
            place = Place(self._view(place, element), 0)
        return Place(place.memref, self.add(place.offset, offset))

    def _view(self, place: Place, element: ir.Type) -> Value:
        """The bytes of a memref from a place on as elements of another type."""
        type = ir.MemRefType(place.memref.type)
        if type.element_type != self.types.i8:
            raise TypeError(f"a memref of {type.element_type} has no elements of {element}")
        if not isinstance(place.offset, int):
            raise TypeError("a view begins at a known byte")
        start = place.offset

        def make() -> Value:
            made = self._flat(type.shape[0] - start, element)
            return self.at_entry("memref.view", made, [place.memref, self.at(start)])

        return self.constant_once(("view", place.memref, start, element), make)

    def row(self, base: Pointer, offset: Index, element: ir.Type, count: int) -> Value:
        """`count` elements from `offset` on as a value that loops may carry."""
        place = self.pointer(base, offset, element)
        assert isinstance(place, Place)
        return self._cast(place, [count], [1], DYNAMIC)

    def part(self, place: Place, sizes: Sequence[Index], strides: Sequence[int]) -> Value:
        """Elements from a place on as a memref of these sizes and strides, in elements."""
        assert min(strides, default=0) >= 0, "MLIR's offsets have the flag nuw: a negative stride is undefined"
        held = ir.MemRefType(place.memref.type)
        offset = place.offset if isinstance(place.offset, int) else DYNAMIC
        if offset == 0 and list(sizes) == held.shape and list(strides) == [1]:
            return place.memref
        return self._cast(place, sizes, strides, offset)

    def _cast(self, place: Place, sizes: Sequence[Index], strides: Sequence[int], offset: int) -> Value:
        known = [n if isinstance(n, int) else DYNAMIC for n in sizes]
        layout = ir.StridedLayoutAttr.get(offset, list(strides))
        given = [place.offset] if offset == DYNAMIC else []
        unknown = [n for n in sizes if not isinstance(n, int)]
        attributes = {
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(given), len(unknown), 0]),
            "static_offsets": ir.DenseI64ArrayAttr.get([offset]),
            "static_sizes": ir.DenseI64ArrayAttr.get(known),
            "static_strides": ir.DenseI64ArrayAttr.get(list(strides)),
        }
        operands = [place.memref, *map(self.at, (*given, *unknown))]
        type = ir.MemRefType.get(known, ir.MemRefType(place.memref.type).element_type, layout)
        return self.op("memref.reinterpret_cast", *operands, type=type, attributes=attributes)

    def at(self, offset: Index) -> Value:
        """An offset as a value of type index."""
        if isinstance(offset, int):
            return self.constant(offset, self.types.index)
        value = self.materialize(offset)
        return self.once(("index", value), lambda: self.op("arith.index_cast", value, type=self.types.index))

    def load(self, pointer: Pointer, type: ir.Type, alignment: int) -> Value:
        """Load a scalar or a vector of neighbours."""
        if type == self.types.i1:
            return self.trunci(self.load(pointer, self.types.i8, alignment), type)
        place = pointer if isinstance(pointer, Place) else Place(pointer, 0)
        name = "vector.load" if isinstance(type, ir.VectorType) else "memref.load"
        attributes = {"alignment": self._alignment(alignment)}
        return self.op(name, place.memref, self.at(place.offset), type=type, attributes=attributes)

    def store(self, value: Value, pointer: Pointer, alignment: int, streams: bool = False) -> None:
        """Store a value. streams: use a non-temporal store, for whole cache lines that are not read again soon."""
        if value.type == self.types.i1:
            value = self.extui(value, self.types.i8)
        place = pointer if isinstance(pointer, Place) else Place(pointer, 0)
        attributes: dict[str, ir.Attribute] = {"alignment": self._alignment(alignment)}
        if streams:
            attributes["nontemporal"] = ir.BoolAttr.get(True)
        name = "vector.store" if isinstance(value.type, ir.VectorType) else "memref.store"
        self.operation(name, [], [value, place.memref, self.at(place.offset)], attributes)

    def prefetch(self, pointer: Pointer, writes: bool = False, second: bool = False) -> None:
        """Ask for the cache line of an element, which may be behind the memref's end. second: into the second cache."""
        place = pointer if isinstance(pointer, Place) else Place(pointer, 0)
        attributes = {
            "isWrite": ir.BoolAttr.get(writes),
            "localityHint": ir.IntegerAttr.get(self.types.i32, 2 if second else 3),  # 3: the nearest
            "isDataCache": ir.BoolAttr.get(True),
        }
        self.operation("memref.prefetch", [], [place.memref, self.at(place.offset)], attributes)

    def load_masked(self, pointer: Pointer, mask: Value, rest: Value, alignment: int) -> Value:
        """The lanes of a vector in memory that a mask names; of `rest` the others."""
        assert isinstance(pointer, Place)
        attributes = {"alignment": self._alignment(alignment)}
        operands = (pointer.memref, self.at(pointer.offset), mask, rest)
        return self.op("vector.maskedload", *operands, type=rest.type, attributes=attributes)

    def store_masked(self, value: Value, pointer: Pointer, mask: Value, alignment: int) -> None:
        """Store the lanes of a vector that a mask names."""
        assert isinstance(pointer, Place)
        attributes = {"alignment": self._alignment(alignment)}
        operands = [pointer.memref, self.at(pointer.offset), mask, value]
        self.operation("vector.maskedstore", [], operands, attributes)

    def first_lanes(self, lanes: int, count: int) -> Value:
        """The mask of the first `count` of `lanes` lanes."""
        type = ir.VectorType.get([lanes], self.types.i1)
        bits = ", ".join("true" if lane < count else "false" for lane in range(lanes))
        return self.vector_constant(ir.Attribute.parse(f"dense<[{bits}]> : {type}"), type, ("mask", lanes, count))

    def _alignment(self, bytes: int) -> ir.Attribute:
        return ir.IntegerAttr.get(self.types.i64, bytes)

    def alloca(self, type: ir.Type, count: int, alignment: int) -> Value:
        """Stack memory for `count` elements, allocated in the function's entry block."""
        attributes = {
            "alignment": self._alignment(alignment),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0]),
        }
        return self.at_entry("memref.alloca", ir.MemRefType.get([count], self._stored(type)), [], attributes)

    def _stored(self, type: ir.Type) -> ir.Type:
        """The type that holds a scalar in memory: MLIR's lowering ends the process at a store of i1."""
        return self.types.i8 if type == self.types.i1 else type

    def table(self, name: str, values: np.ndarray) -> Value:
        """A private constant array, created once per module and name."""
        array = np.ascontiguousarray(values).reshape(-1)
        element = self._element_of(array.dtype)
        type = ir.MemRefType.get([array.size], element)
        if name not in self.globals:
            ir.Operation.create(
                "memref.global",
                loc=self.location,
                ip=ir.InsertionPoint(self.module.body),
                attributes={
                    "sym_name": ir.StringAttr.get(name),
                    "sym_visibility": ir.StringAttr.get("private"),
                    "type": ir.TypeAttr.get(type),
                    "initial_value": ir.DenseElementsAttr.get(array, type=element, shape=[array.size]),
                    "constant": self.types.unit,
                    "alignment": self._alignment(64),
                },
            )
            self.globals.add(name)
        attributes = {"name": ir.FlatSymbolRefAttr.get(name)}
        return self.constant_once(("address", name), lambda: self.at_entry("memref.get_global", type, [], attributes))

    def array(self, values: np.ndarray) -> Value:
        """A private constant array. Arrays with equal contents share one."""
        content = (values.dtype.str, values.tobytes())
        name = self._arrays.setdefault(content, f"constant.{len(self._arrays)}")
        return self.table(name, values)

    def _element_of(self, dtype: np.dtype) -> ir.Type:
        if dtype.kind == "f":
            return self.types.f64 if dtype.itemsize == 8 else self.types.f32
        return self.types.integer(dtype.itemsize * 8)


def bytes_of(element: ir.Type) -> int:
    """The bytes of a scalar type in memory."""
    return -(-element.width // 8)
