"""Builds MLIR functions: index arithmetic, scopes, loops, branches, memory. Scalar operations are in arithmetic.py.

A Builder belongs to one module. Python integers represent index constants, so that index arithmetic folds while it is
built.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Any, TypeAlias

import numpy as np
from mlir import ir

from .arithmetic import Arithmetic, Types, Value

__all__ = ["Branch", "Builder", "Index", "Loop", "Types", "Unroll", "Value"]

Index: TypeAlias = int | Value
"""A coordinate or offset: a constant or an i64 value."""


class Unroll(Enum):
    """How far LLVM may unroll a loop. It may interleave all loops but LEAN ones."""

    ANY = enum.auto()
    SHORT = enum.auto()  # at most UNROLLED iterations: full unrolling merges interleaved sums into one dependency chain
    VECTORIZED = enum.auto()  # only after vectorisation: a short run of lanes, unrolled earlier, becomes scalars
    NONE = enum.auto()
    LEAN = enum.auto()  # one vector at a time, not interleaved either: for loops that run seldom


UNROLLED = 8
"""Iteration limit of a SHORT loop that LLVM may unroll. Not unrolled, sums of five took twice the time; unrolled,
longer ones were not vectorised.
"""


class Builder(Arithmetic):
    """Creates operations at `ip`, in one function at a time."""

    # Index arithmetic: folds constants, and creates equal expressions once per scope

    def materialize(self, a: Index) -> Value:
        return self.constant(a, self.types.i64) if isinstance(a, int) else a

    def _index_op(self, name: str, a: Index, b: Index, attributes: dict[str, ir.Attribute] | None = None) -> Value:
        key = (name, a, b)
        return self.once(key, lambda: self.op(name, self.materialize(a), self.materialize(b), attributes=attributes))

    def add(self, a: Index, b: Index) -> Index:
        if isinstance(a, int):
            a, b = b, a
        if isinstance(b, int):
            if isinstance(a, int):
                return a + b
            if b == 0:
                return a
        return self._index_op("arith.addi", a, b, self.types.no_wrap)

    def sub(self, a: Index, b: Index) -> Index:
        if isinstance(b, int):
            return self.add(a, -b)
        return self._index_op("arith.subi", a, b, self.types.no_wrap)

    def mul(self, a: Index, b: Index) -> Index:
        if isinstance(a, int):
            a, b = b, a
        if isinstance(b, int):
            if isinstance(a, int):
                return a * b
            if b in (0, 1):
                return a if b else 0
        return self._index_op("arith.muli", a, b, self.types.no_wrap)

    def div(self, a: Index, b: int) -> Index:
        """a / b, for a ≥ 0 and b > 0."""
        if isinstance(a, int):
            return a // b
        return a if b == 1 else self._index_op("arith.divui", a, b)

    def rem(self, a: Index, b: int) -> Index:
        """a % b, for a ≥ 0 and b > 0."""
        if isinstance(a, int):
            return a % b
        return 0 if b == 1 else self._index_op("arith.remui", a, b)

    # Scopes: values created inside a loop or a branch must not be reused outside

    def recall(self, key: Any) -> Any:
        for scope in reversed(self.scopes):
            found = scope.get(key)
            if found is not None:
                return found
        return None

    def remember(self, key: Any, value: Any) -> None:
        self.scopes[-1][key] = value

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        found = self.recall(key)
        if found is None:
            found = make()
            self.remember(key, found)
        return found

    # Structure -------------------------------------------------------------------------------------------------------

    @contextmanager
    def function(
        self,
        name: str,
        inputs: Sequence[ir.Type],
        results: Sequence[ir.Type],
        attributes: dict[str, ir.Attribute],
        *,
        before: ir.InsertionPoint | None = None,
    ) -> Iterator[Sequence[Value]]:
        """A func.func whose body is built inside the `with`. Yields its arguments. End the body with `give`."""
        saved = self.ip, self._constants, self._constant_ip, self.scopes
        type = ir.FunctionType.get(inputs, results)
        made = ir.Operation.create(
            "func.func",
            attributes={"sym_name": ir.StringAttr.get(name), "function_type": ir.TypeAttr.get(type), **attributes},
            regions=1,
            loc=self.location,
            ip=before or ir.InsertionPoint(self.module.body),
        )
        block = ir.Block.create_at_start(made.regions[0], inputs, [self.location] * len(inputs))
        self.functions[name] = made
        self.ip = ir.InsertionPoint(block)
        anchor = self.operation(
            "arith.constant", [self.types.i64], [], {"value": ir.IntegerAttr.get(self.types.i64, 0)}
        )
        self._constants = {(self.types.i64, 0): anchor.result}
        self._constant_ip = ir.InsertionPoint(anchor)
        self.scopes = [{}]
        yield list(block.arguments)
        self.ip, self._constants, self._constant_ip, self.scopes = saved

    def give(self, *values: Value) -> None:
        """Return values from the function under construction."""
        self.operation("func.return", [], values)

    @contextmanager
    def reassociating(self) -> Iterator[None]:
        """Build the float additions and multiplications of a reduction, which may be reordered unless strict."""
        saved = self._flags
        if not self.strict:
            self._flags = self.types.reassociate
        yield
        self._flags = saved

    @property
    def flags(self) -> dict[str, ir.Attribute] | None:
        """The fast-math attributes of float arithmetic at this point."""
        return self._flags

    @contextmanager
    def exact(self) -> Iterator[None]:
        """Build without contraction."""
        saved, self._flags = self._flags, None
        yield
        self._flags = saved

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
        key = ("address", name)
        found = self._constants.get(key)
        if found is None:
            found = ir.Operation.create(
                "llvm.mlir.addressof",
                results=[self.types.ptr],
                loc=self.location,
                ip=self._constant_ip,
                attributes={"global_name": ir.FlatSymbolRefAttr.get(name)},
            ).result
            self._constants[key] = found
        return found

    def array(self, values: np.ndarray) -> Value:
        """The address of a private constant array. Arrays with equal contents share one."""
        content = (values.dtype.str, values.tobytes())
        name = self._arrays.setdefault(content, f"constant.{len(self._arrays)}")
        return self.table(name, values)

    def number(self, value: np.generic, type: ir.Type) -> Value:
        """A numpy scalar as a constant of a type."""
        return self.constant(float(value) if self.is_float(type) else int(value), type)

    def _element_of(self, dtype: np.dtype) -> ir.Type:
        if dtype.kind == "f":
            return self.types.f64 if dtype.itemsize == 8 else self.types.f32
        return self.types.integer(dtype.itemsize * 8)

    def external(self, symbol: str, inputs: Sequence[ir.Type], result: ir.Type) -> str:
        """Declare a C function once. Returns its symbol."""
        if symbol not in self.functions:
            self.functions[symbol] = ir.Operation.create(
                "func.func",
                regions=1,
                loc=self.location,
                ip=ir.InsertionPoint(self.module.body),
                attributes={
                    "sym_name": ir.StringAttr.get(symbol),
                    "sym_visibility": ir.StringAttr.get("private"),
                    "function_type": ir.TypeAttr.get(ir.FunctionType.get(inputs, [result])),
                },
            )
        return symbol

    def call(self, function: str, result: ir.Type, operands: Sequence[Value]) -> Value:
        return self.operation("func.call", [result], operands, {"callee": ir.FlatSymbolRefAttr.get(function)}).result

    def enter(self, block: ir.Block) -> ir.InsertionPoint:
        """Build inside a nested block from now on. Returns the insertion point that `leave` needs."""
        saved = self.ip
        self.ip = ir.InsertionPoint(block)
        self.scopes.append({})
        return saved

    def leave(self, saved: ir.InsertionPoint) -> None:
        self.scopes.pop()
        self.ip = saved

    def open_loop(
        self, lower: Index, upper: Index, step: int = 1, carried: Sequence[Value] = (), unroll: Unroll = Unroll.ANY
    ) -> Loop:
        """Open an scf.for loop, until `close_loop`."""
        known = isinstance(lower, int) and isinstance(upper, int)
        if unroll is Unroll.SHORT:
            unroll = Unroll.ANY if known and upper - lower <= UNROLLED * step else Unroll.NONE
        t = self.types
        annotations = {Unroll.LEAN: t.lean, Unroll.NONE: t.rolled, Unroll.VECTORIZED: t.vectorized}
        made = self.operation(
            "scf.for",
            [v.type for v in carried],
            [self.materialize(lower), self.materialize(upper), self.materialize(step), *carried],
            annotations.get(unroll),
            regions=1,
        )
        types = [self.types.i64, *(v.type for v in carried)]
        block = ir.Block.create_at_start(made.regions[0], types, [self.location] * len(types))
        index, *arguments = block.arguments
        return Loop(index, arguments, list(made.results), self.enter(block))

    def close_loop(self, loop: Loop) -> None:
        self.operation("scf.yield", [], loop.next)
        self.leave(loop.outside)

    @contextmanager
    def loop(
        self, lower: Index, upper: Index, step: int = 1, carried: Sequence[Value] = (), unroll: Unroll = Unroll.ANY
    ) -> Iterator[Loop]:
        """As `open_loop`. With carried values: set `next` of the Loop inside it, and read its `values` after it."""
        loop = self.open_loop(lower, upper, step, carried, unroll)
        yield loop
        self.close_loop(loop)

    def open_while(self, carried: Sequence[Value]) -> While:
        """Open an scf.while loop: build the condition on `carried`, pass it to `test`, build the body, then call
        `close`.
        """
        types = [v.type for v in carried]
        made = self.operation("scf.while", types, list(carried), regions=2)
        blocks = [ir.Block.create_at_start(r, types, [self.location] * len(types)) for r in made.regions]
        return While(self, blocks, list(made.results))

    def branch(self, condition: Value, types: Sequence[ir.Type]) -> Branch:
        """An scf.if with results of these types. Build the sides with `with branch.then:` and `with branch.other:`."""
        made = self.operation("scf.if", types, [condition], regions=2)
        return Branch(self, made)

    # Memory ----------------------------------------------------------------------------------------------------------

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
        return ir.Operation.create(
            "llvm.alloca",
            results=[self.types.ptr],
            operands=[size],
            attributes=attributes,
            loc=self.location,
            ip=self._constant_ip,
        ).result


class Loop:
    """A loop under construction: index, carried values, their next values (`next`), and the results after the loop."""

    def __init__(self, index: Value, carried: list[Value], values: list[Value], outside: ir.InsertionPoint):
        self.index, self.carried, self.values, self.outside = index, carried, values, outside
        self.next: Sequence[Value] = ()


class While:
    """A while loop under construction. carried: its carried values, which differ in the body; values: its results."""

    def __init__(self, builder: Builder, blocks: Sequence[ir.Block], values: list[Value]):
        self._builder, self._body, self.values = builder, blocks[1], values
        self.carried = list(blocks[0].arguments)
        self._outside = builder.enter(blocks[0])

    def test(self, condition: Value) -> None:
        """End the condition and begin the body."""
        b = self._builder
        b.operation("scf.condition", [], [condition, *self.carried])
        b.leave(self._outside)
        b.enter(self._body)
        self.carried = list(self._body.arguments)

    def close(self, following: Sequence[Value]) -> None:
        """End the body. following: the carried values of the next iteration."""
        self._builder.operation("scf.yield", [], following)
        self._builder.leave(self._outside)


class Branch:
    """A two-sided conditional under construction."""

    def __init__(self, builder: Builder, made: ir.Operation):
        self._builder, self._made = builder, made
        self.values = list(made.results)

    @contextmanager
    def side(self, number: int) -> Iterator[list[Value]]:
        """Build one side (0: then, 1: else). Append its results to the list that is yielded."""
        block = ir.Block.create_at_start(self._made.regions[number], [])
        results: list[Value] = []
        outside = self._builder.enter(block)
        yield results
        self._builder.operation("scf.yield", [], results)
        self._builder.leave(outside)
