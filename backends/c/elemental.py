"""Computes elements: the value of an instruction at a position, from its operands' values at theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from .code import Code, Place, Var
from .types import c_type, constant

Value = Var | tuple[Var, ...]
"""The element of an array, or those of the arrays of a tuple."""

At = tuple[Place, ...]
"""A position in an array, one number for each dimension."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Where an array lies: an argument of the kernel."""

    pointer: str

    def element(self, dtype: DType, offset: Place) -> str:
        return f"(({c_type(dtype)} *){self.pointer})[{offset}]"


ElementRule = Callable[["Elemental", Instruction, At], Value]
ScalarRule = Callable[..., str]
"""(instruction, *operand expressions) → expression of the result."""


class Elemental:
    """Elements of a graph of instructions. leaves: those that are in memory. rules, scalars: how others are computed,
    by opcode; scalars are elementwise. strict: whether sums keep their order.
    """

    def __init__(
        self,
        code: Code,
        leaves: Mapping[Instruction, Memory],
        rules: Mapping[Op, ElementRule],
        scalars: Mapping[Op, ScalarRule],
        strict: bool,
    ):
        self.code, self.leaves, self.rules, self.scalars, self.strict = code, leaves, rules, scalars, strict
        self.arrays: dict[Instruction, str] = {}

    def value(self, instruction: Instruction, at: At) -> Value:
        code = self.code
        at = tuple(0 if n == 1 else p for n, p in zip(self._dims(instruction), at, strict=True))
        key = (instruction, at)
        found = code.known(key)
        if found is None:
            home = code.home(at)
            with code.within(home):
                found = self._compute(instruction, at)
            home.memo[key] = found
        return found

    def scalar(self, instruction: Instruction) -> Var:
        """The only element of an array."""
        return self.single(instruction, (0,) * instruction.shape.rank)

    def single(self, instruction: Instruction, at: At) -> Var:
        value = self.value(instruction, at)
        assert isinstance(value, Var)
        return value

    def _dims(self, instruction: Instruction) -> Sequence[int]:
        return next(shape for _, shape in instruction.shape.leaves()).dims

    def _compute(self, instruction: Instruction, at: At) -> Value:
        held = self.leaves.get(instruction)
        if held is not None:
            return self.load(held, instruction.shape, at)
        rule = self.rules.get(instruction.opcode)
        if rule is not None:
            return rule(self, instruction, at)
        return self.elementwise(instruction, [self.single(o, _within(o.shape, at)) for o in instruction.operands])

    def elementwise(self, instruction: Instruction, values: Sequence[Var]) -> Var:
        expression = self.scalars[instruction.opcode](instruction, *(v.text for v in values))
        return self.code.declare(c_type(instruction.shape.dtype), expression, *values)

    def offset(self, shape: Shape, at: At) -> Place:
        """The place of an element in memory, counted in elements."""
        return self.code.weighted(at, shape.strides)

    def load(self, memory: Memory, shape: Shape, at: At) -> Var:
        """An element in memory. It is read where it stands: the memory may change."""
        offset, dtype = self.offset(shape, at), shape.dtype
        text = memory.element(dtype, offset)
        if dtype is DType.PRED:
            text = f"{text} != 0"
        elif dtype.is_integer and dtype.bits < 8:
            text = f"tb_wrap_{dtype.value}({text})"
        name = self.code.variable(f"const {c_type(dtype)}", text)
        return Var(name, self.code.scope)

    def store(self, memory: Memory, shape: Shape, at: At, value: Var) -> None:
        self.code.line(f"{memory.element(shape.dtype, self.offset(shape, at))} = {value};")

    # -- computations of scalars ---------------------------------------------------------------------------------------
    def apply(self, computation: Computation, arguments: Sequence[Value]) -> Value:
        """The result of a computation on scalars, inline in the current scope."""
        values: dict[Instruction, Value] = {}
        for i in computation.instructions:
            operands = [values[o] for o in i.operands]
            rule = _SCALARS.get(i.opcode)
            if rule is not None:
                values[i] = rule(self, i, operands, arguments)
            else:
                values[i] = self.elementwise(i, [v for v in operands if isinstance(v, Var)])
        return values[computation.root]


def _within(shape: Shape, at: At) -> At:
    """The position in an operand of an elementwise op, which may be a scalar."""
    return at if len(shape.dims) == len(at) else (0,) * len(shape.dims)


def _same(e: Elemental, i: Instruction, operands: list[Value], arguments: Sequence[Value]) -> Value:
    return operands[0]


def _same_bits(e: Elemental, i: Instruction, operands: list[Value], arguments: Sequence[Value]) -> Value:
    (value,) = operands
    assert isinstance(value, Var)
    source, target = i.operands[0].shape.dtype, i.shape.dtype
    return e.code.declare(c_type(target), from_bits(target, bits_of(source, value.text)), value)


def _element(e: Elemental, i: Instruction, operands: list[Value], arguments: Sequence[Value]) -> Value:
    value = operands[0]
    assert isinstance(value, tuple)
    return value[i.attributes["index"]]


_SCALARS: dict[Op, Callable[[Elemental, Instruction, list[Value], Sequence[Value]], Value]] = {
    Op.PARAMETER: lambda e, i, operands, arguments: arguments[i.parameter_number],
    Op.CONSTANT: lambda e, i, operands, arguments: e.code.constant(constant(i.literal)),
    Op.TUPLE: lambda e, i, operands, arguments: tuple(v for v in operands if isinstance(v, Var)),
    Op.GET_TUPLE_ELEMENT: _element,
    Op.BROADCAST: _same,
    Op.RESHAPE: _same,
    Op.TRANSPOSE: _same,
    Op.BITCAST: _same_bits,
    Op.BITCAST_CONVERT: _same_bits,
    **dict.fromkeys(
        (Op.CALL, Op.FUSION, Op.MAP),
        lambda e, i, operands, arguments: e.apply(i.called()[0], operands),
    ),
}
"""Opcodes in the computation of a reduce or map that are not elementwise."""

SCALAR_OPS = frozenset(_SCALARS)


def stored_bits(dtype: DType) -> int:
    """The width that bitcast-convert assumes: a pred has 8 bits."""
    return 8 if dtype is DType.PRED else dtype.bits


def bits_of(dtype: DType, value: str) -> str:
    """The storage bits of a value as a uint64_t."""
    if dtype in (DType.F32, DType.F64, DType.C64):
        return f"tb_{dtype.value}_bits({value})"
    mask = (1 << stored_bits(dtype)) - 1
    return f"((uint64_t){value} & UINT64_C({mask}))"


def from_bits(dtype: DType, bits: str) -> str:
    """The inverse of `bits_of`."""
    if dtype in (DType.F32, DType.F64, DType.C64):
        return f"tb_bits_{dtype.value}({bits})"
    if dtype is DType.PRED:
        return f"({bits} & 255) != 0"
    if dtype.bits < 8:
        return f"tb_wrap_{dtype.value}({bits})" if dtype.is_integer else f"(uint8_t)({bits} & {(1 << dtype.bits) - 1})"
    return f"({c_type(dtype)})({bits})"
