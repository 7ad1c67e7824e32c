"""What decides how kernels are emitted besides the kernels themselves: the target's registers and instructions, and the
options that change code; and what decides which of LLVM's passes a kernel gets.
"""

from __future__ import annotations

from ...codegen.options import EmitOptions
from ...codegen.processors import Processor
from ...hlo.records import dataclass


@dataclass(frozen=True, slots=True)
class Facts:
    """vector_bits: of the widest vector register; fma: whether the target has fused multiply-adds; integer_products: of
    neighbours, that one instruction adds to a 32-bit lane; bf16_pairs: whether one adds two products of bf16 to f32.
    strict, by_element: as in EmitOptions. processor: what the target's family has. without: names of forms that are
    switched off.
    """

    vector_bits: int = 128
    fma: bool = False
    strict: bool = False
    by_element: bool = False
    integer_products: int = 1
    bf16_pairs: bool = False
    processor: Processor = Processor()
    without: frozenset[str] = frozenset()

    @staticmethod
    def of(options: EmitOptions) -> Facts:
        target = options.target
        return Facts(
            target.vector_bits,
            target.has_fma,
            options.strict,
            options.by_element,
            target.integer_products,
            target.adds_bf16_pairs,
            target.processor,
            frozenset(name.partition(":")[2] for name in options.without_forms if name.startswith("mlir:")),
        )


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
