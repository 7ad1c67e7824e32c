"""A module in the LLVM that makes its target's code: libLLVM.so, or llvmlite's where that has no generator.

Both are of one major version (ADR 2); which one it is depends on the architecture only.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Protocol

from . import pass_list
from .errors import CodegenError
from .library_llvm import ASSEMBLY, GENERATORS, LibraryMachine, LibraryModule, library_version
from .llvm import OPTIMIZED, VERSIONS, Compiler, compiler, parse, refuse_assembly, wrong_ir
from .options import EmitOptions, Target
from .unlocked import emit_object, freed, run_passes


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

Passes = Literal["none", "little", "glue", "lean", "all"]
"""How much LLVM does for a module."""

LEVELS: dict[Passes, int] = {"none": 0, "little": LITTLE, "glue": 0, "lean": OPTIMIZED, "all": OPTIMIZED}
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
    """The versions of both LLVMs, a part of every cache key."""
    return f"{VERSIONS}, {library_version()}"


@contextmanager
def open_module(llvm_ir: str, target: Target, passes: Passes) -> Iterator[OpenModule]:
    """Parse and verify a module for one thread. Raises CodegenError."""
    refuse_assembly(llvm_ir)
    if target.architecture not in GENERATORS:
        with compiler(target, passes != "none") as lent:
            yield _Lite(llvm_ir, target, lent)
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
    known = {"little": pass_list.LITTLE, "glue": pass_list.GLUE, "lean": pass_list.GLUE}
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


class _Lite:
    """A module in llvmlite."""

    def __init__(self, llvm_ir: str, target: Target, lent: Compiler) -> None:
        self._module, self._lent = parse(llvm_ir), lent
        self._module.triple, self._module.data_layout = target.triple, str(lent.machine.target_data)

    def optimize(self) -> None:
        builder = self._lent.pass_builder()
        with freed(builder.getModulePassManager()) as manager:
            run_passes(manager, self._module, builder)

    def functions(self) -> Iterator[tuple[str, int]]:
        for function in self._module.functions:
            yield function.name, 0 if function.is_declaration else sum(1 for _ in function.blocks)

    def text(self) -> str:
        return str(self._module)

    def object(self) -> bytes:
        return emit_object(self._lent.machine, self._module)

    def assembly(self) -> str:
        return self._lent.machine.emit_assembly(self._module)
