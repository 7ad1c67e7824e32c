"""Which operands a kernel may overwrite with its results, as plan.KernelRequest guarantees."""

from __future__ import annotations

from collections.abc import Iterator

from ..hlo.analysis.pointwise import pointwise_leaves
from ..hlo.analysis.rows import Role, rows_of_body
from ..hlo.analysis.updates import declared_pairs, pointwise_members, reads_in_place, updated_count, updated_operands
from ..hlo.ir import Computation, Instruction
from ..hlo.layouts import same_bytes
from ..hlo.library.calls import LIBRARY, is_sealed
from ..hlo.library.foreign import taken_over
from ..hlo.opclasses import ELEMENTWISE
from ..hlo.opcodes import Op
from ..hlo.shapes import Shape

BY_ELEMENT = ELEMENTWISE | {
    *(Op.BITCAST, Op.BROADCAST, Op.CONCATENATE, Op.CONSTANT, Op.DYNAMIC_SLICE, Op.GATHER, Op.IOTA, Op.PAD),
    *(Op.PARAMETER, Op.RESHAPE, Op.REVERSE, Op.SLICE, Op.TRANSPOSE, Op.TUPLE),
}
"""Ops that a fusion computes element by element of its results, in one pass."""


def reusable_operands(instruction: Instruction) -> tuple[int, ...]:
    """Operands that die here whose buffer the single array result may take over, element by element."""
    if not instruction.shape.is_array or instruction.shape.is_dynamic:
        return ()
    updated = updated_operands(instruction)
    if updated:
        return tuple(n for n, _ in updated)
    if instruction.opcode is Op.FUSION:
        body = instruction.called()[0]
        rows = [p.parameter_number for p, _ in _row_pairs(body) if _same_places(p, body.root)]
        candidates = _pointwise_parameters(body) + rows
    elif instruction.opcode in ELEMENTWISE:
        candidates = [n for n, o in enumerate(instruction.operands) if reads_in_place(instruction, o)]
    else:
        return ()
    return tuple(n for n in candidates if _same_width(instruction.operands[n], instruction))


def sort_operands(instruction: Instruction) -> list[tuple[int, int]]:
    """(operand, operand of the sort) pairs of a sort, or of a fusion that ends in one.

    The operand of the fusion is the operand of the sort and has no other use. The kernel reads each row of all operands
    before it writes that row.
    """
    if instruction.opcode is Op.SORT:
        return [(n, n) for n in range(len(instruction.operands))]
    if instruction.opcode is not Op.FUSION or instruction.called()[0].root.opcode is not Op.SORT:
        return []
    body = instruction.called()[0]
    parameters = [(o, k) for k, o in enumerate(body.root.operands) if o.opcode is Op.PARAMETER]
    return [(p.parameter_number, k) for p, k in parameters if body.users[p] == (body.root,)]


def reuses(instruction: Instruction) -> tuple[tuple[int, int], ...]:
    """(operand, result leaf): the leaf may take over the operand's buffer if the operand dies here.

    Most kernels do so element by element, a sort row by row.
    """
    if is_sealed(instruction):
        return declared_pairs(instruction)
    if instruction.opcode in LIBRARY:
        return _taken_over(instruction)
    sorted_from = sort_operands(instruction)
    if sorted_from:
        leaves = [leaf for _, leaf in instruction.shape.leaves()]
        return tuple((n, k) for n, k in sorted_from if _same_shapes(instruction.operands[n].shape, leaves[k]))
    if instruction.shape.is_array:
        return tuple((n, 0) for n in reusable_operands(instruction))
    return updated_operands(instruction) or _reused_by_results(instruction)


def _reused_by_results(instruction: Instruction) -> tuple[tuple[int, int], ...]:
    """(operand, result leaf) pairs of a fusion with several array results."""
    if instruction.opcode is not Op.FUSION or not all(s.is_array for s in instruction.shape.elements):
        return ()
    body = instruction.called()[0]
    root = body.root
    if root.opcode is not Op.TUPLE or root.shape.is_dynamic:
        return ()
    pairs = [*_pointwise_pairs(body)]
    pairs += [(p, end) for p, end in _row_pairs(body) or _loop_pairs(body) if _same_places(p, end)]
    return tuple(dict.fromkeys((p.parameter_number, root.operands.index(end)) for p, end in pairs))


def _pointwise_pairs(body: Computation) -> Iterator[tuple[Instruction, Instruction]]:
    """(parameter, result): the parameter is read only at the position of the result, for its group of results."""
    for group in _groups(body):
        pointwise = pointwise_members(body, *group)
        free = [p for p in body.parameters if p in pointwise and p not in group]
        for end in group:
            if end in pointwise:
                yield from ((p, end) for p in free if _same_width(p, end))


def _groups(body: Computation) -> list[list[Instruction]]:
    """Groups of results that are written together: all of a group are computed at an element before one is stored.

    If the body computes everything element by element, all results of one shape and layout form a group.
    """
    ends = [e for e in body.root.operands if body.root.operands.count(e) == 1]
    if not body.opcodes <= BY_ELEMENT:
        return [[e] for e in ends]
    groups: dict[tuple[tuple[int, ...], tuple[int, ...]], list[Instruction]] = {}
    for e in ends:
        groups.setdefault((e.shape.dims, e.shape.strides), []).append(e)
    return list(groups.values())


def _row_pairs(body: Computation) -> list[tuple[Instruction, Instruction]]:
    """(parameter, result) pairs of a row kernel.

    The parameter is read in its own row and column only, and the result is written there in the last walk over the row.
    """
    root = body.root
    if root.opcode is Op.REDUCE or not any(i.opcode is Op.REDUCE for i in body.instructions):
        return []
    rows = rows_of_body(body)
    if rows is None:
        return []
    full = [i for i, role in rows.roles.items() if role is Role.FULL]
    ends = [root] if root.opcode is not Op.TUPLE else list(dict.fromkeys(root.operands))
    parameters = [p for p in full if p.opcode is Op.PARAMETER and p not in rows.elsewhere]
    return [(p, end) for end in ends if end in full and end.opcode is not Op.PARAMETER for p in parameters]


def _loop_pairs(body: Computation) -> list[tuple[Instruction, Instruction]]:
    """(parameter, result) pairs of a kernel that makes all results in one loop.

    The parameter is read only at the index of the results, where all of them are computed before one is written. Two
    dots or convolutions have no common loop that is fast: their kernel had better not be bound to one.
    """
    if sum(i.opcode in (Op.DOT, Op.CONVOLUTION) for i in body.instructions) > 1:
        return []
    ends = list(dict.fromkeys(body.root.operands))
    first = ends[0].shape
    alike = all(e.shape.dims == first.dims and e.shape.strides == first.strides for e in ends)
    if not alike or not all(e.opcode in ELEMENTWISE or e.opcode is Op.REDUCE for e in ends):
        return []
    here, away = pointwise_leaves(ends, frozenset(body.parameters))
    return [(p, end) for end in ends for p in body.parameters if p in here and p not in away]


def _taken_over(instruction: Instruction) -> tuple[tuple[int, int], ...]:
    """(operand, result leaf) pairs of a library kernel, which reads each operand before it overwrites it."""
    leaves = [shape for _, shape in instruction.shape.leaves()]
    return tuple(
        (n, leaf)
        for n, leaf in taken_over(instruction)
        if instruction.operands.count(instruction.operands[n]) == 1
        and same_bytes(instruction.operands[n].shape, leaves[leaf])
    )


def _same_places(operand: Instruction, result: Instruction) -> bool:
    """Whether element i of both is at the same byte offset."""
    return _same_shapes(operand.shape, result.shape)


def _same_shapes(a: Shape, b: Shape) -> bool:
    return _same_widths(a, b) and a.dims == b.dims and (a.layout == b.layout or a.strides == b.strides)


def _same_width(operand: Instruction, result: Instruction) -> bool:
    """Whether both have the same number of elements, of equally many bytes."""
    return _same_widths(operand.shape, result.shape)


def _same_widths(a: Shape, b: Shape) -> bool:
    return a.is_array and not a.is_dynamic and a.size == b.size > 0 and a.dtype.bytes == b.dtype.bytes


def _pointwise_parameters(body: Computation) -> list[int]:
    """Numbers of the parameters that the root depends on in place only.

    An update or scatter copies its operand to the result, element by element, before it reads anything else.
    """
    end = body.root
    if updated_count(end):
        end = body.root.operands[0]
        if body.users[end] != (body.root,) or body.root.operands.count(end) > 1 or not _same_places(end, body.root):
            return []
    pointwise = pointwise_members(body, end)
    return [p.parameter_number for p in body.parameters if p in pointwise and p is not body.root]
