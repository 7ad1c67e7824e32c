"""The function under construction: scopes, loops, branches and index arithmetic.

A scope is a region of code that dominates its children: the function, a loop body, an arm of a branch. The last block
of a scope stays open until its child loop is closed, so code that depends only on outer indices is emitted outside the
inner loop.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum, auto
from typing import TypeAlias

from llvmlite import ir

from ...codegen.lite_text import name_fast
from ...hlo.records import dataclass, field
from .limits import Limits
from .registers import BOOL, I32, I64, Register, flatten, unflatten
from .view import SHARED, View

IndexValue: TypeAlias = int | ir.Value
"""A position along a dimension: a constant or an i64 register."""


@dataclass(eq=False)
class Scope:
    """memo: values computed here that are valid in the whole scope. conditional: the scope may not be executed."""

    parent: Scope | None
    builder: ir.IRBuilder
    conditional: bool = False
    memo: dict[Hashable, Register] = field(default_factory=dict)
    depth: int = 0

    def __post_init__(self) -> None:
        self.depth = self.parent.depth + 1 if self.parent else 0


class _Carried:
    """Values that a loop carries from one iteration to the next, at its head."""

    def __init__(self, head: ir.IRBuilder, initial: Sequence[Register]):
        self.initial = initial
        self.phis = [[head.phi(r.type, "carried") for r in flatten(value)] for value in initial]
        self.values = [unflatten(value, list(phis)) for value, phis in zip(initial, self.phis, strict=True)]

    def come(self, values: Sequence[Register], block: ir.Block) -> None:
        """Control comes to the head from a block with these values."""
        for phis, value in zip(self.phis, values, strict=True):
            for phi, register in zip(phis, flatten(value), strict=True):
                phi.add_incoming(register, block)


class _Counted:
    """A loop with a counter, `index`. As a context, it is closed at the end; one that carries values has to be closed
    with those for the next iteration.
    """

    index: IndexValue

    def close(self, results: Sequence[Register] = ()) -> list[Register]:
        raise NotImplementedError

    def __enter__(self) -> IndexValue:
        return self.index

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None:
            self.close()


class Loop(_Counted):
    """A counted loop with at least one iteration. `index` is the counter, `carried` the loop-carried values."""

    def __init__(
        self, code: Code, start: IndexValue, extent: IndexValue, step: int, carried: Sequence[Register], unroll: Unroll
    ):
        self.code, self.outer, self.unroll = code, code.scope, unroll
        self.step, self.end = step, code.add(extent, start)
        self.long = not isinstance(extent, int) or extent > NESTED * step
        self.number = code.count_loop()
        function = code.function
        self.body = function.append_basic_block("loop")
        builder = ir.IRBuilder(self.body)
        self.start = start
        self.counter = builder.phi(I64, "i")
        self._carried = _Carried(builder, carried)
        self.carried = self._carried.values
        self.index = self.counter
        code.scope = Scope(self.outer, builder)
        code.define(self.counter, code.scope)

    def close(self, results: Sequence[Register] = ()) -> list[Register]:
        """End the body. results: the carried values for the next iteration. Returns their values after the loop."""
        code, inner = self.code, self.code.scope.builder
        following = code.function.append_basic_block("after")
        after = inner.add(self.counter, I64(self.step), flags=("nuw", "nsw"))
        end = I64(self.end) if isinstance(self.end, int) else self.end
        again = inner.cbranch(inner.icmp_unsigned("<", after, end), self.body, following)
        nested = self.long and code.loops > self.number
        _hint(code, again, Unroll.NEVER if nested and self.unroll is Unroll.FREELY else self.unroll)
        self.counter.add_incoming(after, inner.block)
        outer = self.outer.builder
        self.counter.add_incoming(code.value(self.start), outer.block)
        self._carried.come(results, inner.block)
        self._carried.come(self._carried.initial, outer.block)
        outer.branch(self.body)
        outer.position_at_end(following)
        code.scope = self.outer
        return list(results)


class Unroll(Enum):
    """When LLVM may unroll a loop. It may always vectorise and interleave it."""

    FREELY = auto()
    SHORT = auto()  # up to UNROLLED iterations: full unrolling turns a long sum into one dependency chain
    # Unroll only after vectorisation: unrolled earlier, short rows become scalars that SLP rarely re-vectorises.
    VECTORS = auto()
    NEVER = auto()
    TWICE = auto()  # two copies of the body, also if the number of iterations is unknown
    SCALAR = auto()  # neither, nor vectors: for loops that run seldom
    DONE = auto()  # not at all, and it is not looked at again: its body is vectors
    ABREAST = auto()  # several vectors side by side: for a long chain of operations, which waits for itself


def over_columns(width: int) -> Unroll:
    """The mode of a loop over `width` neighbours. A few that do not fill a vector are faster as scalars."""
    return Unroll.VECTORS if width >= 16 or width & (width - 1) == 0 else Unroll.FREELY


UNROLLED = 8
"""Iteration limit of a SHORT loop that LLVM may unroll: the additions in flight (latency 4 cycles, 2 per cycle).
Up to this limit, one dependency chain takes no longer than several chains and their sum.
"""

NESTED = 16
"""Minimum iterations for which a loop around others is not unrolled: copies take time to compile and save none."""

_METADATA = {
    Unroll.SHORT: ("llvm.loop.unroll.disable",),
    Unroll.VECTORS: ("llvm.loop.unroll.disable", "llvm.loop.vectorize.followup_vectorized"),
    Unroll.NEVER: ("llvm.loop.unroll.disable",),
    Unroll.TWICE: (("llvm.loop.unroll.count", 2),),
    Unroll.SCALAR: ("llvm.loop.disable_nonforced",),
    Unroll.DONE: ("llvm.loop.unroll.disable", ("llvm.loop.isvectorized", 1)),
    Unroll.ABREAST: (("llvm.loop.interleave.count", 4),),
}


def _hint(code: Code, again: ir.Instruction, unroll: Unroll) -> None:
    """Tell LLVM the mode of a loop, at the branch that ends its body. The first operand of the metadata is the node
    itself, which makes each loop's distinct.
    """
    if unroll not in _METADATA or not code.hints:
        return
    module = code.module
    own = ir.MDValue(module, [], name=str(len(module.metadata)))
    given = ((entry,) if isinstance(entry, str) else (entry[0], I32(entry[1])) for entry in _METADATA[unroll])
    own.operands = (own, *(module.add_metadata(entry) for entry in given))
    again.set_metadata("llvm.loop", own)


class Range(_Counted):
    """A counted loop that may have no iteration. Code in its body is therefore never hoisted out of it."""

    def __init__(
        self, code: Code, start: IndexValue, end: IndexValue, step: int, carried: Sequence[Register], unroll: Unroll
    ):
        self.code, self.outer, self.start, self.end, self.step = code, code.scope, start, end, step
        self.unroll = unroll
        self.number = code.count_loop()
        self.head = ir.IRBuilder(code.function.append_basic_block("head"))
        self.body = code.function.append_basic_block("loop")
        self.counter = self.head.phi(I64, "i")
        self._carried = _Carried(self.head, carried)
        self.carried = self._carried.values
        self.index = self.counter
        code.scope = Scope(self.outer, ir.IRBuilder(self.body), conditional=True)
        code.define(self.counter, code.scope)

    def close(self, results: Sequence[Register] = ()) -> list[Register]:
        """As `Loop.close`."""
        code, inner, outer = self.code, self.code.scope.builder, self.outer.builder
        following = code.function.append_basic_block("after")
        self.head.cbranch(self.head.icmp_signed("<", self.counter, code.value(self.end)), self.body, following)
        self.counter.add_incoming(inner.add(self.counter, I64(self.step), flags=("nsw",)), inner.block)
        self.counter.add_incoming(code.value(self.start), outer.block)
        self._carried.come(results, inner.block)
        self._carried.come(self._carried.initial, outer.block)
        again = inner.branch(self.head.block)
        nested = code.loops > self.number
        _hint(code, again, Unroll.NEVER if nested and self.unroll is Unroll.FREELY else self.unroll)
        outer.branch(self.head.block)
        outer.position_at_end(following)
        code.scope = self.outer
        return list(self.carried)


class Once(_Counted):
    """A loop of one iteration, which needs no code."""

    def __init__(self, start: int, carried: Sequence[Register]):
        self.index = start
        self.carried = list(carried)

    def close(self, results: Sequence[Register] = ()) -> list[Register]:
        return list(results)


class While:
    """A loop that continues while a condition on its carried values holds. It may have no iteration.

    Open it with `code.begin_while`, build the condition, pass it to `test`, then build the body.
    """

    def __init__(self, code: Code, carried: Sequence[Register]):
        self.code, self.outer = code, code.scope
        code.count_loop()
        self.head = code.function.append_basic_block("head")
        builder = ir.IRBuilder(self.head)
        self._carried = _Carried(builder, carried)
        self.carried = self._carried.values
        code.scope = Scope(self.outer, builder, conditional=True)
        self._home()

    def _home(self) -> None:
        """Define the carried values in the current scope, so that code that depends on them is emitted here."""
        for phi in flatten(tuple(self.carried)):
            self.code.define(phi, self.code.scope, again=True)

    def test(self, condition: ir.Value) -> None:
        code, head = self.code, self.code.scope
        body = code.function.append_basic_block("body")
        self.following = code.function.append_basic_block("after")
        head.builder.cbranch(condition, body, self.following)
        code.scope = Scope(head, ir.IRBuilder(body), conditional=True)
        self._home()

    def close(self, results: Sequence[Register], *, unroll: Unroll = Unroll.FREELY) -> list[Register]:
        """End the body. results: the carried values for the next iteration. Returns their values after the loop."""
        inner, outer = self.code.scope.builder, self.outer.builder
        self._carried.come(self._carried.initial, outer.block)
        self._carried.come(results, inner.block)
        _hint(self.code, inner.branch(self.head), unroll)
        outer.branch(self.head)
        outer.position_at_end(self.following)
        self.code.scope = self.outer
        self._home()
        return list(self.carried)


class Branch:
    """if/else with results: open it with `code.branch`, then call `otherwise`, then `join`."""

    def __init__(self, code: Code, condition: ir.Value):
        self.code, self.outer, self.condition = code, code.scope, condition
        self.then_block = code.function.append_basic_block("then")
        self.else_block = code.function.append_basic_block("else")
        self._enter(self.then_block)

    def _enter(self, block: ir.Block) -> None:
        self.code.scope = Scope(self.outer, ir.IRBuilder(block), conditional=True)

    def otherwise(self) -> None:
        self.then_end = self.code.scope.builder
        self._enter(self.else_block)

    def join(self, then_value: Register, else_value: Register) -> Register:
        else_end = self.code.scope.builder
        block = self.code.function.append_basic_block("join")
        self.then_end.branch(block)
        else_end.branch(block)
        builder = self.outer.builder
        builder.cbranch(self.condition, self.then_block, self.else_block)
        builder.position_at_end(block)
        self.code.scope = self.outer
        joined: list[ir.Value] = []
        for first, second in zip(flatten(then_value), flatten(else_value), strict=True):
            phi = builder.phi(first.type)
            phi.add_incoming(first, self.then_end.block)
            phi.add_incoming(second, else_end.block)
            joined.append(phi)
        return unflatten(then_value, joined)


class Code:
    """The body of a function under construction. `b` builds in the current scope."""

    def __init__(self, module: ir.Module, function: ir.Function, view: View = SHARED):
        name_fast(function)
        self.module, self.function, self.view = module, function, view
        self.flags: tuple[str, ...] = ()  # fast-math flags for arithmetic emitted from now on
        self.root = self.scope = Scope(None, ir.IRBuilder(function.append_basic_block("entry")))
        self.constants: dict[Hashable, ir.GlobalVariable] = {}  # constant instruction → its elements
        self._homes: dict[ir.Value, Scope] = {}
        self.limits = Limits()
        self.hints = True  # whether loops have metadata
        self.loops = 0  # that were opened

    def count_loop(self) -> int:
        """The number of a loop that is opened, counted in the order of opening."""
        self.loops += 1
        return self.loops

    @property
    def b(self) -> ir.IRBuilder:
        return self.scope.builder

    def define(self, value: ir.Value, scope: Scope, *, again: bool = False) -> None:
        """Record the scope in which an index value is defined. again: replace an earlier record.

        A constant is defined everywhere, and equal ones are one key: a branch that reads one must not keep it.
        """
        if isinstance(value, ir.Constant):
            return
        if again:
            self._homes[value] = scope
        self._homes.setdefault(value, scope)

    def home(self, values: Sequence[IndexValue]) -> Scope:
        """The outermost scope in which all these index values are defined."""
        scope = self.root
        for value in values:
            found = None if isinstance(value, int) else self._homes.get(value)
            if found is not None and found.depth > scope.depth:
                scope = found
        return scope

    def safe_home(self, values: Sequence[IndexValue]) -> Scope:
        """As `home`, but not outside the branch that guards the current code."""
        scope, barrier = self.home(values), self.scope
        while not barrier.conditional and barrier.parent is not None:
            barrier = barrier.parent
        return barrier if barrier.depth > scope.depth else scope

    def loop(
        self,
        extent: IndexValue,
        *,
        start: int = 0,
        step: int = 1,
        carried: Sequence[Register] = (),
        unroll: Unroll = Unroll.FREELY,
    ) -> Loop | Once:
        """Open a loop for i in start, start + step, … < start + extent; extent ≥ 1."""
        if isinstance(extent, int) and extent <= step:
            return Once(start, carried)
        if unroll is Unroll.SHORT and isinstance(extent, int) and extent <= UNROLLED * step:
            unroll = Unroll.FREELY
        opened = Loop(self, start, extent, step, carried, unroll)
        if isinstance(extent, int):
            self.limits.give(opened.index, (start, start + extent))
        return opened

    def between(self, start: IndexValue, end: IndexValue, step: int = 1, *, unroll: Unroll = Unroll.FREELY) -> Loop:
        """Open a loop for i in start, start + step, … < end; start < end."""
        return Loop(self, start, self.subtract(end, start), step, (), unroll)

    def range(
        self,
        start: IndexValue,
        end: IndexValue,
        step: int = 1,
        *,
        carried: Sequence[Register] = (),
        unroll: Unroll = Unroll.FREELY,
    ) -> Loop | Once | Range:
        """Open a loop for i in start, start + step, … < end; it may be empty. If the bounds are not constant, unroll
        applies only where it is NEVER, SCALAR or DONE.
        """
        if isinstance(start, int) and isinstance(end, int) and start < end:
            return self.loop(end - start, start=start, step=step, carried=carried, unroll=unroll)
        kept = unroll in (Unroll.NEVER, Unroll.SCALAR, Unroll.DONE)
        return Range(self, start, end, step, carried, unroll if kept else Unroll.FREELY)

    def begin_while(self, carried: Sequence[Register]) -> While:
        return While(self, carried)

    def branch(self, condition: ir.Value) -> Branch:
        return Branch(self, condition)

    def all_of(self, conditions: Sequence[ir.Value]) -> ir.Value | None:
        """Whether all of them hold; None of none."""
        return functools.reduce(self.b.and_, conditions) if conditions else None

    @contextmanager
    def when(self, condition: ir.Value | None) -> Iterator[None]:
        """What follows is done under a condition only; None: always."""
        branch = None if condition is None else self.branch(condition)
        yield
        if branch is not None:
            branch.otherwise()
            branch.join((), ())

    # Calls

    def intrinsic(self, name: str, result: ir.Type, arguments: Sequence[ir.Value], *, pure: bool = True) -> ir.Value:
        """Call an intrinsic or a function of libm by its full name."""
        function = self.module.globals.get(name)
        if function is None:
            function = ir.Function(self.module, ir.FunctionType(result, [a.type for a in arguments]), name)
            if pure and not name.startswith("llvm."):
                function.attributes.add("nounwind")
                set.add(function.attributes, "willreturn")
                set.add(function.attributes, "memory(none)")
        return self.b.call(function, list(arguments))

    # Index arithmetic: constants are folded, equal expressions share a value, each is emitted in its outermost scope.

    def add(self, a: IndexValue, b: IndexValue) -> IndexValue:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if isinstance(a, int):
            a, b = b, a
        if not isinstance(b, int) or isinstance(a, int):
            return self._index("add", a, b)
        if b == 0:
            return a
        total = self._index("add", a, b)
        self.limits.added(total, a, b)
        return total

    def subtract(self, a: IndexValue, b: IndexValue) -> IndexValue:
        if isinstance(b, int):
            return self.add(a, -b)
        return self._index("sub", a, b)

    def multiply(self, a: IndexValue, b: int) -> IndexValue:
        if isinstance(a, int):
            return a * b
        return a if b == 1 else 0 if b == 0 else self._index("mul", a, b)

    def divide(self, a: IndexValue, b: int) -> IndexValue:
        """a / b, for a ≥ 0."""
        if isinstance(a, int):
            return a // b
        return a if b == 1 else self._index("udiv", a, b)

    def remainder(self, a: IndexValue, b: int) -> IndexValue:
        """a % b, for a ≥ 0."""
        if isinstance(a, int):
            return a % b
        return 0 if b == 1 else self._index("urem", a, b)

    def minimum(self, a: IndexValue, b: IndexValue) -> IndexValue:
        """The smaller of two signed values."""
        return min(a, b) if isinstance(a, int) and isinstance(b, int) else self._index("smin", a, b)

    def maximum(self, a: IndexValue, b: IndexValue) -> IndexValue:
        """The larger of two signed values."""
        return max(a, b) if isinstance(a, int) and isinstance(b, int) else self._index("smax", a, b)

    def weighted_sum(self, indices: Sequence[IndexValue], weights: Sequence[int]) -> IndexValue:
        """Σ index · weight. Terms of outer scopes are added first, so that their sums can be hoisted."""
        total: IndexValue = 0
        terms = [self.multiply(i, w) for i, w in zip(indices, weights, strict=True)]
        for term in sorted(terms, key=lambda t: self.home((t,)).depth):
            total = self.add(total, term)
        return total

    def split(
        self, index: IndexValue, dims: Sequence[int], order: Sequence[int] | None = None
    ) -> tuple[IndexValue, ...]:
        """The position along each dimension for a flat index. order: dimensions from the fastest, the last one if not
        given, to the slowest.
        """
        parts: list[IndexValue] = [0] * len(dims)
        live = [d for d in (reversed(range(len(dims))) if order is None else order) if dims[d] != 1]
        for d in live:
            parts[d] = index if d == live[-1] else self.remainder(index, dims[d])
            index = self.divide(index, dims[d])
        return tuple(parts)

    def value(self, index: IndexValue) -> ir.Value:
        return I64(index) if isinstance(index, int) else index

    def truth(self, value: bool) -> ir.Constant:
        return BOOL(int(value))

    def _index(self, op: str, a: IndexValue, b: IndexValue) -> ir.Value:
        key = (op, a, b)
        scope = self.home((a, b))
        found = scope.memo.get(key)
        if found is None:
            found = _INDEX_OPS[op](self, scope.builder, self.value(a), self.value(b))
            scope.memo[key] = found
            self.define(found, scope)
        return found

    def _extremum(self, builder: ir.IRBuilder, predicate: str, a: ir.Value, b: ir.Value) -> ir.Value:
        return builder.select(builder.icmp_signed(predicate, a, b), a, b)


_INDEX_OPS = {
    "add": lambda code, builder, a, b: builder.add(a, b, flags=("nsw",)),
    "sub": lambda code, builder, a, b: builder.sub(a, b, flags=("nsw",)),
    "mul": lambda code, builder, a, b: builder.mul(a, b, flags=("nsw",)),
    "udiv": lambda code, builder, a, b: builder.udiv(a, b),
    "urem": lambda code, builder, a, b: builder.urem(a, b),
    "smin": lambda code, builder, a, b: code._extremum(builder, "<", a, b),
    "smax": lambda code, builder, a, b: code._extremum(builder, ">", a, b),
}
