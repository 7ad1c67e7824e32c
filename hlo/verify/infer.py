"""INFER: for every opcode, a rule that computes the result's shape from operands and attributes, as XLA does.

XLA's rules are in xla/service/shape_inference.cc. A rule raises VerificationError if operands or attributes break a
constraint; the constraint's label (`DOT3`) is in the rule's docstring and in the message. Where the text must state
the result's shape (convert, reshape, iota, …), the rule checks it.
"""

from __future__ import annotations

from ..ir import Instruction
from ..opcodes import Op
from ..shapes import Shape
from . import collectives, control, elementwise, indexing, linear, movement, regions
from .rules import ShapeRule


def merged(*tables: dict[Op, ShapeRule]) -> dict[Op, ShapeRule]:
    """One table from several. Raises ValueError if two of them have the same opcode."""
    out: dict[Op, ShapeRule] = {}
    for table in tables:
        for op, rule in table.items():
            if op in out:
                raise ValueError(f"two shape rules for {op.value}")
            out[op] = rule
    return out


INFER: dict[Op, ShapeRule] = merged(
    elementwise.INFER,
    movement.INFER,
    indexing.INFER,
    regions.INFER,
    linear.INFER,
    control.INFER,
    collectives.INFER,
)

NEEDS_SHAPE = frozenset(
    {
        Op.BITCAST,
        Op.BITCAST_CONVERT,
        Op.CONSTANT,
        Op.CONVERT,
        Op.CUSTOM_CALL,
        Op.FUSION,
        Op.INFEED,
        Op.IOTA,
        Op.PARAMETER,
        Op.RESHAPE,
        Op.DYNAMIC_RESHAPE,
        Op.RNG,
        Op.RNG_BIT_GENERATOR,
        Op.RNG_GET_AND_UPDATE_STATE,
        Op.STOCHASTIC_CONVERT,
        Op.SCALED_DOT,
        Op.ASYNC_START,
        Op.COPY_START,
        Op.ALL_GATHER,
        Op.ALL_GATHER_START,
        Op.REDUCE_SCATTER,
        Op.COLLECTIVE_PERMUTE_START,
        Op.ALL_TO_ALL,
        Op.RECV,
    }
)
"""Opcodes whose text must state the result's shape."""


UNSTATED: dict[Op, ShapeRule] = {
    Op.BROADCAST: movement.inferred_broadcast,
    Op.TRANSPOSE: movement.inferred_transpose,
}
"""Rules for text without a shape, for opcodes whose usual rule needs the stated shape."""


def infer_missing(i: Instruction) -> Shape:
    """The shape of an instruction whose text states none. `i.shape` is a placeholder."""
    return UNSTATED.get(i.opcode, INFER[i.opcode])(i)
