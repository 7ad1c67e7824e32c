"""Which devices take part in a collective: replica_groups in all their forms, by the mode that XLA derives from
channel_id and use_global_device_ids. A device's number is replica · partitions + partition.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np

from ..attributes import Raw
from ..errors import CollectiveError, UnsupportedError
from ..ir import Instruction
from ..opcodes import Op

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


def group_of(instruction: Instruction, device: int, replicas: int, partitions: int) -> tuple[int, ...] | None:
    """The devices of this device's group, in the order of the text; None if no group names it."""
    mode = mode_of(instruction)
    groups = listed_groups(instruction)
    replica, partition = divmod(device, partitions)
    mine = {Mode.CROSS_PARTITION: partition, Mode.FLATTENED: device}.get(mode, replica)
    if not groups:
        if mode is Mode.FLATTENED:
            raise CollectiveError(
                f"{instruction.name} has use_global_device_ids, but no replica_groups",
                location=instruction.location,
                remedy="list the devices of each group",
            )
        groups = (tuple(range(partitions if mode is Mode.CROSS_PARTITION else replicas)),)
    group = next((g for g in groups if mine in g), None)
    if group is None:
        return None
    devices = tuple(d for id_ in group for d in _devices(id_, mode, replica, partition, partitions))
    return _present(instruction, devices, replicas, partitions)


def _devices(id_: int, mode: Mode, replica: int, partition: int, partitions: int) -> Sequence[int]:
    if mode is Mode.CROSS_REPLICA:
        return (id_ * partitions + partition,)
    if mode is Mode.CROSS_PARTITION:
        return (replica * partitions + id_,)
    return (id_,) if mode is Mode.FLATTENED else range(id_ * partitions, (id_ + 1) * partitions)


def _present(instruction: Instruction, devices: tuple[int, ...], replicas: int, partitions: int) -> tuple[int, ...]:
    """The devices, all of which must be there."""
    if any(not 0 <= d < replicas * partitions for d in devices):
        raise UnsupportedError(
            "evaluator",
            f"{instruction.opcode.value} across devices",
            location=instruction.location,
            remedy=f"{instruction.name} needs more devices than {replicas} replicas × {partitions} partitions: "
            "evaluate_replicated(module, inputs, replicas=…, partitions=…)",
        )
    return devices


def paired(
    instruction: Instruction, pairs: Sequence[Sequence[int]], device: int, replicas: int, partitions: int, mode: Mode
) -> tuple[tuple[int, int], ...]:
    """source_target_pairs as pairs of devices, beside this device: the same partition, or the same replica."""
    replica, partition = divmod(device, partitions)
    out = []
    for source, target in pairs:
        ends = (
            _devices(source, mode, replica, partition, partitions)[0],
            _devices(target, mode, replica, partition, partitions)[0],
        )
        if device in ends:
            _present(instruction, ends, replicas, partitions)
        out.append(ends)
    return tuple(out)


# --- forms of the text -----------------------------------------------------------------------------------------------


def listed_groups(instruction: Instruction) -> Groups:
    """replica_groups as lists of ids: `{{0,1},{2,3}}`, `[2,4]<=[8]T(1,0)`, `mesh['a'=2,'b'=2] {'b'}`."""
    value: Any = instruction.attributes.get("replica_groups", ())
    if isinstance(value, Raw):
        found = iota_groups(value.text) or mesh_groups(value.text)
        if found is None:
            raise UnsupportedError(
                "evaluator",
                f"replica_groups={value.text}",
                location=instruction.location,
                remedy="write the groups out: {{0,1},{2,3}}",
            )
        return found
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
