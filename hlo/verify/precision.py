"""Ops whose floats have more than one element type. XLA's shape rules let them differ, so modules with them verify; but
XLA:CPU refuses such a module, and no stack here could say in which precision to compute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..ir import Instruction
from ..opclasses import ELEMENTWISE
from ..opcodes import Op

ONE_PRECISION = (ELEMENTWISE - {Op.BITCAST_CONVERT, Op.CONVERT, Op.STOCHASTIC_CONVERT}) | {
    *(Op.BROADCAST, Op.CONCATENATE, Op.COPY, Op.DYNAMIC_SLICE, Op.DYNAMIC_UPDATE_SLICE, Op.GATHER, Op.PAD),
    *(Op.RESHAPE, Op.REVERSE, Op.SLICE, Op.TRANSPOSE),
}
"""Opcodes that give a kernel no place to convert: float operands and results must have one element type."""


REGIONS: dict[Op, Callable[[int], Iterable[tuple[tuple[int, ...], tuple[int, ...]]]]] = {
    Op.MAP: lambda count: (((n,), (n,)) for n in range(count)),
    Op.REDUCE: lambda count: (((n, n + count // 2),) * 2 for n in range(count // 2)),
    Op.REDUCE_WINDOW: lambda count: (((n, n + count // 2),) * 2 for n in range(count // 2)),
    Op.SCATTER: lambda count: (((n, n + count // 2 + 1), (n, n + count // 2)) for n in range(count // 2)),
    Op.SELECT_AND_SCATTER: lambda count: [((0, 1, 2), (0, 1))],
    Op.SORT: lambda count: (((n,), (2 * n, 2 * n + 1)) for n in range(count)),
}
"""Opcode → from its number of operands, groups of (operands, parameters of its regions) that hold the same values."""


def mixed_precision(i: Instruction) -> str | None:
    """The element types of an op's floats, in words, if they differ where the stacks need one; else None."""
    if i.opcode in ONE_PRECISION:
        groups = [[i, *i.operands]]
    elif i.opcode in REGIONS:
        lists = [c.parameters for c in i.called()]
        groups = [
            _at(i.operands, own) + [p for parameters in lists for p in _at(parameters, theirs)]
            for own, theirs in REGIONS[i.opcode](len(i.operands))
        ]
    else:
        return None
    for group in groups:
        floats = {v.shape.dtype for v in group if v.shape.dtype.is_float}
        if len(floats) > 1:
            return " and ".join(sorted(d.value for d in floats))
    return None


def _at(values: Sequence[Instruction], numbers: Iterable[int]) -> list[Instruction]:
    """Those of the values that are there: how many there must be is for the shape rules to say."""
    return [values[n] for n in numbers if n < len(values) and values[n].shape.is_array]
