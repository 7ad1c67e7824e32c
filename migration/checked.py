"""Programs in the checking mode of the host: kernels run with junk around their arguments, on code of both kinds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..backends.base import CompileOptions, DebugKind, MemoryFault
from ..formats.program import Program
from ..hlo.errors import InputError
from .compile import compile_program
from .flags import OTHERS, STACK_NAMES, XLA_STACKS, Flags
from .prepared import Prepared

if TYPE_CHECKING:
    from ..backends.host.executable import HostExecutable

NOT_COMPILED = "evaluator", "optimized", "xla"
"""Stacks whose kernels are not ours, or that have none: they run as ever."""


def prepare_checked(program: Program, stack: str, emitters: str | None = None, host_program: str = "auto") -> Prepared:
    """Compile a program for the checking mode. A run raises MemoryFault where a kernel goes wrong.

    Each run is one of the code that LLVM optimised, which gives the results, and one of the code that it did not: to
    the optimiser, a read of what was never set is no read. Raises InputError for a stack that is not of the host.
    """
    if stack not in (*STACK_NAMES, *OTHERS, *XLA_STACKS) and "@" in stack:
        remedy = "leave out --debug memory, or the stack"
        raise InputError(f"{stack}: memory is checked on the host only", remedy=remedy)
    start = time.perf_counter()
    usual = CompileOptions(debug=DebugKind.MEMORY, host_program=host_program)
    flags = Flags.parse(emitters or stack)
    first = compile_program(program, flags, usual)
    plain = compile_program(program, flags, replace(usual, emit=replace(usual.emit, optimized=False)))
    seconds = time.perf_counter() - start
    first.close_infeed()  # nobody else could fill it
    plain.close_infeed()

    done: list[Sequence[np.ndarray]] = []

    def run(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        results = first.execute(inputs)
        if not any(inputs is before for before in done):  # runs are repeated for their time
            run_plain(plain, inputs)
            done[:] = [inputs]
        return results

    return Prepared(run, seconds, tuple(first.kernels), first)


def run_plain(executable: HostExecutable, inputs: Sequence[np.ndarray]) -> None:
    """Run code that LLVM did not optimise, in a child process: what reads far beside its memory ends that."""
    from ..backends.host.handler_checks import HandlerError, run_checked

    try:
        run_checked(executable, inputs)
    except MemoryFault as error:
        error.message = f"{_PLAIN}, {error.message}"
        raise
    except HandlerError as error:
        remedy = "see its IR with ./testbed stages; the stack that emitted it is at fault"
        raise MemoryFault("", error.instruction, f"{_PLAIN}, the kernel of {error.message}", remedy) from None


_PLAIN = "without LLVM's optimiser"
