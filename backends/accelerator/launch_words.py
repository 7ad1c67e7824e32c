"""The words of a launch for native code: the kernel, three sizes (of all items for OpenCL, of the groups for GPUs),
three of a group, the number of arguments; then an allocation and an offset for each argument.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from .launches import Launch

KERNEL, SIZES, GROUP, COUNT, PLACES = 0, 1, 4, 7, 8


def words_of(launch: Launch, sizes: Sequence[int]) -> list[int]:
    """The words of a launch whose sizes are given."""
    head = [launch.kernel.handle.value, *sizes, *launch.dimensions.threads, len(launch.places)]
    return head + [word for place in launch.places for word in place]


def array_of(words: Sequence[int]) -> ctypes.Array[ctypes.c_uint64]:
    return (ctypes.c_uint64 * len(words))(*words)
