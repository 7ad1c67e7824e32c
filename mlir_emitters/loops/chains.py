"""Which kernels are long chains of operations that wait for one another: of these, LLVM puts several vectors side by
side. LLVM itself does so for short bodies only, which need it least.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.opcodes import Op
from ..core.graph import Buffer, Node

MINIMUM_ELEMENTS = 1 << 16
"""Elements of a result: fewer take less time than it takes to compile the copies."""

MINIMUM_CHAIN_OPERATIONS = 30
"""Operations after one another, besides the load and the store; of 20 it gains a twentieth at most."""

MAXIMUM_OPERATIONS_BESIDE = 3
"""Operations for each one of the chain: with more, a vector fills a processor alone."""


LENGTHS = {
    Op.ATAN2: 40,
    Op.COSINE: 36,
    Op.DIVIDE: 3,
    Op.ERF: 16,
    Op.EXPONENTIAL: 20,
    Op.EXPONENTIAL_MINUS_ONE: 24,
    Op.LOG: 20,
    Op.LOG_PLUS_ONE: 24,
    Op.LOGISTIC: 24,
    Op.POWER: 50,
    Op.RSQRT: 3,
    Op.SINE: 36,
    Op.SQRT: 3,
    Op.TAN: 40,
    Op.TANH: 20,
}
"""Operations of a function that wait for one another, about; of other opcodes it is one or none."""


def is_chain(group: Sequence[Buffer]) -> bool:
    """Whether the results are many, and each is a long chain."""
    if group[0].shape.size < MINIMUM_ELEMENTS or any(x.dtype.is_complex for x in group):
        return False
    ends: dict[Node, int] = {}
    waiting = [x.writer for x in group if x.writer is not None]
    while waiting:
        node = waiting[-1]
        if node in ends:
            waiting.pop()
            continue
        before = [x.writer for x in node.inputs if x.writer is not None and x.dims]
        missing = [x for x in before if x not in ends]
        waiting += missing
        if not missing:
            ends[node] = _length(node) + max((ends[x] for x in before), default=0)
            waiting.pop()
    longest = max(ends.values(), default=0)
    return longest >= MINIMUM_CHAIN_OPERATIONS and sum(map(_length, ends)) <= MAXIMUM_OPERATIONS_BESIDE * longest


def _length(node: Node) -> int:
    return LENGTHS.get(node.opcode, 1) if node.output.dims else 0
