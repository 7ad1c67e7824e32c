"""From which pass of LLVM's optimiser on a case goes wrong, by -opt-bisect-limit, with a process for each limit."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence

import numpy as np

from ..hlo.ir import Module
from .child import Begin, Child
from .finding import Finding
from .outcome import outcome
from .setting import Setting

FIRST, MOST = 256, 1 << 20
"""The first limit that is tried, and the largest: passes of all functions and loops count."""

_RAN = re.compile(r"^BISECT: running pass \(\d+\) (.*)$", re.MULTILINE)


def guilty_llvm_pass(
    begin: Begin | None, case: Finding, stacks: Sequence[str], setting: Setting, limit_s: float
) -> str:
    """The pass and where it ran, such as `instcombine on f`; empty where that is not known.

    begin: as of Child. stacks: two, which agree without LLVM's optimiser.
    """

    def run(limit: int) -> tuple[bool, str]:
        with Child(begin) as child:
            answer = child.call(limited_outcome, limit, case.module, case.inputs, stacks, setting, limit_s=limit_s)
        return answer if isinstance(answer, tuple) else (False, "")

    low, high = 0, FIRST
    while not (shown := run(high))[0]:
        low, high = high, high * 4
        if high > MOST:
            return ""
    while high - low > 1:
        middle = (low + high) // 2
        now = run(middle)
        if now[0]:
            high, shown = middle, now
        else:
            low = middle
    return shown[1]


def limited_outcome(
    limit: int, module: Module, inputs: Sequence[np.ndarray], stacks: Sequence[str], setting: Setting
) -> tuple[bool, str]:
    """(Whether the case is a finding, the last pass that ran) with so many of LLVM's passes. For a process of its own:
    LLVM takes the option once, and says on standard error what runs.
    """
    import llvmlite.binding as llvm

    from ..codegen.llvm import start

    start()
    with tempfile.TemporaryFile() as said:
        kept = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            llvm.set_option("testbed", f"-opt-bisect-limit={limit}")
            found = outcome(module, inputs, tuple(stacks), setting).is_finding
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        said.seek(0)
        ran = _RAN.findall(said.read().decode(errors="replace"))
    return found, ran[-1] if ran else ""
