"""The pinned LLVM (llvmlite): start-up, target machines, and a parser that refuses IR that would abort the process."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import llvmlite
import llvmlite.binding as llvm

from ..hlo.records import dataclass
from .errors import CodegenError
from .options import OPTIMIZED, Target
from .refusals import refuse_assembly, wrong_ir

LLVM_VERSION = ".".join(map(str, llvm.llvm_version_info))
VERSIONS = f"llvmlite {llvmlite.__version__}, LLVM {LLVM_VERSION}"
"""The versions of llvmlite and LLVM, a part of every cache key."""


@functools.cache
def start() -> None:
    """Register LLVM's targets. Later calls do nothing."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


BUILDER_MODULES = 32
"""Modules per pass builder. llvmlite frees neither a builder's callbacks (1.5 KB) nor, in it, those that each run adds
(32 bytes); so builders are kept, but not for ever. See docs/findings.md.
"""


@dataclass(eq=False, slots=True)
class Compiler:
    """What one thread needs to compile for a target: a target machine, and a pass builder on it. level: 3 or 0."""

    machine: llvm.TargetMachine
    level: int = OPTIMIZED
    _builder: llvm.PassBuilder | None = None
    _modules: int = 0

    def pass_builder(self) -> llvm.PassBuilder:
        """The pass builder for the next module: O3 with all vectorizers, or O0."""
        if self._builder is None or self._modules >= BUILDER_MODULES:
            self._builder, self._modules = _make_builder(self.machine, self.level), 0
        self._modules += 1
        return self._builder


_IDLE: dict[tuple[Target, int], list[Compiler]] = {}


@contextmanager
def compiler(target: Target, optimized: bool = True) -> Iterator[Compiler]:
    """Lend a compiler to one thread at a time. Returned compilers are reused. optimized: as of EmitOptions."""
    level = OPTIMIZED if optimized else 0
    idle = _IDLE.setdefault((target, level), [])
    try:
        lent = idle.pop()
    except IndexError:
        lent = Compiler(make_machine(target, level=level), level)
    try:
        yield lent
    finally:
        idle.append(lent)


@contextmanager
def target_machine(target: Target) -> Iterator[llvm.TargetMachine]:
    """Lend a target machine to one thread at a time."""
    with compiler(target) as lent:
        yield lent.machine


def _make_builder(machine: llvm.TargetMachine, level: int) -> llvm.PassBuilder:
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.slp_vectorization = tuning.loop_vectorization = level > 0
    tuning.loop_interleaving = tuning.loop_unrolling = level > 0
    return llvm.create_pass_builder(machine, tuning)


ABI = {"riscv64": "lp64d"}
"""Architecture → the ABI of its Linux, where LLVM's default is another: floats travel in registers of floats."""


def make_machine(target: Target, relocation: str = "pic", level: int = OPTIMIZED) -> llvm.TargetMachine:
    """A new target machine, small code model. relocation: LLVM's model, 'pic' or 'static'. level: of optimisation."""
    start()
    abi = ABI.get(target.architecture, "")
    try:
        return llvm.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu, features=target.features, opt=level, reloc=relocation, codemodel="small", abiname=abi
        )
    except RuntimeError as error:
        raise CodegenError(
            f"LLVM cannot make code for {target.triple!r}: {error}".strip(),
            remedy=f"use a target triple that {VERSIONS} was built with",
        ) from error


_CONTEXTS: dict[int, llvm.ContextRef] = {}
"""The contexts of modules that LLVM has not freed. The garbage collector calls the finalizers of a cycle in any order,
and a module must be freed before its context: so contexts are never part of a cycle. An error's traceback makes one.
"""
_numbers = itertools.count()


class Module(llvm.ModuleRef):
    """A module that keeps its context alive until it is freed, or has become part of another one."""

    _number = -1

    def detach(self) -> None:
        super().detach()
        _CONTEXTS.pop(self._number, None)


def parse(llvm_ir: str, context: llvm.ContextRef | None = None, *, assembly: bool = False) -> llvm.ModuleRef:
    """Parse and verify LLVM IR text; without a context in a new one, so that threads may work in parallel.

    assembly: it may have inline assembly, of a library that was linked to it. Raises CodegenError.
    """
    if not assembly:
        refuse_assembly(llvm_ir)
    start()
    try:
        context = context or llvm.create_context()
        number = next(_numbers)
        _CONTEXTS[number] = context
        try:
            module = llvm.parse_assembly(llvm_ir, context=context)
            module.__class__, module._number = Module, number
        except BaseException:
            del _CONTEXTS[number]
            raise
        module.verify()
    except (RuntimeError, UnicodeEncodeError) as error:
        raise wrong_ir(str(error)) from error
    return module


def parse_bitcode(data: bytes, context: llvm.ContextRef) -> llvm.ModuleRef:
    """A module of bitcode, to be linked into one of the context. Raises CodegenError."""
    start()
    try:
        return llvm.parse_bitcode(data, context=context)
    except RuntimeError as error:
        raise wrong_ir(str(error)) from error
