"""What XLA fixes and no module's text says."""

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
"""Targets of custom calls that change no value: they tell a partitioner or a memory planner where values belong."""

FIRST_STATE = 0x7012395
"""The 128-bit counter of rng and rng-get-and-update-state at the start of a run."""
