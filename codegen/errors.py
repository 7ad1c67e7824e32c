"""The error of this room."""

from __future__ import annotations

from ..hlo.errors import TestbedError


class CodegenError(TestbedError):
    """LLVM IR that LLVM refuses, an unknown target, or code that does not load."""
