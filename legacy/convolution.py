"""convolution: as an elemental rule (one sum per element), and as a root over columns: neighbours in memory whose sums
are computed together, on the stack (convolution_columns.py) or in vector registers (convolution_held.py,
convolution_channels.py, convolution_depth.py). Sums of floats may be reassociated, narrow floats are summed in f32,
integers wrap.
"""

from __future__ import annotations

from collections.abc import Callable

from ..hlo.ir import Instruction
from ..hlo.opcodes import Op
from ..planning.partition import Partition
from .builder import IndexValue
from .convert import convert
from .convolution_channels import Channels, width_of
from .convolution_columns import Columns, across_role, column_role, is_zero
from .convolution_depth import Deep, features_in_steps, is_deep
from .convolution_held import Held, grid_of
from .dot import accumulator_dtype, in_parts, multiply_add, rounded, zero
from .elemental import Elemental, ElementRule, Index, Reads
from .lanewise import Lanewise
from .partial import TERMS, Level, PartialSums, added, levels_of
from .ranges import Steps, columns_fit
from .reduce_columns import BLOCK
from .windows import OUT, SPATIAL, Convolution


def convolution(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    code, c = e.code, Convolution.of(instruction)
    lhs, rhs = instruction.operands[:2]
    dtype = accumulator_dtype(instruction)
    total = zero(dtype)
    if is_zero(c):
        return rounded(code, dtype, instruction.shape.dtype, total)
    place = c.roles(code, index.multi)
    apart = in_parts(code, dtype, c.terms)
    loops, taps = [], []
    for axis, position in zip(c.axes, place[SPATIAL:], strict=True):
        tap, end, step = axis.taps(code, position)
        for level in (levels_of([axis.window])[0] if apart else []) or [Level(0, 1, False)]:
            loops.append(code.range(tap, end, step * level.span, carried=[total]))
            tap, end = loops[-1].index, code.minimum(end, code.add(loops[-1].index, step * level.span))
            total = zero(dtype) if apart else loops[-1].carried[0]
        taps.append(tap)

    def factors(feature: IndexValue) -> Reads:
        left, right = c.operands(code, place, taps, feature)
        a = yield lhs, Index.at(code, lhs.shape, left)
        b = yield rhs, Index.at(code, rhs.shape, right)
        return convert(code, lhs.shape.dtype, dtype, a), convert(code, rhs.shape.dtype, dtype, b)

    if apart and c.ins > TERMS:
        sums = PartialSums(code, [zero(dtype)], [c.ins])
        for (before,) in sums.steps():
            a, b = yield from factors(sums.positions[0])
            sums.put([multiply_add(code, dtype, before, a, b, apart)])
        (total,) = sums.totals()
    else:
        features = code.loop(c.ins, carried=[total])
        a, b = yield from factors(features.index)
        (total,) = features.close([multiply_add(code, dtype, features.carried[0], a, b, apart)])
    for loop in reversed(loops):
        (total,) = loop.close([added(code, loop.carried[0], total) if apart else total])
    return rounded(code, dtype, instruction.shape.dtype, total)


RULES: dict[Op, ElementRule] = {Op.CONVOLUTION: convolution}


def has_columns(e: Elemental, instruction: Instruction) -> bool:
    """Whether `emit_column_convolution` can compute a convolution."""
    return is_deep(e, instruction) or column_role(instruction) is not None


def takes_steps(e: Elemental, instruction: Instruction, partition: Partition) -> bool:
    """Whether `emit_column_convolution` can compute some of the steps: not those across the columns."""
    c, deep = Convolution.of(instruction), is_deep(e, instruction)
    column = OUT if deep else column_role(instruction)
    if column is None:
        return False
    inside = [role for d in partition.dimensions if (role := c.role_of(d)) is not None]
    if len(inside) < len(partition.dimensions) or across_role(instruction, column) in inside:
        return False
    if deep:
        return OUT not in inside or features_in_steps(e, instruction, inside, partition)
    return columns_fit(partition, inside, column, c.sizes[column], BLOCK)


def emit_column_convolution(
    e: Elemental,
    instruction: Instruction,
    finish: Callable[[Index], None],
    steps: Steps | None = None,
    behind: Lanewise | None = None,
) -> None:
    """For each block of columns: compute the sums on the stack, then call `finish(index)` per element with its value
    bound. behind: what that does, for vectors, if it can.
    """
    if is_deep(e, instruction):
        Deep(e, instruction, OUT, finish).emit(steps)
        return
    c, column = Convolution.of(instruction), column_role(instruction)
    assert column is not None
    inside = () if steps is None else [c.role_of(d) for d in steps.dimensions]
    kind = Columns
    if column not in inside:
        is_depthwise = width_of(e, instruction, column) is not None
        kind = Channels if is_depthwise else Held if grid_of(e, instruction, column) is not None else Columns
    kind(e, instruction, column, finish, behind=behind if kind is Held else None).emit(steps)
