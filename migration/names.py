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

FORMS = ("mlir-structured",)
"""The new stack's emitters in another form of MLIR, which is to take its place."""
