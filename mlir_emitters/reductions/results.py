"""Which results of a kernel are emitted together, and which products they follow through elementwise ops alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...hlo.opcodes import Op
from ..core.access import AT_PLACE
from ..core.graph import Buffer, Node, reachable, visited, writers
from ..loops.elemental import Elemental, Indices
from ..loops.reduced import reduced_dimensions
from ..loops.view import Subject


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


def products_of(group: Sequence[Buffer]) -> list[Node]:
    """The dot or convolution on which the results, of its shape and layout, depend only through elementwise ops; or the
    reductions, if they keep the innermost dimension and are over the same columns.
    """
    found = products_or_why(group)
    return [] if isinstance(found, str) else found


def products_or_why(group: Sequence[Buffer]) -> list[Node] | str:
    """As `products_of`; a reason if there are such ops, but not computed in blocks."""
    first, nodes = group[0], behind_elementwise(group)
    products = [node for node in nodes if node.opcode in PRODUCTS]
    others = [x for node in nodes if node.opcode not in PRODUCTS for x in node.outputs]
    moved = next((node.opcode.value for node in reachable(others) if node.opcode in PRODUCTS), None)
    if moved is not None:
        return f"the elements of a {moved} are read at other places than they are computed"
    if any((x.dims, x.strides) != (first.dims, first.strides) for node in products for x in node.outputs):
        return "results have another shape or layout than what is computed in blocks"
    if all(node.opcode is Op.REDUCE for node in products):
        if not all(map(has_columns, products)):
            return "what is reduced lies along memory, and not across it"
        same = all(same_columns(products[0], node) for node in products)
        return products if same else "reductions are over different columns"
    return products if len(products) == 1 else "several products are computed together"


PRODUCTS = frozenset({Op.CONVOLUTION, Op.DOT, Op.REDUCE})


def behind_elementwise(group: Sequence[Buffer]) -> list[Node]:
    """The nodes that the elementwise ops under the results read."""
    found = visited(writers(group), lambda node: writers(node.inputs if node.opcode in AT_PLACE else ()))
    return [node for node in found if node.opcode not in AT_PLACE]


def has_columns(node: Node) -> bool:
    """Whether neighbours in the operand's memory belong to different results of several elements each."""
    order, reduced = node.inputs[0].order, reduced_dimensions(node)
    return any(d in reduced for d in order) and order[-1] not in reduced


def same_columns(a: Node, b: Node) -> bool:
    """Whether two reductions read buffers of one shape in one order."""
    first, second = a.inputs[0], b.inputs[0]
    same = first.dims == second.dims and first.strides == second.strides
    return same and set(reduced_dimensions(a)) == set(reduced_dimensions(b))


def dimensions_inside(node: Node, numbered: Sequence[int]) -> list[int]:
    """The dimensions of a reduction's operand that the steps number."""
    kept = [d for d in range(len(node.inputs[0].dims)) if d not in reduced_dimensions(node)]
    return [kept[d] for d in numbered]


def write_together(e: Elemental, group: Sequence[Buffer], index: Indices) -> None:
    """Compute all elements at an index, then store them, because a store may overwrite what another reads."""
    values = [e.value(result, index, raw=True) for result in group]
    for result, value in zip(group, values, strict=True):
        e.store(result, index, value)


def epilogue(e: Elemental, subject: Subject) -> Callable[[Indices], None] | None:
    """What computes and stores the results at an index, where the product's value is bound; None if it is the result
    itself.
    """
    return (lambda index: write_together(e, subject.results, index)) if subject.products else None
