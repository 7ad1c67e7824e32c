"""The records of the native pool (pool_code.py), which Python reads, too; and which code it is."""

from __future__ import annotations

LOCK, IN_USE, PEAK, IDLE, TAKEN, MADE, LIMIT, IDLE_LIMIT, CLOCK, SHELVES = range(10)
"""Words of a pool: a spin lock; bytes in blocks in use, their peak, bytes in idle blocks; blocks handed out and blocks
that came from the system, since the start; the limits in bytes; a clock; the first shelf.
"""
POOL_WORDS = 10

CAPACITY, IDLE_BLOCKS, USED, NEXT, POOL_OF = range(5)
"""Words of a shelf, the idle blocks of one size: bytes of a block; the first idle block, whose first word is the next;
the clock at the last use; the next shelf; the pool.
"""
SHELF_WORDS = 5

CODE = "5e7ee63db1690ad039508a3c1fb278a4"
"""The first half of the SHA-256 of the pool's LLVM IR, under which its object is cached; a test says the right one."""
