"""Forms of windowed reductions, scatters and sorts at the root: each writes all its results with loops of its own."""

from __future__ import annotations

from collections.abc import Callable

from ..hlo.analysis.windows import running
from ..hlo.ir import Instruction
from ..hlo.opcodes import Op
from ..hlo.shapes import Shape
from ..planning.partition import Partition
from . import sort, sort_radix, sort_select, sort_side
from .elemental import Elemental
from .form import Fit, Form, Results, limits
from .indexing import Scatter
from .memory import Pointer
from .pool import emit_pool
from .ranges import Steps, columns_fit
from .reduce_window import BLOCK, emit_running
from .sort_order import KeyOrder, key_order
from .sort_rows import Target
from .view import View

Fits = Callable[[View, Results, Partition | None], Fit | str]


def _of(op: Op, fits: Callable[[View, Results, Partition | None], Fit | str]) -> Fits:
    """`fits` for roots with an opcode that write all their results themselves."""

    def of_whole(view: View, results: Results, partition: Partition | None) -> Fit | str:
        if not results.whole or results.root.opcode is not op:
            return f"no {op.value} is the root"
        return fits(view, results, partition)

    return of_whole


# Windows -------------------------------------------------------------------------------------------------------------


def _fits_running(view: View, results: Results, partition: Partition | None) -> Fit | str:
    run, shape = running(results.root), results.shape
    if run is None:
        return "windows do not each grow by an element"
    last = next(d for d in shape.minor_to_major if shape.dims[d] != 1)
    if partition is None:
        return Fit()
    inside = partition.dimensions
    apart = last == run.dimension or columns_fit(partition, inside, last, shape.dims[last], BLOCK)
    return Fit(in_steps=apart and run.dimension not in inside)


def _fits_pool(view: View, results: Results, partition: Partition | None) -> Fit | str:
    shape = results.shape
    column = shape.minor_to_major[0]
    size = shape.dims[column]
    return Fit(in_steps=partition is None or columns_fit(partition, partition.dimensions, column, size, BLOCK))


def _arrays(e: Elemental, results: Results) -> list[tuple[Pointer, Shape]]:
    return [(leaf.pointer(e), leaf.shape) for leaf in results.leaves]


# Scatters ------------------------------------------------------------------------------------------------------------


def _fits_scatter(view: View, results: Results, partition: Partition | None) -> Fit | str:
    """The window of each update must have one position along the steps' dimensions."""
    a = results.root.attributes
    single = {*a["inserted_window_dims"], *a.get("input_batching_dims", ())}
    return Fit(in_steps=partition is None or {*partition.dimensions} <= single)


def _emit_scatter(e: Elemental, results: Results, parameters: None, steps: Steps | None) -> None:
    Scatter(e, results.root, [leaf.pointer(e) for leaf in results.leaves], steps).emit()


# Sorts ---------------------------------------------------------------------------------------------------------------


def _fits_abreast(view: View, results: Results, partition: Partition | None) -> Fit | str:
    keys = None if view.by_element else key_order(results.root.attributes["to_apply"])
    if keys is None:
        return "the comparator does not compare one key" if not view.by_element else "devices sort row by row"
    tile = sort_side.tile_of(results.root, keys, view.scratch, view.vector_bits)
    return tile if isinstance(tile, str) else Fit((keys, tile), _in_steps(results.root, partition))


def _in_steps(instruction: Instruction, partition: Partition | None) -> bool:
    """Whether rows are not parted."""
    return partition is None or instruction.dimensions[0] not in partition.dimensions


def _emit_abreast(e: Elemental, results: Results, given: tuple[KeyOrder, sort_side.Tile], steps: Steps | None) -> None:
    keys, tile = given
    sort_side.SideBySide(e, results.root, keys, tile, _targets(e, results)).emit(steps)


def _targets(e: Elemental, results: Results) -> list[Target]:
    return [Target(leaf.pointer(e), leaf.shape, leaf.start) for leaf in results.leaves]


def _fits_rows(way: Callable[[View, Instruction, sort.Cut], sort.Way | str]) -> Fits:
    def fits(view: View, results: Results, partition: Partition | None) -> Fit | str:
        found = way(view, results.root, sort.Cut.of(results))
        return found if isinstance(found, str) else Fit(found, _in_steps(results.root, partition), lean=found.is_shared)

    return fits


def _emit_rows(e: Elemental, results: Results, way: sort.Way, steps: Steps | None) -> None:
    sort.emit_sort(e, results.root, _targets(e, results), way, steps)


FORMS = (
    Form(
        "window/running",
        "Cumulative reductions: one value runs along each row.",
        _of(Op.REDUCE_WINDOW, _fits_running),
        lambda e, results, _, steps: emit_running(e, results.root, _arrays(e, results), steps),
    ),
    Form(
        "window/pool",
        "Windows of many neighbouring results side by side.",
        _of(Op.REDUCE_WINDOW, _fits_pool),
        lambda e, results, _, steps: emit_pool(e, results.root, _arrays(e, results), steps),
    ),
    Form(
        "scatter", "Windows of updates, combined in order of the batch.", _of(Op.SCATTER, _fits_scatter), _emit_scatter
    ),
    Form(
        "sort/abreast",
        "Many short rows with one key: a network of exchanges, a lane a row.",
        _of(Op.SORT, _fits_abreast),
        _emit_abreast,
        limits(vars(sort_side), LONGEST="elements of a row", LEAST_ROWS="rows"),
    ),
    Form(
        "sort/insertion",
        "Rows that are one run.",
        _of(Op.SORT, _fits_rows(sort.insertion)),
        _emit_rows,
        limits(vars(sort), RUN="elements of a row"),
    ),
    Form(
        "sort/select",
        "A few first elements: what may be among them is collected, and sorted.",
        _of(Op.SORT, _fits_rows(sort.select)),
        _emit_rows,
        limits(vars(sort_select), SHORTEST="elements of a row", SHARE="elements of a row for each wanted one"),
    ),
    Form(
        "sort/radix",
        "Long rows with one key: by its digits.",
        _of(Op.SORT, _fits_rows(sort.radix)),
        _emit_rows,
        limits(vars(sort_radix), SHORTEST="elements of a row for each digit", LONGEST="elements of a row"),
    ),
    Form(
        "sort/merge",
        "Any rows and comparators: runs that are merged.",
        _of(Op.SORT, _fits_rows(sort.merge)),
        _emit_rows,
    ),
)
