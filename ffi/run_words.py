"""Words of the block of a run, by which compiled functions know it (calls.py). This file imports nothing."""

from __future__ import annotations

RUN_ID, DEVICE, OPTIONS, USER_DATA, USER_DATA_COUNT, HAS_FAILED, STREAM = range(7)
"""Its number, 0 until a handler asks for it; the device; the options of this execution (XLA_FFI_Attrs); user data as
(type id, address) pairs, and how many; whether a handler has failed; the queue of
the device that the run is on, 0 on the host.
"""

INHERITED = OPTIONS, USER_DATA, USER_DATA_COUNT
"""Words that a run inside another one, or inside what a caller gives to runs, has from there."""
