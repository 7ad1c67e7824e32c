"""What is known of a kernel without tolerances, for the ledger: how both stacks were compared with its HLO."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec

from ...codegen.options import Target
from ...hlo.ir import Instruction
from ...hlo.library.calls import LIBRARY
from ...hlo.opcodes import Op
from ...planning.plan import KernelRequest
from .check import Kernel, Row, check_kernel
from .draw import draws, float_types
from .every import every_input


class Method(StrEnum):
    """How a kernel was compared. exact: over a finite field, or as a sum or movement of integers, at its real shape.
    exhaustive: on every input. proved: of every element, by z3. sampled: on drawn integers, or not at all.
    """

    EXACT = "exact"
    EXHAUSTIVE = "exhaustive"
    PROVED = "proved (z3)"
    SAMPLED = "sampled"


@dataclass(frozen=True)
class Evidence:
    """method: the strongest that the kernel permits. row: its verdict (equal, differ or not run), of `cases` runs.
    why: what stood against a proof, or is wrong by it, where the method is `sampled`.
    """

    method: Method
    row: Row
    cases: int
    why: str = ""


def evidence_of(request: KernelRequest, seed: int = 0, target: Target | None = None) -> Evidence:
    """Compare a kernel on both stacks with its HLO, by the strongest method that it permits."""
    instruction = request.instruction
    if instruction.opcode in LIBRARY:
        row = check_kernel(request, seed, target)
        return Evidence(Method.SAMPLED, row, row.draws)
    kernel = Kernel(request, target or Target.host())
    row = kernel.compared((draw, draw.inputs(kernel.module)) for draw in draws(instruction, seed))
    if float_types(instruction) or not row.is_equal or computes_sums_only(instruction):
        return Evidence(Method.EXACT if row.draws else Method.SAMPLED, row, row.draws)
    every = every_input(kernel.module)
    if every is not None:
        draw = next(iter(draws(instruction, seed)))
        row = kernel.compared((draw, inputs) for inputs in every)
        return Evidence(Method.EXHAUSTIVE, row, row.draws)
    if find_spec("z3") is None:
        return Evidence(Method.SAMPLED, row, row.draws, "z3-solver is not installed (./testbed setup --dev)")
    from .proof import proof_of

    why = proof_of(kernel.module, frozenset(row.forms), target)
    return Evidence(Method.SAMPLED if why else Method.PROVED, row, row.draws, why)


LINEAR = frozenset(
    {
        *(Op.ADD, Op.SUBTRACT, Op.NEGATE, Op.MULTIPLY, Op.DOT, Op.CONVOLUTION, Op.REDUCE, Op.REDUCE_WINDOW, Op.MAP),
        *(Op.BITCAST, Op.BROADCAST, Op.CONCATENATE, Op.COPY, Op.PAD, Op.RESHAPE, Op.REVERSE, Op.SLICE, Op.TRANSPOSE),
        *(Op.DYNAMIC_SLICE, Op.DYNAMIC_UPDATE_SLICE, Op.GATHER, Op.SCATTER, Op.IOTA, Op.FUSION, Op.TUPLE),
        *(Op.GET_TUPLE_ELEMENT, Op.PARAMETER, Op.CONSTANT),
    }
)
"""Opcodes that add, multiply or move integers: what they compute is one expression, whatever the integers are."""


def computes_sums_only(instruction: Instruction) -> bool:
    """Whether a kernel of integers adds, multiplies and moves, and does nothing else, also within it."""
    left, wide = [instruction], True
    while left and wide:
        i = left.pop()
        wide = i.opcode in LINEAR
        left += [inner for c in i.called() for inner in c.instructions]
    return wide
