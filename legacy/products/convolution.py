"""convolution: as an elemental rule (one sum per element), and as a root over columns: neighbours in memory whose sums
are computed together, on the stack (convolution_columns.py) or in vector registers (convolution_held.py,
convolution_channels.py, convolution_depth.py). Sums of floats may be reassociated, narrow floats are summed in f32,
integers wrap.
"""

from __future__ import annotations

from collections.abc import Callable

from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ..core.builder import IndexValue
from ..loops.elemental import Elemental, ElementRule, Index, Reads
from ..loops.form import Fit, Results, Task, form, needs
from ..loops.ranges import Steps, columns_fit
from ..numerics.convert import convert
from ..reductions.columns import BLOCK
from ..reductions.long_sums import TERMS, Level, PartialSums, added, levels_of
from ..reductions.windows import OUT, SPATIAL, Convolution
from . import convolution_blocks, convolution_channels, convolution_columns, convolution_depth
from .convolution_blocks import blocks_held
from .convolution_channels import Channels, blocks_of_channels
from .convolution_columns import Blocks, Columns, blocks_on_stack, column_role, is_zero
from .convolution_depth import Deep, blocks_deep, must_be_deep
from .convolution_held import Held
from .dot import accumulator_dtype, in_parts, multiply_add, rounded, zero


def convolution(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    code, c = e.code, Convolution.of(instruction)
    lhs, rhs = instruction.operands[:2]
    dtype = accumulator_dtype(instruction)
    total = zero(dtype)
    if is_zero(c):
        return rounded(code, dtype, instruction.shape.dtype, total)
    place = c.roles(code, index.multi)
    apart = in_parts(code.view, dtype, c.terms)
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


def _emit(kind: type[Columns]) -> Callable[[Elemental, Results, Blocks, Steps | None], None]:
    return lambda e, results, blocks, steps: kind(e, results, blocks).emit(steps)


def _fit(task: Task, blocks: Blocks, in_steps: bool = True, shares: bool = False) -> Fit:
    """Steps must not number what is across the columns.

    shares: as of Fit. Calls of `deep` and `channels` may be short, so that the loops around them count: these kernels
    have all passes, on both stacks, until fewer are measured.
    """
    inside = _inside(task)
    apart = len(inside) == len(task.numbered) and blocks.across not in inside
    return Fit(blocks, apart and in_steps, task.results.products, shares)


def _inside(task: Task) -> list[int]:
    """The roles that the steps number. Raises Unfit if no convolution is computed."""
    c = Convolution.of(task.product(Op.CONVOLUTION))
    return [role for d in task.numbered if (role := c.role_of(d)) is not None]


def _column(task: Task) -> int:
    """The role of the columns, which no step numbers."""
    column = column_role(task.product(Op.CONVOLUTION))
    needs(column not in _inside(task), "steps number columns")
    return column


@form(
    "convolution/deep",
    _emit(Deep),
    convolution_depth,
    MINIMUM_MULTIPLICATIONS="multiplications",
    MINIMUM_NEIGHBOURS="neighbours in both operands",
)
def deep(task: Task) -> Fit:
    """Input features are neighbours in both operands: vectors along the depth, by a function that kernels share."""
    root = task.product(Op.CONVOLUTION)
    must_be_deep(task.view, root)
    blocks, inside = blocks_deep(task.view, root, task.partition), _inside(task)
    return _fit(task, blocks, OUT not in inside or (inside[-1] == OUT and blocks.form.block is not None))


@form(
    "convolution/channels",
    _emit(Channels),
    convolution_channels,
    MINIMUM_MULTIPLICATIONS="multiplications",
    MINIMUM_TILE_PRODUCTS="multiply-adds of vectors in a tile",
    COLUMN_TERMS="terms of a sum",
)
def channels(task: Task) -> Fit:
    """Depthwise: a few positions and all channels of a block, by a function that kernels share."""
    return _fit(task, blocks_of_channels(task.view, task.product(Op.CONVOLUTION), _column(task)))


@form(
    "convolution/held",
    _emit(Held),
    convolution_blocks,
    MINIMUM_VECTOR_BYTES="bytes of a vector",
    MAXIMUM_PANEL_BYTES="bytes of a copied block",
)
def held(task: Task) -> Fit:
    """Output features are neighbours: sums of a few positions stay in vector registers."""
    blocks = blocks_held(task.view, task.results, _column(task))
    return _fit(task, blocks, shares=blocks.calls)


@form(
    "convolution/columns",
    _emit(Columns),
    convolution_columns,
    MAXIMUM_DISTANCE="elements between neighbours in the operands",
)
def columns(task: Task) -> Fit:
    """Neighbours of any role: blocks of columns, whose sums are on the stack."""
    root = task.product(Op.CONVOLUTION)
    column = column_role(root)
    fits = columns_fit(task.partition, _inside(task), column, Convolution.of(root).sizes[column], BLOCK)
    return _fit(task, blocks_on_stack(task.view, root, column), fits)


FORMS = (deep, channels, held, columns)
