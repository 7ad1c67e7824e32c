"""reduce: as a value inside a fusion, and as a kernel whose loops follow memory order.

If the innermost dimension of the operand is reduced, a long sum of floats is in blocks (long_sums.py); any other
result is one chain, which LLVM splits over vector lanes by reassociation. If it is kept: column_reduction.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..hlo.opclasses import EXPENSIVE
from ..hlo.opcodes import Op
from .ahead import DISTANCE, LONG_RUN, fetch, streams
from .builder import Builder, Index, Loop, Unroll, Value
from .complex_sums import Factor, sums_of_runs
from .elemental import Elemental, ElementRule, Indices, Linear, Reads
from .elements import ROUNDED, Scalar, encode, flatten, parts, raw_type, round_to, unflatten
from .extremum import advance_three, close_three, extremum_of, merge_three, open_three, takes_three
from .extremum_run import ExtremumRun, run_of
from .graph import Buffer, Node, reachable
from .linear import is_linear
from .long_extremum import extremum_in_lanes, is_in_lanes
from .long_sums import (
    SPLIT,
    STRIDED,
    TURNS,
    Carried,
    LongSums,
    are_float_sums,
    component_type,
    is_long,
    long_sum,
)
from .sum_run import FEWEST, SumRun, addends_of, is_run, stored_of
from .tails import FETCHED, lanes_of, reduce_tails
from .word_rows import sum_of_words, takes_words

UNROLLABLE = 64  # elements up to which LLVM would unroll such loops before it makes vectors, and join scalars instead
WIDE = 16  # elements along a dimension from which on loops of three accumulators are unrolled at will


def reduced_dimensions(node: Node) -> tuple[int, ...]:
    return tuple(node.attributes["dimensions"])


def operands_of(node: Node) -> Sequence[Buffer]:
    return node.inputs[: len(node.inputs) // 2]


def initials_of(node: Node) -> Sequence[Buffer]:
    return node.inputs[len(node.inputs) // 2 :]


def _full_index(node: Node, kept: Indices, reduced: dict[int, Index]) -> Indices:
    remaining = iter(kept)
    rank = len(node.inputs[0].dims)
    return tuple(reduced[d] if d in reduced else next(remaining) for d in range(rank))


def by_memory(buffer: Buffer, dimensions: Sequence[int]) -> list[int]:
    """Dimensions in the memory order of a buffer, slowest first."""
    return [d for d in reversed(buffer.shape.minor_to_major) if d in dimensions]


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
        self.count = 3 if self.extremum else sum(parts(x.dtype) for x in node.outputs)

    def unroll(self, size: int) -> Unroll:
        """Of a loop over `size` elements. Where it may unroll, LLVM works on several vectors of a maximum a turn."""
        if not self.extremum or size < WIDE:
            return Unroll.SHORT
        return Unroll.ANY if size > UNROLLABLE else Unroll.VECTORIZED

    def open(self, values: Sequence[Value]) -> list[Value]:
        """The values to carry into the loops, from the flattened initial values."""
        return open_three(self.e.b, values[0]) if self.extremum else list(values)

    def advance(self, carried: Sequence[Value], elements: Sequence[Scalar]) -> list[Value]:
        """The carried values after one more element."""
        if self.extremum:
            return advance_three(self.e.b, self.extremum, carried, flatten(elements[0])[0])
        return _spread(combine(self.e, self.node, _gather(carried, self.node.outputs), elements))

    def merge(self, one: Sequence[Value], other: Sequence[Value]) -> list[Value]:
        """The carried values of the elements of both."""
        if self.extremum:
            return merge_three(self.e.b, self.extremum, one, other)
        return self.advance(one, _gather(other, self.node.outputs))

    def close(self, carried: Sequence[Value]) -> list[Scalar]:
        """The results, rounded to their types."""
        values = [close_three(self.e.b, carried)] if self.extremum else carried
        scalars = _gather(values, self.node.outputs)
        return [rounded(self.e, x, value) for x, value in zip(self.node.outputs, scalars, strict=True)]


def _spread(scalars: Sequence[Scalar]) -> list[Value]:
    return [v for s in scalars for v in flatten(s)]


def _gather(values: Sequence[Value], buffers: Sequence[Buffer]) -> list[Scalar]:
    remaining: Iterator[Value] = iter(values)
    return [unflatten([next(remaining) for _ in range(parts(x.dtype))], x.dtype) for x in buffers]


def reduce_value(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    """One result: a sum in blocks, or loops over the reduced dimensions that carry the accumulators."""
    b = e.b
    accumulators: list[Scalar] = []
    for initial in initials_of(node):
        accumulators.append((yield initial, (), False))
    order = [d for d in by_memory(node.inputs[0], reduced_dimensions(node)) if node.inputs[0].dims[d] != 1]
    runs = _sums_of_runs(e, node, index, order) if len(node.outputs) == 1 and are_float_sums(node) else None
    if runs is not None:
        values = finished(e, node, runs.results(_spread(accumulators)))
    elif is_long_sum(e, node) or is_single_sum(e, node) or _is_joined_sum(e, node, index, order):
        values = _long_sums(e, node, index, order, _spread(accumulators))
    elif (best := _extremum(e, node, index, order, accumulators)) is not None:
        values = [rounded(e, node.output, best)]
    elif (word := _word(e, node, index, order, _spread(accumulators))) is not None:
        values = [word]
    elif (all_lanes := _in_tails(e, node, index, order, accumulators)) is not None:
        values = all_lanes
    else:
        loops: list[Loop] = []
        b.walks = b.walks or math.prod(node.inputs[0].dims[d] for d in order) >= FEWEST
        running = Running(e, node)
        carried = running.open(_spread(accumulators))
        along = _Along(e, node, index, order, joins=not are_float_sums(node))
        for size in along.sizes:
            loops.append(b.open_loop(0, size, 1, carried, unroll=running.unroll(size)))
            carried = loops[-1].carried
        place = along.place([loop.index for loop in loops])
        elements: list[Scalar] = []
        for operand in operands_of(node):
            elements.append((yield operand, place, False))
        results = running.advance(carried, elements)
        for loop in reversed(loops):
            loop.next = results
            b.close_loop(loop)
            results = loop.values
        values = running.close(results)
    for k, value in enumerate(values):
        b.remember((node.outputs[k], index, False), value)
    return encode(b, node.outputs[number].dtype, values[number]) if raw else values[number]


def is_long_sum(e: Elemental, node: Node) -> bool:
    """Whether a reduction is a sum of floats that is long enough for blocks."""
    sizes = [node.inputs[0].dims[d] for d in reduced_dimensions(node)]
    return is_long(e.b.facts, sizes) and are_float_sums(node)


def is_single_sum(e: Elemental, node: Node) -> bool:
    """Whether it is the only sum of a kernel, and its elements in memory are enough for a function to add them up."""
    operand = node.inputs[0]
    single = node.output.shape.size == 1 and is_run(e.b.facts, operand.shape.size, single=True)
    return single and are_float_sums(node) and addends_of(operand) is not None


def _is_joined_sum(e: Elemental, node: Node, index: Indices, order: Sequence[int]) -> bool:
    """Whether dimensions that are one run in memory make a sum of floats long enough for a function to add it up."""
    if len(order) < 2 or e.b.strict or not are_float_sums(node):
        return False
    along = _Along(e, node, index, order)
    return len(along.sizes) == 1 and is_run(e.b.facts, along.sizes[0], single=False)


def long_sums(b: Builder, sizes: Sequence[int], nodes: Sequence[Node], others: Sequence[Node] = ()) -> LongSums:
    """Sums in blocks for all results of some reductions. others: reductions in the same loops, in chains.

    LLVM splits a chain only if those beside it are one operation each.
    """
    types = [component_type(b, x.dtype) for node in nodes for x in node.outputs for _ in range(parts(x.dtype))]
    chain = (SPLIT if all(map(is_one_operation, others)) else STRIDED) if others else None
    return long_sum(b, sizes, types, _turns([x for node in nodes for x in operands_of(node)]), chain)


def _turns(operands: Sequence[Buffer]) -> int:
    """Elements of each partial sum in a loop's body: with more loads than 16 of whole vectors, LLVM takes as long for
    their addresses as for all else.
    """
    if are_dear(operands):
        return 1
    read = {x for x in operands if x.writer is None}
    read |= {x for node in reachable(operands) for x in node.inputs if x.writer is None and x.dims}
    return TURNS if sum(x.dtype.bytes for x in read) <= 4 else TURNS // 2


def is_one_operation(node: Node) -> bool:
    """Whether a reduction has one result and its body one operation on both parameters."""
    body = node.bodies[0]
    writer = body.outputs[0].writer if len(body.outputs) == 1 else None
    return writer is not None and {*writer.inputs} == {*body.parameters}


def are_dear(operands: Iterable[Buffer]) -> bool:
    """Whether elements take so much code that it should be emitted only once."""
    nodes = list(reachable(operands))
    return len(nodes) > DEAR or any(node.opcode in EXPENSIVE for node in nodes)


DEAR = 16
"""Nodes under a reduction's operands whose code is as long as that of an expensive op."""


def finished(e: Elemental, node: Node, values: Sequence[Value]) -> list[Scalar]:
    """Sums as working values of the results' types."""
    scalars = _gather(values, node.outputs)
    return [rounded(e, x, value) for x, value in zip(node.outputs, scalars, strict=True)]


class _Along:
    """The reduced dimensions of a node in its operand's memory order. The last ones are joined if they are adjacent
    in memory and everything is read at its own offset. sizes: of these dimensions. joins: whether they may be joined.
    """

    def __init__(self, e: Elemental, node: Node, index: Indices, order: Sequence[int], joins: bool = True):
        self.e, self.node, self.index, self.order = e, node, index, order
        operand, apart = node.inputs[0], max(len(order) - 1, 0)
        while apart and operand.strides[order[apart - 1]] == operand.dims[order[apart]] * operand.strides[order[apart]]:
            apart -= 1
        self.dense = bool(order) and operand.strides[order[-1]] == 1
        self.joins = joins and self.dense and apart < len(order) - 1 and is_linear(operands_of(node))
        self.apart = apart if self.joins else len(order)
        dims = [operand.dims[d] for d in order]
        self.sizes = [*dims[: self.apart], *([math.prod(dims[self.apart :])] if self.joins else [])]

    def place(self, at: Sequence[Index]) -> Indices:
        """The index of the elements at a place along the dimensions."""
        reduced: dict[int, Index] = dict.fromkeys(reduced_dimensions(self.node), 0)
        reduced |= zip(self.order, at[: self.apart], strict=False)
        full = _full_index(self.node, self.index, reduced)
        if not self.joins:
            return full
        return Linear((self.e.b.add(self.e.offset(self.node.inputs[0], full), at[-1]),))

    def ahead(self) -> Callable[[Sequence[Index], int], None] | None:
        """What fetches ahead of elements, from their place and their number."""
        operand = self.node.inputs[0]
        long = len(self.sizes) == 1 or self.sizes[-1] * operand.dtype.bytes >= LONG_RUN
        buffers = streams(operands_of(self.node), operand) if self.dense and long else []

        def fetched(at: Sequence[Index], count: int) -> None:
            fetch(self.e, buffers, self.e.offset(operand, self.place(at)), count, DISTANCE)

        return fetched if buffers else None


def _long_sums(
    e: Elemental, node: Node, index: Indices, order: Sequence[int], initials: Sequence[Value]
) -> list[Scalar]:
    along = _Along(e, node, index, order)
    run = _sum_run(e, node, along)
    if run is not None:
        return finished(e, node, [e.b.op("arith.addf", initials[0], run)])
    e.b.walks = True

    def visit(at: Sequence[Index], carried: Carried) -> tuple[list[Value], Carried]:
        place = along.place(at)
        return _spread([e.value(x, place) for x in operands_of(node)]), carried

    sums = long_sums(e.b, along.sizes, [node])
    sums.ahead = along.ahead()
    sums.add_up(visit)
    return finished(e, node, sums.results(initials))


def _sum_run(e: Elemental, node: Node, along: _Along) -> Value | None:
    """The sum of all elements of a run, if a function of sum_run.py computes it."""
    operand = node.inputs[0]
    single = operand.shape.size == math.prod(along.sizes)
    if len(node.outputs) != 1 or not along.dense or len(along.sizes) != 1 or not is_run(e.b.facts, along.sizes[0], single):
        return None
    made = addends_of(operand)
    if made is None:
        return None
    offset, element = e.offset(operand, along.place([0])), raw_type(e.b.types, operand.dtype)
    arrays = [e.b.pointer(e.pointers[x.argument], offset, element) for x in made.arrays]
    return SumRun(made.form, operand.dtype, along.ahead() is not None).call(e.b, arrays, along.sizes[0])


def _extremum(
    e: Elemental, node: Node, index: Indices, order: Sequence[int], initials: Sequence[Scalar]
) -> Value | None:
    """A maximum or minimum along the memory of a large array; None if a reduction is none."""
    op = extremum_of(node) if takes_three(node) else None
    if op is None:
        return None
    along, operand = _Along(e, node, index, order), node.inputs[0]
    ahead = along.ahead() if is_in_lanes(along.sizes) else None
    source = run_of(e.b.facts, operand, along.sizes[0]) if along.dense and len(along.sizes) == 1 else None
    if source is not None:
        offset, element = e.offset(operand, along.place([0])), raw_type(e.b.types, source.dtype)
        first = e.b.pointer(e.pointers[source.argument], offset, element)
        best = ExtremumRun(op, source.dtype, ahead is not None).call(e.b, first, along.sizes[0])
        running = Running(e, node)
        return flatten(running.close(running.advance(running.open(_spread(initials)), [best]))[0])[0]
    if ahead is None:
        return None

    def visit(at: Sequence[Index]) -> Value:
        (value,) = flatten(e.value(node.inputs[0], along.place(at)))
        return value

    return extremum_in_lanes(e.b, op, along.sizes, flatten(initials[0])[0], visit, ahead)


def _word(e: Elemental, node: Node, index: Indices, order: Sequence[int], initials: Sequence[Value]) -> Value | None:
    """The sum of a few integers of a row in memory (word_rows.py)."""
    along, operand = _Along(e, node, index, order), node.inputs[0]
    source = stored_of(operand) if along.dense and len(along.sizes) == 1 else None
    if source is None or not takes_words(e.b.facts, node, along.sizes[0]):
        return None
    element = raw_type(e.b.types, operand.dtype)
    first = e.b.pointer(e.pointers[source.argument], e.offset(operand, along.place([0])), element)
    return sum_of_words(e.b, node, first, along.sizes[0], initials[0])


def _in_tails(
    e: Elemental, node: Node, index: Indices, order: Sequence[int], initials: Sequence[Scalar]
) -> list[Scalar] | None:
    """The result of a maximum and the like whose rows are whole vectors (tails.py); None if they are not."""
    along = _Along(e, node, index, order)
    ahead = along.ahead() if along.dense and along.sizes[-1] in FETCHED else None
    lanes = lanes_of(e.b.facts, node, along.sizes, along.joins, ahead is not None) if along.dense else None
    if lanes is None:
        return None
    running = Running(e, node)
    e.b.walks = e.b.walks or math.prod(along.sizes) >= FEWEST

    def advance(at: Sequence[Index], carried: Sequence[Value]) -> list[Value]:
        return running.advance(carried, [e.value(node.inputs[0], along.place(at))])

    return running.close(
        reduce_tails(e.b, along.sizes, lanes, running.open(_spread(initials)), advance, running.merge, ahead)
    )


def _sums_of_runs(e: Elemental, node: Node, index: Indices, order: Sequence[int]) -> LongSums | None:
    reduced: dict[int, Index] = dict.fromkeys(reduced_dimensions(node), 0)

    def place(prefix: Sequence[Index]) -> Indices:
        return _full_index(node, index, reduced | dict(zip(order, prefix, strict=False)))

    return sums_of_runs(e, Factor(node.inputs[0], order, place))


RULES: dict[Op, ElementRule] = {Op.REDUCE: reduce_value}


# A kernel whose root is a reduction that keeps the innermost dimension ----------------------------------------------
