"""Multi-output fusion: merge kernels with the same loops into one with several results, where that saves reads.

This covers elementwise kernels of one shape, and reductions over the same columns with the elementwise ops that follow
them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass

from ...hlo.analysis.kernel_forms import COLUMN_REDUCTIONS, SHORTEST_COLUMNS
from ...hlo.analysis.overwrites import Readers
from ...hlo.analysis.pointwise import pointwise_leaves
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opclasses import ELEMENTWISE, control_computations
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from ..rewriting import Names, callees_first, rebuild
from .groups import merge_all
from .merge import Unit, View, make_unit
from .reading_order import order_of_reads
from .small import SMALL_BYTES

MOST_INPUTS = 24
"""Maximum number of arrays that one loop with several results reads."""

_ROOTS = ELEMENTWISE - {Op.COPY, Op.STOCHASTIC_CONVERT}
_WITHIN = ELEMENTWISE | {
    *(Op.BITCAST, Op.BROADCAST, Op.CONCATENATE, Op.CONSTANT, Op.DYNAMIC_SLICE, Op.GATHER, Op.IOTA, Op.PAD),
    *(Op.PARAMETER, Op.REDUCE, Op.RESHAPE, Op.REVERSE, Op.SLICE, Op.TRANSPOSE),
} - {Op.STOCHASTIC_CONVERT}

HERE = "here"
"""The role of a value that is computed and read at the index of the result."""


def fuse_outputs(module: Module) -> Module:
    """Merge kernels that have the same loops in every computation that the host program runs."""
    names = Names.of(module)
    reads = order_of_reads(module)
    fused = rebuild(module, lambda c: _fuse(c, names, reads(c)), control_computations(module))
    return Module(fused.name, callees_first(fused.entry), fused.entry, fused.attributes)


def _fuse(computation: Computation, names: Names, readers: Readers) -> Computation:
    state = _state(computation)

    def unit(i: Instruction, pinned: Collection[str]) -> Unit | None:
        made = loop_unit(i, pinned)
        if made is not None:
            made.replaces = state.get(i)
        return made

    return merge_all(computation, names, "multi_output_fusion", unit, _common, readers)


def _state(computation: Computation) -> dict[Instruction, Instruction]:
    """{next value of a loop state element: the element's present value}; empty if this is no loop body."""
    root, parameters = computation.root, computation.parameters
    if root.opcode is not Op.TUPLE or len(parameters) != 1 or parameters[0].shape != root.shape:
        return {}
    elements = {u.attributes["index"]: u for u in computation.users[parameters[0]] if "index" in u.attributes}
    return {new: elements[k] for k, new in enumerate(root.operands) if k in elements}


def _order(shape: Shape) -> tuple[int, ...]:
    return tuple(d for d in shape.minor_to_major if shape.dims[d] != 1)


def _common(a: Unit, b: Unit) -> LoopForm | None:
    first, second = a.root.shape, b.root.shape
    if first.dims != second.dims or min(first.bytes, second.bytes) <= SMALL_BYTES or _order(first) != _order(second):
        return None
    return LoopForm(first.dims, _order(first))


def loop_unit(i: Instruction, pinned: Collection[str]) -> Unit | None:
    """The unit of an instruction whose root is elementwise (without reductions) or a column reduction; else None."""
    unit = make_unit(i, pinned, _ROOTS | {Op.REDUCE}, _WITHIN)
    if unit is None or not i.shape.is_array:
        return None
    reduces = [m for m in unit.inside if m.opcode is Op.REDUCE]
    if not reduces:
        return unit if unit.root.opcode in _ROOTS else None
    unit.form = column_form(unit.root) if reduces == [unit.root] else None
    return unit if unit.form else None


@dataclass(frozen=True, slots=True)
class LoopForm:
    """Elementwise kernels whose results have these dimensions and this memory order.

    order: dimensions larger than 1, fastest first. Small kernels are left to fuse-small.
    """

    dims: tuple[int, ...]
    order: tuple[int, ...]

    def view(self, unit: Unit) -> View | None:
        shape = unit.root.shape
        if shape.dims != self.dims or _order(shape) != self.order or not self._large(shape):
            return None
        here, away = pointwise_leaves([unit.root], frozenset(unit.leaves))
        return View(HERE, tuple(HERE if p in here and p not in away else None for p in unit.leaves))

    def _large(self, shape: Shape) -> bool:
        return shape.bytes > SMALL_BYTES

    def keeps(self, shape: Shape, role: Hashable) -> bool:
        return shape.dims == self.dims and _order(shape) == self.order

    def shared(self, operand: Instruction, role: Hashable | None) -> bool:
        return operand.shape.size >= math.prod(self.dims)

    def accepts(self, units: Sequence[Unit], inner: Sequence[Unit], inputs: int) -> bool:
        return inputs <= MOST_INPUTS and not self._parts(units)

    def _parts(self, units: Sequence[Unit]) -> bool:
        """Whether merging keeps a unit from updating loop state in place, because another reads it at other indices."""
        reads = [
            (u, o, role) for u in units for o, role in zip(u.instruction.operands, self._view(u).reads, strict=True)
        ]
        away = {o for _, o, role in reads if role is None}
        return any(role is not None and o is u.replaces and o in away for u, o, role in reads)

    def _view(self, unit: Unit) -> View:
        view = unit.view(self)
        assert view is not None
        return view


@dataclass(frozen=True, slots=True)
class ColumnForm(LoopForm):
    """Reductions of arrays of one shape over the same dimensions, and the elementwise ops that follow.

    source: dimensions of the operands. walk: their memory order, fastest first. reduced: reduced dimensions. most:
    maximum number of reductions that share a kernel.
    """

    source: tuple[int, ...] = ()
    walk: tuple[int, ...] = ()
    reduced: tuple[int, ...] = ()
    most: int = 1

    def _large(self, shape: Shape) -> bool:
        return True

    def shared(self, operand: Instruction, role: Hashable | None) -> bool:
        return operand.shape.size >= math.prod(self.source)

    def accepts(self, units: Sequence[Unit], inner: Sequence[Unit], inputs: int) -> bool:
        few = sum(u.form is not None for u in units) <= self.most
        return few and inputs <= MOST_INPUTS and not self._parts(units)


def column_form(reduce: Instruction) -> ColumnForm | None:
    """The form of a reduction; None for a variadic or empty one.

    Several reductions may share their loops only if they keep the dimension that is fastest in memory.
    """
    if not reduce.shape.is_array:
        return None
    source, result = reduce.operands[0].shape, reduce.shape
    walk, reduced = _order(source), tuple(d for d in reduce.dimensions if source.dims[d] != 1)
    kept = [d for d in range(source.rank) if d not in reduce.dimensions]
    if not reduced or not source.size:
        return None
    columns = walk[0] not in reduced and source.dims[walk[0]] >= SHORTEST_COLUMNS
    same = [kept[d] for d in _order(result)] == [d for d in walk if d not in reduced]
    most = COLUMN_REDUCTIONS if columns and same else 1
    return ColumnForm(result.dims, _order(result), source.dims, walk, reduced, most)
