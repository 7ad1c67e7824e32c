"""concatenate at a kernel's root: one nest per operand, so that no element needs to select its operand; or one nest for
all that interleaves them, if each has few neighbours in memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..hlo.opclasses import EXPENSIVE
from ..hlo.opcodes import Op
from ..hlo.records import replace
from ..planning.partition import Partition
from .builder import Index, Unroll
from .elemental import Elemental, Linear
from .graph import Buffer, Node, reachable
from .linear import is_linear
from .loops import with_loops
from .ranges import Steps, runs
from .regions import boxes_of

WIDEST = 8
"""Neighbours in memory that LLVM interleaves at most."""

LONGEST = 32
"""Bytes of them. A few more of 8 bytes, and LLVM makes gathers and scatters with AVX-512: slower than a nest each."""


CHAIN, LEAST_ROWS = 60, 1 << 10
"""Operations of a row, and rows, from which on four vectors of rows are computed side by side."""


def takes_steps(node: Node, result: Buffer, partition: Partition) -> bool:
    """Whether a result can be computed in steps: of dimensions that all operands share, or in regions."""
    return node.attributes["dimensions"][0] not in partition.dimensions or bool(
        boxes_of([result], partition.dimensions)
    )


def emit_concatenate(
    e: Elemental, node: Node, targets: Sequence[tuple[Buffer, Buffer]], steps: Steps | None = None
) -> bool:
    """Emit one loop nest per operand. False where regions (regions.py) are better."""
    b = e.b
    if len(targets) != 1 or boxes_of([targets[0][1]], () if steps is None else steps.dimensions):
        return False
    result = targets[0][1]
    (d,) = node.attributes["dimensions"]
    if _is_short_row(node, result, d):
        _interleave(e, node, result, d, steps)
        return True
    start = 0
    for source in node.inputs:

        def write(index: tuple[Index, ...], source: Buffer = source, start: int = start) -> None:
            e.store(result, (*index[:d], b.add(index[d], start), *index[d + 1 :]), e.value(source, index, raw=True))

        if source.shape.size:
            with_loops(b, source, write, steps)
        start += source.dims[d]
    return True


def _is_short_row(node: Node, result: Buffer, d: int) -> bool:
    """Whether the operands have few neighbours in memory together, and those with several are little code."""
    count = result.dims[d]
    if result.strides[d] != 1 or count > WIDEST or count * result.dtype.bytes > LONGEST:
        return False
    return all(x.dims[d] < 2 or _is_short(x) for x in node.inputs)


def _is_short(source: Buffer) -> bool:
    """Whether an element is little code, which interleaving copies for each neighbour."""
    loops = (Op.CONVOLUTION, Op.DOT)
    return not any(x.bodies or x.opcode in EXPENSIVE or x.opcode in loops for x in reachable([source]))


def _interleave(e: Elemental, node: Node, result: Buffer, d: int, steps: Steps | None) -> None:
    """One nest over all dimensions but that of the concatenation: apart, each operand would pass over all the lines of
    the result, with a gap after every few elements.
    """

    def write(index: tuple[Index, ...]) -> None:
        places = [(x, (*index[:d], k, *index[d + 1 :])) for x in node.inputs for k in range(x.dims[d])]
        values = [e.value(source, at, raw=True) for source, at in places]
        for k, value in enumerate(values):
            e.store(result, (*index[:d], k, *index[d + 1 :]), value)

    rows = replace(result.shape, dims=(*result.dims[:d], 1, *result.dims[d + 1 :]))
    over = Buffer(rows)
    chained = math.prod(rows.dims) >= LEAST_ROWS and sum(1 for _ in reachable(node.inputs)) >= CHAIN
    if not chained and all(_in_order(x, result) for x in node.inputs if x.shape.size):
        _interleave_all(e, node, result, d, steps)
    else:
        with_loops(e.b, over, write, steps, unroll=Unroll.ABREAST if chained else None)


def _in_order(source: Buffer, result: Buffer) -> bool:
    """Whether an operand's elements follow each other as those of the result do, in memory or as they are computed."""
    own, other = ([d for d in x.shape.minor_to_major if source.dims[d] != 1] for x in (source, result))
    return own == other and is_linear([source])


def _interleave_all(e: Elemental, node: Node, result: Buffer, d: int, steps: Steps | None) -> None:
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
