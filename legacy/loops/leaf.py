"""The arrays that a kernel writes, each with the instruction that computes its elements."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ...hlo.analysis.sorted_parts import part_of_sort
from ...hlo.analysis.windows import running, single_op, taps
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ...hlo.shapes import Shape, ShapeIndex
from ...planning.plan import KernelRequest
from ..core.graph import Graph
from ..core.registers import Register
from .elemental import Elemental, Index
from .memory import Pointer, store


@dataclass(frozen=True, eq=False, slots=True)
class Leaf:
    """One array that a kernel writes: an element of `instruction` (of its value at `path`, if that is a tuple).

    number: among the kernel's results. argument: the number of the kernel argument that receives it; alignment: what is
    known of that, in bytes. start: for a part of a sorted row, the first element of the row that is wanted.
    """

    instruction: Instruction
    path: ShapeIndex
    shape: Shape
    number: int
    argument: int
    alignment: int
    in_place: bool
    start: int = 0

    def pointer(self, e: Elemental) -> Pointer:
        return Pointer(e.code.function.args[self.argument])

    def value(self, e: Elemental, index: Index) -> Register:
        value = e.value(self.instruction, index)
        for i in self.path:
            value = value[i]
        return value

    def write(self, e: Elemental, index: Index, value: Register) -> None:
        store(e.code, self.pointer(e), self.shape.dtype, index.offset(self.shape), value)


def write_all(e: Elemental, leaves: Sequence[Leaf], index: Index) -> None:
    """Compute all leaves at an index, then store them, because a store may overwrite what another leaf reads."""
    values = [leaf.value(e, index.within(leaf.shape)) for leaf in leaves]
    for leaf, value in zip(leaves, values, strict=True):
        leaf.write(e, index.within(leaf.shape), value)


def result_leaves(request: KernelRequest, graph: Graph, metadata: Collection[str]) -> list[Leaf]:
    """One leaf per result of the kernel. If a sort, scatter or windowed reduction has several results, or if the
    results are slices of a sort, that op is the instruction of all its leaves. metadata: as of EmitOptions.
    """
    leaves: list[Leaf] = []
    for (path, shape_), argument in zip(request.instruction.shape.leaves(), request.results, strict=True):
        instruction, rest = graph.root, path
        while rest and instruction.opcode is Op.TUPLE:
            instruction, rest = instruction.operands[rest[0]], rest[1:]
        if instruction.opcode is Op.GET_TUPLE_ELEMENT and is_whole(instruction.operands[0]):
            instruction, rest = instruction.operands[0], (instruction.attributes["index"],)
        part, start = part_of_sort(instruction), 0
        if part is not None and graph.leaves.keys().isdisjoint((part.sort, *instruction.operands)):
            instruction, start = part.sort, part.start
            rest = (part.number,) if instruction.shape.is_tuple else ()
        alignment = request.arguments[argument].alignment if "arguments" in metadata else 1
        place = len(leaves), argument, alignment, argument in request.operands
        leaves.append(Leaf(instruction, rest, shape_, *place, start))
    return leaves


def is_pool(instruction: Instruction) -> bool:
    """Whether many results can be combined side by side; the order of a window's elements must not matter."""
    if single_op(instruction) is None or not instruction.operands[0].shape.size:
        return False
    fastest = next((instruction.shape.dims[d] for d in instruction.shape.minor_to_major), 1)
    return fastest >= MINIMUM_POOLED and taps(instruction) > 1


MINIMUM_POOLED = 8
"""Minimum number of results along memory for which a block of them pays off."""


WHOLE: dict[Op, Callable[[Instruction], bool]] = {
    Op.REDUCE_WINDOW: lambda root: running(root) is not None or is_pool(root),
    Op.SCATTER: lambda root: True,
    Op.SORT: lambda root: True,
}
"""Opcodes of roots that may write all their results with their own loops (kernel.py), and the condition for it."""


def is_whole(root: Instruction) -> bool:
    return root.opcode in WHOLE and WHOLE[root.opcode](root)
