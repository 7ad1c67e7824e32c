"""Programs on platforms, each with its own compiler, so that their results can be compared: as XLA's run_hlo_module."""

from __future__ import annotations

import time

from ..backends.base import BackendError, CompileOptions
from ..backends.registry import platform, platforms
from ..formats.program import Program
from ..hlo.errors import InputError
from ..hlo.verify.verifier import verify
from .choose import emit_for
from .flags import LEDGER, OLD, Flags
from .names import OTHERS, STACK_NAMES, WITH_ROWS, XLA_STACKS
from .prepared import Prepared

HOST_STACKS = frozenset({"evaluator", "optimized", "xla", *STACK_NAMES, *OTHERS, *XLA_STACKS})
"""Stacks whose results are those of this machine's processor, with XLA:CPU's rules."""


def parse_platforms(text: str) -> tuple[str, ...]:
    """Names of platforms, comma-separated. Raises InputError for a repeated name, BackendError for one that is unknown
    or has no device here.
    """
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if len(set(names)) != len(names) or len(names) < 2:
        known = ", ".join(platforms())
        raise InputError(f"{text!r} does not name two different platforms or more", remedy=f"choose from {known}")
    return tuple(map(parse_platform, names))


def parse_platform(name: str) -> str:
    """The name of a platform that has a device here. Raises BackendError for another."""
    why = platform(name).unavailable()
    if why is not None:
        raise BackendError(f"platform {name}: {why}", remedy="testbed platforms lists what there is")
    return name


def keeps_subnormals(stack: str) -> bool:
    """Whether a stack (`legacy@NAME`) or a platform computes with subnormals, which XLA:CPU takes for zeros."""
    if stack in HOST_STACKS:
        return False  # the others are looked for among installed packages, which takes milliseconds
    name = stack.rpartition("@")[2]
    return name in platforms() and platform(name).keeps_subnormals


def prepare_on_platform(
    name: str, program: Program, emitters: str | None = None, host_program: str = "auto"
) -> Prepared:
    """Compile a program for a platform. emitters: the stacks of one that has a choice; by default those that the ledger
    says, or legacy where it has no rows of the platform.
    """
    base = LEDGER if name in WITH_ROWS else OLD
    compiler, options = platform(name).compiler(), CompileOptions(host_program=host_program)
    start = time.perf_counter()
    verify(program.module)
    made = compiler.run_hlo_passes(program.module, options)
    executable = compiler.compile(made, emit_for(Flags.parse(emitters or base, base), platform=name), options)
    seconds = time.perf_counter() - start
    executable.close_infeed()  # nobody else could fill it
    return Prepared(executable.execute, seconds, tuple(executable.kernels), executable)
