"""The groups of devices of a collective: replica_groups in all forms of its text, and the meaning of the ids in them.

XLA derives the meaning from channel_id and use_global_device_ids.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from enum import Enum
from itertools import pairwise
from typing import Any

import numpy as np

from .attributes import Raw
from .devices import Devices
from .errors import CollectiveError, UnsupportedError
from .ir import Instruction
from .opcodes import Op

Groups = tuple[tuple[int, ...], ...]


class Mode(Enum):
    """The meaning of the ids in replica_groups: each value says what an id numbers."""

    CROSS_REPLICA = "replicas of one partition"
    CROSS_PARTITION = "partitions of one replica"
    CROSS_BOTH = "replicas, each with all of its partitions"
    FLATTENED = "devices"


ASKS_FOR_GLOBAL_IDS = frozenset(
    {Op.ALL_REDUCE, Op.ALL_REDUCE_START, Op.ALL_GATHER, Op.ALL_GATHER_START, Op.REDUCE_SCATTER}
)
"""Opcodes for which a channel_id without use_global_device_ids means CROSS_BOTH, not CROSS_PARTITION."""


def mode_of(instruction: Instruction) -> Mode:
    """The meaning of a collective's ids. Raises CollectiveError for use_global_device_ids without a channel_id."""
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
    """replica_groups as tuples of ids, read from `{{0,1},{2,3}}`, `[2,4]<=[8]T(1,0)` or `mesh['a'=2,'b'=2] {'b'}`.

    The empty tuple means one group of all devices. stage: the caller's name in errors. Raises UnsupportedError if the
    text has another form, CollectiveError if use_global_device_ids needs groups and there are none.
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
_MESH = re.compile(r"mesh\[([^\]]*)\]\s*(?:,?\s*device_ids=\(([^()]*(?:\([^()]*\))?)\)\s*,?)?\s*\{([^}]*)\}\s*$")
_AXIS = re.compile(r"\s*'([^']+)'\s*=\s*(\d+)\s*")
_PART = re.compile(r"\s*'([^']+)'\s*(?::\s*\((\d+)\)\s*(\d+)\s*)?")


def _numbers(text: str) -> list[int]:
    return [int(n) for n in text.split(",")]


def iota_groups(text: str) -> Groups | None:
    """Groups from `[groups,size]<=[dims]T(permutation)`: 0, 1, … reshaped to dims, transposed, cut into groups.

    None if the text has another form.
    """
    match = _IOTA.match(text.strip())
    if match is None:
        return None
    shape, dims = _numbers(match[1]), _numbers(match[2])
    order = _numbers(match[3]) if match[3] else list(range(len(dims)))
    if len(shape) != 2 or math.prod(shape) != math.prod(dims) or sorted(order) != list(range(len(dims))):
        return None
    ids = np.arange(math.prod(dims)).reshape(dims).transpose(order).reshape(shape)
    return tuple(tuple(int(i) for i in row) for row in ids)


_IOTA_IDS = re.compile(r"\[([\d,\s]+)\]\s*(?:T\(([\d,\s]+)\))?\s*$")


def _mesh_ids(text: str | None, count: int) -> np.ndarray | None:
    """The device ids of a mesh: 0, 1, …, a list `3,1,2,0`, or `[2,2]T(1,0)`; None for any other text."""
    if not text:
        return np.arange(count)
    iota = _IOTA_IDS.match(text)
    if iota is None:
        return np.array(_numbers(text)) if re.fullmatch(r"[\d,\s]+", text) else None
    dims = _numbers(iota[1])
    order = _numbers(iota[2]) if iota[2] else list(range(len(dims)))
    if math.prod(dims) != count or sorted(order) != list(range(len(dims))):
        return None
    return np.arange(count).reshape(dims).transpose(order).reshape(-1)


def mesh_groups(text: str) -> Groups | None:
    """Groups from `mesh[axes] {some axes}`: the devices of a group differ along these axes only.

    `'x':(2)4` is a part of an axis: x as [2, 4, rest], without the first and the last. None if the text has another
    form.
    """
    match = _MESH.match(text.strip())
    if match is None:
        return None
    listed, named = ([part.fullmatch(p) for p in match[n].split(",")] for n, part in ((1, _AXIS), (3, _PART)))
    if not match[3].strip():
        named = []
    if not all(listed) or not all(named):
        return None
    axes = {found[1]: int(found[2]) for found in listed if found}
    chosen = [(found[1], int(found[2] or 1), int(found[3] or axes.get(found[1], 0))) for found in named if found]
    count = math.prod(axes.values())
    ids, pieces = _mesh_ids(match[2], count), _pieces(axes, chosen)
    if ids is None or ids.size != count or pieces is None:
        return None
    within = [
        n
        for name, before, size in chosen
        for n, (of, start, end) in enumerate(pieces)
        if of == name and before <= start and end <= before * size
    ]
    order = [n for n in range(len(pieces)) if n not in within] + within
    dims = [end // start for _, start, end in pieces]
    rows = ids.reshape(dims).transpose(order).reshape(-1, math.prod(dims[n] for n in within))
    return tuple(tuple(int(i) for i in row) for row in rows)


def _pieces(axes: dict[str, int], chosen: Sequence[tuple[str, int, int]]) -> list[tuple[str, int, int]] | None:
    """The axes cut where chosen parts begin and end: (axis, product of the sizes before the piece, the same with it).

    chosen: (axis, product of the sizes before the part, its size). None if a part does not fit its axis.
    """
    pieces = []
    for name, size in axes.items():
        cuts = sorted({1, size}.union(*({before, before * n} for of, before, n in chosen if of == name)))
        if any(end % start for start, end in pairwise(cuts)) or cuts[-1] > size:
            return None
        pieces += [(name, start, end) for start, end in pairwise(cuts)]
    return pieces if all(name in axes and n for name, _, n in chosen) else None


# --- devices ---------------------------------------------------------------------------------------------------------


def device_groups(instruction: Instruction, devices: Devices, stage: str) -> Groups:
    """The groups of a collective as numbers of devices. stage: as in `listed_groups`, which says what it raises.

    Raises UnsupportedError if a group names a device that does not exist.
    """
    mode = mode_of(instruction)
    ids = listed_groups(instruction, stage)
    if not ids:
        ids = (tuple(range(devices.partitions if mode is Mode.CROSS_PARTITION else devices.replicas)),)
    return _present(instruction, _numbered(ids, mode, devices), devices, stage)


def device_pairs(instruction: Instruction, devices: Devices, stage: str) -> Groups:
    """source_target_pairs as numbers of devices. Raises as `device_groups`."""
    pairs = tuple(tuple(pair) for pair in instruction.attributes.get("source_target_pairs", ()))
    return _present(instruction, _numbered(pairs, mode_of(instruction), devices), devices, stage)


def _numbered(ids: Groups, mode: Mode, devices: Devices) -> Groups:
    """Lists of ids as lists of devices, repeated for what the mode does not number."""
    replicas, partitions = range(devices.replicas), range(devices.partitions)
    if mode is Mode.CROSS_REPLICA:
        return tuple(tuple(i * devices.partitions + p for i in group) for p in partitions for group in ids)
    if mode is Mode.CROSS_PARTITION:
        return tuple(tuple(r * devices.partitions + i for i in group) for r in replicas for group in ids)
    if mode is Mode.CROSS_BOTH:
        return tuple(tuple(i * devices.partitions + p for i in group for p in partitions) for group in ids)
    return ids


def _present(instruction: Instruction, groups: Groups, devices: Devices, stage: str) -> Groups:
    if any(not 0 <= d < devices.count for group in groups for d in group):
        raise UnsupportedError(
            stage,
            f"{instruction.opcode.value} across devices",
            location=instruction.location,
            remedy=f"{instruction.name} needs more devices than {devices}: give more replicas or partitions",
        )
    return groups
