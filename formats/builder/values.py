"""XlaOp: a value of a computation that is being built, with Python's operators and XlaBuilder's implicit broadcasting:
scalars, broadcast_dimensions, and dimensions of size 1.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np

from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape

ComputationLike = Module | Computation | Callable[..., Any]
"""What stands for XLA's XlaComputation: a built module (its entry), or a function of XlaOps, which is called once."""


class Building(Protocol):
    """The part of XlaBuilder that its values use: builder.py imports this file."""

    name: str

    @abstractmethod
    def add(
        self,
        opcode: Op | str,
        operands: Sequence[Value] = (),
        shape: Any = None,
        *,
        name: str | None = None,
        element_type: Any = None,
        **attributes: Any,
    ) -> XlaOp: ...

    @abstractmethod
    def value(self, value: Value, like: XlaOp | None = None) -> XlaOp: ...

    @abstractmethod
    def computation(
        self, source: ComputationLike, shapes: Sequence[Shape] | None = None, name: str = ""
    ) -> Computation: ...

    @abstractmethod
    def dtype(self, value: Any) -> DType: ...

    @abstractmethod
    def shape(self, value: Any) -> Shape: ...

    @abstractmethod
    def attribute(self, key: str, value: Any) -> Any: ...

    @abstractmethod
    def fail(self, message: str, remedy: str | None = None) -> NoReturn: ...


class XlaOp:
    """A value of the computation that `builder` builds.

    The operators are those of HLO: `/` of integers truncates, `%` has the sign of the dividend, `>>` is arithmetic for
    signed and logical for unsigned integers. `==` and `<` compare elements: an op has no truth value. A Python number
    takes the element type of the other side; a scalar is broadcast.
    """

    __slots__ = ("builder", "instruction")
    __array_ufunc__ = None  # numpy leaves `array + op` to the op

    def __init__(self, builder: Building, instruction: Instruction):
        self.builder, self.instruction = builder, instruction

    @property
    def name(self) -> str:
        return self.instruction.name

    @property
    def shape(self) -> Shape:
        return self.instruction.shape

    @property
    def dtype(self) -> DType:
        return self.instruction.shape.dtype

    @property
    def dims(self) -> tuple[int, ...]:
        return self.instruction.shape.dims

    @property
    def rank(self) -> int:
        return self.instruction.shape.rank

    def __repr__(self) -> str:
        return f"<XlaOp {self.name} = {self.shape} {self.instruction.opcode.value}>"

    __hash__ = object.__hash__

    def __bool__(self) -> bool:  # noqa: PLE0304  # it raises
        self.builder.fail(
            f"'{self.name}' has no truth value while the module is built",
            "use ops.select, ops.conditional or ops.while_",
        )

    # -- tuples --------------------------------------------------------------------------------------------------------
    def __getitem__(self, index: int) -> XlaOp:
        """An element of a tuple (GetTupleElement)."""
        if not self.shape.is_tuple or not isinstance(index, int):
            self.builder.fail(f"'{self.name}' = {self.shape} takes no index {index!r}", "use ops.slice for arrays")
        count = len(self.shape.elements)
        return self.builder.add(Op.GET_TUPLE_ELEMENT, [self], index=index + count if index < 0 else index)

    def __len__(self) -> int:
        if not self.shape.is_tuple:
            self.builder.fail(f"'{self.name}' = {self.shape} is no tuple and has no length", "use op.dims")
        return len(self.shape.elements)

    def __iter__(self) -> Iterator[XlaOp]:
        return iter([self[n] for n in range(len(self))])

    # -- operators -----------------------------------------------------------------------------------------------------
    def _with(self, opcode: Op, other: Any, turned: bool = False, **attributes: Any) -> XlaOp:
        return binary(opcode, other, self, **attributes) if turned else binary(opcode, self, other, **attributes)

    def __neg__(self) -> XlaOp:
        return self.builder.add(Op.NEGATE, [self])

    def __pos__(self) -> XlaOp:
        return self

    def __invert__(self) -> XlaOp:
        return self.builder.add(Op.NOT, [self])

    def __abs__(self) -> XlaOp:
        return self.builder.add(Op.ABS, [self])

    def __add__(self, other: Value) -> XlaOp:
        return self._with(Op.ADD, other)

    def __radd__(self, other: Value) -> XlaOp:
        return self._with(Op.ADD, other, True)

    def __sub__(self, other: Value) -> XlaOp:
        return self._with(Op.SUBTRACT, other)

    def __rsub__(self, other: Value) -> XlaOp:
        return self._with(Op.SUBTRACT, other, True)

    def __mul__(self, other: Value) -> XlaOp:
        return self._with(Op.MULTIPLY, other)

    def __rmul__(self, other: Value) -> XlaOp:
        return self._with(Op.MULTIPLY, other, True)

    def __truediv__(self, other: Value) -> XlaOp:
        return self._with(Op.DIVIDE, other)

    def __rtruediv__(self, other: Value) -> XlaOp:
        return self._with(Op.DIVIDE, other, True)

    def __mod__(self, other: Value) -> XlaOp:
        return self._with(Op.REMAINDER, other)

    def __rmod__(self, other: Value) -> XlaOp:
        return self._with(Op.REMAINDER, other, True)

    def __pow__(self, other: Value) -> XlaOp:
        return self._with(Op.POWER, other)

    def __rpow__(self, other: Value) -> XlaOp:
        return self._with(Op.POWER, other, True)

    def __and__(self, other: Value) -> XlaOp:
        return self._with(Op.AND, other)

    def __rand__(self, other: Value) -> XlaOp:
        return self._with(Op.AND, other, True)

    def __or__(self, other: Value) -> XlaOp:
        return self._with(Op.OR, other)

    def __ror__(self, other: Value) -> XlaOp:
        return self._with(Op.OR, other, True)

    def __xor__(self, other: Value) -> XlaOp:
        return self._with(Op.XOR, other)

    def __rxor__(self, other: Value) -> XlaOp:
        return self._with(Op.XOR, other, True)

    def __lshift__(self, other: Value) -> XlaOp:
        return self._with(Op.SHIFT_LEFT, other)

    def __rshift__(self, other: Value) -> XlaOp:
        return self._with(Op.SHIFT_RIGHT_ARITHMETIC if self.dtype.is_signed else Op.SHIFT_RIGHT_LOGICAL, other)

    def __eq__(self, other: Value) -> XlaOp:  # type: ignore[override]
        return self._with(Op.COMPARE, other, direction="EQ")

    def __ne__(self, other: Value) -> XlaOp:  # type: ignore[override]
        return self._with(Op.COMPARE, other, direction="NE")

    def __lt__(self, other: Value) -> XlaOp:
        return self._with(Op.COMPARE, other, direction="LT")

    def __le__(self, other: Value) -> XlaOp:
        return self._with(Op.COMPARE, other, direction="LE")

    def __gt__(self, other: Value) -> XlaOp:
        return self._with(Op.COMPARE, other, direction="GT")

    def __ge__(self, other: Value) -> XlaOp:
        return self._with(Op.COMPARE, other, direction="GE")


Value = XlaOp | np.ndarray | np.generic | bool | int | float | complex
"""An op, or an array or number that becomes a constant."""


# -- implicit broadcasting ---------------------------------------------------------------------------------------------
def binary(opcode: Op, lhs: Value, rhs: Value, broadcast_dimensions: Sequence[int] = (), **attributes: Any) -> XlaOp:
    """An op of two operands, which are first brought to one shape.

    A scalar is broadcast. Dimension k of the operand of lower rank becomes broadcast_dimensions[k] of the other. Then
    a dimension of size 1 is stretched to the other operand's size. A Python number takes the other side's type.
    """
    x, y = both(lhs, rhs)
    b = x.builder
    if x.shape.is_array and y.shape.is_array:
        if x.rank != y.rank:
            x, y = (
                (_raised(x, y, broadcast_dimensions), y)
                if x.rank < y.rank
                else (x, _raised(y, x, broadcast_dimensions))
            )
        elif broadcast_dimensions and tuple(broadcast_dimensions) != tuple(range(x.rank)):
            b.fail(f"broadcast_dimensions={tuple(broadcast_dimensions)} for operands of one rank", "leave it out")
        dims = [m if n == 1 else n for n, m in zip(x.dims, y.dims)]
        x, y = stretched(x, dims), stretched(y, dims)
    return b.add(opcode, [x, y], **attributes)


def both(lhs: Value, rhs: Value) -> tuple[XlaOp, XlaOp]:
    """Both operands as ops of one builder; a number or array becomes a constant."""
    if isinstance(lhs, XlaOp):
        return lhs, lhs.builder.value(rhs, lhs)
    if isinstance(rhs, XlaOp):
        return rhs.builder.value(lhs, rhs), rhs
    raise TypeError(f"neither {type(lhs).__name__} nor {type(rhs).__name__} is an XlaOp: make one with ops.constant")


def _raised(x: XlaOp, other: XlaOp, dimensions: Sequence[int]) -> XlaOp:
    """The operand of lower rank in the rank of the other."""
    b = x.builder
    if x.rank == 0:
        return broadcast_to(x, other.dims, ())
    if not dimensions:
        b.fail(
            f"operands {x.shape} and {other.shape} differ in rank",
            "say with broadcast_dimensions=(…) which dimensions of the larger one the smaller one has",
        )
    dims = list(other.dims)
    if len(dimensions) != x.rank or not all(0 <= d < other.rank for d in dimensions):
        b.fail(
            f"broadcast_dimensions={tuple(dimensions)} does not map the {x.rank} dimensions of {x.shape} to those of "
            f"{other.shape}",
            f"give {x.rank} distinct numbers from 0 to {other.rank - 1}",
        )
    if list(dimensions) != sorted(set(dimensions)):
        b.fail(f"broadcast_dimensions={tuple(dimensions)} is not strictly increasing", "transpose the operand first")
    for k, d in enumerate(dimensions):
        dims[d] = x.dims[k]
    return broadcast_to(x, dims, dimensions)


def broadcast_to(x: XlaOp, dims: Sequence[int], dimensions: Sequence[int]) -> XlaOp:
    """HLO's broadcast: dimension k of x becomes dimensions[k] of an array of sizes `dims`."""
    return x.builder.add(Op.BROADCAST, [x], Shape(x.dtype, tuple(dims)), dimensions=tuple(dimensions))


def stretched(x: XlaOp, dims: Sequence[int]) -> XlaOp:
    """x with its dimensions of size 1 repeated to `dims`; other sizes stay, also if they differ."""
    grown = [d for d, (n, m) in enumerate(zip(x.dims, dims, strict=True)) if n == 1 and m != 1]
    if not grown:
        return x
    kept = [d for d in range(x.rank) if d not in grown]
    flat = x.builder.add(Op.RESHAPE, [x], Shape(x.dtype, tuple(x.dims[d] for d in kept)))
    return broadcast_to(flat, [dims[d] if d in grown else n for d, n in enumerate(x.dims)], kept)
