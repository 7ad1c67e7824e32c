"""The forms of this stack, in the order in which they are asked; choice.py asks them.

A *form* is a way to emit a class of shapes. Its name is family/form: the family says what it is for (rows, reduce,
convolution, dot, concatenate, pad, window, sort …), the form what is done. `rows/…` are for a whole kernel; then the
products that elementwise ops follow, and roots with loops of their own, are asked for; `nest/…`, `regions`,
`padded/rows` and `repeated/rows` emit what is left, by shape and layout; `groups/…` are for groups of a device's items.
"""

from __future__ import annotations

from types import ModuleType

from ..codegen.forms import FormInfo, Limit
from ..hlo.opcodes import Op
from . import nests, roots
from .devices import group_columns, group_convolution, group_crossing, group_dot, group_rows
from .loops import loops
from .loops.form import Form, Results
from .movement import concatenate, padded_rows, padding, planes, regions, transposition, update
from .movement import repeated_rows as repetition
from .products import (
    complex_dot,
    convolution,
    convolution_blocks,
    convolution_depth,
    convolution_depthwise,
    convolution_vectors,
    dot_product,
    dot_tiled,
)
from .products import dot_narrow as dot_slim
from .reductions import column_run, pool_lines, reduce_window, sum_run
from .reductions import columns as column_reduction
from .rows import rows, rows_abreast, softmax
from .sorts import sort, sort_abreast, sort_counting, sort_first


def limits(room: ModuleType, **measures: str) -> tuple[Limit, ...]:
    """The limits that are constants of a file, by name, and what is compared with each."""
    return tuple(Limit(name, measure, getattr(room, name)) for name, measure in measures.items())


# fmt: off
ROWS = (
    Form("rows/abreast", "short rows side by side: a lane of a vector for each row",
         rows_abreast.fits, rows_abreast.emit,
         limits=limits(rows_abreast, MINIMUM_ROW_ELEMENTS="elements of a row", MAXIMUM_ROW_ELEMENTS="elements of a row",
                       MINIMUM_ALONE_ELEMENTS="elements of a row that is only reduced",
                       MINIMUM_ALONE_ROWS="rows of a reduction alone")),
    Form("rows/softmax", "a softmax of rows in memory: a function that kernels share takes all rows",
         softmax.fits, softmax.emit, None, Results.ONE,
         limits(softmax, MINIMUM_ROW_ELEMENTS="elements of a row", MAXIMUM_ROW_ELEMENTS="elements of a row")),
    Form("rows/walks", "reductions over rows, and what is between them: a walk for each level", rows.fits, rows.emit),
)
"""Of a whole kernel."""

REDUCE = (
    Form("reduce/run", "few columns whose rows are one run in memory: added up as one",
         column_run.fits, column_run.emit, Op.REDUCE, Results.ANY,
         limits(sum_run, MINIMUM_RUN_ELEMENTS="elements of a run")
         + limits(column_run, MAXIMUM_WORD_COLUMNS="columns of integers")),
    Form("reduce/columns", "results across memory: a block of them is accumulated row by row",
         column_reduction.fits, column_reduction.emit, Op.REDUCE),
)

CONVOLUTION = (
    Form("convolution/deep", "few features, or features that are far apart: vectors along the depth",
         convolution.deep_fits, convolution.emit_deep, Op.CONVOLUTION, Results.ANY,
         limits(convolution_blocks, MINIMUM_WORK="multiplications")
         + limits(convolution_depth, MINIMUM_RUN_ELEMENTS="neighbours in both operands")),
    Form("convolution/channels", "depthwise: a function has the products of a few positions with a run of channels",
         convolution.channels_fit, convolution.emit_channels, Op.CONVOLUTION, Results.ANY,
         limits(convolution_blocks, MINIMUM_WORK="multiplications", ALONE_PRODUCTS="products of a sum")
         + limits(convolution_depthwise, MINIMUM_CALLED_PRODUCTS="multiply-adds of a tile's vectors")),
    Form("convolution/held", "lanes are output features: sums of a tile are vectors in registers",
         convolution.vectors_fit, convolution.emit_vectors, Op.CONVOLUTION, Results.ANY,
         limits(convolution_vectors, MINIMUM_FEATURES="output features")),
    Form("convolution/columns", "others with close neighbours: a tile of sums on the stack",
         convolution.tiles_fit, convolution.emit_tiles, Op.CONVOLUTION, Results.ANY,
         limits(convolution_blocks, CLOSE_ELEMENTS="elements between lanes")),
)

DOT = (
    Form("dot/narrow", "many rows along memory with a few columns: dot products of vectors, several rows at once",
         dot_slim.fits, dot_slim.emit, Op.DOT, Results.ANY,
         limits(dot_slim, MINIMUM_ROWS="rows", MAXIMUM_COLUMNS="columns", MINIMUM_ROW_VECTORS="vectors of a row",
                MAXIMUM_COLUMN_BYTES="bytes of the columns")),
    Form("dot/tiled", "tiles of sums in registers, over packed panels of the right operand",
         dot_tiled.fits, dot_tiled.emit, Op.DOT, Results.ANY,
         limits(dot_product, MINIMUM_COLUMNS="columns, of operands contiguous along the depth",
                MINIMUM_TRANSPOSE_ROWS="rows, of columns that would be transposed")),
)

PRODUCTS = (*REDUCE, *CONVOLUTION, *DOT)
"""Of results that follow a product through elementwise ops only."""

ROOTS = (
    Form("dot/columns", "complex numbers whose columns are neighbours: sums of a block of columns on the stack",
         complex_dot.fits, complex_dot.emit, Op.DOT, Results.ONE, limits(complex_dot, MINIMUM_COLUMNS="columns")),
    Form("concatenate/abreast", "few neighbours of all operands together: one nest interleaves them",
         concatenate.interleaved_fits, concatenate.emit_interleaved, Op.CONCATENATE, Results.ONE,
         limits(concatenate, MAXIMUM_NEIGHBOURS="neighbours in memory", MAXIMUM_BYTES="bytes of neighbours")),
    Form("concatenate/pieces", "a nest for each operand, so that no element selects it",
         concatenate.pieces_fit, concatenate.emit_pieces, Op.CONCATENATE, Results.ONE),
    Form("update/in_place", "the array is copied unless it is in place, then the update is written over it",
         update.fits, update.emit, Op.DYNAMIC_UPDATE_SLICE, Results.ONE),
    Form("padded/gaps", "elements apart in memory, or narrow ones: each is written with the gap behind it",
         padding.fits, padding.emit, Op.PAD, Results.ONE,
         limits(padding, MAXIMUM_NEIGHBOURS="neighbours are interleaved",
                MINIMUM_ELEMENTS="elements, if they lie beside each other")),
    Form("window/running", "each window is the one before, and one element more",
         roots.running_fits, roots.emit_running, Op.REDUCE_WINDOW, Results.EACH),
    Form("window/phases", "windows along memory overlap: the rows under them are joined on a line first",
         roots.lines_fit, roots.emit_lines, Op.REDUCE_WINDOW, Results.EACH,
         limits(reduce_window, MINIMUM_RESULTS="results along memory")
         + limits(pool_lines, MAXIMUM_STRIDE="places between windows", MAXIMUM_TAPS="window positions")),
    Form("window/pool", "windows of neighbours are combined side by side",
         roots.pool_fits, roots.emit_pool, Op.REDUCE_WINDOW, Results.EACH,
         limits(reduce_window, MINIMUM_RESULTS="results along memory")),
    Form("scatter", "updates one after the other",
         roots.scatter_fits, roots.emit_scatter, Op.SCATTER, Results.EACH),
    Form("sort/abreast", "short rows side by side: a lane of a vector for each row",
         roots.sorted_abreast_fits, roots.emit_sorted_abreast, Op.SORT, Results.EACH,
         limits(sort_abreast, MINIMUM_ROWS="rows", MAXIMUM_POSITIONS="positions of a row")),
    Form("sort/select", "few first elements of rows: candidates are found, and these are sorted",
         roots.first_sorted_fits, roots.emit_sorted_rows, Op.SORT, Results.EACH,
         limits(sort_first, MASK_KEYS="elements of a row",
                MINIMUM_SHARE="elements of a row for each wanted one",
                MINIMUM_SHARE_OF_SHORT="elements of a short row for each wanted one")),
    Form("sort/insertion", "rows that are one run",
         roots.inserted_fits, roots.emit_sorted_rows, Op.SORT, Results.EACH,
         limits(sort, MAXIMUM_RUN_ELEMENTS="elements of a row")),
    Form("sort/radix", "long rows by the digits of a key",
         roots.sorted_by_digits_fits, roots.emit_sorted_rows, Op.SORT, Results.EACH,
         limits(sort_counting, MINIMUM_PASS_ELEMENTS="elements of a row for a pass",
                MAXIMUM_ROW_ELEMENTS="elements of a row")),
    Form("sort/merge", "runs by insertion, then merges of neighbouring runs",
         roots.merged_fits, roots.emit_sorted_rows, Op.SORT, Results.EACH),
)
"""Of roots that have loops of their own."""

NESTS = (
    Form("nest/linear", "each element is made of those at its own offset: one loop",
         nests.linear_fits, nests.emit_linear),
    Form("nest/elements", "elements of devices, each by itself", nests.elements_fit, nests.emit_plain),
    Form("padded/rows", "short rows become longer: lanes of a vector of them, or of the padding value, are chosen",
         padded_rows.fits, padded_rows.emit, None, Results.ONE,
         limits(padded_rows, MAXIMUM_ROW_ELEMENTS="elements of a row", MINIMUM_ELEMENTS="elements")),
    Form("repeated/rows", "a short row comes again and again: a piece of such rows is computed once, and copied",
         repetition.fits, repetition.emit, None, Results.ONE,
         limits(repetition, MAXIMUM_PIECE_BYTES="bytes of a row", MINIMUM_BYTES="bytes",
                MAXIMUM_READ_ROW_BYTES="bytes of a row that is only read")),
    Form("nest/channels", "pixels of two to four channels become a plane of each: vectors are shuffled",
         planes.fits, planes.emit, None, Results.ONE,
         limits(planes, MINIMUM_ELEMENTS="elements", MAXIMUM_CHANNELS="channels")),
    Form("nest/blocks", "blocks go through vector registers",
         transposition.fits, transposition.emit, None, Results.ONE,
         limits(transposition, MINIMUM_SIDE="elements of a side")),
    Form("nest/tiles", "something is read across memory: tiles, in which both sides use whole lines",
         nests.tiles_fit, nests.emit_tiles, limits=limits(loops, MINIMUM_TILED_SIDE="elements of a side")),
    Form("regions", "concatenations and paddings inside: a nest for each region in which elements come from one place",
         regions.fits, regions.emit,
         limits=limits(regions, MINIMUM_ELEMENTS="elements", MAXIMUM_REGIONS="regions",
                       MINIMUM_RUN_ELEMENTS="elements of a run")),
    Form("nest/plain", "all else: a nest in memory order", nests.plain_fits, nests.emit_plain),
)
"""Of what is left, by shape and layout."""

GROUPS = (
    Form("groups/rows", "a group of items computes a row, or several short ones",
         group_rows.fits, group_rows.emit, limits=limits(group_rows, MINIMUM_ROW_ELEMENTS="elements of a row")),
    Form("groups/dot", "a group of items computes a tile of the product",
         group_dot.fits, group_dot.emit, Op.DOT, Results.ANY,
         limits(group_dot, MINIMUM_ROWS="rows", MINIMUM_TERMS="terms")),
    Form("groups/convolution", "a group of items computes a tile of positions and features",
         group_convolution.fits, group_convolution.emit, Op.CONVOLUTION, Results.ANY,
         limits(group_dot, MINIMUM_TERMS="terms")),
    Form("groups/columns", "a group of items reduces a block of columns",
         group_columns.fits, group_columns.emit, Op.REDUCE, Results.ANY,
         limits(group_columns, MINIMUM_ITEM_ROWS="rows of an item")),
    Form("groups/squares", "something is read across memory: a group of items computes a tile of two sides",
         group_crossing.fits, group_crossing.emit),
)
"""Of kernels that groups of a device's items compute."""
# fmt: on

FORMS = (*ROWS, *PRODUCTS, *ROOTS, *NESTS, *GROUPS)

ROOT_FORMS = {
    form.opcode: tuple(f for f in (*DOT, *ROOTS) if f.opcode is form.opcode)
    for form in ROOTS
    if form.opcode is not None
}
"""By opcode of the root, the forms that are asked when it is a kernel's result itself."""


def form_table() -> tuple[FormInfo, ...]:
    """The table for reports."""
    devices = {form.name for form in GROUPS} | {"nest/elements"}
    return tuple(FormInfo(form.name, form.why, form.limits, form.name in devices) for form in FORMS)
