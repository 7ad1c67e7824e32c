"""The evaluator as a back end. It is slow, because it generates no code, but simple, and has every role of its own."""

from __future__ import annotations

from ...formats.text.parser import parse_module
from ...hlo.errors import TestbedError
from ...hlo.ir import Module
from ...hlo.verify.verifier import verify
from ..base import BackendError, CompileOptions, Compiler, EmitFor, InputError, Platform, made_once
from ..device import Capability
from ..transfers import GenericTransferManager
from .device import InterpreterStreamExecutor
from .executable import InterpreterExecutable, read_serialized

DEVICES = 4
"""Devices that can be had at once; they cost nothing until they are used."""


class InterpreterCompiler(Compiler[Module]):
    platform_name = "interpreter"

    def run_hlo_passes(self, module: Module, options: CompileOptions) -> Module:
        verify(module)
        return module

    def compile(self, program: Module, emit_for: EmitFor | None, options: CompileOptions) -> InterpreterExecutable:
        """Wrap the module. `emit_for` is not used: the evaluator runs every opcode. Raises BackendError for checks."""
        if options.debug:
            raise BackendError(f"platform {self.platform_name} has no checks in programs", remedy="use the host")
        return InterpreterExecutable(program, options.devices)

    def load_executable(self, data: bytes, key: bytes | None = None) -> InterpreterExecutable:
        try:
            module = parse_module(read_serialized(data, key), "<program>")
            verify(module)
        except InputError:
            raise
        except TestbedError as error:
            raise InputError(f"the program cannot be read: {error.message}", remedy=error.remedy) from None
        return InterpreterExecutable(module)


class InterpreterTransferManager(GenericTransferManager):
    pass


class InterpreterPlatform(Platform):
    name = "interpreter"
    capabilities = frozenset(Capability) - {Capability.AHEAD_OF_TIME}

    def visible_device_count(self) -> int:
        return DEVICES

    def executor(self, ordinal: int = 0) -> InterpreterStreamExecutor:
        self.check_ordinal(ordinal)
        return self._executors(ordinal)

    @made_once
    def _executors(self, ordinal: int) -> InterpreterStreamExecutor:
        return InterpreterStreamExecutor(self, ordinal)

    def compiler(self) -> InterpreterCompiler:
        return InterpreterCompiler()

    def transfer_manager(self) -> InterpreterTransferManager:
        return InterpreterTransferManager(self.name)
