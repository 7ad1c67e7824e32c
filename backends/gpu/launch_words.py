"""The words of a launch for native code: the function, the number of groups along x, y and z, that of a group's items,
the number of arguments; then an allocation and an offset for each argument.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from ..accelerator.launches import Launch

KERNEL, BLOCKS, THREADS, COUNT, PLACES = 0, 1, 4, 7, 8


def words_of(launches: Sequence[Launch]) -> ctypes.Array[ctypes.c_uint64]:
    """The words of launches that follow each other."""
    words: list[int] = []
    for launch in launches:
        shape = launch.dimensions
        words += [launch.kernel.handle.value, *shape.blocks, *shape.threads, len(launch.places)]
        words += [word for place in launch.places for word in place]
    return (ctypes.c_uint64 * len(words))(*words)
