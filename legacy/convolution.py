"""convolution: as an elemental rule (one sum per element), and as a root over columns: neighbours in memory whose sums
are computed together, on the stack (convolution_columns.py) or in vector registers (convolution_held.py,
convolution_channels.py, convolution_depth.py). Sums of floats may be reassociated, narrow floats are summed in f32,
integers wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..codegen.forms import Limit
from ..hlo.ir import Instruction
from ..hlo.opcodes import Op
from ..planning.partition import Partition
from . import convolution_channels, convolution_columns, convolution_depth, convolution_held
from .builder import IndexValue
from .convert import convert
from .convolution_channels import Channels, channels
from .convolution_columns import Blocks, Columns, columns, is_zero
from .convolution_depth import Deep, deep, features_in_steps
from .convolution_held import Held, holding
from .dot import accumulator_dtype, in_parts, multiply_add, rounded, zero
from .elemental import Elemental, ElementRule, Index, Reads
from .form import Fit, Form, Results, limits
from .partial import TERMS, Level, PartialSums, added, levels_of
from .ranges import columns_fit
from .reduce_columns import BLOCK
from .view import View
from .windows import OUT, SPATIAL, Convolution


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


def _form(
    name: str,
    why: str,
    kind: type[Columns],
    blocks_of: Callable[[View, Results, Sequence[int]], Blocks | str],
    bounds: tuple[Limit, ...],
) -> Form:
    """blocks_of: the blocks of a convolution, or why they do not fit; the last argument: roles that steps number."""

    def fits(view: View, results: Results, partition: Partition | None) -> Fit | str:
        root = results.products[0] if results.products and not view.by_element else None
        if root is None or root.opcode is not Op.CONVOLUTION:
            return "no convolution"
        c, dimensions = Convolution.of(root), () if partition is None else partition.dimensions
        inside = [role for d in dimensions if (role := c.role_of(d)) is not None]
        found = blocks_of(view, results, inside)
        if isinstance(found, str):
            return found
        in_steps = len(inside) == len(dimensions) and found.across not in inside
        if partition is not None and in_steps and kind is Deep:
            in_steps = OUT not in inside or features_in_steps(view, root, inside, partition)
        elif partition is not None and in_steps:
            in_steps = columns_fit(partition, inside, found.column, c.sizes[found.column], BLOCK)
        return Fit(found, in_steps, (root,), shares=found.calls)

    return Form(name, why, fits, lambda e, results, blocks, steps: kind(e, results, blocks).emit(steps), bounds)


FORMS = (
    _form(
        "convolution/deep",
        "Input features are neighbours in both operands: vectors along the depth, by a function that kernels share.",
        Deep,
        deep,
        limits(
            vars(convolution_depth),
            LARGE="multiplications",
            SHORTEST="neighbours in both operands",
            MOST_FEATURES="output features that are neighbours",
        ),
    ),
    _form(
        "convolution/channels",
        "Depthwise: a few positions and all channels of a block, by a function that kernels share.",
        Channels,
        channels,
        limits(vars(convolution_channels), CALLED="multiply-adds of vectors in a tile", COLUMN_TERMS="terms of a sum"),
    ),
    _form(
        "convolution/held",
        "Output features are neighbours: sums of a few positions stay in vector registers.",
        Held,
        holding,
        limits(vars(convolution_held), LEAST_BYTES="bytes of a vector", PANEL="bytes of a copied block"),
    ),
    _form(
        "convolution/columns",
        "Neighbours of any role: blocks of columns, whose sums are on the stack.",
        Columns,
        lambda view, results, inside: columns(results.products[0]),
        limits(vars(convolution_columns), NEAR="elements between neighbours in the operands"),
    ),
)
