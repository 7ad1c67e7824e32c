"""Plain operations behind a product on vectors of neighbours: a loop over single results, of which LLVM makes vectors,
takes a third of a millisecond to compile.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mlir import ir

from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import Builder, Index, Value
from ..core.graph import Buffer, Node, origin
from .elemental import Elemental

OPERATIONS: Mapping[Op, Callable[[Builder, Value, Value], Value]] = {
    Op.ADD: lambda b, x, y: b.addf(x, y),
    Op.MAXIMUM: lambda b, x, y: b.op("arith.maximumf", x, y),
    Op.MINIMUM: lambda b, x, y: b.op("arith.minimumf", x, y),
    Op.MULTIPLY: lambda b, x, y: b.mulf(x, y),
    Op.SUBTRACT: lambda b, x, y: b.subf(x, y),
}

MAXIMUM_OPERATIONS = 8
"""Operations on a result at most. Each is there for every vector of a tile."""


@dataclass(frozen=True, slots=True)
class Lanewise:
    """The result of a kernel by that of its product. column: the dimension whose neighbours are the lanes."""

    product: Buffer
    result: Buffer
    column: int

    @staticmethod
    def of(group: Sequence[Buffer], node: Node, column: int) -> Lanewise | None:
        """None if something else than plain operations on arrays of the result's layout, or along it, is behind it, or
        if results along the column are apart in memory.
        """
        result, (product,) = group[0], node.outputs
        if len(group) > 1 or product.dtype not in (DType.F32, DType.F64) or product.strides[column] != 1:
            return None
        found = Lanewise(product, result, column)
        return found if found._fits() else None

    def _fits(self) -> bool:
        waiting, operations = [origin(self.result)], 0
        while waiting:
            buffer = waiting.pop()
            writer = buffer.writer
            if buffer.dtype is not self.product.dtype or not self._is_alike(buffer):
                return False
            if buffer is self.product or writer is None:
                continue
            operations += 1
            if writer.opcode is Op.BROADCAST:
                source = writer.inputs[0]
                along = tuple(writer.attributes.get("dimensions", ())) == (self.column,) and source.writer is None
                if source.dims and not (along and source.dims == (self.product.dims[self.column],)):
                    return False
            elif writer.opcode in OPERATIONS:
                waiting += writer.inputs
            else:
                return False
        return operations <= MAXIMUM_OPERATIONS

    def _is_alike(self, buffer: Buffer) -> bool:
        return (buffer.dims, buffer.strides) == (self.product.dims, self.product.strides)

    def value(self, e: Elemental, total: Value, offset: Index, column: Index) -> Value:
        """The results whose sums are `total`. offset: of the first one in its array; column: its position along that
        dimension.
        """
        return self._of(e, origin(self.result), total, offset, column)

    def _of(self, e: Elemental, buffer: Buffer, total: Value, offset: Index, column: Index) -> Value:
        b, writer = e.b, buffer.writer
        if buffer is self.product:
            return total
        if writer is None:
            return self._load(e, buffer, total.type, offset)
        if writer.opcode is not Op.BROADCAST:
            first, second = (self._of(e, x, total, offset, column) for x in writer.inputs)
            return OPERATIONS[writer.opcode](b, first, second)
        (source,) = writer.inputs
        if source.dims:
            return self._load(e, source, total.type, column)
        scalar = e.value(source, ())
        assert isinstance(scalar, ir.Value)
        return b.op("vector.broadcast", scalar, type=total.type)

    def _load(self, e: Elemental, buffer: Buffer, type: ir.Type, offset: Index) -> Value:
        b = e.b
        place = b.pointer(e.pointers[buffer.argument], offset, ir.VectorType(type).element_type)
        return b.load(place, type, buffer.dtype.bytes)
