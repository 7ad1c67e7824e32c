"""What LLVM's passes are chosen by: what kind of loops a kernel's code is."""

from __future__ import annotations

from ..hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class Code:
    """What matters to LLVM's passes of the code. shares: functions that kernels share have its long loops; walks: it
    has long loops of reductions itself; lean: few passes are enough for its loops.
    """

    shares: bool = False
    walks: bool = False
    lean: bool = False

    def __or__(self, other: Code) -> Code:
        return Code(self.shares or other.shares, self.walks or other.walks, self.lean or other.lean)
