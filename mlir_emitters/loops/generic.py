"""Elementwise kernels as linalg.generic: the rules say what an element is, and what they read becomes an operand.

The outer shape (host loops here) hands over an index with an Axis for each dimension that the operation runs along, and
values for those of loops around it.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import HINTS, Index, Unroll, Value
from ..core.elements import Scalar, flatten, parts, raw_type, unflatten
from ..core.graph import Buffer, Node, reachable
from ..core.index_arithmetic import Axis
from ..core.memory import Place
from ..numerics.elementwise import EMIT
from .elemental import Elemental, Indices, Linear, Reads
from .linear import is_linear
from .moved_rows import emit_moved
from .turned import Turned

MOVES = frozenset(
    {Op.BITCAST_CONVERT, Op.BROADCAST, Op.CONSTANT, Op.COPY, Op.IOTA, Op.REVERSE, Op.SELECT, Op.SLICE, Op.TRANSPOSE}
)
"""Ops, besides elementwise ones, that read at most one element of each operand, at positions along the axes."""


def is_generic(group: Sequence[Buffer], reshapes: bool = False) -> bool:
    """Whether results of one shape and layout are one linalg.generic: elementwise ops and movement along axes.
    reshapes: whether those that keep all dimensions but such of size 1 are movement.
    """
    return is_linear(group) or all(
        node.opcode in EMIT or node.opcode in MOVES or (reshapes and _keeps_axes(node)) for node in reachable(group)
    )


def _keeps_axes(node: Node) -> bool:
    if node.opcode is not Op.RESHAPE:
        return False
    source, target = ([n for n in x.dims if n != 1] for x in (node.inputs[0], node.output))
    return source == target


def is_value(i: Index) -> bool:
    return not isinstance(i, (int, Axis))


def is_backwards(i: Index) -> bool:
    """Whether elements are read in falling order: MLIR says of the offsets in a memref that no step is negative (nuw),
    so LLVM may do anything with a stride that is.
    """
    return isinstance(i, Axis) and i.step < 0


def axes_of(index: Indices) -> list[Axis]:
    return [i for i in index if isinstance(i, Axis)]


@dataclass(frozen=True, slots=True)
class Operand:
    """What a linalg.generic reads or writes: elements of a buffer at an index; of a complex one the part."""

    buffer: Buffer
    index: Indices
    part: int


def emit_generic(
    e: Elemental,
    group: Sequence[Buffer],
    index: Indices,
    unroll: Unroll = Unroll.ANY,
    turned: Turned | None = None,
) -> None:
    """Write the results at all positions along the axes of an index. unroll: ANY, or one of HINTS, of its loops.
    turned: copies of what is read across the order of memory.
    """
    b = e.b
    extents = [i.count for i in sorted(axes_of(index), key=lambda i: i.number)]
    held = b.operation("scf.execute_region", [], [], regions=1)  # builds the body before its operands are known
    block = ir.Block.create_at_start(held.regions[0], [])
    outside = b.enter(block)
    b.outside = ir.InsertionPoint(held), len(b.scopes) - 1
    body = _Body(e, block, frozenset(i for i in index if is_value(i)))
    values = [body.value(result, index, raw=True) for result in group]
    outputs = [Operand(result, index, part) for result in group for part in range(parts(result.dtype))]
    for out in outputs:
        block.add_argument(raw_type(b.types, out.buffer.dtype), b.location)
    b.operation("linalg.yield", [], [part for value in values for part in flatten(value)])
    b.leave(outside)
    b.outside = None
    inputs = list(body.inputs)
    if _is_move(e, body, values, outputs, inputs) and emit_moved(e, inputs[0].buffer, inputs[0].index, group[0], index):
        held.erase()
        return
    places = [_turned(operand, index, turned) or _place(e, operand, len(extents)) for operand in inputs]
    places += [_place(e, operand, len(extents)) for operand in outputs]
    attributes: dict[str, ir.Attribute] = {
        "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(map) for _, map in places]),
        "iterator_types": ir.ArrayAttr.get([b.types.parallel] * len(extents)),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(inputs), len(outputs)]),
    }
    hinted = b.hints and unroll in HINTS
    made = ir.Operation.create(
        "linalg.generic",
        operands=[memref for memref, _ in places],
        attributes=attributes,
        regions=1,
        loc=ir.Location.name(HINTS[unroll]) if hinted else b.location,
        ip=b.ip,
    )
    block.append_to(made.regions[0])
    held.erase()
    b.generics += 1
    b.hinted += hinted


def _is_move(
    e: Elemental, body: _Body, values: Sequence[Scalar], outputs: Sequence[Operand], inputs: Sequence[Operand]
) -> bool:
    """Whether the only result is what is read, on the host."""
    one = len(outputs) == len(inputs) == 1 and not any(isinstance(x.index, Linear) for x in (*inputs, *outputs))
    return one and not e.b.by_element and values[0] is body.inputs[inputs[0]]


class _Body(Elemental):
    """The rules inside a linalg.generic: reads of arguments along its axes become arguments of its block."""

    def __init__(self, e: Elemental, block: ir.Block, outer: frozenset[Value]):
        super().__init__(e.b, e.pointers, e.rules, e.scratch)
        self.block, self.outer = block, outer
        self.inputs: dict[Operand, Value] = {}

    def _load(self, request: tuple[Buffer, Indices, bool]) -> Reads:
        buffer, index, raw = request
        if not raw or any((is_value(i) and i not in self.outer) or is_backwards(i) for i in index):
            return (yield from super()._load(request))
        return self._argument(buffer, index)

    def _argument(self, buffer: Buffer, index: Indices) -> Scalar:
        found = []
        for part in range(parts(buffer.dtype)):
            operand = Operand(buffer, index, part)
            if operand not in self.inputs:
                type = raw_type(self.b.types, buffer.dtype)
                self.inputs[operand] = self.block.add_argument(type, self.b.location)
            found.append(self.inputs[operand])
        return unflatten(found, buffer.dtype)


def _turned(operand: Operand, index: Indices, turned: Turned | None) -> tuple[Value, ir.AffineMap] | None:
    """As `_place`, of an operand that was copied."""
    found = None if turned is None else turned.part(operand.buffer, operand.index, index)
    if found is None:
        return None
    memref, axes = found
    return memref, ir.AffineMap.get(len(axes_of(index)), 0, [ir.AffineExpr.get_dim(axis.number) for axis in axes])


def _place(e: Elemental, operand: Operand, rank: int) -> tuple[Value, ir.AffineMap]:
    """(The memref of an operand's elements, the map from positions along the axes to its own)."""
    b, buffer, index = e.b, operand.buffer, operand.index
    strides: Sequence[int] = (1,) if isinstance(index, Linear) else buffer.strides
    each = parts(buffer.dtype)
    offset = b.offset((i.start if isinstance(i, Axis) else i for i in index), strides)
    sizes: list[Index] = []
    steps: list[int] = []
    results: list[ir.AffineExpr] = []
    for i, stride in zip(index, strides, strict=True):
        if isinstance(i, Axis):
            sizes.append(i.count)
            steps.append(i.step * stride * each)
            results.append(ir.AffineExpr.get_dim(i.number))
    if each > 1:
        sizes.append(each)
        steps.append(1)
        results.append(ir.AffineExpr.get_constant(operand.part))
    place = b.pointer(e.pointers[buffer.argument], b.mul(offset, each), raw_type(b.types, buffer.dtype))
    assert isinstance(place, Place)
    return b.part(place, sizes, steps), ir.AffineMap.get(rank, 0, results)
