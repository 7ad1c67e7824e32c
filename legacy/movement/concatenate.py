"""concatenate, four ways: one element, by selecting its operand; a rotation, as one read at a selected position; a
whole array, operand by operand; a few neighbours in memory, one of each operand, together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...hlo.ir import Instruction
from ...hlo.opclasses import EXPENSIVE
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from ..core.builder import Code, IndexValue
from ..core.graph import walk
from ..core.registers import I64, Register, chosen
from ..core.view import View
from ..loops.access import fastest_dimension
from ..loops.elemental import Elemental, Index, Reads, same_order
from ..loops.form import Fit, Results, Task, at_most, form, needs
from ..loops.leaf import Leaf
from ..loops.linear import is_linear
from ..loops.nest import Modes, modes_of, nest
from ..loops.ranges import Steps, elements
from .padded_rows import must_be_only

MAXIMUM_LINE_ELEMENTS = 8
"""Neighbours that are written together at most: LLVM makes whole vectors of up to as many interleaved stores."""

MAXIMUM_LINE_BYTES = 32
"""Bytes of them at most: of longer rows, LLVM scatters the elements with 512-bit vectors, which takes up to three times
as long as copies of the operands.
"""


LONG_CHAIN = 64
"""Minimum operations for which several vectors are computed side by side: rounds of random bits wait for each other."""

FEW = 4
"""Arrays of which one is picked, up to which the elements of all are computed."""

MANY_LINES = 1024
"""Minimum lines of the result for which that fills vectors."""


def concatenate(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    axis = instruction.dimensions[0]
    if _is_rotation(instruction, axis) and not _is_decided(e.code, instruction, index.multi[axis]):
        return (yield from _rotated(e, instruction, index, axis))
    pieces, start = [], 0
    for operand in instruction.operands:
        if operand.shape.size:
            pieces.append((start, operand))
            start += operand.shape.dims[axis]
    return (yield from _choose(e, pieces, index, axis))


def _is_rotation(instruction: Instruction, axis: int) -> bool:
    """Whether the operands are two stride-1 slices of one array that differ only along the axis."""
    first, *others = instruction.operands
    if len(others) != 1 or any(o.opcode is not Op.SLICE for o in instruction.operands):
        return False
    bounds = [list(o.attributes["slice"]) for o in instruction.operands]
    steps = all(b.pop(axis).stride == 1 for b in bounds)
    return steps and bounds[0] == bounds[1] and first.operands == others[0].operands


def _is_decided(code: Code, rotation: Instruction, position: IndexValue) -> bool:
    """Whether all places where the position may be are in one and the same operand of two."""
    limits, middle = code.limits.of(position), rotation.operands[0].shape.dims[rotation.dimensions[0]]
    return limits is not None and (limits[1] <= middle or limits[0] >= middle)


def _rotated(e: Elemental, instruction: Instruction, index: Index, axis: int) -> Reads:
    """One read at a selected position: branches would prevent vectorisation."""
    code, (first, second) = e.code, instruction.operands
    middle = first.shape.dims[axis]
    low = first.attributes["slice"][axis].start
    high = second.attributes["slice"][axis].start - middle
    position = index.multi[axis]
    home = code.home([position])
    below = home.builder.icmp_unsigned("<", position, I64(middle))
    shift = home.builder.select(below, I64(low), I64(high))
    code.define(shift, home)
    moved = [code.add(code.multiply(i, d.stride), d.start) for i, d in zip(index.multi, first.attributes["slice"])]
    moved[axis] = code.add(position, shift)
    return (yield first.operands[0], Index.at(code, first.operands[0].shape, moved))


def _choose(e: Elemental, pieces: list[tuple[int, Instruction]], index: Index, axis: int) -> Reads:
    """The element of the piece that contains the index, found by bisection."""
    code, multi = e.code, index.multi
    position = multi[axis]
    limits = code.limits.of(position)
    if limits is not None:
        least, most = (max(0, sum(p[0] <= at for p in pieces) - 1) for at in (limits[0], limits[1] - 1))
        pieces = pieces[least : most + 1]
    if len(pieces) == 1:
        ((start, piece),) = pieces
        moved = [code.subtract(i, start) if d == axis else i for d, i in enumerate(multi)]
        return (yield piece, Index.at(code, piece.shape, moved))
    middle = len(pieces) // 2
    below = code.b.icmp_unsigned("<", position, I64(pieces[middle][0]))
    branch = code.branch(below)
    first = yield from _choose(e, pieces[:middle], index, axis)
    branch.otherwise()
    second = yield from _choose(e, pieces[middle:], index, axis)
    return branch.join(first, second)


def is_few(view: View, instruction: Instruction) -> bool:
    """Whether a concatenation that is not in memory is of few arrays, each of one place, and little code for each."""
    axis, operands = instruction.dimensions[0], instruction.operands
    if instruction in view.leaves or len(operands) > FEW or any(o.shape.dims[axis] != 1 for o in operands):
        return False
    return not any(i.opcode in _LONG for i in walk(operands, view.leaves))


def picked(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    """The element at an index that is no loop's, of a concatenation that `is_few`: all operands' elements are computed,
    as branches, which nobody can foretell, would take longer and be no vectors.
    """
    code, axis = e.code, instruction.dimensions[0]
    found: Register | None = None
    for number, operand in enumerate(instruction.operands):
        value = yield operand, Index.at(code, operand.shape, [0 if d == axis else i for d, i in enumerate(index.multi)])
        if found is None:
            found = value
            continue
        own = code.b.icmp_signed(">=", code.value(index.multi[axis]), I64(number))
        found = chosen(code.b, own, value, found)
    assert found is not None
    return found


def write_pieces(e: Elemental, results: Results, modes: Sequence[Modes], steps: Steps | None) -> None:
    """Write each operand, or some steps of each, to its part of the result."""
    leaf, start = results.first, 0
    axis = leaf.instruction.dimensions[0]
    for operand, mode in zip(leaf.instruction.operands, modes, strict=True):
        if operand.shape.size == 0:
            continue
        source = Shape(operand.shape.dtype, operand.shape.dims, leaf.shape.layout)
        offset = start

        def copy(positions: list[IndexValue], operand: Instruction = operand, offset: int = offset) -> None:
            value = e.value(operand, Index.at(e.code, operand.shape, positions))
            moved = [e.code.add(p, offset) if d == axis else p for d, p in enumerate(positions)]
            leaf.write(e, Index.at(e.code, leaf.shape, moved), value)

        nest(e, source, copy, steps, mode)
        start += operand.shape.dims[axis]


def _must_be_abreast(view: View, leaf: Leaf) -> None:
    """Raises Unfit if not all operands have few neighbours in memory. There is a copy of an operand's code for each of
    its own.
    """
    axis = leaf.instruction.dimensions[0]
    width, size = leaf.shape.dims[axis], leaf.shape.dims[axis] * leaf.shape.dtype.bytes
    needs(fastest_dimension(leaf.shape) == axis, "neighbours are of one operand")
    at_most(width, MAXIMUM_LINE_ELEMENTS, "elements of a line")
    at_most(size, MAXIMUM_LINE_BYTES, "bytes of a line")
    copied = [operand for operand in leaf.instruction.operands if operand.shape.dims[axis] > 1]
    for i in walk(copied, view.leaves):
        needs(i.opcode not in _LONG, f"several neighbours each take {i.opcode.value}")


def _lines(leaf: Leaf) -> Shape:
    """The result with one element along the axis."""
    axis = leaf.instruction.dimensions[0]
    dims = tuple(1 if d == axis else n for d, n in enumerate(leaf.shape.dims))
    return Shape(leaf.shape.dtype, dims, leaf.shape.layout)


_LONG = EXPENSIVE | {Op.CONVOLUTION, Op.DOT, Op.MAP, Op.REDUCE, Op.REDUCE_WINDOW}
"""Opcodes of which one element is much code."""


def write_abreast(e: Elemental, results: Results, modes: Modes | None, steps: Steps | None) -> None:
    """One nest for all operands: the lines of the result, of which each has a part, are written once and in order."""
    code, leaf = e.code, results.first
    axis, rows = leaf.instruction.dimensions[0], _lines(leaf)

    def write(at: Callable[[Shape, int], Index]) -> None:
        """Write a line, given where its n-th element in an array of this shape is."""
        parts = [(operand, n) for operand in leaf.instruction.operands for n in range(operand.shape.dims[axis])]
        values = [e.value(operand, at(operand.shape, n)) for operand, n in parts]
        for n, value in enumerate(values):
            leaf.write(e, at(leaf.shape, n), value)

    if modes is None:  # all lines, whatever their dimensions: a loop over a short one would fill no vectors
        with elements(code, steps, rows.size) as i:
            write(lambda shape, n: Index.flat(code, shape, code.add(code.multiply(i, shape.dims[axis]), n)))
        return

    def copy(positions: list[IndexValue]) -> None:
        write(lambda shape, n: Index.at(code, shape, [n if d == axis else p for d, p in enumerate(positions)]))

    nest(e, rows, copy, steps, modes)


def _is_along(view: View, operand: Instruction, result: Shape) -> bool:
    """Whether an operand has its elements in memory, or they are computed, in the order of those of the result."""
    shape = operand.shape
    return is_linear(operand, view.leaves) and same_order(shape.dims, shape.minor_to_major, result.minor_to_major)


def _in_steps(task: Task) -> bool:
    """Steps may be of dimensions that all operands share."""
    return task.results.root.dimensions[0] not in task.numbered


@form(
    "concatenate/abreast",
    write_abreast,
    MAXIMUM_LINE_ELEMENTS="elements of a line",
    MAXIMUM_LINE_BYTES="bytes of a line",
)
def abreast(task: Task) -> Fit:
    """Lines of a few neighbours, one or more of each operand: all are written together.

    Parameters: the modes of loops over lines; None for one loop over all of them, whatever their dimensions: one over a
    short dimension would fill no vectors.
    """
    must_be_only(task, Op.CONCATENATE)
    view, leaf, operands = task.view, task.results.first, task.results.root.operands
    _must_be_abreast(view, leaf)
    rows = _lines(leaf)
    long = rows.size >= MANY_LINES and sum(1 for _ in walk(operands, view.leaves)) >= LONG_CHAIN
    along = not long and all(_is_along(view, operand, leaf.shape) for operand in operands)
    return Fit(None if along else modes_of(view, rows, long=long), _in_steps(task))


@form("concatenate/pieces", write_pieces)
def pieces(task: Task) -> Fit:
    """Any operands: one after the other.

    Parameters: for each operand the modes of its loops.
    """
    must_be_only(task, Op.CONCATENATE)
    layout, operands = task.results.shape.layout, task.results.root.operands
    shapes = [Shape(o.shape.dtype, o.shape.dims, layout) for o in operands]
    return Fit(tuple(modes_of(task.view, shape) for shape in shapes), _in_steps(task))


FORMS = (abreast, pieces)
