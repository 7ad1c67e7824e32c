"""Which attributes an opcode's text may have: those of its row in the opset, and those that every instruction may have.

XLA's parser refuses other attributes too; its rows are in CreateInstruction of xla/hlo/parser/hlo_parser.cc.
"""

from __future__ import annotations

from .opcodes import Op
from .opset import OPSET

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

ALLOWED: dict[Op, frozenset[str]] = {op: frozenset(row.own + COMMON) for op, row in OPSET.items()}
"""Attributes that an opcode's text may have; any other is refused."""
