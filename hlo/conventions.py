"""Facts that XLA fixes and that a module's text does not state."""

from __future__ import annotations

ANNOTATIONS: tuple[str, ...] = (
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "MoveToHost",
    "MoveToDevice",
    "Pin",
    "Unpin",
    "LayoutConstraint",
    "annotate_device_placement",
    "ShardBarrierFrom",
    "ShardBarrierTo",
    "xla.sdy.FuncResultSharding",
)
"""Custom-call targets whose result is the operand: they tell a partitioner or memory planner where a value belongs."""

SINKS: tuple[str, ...] = ("dce_sink",)
"""Custom-call targets that compute nothing and give an empty tuple: they keep their operands alive for a compiler."""

FIRST_STATE = 0x7012395
"""The 128-bit counter of rng and rng-get-and-update-state at the start of a run."""

CALL_REMEDIES = {
    "GetRngSeed": "it reads the seed of XLA's run, which no stack here has: replace it by a u64[] constant, "
    "or give the module as it was before XLA's optimization",
}
"""Targets of XLA:CPU that nobody here can run → what a user can do."""

PART = "part of "
"""Begins the backend_config of an exchange between devices; opcode and name of its collective follow."""

LEAF = "leaf "
"""Begins the backend_config of an outfeed of one leaf of a tuple: `leaf 0 of 2 of name`."""

XLA_KERNEL = "xla.kernel:"
"""Begins the custom-call target that stands for a kernel which XLA compiled; the symbol of its code follows."""
