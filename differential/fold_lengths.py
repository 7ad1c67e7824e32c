"""How many elements an op folds into one of its result: what decides how far two orders of a sum may lie apart."""

from __future__ import annotations

import math
from collections.abc import Callable

from ..hlo.ir import Instruction
from ..hlo.opcodes import Op

DEVICES = 8
"""As many take part in a reduction over devices."""


def fold_length(i: Instruction) -> int:
    """How many elements make one of the result."""
    return max(1, _LENGTHS[i.opcode](i))


def _contracted(i: Instruction) -> int:
    dims = i.attributes.get("lhs_contracting_dims", ())
    return math.prod(i.operands[0].shape.dims[d] for d in dims)


def _window(i: Instruction) -> int:
    window = i.attributes.get("window")
    return math.prod(d.size for d in window.dims) if window else 1


def _convolved(i: Instruction) -> int:
    features = i.attributes["dim_labels"].kernel_input_feature
    return _window(i) * i.operands[1].shape.dims[features]


def _reduced(i: Instruction) -> int:
    return math.prod(i.operands[0].shape.dims[d] for d in i.dimensions)


def largest_operand(i: Instruction) -> int:
    """As many as the largest operand has: enough for scatters, transforms and collectives."""
    return max((s.size for o in i.operands for _, s in o.shape.leaves() if s.is_array), default=1)


_LENGTHS: dict[Op, Callable[[Instruction], int]] = {
    Op.DOT: _contracted,
    Op.RAGGED_DOT: _contracted,
    Op.SCALED_DOT: _contracted,
    Op.CONVOLUTION: _convolved,
    Op.REDUCE: _reduced,
    Op.REDUCE_WINDOW: _window,
    Op.SCAN: largest_operand,
    Op.SELECT_AND_SCATTER: _window,
    Op.SCATTER: lambda i: i.operands[-1].shape.size,
    Op.ALL_REDUCE: lambda i: DEVICES,
    Op.ALL_REDUCE_START: lambda i: DEVICES,
    Op.REDUCE_SCATTER: lambda i: DEVICES,
}
