"""A builder of HLO for passes: it infers shapes, makes fresh names, and takes loops as Python functions.

All values that a builder makes are row-major arrays without an explicit layout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..hlo.attributes import PadDim, SliceDim
from ..hlo.dtypes import DType
from ..hlo.errors import Location
from ..hlo.ir import Computation, Instruction, Literal
from ..hlo.layouts import same_bytes
from ..hlo.opclasses import ELEMENTWISE
from ..hlo.opcodes import Op
from ..hlo.records import dataclass, field, replace
from ..hlo.shapes import Shape, array, tuple_shape
from .flatten import copy_body
from .rewriting import Names

Number = bool | int | float | complex


@dataclass(eq=False)
class Builder:
    """Builds instructions of one computation.

    computations: regions built so far, callees first. uses: number of users of a value, for rules that pay off only if
    the value has one user.
    """

    names: Names
    stem: str
    location: Location | None = None
    instructions: list[Instruction] = field(default_factory=list)
    computations: list[Computation] = field(default_factory=list)
    uses: Mapping[Instruction, int] = field(default_factory=dict)
    _numbers: dict[tuple[bytes, DType, tuple[int, ...]], Instruction] = field(default_factory=dict)

    def is_sole(self, x: Instruction) -> bool:
        """Whether x has at most one user."""
        return self.uses.get(x, 1) <= 1

    def op(self, opcode: Op, shape: Shape, *operands: Instruction, **attributes: Any) -> Instruction:
        """Any instruction, with its shape given."""
        name = self.names.fresh(f"{self.stem}.{opcode.value}")
        return self.add(Instruction(opcode, name, shape, operands, attributes, self.location))

    def add(self, instruction: Instruction) -> Instruction:
        self.instructions.append(instruction)
        return instruction

    # --- constants ---------------------------------------------------------------------------------------------------
    def constant(self, value: Number | np.ndarray, dtype: DType, dims: Sequence[int] = ()) -> Instruction:
        """A constant of shape `dims`, `value` broadcast to it; equal constants are made once per builder."""
        value = np.array(value).astype(dtype.numpy)
        if value.ndim:
            return self._literal(value, dtype)
        key = (value.tobytes(), dtype, tuple(dims))
        made = self._numbers.get(key)
        if made is None:
            scalar = self._literal(value, dtype) if not dims else self.constant(value, dtype)
            made = self._numbers[key] = self.broadcast(scalar, dims)
        return made

    def _literal(self, value: np.ndarray, dtype: DType) -> Instruction:
        value.setflags(write=False)
        shape = array(dtype, *value.shape)
        return self.op(Op.CONSTANT, shape, literal=Literal(shape, value))

    def iota(self, dtype: DType, dims: Sequence[int], dimension: int) -> Instruction:
        return self.op(Op.IOTA, array(dtype, *dims), iota_dimension=dimension)

    # --- elementwise -------------------------------------------------------------------------------------------------
    def unary(self, opcode: Op, x: Instruction, dtype: DType | None = None) -> Instruction:
        return self.op(opcode, array(dtype or x.shape.dtype, *x.shape.dims), x)

    def binary(self, opcode: Op, x: Instruction, y: Instruction | Number) -> Instruction:
        """Both operands have one shape, except: a Python number takes x's type, and a scalar is broadcast."""
        if not isinstance(y, Instruction):
            y = self.constant(y, x.shape.dtype, x.shape.dims)
        x, y = self._meet(x, y)
        return self.op(opcode, array(x.shape.dtype, *x.shape.dims), x, y)

    def compare(self, x: Instruction, direction: str, y: Instruction | Number, **attributes: Any) -> Instruction:
        if not isinstance(y, Instruction):
            y = self.constant(y, x.shape.dtype, x.shape.dims)
        x, y = self._meet(x, y)
        return self.op(Op.COMPARE, array(DType.PRED, *x.shape.dims), x, y, direction=direction, **attributes)

    def select(self, test: Instruction, x: Instruction, y: Instruction) -> Instruction:
        """x and y have one shape; a scalar test is broadcast to it."""
        return self.op(Op.SELECT, array(x.shape.dtype, *x.shape.dims), self.broadcast(test, x.shape.dims), x, y)

    def convert(self, x: Instruction, dtype: DType) -> Instruction:
        return x if x.shape.dtype is dtype else self.unary(Op.CONVERT, x, dtype)

    def bits(self, x: Instruction, dtype: DType) -> Instruction:
        """A bitcast-convert between types of equal width."""
        return x if x.shape.dtype is dtype else self.unary(Op.BITCAST_CONVERT, x, dtype)

    def _meet(self, x: Instruction, y: Instruction) -> tuple[Instruction, Instruction]:
        if x.shape.rank == 0 or y.shape.rank == 0:
            return self.broadcast(x, y.shape.dims), self.broadcast(y, x.shape.dims)
        return x, y

    # --- movement ----------------------------------------------------------------------------------------------------
    def broadcast(self, x: Instruction, dims: Sequence[int], dimensions: Sequence[int] = ()) -> Instruction:
        """Dimension k of x becomes dimensions[k] of the result; a scalar is broadcast to `dims`.

        Returns x itself if it has shape `dims` already, or if it is no scalar and `dimensions` is empty.
        """
        if tuple(dims) == x.shape.dims or (x.shape.rank and not dimensions):
            return x
        return self.op(Op.BROADCAST, array(x.shape.dtype, *dims), x, dimensions=tuple(dimensions))

    def reshape(self, x: Instruction, dims: Sequence[int]) -> Instruction:
        return x if tuple(dims) == x.shape.dims else self.op(Op.RESHAPE, array(x.shape.dtype, *dims), x)

    def transpose(self, x: Instruction, order: Sequence[int]) -> Instruction:
        if tuple(order) == tuple(range(x.shape.rank)):
            return x
        dims = [x.shape.dims[d] for d in order]
        return self.op(Op.TRANSPOSE, array(x.shape.dtype, *dims), x, dimensions=tuple(order))

    def slice(self, x: Instruction, dims: Sequence[SliceDim | None]) -> Instruction:
        """Slice x; None takes a whole dimension."""
        taken = tuple(s or SliceDim(0, n) for s, n in zip(dims, x.shape.dims, strict=True))
        sizes = [-(-(s.limit - s.start) // s.stride) for s in taken]
        if tuple(sizes) == x.shape.dims:
            return x
        return self.op(Op.SLICE, array(x.shape.dtype, *sizes), x, slice=taken)

    def slice_in(self, x: Instruction, dimension: int, start: int, limit: int, stride: int = 1) -> Instruction:
        dims: list[SliceDim | None] = [None] * x.shape.rank
        dims[dimension] = SliceDim(start, limit, stride)
        return self.slice(x, dims)

    def pad(self, x: Instruction, fill: Instruction, dims: Sequence[PadDim]) -> Instruction:
        if not any(p.low or p.high or p.interior for p in dims):
            return x
        sizes = [n + p.low + p.high + max(n - 1, 0) * p.interior for n, p in zip(x.shape.dims, dims, strict=True)]
        return self.op(Op.PAD, array(x.shape.dtype, *sizes), x, fill, padding=tuple(dims))

    def concatenate(self, parts: Sequence[Instruction], dimension: int) -> Instruction:
        if len(parts) == 1:
            return parts[0]
        dims = list(parts[0].shape.dims)
        dims[dimension] = sum(p.shape.dims[dimension] for p in parts)
        return self.op(Op.CONCATENATE, array(parts[0].shape.dtype, *dims), *parts, dimensions=(dimension,))

    def dynamic_slice(self, x: Instruction, starts: Sequence[Instruction], sizes: Sequence[int]) -> Instruction:
        return self.op(Op.DYNAMIC_SLICE, array(x.shape.dtype, *sizes), x, *starts, dynamic_slice_sizes=tuple(sizes))

    def dynamic_update_slice(self, x: Instruction, update: Instruction, starts: Sequence[Instruction]) -> Instruction:
        return self.op(Op.DYNAMIC_UPDATE_SLICE, array(x.shape.dtype, *x.shape.dims), x, update, *starts)

    def reduce(self, x: Instruction, opcode: Op, init: Number, dimensions: Sequence[int]) -> Instruction:
        """A reduce by one binary op, from the initial value `init`."""
        scalar = array(x.shape.dtype)
        region = self.region("region", [scalar, scalar], lambda b, p: b.binary(opcode, p[0], p[1]))
        dims = [n for d, n in enumerate(x.shape.dims) if d not in dimensions]
        return self.op(
            Op.REDUCE,
            array(x.shape.dtype, *dims),
            x,
            self.constant(init, x.shape.dtype),
            dimensions=tuple(dimensions),
            to_apply=region,
        )

    def plain(self, x: Instruction) -> Instruction:
        """x in row-major order, copied if necessary."""
        return x if x.shape.is_row_major else self.op(Op.COPY, array(x.shape.dtype, *x.shape.dims), x)

    # --- tuples, regions, loops --------------------------------------------------------------------------------------
    def tuple(self, parts: Sequence[Instruction]) -> Instruction:
        return self.op(Op.TUPLE, tuple_shape(*(p.shape.without_layout() for p in parts)), *parts)

    def elements(self, whole: Instruction) -> list[Instruction]:
        return [self.op(Op.GET_TUPLE_ELEMENT, s, whole, index=n) for n, s in enumerate(whole.shape.elements)]

    def region(
        self, stem: str, shapes: Sequence[Shape], make: Callable[[Builder, list[Instruction]], Instruction]
    ) -> Computation:
        """Build a computation with parameters of these shapes; `make(builder, parameters)` returns its root."""
        inner = Builder(self.names, f"{self.stem}.{stem}", self.location, [], self.computations)
        parameters = [inner.op(Op.PARAMETER, s, parameter_number=n) for n, s in enumerate(shapes)]
        root = make(inner, parameters)
        made = Computation(self.names.fresh(f"{self.stem}.{stem}"), tuple(inner.instructions), root)
        self.computations.append(made)
        return made

    def inline(self, computation: Computation, arguments: Sequence[Instruction]) -> Instruction:
        """Copy the computation's instructions, applied to `arguments`, and return the copied root.

        The copies call the same computations as the originals: those have one caller only if the original is dropped.
        """
        body, root = copy_body(computation, tuple(arguments), self.names)
        self.instructions += body
        return root

    def loop(
        self,
        init: Sequence[Instruction],
        test: Callable[[Builder, list[Instruction]], Instruction],
        step: Callable[[Builder, list[Instruction]], Sequence[Instruction]],
    ) -> list[Instruction]:
        """A while loop over values. Neither function may use values from outside the loop.

        test: returns a pred. step: returns the values of the next iteration. Returns the final values.
        """
        start = self.tuple(init)
        condition = self.region("condition", [start.shape], lambda b, p: test(b, b.elements(p[0])))
        body = self.region("body", [start.shape], lambda b, p: b.tuple(step(b, b.elements(p[0]))))
        return self.elements(self.op(Op.WHILE, start.shape, start, condition=condition, body=body))

    def counted(
        self,
        count: int,
        init: Sequence[Instruction],
        step: Callable[[Builder, Instruction, list[Instruction]], Sequence[Instruction]],
    ) -> list[Instruction]:
        """Compute `values = step(builder, k, values)` for k = 0 … count - 1, with k an s32; no loop if count is 1."""
        zero = self.constant(0, DType.S32)
        if count == 1:
            return list(step(self, zero, list(init)))
        return self.loop(
            [zero, *init],
            lambda b, v: b.compare(v[0], "LT", count),
            lambda b, v: [b.binary(Op.ADD, v[0], 1), *step(b, v[0], v[1:])],
        )[1:]

    def fit(self, x: Instruction, shape: Shape) -> Instruction:
        """x in the layout of `shape`, copied if necessary."""
        return x if same_bytes(x.shape, shape) else self.op(Op.COPY, shape, x)

    # --- the end -----------------------------------------------------------------------------------------------------
    def finish(self, result: Instruction, replaced: Instruction) -> Instruction:
        """Give `result` the name and shape of the instruction it replaces; it becomes the last instruction made."""
        if result.opcode is Op.TUPLE and self.instructions[-1] is result:
            self.instructions.pop()
            parts = [self.fit(o, s) for o, s in zip(result.operands, replaced.shape.elements, strict=True)]
            return self.add(result.replace(name=replaced.name, shape=replaced.shape, operands=tuple(parts)))
        fits = same_bytes(result.shape, replaced.shape)
        if fits and self.instructions and self.instructions[-1] is result:
            self.instructions.pop()
            attributes = result.attributes
            return self.add(result.replace(name=replaced.name, shape=replaced.shape, attributes=attributes))
        return self.add(Instruction(Op.COPY, replaced.name, replaced.shape, (result,), location=self.location))


def is_pointwise(region: Computation) -> bool:
    """Whether a region of scalars may be applied to whole arrays."""
    return all(
        i.opcode in ELEMENTWISE - {Op.STOCHASTIC_CONVERT} | {Op.PARAMETER, Op.CONSTANT}
        or (i.opcode in (Op.BROADCAST, Op.RESHAPE) and i.shape.rank == 0)
        or (i.opcode is Op.TUPLE and i is region.root)
        for i in region.instructions
    ) and all(i.shape.rank == 0 for i in region.instructions if i.shape.is_array)


def apply_pointwise(b: Builder, region: Computation, arguments: Sequence[Instruction]) -> list[Instruction]:
    """Apply a pointwise region to arrays of one shape. Returns the leaves of its result."""
    dims = arguments[0].shape.dims
    new: dict[Instruction, Instruction] = {}
    for i in region.instructions:
        if i.opcode is Op.PARAMETER:
            new[i] = arguments[i.parameter_number]
        elif i.opcode is Op.CONSTANT:
            new[i] = b.broadcast(b.op(Op.CONSTANT, i.shape.without_layout(), **i.attributes), dims)
        elif i.opcode in (Op.BROADCAST, Op.RESHAPE):
            new[i] = new[i.operands[0]]
        elif i.opcode is not Op.TUPLE:
            shape = replace(i.shape, dims=dims, layout=None)
            new[i] = b.op(i.opcode, shape, *(new[o] for o in i.operands), **_kept(i.attributes))
    leaves = region.root.operands if region.root.opcode is Op.TUPLE else (region.root,)
    return [new[leaf] for leaf in leaves]


def _kept(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in attributes.items() if k not in ("metadata", "sharding", "control-predecessors")}


def sole_binary(region: Computation) -> Op | None:
    """The opcode of a region that is one binary op of its two parameters, in either order if the op is commutative."""
    op = region.root
    if len(op.operands) != 2 or any(o.opcode is not Op.PARAMETER for o in op.operands):
        return None
    numbers = [o.parameter_number for o in op.operands]
    return op.opcode if numbers == [0, 1] or (numbers == [1, 0] and op.opcode in COMMUTATIVE) else None


COMMUTATIVE = frozenset({Op.ADD, Op.MULTIPLY, Op.MAXIMUM, Op.MINIMUM, Op.AND, Op.OR, Op.XOR})


def identity_of(opcode: Op, dtype: DType) -> Number | None:
    """The identity element of a binary op, from which a reduction may start; None if it has none."""
    if opcode is Op.ADD:
        return -0.0 if dtype.is_float else 0
    if opcode is Op.MULTIPLY:
        return 1
    if dtype is DType.PRED or dtype.is_integer:
        signed = dtype.is_signed
        least, most = (-(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1) if signed else (0, 2**dtype.bits - 1)
        ones = -1 if signed else most
        return {Op.MAXIMUM: least, Op.MINIMUM: most, Op.AND: ones, Op.OR: 0, Op.XOR: 0}.get(opcode)
    if dtype in (DType.F16, DType.BF16, DType.F32, DType.F64):
        return {Op.MAXIMUM: -np.inf, Op.MINIMUM: np.inf}.get(opcode)
    return None


Rewrite = Callable[[Instruction, Builder], Instruction | None]
"""Builds the replacement of an instruction and returns it; None if it stays."""
