"""The pointer form of kernels: `!llvm.ptr` arguments, address arithmetic and loads of the LLVM dialect."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mlir import ir

from .arithmetic import Value
from .builder import Builder
from .index_arithmetic import Index


class PointerBuilder(Builder):
    """A Builder whose addresses are pointers."""

    structured = False

    def argument_types(self, sizes: Sequence[int], elements: Sequence[ir.Type | None]) -> list[ir.Type]:
        return [self.types.ptr] * len(sizes)

    def row(self, base: Value, offset: Index, element: ir.Type, count: int) -> Value:
        return self.pointer(base, offset, element)

    def table(self, name: str, values: np.ndarray) -> Value:
        """The address of a private constant array, created once per module and name."""
        if name not in self.globals:
            array = np.ascontiguousarray(values)
            element = self._element_of(array.dtype)
            kind = ir.Type.parse(f"!llvm.array<{array.size} x {element}>")
            dense = ir.DenseElementsAttr.get(array.reshape(-1), type=element, shape=[array.size])
            ir.Operation.create(
                "llvm.mlir.global",
                regions=1,
                loc=self.location,
                ip=ir.InsertionPoint(self.module.body),
                attributes={
                    "sym_name": ir.StringAttr.get(name),
                    "global_type": ir.TypeAttr.get(kind),
                    "linkage": self.types.private,
                    "value": dense,
                    "constant": self.types.unit,
                    "alignment": ir.IntegerAttr.get(self.types.i64, 64),
                    "addr_space": ir.IntegerAttr.get(self.types.i32, 0),
                },
            )
            self.globals.add(name)
        attributes = {"global_name": ir.FlatSymbolRefAttr.get(name)}
        return self.constant_once(
            ("address", name), lambda: self.at_entry("llvm.mlir.addressof", self.types.ptr, [], attributes)
        )

    def pointer(self, base: Value, offset: Index, element: ir.Type) -> Value:
        """The address of the element at index `offset` from base."""
        if isinstance(offset, int) and offset == 0:
            return base
        key = ("gep", base, offset, element)
        return self.once(
            key,
            lambda: self.op(
                "llvm.getelementptr",
                base,
                self.materialize(offset),
                type=self.types.ptr,
                attributes={
                    "elem_type": ir.TypeAttr.get(element),
                    "rawConstantIndices": self.types.gep_index,
                    "noWrapFlags": self.types.inbounds,
                },
            ),
        )

    def load(self, pointer: Value, type: ir.Type, alignment: int) -> Value:
        return self.op(
            "llvm.load",
            pointer,
            type=type,
            attributes={"alignment": ir.IntegerAttr.get(self.types.i64, alignment), "ordering": self.types.unordered},
        )

    def store(self, value: Value, pointer: Value, alignment: int, streams: bool = False) -> None:
        """Store a value. streams: use a non-temporal store, for whole cache lines that are not read again soon."""
        attributes = {"alignment": ir.IntegerAttr.get(self.types.i64, alignment), "ordering": self.types.unordered}
        if streams:
            attributes["nontemporal"] = self.types.unit
        self.operation("llvm.store", [], [value, pointer], attributes)

    def alloca(self, type: ir.Type, count: int, alignment: int) -> Value:
        """Stack memory for `count` elements, allocated in the function's entry block."""
        size = self.materialize(count)
        attributes = {"elem_type": ir.TypeAttr.get(type), "alignment": ir.IntegerAttr.get(self.types.i64, alignment)}
        return self.at_entry("llvm.alloca", self.types.ptr, [size], attributes)

    def load_masked(self, pointer: Value, mask: Value, rest: Value, alignment: int) -> Value:
        attributes = {"alignment": ir.IntegerAttr.get(self.types.i32, alignment)}
        return self.op("llvm.intr.masked.load", pointer, mask, rest, type=rest.type, attributes=attributes)

    def store_masked(self, value: Value, pointer: Value, mask: Value, alignment: int) -> None:
        attributes = {"alignment": ir.IntegerAttr.get(self.types.i32, alignment)}
        self.operation("llvm.intr.masked.store", [], [value, pointer, mask], attributes)
