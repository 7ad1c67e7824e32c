"""LHLO, an MLIR dialect whose ops work on memrefs (docs/lhlo.md), and its conversions from and to HLO."""

from .from_hlo import from_kernels
from .from_plan import from_plan
from .module import LhloModule
from .parse import parse_bytecode, parse_text
from .to_plan import to_kernels
from .verifier import verify

__all__ = ["LhloModule", "from_kernels", "from_plan", "parse_bytecode", "parse_text", "to_kernels", "verify"]
