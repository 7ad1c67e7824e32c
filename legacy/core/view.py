"""What the choice of forms reads of a kernel and its target: plain values, so that it needs no function to build in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...codegen.options import EmitOptions
from ...codegen.processors import Processor
from ...hlo.ir import Instruction
from ...hlo.records import dataclass, field
from ...planning.plan import KernelRequest
from ...planning.scratch import ON_STACK
from .graph import Graph


@dataclass(frozen=True, eq=False, slots=True)
class View:
    """vector_bits: of the widest vectors. fma: whether the target has fused multiply-adds. products: those of integers
    that one instruction of the target adds up. bf16_pairs: whether one adds two of bf16 to f32. strict, by_element: as
    in EmitOptions. leaves: instruction whose value is in memory → the kernel argument that holds it. scratch: bytes of
    scratch memory. accesses: how the roots that were asked about read arrays (access.py). without: names of
    forms that are switched off.
    """

    vector_bits: int = 512
    fma: bool = True
    products: int = 1
    bf16_pairs: bool = False
    strict: bool = False
    by_element: bool = False
    leaves: Mapping[Instruction, int] = field(default_factory=dict)
    scratch: int = 0
    processor: Processor = Processor()
    accesses: dict[Instruction, Any] = field(default_factory=dict)
    without: frozenset[str] = frozenset()

    @staticmethod
    def of(request: KernelRequest, graph: Graph, options: EmitOptions) -> View:
        target, scratch = options.target, ON_STACK if request.scratch < 0 else request.scratch_bytes
        facts = target.vector_bits, target.has_fma, target.integer_products, target.adds_bf16_pairs
        off = frozenset(name.removeprefix("legacy:") for name in options.without_forms if name.startswith("legacy:"))
        return View(*facts, options.strict, options.by_element, graph.leaves, scratch, target.processor, without=off)

    def lanes(self, bits: int) -> int:
        """The number of `bits`-bit values in a vector register; values below 32 bits are computed in 32."""
        return max(1, self.vector_bits // max(bits, 32))


SHARED = View()
"""Of functions that kernels share: they are for no kernel, and for any processor."""
