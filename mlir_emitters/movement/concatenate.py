"""concatenate at a kernel's root: one nest per operand, so that no element needs to select its operand; or one nest for
all that interleaves them, if each has few neighbours in memory.
"""

from __future__ import annotations

from ...hlo.opclasses import EXPENSIVE
from ...hlo.opcodes import Op
from ...hlo.records import dataclass, replace
from ..core.builder import Index, Unroll
from ..core.graph import Buffer, Node, reachable
from ..loops.elemental import Elemental, Linear
from ..loops.form import Answer, Fits, more
from ..loops.linear import is_linear
from ..loops.loops import with_loops
from ..loops.ranges import Steps, runs
from ..loops.view import Subject, View
from .regions import boxes_of

MAXIMUM_NEIGHBOURS = 8
"""Neighbours in memory that LLVM interleaves at most."""

MAXIMUM_BYTES = 32
"""Bytes of them. A few more of 8 bytes, and LLVM makes gathers and scatters with AVX-512: slower than a nest each."""


CHAIN_OPERATIONS, MINIMUM_CHAIN_ROWS = 60, 1 << 10
"""Minimum operations of a row, and rows, for which four vectors of rows are computed side by side."""


@dataclass(frozen=True, slots=True)
class Interleaved:
    """rows: whether one loop runs over all rows; unroll: else, of the nest over them."""

    dimension: int
    rows: bool
    unroll: Unroll | None


def pieces_fit(view: View, subject: Subject) -> Answer:
    node = subject.node
    if not isinstance(boxes_of(subject.results, view.numbered), str):
        return "regions are better"
    (d,) = node.attributes["dimensions"]
    return Fits(d, d not in view.numbered)


def interleaved_fits(view: View, subject: Subject) -> Answer:
    fits, node, result = pieces_fit(view, subject), subject.node, subject.first
    if isinstance(fits, str):
        return fits
    d, count = fits.parameters, result.dims[fits.parameters]
    if result.strides[d] != 1:
        return "elements of an operand are not apart in memory"
    if count > MAXIMUM_NEIGHBOURS:
        return more(count, "neighbours in memory", MAXIMUM_NEIGHBOURS)
    if count * result.dtype.bytes > MAXIMUM_BYTES:
        return more(count * result.dtype.bytes, "bytes of neighbours", MAXIMUM_BYTES)
    if not all(x.dims[d] < 2 or _is_short(x) for x in node.inputs):
        return "several neighbours are much code each"
    chained = (
        result.shape.size // count >= MINIMUM_CHAIN_ROWS and sum(1 for _ in reachable(node.inputs)) >= CHAIN_OPERATIONS
    )
    rows = not chained and all(_in_order(x, result) for x in node.inputs if x.shape.size)
    return replace(fits, parameters=Interleaved(d, rows, Unroll.ABREAST if chained else None))


def emit_pieces(e: Elemental, subject: Subject, d: int, steps: Steps | None) -> None:
    """Emit one loop nest per operand."""
    b, node, result, start = e.b, subject.node, subject.first, 0
    for source in node.inputs:

        def write(index: tuple[Index, ...], source: Buffer = source, start: int = start) -> None:
            e.store(result, (*index[:d], b.add(index[d], start), *index[d + 1 :]), e.value(source, index, raw=True))

        if source.shape.size:
            with_loops(b, source, write, steps)
        start += source.dims[d]


def _is_short(source: Buffer) -> bool:
    """Whether an element is little code, which interleaving copies for each neighbour."""
    loops = (Op.CONVOLUTION, Op.DOT)
    return not any(x.bodies or x.opcode in EXPENSIVE or x.opcode in loops for x in reachable([source]))


def emit_interleaved(e: Elemental, subject: Subject, form: Interleaved, steps: Steps | None) -> None:
    """One nest over all dimensions but that of the concatenation: apart, each operand would pass over all the lines of
    the result, with a gap after every few elements.
    """
    node, result, d = subject.node, subject.first, form.dimension
    if form.rows:
        _interleave_rows(e, node, result, d, steps)
        return

    def write(index: tuple[Index, ...]) -> None:
        places = [(x, (*index[:d], k, *index[d + 1 :])) for x in node.inputs for k in range(x.dims[d])]
        values = [e.value(source, at, raw=True) for source, at in places]
        for k, value in enumerate(values):
            e.store(result, (*index[:d], k, *index[d + 1 :]), value)

    rows = replace(result.shape, dims=(*result.dims[:d], 1, *result.dims[d + 1 :]))
    with_loops(e.b, Buffer(rows), write, steps, unroll=form.unroll)


def _in_order(source: Buffer, result: Buffer) -> bool:
    """Whether an operand's elements follow each other as those of the result do, in memory or as they are computed."""
    own, other = ([d for d in x.shape.minor_to_major if source.dims[d] != 1] for x in (source, result))
    return own == other and is_linear([source])


def _interleave_rows(e: Elemental, node: Node, result: Buffer, d: int, steps: Steps | None) -> None:
    """One loop over all rows, whatever dimensions number them: the last of these may be too short for vectors."""
    b, width = e.b, result.dims[d]
    with runs(b, steps, result.shape.size // width) as (first, count), b.loop(0, count) as loop:
        row = b.add(first, loop.index)
        values = [
            e.value(x, Linear((b.add(b.mul(row, x.dims[d]), k),)), raw=True)
            for x in node.inputs
            for k in range(x.dims[d])
        ]
        for k, value in enumerate(values):
            e.store(result, Linear((b.add(b.mul(row, width), k),)), value)
