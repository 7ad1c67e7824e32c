"""Along which dimensions of an op's result a kernel may be split: a rule for each opcode (partition.py)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from ..hlo.analysis.windows import running, window_of
from ..hlo.ir import Instruction
from ..hlo.library.calls import whole_bytes
from ..hlo.opcodes import Op
from ..hlo.shapes import Shape
from .inplace import BY_ELEMENT

PRODUCT_ROWS = 32
"""Rows of a product in a chunk of rows, at least: each chunk reads all columns, which a stack may copy into panels."""

TOGETHER = 4
"""Positions along a dimension from which stacks compute several of a convolution together: along rows of the images, or
between images where these are smaller. Steps along it would be refused.
"""

FEWEST_ROWS = 4
"""Positions along the others from which a convolution is split between them only. With fewer, few threads would have
work.
"""

WALK = 64
"""Elements that a scatter combines in the time in which a chunk reads an index and finds that it is another chunk's:
each chunk reads all indices, so a window of n elements pays for n / WALK chunks.
"""

FEWEST_CHUNKS = 4
"""Of a scatter: with fewer, the indices of one chunk may be most of the work."""

MANY_BATCHES = 8
"""Products of one dot that are enough pieces of work."""

MANY_COLUMNS = 256
"""Columns of a product that are split rather than its rows: four chunks of 64."""

FEW_COLUMNS = 16
"""Columns of a product with few rows, at least, that are split: two chunks of a vector."""

SplitRule = Callable[[Instruction, int], Sequence[bool]]
"""(instruction, rank of the result) → for each dimension, whether it may be split."""


def fastest(shape: Shape) -> int:
    """The fastest dimension in memory that is longer than 1."""
    return next((d for d in shape.minor_to_major if shape.dims[d] != 1), -1)


def _all(_: Instruction, rank: int) -> Sequence[bool]:
    return [True] * rank


def _dot(i: Instruction, rank: int) -> Sequence[bool]:
    """Many batches; or else the dimensions of the operand whose elements are adjacent in the result, if they are many
    or there are few rows, because a stack that copies that operand into panels does so once for all rows; or else
    rows, of all batches; or else batches.
    """
    batches, rows, columns = roles_of(i)
    count, high, wide = (math.prod(i.shape.dims[d] for d in role) for role in (batches, rows, columns))
    few = count * high < 2 * PRODUCT_ROWS and wide >= FEW_COLUMNS
    inner = fastest(i.shape)
    if count >= MANY_BATCHES:
        inside = batches
    elif inner not in batches and (few or wide >= MANY_COLUMNS):
        inside = columns
    else:
        inside = batches if inner not in batches and count > 1 and high < 2 * PRODUCT_ROWS else rows
    return [d in inside for d in range(rank)]


def roles_of(dot: Instruction) -> tuple[range, range, range]:
    """The dimensions of a product's result: batches, rows, and columns, which are the free dimensions of that operand
    whose elements are adjacent in the result.
    """
    batches = len(dot.attributes.get("lhs_batch_dims", ()))
    middle = dot.operands[0].shape.rank - len(dot.attributes.get("lhs_contracting_dims", ()))
    left, right = range(batches, middle), range(middle, dot.shape.rank)
    return (range(batches), right, left) if fastest(dot.shape) in left else (range(batches), left, right)


def _fft(i: Instruction, rank: int) -> Sequence[bool]:
    """The batch, unless the kernel has one memory for intermediate results of all of it."""
    transformed = len(i.attributes["fft_length"]) if not whole_bytes(i) else rank
    return [d < rank - transformed for d in range(rank)]


def window_elements(scatter: Instruction) -> int:
    """Elements that a scatter combines for one position of the batch."""
    updates = scatter.operands[-1].shape.dims
    return math.prod(updates[d] for d in scatter.attributes["update_window_dims"])


def _scatter(i: Instruction, rank: int) -> Sequence[bool]:
    """The dimensions in which a window is one element, so that it is in one chunk; wide windows only."""
    if window_elements(i) < WALK * FEWEST_CHUNKS:
        return [False] * rank
    single = {*i.attributes["inserted_window_dims"], *i.attributes.get("input_batching_dims", ())}
    return [d in single for d in range(rank)]


def _convolution(i: Instruction, rank: int) -> Sequence[bool]:
    """Not along the dimension of which stacks compute several positions together, if there are others; nor along
    features where pixels are neighbours in input and result: a vector of pixels is loaded once for several features.
    """
    memory = list(reversed(i.shape.minor_to_major))
    labels = i.attributes["dim_labels"]
    covered = {d: _covered(i, n) for n, d in enumerate(labels.output_spatial)}
    covered[labels.output_batch] = i.shape.dims[labels.output_batch]
    spatial = sorted(labels.output_spatial, key=memory.index, reverse=True)
    long = [d for d in (*spatial, labels.output_batch) if covered[d] >= TOGETHER]
    inner = next(iter(long or spatial), rank)
    others = math.prod(n for d, n in enumerate(i.shape.dims) if d not in (inner, labels.output_feature))
    if others < FEWEST_ROWS:
        return [True] * rank
    return [d != inner and not (d == labels.output_feature and along_pixels(i)) for d in range(rank)]


def along_pixels(convolution: Instruction) -> bool:
    """Whether pixels are neighbours in input and result."""
    labels, x, r = convolution.attributes["dim_labels"], convolution.operands[0].shape, convolution.shape
    return fastest(x) in labels.input_spatial and fastest(r) in labels.output_spatial


def _covered(convolution: Instruction, n: int) -> int:
    """Positions along spatial dimension n of the result whose windows lie entirely in the input; where it has holes,
    those that meet elements at the same window positions.
    """
    labels, w = convolution.attributes["dim_labels"], window_of(convolution)[n]
    size = convolution.operands[0].shape.dims[labels.input_spatial[n]]
    first = max(0, -(-w.pad_low // w.stride))
    last = ((size - 1) * w.lhs_dilate + w.pad_low - (w.size - 1) * w.rhs_dilate) // w.stride
    inside = max(0, min(last + 1, convolution.shape.dims[labels.output_spatial[n]]) - first)
    return inside // (w.lhs_dilate // math.gcd(w.stride, w.lhs_dilate))


def _sort(i: Instruction, rank: int) -> Sequence[bool]:
    return [d not in i.dimensions for d in range(rank)]


def _reduce_window(i: Instruction, rank: int) -> Sequence[bool]:
    """Not along a running reduction, which reads its results one after the other."""
    run = running(i)
    return [run is None or d != run.dimension for d in range(rank)]


def _topk(_: Instruction, rank: int) -> Sequence[bool]:
    return [d < rank - 1 for d in range(rank)]


RULES: Mapping[Op, SplitRule] = {
    **dict.fromkeys(BY_ELEMENT - {Op.PARAMETER, Op.CONSTANT, Op.TUPLE}, _all),
    Op.CONVOLUTION: _convolution,
    Op.DOT: _dot,
    Op.FFT: _fft,
    Op.GATHER: _all,
    Op.REDUCE: _all,  # the dimensions that remain
    Op.REDUCE_WINDOW: _reduce_window,
    Op.SCATTER: _scatter,
    Op.SORT: _sort,
    Op.TOPK: _topk,
}
"""Ops that may be split.

Each chunk of a scatter walks over all indices and takes those of its own positions, in order: results do not depend on
the split, whatever is combined. dynamic-update-slice is missing because most of its result is not written; so are ops
with state or effects.
"""


ITEM_RULES = {**RULES, Op.DOT: _all}
"""The same where each element is computed alone: no panels are made."""
