"""Forms of windowed reductions, scatters and sorts at the root: each writes all its results with loops of its own."""

from __future__ import annotations

from ..hlo.analysis.windows import running
from ..hlo.ir import Instruction
from ..hlo.opcodes import Op
from .loops import leaf
from .loops.elemental import Elemental
from .loops.form import Fit, Results, Task, at_least, at_most, form, known, needs
from .loops.ranges import Steps, columns_fit
from .movement.indexing import Scatter, Scattering
from .reductions import pool_phases
from .reductions.pool import emit_phases, emit_pool, key_of
from .reductions.pool_phases import must_have_phases
from .reductions.reduce_window import BLOCK, Runs, emit_running
from .sorts import sort, sort_radix, sort_select, sort_side
from .sorts.sort_order import KeyOrder, key_order
from .sorts.sort_rows import Target
from .sorts.sort_side import Abreast, SideBySide, tile_of


def _whole(task: Task, op: Op) -> Instruction:
    """The root, if it has this opcode and writes all results itself."""
    needs(task.results.whole and task.results.root.opcode is op, f"no {op.value} is the root")
    return task.results.root


# Windows -------------------------------------------------------------------------------------------------------------


@form("window/running", emit_running)
def cumulative(task: Task) -> Fit:
    """Cumulative reductions: one value runs along each row."""
    run = known(running(_whole(task, Op.REDUCE_WINDOW)), "windows do not each grow by an element")
    shape = task.results.shape
    given, numbered = Runs.of(run, shape, task.partition), task.numbered
    column = given.column
    apart = column is None or columns_fit(task.partition, numbered, column, shape.dims[column], BLOCK)
    return Fit(given, apart and run.dimension not in numbered)


def _in_blocks(task: Task) -> bool:
    """Whether steps are whole blocks of results."""
    shape = task.results.shape
    column = shape.minor_to_major[0]
    return columns_fit(task.partition, task.numbered, column, shape.dims[column], BLOCK)


@form(
    "window/phases",
    emit_phases,
    pool_phases,
    leaf,
    MINIMUM_POOLED="results along memory",
    MAXIMUM_STRIDE="elements between windows",
    MAXIMUM_WINDOW="elements of a window",
)
def phases(task: Task) -> Fit:
    """Windows that overlap or are a few elements apart along memory: whole vectors of rows, then along memory."""
    must_have_phases(_whole(task, Op.REDUCE_WINDOW))
    return Fit(in_steps=_in_blocks(task))


@form("window/pool", emit_pool, leaf, MINIMUM_POOLED="results along memory")
def pool(task: Task) -> Fit:
    """Windows of many neighbouring results side by side."""
    return Fit(key_of(task.view, _whole(task, Op.REDUCE_WINDOW)), _in_blocks(task))


# Scatters ------------------------------------------------------------------------------------------------------------


def _emit_scatter(e: Elemental, results: Results, given: Scattering, steps: Steps | None) -> None:
    Scatter(e, results.root, [leaf.pointer(e) for leaf in results.leaves], given, steps).emit()


@form("scatter", _emit_scatter)
def scatter(task: Task) -> Fit:
    """Windows of updates, combined in order of the batch.

    Each must have one position along the steps' dimensions.
    """
    root = _whole(task, Op.SCATTER)
    single = {*root.attributes["inserted_window_dims"], *root.attributes.get("input_batching_dims", ())}
    return Fit(Scattering.of(task.view, task.results), {*task.numbered} <= single)


# Sorts ---------------------------------------------------------------------------------------------------------------


def _keys(task: Task) -> KeyOrder:
    """The known order of keys."""
    return known(key_order(_whole(task, Op.SORT).attributes["to_apply"]), "the comparator does not compare one key")


def _fit(task: Task, parameters: object, lean: bool = False) -> Fit:
    """Steps do not divide rows."""
    return Fit(parameters, task.results.root.dimensions[0] not in task.numbered, lean=lean)


def _targets(e: Elemental, results: Results) -> list[Target]:
    return [Target(leaf.pointer(e), leaf.shape, leaf.start) for leaf in results.leaves]


def _emit_abreast(e: Elemental, results: Results, given: Abreast, steps: Steps | None) -> None:
    SideBySide(e, results.root, given, _targets(e, results)).emit(steps)


def _emit_rows(e: Elemental, results: Results, way: sort.Way, steps: Steps | None) -> None:
    sort.emit_sort(e, results.root, _targets(e, results), way, steps)


@form("sort/abreast", _emit_abreast, sort_side, MAXIMUM_LENGTH="elements of a row", MINIMUM_ROWS="rows")
def abreast(task: Task) -> Fit:
    """Many short rows with one key: a network of exchanges, a lane a row."""
    view, order = task.view, _keys(task)
    needs(not view.by_element, "for a device")
    tile = tile_of(task.results.root, order, view.scratch, view.processor)
    return _fit(task, Abreast.of(task.results, order, tile, task.partition))


@form("sort/insertion", _emit_rows, sort, MAXIMUM_RUN_ELEMENTS="elements of a row")
def insertion(task: Task) -> Fit:
    """Rows that are one run."""
    _whole(task, Op.SORT)
    cut = sort.Cut.of(task.results)
    needs(not cut.is_part, "parts of rows are wanted")
    at_most(cut.length, sort.MAXIMUM_RUN_ELEMENTS, "elements of a row")
    return _fit(task, sort.Way(False))


@form(
    "sort/select",
    _emit_rows,
    sort_select,
    MINIMUM_LENGTH="elements of a row",
    MINIMUM_SHARE="elements of a row for each wanted one",
    MINIMUM_SHARE_OF_SHORT="elements of a short row for each wanted one",
)
def select(task: Task) -> Fit:
    """A few first elements: what may be among them is collected, and sorted."""
    order, cut, view = _keys(task), sort.Cut.of(task.results), task.view
    needs(cut.is_part, "whole rows are wanted")
    needs(not view.by_element, "for a device")
    needs(sort_select.is_worth(cut.length, cut.wanted), f"{cut.wanted} wanted elements of {cut.length} are too many")
    sizes = [shape.dtype.bytes for _, shape in task.results.root.shape.leaves()]
    keys = next((n for n, size in enumerate(sizes) if size >= order.dtype.bytes), -1)
    needs(keys >= 0, f"no operand's rows have room for keys of {order.dtype.bytes} bytes an element")
    way = sort.Way(True, True, order, selected=cut.wanted, keys=keys, is_shared=not view.strict)
    return _fit(task, way, lean=way.is_shared)


@form(
    "sort/radix",
    _emit_rows,
    sort_radix,
    MINIMUM_LENGTH_OF_DIGIT="elements of a row for each digit",
    MAXIMUM_LENGTH="elements of a row",
)
def radix(task: Task) -> Fit:
    """Long rows with one key: by its digits."""
    order, cut, view = _keys(task), sort.Cut.of(task.results), task.view
    least, digits = sort.ALONE if view.by_element else 0, sort_radix.digits(order)
    at_least(cut.length, least, "elements of a row for an item of a device")
    needs(sort_radix.is_worth(order, cut.length), f"rows of {cut.length} elements do not pay for {digits} digits")
    needed = sort.scratch_bytes(task.results.root, cut) + sort_radix.count_bytes(order)
    needs(needed <= view.scratch, f"{needed} bytes of scratch memory are needed, {view.scratch} are there")
    return _fit(task, sort.Way(True, cut.is_part, order, digits=True))


@form("sort/merge", _emit_rows)
def merge(task: Task) -> Fit:
    """Any rows and comparators: runs that are merged."""
    _whole(task, Op.SORT)
    return _fit(task, sort.Way(True, sort.Cut.of(task.results).is_part))


FORMS = (cumulative, phases, pool, scatter, abreast, insertion, select, radix, merge)
