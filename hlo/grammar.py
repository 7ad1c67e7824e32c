"""Which attributes an opcode's text may have: those of its row in the opset, and those that every instruction may have.

XLA's parser also refuses all others; its lists are in CreateInstruction of xla/hlo/parser/hlo_parser.cc.
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
"""The attributes that each opcode's text may have; the parser refuses any other."""
