"""The names of stacks, as flags and the ledger write them."""

STACK_NAMES = ("legacy", "mlir")
SHADOW = "shadow"
"""Both stacks: the results are those of legacy, and mlir's are compared with them."""

OTHERS = ("c",)
"""Stacks that nothing migrates to or from."""

XLA_STACKS = ("xla-old", "xla-new", "xla-old-ir", "xla-new-ir")
"""XLA:CPU's own kernels in XLA's own program, made by its old or its new emitters: as XLA compiled them, or (-ir) from
its LLVM IR by our LLVM. What has no kernel of XLA's runs on the default stack.
"""

RETIRED = ("mlir-structured",)
"""Names that only the ledger of a finished migration has: mlir-structured is mlir now, in place of pointers."""
