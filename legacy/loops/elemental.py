"""Computes the value of an instruction at an index, on demand, from the values of its operands. Every kernel uses it.

Rules of shape ops are Python generators that yield (operand, index) and receive its registers. One loop drives them, so
that long chains need no Python recursion. Values are memoised per (instruction, index) in the scope where the index is
defined, so that code that depends only on outer loops is emitted outside the inner ones, and nothing is emitted twice.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from typing import TypeAlias

from llvmlite import ir

from ...hlo.ir import Computation, Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass, field
from ...hlo.shapes import Shape
from ..core.builder import Code, IndexValue, Scope
from ..core.registers import Register
from ..core.stack import Scratch
from ..core.view import View
from ..numerics.convert import bits_of, from_bits
from ..numerics.elementwise import EMIT
from .memory import Pointer, immediate, load

Request: TypeAlias = tuple[Instruction, "Index"]
Reads: TypeAlias = Generator[Request, Register, Register]
"""A generator that yields the elements that it reads, receives their values, and returns its own element."""

ReadAll: TypeAlias = Generator[Request, Register, list[Register]]

ElementRule: TypeAlias = Callable[["Elemental", Instruction, "Index"], Reads]
"""(elemental, instruction, index) → a generator of reads that returns the element."""


@dataclass(eq=False)
class Index:
    """A position in an array: one value per dimension, or one value for the whole (`linear`, in the physical order of
    `order`), or both. A missing form is derived on demand.
    """

    code: Code
    dims: tuple[int, ...]
    order: tuple[int, ...]
    positions: tuple[IndexValue, ...] | None = None
    linear: IndexValue | None = None
    _derived: tuple[IndexValue, ...] | None = field(default=None, repr=False)

    @staticmethod
    def at(code: Code, shape: Shape, positions: Sequence[IndexValue]) -> Index:
        return Index(code, shape.dims, shape.minor_to_major, tuple(positions))

    @staticmethod
    def flat(code: Code, shape: Shape, linear: IndexValue) -> Index:
        return Index(code, shape.dims, shape.minor_to_major, linear=linear)

    @property
    def multi(self) -> tuple[IndexValue, ...]:
        """One value per dimension."""
        if self.positions is not None:
            return self.positions
        if self._derived is None:
            assert self.linear is not None
            self._derived = self.code.split(self.linear, self.dims, self.order)
        return self._derived

    @property
    def values(self) -> tuple[IndexValue, ...]:
        """The values that define the index."""
        if self.positions is not None:
            return self.positions
        assert self.linear is not None
        return (self.linear,)

    @property
    def key(self) -> Hashable:
        kind = "positions" if self.positions is not None else "linear"
        return (kind, *self.values)

    def offset(self, shape: Shape) -> IndexValue:
        """The offset, in elements, in a buffer of `shape`, which has the same dimensions."""
        if self.linear is not None and same_order(self.dims, self.order, shape.minor_to_major):
            return self.linear
        return self.code.weighted_sum(self.multi, shape.strides)

    def within(self, shape: Shape) -> Index:
        """The same position in an array of the same dimensions, whose layout may differ."""
        if self.order == shape.minor_to_major and self.dims == shape.dims:
            return self
        if shape.rank == 0:
            return Index(self.code, (), (), ())
        linear = self.linear if same_order(self.dims, self.order, shape.minor_to_major) else None
        positions = self.positions if linear is not None or self.positions is not None else self.multi
        return Index(self.code, shape.dims, shape.minor_to_major, positions, linear)


def same_order(dims: Sequence[int], a: Sequence[int], b: Sequence[int]) -> bool:
    """Whether two layouts of the same dimensions order the elements in the same way."""
    return [d for d in a if dims[d] != 1] == [d for d in b if dims[d] != 1]


class Elemental:
    """Computes values of a graph whose leaves are in memory. rules: for the opcodes that are not elementwise.

    scratch: the kernel's scratch memory.
    """

    def __init__(
        self,
        code: Code,
        leaves: Mapping[Instruction, Pointer],
        rules: Mapping[Op, ElementRule],
        scratch: Scratch,
    ):
        self.code, self.leaves, self.rules, self.scratch = code, leaves, rules, scratch

    @property
    def view(self) -> View:
        return self.code.view

    def value(self, instruction: Instruction, index: Index) -> Register:
        """The registers of one element; a tuple of them for a tuple-shaped instruction."""
        return self.run(self._just(instruction, index))

    def number(self, instruction: Instruction) -> Register:
        """The value of an array of one element."""
        return self.value(instruction, self.scalar(instruction.shape))

    def read(self, operands: Sequence[Instruction], index: Index | None = None) -> ReadAll:
        """The elements of operands at an index, as a part of a rule; of arrays of one element if it is None."""
        values = []
        for operand in operands:
            values.append((yield operand, self.scalar(operand.shape) if index is None else index.within(operand.shape)))
        return values

    def scalar(self, shape: Shape) -> Index:
        """The only index of an array of one element."""
        return Index.at(self.code, shape, (0,) * shape.rank)

    def run(self, start: Reads) -> Register:
        """Run a rule and everything that it reads."""
        code = self.code
        stack: list[tuple[Reads, Scope, Scope | None, Hashable]] = [(start, code.scope, None, None)]
        answer: Register | None = None
        while True:
            current, before, home, key = stack[-1]
            try:
                instruction, index = next(current) if answer is None else current.send(answer)
            except StopIteration as finished:
                answer = finished.value
                stack.pop()
                if home is None:
                    assert not stack
                    return answer
                home.memo[key] = answer
                if isinstance(answer, ir.Value):
                    code.define(answer, home)
                code.scope = before
                continue
            key = (instruction, index.key)
            answer = self._known(key)
            if answer is None:
                home = code.safe_home(index.values)
                stack.append((self._rule(instruction, index), code.scope, home, key))
                code.scope = home

    def bind(self, instruction: Instruction, index: Index, value: Register) -> None:
        """Set the value of an element for all code in the current scope."""
        self.code.scope.memo[(instruction, index.key)] = value

    def apply(self, computation: Computation, arguments: Sequence[Register]) -> Register:
        """The value of a computation on scalars, emitted inline."""
        values: dict[Instruction, Register] = {}
        for instruction in computation.instructions:
            operands = [values[o] for o in instruction.operands]
            values[instruction] = self._scalar_op(instruction, operands, arguments)
        return values[computation.root]

    def _scalar_op(self, instruction: Instruction, operands: list[Register], arguments: Sequence[Register]) -> Register:
        special = _SCALAR_OPS.get(instruction.opcode)
        if special is not None:
            return special(self, instruction, operands, arguments)
        return EMIT[instruction.opcode](self.code, instruction, *operands)

    def _known(self, key: Hashable) -> Register | None:
        scope: Scope | None = self.code.scope
        while scope is not None:
            found = scope.memo.get(key)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def _just(self, instruction: Instruction, index: Index) -> Reads:
        return (yield instruction, index)

    def _rule(self, instruction: Instruction, index: Index) -> Reads:
        pointer = self.leaves.get(instruction)
        if pointer is not None:
            return self._load(pointer, instruction.shape, index)
        if instruction.opcode in self.rules:
            return self.rules[instruction.opcode](self, instruction, index)
        return self._elementwise(instruction, index)

    def _load(self, pointer: Pointer, shape: Shape, index: Index) -> Reads:
        return load(self.code, pointer, shape.dtype, index.offset(shape))
        yield

    def _elementwise(self, instruction: Instruction, index: Index) -> Reads:
        values = yield from self.read(instruction.operands, index)
        return EMIT[instruction.opcode](self.code, instruction, *values)


def _inner_computation(
    elemental: Elemental, instruction: Instruction, operands: list[Register], arguments: Sequence[Register]
) -> Register:
    return elemental.apply(instruction.called()[0], operands)


def _same_bits(
    elemental: Elemental, instruction: Instruction, operands: list[Register], arguments: Sequence[Register]
) -> Register:
    code, source, target = elemental.code, instruction.operands[0].shape.dtype, instruction.shape.dtype
    return operands[0] if source is target else from_bits(code, target, bits_of(code, source, operands[0]))


_SCALAR_OPS: dict[Op, Callable[[Elemental, Instruction, list[Register], Sequence[Register]], Register]] = {
    Op.PARAMETER: lambda e, i, operands, arguments: arguments[i.parameter_number],
    Op.CONSTANT: lambda e, i, operands, arguments: immediate(i.literal),
    Op.TUPLE: lambda e, i, operands, arguments: tuple(operands),
    Op.GET_TUPLE_ELEMENT: lambda e, i, operands, arguments: operands[0][i.attributes["index"]],
    Op.BROADCAST: lambda e, i, operands, arguments: operands[0],
    Op.RESHAPE: lambda e, i, operands, arguments: operands[0],
    Op.BITCAST_CONVERT: _same_bits,
    Op.BITCAST: _same_bits,
    Op.TRANSPOSE: lambda e, i, operands, arguments: operands[0],
    Op.CALL: _inner_computation,
    Op.FUSION: _inner_computation,
    Op.MAP: _inner_computation,
}
"""Opcodes in the region of a reduce or map that are not elementwise. All values in such a region are scalars."""

SCALAR_OPS = frozenset(_SCALAR_OPS)
