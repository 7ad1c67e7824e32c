"""Which instructions this stack can emit, derived from its tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..hlo.errors import UnsupportedError
from ..hlo.ir import Instruction
from ..hlo.opclasses import ELEMENTWISE
from ..hlo.opcodes import Op
from ..planning.plan import KernelRequest
from .kernel import RULES
from .numerics.elementwise import EMIT

STAGE = "mlir_emitters"
TRANSPARENT = frozenset({Op.FUSION, Op.PARAMETER, Op.TUPLE, Op.GET_TUPLE_ELEMENT})
"""Opcodes that need no rule, because graph.py dissolves them."""


def missing(requests: Sequence[KernelRequest]) -> list[UnsupportedError]:
    """One error per op (or op × dtype) of the requests without a rule."""
    found: dict[str, UnsupportedError] = {}
    for request in requests:
        for instruction in instructions(request.instruction):
            error = _missing(instruction)
            if error is not None:
                found.setdefault(error.what, error)
    return list(found.values())


def instructions(root: Instruction) -> Iterator[Instruction]:
    """An instruction and the instructions of all computations that it calls."""
    stack, seen = [root], set()
    while stack:
        instruction = stack.pop()
        yield instruction
        for computation in instruction.called():
            if computation not in seen:
                seen.add(computation)
                stack.extend(computation.instructions)


def _missing(instruction: Instruction) -> UnsupportedError | None:
    op = instruction.opcode
    if op is Op.BITCAST and instruction.shape.size != instruction.operands[0].shape.size:
        types = f"{instruction.operands[0].shape.dtype.value} as {instruction.shape.dtype.value}"
        return UnsupportedError(
            STAGE, f"bitcast({types})", location=instruction.location, remedy="use bitcast-convert, which says how"
        )
    if op in TRANSPARENT or op in RULES:
        return None
    if op not in EMIT:
        place = "EMIT in {}/numerics/elementwise.py" if op in ELEMENTWISE else "RULES in the file of {} for its family"
        remedy = f"add Op.{op.name} to {place.format(STAGE)}"
        return UnsupportedError(STAGE, op.value, location=instruction.location, remedy=remedy)
    dtype = instruction.operands[0].shape.dtype
    if EMIT[op].function(dtype) is not None:
        return None
    return UnsupportedError(
        STAGE,
        f"{op.value}({dtype.value})",
        location=instruction.location,
        remedy=f"add {dtype.value} to the row of Op.{op.name} in EMIT in {STAGE}/numerics/elementwise.py",
    )
