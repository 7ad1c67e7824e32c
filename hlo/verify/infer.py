"""INFER: for every opcode, the shape that its operands and attributes give it, by XLA's rules.

A rule raises VerificationError where operands or attributes break a constraint; the constraint's label (`DOT3`)
stands in the rule's docstring and in the message. Opcodes that state their result themselves (convert, reshape,
iota, …) check it.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir import Instruction
from ..opcodes import Op
from ..shapes import Shape
from . import collectives, control, elementwise, indexing, linear, movement, regions

Rule = Callable[[Instruction], Shape]


def merged(*tables: dict[Op, Rule]) -> dict[Op, Rule]:
    """One table of several; an opcode in two of them is a mistake."""
    out: dict[Op, Rule] = {}
    for table in tables:
        for op, rule in table.items():
            if op in out:
                raise ValueError(f"two shape rules for {op.value}")
            out[op] = rule
    return out


INFER: dict[Op, Rule] = merged(
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


UNSTATED: dict[Op, Rule] = {
    Op.BROADCAST: movement.inferred_broadcast,
    Op.TRANSPOSE: movement.inferred_transpose,
}
"""Rules that differ where text states no shape."""


def infer_missing(i: Instruction) -> Shape:
    """The shape of an instruction whose text gives none. `i.shape` is a placeholder."""
    return UNSTATED.get(i.opcode, INFER[i.opcode])(i)
