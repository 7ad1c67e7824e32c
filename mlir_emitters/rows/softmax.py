"""Softmax and log-softmax of rows in memory as functions that kernels share. One call takes all rows of a kernel's
steps: a call for each row would load all constants of exp again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from mlir import ir

from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import Builder, Index, Unroll, Value
from ..core.elements import flatten
from ..core.facts import Code
from ..core.graph import Buffer, Node
from ..loops.elemental import Elemental
from ..loops.fetch import DISTANCE_BYTES, streams
from ..loops.form import Answer, Fits
from ..loops.helper import call_helper, memory_types
from ..loops.ranges import Steps, bounds
from ..loops.row_graph import PASSED, Role, RowGraph, first_of
from ..loops.view import Subject, View
from ..reductions.extremum import advance_three, close_three, extremum_of, open_three
from ..reductions.long_sums import BLOCK_ELEMENTS, PartialSums, are_float_sums
from ..reductions.sum_run import scaled_of

MINIMUM_ROW_ELEMENTS, MAXIMUM_ROW_ELEMENTS = 1 << 9, BLOCK_ELEMENTS
"""Elements of a row. Loops over fewer are faster if LLVM knows their length; sums of more are in several blocks."""

UNIT_ELEMENTS = 64
"""Rows whose length is a multiple of this have no loops for a rest."""

LANES = 32
"""Partial sums of a row."""


@dataclass(frozen=True, slots=True)
class Softmax:
    """Of x − max x: exp / Σ exp, or with `log` itself − log Σ exp. scaled: x is multiplied by a number first. fetches:
    what lies ahead is fetched. whole: rows are multiples of UNIT_ELEMENTS elements.
    """

    log: bool
    scaled: bool
    fetches: bool
    whole: bool

    @property
    def name(self) -> str:
        kind = "log_softmax" if self.log else "softmax"
        return f"mlir.{kind}.f32{'.s' * self.scaled}{'.a' * self.fetches}{'.w' * self.whole}"

    @property
    def fma(self) -> bool:
        return False

    def types(self, b: Builder) -> list[ir.Type]:
        """Of the parameters: memory of x, the result, a row; the offsets of the first two; how many rows, and elements
        (or UNITs) in each; the factor.
        """
        t = b.types
        return [*memory_types(b, [t.f32] * 3), *[t.i64] * 4, *[t.f32] * self.scaled]

    def emit(self, b: Builder, parameters: Sequence[Value]) -> None:
        """The function's body."""
        source, result, held, start, target, rows, count, *factor = parameters
        self._declare(b, len(parameters))
        f32 = b.types.f32
        length = b.materialize(b.mul(count, UNIT_ELEMENTS)) if self.whole else count
        sums = PartialSums(b, [1], [f32], lanes=LANES)

        def read(memory: Value, at: Index) -> Value:
            return b.load(b.pointer(memory, at, f32), f32, 4)

        with b.loop(0, rows, unroll=Unroll.NONE) as row:
            begin = b.binary("muli", row.index, length)
            first, place = b.add(start, begin), b.add(target, begin)
            with b.loop(0, length, 1, open_three(b, b.f32(-math.inf)), Unroll.TWICE) as column:
                value = read(source, b.add(first, column.index))
                if factor:  # products are kept: with 16 registers, the next loop has none for the factor
                    value = b.mulf(value, factor[0])
                    b.store(value, b.pointer(held, column.index, f32), 4)
                column.next = advance_three(b, Op.MAXIMUM, column.carried, value)
            most = close_three(b, column.values)

            def addend(at: Index) -> Value:
                difference = b.subf(read(held, at) if factor else read(source, b.add(first, at)), most)
                power = b.math("math.exp", difference)
                b.store(difference if self.log else power, b.pointer(held, at, f32), 4)
                return power

            total = self._sum(b, sums, length, addend, lambda at: b.row(source, b.add(first, at), f32, sums.lanes))
            total = b.math("math.log", total) if self.log else total
            with b.loop(0, length) as column:
                value = read(held, column.index)
                made = b.subf(value, total) if self.log else b.divf(value, total)
                b.store(made, b.pointer(result, b.add(place, column.index), f32), 4)

    def _sum(
        self,
        b: Builder,
        sums: PartialSums,
        length: Value,
        addend: Callable[[Index], Value],
        line_at: Callable[[Index], Value],
    ) -> Value:
        """The sum of a row. line_at: the memory of a line of its elements."""
        lanes, f32 = sums.lanes, b.types.f32

        def add(at: Index, lane: Index) -> None:
            slot = b.pointer(sums.partial[0], lane, f32)
            b.store(b.addf(b.load(slot, f32, 4), addend(b.add(at, lane))), slot, 4)

        whole = length if self.whole else b.binary("andi", length, -lanes)
        sums.open()
        if not self.whole:
            with b.loop(0, b.sub(length, whole)) as rest:
                add(whole, rest.index)
        with b.loop(0, whole, lanes, unroll=Unroll.NONE) as line:
            if self.fetches:
                ahead = line_at(b.add(line.index, DISTANCE_BYTES // 4))
                for k in range(0, lanes, b.processor.line_bytes // 4):
                    b.prefetch(b.pointer(ahead, k, f32))
            with b.loop(0, lanes, unroll=Unroll.VECTORIZED) as lane:
                add(line.index, lane.index)
        (total,) = sums.rests()
        return total

    def _declare(self, b: Builder, parameters: int) -> None:
        """What LLVM is to know: the row is apart from all other memory, and numbers are neither 0 nor huge."""
        given = [ir.DictAttr.get({})] * parameters
        given[2] = ir.DictAttr.get({"llvm.noalias": b.types.unit})
        limits = ir.Attribute.parse(f"#llvm.constant_range<i64, 1, {1 << 32}>")
        given[5:7] = [ir.DictAttr.get({"llvm.range": limits})] * 2
        b.functions[self.name].attributes["arg_attrs"] = ir.ArrayAttr.get(given)


@dataclass(frozen=True, slots=True)
class SoftmaxRows:
    """The rows of an array, multiplied by a number if there is a factor."""

    graph: RowGraph
    source: Buffer
    factor: Buffer | None
    helper: Softmax


def fits(view: View, subject: Subject) -> Answer:
    """Of a softmax or log-softmax of an array in memory."""
    graph, result, facts = subject.rows, subject.first, view.facts
    if isinstance(graph, str) or graph.single:
        return graph if isinstance(graph, str) else "a reduction is all that is computed"
    if result.dtype is not DType.F32 or facts.strict or facts.by_element:
        return "it is not of f32 on a host, whose sums need no order"
    if not MINIMUM_ROW_ELEMENTS <= graph.length <= MAXIMUM_ROW_ELEMENTS:
        return f"rows of {graph.length:,} elements, not {MINIMUM_ROW_ELEMENTS} to {MAXIMUM_ROW_ELEMENTS:,}"
    found = _softmax_of(first_of(result), graph)
    if found is None:
        return "it is no softmax of an array in memory"
    source, factor, log = found
    helper = Softmax(log, factor is not None, bool(streams(facts, [source], source)), graph.length % UNIT_ELEMENTS == 0)
    return Fits(SoftmaxRows(graph, source, factor, helper), graph.takes(view.partition), Code(shares=True))


def emit(e: Elemental, subject: Subject, rows: SoftmaxRows, steps: Steps | None) -> None:
    b, length, result, factor = e.b, rows.graph.length, subject.first, rows.factor
    begin, end = (0, rows.graph.count) if steps is None else bounds(b, steps, rows.graph.count)
    numbers = [] if factor is None else flatten(e.value(factor, tuple(0 for _ in factor.dims)))
    offset, f32 = b.mul(begin, length), b.types.f32
    places = [b.pointer(e.pointers[x.argument], offset, f32) for x in (rows.source, result)]
    held, count = b.alloca(f32, length, 64), length // UNIT_ELEMENTS if rows.helper.whole else length
    call_helper(b, rows.helper, [*places, held], [b.sub(end, begin), count, *numbers], 2)


def _softmax_of(root: Buffer, graph: RowGraph) -> tuple[Buffer, Buffer | None, bool] | None:
    """(The array, the number by which it is multiplied, whether it is the logarithm) of a softmax."""
    node = root.writer
    if node is None or node.opcode not in (Op.DIVIDE, Op.SUBTRACT):
        return None
    total, log = _of_row(node.inputs[1], graph), node.opcode is Op.SUBTRACT
    if log:
        total = _of_row(total.inputs[0], graph) if total is not None and total.opcode is Op.LOG else None
    if total is None or total.opcode is not Op.REDUCE or not are_float_sums(total) or not _starts(total, 0.0):
        return None
    power = total.inputs[0].writer
    if power is None or power.opcode is not Op.EXPONENTIAL:
        return None
    difference = power.inputs[0].writer
    if node.inputs[0] is not (power.inputs[0] if log else total.inputs[0]):
        return None
    if difference is None or difference.opcode is not Op.SUBTRACT:
        return None
    most = _of_row(difference.inputs[1], graph)
    if most is None or most.opcode is not Op.REDUCE or most.inputs[0] is not difference.inputs[0]:
        return None
    scaled = scaled_of(most.inputs[0]) if extremum_of(most) is Op.MAXIMUM and _starts(most, -math.inf) else None
    if scaled is None or scaled[1] is None or scaled[1].writer is None:
        return None if scaled is None else (scaled[0], None, log)
    factor = scaled[1].writer.inputs[0]
    return None if factor.dims else (scaled[0], factor, log)


def _of_row(buffer: Buffer, graph: RowGraph) -> Node | None:
    """What makes the number of a row that is broadcast along it."""
    while buffer in graph.roles and buffer.writer is not None and buffer.writer.opcode in PASSED:
        (buffer,) = buffer.writer.inputs
    return buffer.writer if graph.roles.get(buffer) is Role.ROW else None


def _starts(reduction: Node, number: float) -> bool:
    """Whether a reduction of one array starts at a number."""
    if len(reduction.inputs) != 2 or (initial := reduction.inputs[1].writer) is None or initial.literal is None:
        return False
    return bool(np.all(initial.literal.array == number))
