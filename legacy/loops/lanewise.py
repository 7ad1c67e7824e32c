"""Plain operations behind a convolution on vectors of neighbours. LLVM would make the same vectors of a loop over
elements, but that is a large part of the time to compile such a kernel.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import Code, IndexValue
from ..core.registers import splat
from ..core.view import View
from .elemental import Elemental
from .form import Results
from .leaf import Leaf
from .memory import Pointer, address

LANEWISE: dict[Op, Callable[[Code, ir.Value, ir.Value], ir.Value]] = {
    Op.ADD: lambda code, x, y: code.b.fadd(x, y),
    Op.MAXIMUM: lambda code, x, y: _extremum(code, "maximum", x, y),
    Op.MINIMUM: lambda code, x, y: _extremum(code, "minimum", x, y),
    Op.MULTIPLY: lambda code, x, y: code.b.fmul(x, y),
    Op.SUBTRACT: lambda code, x, y: code.b.fsub(x, y),
}
"""Operations on vectors of f32 or f64."""

LONGEST = 12
"""Nodes behind the product, which are emitted for each vector."""


def _extremum(code: Code, name: str, x: ir.Value, y: ir.Value) -> ir.Value:
    kind = f"v{x.type.count}f{64 if isinstance(x.type.element, ir.DoubleType) else 32}"
    return code.intrinsic(f"llvm.{name}.{kind}", x.type, [x, y])


@dataclass(frozen=True, slots=True)
class Lanewise:
    """What a kernel stores where its product has some neighbours. root: the product; column: the dimension of the
    neighbours.
    """

    leaf: Leaf
    root: Instruction
    column: int

    @staticmethod
    def of(view: View, results: Results, column: int) -> Lanewise | None:
        """None if results are more than a few plain operations on arrays of the product's shape, or on its rows, or if
        elements along the column are no neighbours in memory.
        """
        (leaf, *others), (root,) = results.leaves, results.products
        shape = root.shape
        if others or leaf.path or leaf.shape != shape or shape.dtype not in (DType.F32, DType.F64):
            return None
        if shape.strides[column] != 1:
            return None
        found, nodes, waiting = Lanewise(leaf, root, column), 0, [leaf.instruction]
        while waiting:
            node = waiting.pop()
            if node is root or node in view.leaves:
                fits = node.shape == shape
            elif node.opcode in LANEWISE:
                waiting, fits = [*waiting, *node.operands], node.shape == shape
            else:
                fits = node.shape == shape and found._is_spread(view, node)
            nodes += node is not root
            if not fits or nodes > LONGEST:
                return None
        return found

    def _is_spread(self, view: View, node: Instruction) -> bool:
        """Whether it is a number, or a row of the product's columns in memory, at all places."""
        if node.opcode is not Op.BROADCAST:
            return False
        (source,) = node.operands
        return source.shape.rank == 0 or (source in view.leaves and tuple(node.dimensions) == (self.column,))

    def store(self, e: Elemental, sums: ir.Value, offset: IndexValue, column: IndexValue) -> None:
        """Store the results of some sums. offset: of the first one in the array; column: its position along that
        dimension.
        """
        code, shape = e.code, self.root.shape
        place = address(code, self.leaf.pointer(e), shape.dtype, offset)
        code.b.store(self._value(e, self.leaf.instruction, sums, offset, column), place, align=shape.dtype.bytes)

    def _value(
        self, e: Elemental, node: Instruction, sums: ir.Value, offset: IndexValue, column: IndexValue
    ) -> ir.Value:
        code = e.code
        if node is self.root:
            return sums
        if node in e.leaves:
            return self._load(e, e.leaves[node], sums, offset)
        if node.opcode is not Op.BROADCAST:
            first, second = (self._value(e, operand, sums, offset, column) for operand in node.operands)
            return LANEWISE[node.opcode](code, first, second)
        (source,) = node.operands
        if source.shape.rank:
            return self._load(e, e.leaves[source], sums, column)
        number = e.number(source)
        return splat(code.b, number, sums.type.count)

    def _load(self, e: Elemental, pointer: Pointer, like: ir.Value, offset: IndexValue) -> ir.Value:
        code, dtype = e.code, self.root.shape.dtype
        return code.b.load(address(code, pointer, dtype, offset), typ=like.type, align=dtype.bytes)
