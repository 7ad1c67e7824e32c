"""How a tiled product is split: tiles of rows and vectors of columns, panels of B, blocks of the contracting dimension,
and where totals are. The algorithm is in dot_tiled.py.
"""

from __future__ import annotations

import math

from ...hlo.dtypes import DType
from ...hlo.records import dataclass, replace
from ...planning.partition import Partition
from ..core.facts import Facts
from .dot_dims import Dimension
from .dot_dtypes import IN_VECTORS
from .dot_flat import FLAT_ROWS, MINIMUM_PACK_ROWS, NEAR_TILE_ROWS, is_flat, is_large, near_rows, shares_lines
from .dot_product import Product, is_readable, positions_of_step
from .dot_registers import FEW_REGISTERS, best_tile, flat_tile, lanes_of
from .dot_words import Words

MAXIMUM_EVEN_TILES = 8
"""Tiles of rows, up to which, or of words, a tile's height divides the rows: one tile's code is enough."""

MINIMUM_HEIGHT_ROWS = 4
"""Rows of such a tile: lower ones use a loaded vector of B too few times."""

PANEL_DEPTH = 256
"""Contracting elements of a packed panel, and multiply-adds per read and write of a total."""

LONG_DEPTH = 2 * PANEL_DEPTH
"""The same with many registers, whose machines have large second caches: XLA's depth, too."""

WHOLE_DEPTH = 2 * PANEL_DEPTH
"""The same for panels with the whole depth: for narrower results and for epilogues."""

PRECISE_BLOCKS = 48
"""Blocks of f32 that may be added up in f32."""

FEW_SUM_VECTORS = 8
"""Vectors of sums, up to which a tile waits for additions, not for memory: it has several sums of each."""

FEW_DEPTH = PANEL_DEPTH // 4
"""The depth of its blocks."""

STREAM_DEPTH = 16
"""Of one row: as many rows of B are read along all columns, while the next ones are fetched."""

NEAR_DEPTH = 64
"""As above, for a B that a processor reads from its caches, and that is not fetched."""

STREAM_ROWS = 8
"""The same with few registers, whose panels are narrow: a page of each of more rows has left the caches."""

STREAM_TOTAL_COLUMNS = 1 << 13
"""Columns whose totals are on the stack if a row is read so: 32 KiB, half of the first caches."""

BAND_ROWS = 256
"""Rows whose totals are on the stack: with f64 and 64 columns, 128 KiB."""

STEP_ROWS = 256
"""Rows for which a panel is packed once, of those that a call computes."""

FLAT_DEPTH = 256
"""Of several rows that read B in place: as many rows of B are read along all columns."""


@dataclass(frozen=True, slots=True)
class StepSizes:
    """The columns or the rows of a step, both 0 if it is of loops around; together: how many steps a panel is packed
    for at once; least: steps of a chunk.
    """

    columns: int = 0
    rows: int = 0
    together: int = 1
    least: int = 1

    @staticmethod
    def of(product: Product, partition: Partition | None) -> StepSizes:
        if partition is None:
            return StepSizes()
        columns, least = positions_of_step(product.column, partition), partition.least
        rows = 0 if columns else positions_of_step(product.row, partition)
        most = max(1, STEP_ROWS // rows) if rows else 1
        return StepSizes(columns, rows, next(n for n in range(most, 0, -1) if least % n == 0), least)


@dataclass(frozen=True, slots=True)
class TileShape:
    """A tile. flat: whether it reads B in place, as the few rows use each element once or twice; words: what
    contracting elements are packed as, if not one by one; converting: whether factors of A are converted as they are
    read.

    rows, width, lanes: of rows, of columns, and of a vector of these; sums: vectors of sums of a tile that is of all
    rows, whatever the steps; pairs: two neighbours of A, bf16, are read at once.
    """

    flat: bool
    words: Words | None
    converting: bool
    rows: int
    width: int
    lanes: int
    sums: int
    pairs: bool

    @property
    def few_sums(self) -> bool:
        return self.sums <= FEW_SUM_VECTORS

    @property
    def size(self) -> int:
        """Contracting elements of a word."""
        return 1 if self.words is None else self.words.size

    def depth_of(self, depth: Dimension) -> Dimension:
        """The contracting dimension, of words."""
        n = self.size
        return replace(depth, size=-(-depth.size // n), lhs=depth.lhs * n, rhs=depth.rhs * n)

    def reads_words(self, depth: Dimension) -> bool:
        """Whether a tile reads words of A where they lie."""
        return self.words is not None and self.words.are_read(depth.lhs)


@dataclass(frozen=True, slots=True)
class Blocking:
    """narrow: whether sums are no results as they are, and totals are a tile's; total: their dtype; banded: whether
    those of a band of rows are on the stack; block: contracting elements, or words, of a panel.

    streams: whether a block of B is read along all columns; later: tiles fetch the next block of B, not the next rows;
    pages: sums of a page of columns of the only row are on the stack; spreads: A is copied, its rows apart; fetches,
    fetches_left: whether B, or A, is fetched where it comes from afar.
    """

    product: Product
    wide: DType
    steps: StepSizes
    tile: TileShape
    narrow: bool
    total: DType
    banded: bool
    block: int
    streams: bool
    later: bool = False
    pages: bool = False
    spreads: bool = False
    fetches: bool = True
    fetches_left: bool = True

    @property
    def depth(self) -> Dimension:
        return self.tile.depth_of(self.product.depth)

    @property
    def band(self) -> int:
        """Rows of a band."""
        rows = self.tile.rows
        return rows * max(1, BAND_ROWS // rows) if self.banded else self.product.row.size


def blocking_of(facts: Facts, product: Product, wide: DType, narrow: bool, partition: Partition | None) -> Blocking:
    """wide: the dtype of sums; narrow: as of Blocking."""
    steps = StepSizes.of(product, partition)
    tile = _shape_of(facts, product, wide, narrow, steps)
    few_registers = facts.processor.vector_registers <= FEW_REGISTERS
    found = _blocks_of(product, wide, narrow, steps, tile, few_registers)
    if found.streams:
        found = _streamed(facts, found, few_registers)
    whole = narrow and not found.banded and not found.streams
    depth = found.depth.size
    return replace(
        found,
        block=depth if whole else min(found.block, depth),
        # A fetch takes the place of a load.
        fetches=product.row.size > 1 or few_registers or is_large(product, wide, facts),
        fetches_left=product.left.dtype is wide or not few_registers,
    )


def _shape_of(facts: Facts, product: Product, wide: DType, narrow: bool, steps: StepSizes) -> TileShape:
    registers, parts, row = facts.processor.vector_registers, product.parts, product.row.size
    left, right = product.left.dtype, product.right.dtype
    flat = is_flat(product, wide, facts, narrow)
    words = None if flat else Words.of(facts, left, right, wide, product.depth.size)
    converting = words is None and left is not wide and converts_in_place(product)
    if flat:
        height, vectors = flat_tile(
            registers, row, NEAR_TILE_ROWS if _is_near(facts, product, wide) else FLAT_ROWS, parts
        )
    else:
        codes = min(left.bits, right.bits) <= 8
        height, vectors = best_tile(registers, converting, codes and wide.is_float, parts)

    def height_for(rows: int) -> int:
        """Of tiles: one that divides the rows, where that is worth it."""
        even = next((n for n in range(height, MINIMUM_HEIGHT_ROWS // parts - 1, -1) if rows % n == 0), 0)
        lower = even and ((words is not None and words.wraps) or rows <= MAXIMUM_EVEN_TILES * even)
        return even if lower else height

    columns = product.column.size
    lanes = lanes_of(facts.vector_bits, wide, columns if flat else 0)
    width = min(vectors * lanes, -(-columns // lanes) * lanes)
    # How products are summed must depend on neither steps nor a tile's place: a last bit would.
    sums = height_for(row) * parts * width // lanes
    room = registers <= FEW_REGISTERS and sums + width // lanes + 2 <= FEW_REGISTERS
    pairs = room and words is None and (left, wide, product.depth.lhs) == (DType.BF16, DType.F32, 1)
    # In rows that tiles follow each other in.
    rows = height_for(steps.rows * steps.together or row)
    width = math.gcd(width, steps.columns * steps.least) if steps.columns else width
    return TileShape(flat, words, converting, rows, width, lanes, sums, pairs)


def _is_near(facts: Facts, product: Product, wide: DType) -> bool:
    """Whether the tiles of few rows read parts of a large B along all columns."""
    return is_large(product, wide, facts) and product.row.size <= near_rows(facts)


def _blocks_of(
    product: Product, wide: DType, narrow: bool, steps: StepSizes, tile: TileShape, few_registers: bool
) -> Blocking:
    """Blocks of the depth, and where totals are."""
    size = tile.depth_of(product.depth).size
    streams = tile.flat and is_readable(product, wide)
    if narrow:
        streams = streams and product.row.size == 1 and product.column.size <= STREAM_TOTAL_COLUMNS
    block = FEW_DEPTH if tile.few_sums and not streams else PANEL_DEPTH
    precise = wide is DType.F32 and size > PRECISE_BLOCKS * block
    banded = precise or (narrow and not streams and size > WHOLE_DEPTH)
    if precise:
        block = PANEL_DEPTH if tile.few_sums else 2 * PANEL_DEPTH
    elif wide.is_float and not (tile.few_sums or tile.flat or narrow or few_registers):
        block = LONG_DEPTH
    total = DType.F64 if precise else wide
    return Blocking(product, wide, steps, tile, narrow, total, banded, block, streams and not banded)


def _streamed(facts: Facts, found: Blocking, few_registers: bool) -> Blocking:
    """Of blocks of B that are read along all columns."""
    product, wide, tile = found.product, found.wide, found.tile
    later = product.row.size == 1 or _is_near(facts, product, wide)
    # Of a B in the last cache, tiles read blocks as fast.
    far = (
        found.depth.size * product.column.size * product.right.dtype.bytes >= 3 * facts.processor.last_cache_bytes // 4
    )
    pages = far and product.row.size == 1 and product.parts == 1  # dot_stream.py
    short = STREAM_ROWS if few_registers else STREAM_DEPTH if is_large(product, wide, facts) else NEAR_DEPTH
    # Chains of complex sums are short in XLA.
    flat = FEW_DEPTH if product.parts > 1 and tile.few_sums else FLAT_DEPTH
    block = (NEAR_DEPTH if pages else short) if later else flat
    return replace(found, block=block, later=later, pages=pages, spreads=not later and shares_lines(product, facts))


def converts_in_place(product: Product) -> bool:
    """Whether factors of A are converted as they are read, and not in front of each tile: where they are read a few
    times, where that is an instruction, and where a tile's factors of a step are adjacent: too few for a loop.
    """
    if product.factors < MINIMUM_PACK_ROWS or product.depth.lhs != 1:
        return product.left.dtype in IN_VECTORS
    return product.left.dtype in IN_VECTORS.keys() - {DType.F16}
