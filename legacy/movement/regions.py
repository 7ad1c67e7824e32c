"""Splits loops over results where a concatenation changes its operand or a padding begins or ends: within a region no
element has a branch.

Every dimension is cut at all seams; neighbouring cells that read the same operands are joined again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

from llvmlite import ir

from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ...hlo.shapes import Shape
from ..core.builder import Code, IndexValue, Loop, Once, Range, Unroll
from ..core.graph import walk
from ..core.view import View
from ..loops.access import Access, Place, at_root, operands_of, values_of
from ..loops.elemental import Elemental
from ..loops.form import Fit, Results, Task, Unfit, at_least, at_most, form, needs
from ..loops.nest import NARROW, Body, writes
from ..loops.ranges import Steps, in_order
from ..loops.ranges import numbered as numbered_by
from ..loops.tiles import tile_of
from ..numerics.elementwise import EMIT
from .moved_rows import MovedRows

Region: TypeAlias = tuple[tuple[int, int], ...]
"""For each dimension the first position and the end."""

MINIMUM_ELEMENTS = 20_000
"""Elements of a result for which a few milliseconds of compile time a region pay."""

MAXIMUM_CELLS = 64
"""Cells between seams."""

MAXIMUM_REGIONS = 8
"""Regions that are made of them: each has loops of its own."""

MINIMUM_MEAN_LENGTH = 24
"""Mean length of a region along the fastest dimension: short runs fill parts of cache lines."""

SEAMS = frozenset({Op.CONCATENATE, Op.PAD})
MOVES = frozenset({Op.BROADCAST, Op.TRANSPOSE, Op.SLICE, Op.REVERSE, Op.CONSTANT, Op.IOTA})
KNOWN = EMIT.keys() | MOVES | SEAMS


def regions(view: View, roots: Sequence[Instruction], shape: Shape) -> list[Region]:
    """Two regions or more that cover a shape, in which everything is decided. Raises Unfit if one nest is better.

    Rows must be cut: a branch that is the same in a whole row costs nothing.
    """
    nodes = list(walk(roots, view.leaves))
    needs(any(i.opcode in SEAMS for i in nodes), "no concatenation, and no padding")
    at_least(shape.size, MINIMUM_ELEMENTS, "elements")
    for i in nodes:
        needs(i.opcode in KNOWN, f"{i.opcode.value} is among what is computed")
    cuts: list[set[int]] = [{0, size} for size in shape.dims]
    for seam in _seams(view, roots):
        edges = _EDGES[seam.value.opcode](seam.value, seam.places)
        if edges is None:
            raise Unfit(f"the places where {seam.value.name} changes its operand are not known")
        for d, position in edges:
            if 0 < position < shape.dims[d]:
                cuts[d].add(position)
    parts = [list(pairwise(sorted(c))) for c in cuts]
    cells = math.prod(map(len, parts))
    at_most(cells, MAXIMUM_CELLS, "cells")
    found = {cell: _choices(view, roots, [low for low, _ in cell]) for cell in itertools.product(*parts)}
    for d in shape.minor_to_major:
        found = _joined(found, d)
    fast = shape.minor_to_major[0]
    runs = len({region[fast] for region in found})
    needs(runs > 1, "no row is cut")
    at_least(shape.dims[fast] // runs, MINIMUM_MEAN_LENGTH, "elements of a run, on average")
    at_most(len(found), MAXIMUM_REGIONS, "regions")
    return sorted(found)


def _joined(cells: dict[Region, tuple], d: int) -> dict[Region, tuple]:
    """Cells with the same choices that touch along a dimension, as one."""
    made: dict[Region, tuple] = {}
    for cell in sorted(cells, key=lambda c: (c[:d], c[d + 1 :], c[d])):
        last = next(reversed(made), None)
        touches = last is not None and last[:d] + last[d + 1 :] == cell[:d] + cell[d + 1 :] and last[d][1] == cell[d][0]
        if last is not None and touches and made[last] == cells[cell]:
            made[(*last[:d], (last[d][0], cell[d][1]), *last[d + 1 :])] = made.pop(last)
        else:
            made[cell] = cells[cell]
    return made


def _choices(view: View, roots: Sequence[Instruction], at: Sequence[int]) -> tuple:
    """The operands that the seams on which an element depends take it from."""
    return tuple((s, _CHOICES[s.value.opcode](s.value, _positions(s.places, at))) for s in _seams(view, roots, at))


def _positions(places: Sequence[Place], at: Sequence[int]) -> list[int]:
    return [0 if place is None or place[1] is None else at[place[0]] + place[1] for place in places]


def _seams(view: View, roots: Sequence[Instruction], at: Sequence[int] | None = None) -> list[Access]:
    """The concatenations and paddings under the roots; with `at`, those on which the element at that place depends."""

    def follow(access: Access) -> list[Access]:
        i, found = access.value, operands_of(access)
        if at is None or i.opcode not in SEAMS:
            return found
        choice = _CHOICES[i.opcode](i, _positions(access.places, at))
        return found[choice : choice + 1]

    found = values_of(view, roots, KNOWN, follow)
    return [access for access in found if access.value.opcode in SEAMS and access.value not in view.leaves]


Edges: TypeAlias = list[tuple[int, int]] | None
"""(Dimension of the results, position) where another operand begins; None if elements' operands are found elsewhere."""


def _edges_of_concatenate(instruction: Instruction, places: Sequence[Place]) -> Edges:
    place = places[instruction.dimensions[0]]
    if place is None or place[1] is None:
        return None
    return [(place[0], end - place[1]) for end in _ends(instruction)]


def _edges_of_pad(instruction: Instruction, places: Sequence[Place]) -> Edges:
    found = []
    for place, size, p in zip(places, instruction.operands[0].shape.dims, instruction.attributes["padding"]):
        if (p.low, p.high, p.interior) == (0, 0, 0):
            continue
        if place is None or place[1] is None or p.interior:
            return None
        found += [(place[0], p.low - place[1]), (place[0], p.low + size - place[1])]
    return found


def _piece(instruction: Instruction, positions: Sequence[int]) -> int:
    return sum(end <= positions[instruction.dimensions[0]] for end in _ends(instruction))


def _ends(concatenation: Instruction) -> Iterator[int]:
    axis = concatenation.dimensions[0]
    return itertools.accumulate(operand.shape.dims[axis] for operand in concatenation.operands)


def _is_outside(instruction: Instruction, positions: Sequence[int]) -> int:
    sizes = instruction.operands[0].shape.dims
    padding = instruction.attributes["padding"]
    return int(not all(0 <= i - p.low < n for i, n, p in zip(positions, sizes, padding) if p.low or p.high))


_EDGES: dict[Op, Callable[[Instruction, Sequence[Place]], Edges]] = {
    Op.CONCATENATE: _edges_of_concatenate,
    Op.PAD: _edges_of_pad,
}
_CHOICES: dict[Op, Callable[[Instruction, Sequence[int]], int]] = {Op.CONCATENATE: _piece, Op.PAD: _is_outside}
"""The number of the operand that an element at these positions comes from."""


def followed(instruction: Instruction, at: Sequence[int]) -> tuple[Instruction, list[int]] | None:
    """The operand from which an op takes the element at a position, and the position there; None if it is no operand's,
    or neighbours are not neighbours in it.
    """
    if instruction.opcode not in _FOLLOWED:
        return None
    choice = _CHOICES[instruction.opcode](instruction, at) if instruction.opcode in SEAMS else 0
    if instruction.opcode is Op.PAD and choice:
        return None
    operand = operands_of(at_root(instruction))[choice]
    known = all(place is not None and place[1] is not None for place in operand.places)
    return (operand.value, _positions(operand.places, at)) if known else None


_FOLLOWED = frozenset({Op.CONCATENATE, Op.COPY, Op.PAD, Op.SLICE})


# Loops --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Regions:
    """moved: of each region the rows that are only moved, if they go past the caches."""

    regions: tuple[Region, ...]
    moved: tuple[MovedRows | None, ...]


def over_regions(e: Elemental, results: Results, given: Regions, steps: Steps | None = None) -> None:
    """Write all results in a nest of loops for the regions of the same rows, whose parts follow each other in it."""
    code, shape, body, found = e.code, results.shape, writes(e, results), given.regions
    fast, moved = shape.minor_to_major[0], dict(zip(found, given.moved, strict=True))

    def move(part: Region, positions: Sequence[IndexValue]) -> int:
        """Move what is only moved of a row. Returns how many elements."""
        rows = moved[part]
        if rows is None:
            return 0
        rows.write(e, results.first, positions)
        return rows.whole

    rows: dict[Region, list[Region]] = {}
    for region in found:
        rows.setdefault(region[:fast] + region[fast + 1 :], []).append(region)
    if steps is not None and steps.dimensions == (fast,):
        rows = {region: [region] for region in found}
    if steps is None or len(steps.dimensions) == 1:
        for parts in rows.values():
            _over_rows(code, shape, parts, body, steps, {}, move)
        return
    loop, places = in_order(code, steps, [shape.dims[d] for d in steps.dimensions])
    numbered = dict(zip(steps.dimensions, places, strict=True))
    for parts in rows.values():
        condition = code.truth(True)
        for d, place in numbered.items():
            condition = code.b.and_(condition, _is_within(code, place, parts[0][d]))
            code.limits.give(place, parts[0][d])
        with code.when(condition):
            _over_rows(code, shape, parts, body, None, numbered)
    loop.close()


def _is_within(code: Code, place: IndexValue, bounds: tuple[int, int]) -> ir.Value:
    low, high = bounds
    return code.b.icmp_unsigned("<", code.value(code.subtract(place, low)), code.value(high - low))


def _over_rows(
    code: Code,
    shape: Shape,
    parts: Sequence[Region],
    body: Body,
    steps: Steps | None,
    numbered: dict[int, IndexValue],
    move: Callable[[Region, Sequence[IndexValue]], int] | None = None,
) -> None:
    """Regions that differ along the fastest dimension. numbered: positions that are known from outside. Steps are of
    one dimension, and may not meet the regions.
    """
    positions: list[IndexValue] = [0] * shape.rank
    loops: list[Loop | Once | Range] = []
    unroll = Unroll.SHORT if shape.dtype.bytes <= NARROW else Unroll.FREELY
    fast = shape.minor_to_major[0]
    inside = numbered_by(steps)

    def open_loop(d: int, bounds: tuple[int, int]) -> Loop | Once | Range:
        if steps is None or d not in inside:
            return code.loop(bounds[1] - bounds[0], start=bounds[0], unroll=unroll)
        opened = code.range(code.maximum(steps.begin, bounds[0]), code.minimum(steps.end, bounds[1]))
        code.limits.give(opened.index, bounds)
        return opened

    for d in (*inside, *(d for d in reversed(shape.minor_to_major) if d not in inside)):
        if d in numbered:
            positions[d] = numbered[d]
        elif d != fast:
            loops.append(open_loop(d, parts[0][d]))
            positions[d] = loops[-1].index
    for part in parts:
        if fast in numbered:
            body(positions)
            continue
        first, end = part[fast]
        if move is not None:
            first += move(part, positions)
            if first == end:
                continue
        inner = open_loop(fast, (first, end))
        positions[fast] = inner.index
        body(positions)
        inner.close()
    for loop in reversed(loops):
        loop.close()


@form(
    "regions",
    over_regions,
    MINIMUM_ELEMENTS="elements of the result",
    MAXIMUM_CELLS="cells between seams",
    MAXIMUM_REGIONS="regions",
    MINIMUM_MEAN_LENGTH="elements of a run, on average",
)
def in_regions(task: Task) -> Fit:
    """Concatenations and paddings: loops are split where an operand begins or ends.

    Where positions in a row are among several numbers of a step, there are no loops over rows.
    """
    view, results, shape, numbered = task.view, task.results, task.results.shape, task.numbered
    needs(len(numbered) < 2 or shape.minor_to_major[0] not in numbered, "a step is a place in a row")
    needs(not view.by_element, "for a device")
    needs(not any(root in view.leaves for root in results.roots), "a result is in memory")
    needs(tile_of(view, results.roots, shape) is None, "arrays are read across the order of memory, in tiles")
    found = tuple(regions(view, results.roots, shape))
    moves = results.alone and len(numbered) < 2 and shape.minor_to_major[0] not in numbered
    moved = tuple(MovedRows.of(view, results.first, r, followed) if moves else None for r in found)
    return Fit(Regions(found, moved))
