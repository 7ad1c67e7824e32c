"""Row fusion: merge kernels that reduce the same rows or work on their elements (see hlo/analysis/rows.py)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence

from ...hlo.analysis.kernel_forms import ROW_BYTES
from ...hlo.analysis.overwrites import Readers
from ...hlo.analysis.rows import Role, assign_roles, common_signature, fits, is_few
from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opclasses import ELEMENTWISE, EXPENSIVE, control_computations
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ...hlo.shapes import Shape
from ..rewriting import Names, callees_first, rebuild
from .groups import merge_all
from .merge import Unit, View, make_unit
from .orders import mixes_orders
from .reading_order import order_of_reads

SPLIT = 1 << 16
"""Number of elements above which kernels of fewer than 4 rows stay apart: elementwise parts can run in parallel."""

MOST_TRANSPOSED = 1 << 12
"""Elements of a transpose in a row kernel, which reads them across the order of memory, at most."""

SHORT = 8
"""Elements of a row, below which expensive ops on the reductions' results stay kernels of their own: those compute the
results of several rows at once, while a row kernel computes one after the other.
"""

SHORT_OF_FUNCTIONS = 32
"""The same for functions: the logarithm of a log_softmax of 10 columns took three times XLA's time for all of it."""

FEW = 8
"""Elements of a row, up to which no expensive op is in a row kernel, which takes so few one by one."""

MANY, ABREAST = 64, (4, 31)
"""Minimum rows, and elements of a row, of kernels with functions of floats that compute many rows at once."""

_ABREAST = {DType.BF16, DType.F16, DType.F32, DType.PRED}

_BARE = (ELEMENTWISE | {Op.BROADCAST, Op.REDUCE, Op.IOTA, Op.SLICE}) - {Op.COPY, Op.STOCHASTIC_CONVERT}
_FUNCTIONS = EXPENSIVE - {Op.DIVIDE, Op.REMAINDER, Op.SQRT, Op.RSQRT}
_WITHIN = _BARE | {
    *(Op.BITCAST, Op.CONCATENATE, Op.CONSTANT, Op.COPY, Op.DYNAMIC_SLICE, Op.GET_TUPLE_ELEMENT, Op.PAD, Op.PARAMETER),
    *(Op.RESHAPE, Op.TRANSPOSE),
}

_HERE = (_BARE - {Op.IOTA, Op.SLICE}) | {
    *(Op.BITCAST, Op.CONSTANT, Op.COPY, Op.GET_TUPLE_ELEMENT, Op.PARAMETER, Op.RESHAPE)
}
"""What reads its operands at the current row and column only."""


def fuse_rows(module: Module) -> Module:
    """Merge kernels on the same rows in every computation that the host program runs."""
    names = Names.of(module)
    reads = order_of_reads(module)
    fused = rebuild(module, lambda c: _fuse(c, names, reads), control_computations(module))
    return Module(fused.name, callees_first(fused.entry), fused.entry, fused.attributes)


def _fuse(computation: Computation, names: Names, reads: Callable[[Computation], Readers]) -> Computation:
    if not any(_may_reduce(i) for i in computation.instructions):
        return computation
    return merge_all(computation, names, "row_fusion", row_unit, lambda a, b: None, reads(computation))


def _may_reduce(i: Instruction) -> bool:
    return i.opcode is Op.REDUCE or (i.opcode is Op.FUSION and i.attributes.get("kind") == "kInput")


def row_unit(i: Instruction, pinned: Collection[str]) -> Unit | None:
    """The unit of an instruction that may become part of a row kernel; None if it may not."""
    unit = make_unit(i, pinned, _BARE, _WITHIN)
    if unit is None or any(m.opcode is Op.TRANSPOSE and m.shape.size > MOST_TRANSPOSED for m in unit.inside):
        return None
    if any(map(mixes_orders, unit.inside)):
        return None
    reduces = [m for m in unit.inside if m.opcode is Op.REDUCE]
    if reduces:
        signature = common_signature(reduces)
        if signature is None:
            return None
        unit.form = RowForm(*signature)
        unit.bends = all(map(is_few, reduces))
    return unit


@dataclass(frozen=True, slots=True)
class RowForm:
    """The form of kernels on `count` rows of `length` elements."""

    count: int
    length: int

    def view(self, unit: Unit) -> View | None:
        rows = assign_roles([unit.root], frozenset(unit.leaves), (self.count, self.length))
        if rows is None:
            return None
        roles = rows.roles
        return View(roles[unit.root], tuple(None if p in rows.elsewhere else roles.get(p) for p in unit.leaves))

    def keeps(self, shape: Shape, role: Hashable) -> bool:
        return isinstance(role, Role) and fits(shape, role, (self.count, self.length))

    def shared(self, operand: Instruction, role: Hashable | None) -> bool:
        return role in (Role.FULL, Role.ROW) or operand.shape.size >= self.count * self.length

    def accepts(self, units: Sequence[Unit], inner: Sequence[Unit], inputs: int) -> bool:
        if self.count < 4 and self.count * self.length > SPLIT:
            return False
        if not self._are_abreast(units) and not self._are_worth_it(units):
            return False
        return not any(
            u.expensive and self.length * u.root.shape.dtype.bytes > ROW_BYTES for u in inner if self._is_full(u)
        )

    def _are_worth_it(self, units: Sequence[Unit]) -> bool:
        """Whether expensive ops are as fast in a kernel that computes one row after the other."""
        if self.length <= FEW and any(u.expensive for u in units):
            return False
        on_results = [u for u in units if u.expensive and not self._is_full(u)]
        if on_results and self.length < SHORT:
            return False
        functions = any(m.opcode in _FUNCTIONS for u in on_results for m in u.inside)
        return not functions or self.length > SHORT_OF_FUNCTIONS

    def _are_abreast(self, units: Sequence[Unit]) -> bool:
        """Whether a kernel computes many rows at once: then it loses nothing by what is expensive."""
        if self.count < MANY or not ABREAST[0] <= self.length <= ABREAST[1]:
            return False
        members = [m for u in units for m in u.inside]
        arrays = [i for m in members for i in (m, *m.operands) if i.shape.is_array and self.keeps(i.shape, Role.FULL)]
        if not any(i.opcode in _FUNCTIONS for i in arrays):
            return False
        return all(m.opcode in _HERE for m in members) and all(i.shape.dtype in _ABREAST for i in arrays)

    def _is_full(self, unit: Unit) -> bool:
        return unit.root.shape.is_array and self.keeps(unit.root.shape, Role.FULL)
