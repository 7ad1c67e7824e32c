"""A run in a stream of the host, on blocks of memory instead of arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ...hlo.errors import InputError
from ..device import DeviceMemory, Stream
from .leaves import Leaf


class Runs(Protocol):
    """An executable of the host."""

    @property
    def inputs(self) -> tuple[Leaf, ...]: ...

    @property
    def outputs(self) -> tuple[Leaf, ...]: ...

    def execute(self, inputs: Sequence[Any], outputs: Sequence[np.ndarray | None] | None = None) -> Any: ...


def execute_on_stream(executable: Runs, stream: Stream, arguments: Sequence[DeviceMemory]) -> list[DeviceMemory]:
    """As `Executable.execute_async_on_stream`. The program reads and writes the blocks in place."""
    leaves = executable.inputs
    if len(arguments) != len(leaves):
        remedy = "give a block of memory for each"
        raise InputError(f"the program takes {len(leaves)} inputs, {len(arguments)} blocks given", remedy=remedy)
    inputs = [_array(leaf, memory) for leaf, memory in zip(leaves, arguments, strict=True)]
    blocks = [stream.executor.allocate(leaf.bytes) for leaf in executable.outputs]
    outputs = [_array(leaf, memory) for leaf, memory in zip(executable.outputs, blocks, strict=True)]
    keep = (tuple(arguments), tuple(blocks))

    def run() -> None:
        executable.execute(inputs, outputs)
        assert keep  # the owners of the memory must outlive the run

    stream.enqueue(run)
    return blocks


def _array(leaf: Leaf, memory: DeviceMemory) -> np.ndarray:
    """The array in a block, in logical order. Raises InputError if the block is too small."""
    if memory.size < leaf.bytes:
        what = f"{leaf.role} {leaf.number}: {leaf.shape} needs {leaf.bytes} bytes, the block has {memory.size}"
        raise InputError(what, remedy="give the block of an array of that shape")
    data = (ctypes.c_uint8 * memory.size).from_address(memory.address)
    return leaf.logical(np.ndarray(leaf.physical, leaf.dtype, memoryview(data)))
