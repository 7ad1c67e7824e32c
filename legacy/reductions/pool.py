"""Windows of many neighbouring results side by side; the order of a window's elements must not matter."""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.analysis.windows import single_op
from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ..core.builder import IndexValue, Unroll, over_columns
from ..core.stack import StackArray
from ..core.view import View
from ..loops.elemental import Elemental, Index
from ..loops.form import Results
from ..loops.memory import store
from ..loops.ranges import Steps, column_blocks
from ..numerics import half
from .pool_phases import PhasedPool
from .reduce_window import BLOCK, axes_of, combine, open_rows


def emit_phases(e: Elemental, results: Results, parameters: None, steps: Steps | None = None) -> None:
    """Compute a block of results at a time: first over the other dimensions, then along memory."""
    code, instruction, shape, pointer = e.code, results.root, results.shape, results.first.pointer(e)
    init = e.number(instruction.operands[1])
    *outer, column = reversed(shape.minor_to_major)
    phased = PhasedPool(e, instruction, init, min(BLOCK, shape.dims[column]))
    for positions, start, width in column_blocks(code, steps, shape.dims, outer, column, BLOCK):
        phased.block(positions, start, width, pointer)


def emit_pool(e: Elemental, results: Results, key: Op | None, steps: Steps | None = None) -> None:
    """Compute a block of results at a time on the stack: loops over window positions outside, over results inside.

    key: the operation, if a block has the keys of its results, which are integers.
    """
    code, instruction, shape, pointer = e.code, results.root, results.shape, results.first.pointer(e)
    init = e.number(instruction.operands[1])
    *outer, column = reversed(shape.minor_to_major)
    for positions, start, width in column_blocks(code, steps, shape.dims, outer, column, BLOCK):
        first = init if key is None else half.key_of(code, key, init)
        stack = StackArray(code, first, width)
        stack.fill(width, first)
        _pool_block(e, instruction, positions, key, start, stack, width)
        with code.loop(width, unroll=_unroll(instruction, width)) as each:
            positions[column] = code.add(start, each)
            found = stack.read(each)
            found = found if key is None else half.of_key(code, found)
            store(code, pointer, shape.dtype, Index.at(code, shape, positions).offset(shape), found)


def key_of(view: View, instruction: Instruction) -> Op | None:
    """The operation, if it compares f16: then a block has the keys of its results, which are integers."""
    op, dtype = single_op(instruction), instruction.operands[0].shape.dtype
    return op if op in (Op.MAXIMUM, Op.MINIMUM) and dtype is DType.F16 and not view.by_element else None


def _unroll(instruction: Instruction, width: int) -> Unroll:
    """The mode of a loop over a block. LLVM unrolls those over narrow ones first: sums stay in registers, and SLP joins
    them; of maxima it makes vectors along the window, which gather.
    """
    selects = single_op(instruction) in (Op.MAXIMUM, Op.MINIMUM)
    return over_columns(width) if selects and width < BLOCK else Unroll.FREELY


def _pool_block(
    e: Elemental,
    instruction: Instruction,
    positions: Sequence[IndexValue],
    key: Op | None,
    start: IndexValue,
    stack: StackArray,
    width: int,
) -> None:
    """Combine all elements in the windows of `width` results into their values on the stack."""
    code, source, axes = e.code, instruction.operands[0], axes_of(instruction)
    column = instruction.shape.minor_to_major[0]
    loops, places = open_rows(code, axes, column, positions)
    axis = axes[column]
    tap = code.loop(axis.window)
    block = axis.positions(code, tap.index, (start, code.add(start, width)))
    each = code.range(*block, unroll=_unroll(instruction, width))
    places[column] = axis.place(code, each.index, tap.index)
    value = e.value(source, Index.at(code, source.shape, places))
    slot = code.subtract(each.index, start)
    if key is None:
        stack.write(slot, combine(e, instruction, [stack.read(slot)], [value])[0])
    else:
        stack.write(slot, half.best_key(code, key, stack.read(slot), half.key_of(code, key, value)))
    for loop in reversed([*loops, tap, each]):
        loop.close()
