"""Blocks of memory of a program, slices of them, and limits: what the Plan and a run without one have in common."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from ..hlo.records import dataclass
from ..hlo.shapes import Shape

if TYPE_CHECKING:
    from ..hlo.ir import Literal

MOST_MARKS = 1 << 24
"""Ids of profile steps are below this."""

POOL_ALIGNMENT = 64
"""Alignment in bytes of every block that the program allocates (constants, temporaries, results)."""

USER_ALIGNMENT = 16
"""Maximum alignment in bytes that is assumed for a caller's arrays (numpy gives 16)."""


def slot_alignment(size: int) -> int:
    """Alignment in bytes of a buffer of `size` bytes: its size rounded up to a power of two, 64 at most.

    So a cache line holds many scalars, and no scalar crosses two lines.
    """
    return min(POOL_ALIGNMENT, 1 << max(size - 1, 0).bit_length())


class AllocationKind(Enum):
    PARAMETER = "parameter"  # the caller's array, read-only unless the module gives it to a result
    CONSTANT = "constant"  # filled once, at load
    RESULT = "result"  # returned to the caller
    TEMPORARY = "temporary"  # the one arena, alive during a run


@dataclass(frozen=True, slots=True)
class Allocation:
    """One block of memory of a program.

    size, alignment: bytes. number: of the parameter or result leaf, in flattened order without tokens. shape:
    parameters and results have its layout. result: for a parameter that the module's input_output_alias gives to a
    result, the number of that result; it is then written in place, and the result has no allocation of its own.
    """

    index: int
    kind: AllocationKind
    size: int
    alignment: int
    number: int = -1
    shape: Shape | None = None
    literal: Literal | None = None
    result: int = -1

    @property
    def read_only(self) -> bool:
        return self.kind is AllocationKind.CONSTANT or (self.kind is AllocationKind.PARAMETER and self.result < 0)


@dataclass(frozen=True, slots=True, order=True)
class BufferSlice:
    """Bytes [offset, offset + size) of an allocation."""

    allocation: int
    offset: int
    size: int

    def overlaps(self, other: BufferSlice) -> bool:
        return (
            self.allocation == other.allocation
            and self.offset < other.offset + other.size
            and other.offset < self.offset + self.size
        )

    def alignment(self, block: int) -> int:
        """Alignment in bytes of the slice's address, if the allocation is aligned to `block` bytes.

        At most `slot_alignment`, which holds for every slice of this size, so that kernels can be shared between
        slices.
        """
        offset = self.offset & -self.offset
        return min(block, offset or block, slot_alignment(self.size))
