"""Compiles a host program: its MLIR module (host_module.py) becomes an object. What runs it is host_program.py."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence

from ..codegen import inline
from ..codegen.cache import ObjectCache, cache_key
from ..codegen.float_mode import float_mode
from ..codegen.inline import Inlinable, build_with_kernels, inlinable, prepared
from ..codegen.mlir import bytecode_of, lower_text, mlir_version
from ..codegen.open_module import versions
from ..codegen.optimize import CompiledObject, build_object
from ..codegen.options import SETTINGS, EmitOptions
from ..hlo.records import dataclass, replace
from . import host_locals
from .check_code import CHECK_IR
from .checks import FUNCTIONS
from .events import PROFILE_IR
from .host_locals import STATE_REGISTERS, Registers
from .host_module import HostModule, host_module
from .kinds import SequentialThunk

PASSES = (
    "builtin.module(convert-scf-to-cf,convert-index-to-llvm,convert-func-to-llvm,convert-arith-to-llvm,"
    "convert-cf-to-llvm,reconcile-unrealized-casts)"
)


def module_of(
    root: SequentialThunk,
    options: EmitOptions,
    seconds: Mapping[str, float] | None = None,
    small: Container[str] = frozenset(),
) -> HostModule:
    """The host program of thunks for a target. seconds: as in `host_module`. small: kernels that are inlined."""
    architecture, width = options.target.architecture, options.target.vector_bits // 8
    value = float_mode(architecture, not options.strict)
    mode = None if value is None else (architecture, value)
    return host_module(root, mode, seconds, registers=Registers(small, STATE_REGISTERS[width >= 64], width))


def build_host(module: HostModule, options: EmitOptions, cache: ObjectCache | None) -> CompiledObject:
    """The object file of a host program. MLIR is imported only if the cache does not have it."""
    chosen = effort(module, options)
    return _cached(module, (), chosen, cache, lambda: build_object(host_ir(module), chosen, cache=None))


def effort(module: HostModule, options: EmitOptions) -> EmitOptions:
    """The options that a host program is compiled with: of a straight line of calls LLVM makes the same code at half
    the cost. Without registers it would be made in a tenth, but 1,000 calls of small kernels took 12 us for 8.
    """
    return options if module.loops else replace(options, straight=True)


@dataclass(frozen=True, slots=True)
class Inlining:
    """A host program, and LLVM IR of kernels that become a part of it where they are small. root, seconds: of thunks,
    as for `module_of`. module: it without any of them.
    """

    root: SequentialThunk
    seconds: Mapping[str, float]
    module: HostModule
    kernels: tuple[str, ...]

    def build(
        self,
        options: EmitOptions,
        cache: ObjectCache | None,
        optimized: Callable[[], Sequence[str] | None] | None = None,
    ) -> CompiledObject:
        """As `build_host`. The key is that of the module without small kernels: which are small is found on a miss.
        optimized: gives the IR of the kernels after all passes, if somebody has it.
        """

        def make() -> CompiledObject:
            module, kernels = self.prepare(options, optimized() if optimized is not None else None)
            return build_with_kernels(host_ir(module), kernels, options)

        return _cached(self.module, self.kernels, options, cache, make)

    def prepare(
        self, options: EmitOptions, optimized: Sequence[str] | None = None
    ) -> tuple[HostModule, list[Inlinable]]:
        """The module that knows which kernels are small, and these."""
        kernels = inlinable(self.kernels, options) if optimized is None else prepared(optimized)
        small = frozenset[str]().union(*(kernel.small for kernel in kernels))
        return module_of(self.root, options, self.seconds, small), kernels


def _cached(
    module: HostModule,
    kernels: Sequence[str],
    options: EmitOptions,
    cache: ObjectCache | None,
    make: Callable[[], CompiledObject],
) -> CompiledObject:
    tools = (PASSES, PROFILE_IR, CHECK_IR, mlir_version(), versions(), SETTINGS, inline.SETTINGS, host_locals.SETTINGS)
    key = cache_key(
        module.text,
        *kernels,
        repr(options.target),
        repr(options.strict),
        repr(options.optimized),
        repr(options.straight),
        *tools,
    )
    found = cache.read(key) if cache is not None else None
    if found is not None:
        return CompiledObject(found, 0.0, 0.0, cached=True)
    built = make()
    if cache is not None:
        cache.write(key, built.data)
    return built


def host_bytecode(text: str, cache: ObjectCache | None) -> bytes:
    """The text of a host module as MLIR's bytecode. MLIR is imported only if the cache does not have it."""
    key = cache_key("bytecode", text, mlir_version())
    found = cache.read(key) if cache is not None else None
    if found is None:
        found = bytecode_of(text)
        if cache is not None:
            cache.write(key, found)
    return found


def host_ir(module: HostModule) -> str:
    """The LLVM IR of a host program."""
    text = lower_text(module.text, PASSES)
    if not module.notes_events:
        return text
    text = text.replace("declare void @testbed_profile(ptr, ptr)\n", PROFILE_IR)
    names = "|".join(FUNCTIONS)
    whole, found = re.subn(rf"^declare void @({names})\([ptr, ]*\)\n", "", text, flags=re.MULTILINE)
    return whole + CHECK_IR if found else text
