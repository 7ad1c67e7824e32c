"""Makes random inputs on which a module does meaningful work.

The rules follow XLA's MakeFakeArguments. A parameter that becomes an index stays in range (dynamic-slice,
dynamic-update-slice, gather, scatter, conditional, sizes) and is sorted or unique if the instruction promises it. A
parameter that is the initial value of a reduction is the identity of the reduction. All others are uniform: floats in
[-1, 1), small non-negative integers, pred with probability 1/2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..hlo.dtypes import DType
from ..hlo.errors import OutOfMemoryError
from ..hlo.ir import Computation, Instruction, Module
from ..hlo.opcodes import Op
from ..hlo.shapes import Shape, ShapeIndex

SMALL = 10
"""Unconstrained integers are in [0, SMALL), or in the range of their type if it is smaller."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """Requirements of all uses of a parameter. bound: exclusive limit. start: the value is this opcode's identity."""

    bound: int | None = None
    is_sorted: bool = False
    unique: bool = False
    start: Op | None = None

    def and_(self, other: Constraint) -> Constraint:
        bounds = [b for b in (self.bound, other.bound) if b is not None]
        return Constraint(
            min(bounds, default=None),
            self.is_sorted or other.is_sorted,
            self.unique or other.unique,
            self.start or other.start,
        )


def fake_inputs(module: Module, seed: int = 0) -> list[np.ndarray]:
    """One array per array leaf of the entry parameters. Equal modules and seeds give equal arrays.

    Raises OutOfMemoryError, which names the parameter.
    """
    random = np.random.Generator(np.random.PCG64(seed))
    return each_leaf(module, lambda p, index, shape: make(shape, constraint_of(module, p, index), random))


def each_leaf(module: Module, make_one: Callable[[Instruction, ShapeIndex, Shape], np.ndarray]) -> list[np.ndarray]:
    """An array for each array leaf of the entry parameters. Raises OutOfMemoryError, which names the parameter."""
    made = []
    for parameter in module.entry.parameters:
        for index, shape in parameter.shape.leaves():
            if shape.is_array:
                try:
                    made.append(make_one(parameter, index, shape))
                except MemoryError as error:
                    path = "".join(f"{{{i}}}" for i in index)
                    what = f"parameter {parameter.name}{path}, {shape.without_layout()},"
                    raise OutOfMemoryError(what, shape.bytes, location=parameter.location) from error
    return made


def make(shape: Shape, constraint: Constraint, random: np.random.Generator) -> np.ndarray:
    """A random array of the shape that satisfies a constraint."""
    dtype, dims = shape.dtype, shape.dims
    if constraint.start is not None:
        return np.full(dims, identity(constraint.start, dtype), dtype.numpy)
    if dtype.is_integer:
        return _integers(shape, constraint, random)
    if dtype is DType.PRED:
        return _drawn(shape, lambda count: random.integers(0, 2, count))

    def uniform(count: int) -> np.ndarray:
        values = random.uniform(-1, 1, count)
        # f8e8m0fnu has only powers of two and no sign
        return np.abs(values) + 2.0**-3 if dtype is DType.F8E8M0FNU else values

    return _ordered(_drawn(shape, uniform), constraint)


BLOCK = 1 << 16
"""Elements that are drawn at once, in 8 bytes each: an array of a narrow type needs no more memory than its own."""


def _drawn(shape: Shape, draw: Callable[[int], np.ndarray]) -> np.ndarray:
    """An array whose elements are drawn in row-major order; of complex numbers, the real parts first.

    The values do not depend on the size of a block.
    """
    values = np.empty(shape.size, shape.dtype.numpy)
    for part in (values.real, values.imag) if shape.dtype.is_complex else (values,):
        for start in range(0, shape.size, BLOCK):
            block = part[start : start + BLOCK]
            block[...] = draw(block.size)
    return values.reshape(shape.dims)


def _integers(shape: Shape, constraint: Constraint, random: np.random.Generator) -> np.ndarray:
    dtype, size = shape.dtype, shape.size
    largest = 2 ** (dtype.bits - (1 if dtype.is_signed else 0)) - 1
    bound = min(SMALL if constraint.bound is None else max(constraint.bound, 1), largest + 1)
    if constraint.unique and constraint.bound is None:
        bound = min(max(size, 1), largest + 1)
    if constraint.unique and size <= bound:
        values = random.choice(bound, size, replace=False) if bound < 2**20 else np.arange(size)
        return _ordered(values.reshape(shape.dims), constraint).astype(dtype.numpy)
    return _ordered(_drawn(shape, lambda count: random.integers(0, bound, count)), constraint)


def _ordered(values: np.ndarray, constraint: Constraint) -> np.ndarray:
    """The values, sorted along the first dimension if the constraint requires it."""
    return np.sort(values, axis=0) if constraint.is_sorted and values.ndim else values


def identity(opcode: Op, dtype: DType) -> float | int | bool:
    """The identity of a reduction: 0 for add, 1 for multiply, the least value for maximum …"""
    if opcode is Op.MULTIPLY:
        return 1
    if opcode in (Op.MAXIMUM, Op.MINIMUM):
        if dtype is DType.PRED:
            return opcode is Op.MINIMUM
        if dtype.is_integer:
            low = -(2 ** (dtype.bits - 1)) if dtype.is_signed else 0
            return low if opcode is Op.MAXIMUM else low + 2**dtype.bits - 1
        return float("-inf") if opcode is Op.MAXIMUM else float("inf")
    if opcode is Op.AND:
        return True if dtype is DType.PRED else (-1 if dtype.is_signed else 2**dtype.bits - 1)
    return 0


IDENTITIES = frozenset({Op.ADD, Op.MULTIPLY, Op.MAXIMUM, Op.MINIMUM, Op.AND, Op.OR, Op.XOR})


# --- constraints -----------------------------------------------------------------------------------------------------


def constraint_of(module: Module, parameter: Instruction, index: ShapeIndex) -> Constraint:
    """The combined constraint of all uses of one leaf of an entry parameter."""
    found = Constraint()
    for user, position in uses(module.entry, parameter, index):
        rule = CONSTRAINTS.get(user.opcode)
        if rule is not None:
            found = found.and_(rule(user, position))
    return found


def uses(computation: Computation, instruction: Instruction, index: ShapeIndex) -> Iterator[tuple[Instruction, int]]:
    """(user, operand number) of each use of a value, also in called computations and through ops that keep its
    elements.
    """
    seen: set[tuple[Computation, Instruction, ShapeIndex]] = set()
    work = [(computation, instruction, index)]
    while work:
        item = work.pop()
        if item in seen:
            continue
        seen.add(item)
        home, value, path = item
        for user in home.users[value]:
            for position, operand in enumerate(user.operands):
                if operand is value:
                    if not path:
                        yield user, position
                    work += _onward(home, user, position, path)


Place = tuple[Computation, Instruction, ShapeIndex]


def _onward(home: Computation, user: Instruction, position: int, path: ShapeIndex) -> Iterator[Place]:
    """The places where a value continues behind a user."""
    if user.opcode is Op.TUPLE:
        yield home, user, (position, *path)
    elif user.opcode is Op.GET_TUPLE_ELEMENT:
        if path and path[0] == user.attributes["index"]:
            yield home, user, path[1:]
    elif user.opcode in (Op.CALL, Op.FUSION, Op.ASYNC_START):
        for called in user.called():
            yield called, called.parameters[position], path
    elif user.opcode is Op.WHILE:
        for called in user.called():
            yield called, called.parameters[0], path
    elif user.opcode is Op.CONDITIONAL and position > 0:
        called = user.called()[position - 1]
        yield called, called.parameters[0], path
    elif user.opcode in THROUGH and (user.opcode is not Op.SELECT or position > 0):
        yield home, user, path


THROUGH = frozenset(
    {
        Op.COPY,
        Op.BITCAST,
        Op.RESHAPE,
        Op.TRANSPOSE,
        Op.BROADCAST,
        Op.SLICE,
        Op.CONVERT,
        Op.CONCATENATE,
        Op.SELECT,
        Op.REVERSE,
        Op.OPT_BARRIER,
    }
)
"""Opcodes whose result contains the elements of the operand."""


def _dynamic_slice(user: Instruction, position: int) -> Constraint:
    return _start(user, position, 1, user.attributes["dynamic_slice_sizes"])


def _dynamic_update_slice(user: Instruction, position: int) -> Constraint:
    return _start(user, position, 2, user.operands[1].shape.dims)


def _start(user: Instruction, position: int, first: int, sizes: tuple[int, ...]) -> Constraint:
    room = [n - s + 1 for n, s in zip(user.operands[0].shape.dims, sizes, strict=True)]
    if position < first or not room:
        return Constraint()
    return Constraint(bound=min(room) if user.operands[first].shape.rank else room[position - first])


def _gather(user: Instruction, position: int) -> Constraint:
    if position != 1:
        return Constraint()
    a, dims = user.attributes, user.operands[0].shape.dims
    room = [dims[d] - a["slice_sizes"][d] + 1 for d in a["start_index_map"]]
    return Constraint(bound=min(room, default=None), is_sorted=bool(a.get("indices_are_sorted")))


def _scatter(user: Instruction, position: int) -> Constraint:
    count = len(user.operands) // 2
    if position != count:
        return Constraint()
    a, dims = user.attributes, user.operands[0].shape.dims
    dropped = {*a.get("inserted_window_dims", ()), *a.get("input_batching_dims", ())}
    kept = [d for d in range(len(dims)) if d not in dropped]
    window = dict(zip(kept, [user.operands[-1].shape.dims[d] for d in a.get("update_window_dims", ())], strict=True))
    room = [dims[d] - window.get(d, 1) + 1 for d in a.get("scatter_dims_to_operand_dims", ())]
    return Constraint(
        bound=min(room, default=None), is_sorted=bool(a.get("indices_are_sorted")), unique=bool(a.get("unique_indices"))
    )


def _reduction(key: str, first: Callable[[Instruction], int]) -> Callable[[Instruction, int], Constraint]:
    def rule(user: Instruction, position: int) -> Constraint:
        root = user.attributes[key].root
        return Constraint(start=root.opcode) if position >= first(user) and root.opcode in IDENTITIES else Constraint()

    return rule


def _half(user: Instruction) -> int:
    return len(user.operands) // 2


def _sort(_user: Instruction, position: int) -> Constraint:
    return Constraint(unique=position == 0)


def _conditional(user: Instruction, position: int) -> Constraint:
    return Constraint(bound=len(user.called())) if position == 0 else Constraint()


def _size(user: Instruction, position: int) -> Constraint:
    return Constraint(bound=user.shape.dims[user.dimensions[0]] + 1) if position == 1 else Constraint()


CONSTRAINTS: dict[Op, Callable[[Instruction, int], Constraint]] = {
    Op.DYNAMIC_SLICE: _dynamic_slice,
    Op.DYNAMIC_UPDATE_SLICE: _dynamic_update_slice,
    Op.GATHER: _gather,
    Op.SCATTER: _scatter,
    Op.REDUCE: _reduction("to_apply", _half),
    Op.REDUCE_WINDOW: _reduction("to_apply", _half),
    Op.SELECT_AND_SCATTER: _reduction("scatter", lambda _: 2),
    Op.SORT: _sort,
    Op.CONDITIONAL: _conditional,
    Op.SET_DIMENSION_SIZE: _size,
}
"""The requirements of an opcode on the value of its operand number `position`."""
