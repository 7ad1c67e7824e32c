"""A module in the LLVM that makes its target's code: libLLVM.so, or llvmlite's where that has no generator.

Both are of one major version (ADR 2); which one it is depends on the architecture only.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Protocol, get_args

import llvmlite

from . import pass_list
from .errors import CodegenError
from .libllvm import GENERATORS, library_version
from .library_llvm import ASSEMBLY, LibraryMachine, LibraryModule
from .options import OPTIMIZED, EmitOptions, Target
from .refusals import refuse_assembly, wrong_ir


class OpenModule(Protocol):
    """A module in LLVM's memory."""

    def optimize(self) -> None:
        """Run all passes for the target."""

    def functions(self) -> Iterator[tuple[str, int]]:
        """(name, number of basic blocks) of each function; declarations have no blocks."""

    def text(self) -> str:
        """LLVM IR."""

    def object(self) -> bytes:
        """An object file. It is the last thing that a module is asked for, as is `assembly`."""

    def assembly(self) -> str: ...


LITTLE = 1
"""LLVM's level for straight lines of calls, with the same registers as at its highest."""

Passes = Literal["none", "little", "glue", "lean", "inline", "all"]
"""How much LLVM does for a module."""

LEVELS: dict[Passes, int] = dict.fromkeys(get_args(Passes), OPTIMIZED)
LEVELS.update({"none": 0, "little": LITTLE, "glue": 0})
"""LLVM's level of a target machine. At level 0 registers are allocated as at the others (library_llvm.py)."""


def amount(options: EmitOptions) -> Passes:
    """What the options ask LLVM to do."""
    if not options.optimized:
        return "none"
    if options.straight or options.target.architecture not in GLUED:
        return "little" if options.straight else "all"
    return "glue" if options.glue else "lean" if options.lean else "all"


GLUED = frozenset({"x86_64"})
"""Architectures on which level 0 selects the instructions of vectors well. Others treat all kernels alike."""


@functools.cache
def versions() -> str:
    """The versions of both LLVMs, a part of every cache key. Neither is loaded."""
    return f"llvmlite {llvmlite.__version__}, {library_version()}"


@contextmanager
def open_module(llvm_ir: str, target: Target, passes: Passes) -> Iterator[OpenModule]:
    """Parse and verify a module for one thread. Raises CodegenError."""
    refuse_assembly(llvm_ir)
    if target.architecture not in GENERATORS:
        from .lite_module import lite_module  # loads LLVM once more

        with lite_module(llvm_ir, target, passes != "none") as lite:
            yield lite
        return
    level = LEVELS[passes]
    idle = _IDLE.setdefault((target, level), [])
    try:
        machine = idle.pop()
    except IndexError:
        machine = LibraryMachine(target, level)
    try:
        try:
            module = LibraryModule(llvm_ir, machine)
        except (CodegenError, UnicodeEncodeError) as error:
            raise wrong_ir(str(error)) from error
        try:
            yield _Shared(module, passes_of(target, passes))
        finally:
            module.close()
    finally:
        idle.append(machine)


_IDLE: dict[tuple[Target, int], list[LibraryMachine]] = {}


def passes_of(target: Target, passes: Passes) -> str:
    """The passes of a module in LLVM's syntax. Processors that nobody measures here have those of -O3."""
    known = {"little": pass_list.LITTLE, "glue": pass_list.GLUE, "lean": pass_list.LEAN, "inline": pass_list.INLINE}
    if passes == "all" and target.architecture == "x86_64":
        return pass_list.KERNELS
    return known.get(passes) or f"default<O{LEVELS[passes]}>"


class _Shared:
    """A module in libLLVM.so."""

    def __init__(self, module: LibraryModule, passes: str) -> None:
        self._module, self._passes = module, passes
        self.functions, self.text = module.functions, module.text

    def optimize(self) -> None:
        self._module.run(self._passes)

    def object(self) -> bytes:
        return self._module.code()

    def assembly(self) -> str:
        return self._module.code(ASSEMBLY).decode()
