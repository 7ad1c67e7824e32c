"""Sets of opcodes that passes, scheduling and buffer assignment use. Facts about single opcodes are in opset.py."""

from __future__ import annotations

from . import opset
from .ir import CONTROL_PREDECESSORS as CONTROL_PREDECESSORS
from .ir import Computation, Instruction, Module
from .opcodes import Op

ELEMENTWISE = frozenset(op for op, row in opset.OPSET.items() if row.elementwise)
"""Element i of the result depends on element i of each operand (or on a scalar operand, for select and clamp)."""

EXPENSIVE = frozenset(
    {
        Op.ACOS,
        Op.ACOSH,
        Op.ASIN,
        Op.ASINH,
        Op.ATAN2,
        Op.ATANH,
        Op.CBRT,
        Op.COSINE,
        Op.COSH,
        Op.DIVIDE,
        Op.ERF,
        Op.EXPONENTIAL,
        Op.EXPONENTIAL_MINUS_ONE,
        Op.LOG,
        Op.LOG_PLUS_ONE,
        Op.LOGISTIC,
        Op.POWER,
        Op.REMAINDER,
        Op.RSQRT,
        Op.SINE,
        Op.SINH,
        Op.SQRT,
        Op.STOCHASTIC_CONVERT,
        Op.TAN,
        Op.TANH,
    }
)
"""Elementwise ops whose result is cheaper to store than to compute twice."""

FORWARDING = frozenset({Op.TUPLE, Op.GET_TUPLE_ELEMENT, Op.OPT_BARRIER, Op.ADD_DEPENDENCY, Op.DOMAIN, Op.AFTER_ALL})
"""Ops that move no bytes: each leaf of the result is a leaf of an operand, or a token."""

SIDE_EFFECTS = (
    frozenset(opset.opcodes([opset.Family.IO, opset.Family.COLLECTIVE])) - {Op.PARTITION_ID, Op.REPLICA_ID}
) | {Op.RNG, Op.RNG_GET_AND_UPDATE_STATE}
"""Ops that are never removed, duplicated or reordered among each other.

A custom call is one of them if its attribute says so (effects.has_side_effect).
"""

IMPURE = SIDE_EFFECTS | {Op.STOCHASTIC_CONVERT, Op.CUSTOM_CALL, Op.PARAMETER}
"""Ops that CSE must not merge even if they are equal. For custom calls effects.is_impure decides."""

CONTROL = frozenset({Op.WHILE, Op.CONDITIONAL, Op.CALL})
"""Ops whose computations run as part of the host program, not inside a kernel."""

OUTSIDE = frozenset(
    {
        Op.ALL_GATHER,
        Op.ALL_TO_ALL,
        Op.COLLECTIVE_BROADCAST,
        Op.COLLECTIVE_PERMUTE,
        Op.INFEED,
        Op.OUTFEED,
        Op.PARTITION_ID,
        Op.REPLICA_ID,
    }
)
"""Ops of a plan that are no kernels: they exchange data with other devices or a host, or depend on the device."""

COSMETIC_ATTRIBUTES = frozenset(
    {"metadata", "sharding", "frontend_attributes", "origin", "original_value", "statistics", "parameter_replication"}
)
"""Attributes that never change a value."""


def branches(instruction: Instruction) -> tuple[Computation, ...]:
    """The branch computations of a conditional, branch 0 first; for a pred the true branch first."""
    listed = instruction.attributes.get("branch_computations")
    if listed is not None:
        return listed
    return instruction.attributes["true_computation"], instruction.attributes["false_computation"]


def control_computations(module: Module) -> tuple[Computation, ...]:
    """The computations that the host program runs: the entry and the bodies, conditions, branches and callees below it.

    Callees come first.
    """
    found: set[Computation] = {module.entry}
    for computation in reversed(module.computations):  # callers first
        if computation in found:
            found.update(c for i in computation.calling if i.opcode in CONTROL for c in i.called())
    return tuple(c for c in module.computations if c in found)
