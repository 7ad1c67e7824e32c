"""Emits one kernel: its function, and suitable loops for its outputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from mlir import ir

from ..hlo.opclasses import EXPENSIVE
from ..hlo.opcodes import Op
from ..hlo.records import dataclass
from ..planning.partition import Partition
from . import (
    column_reduction,
    convolution,
    dot,
    dot_product,
    indexing,
    reduce,
    reduce_window,
    shape,
    sort,
)
from .builder import Builder, Index, Unroll
from .chains import is_chain
from .complex_dot import has_columns
from .dot_slim import slim_product_of, slim_takes_steps
from .elemental import Elemental, ElementRule, Linear
from .elements import raw_type
from .elementwise import EMIT
from .generic import emit_generic, is_generic
from .graph import Buffer, KernelGraph, Node, origin, reachable
from .lanewise import Lanewise
from .linear import is_linear
from .loops import (
    Axes,
    Inner,
    are_few,
    copied_across,
    crossing_dimension,
    tiled,
    tiles_take_steps,
    unroll_of,
    with_loops,
)
from .padded_rows import takes_steps as whole_rows_take_steps
from .planes import emit_planes
from .ranges import Steps, runs
from .regions import boxes_of, over_boxes
from .repetition import whole_rows_of
from .roots import ROOTS, emit_product, has_loops_apart, root_takes_steps
from .row_graph import RowGraph, row_graph
from .rows import RowKernel, is_light_in_rows
from .rows_abreast import emit_abreast, only_reduction, takes_rows
from .scratch import Scratch
from .transposition import SHORTEST, blocks_take_steps, emit_blocks, pure_transposition
from .turned import Turned, turned_for


def merge(*tables: Mapping[Op, ElementRule]) -> dict[Op, ElementRule]:
    """Merge the tables of all families. An opcode in two tables is an error."""
    result: dict[Op, ElementRule] = {}
    for table in tables:
        twice = result.keys() & table.keys()
        if twice or table.keys() & EMIT.keys():
            raise ValueError(f"two rules for {sorted(op.value for op in twice or table.keys() & EMIT.keys())}")
        result |= table
    return result


RULES: dict[Op, ElementRule] = merge(
    shape.RULES, reduce.RULES, dot.RULES, convolution.RULES, indexing.RULES, reduce_window.RULES, sort.RULES
)


def emit_kernel(
    b: Builder, graph: KernelGraph, partition: Partition | None = None, metadata: Collection[str] = ()
) -> Emitted:
    """Emit the function `void name(ptr noalias …)` of a kernel.

    metadata: those of codegen/metadata.py that its arguments have.
    """
    t = b.types
    b.shares = b.walks = b.lean = False
    b.called = set()
    ranged = partition is not None and takes_steps(b, graph.results, partition)
    count = len(graph.arguments)
    given = argument_attributes(b, graph, 2 if ranged else 0)
    if "arguments" not in metadata:
        given = [ir.DictAttr.get({})] * len(given)
    if partition is not None and ranged and "ranges" in metadata:
        given[count:] = [_limited(least, partition.extent + least) for least in (0, 1)]
    attributes: dict[str, ir.Attribute] = {"arg_attrs": ir.ArrayAttr.get(given)}
    types = b.argument_types([a.size for a in graph.arguments], held_types(b, graph))
    with b.function(graph.name, types + [t.i64] * (2 if ranged else 0), [], attributes) as parameters:
        pointers = parameters[:count]
        steps = Steps(partition, *parameters[count:]) if partition is not None and ranged else None
        offered = graph.scratch >= 0
        scratch = Scratch(pointers[graph.scratch], graph.arguments[graph.scratch].size) if offered else Scratch()
        e = Elemental(b, pointers, RULES, scratch)
        rows = _rows_of(b, graph.results)
        if rows is None:
            emit_outputs(e, graph.results, steps)
        elif not emit_abreast(e, rows, graph.results, in_place := {x.argument for x in graph.operands}, steps):
            RowKernel(e, rows, graph.results, in_place).emit(steps)
        b.give()
    light = _is_light(graph.results) if rows is None else is_light_in_rows(rows, b.called)
    glue = light and b.shares and not b.walks
    return Emitted(ranged, glue, light and b.lean and not glue)


def _rows_of(b: Builder, results: Sequence[Buffer]) -> RowGraph | None:
    """The rows of a row kernel; those of a single reduction if they go side by side."""
    rows = row_graph(results)
    single = row_graph(results, single=True) if rows is None and only_reduction(results) else None
    return single if single is not None and takes_rows(b, single, results) else rows


@dataclass(frozen=True, slots=True)
class Emitted:
    """ranged: the kernel takes a range of its partition; glue: it spends its time in functions that kernels share;
    lean: few passes are enough for its own loops.
    """

    ranged: bool
    glue: bool
    lean: bool


def _is_light(results: Sequence[Buffer]) -> bool:
    """Whether a product is followed by no more than a few cheap operations on each of its elements."""
    nodes = list(reachable(results))
    return len(alike(results)) == 1 and len(nodes) <= LIGHT and not any(n.opcode in EXPENSIVE for n in nodes)


LIGHT = 12
"""Operations of a kernel for whose short loops LLVM does less, at most."""


def held_types(b: Builder, graph: KernelGraph) -> list[ir.Type | None]:
    """The type that all accesses of each argument have; None for an argument of several, or of none."""
    found: list[set[ir.Type]] = [set() for _ in graph.arguments]
    for buffer in (*graph.operands, *graph.results):
        found[buffer.argument].add(raw_type(b.types, buffer.dtype))
    return [types.pop() if len(types) == 1 else None for types in found]


def takes_steps(b: Builder, results: Sequence[Buffer], partition: Partition) -> bool:
    """Whether all loops over the results can run over some of the steps."""
    rows = _rows_of(b, results)
    if rows is not None:
        return rows.count % partition.extent == 0
    groups = alike(results)
    nests: list[Buffer] = []
    for group in groups:
        products = [] if b.by_element else products_of(group)
        if products and not _PRODUCTS_IN_STEPS[products[0].opcode](b, products[0], group, partition):
            return False
        nests += [] if products else group
    roots = {sort.uncut(origin(result)).writer: result for result in nests}
    written = [(node, result) for node, result in roots.items() if node is not None]
    special = [(node, result) for node, result in written if has_loops_apart(b, node, result, results)]
    if special:
        return len(roots) == 1 and all(root_takes_steps(b, node, result, partition) for node, result in special)
    if not nests or b.by_element or is_linear(nests):
        return True
    if whole_rows_of(b, nests) is not None:
        return whole_rows_take_steps(nests[0], partition)
    crossing = crossing_dimension(nests)
    if crossing is None:
        return blocks_take_steps(b, nests, partition)
    return tiles_take_steps(nests[0], crossing, partition)


def _dot_takes_steps(b: Builder, node: Node, group: Sequence[Buffer], partition: Partition) -> bool:
    bare = len(group) == 1 and origin(group[0]).writer is node
    result = group[0] if bare else node.output
    slim = slim_product_of(b, node, result)
    if slim is not None:
        return slim_takes_steps(slim, partition)
    if dot_product.product_of(b, node, result, b.vector_bits) is None and not (bare and has_columns(node, result)):
        crossing = crossing_dimension(group)  # plain loops
        return crossing is None or tiles_take_steps(group[0], crossing, partition)
    return dot_product.takes_steps(b, node, result, b.vector_bits, partition)


_PRODUCTS_IN_STEPS: dict[Op, Callable[[Builder, Node, Sequence[Buffer], Partition], bool]] = {
    Op.CONVOLUTION: lambda b, node, group, partition: convolution.takes_steps(b, node, partition),
    Op.DOT: _dot_takes_steps,
    Op.REDUCE: lambda b, node, group, partition: column_reduction.takes_steps(node, partition),
}
"""PRODUCTS → whether one can compute some of the steps. Kernels with others run on one thread."""


def argument_attributes(b: Builder, graph: KernelGraph, more: int) -> list[ir.DictAttr]:
    """The attributes of a kernel's arguments, and of as many more without any."""
    given = [_argument_attributes(b, a.alignment, a.size, a.written) for a in graph.arguments]
    return given + [ir.DictAttr.get({})] * more


def _argument_attributes(b: Builder, alignment: int, size: int, written: bool) -> ir.DictAttr:
    i64 = b.types.i64
    entries: dict[str, ir.Attribute] = {
        "llvm.noalias": b.types.unit,
        "llvm.nonnull": b.types.unit,
        "llvm.noundef": b.types.unit,
        "llvm.align": ir.IntegerAttr.get(i64, alignment),
    }
    if size:
        entries["llvm.dereferenceable"] = ir.IntegerAttr.get(i64, size)
    if not written:
        entries["llvm.readonly"] = b.types.unit
    return ir.DictAttr.get(entries)


def _limited(least: int, end: int) -> ir.DictAttr:
    """The attributes of an i64 argument in [least, end)."""
    return ir.DictAttr.get({"llvm.range": ir.Attribute.parse(f"#llvm.constant_range<i64, {least}, {end}>")})


def emit_outputs(e: Elemental, results: Sequence[Buffer], steps: Steps | None = None) -> None:
    """Emit loops for all outputs: one nest per shape and layout, special loops for some roots."""
    nests: dict[tuple[tuple[int, ...], tuple[int, ...]], list[Buffer]] = {}
    special: dict[Node, list[tuple[Buffer, Buffer]]] = {}
    done = {result for group in alike(results) if emit_epilogue(e, group, steps) for result in group}
    for result in results:
        if result.writer is None or not result.shape.size or result in done:
            continue
        source = sort.uncut(origin(result))
        if (
            source.writer is not None
            and has_loops_apart(e.b, source.writer, result, results)
            and (result.dims or source.writer.opcode is Op.SCATTER)
        ):
            special.setdefault(source.writer, []).append((source, result))
        else:
            nests.setdefault((result.dims, result.strides), []).append(result)
    for node, targets in special.items():
        if not ROOTS[node.opcode](e, node, targets, steps):
            for _, result in targets:
                nests.setdefault((result.dims, result.strides), []).append(result)
    for group in nests.values():
        emit_nest(e, group, steps)


def alike(results: Sequence[Buffer]) -> list[list[Buffer]]:
    """Group results with elements by shape and layout. A result is apart if it would prevent another's blocked
    emission, but not from those that read what it overwrites, or overwrite what it reads.
    """
    groups: list[list[Buffer]] = []
    for result in results:
        if result.writer is None or not result.shape.size:
            continue
        same = [g for g in groups if (g[0].dims, g[0].strides) == (result.dims, result.strides)]
        joined = [g for g in same if _overwrites(g, [result]) or _overwrites([result], g)]
        first, *others = joined or [g for g in same if _are_blocked_together(g, result)][:1] or [[]]
        groups = [g for g in groups if g not in others] + [first] * (not first)
        first += [*(r for g in others for r in g), result]
    return groups


def _overwrites(writing: Sequence[Buffer], reading: Sequence[Buffer]) -> bool:
    """Whether results take over the memory of an operand that others are computed from."""
    written = {result.argument for result in writing}
    leaves = (x for node in reachable(reading) for x in node.inputs if x.writer is None)
    return any(x.argument in written for x in leaves)


def _are_blocked_together(group: Sequence[Buffer], result: Buffer) -> bool:
    """Whether the blocked emission of a dot, convolution or column reduction survives joining the two."""
    return bool(products_of([*group, result])) or not (products_of(group) or products_of([result]))


def emit_epilogue(e: Elemental, group: Sequence[Buffer], steps: Steps | None) -> bool:
    """Emit the dot, convolution or reductions under the group's elementwise ops in blocks, each followed by these ops.

    False if none fits.
    """

    def write(index: tuple[Index, ...]) -> None:
        write_together(e, group, index)

    products = [] if e.b.by_element else products_of(group)
    if not products:
        return False
    product = products[0]
    if product.opcode is Op.REDUCE:
        column_reduction.ColumnReduction(e, products, write).emit(steps)
        return True
    bare = len(group) == 1 and origin(group[0]).writer is product
    if product.opcode is Op.CONVOLUTION:
        column = product.attributes["dim_labels"].output_feature
        return convolution.emit_convolution(e, product, write, steps, Lanewise.of(e, group, product, column))
    return not bare and emit_product(e, product, product.output, write, steps)


def products_of(group: Sequence[Buffer]) -> list[Node]:
    """The dot or convolution on which the results, of its shape and layout, depend only through elementwise ops; or the
    reductions, if they keep the innermost dimension and are over the same columns.
    """
    first, nodes = group[0], behind_elementwise(group)
    products = [node for node in nodes if node.opcode in PRODUCTS]
    others = [x for node in nodes if node.opcode not in PRODUCTS for x in node.outputs]
    if any(node.opcode in PRODUCTS for node in reachable(others)):
        return []
    if any((x.dims, x.strides) != (first.dims, first.strides) for node in products for x in node.outputs):
        return []
    if all(node.opcode is Op.REDUCE for node in products):
        fine = all(
            column_reduction.has_columns(node) and column_reduction.same_columns(products[0], node) for node in products
        )
        return products if fine else []
    return products if len(products) == 1 else []


PRODUCTS = frozenset({Op.CONVOLUTION, Op.DOT, Op.REDUCE})


def behind_elementwise(group: Sequence[Buffer]) -> list[Node]:
    """The nodes that the elementwise ops under the results read."""
    found: list[Node] = []
    stack, seen = [r.writer for r in group], set[Node | None]({None})
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.opcode in EMIT or node.opcode in (Op.SELECT, Op.COPY):
            stack += [x.writer for x in node.inputs]
        else:
            found.append(node)
    return found


def emit_nest(e: Elemental, group: Sequence[Buffer], steps: Steps | None) -> None:
    """Emit a loop nest for outputs of one shape and layout."""
    b, first = e.b, group[0]
    one = is_linear(group) if b.by_element else is_generic(group)
    kind, unroll = (Axes if one else Inner), Unroll.ANY
    turned: Turned | None = None

    def write(index: tuple[Index, ...]) -> None:
        if one:
            emit_generic(e, group, index, unroll, turned)
        else:
            write_together(e, group, index)

    chained = not b.by_element and is_chain(group)
    if is_linear(group):
        unroll = Unroll.ABREAST if chained else unroll
        with runs(b, steps, first.shape.size) as run:
            inner = kind(b)
            write(Linear((inner.open(*run, unroll),)))
            inner.close()
        return
    if (rows := whole_rows_of(b, group)) is not None:
        rows.emit(e, first, steps)
        return
    bare = None if b.by_element else pure_transposition(group)
    if bare is not None:
        if emit_planes(e, first, *bare, steps):
            return
        sides = crossing_dimension(group, SHORTEST)
        if sides is not None and emit_blocks(e, first, *bare, sides, steps):
            return
    crossing = None if b.by_element else crossing_dimension(group)
    boxes = [] if b.by_element or crossing is not None else boxes_of(group, () if steps is None else steps.dimensions)
    if boxes:
        over_boxes(b, first, boxes, lambda index: emit_generic(e, group, index), steps)
        return
    if crossing is None:
        unroll = Unroll.NONE if not b.by_element and copied_across(group) else unroll_of(b, first)
        unroll = Unroll.ABREAST if chained and unroll is Unroll.ANY else unroll
        with_loops(b, first, write, steps, kind, unroll, are_few(group))
        return
    one = is_generic(group, reshapes=True)
    kind = Axes if one else Inner
    turned = turned_for(e, group, crossing) if one and bare is None else None
    if turned is None:
        unroll = Unroll.SCALAR if one or len([*reachable(group)]) < WIDE else Unroll.NONE
        tiled(b, first, crossing, write, steps, kind, unroll=unroll)
    else:
        unroll = Unroll.NONE
        tiled(b, first, crossing, write, steps, kind, turned.copy)


WIDE = 40
"""Operations of a kernel from which on vectors are worth it in tiles that cross memory, gathers and all."""


def write_together(e: Elemental, group: Sequence[Buffer], index: tuple[Index, ...]) -> None:
    """Compute all elements at an index, then store them, because a store may overwrite what another reads."""
    values = [e.value(result, index, raw=True) for result in group]
    for result, value in zip(group, values, strict=True):
        e.store(result, index, value)
