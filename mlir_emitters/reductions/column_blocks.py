"""How a reduction whose results lie across memory is split: blocks of columns, rows that are combined together, and
chains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import Unroll
from ..core.facts import Code, Facts
from ..core.graph import Buffer, Node
from ..loops.fetch import streams
from ..loops.reduced import operands_of, reduced_dimensions
from .extremum import extremum_of, takes_three
from .long_sums import SHORT_CHAIN_ADDITIONS, are_float_sums
from .reduce import UNROLLABLE_ELEMENTS, are_dear

BLOCK_COLUMNS = 1024
"""Results accumulated together: a page of f32 of each row."""

ROWS_TOGETHER = 4
"""Rows of a block combined per write of an accumulator: a fifth of the register traffic."""

SUMMED_ROWS = 8
"""The same for sums of floats that are cheap to make."""

NARROW_COLUMNS = 2 * UNROLLABLE_ELEMENTS
"""Columns up to which ROWS_TOGETHER of sums are read together: more took twice the time from memory."""

MINIMUM_PIECE_COLUMNS = 512
"""Minimum columns for which blocks may be pieces of rows."""

SMALL_ELEMENTS = 1 << 16
"""Of an operand: it does not matter how long those of few columns take."""

MINIMUM_ROW, MAXIMUM_ROW = 3, 15
"""Columns that LLVM would gather, though they are vectors as well: of two, it parts them."""

MINIMUM_BEST_ROW = 4
"""As above, for floats that are compared."""

MAXIMUM_COPIED_ELEMENTS = 64
"""Of all rows of them, which LLVM has side by side."""

MINIMUM_APART, MAXIMUM_APART = 5, 32
"""Columns whose vectors have loops of their own."""

MINIMUM_ROUNDED = 9
"""As above, for compared bf16, of which fewer are as fast as scalars that LLVM joins."""

MINIMUM_BYTES = 4
"""Of their elements."""

FEW_CHAINS = 8
"""Chains whose errors do not cancel out yet."""


@dataclass(frozen=True, slots=True)
class Columns:
    """outer, column: the kept dimensions of the operand, by memory, the fastest apart; rows: the reduced ones.

    sums: which reductions are float sums; spills: whose accumulators are added to totals, after `limit` elements;
    together: rows that are combined together; ahead: arrays that are fetched; apart: numbers of columns whose vectors
    have loops of their own; narrow: few columns of cheap sums; lean: few of LLVM's passes are enough; around: of a loop
    around short rows, which LLVM unrolls. Where processors can gather, it would make vectors of several of them,
    element by element. Each row by itself is a vector or two, except where elements are narrow.
    """

    outer: tuple[int, ...]
    column: int
    rows: tuple[int, ...]
    width: int
    block: int
    sums: tuple[bool, ...]
    spills: tuple[bool, ...]
    together: int
    limit: int
    ahead: tuple[Buffer, ...]
    apart: range
    narrow: bool
    lean: bool
    around: Unroll

    @property
    def code(self) -> Code:
        return Code(walks=True, lean=self.lean)


def columns_of(facts: Facts, nodes: Sequence[Node]) -> Columns:
    """Of reductions over the same columns."""
    operand, reduced = nodes[0].inputs[0], reduced_dimensions(nodes[0])
    live = operand.order
    *outer, column = (d for d in live if d not in reduced)
    rows = tuple(d for d in live if d in reduced)
    width, count = operand.dims[column], math.prod(operand.dims[d] for d in rows)
    sums = tuple(not facts.strict and are_float_sums(node) for node in nodes)
    read = [x for node in nodes for x in operands_of(node)]
    cheap = all(sums) and not are_dear(read)
    compared = [are_compared(node) for node in nodes]
    ahead = streams(facts, read, operand) if width >= MINIMUM_PIECE_COLUMNS and not cheap else []
    narrow = cheap and UNROLLABLE_ELEMENTS < width <= NARROW_COLUMNS
    together = SUMMED_ROWS if (cheap or (all(compared) and not ahead)) and not narrow else ROWS_TOGETHER
    many = count > FEW_CHAINS * SHORT_CHAIN_ADDITIONS * together  # chains: their errors cancel out
    limit = (SHORT_CHAIN_ADDITIONS if many else SHORT_CHAIN_ADDITIONS // 2) * together
    known = all(is_sum or best for is_sum, best in zip(sums, compared, strict=True))
    return Columns(
        tuple(outer), column, rows, width, min(BLOCK_COLUMNS, width), sums,
        tuple(is_sum and count > limit for is_sum in sums), together, limit, tuple(ahead),
        range(_minimum_apart(nodes), MAXIMUM_APART), narrow,
        known and (narrow or _is_lean(operand, width)),
        _around(facts, nodes, sums, width, count),
    )  # fmt: skip


def _is_lean(operand: Buffer, width: int) -> bool:
    """Whether few of LLVM's passes are enough for what it knows: of long rows, or of a small operand."""
    return width >= MINIMUM_PIECE_COLUMNS or operand.shape.size <= SMALL_ELEMENTS


def is_best(node: Node) -> bool:
    return node.opcode is Op.REDUCE and extremum_of(node) is not None


def are_compared(node: Node) -> bool:
    """Whether accumulators are those of a long extremum of floats, but for f16, which are compared by integers."""
    return is_best(node) and node.output.dtype is not DType.F16 and takes_three(node)


def _minimum_apart(nodes: Sequence[Node]) -> int:
    rounded = any(x.dtype is DType.BF16 for node in nodes if is_best(node) for x in node.inputs)
    return MINIMUM_ROUNDED if rounded else MINIMUM_APART


def _around(facts: Facts, nodes: Sequence[Node], sums: Sequence[bool], width: int, count: int) -> Unroll:
    wide = all(x.dtype.bytes >= MINIMUM_BYTES for node in nodes for x in operands_of(node))
    plain = all(is_sum or not node.inputs[0].dtype.is_float for is_sum, node in zip(sums, nodes, strict=True))
    least = MINIMUM_ROW if plain else MINIMUM_BEST_ROW
    short = least <= width <= MAXIMUM_ROW and width * count <= MAXIMUM_COPIED_ELEMENTS
    return Unroll.SCALAR if wide and short and facts.processor.gathers else Unroll.ANY
