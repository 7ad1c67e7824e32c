"""Loop nests over results that have no loops of their own, the last forms that are asked: in memory order with one
loop, element by element for devices, in tiles of two dimensions, or over all dimensions.
"""

from __future__ import annotations

from ..hlo.records import dataclass
from .core.builder import Index, Unroll
from .core.graph import reachable
from .loops.chains import is_chain
from .loops.elemental import Elemental, Linear
from .loops.form import Answer, Fits
from .loops.generic import emit_generic, is_generic
from .loops.linear import is_linear
from .loops.loops import (
    MINIMUM_TILED_SIDE,
    Axes,
    Inner,
    are_few,
    are_whole_tiles,
    copied_across,
    tiled,
    unroll_of,
    with_loops,
)
from .loops.ranges import Steps, runs
from .loops.turned import Leaves, copies_of, turned_leaves
from .loops.view import Subject, View
from .reductions.results import write_together

MINIMUM_CROSSING_OPERATIONS = 40
"""Minimum operations of a kernel for which vectors are worth it in tiles that cross memory, gathers and all."""


@dataclass(frozen=True, slots=True)
class Nest:
    """generic: whether the innermost loops are a linalg.generic. unroll: how far LLVM may unroll them; cheap: whether
    their body may be there twice.
    """

    generic: bool
    unroll: Unroll = Unroll.ANY
    cheap: bool = False

    @property
    def kind(self) -> type[Inner]:
        return Axes if self.generic else Inner


def linear_fits(view: View, subject: Subject) -> Answer:
    group = subject.results
    if not is_linear(group):
        return "an element is made of others than those at its own offset in memory"
    chained = not view.facts.by_element and is_chain(group)
    return Fits(Nest(True, Unroll.ABREAST if chained else Unroll.ANY))


def emit_linear(e: Elemental, subject: Subject, nest: Nest, steps: Steps | None) -> None:
    with runs(e.b, steps, subject.first.shape.size) as run:
        inner = Axes(e.b)
        emit_generic(e, subject.results, Linear((inner.open(*run, nest.unroll),)), nest.unroll)
        inner.close()


def elements_fit(view: View, subject: Subject) -> Answer:
    if not view.facts.by_element:
        return "elements are not computed each by itself: it is for a host"
    return Fits(Nest(False, unroll_of(view.facts, subject.first), are_few(view.facts, subject.results)))


def plain_fits(view: View, subject: Subject) -> Answer:
    group = subject.results
    unroll = Unroll.NONE if copied_across(subject.reads) else unroll_of(view.facts, group[0])
    unroll = Unroll.ABREAST if unroll is Unroll.ANY and is_chain(group) else unroll
    return Fits(Nest(is_generic(group), unroll, are_few(view.facts, group)))


def emit_plain(e: Elemental, subject: Subject, nest: Nest, steps: Steps | None) -> None:
    def write(index: tuple[Index, ...]) -> None:
        if nest.generic:
            emit_generic(e, subject.results, index, nest.unroll)
        else:
            write_together(e, subject.results, index)

    with_loops(e.b, subject.first, write, steps, nest.kind, nest.unroll, nest.cheap)


@dataclass(frozen=True, slots=True)
class Tiles:
    """Tiles of two dimensions, the slower one first. turned: arrays that are read across the order of memory, and are
    copied first.
    """

    sides: tuple[int, int]
    nest: Nest
    turned: Leaves | None


def tiles_fit(view: View, subject: Subject) -> Answer:
    group = subject.results
    crossing = subject.reads.crossing(MINIMUM_TILED_SIDE)
    if crossing is None:
        return (
            f"nothing is read along another dimension than the results', both of at least {MINIMUM_TILED_SIDE} elements"
        )
    generic = is_generic(group, reshapes=True)
    turned = turned_leaves(view.facts, subject.reads, crossing) if generic and not subject.reads.transposed else None
    few = turned is None and (generic or len([*reachable(group)]) < MINIMUM_CROSSING_OPERATIONS)
    tiles = Tiles(crossing, Nest(generic, Unroll.SCALAR if few else Unroll.NONE), turned)
    return Fits(tiles, are_whole_tiles(group[0], crossing, view.partition))


def emit_tiles(e: Elemental, subject: Subject, tiles: Tiles, steps: Steps | None) -> None:
    b, group, nest = e.b, subject.results, tiles.nest
    copies = None if tiles.turned is None else copies_of(e, group, tiles.sides, tiles.turned)

    def write(index: tuple[Index, ...]) -> None:
        if nest.generic:
            emit_generic(e, group, index, nest.unroll, copies)
        else:
            write_together(e, group, index)

    if copies is None:
        tiled(b, subject.first, tiles.sides, write, steps, nest.kind, unroll=nest.unroll)
    else:
        tiled(b, subject.first, tiles.sides, write, steps, nest.kind, copies.copy)
