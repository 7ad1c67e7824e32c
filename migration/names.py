"""The names of stacks and of back ends, as flags and the ledger write them."""

from __future__ import annotations

from ..hlo.records import dataclass

STACK_NAMES = ("legacy", "mlir")
SHADOW = "shadow"
"""Both stacks: the results are those of legacy, and mlir's are compared with them."""

OTHERS = ("c",)
"""Stacks that nothing migrates to or from."""

XLA_STACKS = ("xla-old", "xla-new", "xla-old-ir", "xla-new-ir")
"""XLA:CPU's own kernels in XLA's own program, made by its old or its new emitters: as XLA compiled them, or (-ir) from
its LLVM IR by our LLVM. What has no kernel of XLA's runs on legacy.
"""

RETIRED = ("mlir-structured",)
"""Names that only the ledger of a finished migration has: mlir-structured is mlir now, in place of pointers."""

HOST = "host"


@dataclass(frozen=True, slots=True)
class BackEnd:
    """A platform whose kernels the stacks emit. has_rows: the ledger has a row of it for each unit and class of types.
    is_device: `legacy@NAME` is a stack of `diff` and `conform`; the host's stacks have no such suffix.
    """

    has_rows: bool = False
    is_device: bool = True


BACK_ENDS: dict[str, BackEnd] = {
    HOST: BackEnd(has_rows=True, is_device=False),
    "opencl": BackEnd(),
    "cuda": BackEnd(),
    "rocm": BackEnd(),
}
"""Each may stand behind the @ of a flag, as in `reduce@opencl=mlir`."""

WITH_ROWS = tuple(name for name, end in BACK_ENDS.items() if end.has_rows)
DEVICES = tuple(name for name, end in BACK_ENDS.items() if end.is_device)
