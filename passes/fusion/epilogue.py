"""Epilogues: a dot or convolution whose only users are elementwise ops becomes one fusion with them.

The product itself is never stored. Its operands stay outside, because each of their elements is read many times.
"""

from __future__ import annotations

import math

from ...hlo.analysis.kernel_forms import EPILOGUE_DEPTH
from ...hlo.ir import Instruction
from ...hlo.layouts import same_bytes
from ...hlo.opclasses import ELEMENTWISE
from ...hlo.opcodes import Op
from ...hlo.records import replace
from .cost import Cluster, Tokens

PRODUCTS = frozenset({Op.DOT, Op.CONVOLUTION})


def takes_product(cluster: Cluster, product: Instruction, tokens: Tokens) -> bool:
    """Whether a cluster may compute a product. tokens: the index expressions at which its members read it."""
    root = cluster.root
    return (
        root.opcode in ELEMENTWISE
        and tokens.keys() == ({"root"} if product.shape.dims else {"scalar"})
        and not any(m.opcode in PRODUCTS for m in cluster.members)
        and same_bytes(product.shape, replace(root.shape, dtype=product.shape.dtype))
        and depth(product) <= EPILOGUE_DEPTH
    )


def depth(product: Instruction) -> int:
    """Contraction length of a dot; 1 for a convolution, whose sums are always finished in one pass."""
    if product.opcode is not Op.DOT:
        return 1
    return math.prod(product.operands[0].shape.dims[d] for d in product.attributes.get("lhs_contracting_dims", ()))
