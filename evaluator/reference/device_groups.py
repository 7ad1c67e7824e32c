"""Which devices meet at a collective, from its attributes (hlo/replica_groups.py).

A device's number is replica · partitions + partition.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.errors import UnsupportedError
from ...hlo.ir import Instruction
from ...hlo.replica_groups import Mode, listed_groups, mode_of


def group_of(instruction: Instruction, device: int, replicas: int, partitions: int) -> tuple[int, ...] | None:
    """The devices of this device's group, in the order of the text; None if no group contains the device."""
    mode = mode_of(instruction)
    groups = listed_groups(instruction, "evaluator")
    replica, partition = divmod(device, partitions)
    mine = {Mode.CROSS_PARTITION: partition, Mode.FLATTENED: device}.get(mode, replica)
    if not groups:
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
    """The devices, after a check that all of them exist. Raises UnsupportedError if not."""
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
    """source_target_pairs as pairs of device numbers, in the partition or replica of this device, depending on mode."""
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
