"""dot: as an elemental rule (a sum per element), over columns for row-major right sides, and register-tiled for f32, f64.

Sums of floats may be reassociated, narrow floats are summed in f32, integers wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from llvmlite import ir

from ..hlo.dtypes import DType
from ..hlo.ir import Instruction
from ..hlo.opcodes import Op
from ..hlo.shapes import Shape
from . import complex_math
from .convert import convert
from .elemental import Elemental, Index, Rule
from .elementwise import real_of
from .function import Code, IndexValue
from .narrow import NARROW
from .reduce import reassociation
from .registers import Register, real_constant, register_type


@dataclass(frozen=True, slots=True)
class DotDims:
    """The role of each dimension of both operands, in the order in which the result lists them."""

    lhs_batch: tuple[int, ...]
    rhs_batch: tuple[int, ...]
    lhs_contracting: tuple[int, ...]
    rhs_contracting: tuple[int, ...]
    lhs_free: tuple[int, ...]
    rhs_free: tuple[int, ...]

    @staticmethod
    def of(instruction: Instruction) -> DotDims:
        lhs, rhs = (o.shape for o in instruction.operands[:2])
        names = ("lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims")
        lb, rb, lc, rc = (tuple(instruction.attributes.get(name, ())) for name in names)
        return DotDims(lb, rb, lc, rc, tuple(d for d in range(lhs.rank) if d not in lb + lc),
                       tuple(d for d in range(rhs.rank) if d not in rb + rc))

    def split_result(self, positions: Sequence[IndexValue]) -> tuple[list[IndexValue], list[IndexValue], list[IndexValue]]:
        """(batch, left free, right free) positions of a result index."""
        batches, lefts = len(self.lhs_batch), len(self.lhs_free)
        return (list(positions[:batches]), list(positions[batches:batches + lefts]), list(positions[batches + lefts:]))


def place(rank: int, *groups: tuple[Sequence[int], Sequence[IndexValue]]) -> list[IndexValue]:
    """Positions along `rank` dimensions from (dimensions, positions) groups."""
    result: list[IndexValue] = [0] * rank
    for dimensions, positions in groups:
        for d, position in zip(dimensions, positions, strict=True):
            result[d] = position
    return result


def accumulator_dtype(instruction: Instruction) -> DType:
    dtype = instruction.shape.dtype
    return DType.F32 if dtype in NARROW else dtype


def zero(dtype: DType) -> Register:
    part = register_type(dtype.component)
    value = real_constant(part, 0.0) if dtype.component.is_float else part(0)
    return (value, value) if dtype.is_complex else value


def multiply_add(code: Code, dtype: DType, total: Register, a: Register, b: Register) -> Register:
    """total + a·b in the accumulator's dtype."""
    if dtype.is_complex:
        real = real_of(code, dtype)
        return complex_math.add(real, total, complex_math.multiply(real, a, b))
    assert isinstance(a, ir.Value) and isinstance(b, ir.Value) and isinstance(total, ir.Value)
    if dtype is DType.PRED:
        return code.b.or_(total, code.b.and_(a, b))
    if dtype.is_integer:
        return code.b.add(total, code.b.mul(a, b))
    product = code.b.fmul(a, b)
    with reassociation(code):
        return code.b.fadd(total, product, flags=code.flags)


def dot(e: Elemental, instruction: Instruction, index: Index) -> Rule:
    code, dims = e.code, DotDims.of(instruction)
    lhs, rhs = instruction.operands[:2]
    dtype = accumulator_dtype(instruction)
    total = zero(dtype)
    sizes = [lhs.shape.dims[d] for d in dims.lhs_contracting]
    if 0 in sizes:
        return convert(code, dtype, instruction.shape.dtype, total)
    batch, left, right = dims.split_result(index.multi)
    loops, inner = [], [0] * len(sizes)
    strides = lhs.shape.strides
    for k in sorted(range(len(sizes)), key=lambda k: -strides[dims.lhs_contracting[k]]):
        loops.append(code.loop(sizes[k], carried=[total]))
        inner[k], total = loops[-1].index, loops[-1].carried[0]
    a = yield lhs, Index.at(code, lhs.shape, place(
        lhs.shape.rank, (dims.lhs_batch, batch), (dims.lhs_free, left), (dims.lhs_contracting, inner)))
    b = yield rhs, Index.at(code, rhs.shape, place(
        rhs.shape.rank, (dims.rhs_batch, batch), (dims.rhs_free, right), (dims.rhs_contracting, inner)))
    total = multiply_add(code, dtype, total, convert(code, lhs.shape.dtype, dtype, a), convert(code, rhs.shape.dtype, dtype, b))
    for loop in reversed(loops):
        total = loop.close([total])[0]
    return convert(code, dtype, instruction.shape.dtype, total)


EMIT: dict[Op, Callable[..., Rule]] = {Op.DOT: dot}


def fastest_dimension(shape: Shape) -> int | None:
    """The dimension along which neighbours in memory lie."""
    return next((d for d in shape.minor_to_major if shape.dims[d] != 1), None)
