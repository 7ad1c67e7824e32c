"""What an opcode's text must and may have: its number of operands and its attributes, as the opset's rows say.

XLA's parser refuses other attributes too; its rows are in CreateInstruction of xla/hlo/parser/hlo_parser.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

from .opcodes import Op
from .opset import OPSET, opcodes
from .opset_rows import Family

COMMON = (
    "backend_config",
    "control-predecessors",
    "frontend_attributes",
    "metadata",
    "origin",
    "parameter_replication",
    "sharding",
    "statistics",
)
"""Attributes that every instruction may have."""


@dataclass(frozen=True, slots=True)
class Row:
    """low..high: number of operands. required: attributes without which the text is refused. own: they and the optional
    ones. allowed: own and COMMON; any other is refused.
    """

    low: int
    high: int
    required: tuple[str, ...]
    own: tuple[str, ...]
    allowed: frozenset[str]

    @property
    def arity(self) -> str:
        """`2 operands`, `1 operand or more`, for messages."""
        plural = "s" if self.low != 1 else ""
        return f"{self.low} operand{plural}" + ("" if self.low == self.high else " or more")


GRAMMAR: dict[Op, Row] = {
    op: Row(
        row.arity[0],
        row.arity[1],
        row.required,
        row.required + row.optional,
        frozenset(row.required + row.optional + COMMON),
    )
    for op, row in OPSET.items()
}

UNARY_OPS = opcodes([Family.UNARY])
BINARY_OPS = tuple(op for op in opcodes([Family.BINARY]) if op is not Op.COMPARE)
"""Two operands of one type, and a result of that type."""
