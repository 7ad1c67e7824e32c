"""Builds MLIR functions: loops, branches, calls. Scalar operations are in arithmetic.py, index arithmetic and scopes in
index_arithmetic.py, loads and stores in memory.py, vectors in vectors.py. A Builder belongs to one module.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum

import numpy as np
from mlir import ir

from ...codegen.field.names import value_name
from .arithmetic import Types, Value
from .index_arithmetic import Index
from .memory import Pointer
from .vectors import Vectors

__all__ = ["Branch", "Builder", "Index", "Loop", "Pointer", "Types", "Unroll", "Value"]


class Unroll(Enum):
    """How far LLVM may unroll a loop. It may interleave all loops but LEAN ones."""

    ANY = enum.auto()
    SHORT = enum.auto()  # at most UNROLLED iterations: full unrolling merges interleaved sums into one dependency chain
    VECTORIZED = enum.auto()  # only after vectorisation: a short run of lanes, unrolled earlier, becomes scalars
    NONE = enum.auto()
    DONE = enum.auto()  # not at all, nor made of vectors: those are there
    TWICE = enum.auto()  # two copies of the body, also if the number of iterations is unknown
    LEAN = enum.auto()  # one vector at a time, not interleaved either: for loops that run seldom
    ABREAST = enum.auto()  # four vectors side by side: for long chains, whose operations wait for one another
    SCALAR = enum.auto()  # not vectorised: in a tile, vectors along the dimension that crosses memory gather or scatter


UNROLLED = 8
"""Iteration limit of a SHORT loop that LLVM may unroll. Not unrolled, sums of five took twice the time; unrolled,
longer ones were not vectorised.
"""


NESTED = 16
"""Minimum iterations for which a loop around others is not unrolled: copies take time to compile and save none."""


HINTS = {Unroll.SHORT: "short", Unroll.SCALAR: "scalar", Unroll.NONE: "rolled", Unroll.ABREAST: "abreast"}
"""Names of the locations of linalg.generic operations, by what their loops are."""


class Builder(Vectors):
    """Creates operations at `ip`, in one function at a time."""

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

    def number(self, value: np.generic, type: ir.Type) -> Value:
        """A numpy scalar as a constant of a type."""
        return self.constant(float(value) if self.is_float(type) else int(value), type)

    def external(
        self,
        symbol: str,
        inputs: Sequence[ir.Type],
        result: ir.Type | None,
        *,
        pure: bool = False,
        passed: Sequence[str] = (),
    ) -> str:
        """Declare a C function once; None: it gives nothing. Returns its symbol. pure: it touches no memory, so that
        what is around its calls becomes vectors. passed: names of LLVM's attributes that it has.
        """
        if symbol not in self.functions:
            memory = {"llvm.readnone": self.types.unit} if pure else {}
            if passed:
                memory["passthrough"] = ir.ArrayAttr.get([ir.StringAttr.get(name) for name in passed])
            self.functions[symbol] = ir.Operation.create(
                "func.func",
                regions=1,
                loc=self.location,
                ip=ir.InsertionPoint(self.module.body),
                attributes={
                    **memory,
                    "sym_name": ir.StringAttr.get(symbol),
                    "sym_visibility": ir.StringAttr.get("private"),
                    "function_type": ir.TypeAttr.get(ir.FunctionType.get(inputs, [] if result is None else [result])),
                },
            )
        return symbol

    def symbol_of_value(self, type: ir.Type) -> ir.Attribute:
        return ir.FlatSymbolRefAttr.get(self.external(value_name(str(type)), [type], type, pure=True))

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
        if unroll is Unroll.SHORT:
            few = isinstance(lower, int) and isinstance(upper, int) and upper - lower <= UNROLLED * step
            unroll = Unroll.ANY if few else Unroll.NONE
        t = self.types
        annotations = {
            Unroll.LEAN: t.lean,
            Unroll.ABREAST: t.abreast,
            Unroll.NONE: t.rolled,
            Unroll.TWICE: t.twice,
            Unroll.DONE: t.done,
            Unroll.SCALAR: t.scalar,
            Unroll.VECTORIZED: t.vectorized,
        }
        made = self.operation(
            "scf.for",
            [v.type for v in carried],
            [self.materialize(lower), self.materialize(upper), self.materialize(step), *carried],
            annotations.get(unroll) if self.hints else None,
            regions=1,
        )
        types = [self.types.i64, *(v.type for v in carried)]
        block = ir.Block.create_at_start(made.regions[0], types, [self.location] * len(types))
        index, *arguments = block.arguments
        self.loops += 1
        constant = isinstance(lower, int) and isinstance(upper, int) and upper - lower <= NESTED * step
        around = None if constant or unroll is not Unroll.ANY or not self.hints else made
        return Loop(index, arguments, list(made.results), self.enter(block), around, self.loops + self.generics)

    def close_loop(self, loop: Loop) -> None:
        self.operation("scf.yield", [], loop.next)
        self.leave(loop.outside)
        if loop.around is not None and self.loops + self.generics > loop.number:
            loop.around.attributes["loop_annotation"] = self.types.rolled["loop_annotation"]

    def close_loops(self, loops: Sequence[Loop], following: Sequence[Value] = ()) -> list[Value]:
        """Close a nest. following: what the innermost loop carries on; returns what the outermost one ends with."""
        for loop in reversed(loops):
            loop.next = following
            self.close_loop(loop)
            following = loop.values
        return list(following)

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


class Loop:
    """A loop under construction: index, carried values, their next values (`next`), and the results after the loop."""

    def __init__(
        self,
        index: Value,
        carried: list[Value],
        values: list[Value],
        outside: ir.InsertionPoint,
        around: ir.Operation | None,
        number: int,
    ):
        """around: the operation, if it is not to be unrolled should there be loops in it; number: of the loops before
        and this one.
        """
        self.index, self.carried, self.values, self.outside = index, carried, values, outside
        self.around, self.number = around, number
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
