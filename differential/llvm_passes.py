"""Finds the first pass of LLVM's optimiser after which a case goes wrong.

LLVM's option -opt-bisect-limit=N runs only the first N passes of a compilation. N is halved; each run has a process of
its own.
"""

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
    """The first pass with which the stacks disagree, and the function that it ran on, such as `instcombine on f`.

    Empty if the case agrees with MOST passes, or if its process gives no answer. begin: as of Child. stacks: two, which
    agree where LLVM's optimiser does not run. limit_s: seconds for each run.
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
    """Run a case with the first `limit` of LLVM's passes: (whether the outcome is a finding, the last pass that ran).

    It needs a process of its own: LLVM takes the option only once, and prints the passes that run on standard error.
    """
    from ..codegen.libllvm import set_option

    with tempfile.TemporaryFile() as said:
        kept = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            set_option(f"-opt-bisect-limit={limit}")
            found = outcome(module, inputs, tuple(stacks), setting).is_finding
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        said.seek(0)
        ran = _RAN.findall(said.read().decode(errors="replace"))
    return found, ran[-1] if ran else ""
