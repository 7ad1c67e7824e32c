"""reduce: as a value inside a fusion, and as a kernel whose loops follow memory order.

If the innermost dimension of the operand is reduced, a long sum of floats is in blocks (long_sums.py); any other
result is one chain, which LLVM splits over vector lanes by reassociation. If it is kept: column_reduction.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ...hlo.opclasses import EXPENSIVE
from ...hlo.opcodes import Op
from ..core.builder import Builder, Index, Loop, Pointer, Unroll, Value
from ..core.elements import ROUNDED, Scalar, encode, flatten, gathered, parts, raw_type, round_to, spread
from ..core.graph import Buffer, Node, reachable
from ..loops.elemental import Elemental, ElementRule, Indices, Reads
from ..loops.reduced import full_index, initials_of, only_op, operands_of, reduced_dimensions
from .complex_sums import Factor, outer_of_runs, sums_of_runs
from .extremum import advance_three, close_three, extremum_of, merge_three, open_three, takes_three
from .extremum_run import ExtremumRun
from .long_extremum import extremum_in_lanes, is_in_lanes
from .long_sums import (
    ELEMENTS_TOGETHER,
    MEMORY_CHAIN_ADDITIONS,
    WHOLE_CHAIN_ADDITIONS,
    Carried,
    LongSums,
    component_type,
    long_sum,
)
from .reduce_ways import Kind, Way, way_of
from .short_rows import sum_of_words
from .sum_run import SumRun
from .tails import FETCHED_ELEMENTS, reduce_tails

UNROLLABLE_ELEMENTS = 64
"""Elements up to which LLVM would unroll such loops before it makes vectors, and join scalars instead."""

MINIMUM_UNROLLED_ELEMENTS = 16
"""Elements along a dimension: loops of three accumulators over this number are unrolled at will."""


def combine(e: Elemental, node: Node, accumulators: Sequence[Scalar], elements: Sequence[Scalar]) -> list[Scalar]:
    with e.b.reassociating():
        return e.apply(node.bodies[0], [*accumulators, *elements])


def rounded(e: Elemental, buffer: Buffer, value: Scalar) -> Scalar:
    """An accumulator, which may be wider, as a working value of the result's type."""
    return round_to(e.b, buffer.dtype, flatten(value)[0]) if buffer.dtype in ROUNDED else value


class Running:
    """The loop-carried state of one reduction: the parts of its results, or the accumulators of extremum.py, of which
    there are three for a long row's (`three`).
    """

    def __init__(self, e: Elemental, node: Node, three: bool = True):
        self.e, self.node = e, node
        self.extremum = extremum_of(node) if three and takes_three(node) else None
        self.types = [x.dtype for x in node.outputs]
        self.count = 3 if self.extremum else sum(map(parts, self.types))

    def unroll(self, size: int) -> Unroll:
        """Of a loop over `size` elements. Where it may unroll, LLVM works on several vectors of a maximum a turn."""
        if not self.extremum or size < MINIMUM_UNROLLED_ELEMENTS:
            return Unroll.SHORT
        return Unroll.ANY if size > UNROLLABLE_ELEMENTS else Unroll.VECTORIZED

    def open(self, values: Sequence[Value]) -> list[Value]:
        """The values to carry into the loops, from the flattened initial values."""
        return open_three(self.e.b, values[0]) if self.extremum else list(values)

    def advance(self, carried: Sequence[Value], elements: Sequence[Scalar]) -> list[Value]:
        """The carried values after one more element."""
        if self.extremum:
            return advance_three(self.e.b, self.extremum, carried, flatten(elements[0])[0])
        return spread(combine(self.e, self.node, gathered(carried, self.types), elements))

    def merge(self, one: Sequence[Value], other: Sequence[Value]) -> list[Value]:
        """The carried values of the elements of both."""
        if self.extremum:
            return merge_three(self.e.b, self.extremum, one, other)
        return self.advance(one, gathered(other, self.types))

    def close(self, carried: Sequence[Value]) -> list[Scalar]:
        """The results, rounded to their types."""
        values = [close_three(self.e.b, carried)] if self.extremum else carried
        scalars = gathered(values, self.types)
        return [rounded(self.e, x, value) for x, value in zip(self.node.outputs, scalars, strict=True)]


def reduce_value(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    """One result: a sum in blocks, or loops over the reduced dimensions that carry the accumulators."""
    b, way = e.b, way_of(e.b.facts, node)
    accumulators: list[Scalar] = []
    for initial in initials_of(node):
        accumulators.append((yield initial, (), False))
    if way.kind is Kind.LOOPS:
        loops: list[Loop] = []
        running = Running(e, node)
        carried = running.open(spread(accumulators))
        for size in way.along.sizes:
            loops.append(b.open_loop(0, size, 1, carried, unroll=running.unroll(size)))
            carried = loops[-1].carried
        place = way.along.place(e, index, [loop.index for loop in loops])
        elements: list[Scalar] = []
        for operand in operands_of(node):
            elements.append((yield operand, place, False))
        results = running.advance(carried, elements)
        results = b.close_loops(loops, results)
        values = running.close(results)
    else:
        values = _EMIT[way.kind](e, way, index, spread(accumulators))
    for k, value in enumerate(values):
        b.remember((node.outputs[k], index, False), value)
    return encode(b, node.outputs[number].dtype, values[number]) if raw else values[number]


def long_sums(b: Builder, sizes: Sequence[int], nodes: Sequence[Node], others: Sequence[Node] = ()) -> LongSums:
    """Sums in blocks for all results of some reductions. others: reductions in the same loops, in chains.

    LLVM splits a chain only if those beside it are one operation each.
    """
    types = [component_type(b, x.dtype) for node in nodes for x in node.outputs for _ in range(parts(x.dtype))]
    chain = (MEMORY_CHAIN_ADDITIONS if all(map(only_op, others)) else WHOLE_CHAIN_ADDITIONS) if others else None
    return long_sum(b, sizes, types, _turns([x for node in nodes for x in operands_of(node)]), chain)


def _turns(operands: Sequence[Buffer]) -> int:
    """Elements of each partial sum in a loop's body: with more loads than 16 of whole vectors, LLVM takes as long for
    their addresses as for all else.
    """
    if are_dear(operands):
        return 1
    read = {x for x in operands if x.writer is None}
    read |= {x for node in reachable(operands) for x in node.inputs if x.writer is None and x.dims}
    return ELEMENTS_TOGETHER if sum(x.dtype.bytes for x in read) <= 4 else ELEMENTS_TOGETHER // 2


def are_dear(operands: Iterable[Buffer]) -> bool:
    """Whether elements take so much code that it should be emitted only once."""
    nodes = list(reachable(operands))
    return len(nodes) > EXPENSIVE_NODES or any(node.opcode in EXPENSIVE for node in nodes)


EXPENSIVE_NODES = 16
"""Nodes under a reduction's operands whose code is as long as that of an expensive op."""


def finished(e: Elemental, node: Node, values: Sequence[Value]) -> list[Scalar]:
    """Sums as working values of the results' types."""
    scalars = gathered(values, [x.dtype for x in node.outputs])
    return [rounded(e, x, value) for x, value in zip(node.outputs, scalars, strict=True)]


def _blocks(e: Elemental, way: Way, index: Indices, initials: Sequence[Value]) -> list[Scalar]:
    along, node = way.along, way.along.node

    def visit(at: Sequence[Index], carried: Carried) -> tuple[list[Value], Carried]:
        place = along.place(e, index, at)
        return spread([e.value(x, place) for x in operands_of(node)]), carried

    sums = long_sums(e.b, along.sizes, [node])
    sums.ahead = along.ahead(e, index)
    sums.add_up(visit)
    return finished(e, node, sums.results(initials))


def _first(e: Elemental, way: Way, index: Indices, source: Buffer) -> Pointer:
    """Where the run of a result begins."""
    operand = way.along.node.inputs[0]
    offset = e.offset(operand, way.along.place(e, index, [0]))
    return e.b.pointer(e.pointers[source.argument], offset, raw_type(e.b.types, operand.dtype))


def _sum_run(e: Elemental, way: Way, index: Indices, initials: Sequence[Value]) -> list[Scalar]:
    """The sum of all elements of a run, by a function of sum_run.py."""
    made, along, dtype = way.addends, way.along, way.along.node.inputs[0].dtype
    assert made is not None
    arrays = [_first(e, way, index, x) for x in made.arrays]
    total = SumRun(made.form, dtype, bool(along.fetched(e.b.facts))).call(e.b, arrays, along.sizes[0])
    return finished(e, along.node, [e.b.op("arith.addf", initials[0], total)])


def _extremum_run(e: Elemental, way: Way, index: Indices, initials: Sequence[Value]) -> list[Scalar]:
    node, source, running = way.along.node, way.source, Running(e, way.along.node)
    assert source is not None and running.extremum is not None
    fetches = is_in_lanes(way.along.sizes) and bool(way.along.fetched(e.b.facts))
    run = ExtremumRun(running.extremum, source.dtype, fetches)
    best = run.call(e.b, _first(e, way, index, source), way.along.sizes[0])
    values = running.close(running.advance(running.open(initials), [best]))
    return [rounded(e, node.output, flatten(values[0])[0])]


def _lanes(e: Elemental, way: Way, index: Indices, initials: Sequence[Value]) -> list[Scalar]:
    """A maximum or minimum along the memory of a large array, in lanes."""
    along, node = way.along, way.along.node
    op, ahead = extremum_of(node), along.ahead(e, index)
    assert op is not None and ahead is not None

    def visit(at: Sequence[Index]) -> Value:
        (value,) = flatten(e.value(node.inputs[0], along.place(e, index, at)))
        return value

    return [rounded(e, node.output, extremum_in_lanes(e.b, op, along.sizes, initials[0], visit, ahead))]


def _word(e: Elemental, way: Way, index: Indices, initials: Sequence[Value]) -> list[Scalar]:
    """The sum of a few integers of a row in memory (word_rows.py)."""
    assert way.source is not None
    first, count = _first(e, way, index, way.source), way.along.sizes[0]
    return [sum_of_words(e.b, way.along.node, first, count, initials[0])]


def _in_tails(e: Elemental, way: Way, index: Indices, initials: Sequence[Value]) -> list[Scalar]:
    """The result of a maximum and the like whose rows are whole vectors (tails.py)."""
    along, node, running = way.along, way.along.node, Running(e, way.along.node)
    ahead = along.ahead(e, index) if along.sizes[-1] in FETCHED_ELEMENTS else None

    def advance(at: Sequence[Index], carried: Sequence[Value]) -> list[Value]:
        return running.advance(carried, [e.value(node.inputs[0], along.place(e, index, at))])

    return running.close(
        reduce_tails(e.b, along.sizes, way.lanes, running.open(initials), advance, running.merge, ahead)
    )


def _complex_run(e: Elemental, way: Way, index: Indices, initials: Sequence[Value]) -> list[Scalar]:
    node, order = way.along.node, way.along.order
    reduced: dict[int, Index] = dict.fromkeys(reduced_dimensions(node), 0)

    def place(prefix: Sequence[Index]) -> Indices:
        return full_index(node, index, reduced | dict(zip(order, prefix, strict=False)))

    outer = outer_of_runs(e.b.facts, [(node.inputs[0], order)])
    assert outer is not None
    return finished(e, node, sums_of_runs(e, outer, Factor(node.inputs[0], order, place)).results(initials))


_EMIT: dict[Kind, Callable[[Elemental, Way, Indices, Sequence[Value]], list[Scalar]]] = {
    Kind.BLOCKS: _blocks,
    Kind.COMPLEX_RUN: _complex_run,
    Kind.EXTREMUM_RUN: _extremum_run,
    Kind.LANES: _lanes,
    Kind.SUM_RUN: _sum_run,
    Kind.TAILS: _in_tails,
    Kind.WORD: _word,
}

RULES: dict[Op, ElementRule] = {Op.REDUCE: reduce_value}
