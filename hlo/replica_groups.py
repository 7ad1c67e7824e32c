"""What the attributes of a collective say about its groups of devices: replica_groups in all their forms, and what the
ids in them number, which XLA derives from channel_id and use_global_device_ids.
"""

from __future__ import annotations

import math
import re
from enum import Enum
from typing import Any

import numpy as np

from .attributes import Raw
from .errors import CollectiveError, UnsupportedError
from .ir import Instruction
from .opcodes import Op

Groups = tuple[tuple[int, ...], ...]


class Mode(Enum):
    """What the ids in replica_groups mean."""

    CROSS_REPLICA = "replicas of one partition"
    CROSS_PARTITION = "partitions of one replica"
    CROSS_BOTH = "replicas, each with all of its partitions"
    FLATTENED = "devices"


ASKS_FOR_GLOBAL_IDS = frozenset(
    {Op.ALL_REDUCE, Op.ALL_REDUCE_START, Op.ALL_GATHER, Op.ALL_GATHER_START, Op.REDUCE_SCATTER}
)
"""Opcodes for which a channel alone does not mean CROSS_PARTITION."""


def mode_of(instruction: Instruction) -> Mode:
    """Raises CollectiveError for use_global_device_ids without a channel."""
    channel = instruction.attributes.get("channel_id") is not None
    flattened = bool(instruction.attributes.get("use_global_device_ids"))
    if not channel:
        if flattened:
            raise CollectiveError(
                f"{instruction.name} has use_global_device_ids, but no channel_id",
                location=instruction.location,
                remedy="give it a channel_id",
            )
        return Mode.CROSS_REPLICA
    if flattened:
        return Mode.FLATTENED
    return Mode.CROSS_BOTH if instruction.opcode in ASKS_FOR_GLOBAL_IDS else Mode.CROSS_PARTITION


# --- forms of the text -----------------------------------------------------------------------------------------------


def listed_groups(instruction: Instruction, stage: str) -> Groups:
    """replica_groups as lists of ids: `{{0,1},{2,3}}`, `[2,4]<=[8]T(1,0)`, `mesh['a'=2,'b'=2] {'b'}`; none: one of all.

    stage: who asks, for the UnsupportedError where the text has another form.
    """
    mode = mode_of(instruction)
    value: Any = instruction.attributes.get("replica_groups", ())
    if isinstance(value, Raw):
        found = iota_groups(value.text) or mesh_groups(value.text)
        if found is None:
            raise UnsupportedError(
                stage,
                f"replica_groups={value.text}",
                location=instruction.location,
                remedy="write the groups out: {{0,1},{2,3}}",
            )
        return found
    if not value and mode is Mode.FLATTENED:
        raise CollectiveError(
            f"{instruction.name} has use_global_device_ids, but no replica_groups",
            location=instruction.location,
            remedy="list the devices of each group",
        )
    return tuple(tuple(g) for g in value)


_IOTA = re.compile(r"\[([\d,\s]+)\]\s*<=\s*\[([\d,\s]+)\]\s*(?:T\(([\d,\s]+)\))?\s*$")
_MESH = re.compile(r"mesh\[([^\]]*)\]\s*(?:,?\s*device_ids=\(([\d,\s]*)\)\s*,?)?\s*\{([^}]*)\}\s*$")
_AXIS = re.compile(r"'([^']+)'\s*=\s*(\d+)")
_NAME = re.compile(r"'([^']+)'(:\(\d+\)\d+)?")


def _numbers(text: str) -> list[int]:
    return [int(n) for n in text.split(",")]


def iota_groups(text: str) -> Groups | None:
    """`[groups, size]<=[dims]T(permutation)`: 0, 1, … in the shape of dims, transposed, cut into groups."""
    match = _IOTA.match(text.strip())
    if match is None:
        return None
    shape, dims = _numbers(match[1]), _numbers(match[2])
    order = _numbers(match[3]) if match[3] else list(range(len(dims)))
    if len(shape) != 2 or math.prod(shape) != math.prod(dims) or sorted(order) != list(range(len(dims))):
        return None
    ids = np.arange(math.prod(dims)).reshape(dims).transpose(order).reshape(shape)
    return tuple(tuple(int(i) for i in row) for row in ids)


def mesh_groups(text: str) -> Groups | None:
    """`mesh[axes] {axes of the groups}`: devices that differ along these axes only. Parts of axes are not read."""
    match = _MESH.match(text.strip())
    if match is None:
        return None
    axes = {name: int(size) for name, size in _AXIS.findall(match[1])}
    chosen = [name for name, part in _NAME.findall(match[3]) if not part]
    if any(part for _, part in _NAME.findall(match[3])) or any(name not in axes for name in chosen):
        return None
    count = math.prod(axes.values())
    ids = np.array(_numbers(match[2])) if match[2] else np.arange(count)
    if ids.size != count:
        return None
    names = list(axes)
    order = [names.index(n) for n in names if n not in chosen] + [names.index(n) for n in chosen]
    rows = ids.reshape(tuple(axes.values())).transpose(order).reshape(-1, math.prod(axes[n] for n in chosen))
    return tuple(tuple(int(i) for i in row) for row in rows)
