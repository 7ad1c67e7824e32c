"""Emits one kernel: the function's frame, and the choice of loops for each of its results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from llvmlite import ir

from ..codegen.options import EmitOptions
from ..hlo.analysis.windows import running
from ..hlo.ir import Instruction
from ..hlo.opclasses import EXPENSIVE
from ..hlo.opcodes import Op
from ..hlo.records import dataclass
from ..hlo.shapes import Shape
from ..planning.partition import Partition
from ..planning.plan import KernelRequest
from . import column_run, convolution, dot, indexing, reduce, reduce_columns, reduce_window, shape, sort
from .builder import Code, IndexValue
from .concatenate import takes_steps as concatenate_takes_steps
from .concatenate import write_concatenated
from .dot_narrow import emit_narrow_dot, narrow_of
from .dot_narrow import takes_steps as narrow_dot_takes_steps
from .dot_problem import problem_of
from .dot_problem import takes_steps as tiled_dot_takes_steps
from .dot_tiled import emit_tiled_dot
from .elemental import Elemental, ElementRule, Index, same_order
from .elementwise import EMIT
from .graph import graph_of, walk
from .group import PARAMETERS
from .lanewise import Lanewise
from .leaf import Leaf, is_whole, result_leaves
from .linear import is_linear
from .loops import nest_by_element, nest_for, takes_steps, tile_of
from .memory import Pointer
from .metadata import annotate
from .moved_rows import MovedRows
from .padded_rows import PaddedRows
from .padded_rows import takes_steps as whole_rows_in_steps
from .pool import emit_pool
from .ranges import Steps, elements
from .regions import Region, followed, over_regions, regions
from .registers import I64, POINTER
from .repeated import RepeatedRows
from .row_graph import RowGraph
from .rows import emit_rows, find_rows, is_light_in_rows
from .rows_abreast import are_abreast, emit_abreast, is_single
from .scratch import Scratch
from .sort_rows import Target
from .update import emit_update, is_update


def merge(*tables: Mapping[Op, ElementRule]) -> dict[Op, ElementRule]:
    """Merge tables of rules. An opcode with two rules is an error."""
    merged: dict[Op, ElementRule] = {}
    for table in tables:
        for op, rule in table.items():
            if op in merged:
                raise ValueError(f"{op!r} has two rules in legacy")
            merged[op] = rule
    return merged


RULES: dict[Op, ElementRule] = merge(
    shape.RULES, reduce.RULES, dot.RULES, convolution.RULES, indexing.RULES, reduce_window.RULES, sort.RULES
)
"""Rules of the opcodes that are not elementwise."""


@dataclass(frozen=True, slots=True)
class Emitted:
    """What a kernel is. ranged: it takes ranges; glue: it spends its time in functions that kernels share; lean: few
    passes are enough for its own loops.
    """

    ranged: bool
    glue: bool
    lean: bool


def emit_kernel(module: ir.Module, request: KernelRequest, options: EmitOptions) -> Emitted:
    """Add the kernel's function to the module."""
    ranged = options.ranges and request.partition is not None and _takes_steps(request, options)
    e, leaves = begin(module, request, options, ranged)
    steps = None
    if ranged:
        assert request.partition is not None
        steps = Steps(request.partition, *e.code.function.args[-2:])
    rows = _rows_of(e, leaves)
    if rows is not None:
        if not emit_abreast(e, leaves, rows, steps):
            emit_rows(e, leaves, rows, steps)
    else:
        for group in groups_of(e, leaves):
            _emit_group(e, group, steps)
    e.code.root.builder.ret_void()
    annotate(e.code.function, [argument.written for argument in request.arguments], options.metadata)
    light = _is_light(e, leaves) if rows is None else is_light_in_rows(rows, e.code.called)
    glue = light and e.code.shares and not e.code.walks
    return Emitted(ranged, glue, light and e.code.lean and not glue)


def _rows_of(e: Elemental, leaves: list[Leaf]) -> RowGraph | None:
    """The rows of a row kernel; a single reduction is one if they are computed side by side."""
    rows = find_rows(e, leaves)
    single = find_rows(e, leaves, single=True) if rows is None and is_single(leaves) else None
    return single if single is not None and are_abreast(e, leaves, single) else rows


def _is_light(e: Elemental, leaves: list[Leaf]) -> bool:
    """Whether all that follows a product is a few cheap operations on each of its elements."""
    nodes = list(walk([leaf.instruction for leaf in leaves], e.leaves))
    return len(groups_of(e, leaves)) == 1 and len(nodes) <= LIGHT and not any(i.opcode in EXPENSIVE for i in nodes)


LIGHT = 20
"""Most operations of a kernel that is glue: short vector loops that LLVM has done less for."""


def begin(
    module: ir.Module, request: KernelRequest, options: EmitOptions, ranged: bool
) -> tuple[Elemental, list[Leaf]]:
    """The function of a kernel without its body. ranged: it takes ranges; in groups, it takes their memory."""
    more = PARAMETERS if options.group is not None else [I64] * 2 * ranged
    function = _declare(module, request, more, options.metadata)
    target = options.target
    strict, by_element = options.strict, options.by_element
    width, products = target.vector_bits, target.integer_products
    code = Code(
        module,
        function,
        strict=strict,
        fma=target.has_fma,
        vector_bits=width,
        by_element=by_element,
        products=products,
        bf16_pairs=target.adds_bf16_pairs,
    )
    code.hints = "loops" in options.metadata
    graph = graph_of(request)
    pointers = {leaf: Pointer(function.args[argument]) for leaf, argument in graph.leaves.items()}
    e = Elemental(code, pointers, RULES, Scratch.of(request, function))
    return e, result_leaves(request, graph, function)


def _takes_steps(request: KernelRequest, options: EmitOptions) -> bool:
    """Whether all loops over the results of a kernel with a partition can run over some of the steps."""
    e, leaves = begin(ir.Module("probe", context=ir.Context()), request, options, ranged=True)
    partition = request.partition
    assert partition is not None
    rows = _rows_of(e, leaves)
    if rows is not None:
        return rows.grid.count % partition.extent == 0
    return all(_group_takes_steps(e, group, partition) for group in groups_of(e, leaves))


def _declare(
    module: ir.Module, request: KernelRequest, more: Sequence[ir.Type], metadata: Collection[str]
) -> ir.Function:
    type_ = ir.FunctionType(ir.VoidType(), [POINTER] * len(request.arguments) + list(more))
    function = ir.Function(module, type_, request.name)
    function.attributes.add("nounwind")
    limits = {"begin": 0, "end": 1} if len(more) == 2 else {"memory": None}
    for (name, least), bound in zip(limits.items(), function.args[len(request.arguments) :], strict=False):
        bound.name = name
        if least is not None and "ranges" in metadata and request.partition is not None:
            set.add(bound.attributes, f"range(i64 {least}, {request.partition.extent + least})")
    for number, (argument, parameter) in enumerate(zip(request.arguments, function.args, strict=False)):
        parameter.name = f"arg{number}"
        if "arguments" not in metadata:
            continue
        for attribute in ("noalias", "captures(none)", "noundef", "nonnull"):
            parameter.add_attribute(attribute)
        if not argument.written:
            set.add(parameter.attributes, "readonly")
        parameter.attributes.align = argument.alignment
        parameter.attributes.dereferenceable = argument.slice.size
    return function


def groups_of(e: Elemental, leaves: list[Leaf]) -> list[list[Leaf]]:
    """Leaves that one loop nest can write together. A leaf that overwrites what another reads is in its group."""
    groups: list[list[Leaf]] = []
    for leaf in leaves:
        alike = [g for g in groups if _together(g[0], leaf)]
        bound = [g for g in alike if _overwrites(e, g, [leaf]) or _overwrites(e, [leaf], g)]
        group = bound[0] if bound else next((g for g in alike if _of_one_loop(e, g, leaf)), None)
        if group is None:
            groups.append(group := [])
        for other in bound[1:]:
            groups.remove(other)
            group += other
        group.append(leaf)
    return groups


def _overwrites(e: Elemental, written: list[Leaf], computed: list[Leaf]) -> bool:
    """Whether leaves take over the memory of an operand from which others are computed."""
    places = {leaf.pointer for leaf in written if leaf.in_place}
    if not places:
        return False
    roots = [leaf.instruction for leaf in computed]
    read = [*roots, *(o for i in walk(roots, e.leaves) for o in i.operands)]
    return any(o in e.leaves and e.leaves[o] in places for o in read)


def _of_one_loop(e: Elemental, group: list[Leaf], leaf: Leaf) -> bool:
    """Whether blocked emission of a dot, convolution or column reduction survives adding this leaf to the group."""
    alone = products_of(e, group) or products_of(e, [leaf])
    return not alone or bool(products_of(e, [*group, leaf]))


def _together(a: Leaf, b: Leaf) -> bool:
    if is_whole(a.instruction) or is_whole(b.instruction):
        return a.instruction is b.instruction
    if is_update(a.instruction) or is_update(b.instruction):
        return False
    return a.shape.dims == b.shape.dims and same_order(a.shape.dims, a.shape.minor_to_major, b.shape.minor_to_major)


def _group_takes_steps(e: Elemental, group: list[Leaf], partition: Partition) -> bool:
    """Whether `_emit_group` can compute some of the steps. It has the same cases in the same order."""
    first = group[0]
    if len(group) == 1 and is_update(first.instruction):
        return False
    if is_whole(first.instruction) and first.instruction not in e.leaves:
        rule = _WHOLE_STEPS.get(first.instruction.opcode)
        return rule is not None and rule(first.instruction, partition)
    if e.code.by_element:
        return True
    products = products_of(e, group)
    if products:
        return _PRODUCT_STEPS[products[0].opcode](e, products[0], group, partition)
    if len(group) == 1 and RepeatedRows.of(e, first) is not None:
        return whole_rows_in_steps(first, partition)
    if _regions(e, group, partition.dimensions):
        return True
    if len(group) == 1 and first.instruction not in e.leaves and first.instruction.opcode in _PIECES:
        if PaddedRows.of(e, first) is not None:
            return whole_rows_in_steps(first, partition)
        return first.instruction.opcode is Op.CONCATENATE and concatenate_takes_steps(first, partition)
    if all(is_linear(leaf.instruction, e.leaves) for leaf in group):
        return True
    return takes_steps(e, [leaf.instruction for leaf in group], first.shape, partition)


_WHOLE_STEPS: dict[Op, Callable[[Instruction, Partition], bool]] = {
    Op.REDUCE_WINDOW: reduce_window.takes_steps,
    Op.SCATTER: indexing.takes_steps,
    Op.SORT: sort.takes_steps,
}
"""Which roots of _WHOLE can compute some of the steps. The others run on one thread."""

_PRODUCT_STEPS: dict[Op, Callable[[Elemental, Instruction, list[Leaf], Partition], bool]] = {
    Op.CONVOLUTION: lambda e, root, group, partition: convolution.takes_steps(e, root, partition),
    Op.DOT: lambda e, root, group, partition: _dot_takes_steps(e, root, group, partition),
    Op.REDUCE: lambda e, root, group, partition: reduce_columns.takes_steps(root, partition),
}
"""Which blocked products can compute some of the steps."""


def _dot_takes_steps(e: Elemental, root: Instruction, group: list[Leaf], partition: Partition) -> bool:
    narrow = narrow_of(e, root)
    if narrow is not None:
        return narrow_dot_takes_steps(root, narrow, partition)
    tiled = problem_of(e, root, e.code.vector_bits)
    if tiled is not None:
        return tiled_dot_takes_steps(root, tiled, partition)
    if _HAS_COLUMNS[Op.DOT](e, root):
        return dot.takes_steps(root, partition)
    return takes_steps(e, [leaf.instruction for leaf in group], group[0].shape, partition)


def _emit_group(e: Elemental, group: list[Leaf], steps: Steps | None) -> None:
    first = group[0]
    if first.shape.size == 0:
        return
    if len(group) == 1 and is_update(first.instruction):
        emit_update(e, first.instruction, first.pointer, first.in_place)
        return
    if is_whole(first.instruction) and first.instruction not in e.leaves:
        _WHOLE[first.instruction.opcode](e, first.instruction, _all_leaves(group), steps)
        return
    if not e.code.by_element and _emit_product(e, group, steps):
        return
    repeated = RepeatedRows.of(e, first) if len(group) == 1 else None
    if repeated is not None:
        repeated.emit(e, first, steps)
        return
    split = _regions(e, group, () if steps is None else steps.dimensions)
    alone = not split and len(group) == 1 and first.instruction not in e.leaves and not e.code.by_element
    pieces = _PIECES.get(first.instruction.opcode) if alone else None

    def write(positions: list[IndexValue]) -> None:
        write_all(e, group, Index.at(e.code, first.shape, positions))

    roots = [leaf.instruction for leaf in group]
    if split:
        moved = MovedRows(e, roots[0], first.pointer, first.shape, followed) if len(group) == 1 else None
        over_regions(e, first.shape, split, write, steps, moved)
    elif pieces is not None:
        pieces(e, first, steps)
    elif all(is_linear(leaf.instruction, e.leaves) for leaf in group):
        with elements(e.code, steps, first.shape.size) as place:
            write_all(e, group, Index.flat(e.code, first.shape, place))
    elif e.code.by_element:
        nest_by_element(e, roots, first.shape, write, steps)
    else:
        nest_for(e, roots, first.shape, write, steps, first.pointer if len(group) == 1 else None)


def _regions(e: Elemental, group: list[Leaf], numbered: Sequence[int]) -> list[Region]:
    """The parts of the results that have loops of their own; none if all elements are in one nest.

    numbered: by the steps. Where positions in a row are among several numbers of a step, there are no loops over rows.
    """
    if len(numbered) > 1 and group[0].shape.minor_to_major[0] in numbered:
        return []
    roots, shape = [leaf.instruction for leaf in group], group[0].shape
    if e.code.by_element or any(root in e.leaves for root in roots) or tile_of(e, roots, shape) is not None:
        return []
    return regions(e, roots, shape)


def _all_leaves(group: list[Leaf]) -> list[Leaf]:
    """The leaves of one instruction in order, each once."""
    leaves = {leaf.path: leaf for leaf in group}
    wanted = [path for path, _ in group[0].instruction.shape.leaves()]
    if len(group) != len(wanted) or set(leaves) != set(wanted):
        indexing.refuse(group[0].instruction)
    return [leaves[path] for path in wanted]


def _scatter(e: Elemental, instruction: Instruction, leaves: list[Leaf], steps: Steps | None) -> None:
    indexing.Scatter(e, instruction, [leaf.pointer for leaf in leaves], steps).emit()


def _sort(e: Elemental, instruction: Instruction, leaves: list[Leaf], steps: Steps | None) -> None:
    sort.emit_sort(e, instruction, [Target(leaf.pointer, leaf.shape, leaf.start) for leaf in leaves], steps)


def _run(e: Elemental, instruction: Instruction, leaves: list[Leaf], steps: Steps | None) -> None:
    emit = emit_pool if running(instruction) is None else reduce_window.emit_running
    emit(e, instruction, [(leaf.pointer, leaf.shape) for leaf in leaves], steps)


_WHOLE: dict[Op, Callable[[Elemental, Instruction, list[Leaf], Steps | None], None]] = {
    Op.REDUCE_WINDOW: _run,
    Op.SCATTER: _scatter,
    Op.SORT: _sort,
}
"""Loops of roots that write all their results together; `WHOLE` in leaf.py lists the conditions."""


def write_all(e: Elemental, group: list[Leaf], index: Index) -> None:
    """Compute all leaves at an index, then store them, because a store may overwrite what another leaf reads."""
    values = [leaf.value(e, index.within(leaf.shape)) for leaf in group]
    for leaf, value in zip(group, values, strict=True):
        leaf.write(e, index.within(leaf.shape), value)


def _emit_product(e: Elemental, group: list[Leaf], steps: Steps | None) -> bool:
    """Emit the group's dot, convolution or reductions in blocks, each followed by its elementwise ops. False if none
    fits.
    """
    products = products_of(e, group)
    if not products:
        return False

    def finish(index: Index) -> None:
        write_all(e, group, index)

    root = products[0]
    if root.opcode is Op.REDUCE:
        reduce_columns.emit_column_reduce(e, products, finish, steps)
        return True
    alone = group[0].instruction is root and len(group) == 1
    narrow = narrow_of(e, root) if root.opcode is Op.DOT else None
    if narrow is not None:
        emit_narrow_dot(e, root, narrow, group[0].pointer, None if alone else finish, steps)
        return True
    tiled = problem_of(e, root, e.code.vector_bits) if root.opcode is Op.DOT else None
    if tiled is not None:
        emit_tiled_dot(e, root, tiled, group[0].pointer, None if alone else finish, steps)
    elif _HAS_COLUMNS[root.opcode](e, root):
        _COLUMNS[root.opcode](e, root, group, finish, steps)
    else:
        return False
    return True


_COLUMNS: dict[Op, Callable[[Elemental, Instruction, list[Leaf], Callable[[Index], None], Steps | None], None]] = {
    Op.DOT: lambda e, root, group, finish, steps: dot.emit_column_dot(e, root, finish, steps),
    Op.CONVOLUTION: lambda e, root, group, finish, steps: convolution.emit_column_convolution(
        e, root, finish, steps, Lanewise.of(e, group, root, root.attributes["dim_labels"].output_feature)
    ),
}
"""Opcodes that can be computed for a block of columns, followed by elementwise ops."""

_DEAR = _COLUMNS.keys() | {Op.REDUCE}
"""Opcodes too expensive to recompute per element of a consumer."""


def products_of(e: Elemental, group: list[Leaf]) -> list[Instruction]:
    """The one dot or convolution, or the reductions over the same columns, on which the group depends through
    elementwise ops.

    All have the result's shape. Empty if the group depends on something else that is expensive.
    """
    products, others = _below_elementwise(e, group)
    if any(i.opcode in _DEAR for i in walk(others, e.leaves)):
        return []
    if not all(_has_shape(product, group[0].shape) for product in products):
        return []
    if any(product.opcode is Op.REDUCE for product in products):
        return products if _share_columns(e.code, products) else []
    return products if len(products) == 1 else []


def _below_elementwise(e: Elemental, group: list[Leaf]) -> tuple[list[Instruction], list[Instruction]]:
    """(expensive instructions, others) that the group reads through elementwise ops and that are not in memory."""
    found = list(walk([leaf.instruction for leaf in group], e.leaves, _PASSES))
    products = [i for i in found if i.opcode in _DEAR]
    return products, [i for i in found if i.opcode not in _DEAR and i.opcode not in _PASSES]


_PASSES = EMIT.keys() | {Op.GET_TUPLE_ELEMENT}


def _has_shape(product: Instruction, result: Shape) -> bool:
    shapes = [shape for _, shape in product.shape.leaves()]
    return all(s.dims == result.dims and s.minor_to_major == result.minor_to_major for s in shapes)


def _share_columns(code: Code, products: Sequence[Instruction]) -> bool:
    """Whether all are reductions that one loop over blocks of columns can compute."""
    alike = (column_run.is_column_reduce(code, p) and column_run.same_columns(products[0], p) for p in products)
    return all(p.opcode is Op.REDUCE for p in products) and all(alike)


_HAS_COLUMNS: dict[Op, Callable[[Elemental, Instruction], bool]] = {
    Op.DOT: lambda e, i: dot.column_dimension(i) is not None,
    Op.CONVOLUTION: convolution.has_columns,
}


_PIECES: dict[Op, Callable[[Elemental, Leaf, Steps | None], None]] = {
    Op.CONCATENATE: write_concatenated,
    Op.PAD: shape.write_padded,
}
"""Roots that are written piece by piece instead of selecting a source for each element."""
