"""Loop nests over the elements of an array: in memory order, or in tiles if an operand is read across that order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import gcd, prod
from typing import TypeAlias

from llvmlite import ir

from ...hlo.ir import Instruction
from ...hlo.opclasses import EXPENSIVE
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ...hlo.shapes import Shape
from ..core.abreast import spread
from ..core.builder import Code, IndexValue, Loop, Once, Unroll
from ..core.graph import walk
from ..core.registers import I32, memory_type
from ..core.stack import alloca
from ..core.view import View
from . import planes as channels
from .crossings import Crossing, crossings_of, fastest_dimension
from .elemental import Elemental, Index
from .form import Fit, Results, Task, Unfit, form, needs
from .leaf import Leaf, write_all
from .linear import is_linear
from .memory import LINE, Pointer, address, load
from .planes import Channels
from .ranges import Steps, block_of, blocks, elements, in_order, loops_over
from .transposed import transposed

Body: TypeAlias = Callable[[list[IndexValue]], None]

TILE_SIDE = 64
"""Elements along each side of a tile: 16 KiB for floats."""

MINIMUM_TILED_ELEMENTS = TILE_SIDE * TILE_SIDE
"""Elements of an array that is read across memory, at least: those of a tile."""

MINIMUM_TILED_SIDE = 8
"""Elements of the result along each side, at least: what is one value a row needs no tiles."""

SHORTEST = 8
"""Neighbours that a loop of constant length is worth it for; of fewer, it goes over what the steps have of each row."""

NARROW = 2
"""For elements of at most NARROW bytes, loops are not unrolled. LLVM would unroll a short one, vectorise a loop outside
or inside it and build the vectors element by element, which costs seconds of compile time and thousands of moves.
"""


APART = range(8, 31)
"""Elements of a row that LLVM would unroll as a whole if it might, and then, where processors can, gather and scatter
elements of several rows.
"""

GATHERED = range(3, 8)
"""As above, for shorter rows of reductions. Elements of rows of two are split into vectors."""

FOLDED, MASKING = 16, 512
"""Elements of a row below which LLVM makes one masked vector of what fills no whole ones; bits of vectors of processors
that have masks. Without, those of narrow elements take several times as long as the rest.
"""

CHEAP = 12
"""Operations on an element, of which such a row has two copies: of whole vectors, and of the rest."""

SHORT = 16
"""Iterations of a loop that LLVM unrolls completely."""

COPIES = 8
"""Copies of a loop that reads across the order of memory, at most: three or five make long transposes faster."""

CROWDED = 1024
"""Bytes of which rows of a result that lie a multiple apart share few places of the nearest cache."""

TURNS = 8
"""Rows of a result of which parts of a line, which the next positions outside them complete, are written by turns."""

BESIDE = 8
"""Elements of a step, at most, whose rows LLVM interleaves as it vectorises the loop over steps."""

LEAST_SIDE = 4
"""Of the blocks that are transposed in registers: smaller ones do not pay off."""

STREAMED = 8 << 20
"""Minimum bytes of a result for which the lines of its tiles bypass the caches: they would be read only to be lost."""


@dataclass(frozen=True, slots=True)
class Modes:
    """unroll: the mode of loops. cut: where the loop over the last dimension, of more than one element, ends, and
    another one begins; 0 for one loop. around: the mode of the loops around rows, if it is another one.
    """

    unroll: Unroll = Unroll.FREELY
    cut: int = 0
    around: Unroll | None = None


def modes_of(
    view: View, shape: Shape, across: bool = False, long: bool = False, cheap: bool = False, beside: bool = False
) -> Modes:
    """The modes of loops over all elements in memory order.

    across: whether something is read across that order, and loops are not unrolled: LLVM makes vectors element by
    element then, in each copy. A kernel of 3 × 3 positions took 50 ms to compile. long: whether an element is a long
    chain of operations. cheap: whether it takes so little code that a row may have two copies, if no step divides it.
    beside: whether it is a reduction of what is beside other elements' in memory.
    """
    free = Unroll.ABREAST if long else Unroll.FREELY
    fast = fastest_dimension(shape)
    row = 0 if fast is None else shape.dims[fast]
    masks, narrow = view.vector_bits >= MASKING, shape.dtype.bytes <= NARROW
    apart = masks and row in APART and not shape.dtype.is_complex
    unroll = Unroll.NEVER if across or (apart and not narrow) else Unroll.SHORT if narrow else free
    cut = SHORTEST if cheap and narrow and not masks and SHORTEST < row < FOLDED else 0
    around = Unroll.SCALAR if beside and masks and not narrow and row in GATHERED else None
    return Modes(unroll, cut, around)


def nest(e: Elemental, shape: Shape, body: Body, steps: Steps | None, modes: Modes) -> None:
    """Call body(positions) in loops over all elements in memory order, or over those of the steps."""
    several = [d for d in reversed(shape.minor_to_major) if shape.dims[d] != 1]  # a row is the last one's
    order = [*(d for d in range(shape.rank) if shape.dims[d] == 1), *several]
    _nest(e, shape.dims, order, [0] * shape.rank, body, modes, steps)


def _nest(
    e: Elemental,
    dims: Sequence[int],
    order: Sequence[int],
    positions: list[IndexValue],
    body: Body,
    modes: Modes,
    steps: Steps | None = None,
) -> None:
    unroll, cut, around = modes.unroll, modes.cut, modes.around
    loops: list[Loop | Once] = []
    rest = None if steps is None or len(order) < len(dims) else _few_beside(steps, dims, order)
    if steps is not None and rest is not None:
        kind = Unroll.FREELY if rest else unroll
        for outer, inner in _rows(e.code, steps, [dims[d] for d in steps.dimensions], kind):
            for d, place in zip(steps.dimensions, [*outer, inner], strict=True):
                positions[d] = place
            _nest(e, dims, rest, positions, body, Modes(unroll))
        return
    if steps is not None:
        alone = all(d in steps.dimensions or dims[d] == 1 for d in order)
        kind = unroll if alone and unroll is Unroll.ABREAST else Unroll.FREELY
        kind = kind if alone or around is None else around
        loop, places = in_order(e.code, steps, [dims[d] for d in steps.dimensions], kind)
        loops.append(loop)
        for d, place in zip(steps.dimensions, places, strict=True):
            positions[d] = place
        order = [d for d in order if d not in steps.dimensions]
    if cut:
        order = [d for d in order if dims[d] != 1]  # the last one is the row's
    for d in order[:-1] if cut else order:
        loops.append(e.code.loop(dims[d], unroll=unroll if around is None or d == order[-1] else around))
        positions[d] = loops[-1].index
    if cut:
        for start, end in ((0, cut), (cut, dims[order[-1]])):
            row = e.code.loop(end - start, start=start, unroll=unroll)
            positions[order[-1]] = row.index
            body(positions)
            row.close()
    else:
        body(positions)
        if loops:
            spread(loops[-1], prod(dims))
    for loop in reversed(loops):
        loop.close()


def _few_beside(steps: Steps, dims: Sequence[int], order: Sequence[int]) -> list[int] | None:
    """The dimensions that no step numbers, if steps number several, the last of them long, and no more than a few
    elements are left; None otherwise.
    """
    if len(steps.dimensions) == 1:
        return None
    rest = [d for d in order if dims[d] != 1 and d not in steps.dimensions]
    few = not rest or (dims[steps.dimensions[-1]] >= TILE_SIDE and prod(dims[d] for d in rest) <= BESIDE)
    return rest if few else None


def _rows(
    code: Code, steps: Steps, sizes: Sequence[int], unroll: Unroll
) -> Iterator[tuple[list[IndexValue], IndexValue]]:
    """Loops over the steps: (positions along the outer dimensions, that along the last one). The inner loop is over
    neighbours along the last: LLVM does not vectorise a loop that divides by its size.
    """
    last = sizes[-1]
    width = gcd(steps.partition.least, last)
    if width >= SHORTEST:
        for outer, first, block in blocks(code, steps, sizes, width):
            inner = code.loop(block, unroll=unroll)
            yield outer, code.add(first, inner.index)
            spread(inner, prod(sizes))
            inner.close()
        return
    rows = code.between(code.divide(steps.begin, last), code.add(code.divide(code.subtract(steps.end, 1), last), 1))
    start = code.multiply(rows.index, last)
    first = code.maximum(code.subtract(steps.begin, start), 0)
    inner = code.between(first, code.minimum(code.subtract(steps.end, start), last), unroll=unroll)
    yield list(code.split(rows.index, sizes[:-1], list(reversed(range(len(sizes) - 1))))), inner.index
    spread(inner, prod(sizes))
    inner.close()
    rows.close()


def tile_of(view: View, roots: Sequence[Instruction], shape: Shape) -> tuple[int, int, list[Crossing]] | None:
    """(The dimension across which a leaf of the roots is read, the fastest, all such leaves), if tiles pay off."""
    fast = fastest_dimension(shape)
    found = (
        c
        for root in roots
        for c in crossings_of(view, root, MINIMUM_TILED_ELEMENTS)
        if c.across != fast and fast in c.roles
    )
    crossings = [c for c in found if shape.dims[c.across] >= MINIMUM_TILED_SIDE]
    wide = fast is not None and shape.dims[fast] >= MINIMUM_TILED_SIDE
    return (crossings[0].across, fast, crossings) if fast is not None and wide and crossings else None


@dataclass(frozen=True, slots=True)
class Tiles:
    """across: the dimension across which leaves are read; fast: that of neighbours in the result. staged: what is
    copied to the stack. lines: whether what is written is one of these, moved; streams: whether its lines go past the
    caches. inside: the dimension along which rows of one block follow each other. block: rows of a tile in steps.
    """

    across: int
    fast: int
    staged: tuple[Crossing, ...]
    lines: bool
    streams: bool
    inside: tuple[int, ...]
    outside: tuple[int, ...]
    block: int | None


def emit_tiles(e: Elemental, results: Results, tiles: Tiles, steps: Steps | None) -> None:
    """In tiles of two dimensions, as a leaf of the roots is read across the memory order of their shape."""
    shape, across, fast, body = results.shape, tiles.across, tiles.fast, writes(e, results)
    staged = [
        Staged(c, Pointer(alloca(e.code, memory_type(c.leaf.shape.dtype), TILE_SIDE * TILE_SIDE))) for c in tiles.staged
    ]
    positions: list[IndexValue] = [0] * shape.rank
    lines = None
    if tiles.lines:
        lines = Lines(e.code, results.first.pointer(e), shape, staged[0].tile, tiles.streams)
    inside = tiles.inside

    def rows(_: list[IndexValue], first: IndexValue = 0, size: int = shape.dims[across]) -> None:
        for start, end, height in parts(size, TURNS if inside else TILE_SIDE):
            if not inside:
                columns((start, end, height), first, [])
                continue
            loop = e.code.loop(end - start, start=start, step=height)
            top = e.code.add(first, loop.index)
            _nest(e, shape.dims, inside, positions, partial(columns, (0, height, height), top), Modes())
            loop.close()

    def columns(height: Part, top: IndexValue, _: list[IndexValue]) -> None:
        for width in parts(shape.dims[fast], TILE_SIDE):
            _tiles(e, positions, (across, fast), height, width, staged, body, lines, top)

    if steps is None or tiles.block is None:
        _nest(e, shape.dims, tiles.outside, positions, rows, Modes(), steps)
        return
    numbered = steps.dimensions
    for outer, first, size in blocks(e.code, steps, [shape.dims[d] for d in numbered], tiles.block):
        for d, place in zip(numbered, outer, strict=False):
            positions[d] = place
        _nest(e, shape.dims, tiles.outside, positions, partial(rows, first=first, size=size), Modes())


def writes(e: Elemental, results: Results) -> Body:
    """What computes all results at a position, and stores them."""
    return lambda positions: write_all(e, results.leaves, Index.at(e.code, results.shape, positions))


def emit_linear(e: Elemental, results: Results, parameters: None, steps: Steps | None) -> None:
    with elements(e.code, steps, results.shape.size) as place:
        write_all(e, results.leaves, Index.flat(e.code, results.shape, place))


def emit_elements(e: Elemental, results: Results, parameters: None, steps: Steps | None) -> None:
    """The outer shape of devices: each step alone, in memory order, whatever the roots read."""
    shape, inside = results.shape, () if steps is None else steps.dimensions
    with loops_over(e.code, steps, inside, shape.dims, tuple(reversed(shape.minor_to_major))) as positions:
        writes(e, results)(positions)


def _are_cheap(view: View, roots: Sequence[Instruction]) -> bool:
    found = list(walk(roots, view.leaves))
    return len(found) <= CHEAP and not any(i.opcode in EXPENSIVE or i.called() for i in found)


def _are_beside(view: View, roots: Sequence[Instruction]) -> bool:
    """Whether a reduction keeps the dimension along which its operand is contiguous, and LLVM unrolls it. With a short
    row of such results unrolled, too, it would gather elements of several rows, though the row itself is a vector.
    """
    return any(_is_beside(i) for i in walk(roots, view.leaves) if i.opcode is Op.REDUCE)


def _is_beside(reduction: Instruction) -> bool:
    source = reduction.operands[0].shape
    fast, count = fastest_dimension(source), prod(source.dims[d] for d in reduction.dimensions)
    if fast is None or fast in reduction.dimensions or count >= SHORT:
        return False
    best = source.dtype.is_float and reduction.called()[0].root.opcode in (Op.MAXIMUM, Op.MINIMUM)
    return not best or source.dims[fast] > GATHERED.start  # vectors of three are not worth the many comparisons


def _many_across(view: View, roots: Sequence[Instruction], shape: Shape) -> bool:
    """Whether something is read across the order of memory in loops that LLVM would copy many times."""
    fast = fastest_dimension(shape)
    copies = prod(n for d, n in enumerate(shape.dims) if d != fast and n < SHORT)
    return copies > COPIES and any(c.across != fast for root in roots for c in crossings_of(view, root, 1))


# Tiles --------------------------------------------------------------------------------------------------------------

Part: TypeAlias = tuple[int, int, int]


def parts(size: int, block: int) -> list[Part]:
    """(start, end, step): the full blocks of a dimension, and the rest as one smaller block."""
    whole = size - size % block
    return [(start, end, min(block, end - start)) for start, end in ((0, whole), (whole, size)) if start != end]


def _tiles(
    e: Elemental,
    positions: list[IndexValue],
    dims: tuple[int, int],
    height: Part,
    width: Part,
    staged: Sequence[Staged],
    body: Body,
    lines: Lines | None,
    top: IndexValue = 0,
) -> None:
    """All tiles of one part of the two dimensions. Leaves read across them are first transposed on the stack, but what
    only moves goes straight to the result where no line is written past the caches, and no place of them is crowded.

    top: what is added to the positions of the height.
    """
    code, (across, fast) = e.code, dims
    outer = code.loop(height[1] - height[0], start=height[0], step=height[2])
    inner = code.loop(width[1] - width[0], start=width[0], step=width[2])
    above = code.add(top, outer.index)
    positions[across], positions[fast] = above, inner.index
    if lines is not None and not lines.fit(width[2]) and lines.apart(across):
        straight = Rows(lines.result, code.weighted_sum(positions, lines.shape.strides), lines.shape.strides[across])
        if _turn(e, staged[0], positions, fast, height[2], width[2], straight):
            inner.close()
            outer.close()
            return
    turned = [s for s in staged if _turn(e, s, positions, fast, height[2], width[2])]
    row = code.loop(height[2])
    column_start = inner.index
    positions[across] = code.add(above, row.index)
    if lines is not None and turned and lines.fit(width[2]):
        lines.write(positions, code.multiply(row.index, width[2]), width[2])
        for loop in (row, inner, outer):
            loop.close()
        return
    column = code.loop(width[2])
    positions[fast] = code.add(column_start, column.index)
    for s in turned:
        leaf = s.crossing.leaf
        value = load(code, s.tile, leaf.shape.dtype, code.add(code.multiply(row.index, width[2]), column.index))
        e.bind(leaf, Index.at(code, leaf.shape, [positions[r] for r in s.crossing.roles]), value)
    body(positions)
    for loop in (column, row, inner, outer):
        loop.close()


@dataclass(frozen=True, slots=True)
class Staged:
    """A crossing whose part of a tile is copied to the stack; at most TILE_SIDE × TILE_SIDE elements."""

    crossing: Crossing
    tile: Pointer


@dataclass(frozen=True, slots=True)
class Rows:
    """Where the rows of a turned tile go: from `start` on, `apart` elements from each other."""

    result: Pointer
    start: IndexValue
    apart: int


@dataclass(frozen=True, slots=True)
class Lines:
    """Writes the rows of a tile, which only moves elements, as whole lines of the result past the caches.

    streams: the result is one that they may be written to.
    """

    code: Code
    result: Pointer
    shape: Shape
    tile: Pointer
    streams: bool

    def fit(self, width: int) -> bool:
        return self.streams and width * self.shape.dtype.bytes % LINE == 0

    def apart(self, across: int) -> bool:
        """Whether rows of the result do not share places of the nearest cache."""
        return self.shape.strides[across] * self.shape.dtype.bytes % CROWDED != 0

    def write(self, positions: Sequence[IndexValue], start: IndexValue, width: int) -> None:
        """A row at these positions. start: its place in the tile."""
        code, dtype = self.code, self.shape.dtype
        count = LINE // dtype.bytes
        target = code.weighted_sum(positions, self.shape.strides)
        for k in range(0, width, count):
            source = address(code, self.tile, dtype, code.add(start, k))
            line = code.b.load(source, typ=ir.VectorType(memory_type(dtype), count), align=LINE)
            stored = code.b.store(line, address(code, self.result, dtype, code.add(target, k)), align=LINE)
            stored.set_metadata("nontemporal", code.module.add_metadata([I32(1)]))


def _moves(view: View, root: Instruction) -> bool:
    """Whether the root is a leaf with its dimensions in another order."""
    while root not in view.leaves and root.opcode in (Op.TRANSPOSE, Op.COPY):
        root = root.operands[0]
    return root in view.leaves


def _may_stream(leaf: Leaf, fast: int) -> bool:
    """Whether a result is large, and every tile in it begins with a line."""
    shape, aligned = leaf.shape, leaf.alignment % LINE == 0
    others = (shape.strides[d] for d in range(shape.rank) if d != fast and shape.dims[d] != 1)
    return aligned and shape.bytes >= STREAMED and all(s * shape.dtype.bytes % LINE == 0 for s in others)


def _lanes(view: View, shape: Shape) -> int:
    """The side of the blocks that are transposed in registers. Above 8, rows that lie a power of two apart are more
    lines than a set of the nearest cache holds, which narrow elements make up for.
    """
    most = 16 if shape.dtype.bytes <= NARROW else 8
    return 0 if shape.dtype.is_complex else min(most, view.vector_bits // max(32, 8 * shape.dtype.bytes))


def _turn(
    e: Elemental,
    s: Staged,
    start: list[IndexValue],
    fast: int,
    height: int,
    width: int,
    straight: Rows | None = None,
) -> bool:
    """Copy the leaf's part of a tile so that the tile's rows are adjacent; the last blocks of a side that they do not
    divide lie further back, over those before them. False if a side is shorter than a block.

    straight: where the rows are written instead of the tile, block after block along them: whole lines if vectors are.
    """
    code, c, leaf = e.code, s.crossing, s.crossing.leaf
    dtype, lanes = leaf.shape.dtype, _lanes(code.view, leaf.shape)
    if straight is not None and code.view.vector_bits >= 8 * LINE:
        lanes = max(lanes, LINE // dtype.bytes if dtype.bytes > NARROW else 0)
    while lanes > max(LEAST_SIDE, min(height, width)):
        lanes //= 2
    if height < lanes or width < lanes:
        return False
    stride = leaf.shape.strides[c.roles.index(fast)]
    corner = code.weighted_sum([start[r] for r in c.roles], leaf.shape.strides)
    vector = ir.VectorType(memory_type(dtype), lanes)
    columns = code.loop(width, step=lanes) if straight is None else None
    rows = code.loop(height, step=lanes)
    columns = columns or code.loop(width, step=lanes)
    left = code.minimum(columns.index, width - lanes) if width % lanes else columns.index
    upper = code.minimum(rows.index, height - lanes) if height % lanes else rows.index
    source = code.add(corner, code.add(code.multiply(left, stride), upper))
    block = [
        code.b.load(address(code, e.leaves[leaf], dtype, code.add(source, k * stride)), typ=vector, align=dtype.bytes)
        for k in range(lanes)
    ]
    to = straight or Rows(s.tile, 0, width)
    target = code.add(to.start, code.add(code.multiply(upper, to.apart), left))
    for k, register in enumerate(transposed(code, block)):
        place = address(code, to.result, dtype, code.add(target, k * to.apart))
        code.b.store(register, place, align=dtype.bytes)
    for loop in (rows, columns) if straight is None else (columns, rows):
        loop.close()
    return True


@form("nest/empty", lambda e, results, parameters, steps: None)
def empty(task: Task) -> Fit:
    """Results without elements: nothing is written."""
    needs(task.results.shape.size == 0, f"{task.results.shape.size} elements")
    return Fit()


@form("nest/linear", emit_linear)
def linear(task: Task) -> Fit:
    """All is read in the memory order of the results: one loop."""
    for root in task.results.roots:
        needs(is_linear(root, task.view.leaves), f"{root.name} reads an array in another order than that of memory")
    return Fit()


@form("nest/elements", emit_elements)
def by_element(task: Task) -> Fit:
    """Devices: a loop nest in memory order, an item a step."""
    needs(task.view.by_element, "for a processor")
    return Fit()


@form(
    "nest/channels",
    lambda e, results, found, steps: found.emit(e, results.first, steps),
    channels,
    MAXIMUM_CHANNELS="channels",
    MINIMUM_ELEMENTS="elements of the result",
)
def channels_apart(task: Task) -> Fit:
    """Pixels of a few channels that become planes: lanes are chosen from whole vectors."""
    results = task.results
    needs(results.alone and _moves(task.view, results.root), "more is computed than one array that is moved")
    found = Channels.of(task.view, results.root, results.shape)
    around = {d for d, _ in found.outer}
    needs({*task.numbered} <= around, f"steps number {task.numbered}, pixels or channels among them")
    return Fit(found)


@form(
    "nest/tiles",
    emit_tiles,
    MINIMUM_TILED_ELEMENTS="elements of what is read across memory",
    MINIMUM_TILED_SIDE="elements along a side",
)
def tiled(task: Task) -> Fit:
    """Arrays read across the order of memory: tiles of two dimensions, transposed in registers.

    Tiles can compute some of the steps if the steps' last dimension is their height, or none is a side of theirs.
    """
    view, results, partition, numbered = task.view, task.results, task.partition, task.numbered
    shape, found = results.shape, tile_of(view, results.roots, results.shape)
    if found is None:
        least, side = MINIMUM_TILED_ELEMENTS, MINIMUM_TILED_SIDE
        raise Unfit(f"nothing of {least} elements is read across at least {side} rows of at least {side} elements")
    across, fast, crossings = found
    exact = {(c.leaf, c.roles): c for c in crossings if c.exact and c.across == across and fast in c.roles}
    staged = tuple(c for c in exact.values() if _lanes(view, c.leaf.shape) >= 4)
    lines = results.alone and len(staged) == 1 and _moves(view, results.root)
    order = [d for d in reversed(shape.minor_to_major) if d not in (fast, across)]
    inside: list[int] = []
    if lines and order and order[-1] not in numbered and shape.strides[order[-1]] == shape.dims[fast]:
        inside = order[-1:] if shape.dims[fast] <= max(TURNS, _lanes(view, shape)) else []
    in_steps, block = fast not in numbered, None
    if partition is not None and across in numbered:
        block = block_of(partition, shape.dims[across], TILE_SIDE)
        in_steps = numbered[-1] == across and block is not None
    outside = tuple(d for d in order if d not in inside and not (block and d in numbered))
    streams = lines and _may_stream(results.first, fast)
    return Fit(Tiles(across, fast, staged, lines, streams, tuple(inside), outside, block), in_steps)


@form("nest/plain", lambda e, results, modes, steps: nest(e, results.shape, writes(e, results), steps, modes))
def plain(task: Task) -> Fit:
    """Anything else: loops in memory order, and each element by the rules of its operations."""
    view, roots, shape = task.view, task.results.roots, task.results.shape
    across, whole = _many_across(view, roots, shape), fastest_dimension(shape) not in task.numbered
    return Fit(modes_of(view, shape, across, False, whole and _are_cheap(view, roots), _are_beside(view, roots)))


FORMS = (linear, by_element, channels_apart, tiled, plain)
