"""Nests of loops over the elements of results, in memory order, and the modes of their loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import gcd, prod
from typing import TypeAlias

from ...hlo.records import dataclass
from ...hlo.shapes import Shape
from ..core.abreast import spread
from ..core.builder import Code, IndexValue, Loop, Once, Unroll
from ..core.view import View
from .access import fastest_dimension, live_dimensions
from .elemental import Elemental, Index
from .form import Results
from .leaf import write_all
from .ranges import Steps, blocks, in_order, numbered

Body: TypeAlias = Callable[[list[IndexValue]], None]


TILE_SIDE = 64
"""Elements along each side of a tile: 16 KiB for floats."""


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


FOLDED = 16
"""Elements of a row below which LLVM makes one masked vector of what fills no whole ones. On processors without masks,
those of narrow elements take several times as long as the remainder.
"""


BESIDE = 8
"""Elements of a step, at most, whose rows LLVM interleaves as it vectorises the loop over steps."""


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
    narrow, gathers = shape.dtype.bytes <= NARROW, view.processor.gathers
    apart = gathers and row in APART and not shape.dtype.is_complex
    unroll = Unroll.NEVER if across or (apart and not narrow) else Unroll.SHORT if narrow else free
    cut = SHORTEST if cheap and narrow and not view.processor.masks and SHORTEST < row < FOLDED else 0
    around = Unroll.SCALAR if beside and gathers and not narrow and row in GATHERED else None
    return Modes(unroll, cut, around)


def nest(e: Elemental, shape: Shape, body: Body, steps: Steps | None, modes: Modes) -> None:
    """Call body(positions) in loops over all elements in memory order, or over those of the steps."""
    order = [*(d for d in range(shape.rank) if shape.dims[d] == 1), *reversed(live_dimensions(shape))]  # last: a row's
    open_nest(e, shape.dims, order, [0] * shape.rank, body, modes, steps)


def open_nest(
    e: Elemental,
    dims: Sequence[int],
    order: Sequence[int],
    positions: list[IndexValue],
    body: Body,
    modes: Modes,
    steps: Steps | None = None,
) -> None:
    code = e.code
    if steps is not None and len(order) >= len(dims):
        rest = _few_beside(steps, dims, order)
        if rest is not None:
            for outer, inner in _rows(code, steps, [dims[d] for d in steps.dimensions], _free(modes, bool(rest))):
                for d, place in zip(steps.dimensions, [*outer, inner], strict=True):
                    positions[d] = place
                open_nest(e, dims, rest, positions, body, Modes(modes.unroll))
            return
    loops = [] if steps is None else [_over_steps(code, steps, dims, order, positions, modes)]
    order = [d for d in order if d not in numbered(steps) and not (modes.cut and dims[d] == 1)]
    for d in order[:-1] if modes.cut else order:
        unroll = modes.unroll if modes.around is None or d == order[-1] else modes.around
        loops.append(code.loop(dims[d], unroll=unroll))
        positions[d] = loops[-1].index
    if modes.cut:
        for start, end in ((0, modes.cut), (modes.cut, dims[order[-1]])):
            with code.loop(end - start, start=start, unroll=modes.unroll) as positions[order[-1]]:
                body(positions)
    else:
        body(positions)
        if loops:
            spread(loops[-1], prod(dims))
    for loop in reversed(loops):
        loop.close()


def _free(modes: Modes, is_around: bool) -> Unroll:
    """The mode of a loop over steps. is_around: there are loops in it."""
    return Unroll.FREELY if is_around else modes.unroll


def _over_steps(
    code: Code, steps: Steps, dims: Sequence[int], order: Sequence[int], positions: list[IndexValue], modes: Modes
) -> Loop | Once:
    """Open the loop over the steps, and set the positions that they number."""
    alone = all(d in steps.dimensions or dims[d] == 1 for d in order)
    kind = _free(modes, not alone or modes.unroll is not Unroll.ABREAST)
    kind = kind if alone or modes.around is None else modes.around
    loop, places = in_order(code, steps, [dims[d] for d in steps.dimensions], kind)
    for d, place in zip(steps.dimensions, places, strict=True):
        positions[d] = place
    return loop


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
    with code.between(
        code.divide(steps.begin, last), code.add(code.divide(code.subtract(steps.end, 1), last), 1)
    ) as row:
        start = code.multiply(row, last)
        first = code.maximum(code.subtract(steps.begin, start), 0)
        inner = code.between(first, code.minimum(code.subtract(steps.end, start), last), unroll=unroll)
        yield list(code.split(row, sizes[:-1])), inner.index
        spread(inner, prod(sizes))
        inner.close()


def writes(e: Elemental, results: Results) -> Body:
    """What computes all results at a position, and stores them."""
    return lambda positions: write_all(e, results.leaves, Index.at(e.code, results.shape, positions))
