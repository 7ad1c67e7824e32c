"""Sums of few columns whose rows follow each other in memory, as one run: of floats by a function that kernels share,
of integers in vectors of several rows, whose lanes are combined at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import Index, Pointer, Unroll, Value
from ..core.elements import flatten, raw_type
from ..core.facts import Code, Facts
from ..core.graph import Buffer, Node
from ..loops.elemental import Elemental
from ..loops.fetch import streams
from ..loops.form import Answer, Fits, fewer, more
from ..loops.ranges import Steps, outer_loops
from ..loops.reduced import only_op
from ..loops.view import Subject, View
from .long_sums import LANES, are_float_sums
from .results import dimensions_inside, write_together
from .sum_run import MINIMUM_RUN_ELEMENTS, Form, SumRun, is_run, stored_of

MAXIMUM_WORD_COLUMNS = 7
"""Columns of integers up to which a vector of several rows is faster than a vector for each row, or scalars."""

_WORDS: dict[Op, tuple[str, str]] = {
    Op.ADD: ("addi", "addi"),
    Op.AND: ("andi", "andi"),
    Op.MAXIMUM: ("maxui", "maxsi"),
    Op.MINIMUM: ("minui", "minsi"),
    Op.OR: ("ori", "ori"),
    Op.XOR: ("xori", "xori"),
}
"""What combines integers in any order: (of unsigned ones, of signed ones)."""


@dataclass(frozen=True, slots=True)
class Run:
    """Where the columns are. source: in memory; outer, columns: dimensions before and after the reduced ones; width:
    elements of a row, the columns' number; count: elements of a run of rows. word: what combines integers; None of
    floats, which are added up; inside: the operand's dimensions that the steps number.
    """

    source: Buffer
    outer: tuple[int, ...]
    columns: tuple[int, ...]
    width: int
    count: int
    word: str | None
    inside: tuple[int, ...]


def fits(view: View, subject: Subject) -> Answer:
    if len(subject.products) != 1:
        return f"{len(subject.products)} reductions"
    run = run_of(view.facts, subject.node, dimensions_inside(subject.node, view.numbered))
    return run if isinstance(run, str) else Fits(run, code=Code(shares=run.word is None))


def run_of(facts: Facts, node: Node, inside: Sequence[int]) -> Run | str:
    """The run of a reduction over columns; why it is none."""
    operand, dtype = node.inputs[0], node.inputs[0].dtype
    reduced, rank = sorted(node.attributes["dimensions"]), len(operand.dims)
    if len(node.outputs) != 1 or reduced != list(range(reduced[0], reduced[-1] + 1)):
        return "several outputs, or kept dimensions between the reduced ones"
    outer, columns = tuple(range(reduced[0])), tuple(range(reduced[-1] + 1, rank))
    width, source = math.prod(operand.dims[d] for d in columns), stored_of(operand)
    count, word = math.prod(operand.dims[d] for d in reduced) * width, _word_of(node)
    if source is None or not (operand.shape.is_row_major and node.output.shape.is_row_major):
        return "the operand is not in memory row by row"
    if width < 2 or not is_run(facts, count):
        return (
            "one column"
            if width < 2
            else fewer(count, "elements of a run, or their sum is in order", MINIMUM_RUN_ELEMENTS)
        )
    if any(d >= len(outer) for d in inside):
        return "steps number columns"
    if word is not None and width > MAXIMUM_WORD_COLUMNS:
        return more(width, "columns of integers", MAXIMUM_WORD_COLUMNS)
    if word is not None and count < (least := 2 * width * _lanes(facts, dtype)):
        return fewer(count, "integers of a run", least)
    if word is None and not (dtype in (DType.F32, DType.F64) and are_float_sums(node)):
        return "it is no sum of f32 or f64"
    if word is None and (width > LANES or width & (width - 1)):
        return f"{width} columns, no power of two up to {LANES}"
    return Run(source, outer, columns, width, count, word, tuple(inside))


def emit(e: Elemental, subject: Subject, run: Run, steps: Steps | None) -> None:
    """Emit a reduction over columns, each result followed by what reads it."""
    node, word, dtype = subject.node, run.word, subject.node.inputs[0].dtype
    b, operand, initial = e.b, node.inputs[0], node.inputs[-1]
    element = raw_type(b.types, dtype)
    (start,) = flatten(e.value(initial, ()))
    with outer_loops(b, steps, run.inside, operand.dims, run.outer, Unroll.NONE) as places:
        first = b.offset((places.get(d, 0) for d in run.outer), (operand.strides[d] for d in run.outer))
        at = b.pointer(e.pointers[run.source.argument], first, element)
        if word is None:
            helper = SumRun(Form.PLAIN, dtype, bool(streams(b.facts, [operand], operand)), run.width)
            sums = helper.call_into(b, [at], run.count)
        else:
            sums = _combined(e, run, dtype, word, at)
        with b.loop(0, run.width) as column:
            index: list[Index] = [places.get(d, 0) for d in run.outer]
            left: Index = column.index
            for d in run.columns:
                inner = math.prod(operand.dims[d + 1 :])
                index.append(b.div(left, inner) if operand.dims[d] != 1 else 0)
                left = b.rem(left, inner) if operand.dims[d] != 1 else left
            value = b.load(b.pointer(sums, column.index, element), element, dtype.bytes)
            made = b.op("arith.addf" if word is None else word, start, value)
            b.remember((node.output, tuple(index), False), made)
            write_together(e, subject.results, tuple(index))


def _word_of(node: Node) -> str | None:
    """The operation on integers of whole bytes that a reduction is, if their order does not matter."""
    dtype, op = node.inputs[0].dtype, only_op(node)
    whole = dtype.is_integer and dtype.bits >= 8 and node.output.dtype is dtype
    return f"arith.{_WORDS[op][dtype.is_signed]}" if whole and op in _WORDS else None


def _lanes(facts: Facts, dtype: DType) -> int:
    """Of one vector of the target."""
    return max(facts.vector_bits, 128) // dtype.bits


def _combined(e: Elemental, run: Run, dtype: DType, word: str, at: Pointer) -> Value:
    """The memory of the columns' results: in as many vectors as there are columns, lane k is of column k mod width."""
    b, element = e.b, raw_type(e.b.types, dtype)
    size = run.width * _lanes(e.b.facts, dtype)

    def read(place: Index, lanes: int) -> Value:
        return b.load(b.pointer(at, place, element), e.b.vector(lanes, element), dtype.bytes)

    done = run.count - run.count % size
    with b.loop(size, done, size, [read(0, size)]) as loop:
        loop.next = [b.op(word, loop.carried[0], read(loop.index, size))]
    (found,) = loop.values
    while size > run.width:
        size //= 2
        found = b.op(word, *b.halves(found))
        if run.count - done >= size:
            found, done = b.op(word, found, read(done, size)), done + size
    space = b.alloca(element, run.width, 64)
    b.store(found, b.pointer(space, 0, element), dtype.bytes)
    return space
