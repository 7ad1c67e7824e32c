"""How long a kernel keeps one processor of a device busy, roughly: it decides whether several pay (opencl/near.py)."""

from __future__ import annotations

import math

from ...hlo.analysis.cost_analysis import CostAnalysis
from ...hlo.opcodes import Op
from ...planning.plan import KernelRequest

PRODUCTS, FLOPS, TRANSCENDENTALS, BYTES, COMPARISONS = 150.0, 10.0, 2.0, 20.0, 0.25
"""Work that a processor with wide vectors does in a nanosecond; PRODUCTS: flops of dots and convolutions."""


def estimated_nanoseconds(request: KernelRequest) -> int:
    """1 at least."""
    cost = CostAnalysis().of(request.instruction)
    ops = frozenset((request.instruction.opcode,)) if request.body is None else request.body.opcodes
    rate = FLOPS if ops.isdisjoint((Op.DOT, Op.CONVOLUTION)) else PRODUCTS
    rate = COMPARISONS if Op.SORT in ops else rate
    return math.ceil(cost.flops / rate + cost.transcendentals / TRANSCENDENTALS + cost.bytes / BYTES) or 1
