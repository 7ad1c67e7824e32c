"""LLVM's C interface in libLLVM.so, which MLIR's wheels bring: parsing, passes by name, and code of a module.

It takes four fifths of the time of the LLVM in llvmlite, with its unoptimised copies of inline functions.
It has code generators for GENERATORS only. Calls hold no lock, Python's included, so threads work in parallel, each on
modules and machines of its own.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from ctypes import byref, c_size_t, c_void_p

from .errors import CodegenError
from .libllvm import calls, taken
from .options import Target

ASSEMBLY, OBJECT = 0, 1
PIC, SMALL = 2, 3
"""LLVM's numbers for kinds of output, and for the relocation and code models."""


class LibraryMachine:
    """A target machine, for one thread at a time. level: 3 or 0. Raises CodegenError for a target that LLVM refuses."""

    def __init__(self, target: Target, level: int) -> None:
        self.calls = call = calls(target.architecture)
        self.triple = target.triple.encode()
        of, said = c_void_p(), c_void_p()
        if call.GetTargetFromTriple(self.triple, byref(of), byref(said)):
            raise CodegenError(
                f"LLVM cannot make code for {target.triple!r}: {taken(call, said)}", remedy="name another"
            )
        names = target.cpu.encode(), target.features.encode()
        self.pointer = call.CreateTargetMachine(of, self.triple, *names, level, PIC, SMALL)
        self.layout = call.CreateTargetDataLayout(self.pointer)
        self.options = call.CreatePassBuilderOptions()
        for name in ("LoopInterleaving", "LoopVectorization", "SLPVectorization", "LoopUnrolling"):
            getattr(call, f"PassBuilderOptionsSet{name}")(self.options, int(level > 0))


class LibraryModule:
    """A module in a context of its own; `close` frees both. Raises CodegenError with LLVM's words for wrong IR."""

    def __init__(self, llvm_ir: str, machine: LibraryMachine) -> None:
        call = machine.calls
        text = llvm_ir.encode()
        self._machine, self._module = machine, c_void_p()
        self._context = call.ContextCreate()
        try:
            said = c_void_p()
            source = call.CreateMemoryBufferWithMemoryRangeCopy(text, len(text), b"<string>")
            refused = call.ParseIRInContext(self._context, source, byref(self._module), byref(said))
            if refused or call.VerifyModule(self._module, 2, byref(said)):
                raise CodegenError(taken(call, said))
            taken(call, said)
            call.SetTarget(self._module, machine.triple)
            call.SetModuleDataLayout(self._module, machine.layout)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Free the module and its context. It must not be used any more."""
        if self._module:
            self._machine.calls.DisposeModule(self._module)
            self._module = c_void_p()
        if self._context:
            self._machine.calls.ContextDispose(self._context)
            self._context = None

    def run(self, passes: str) -> None:
        """Run passes, a list in LLVM's syntax."""
        call = self._machine.calls
        error = call.RunPasses(self._module, passes.encode(), self._machine.pointer, self._machine.options)
        if error:
            said = call.GetErrorMessage(error)
            text = ctypes.string_at(said).decode()
            call.DisposeErrorMessage(said)
            raise CodegenError(f"LLVM cannot run the passes: {text}")

    def functions(self) -> Iterator[tuple[str, int]]:
        """(name, number of basic blocks) of each function; declarations have no blocks."""
        call, size = self._machine.calls, c_size_t()
        function = call.GetFirstFunction(self._module)
        while function:
            yield call.GetValueName2(function, byref(size)).decode(), call.CountBasicBlocks(function)
            function = call.GetNextFunction(function)

    def text(self) -> str:
        """The module as LLVM IR."""
        call = self._machine.calls
        return taken(call, c_void_p(call.PrintModuleToString(self._module)))

    def code(self, kind: int = OBJECT) -> bytes:
        """An object file, or assembly. The module is not to be used after that: LLVM prepares it for its own use."""
        call, said, made = self._machine.calls, c_void_p(), c_void_p()
        machine = self._machine.pointer
        if call.TargetMachineEmitToMemoryBuffer(machine, self._module, kind, byref(said), byref(made)):
            raise CodegenError(f"LLVM cannot emit code: {taken(call, said)}")
        try:
            return ctypes.string_at(call.GetBufferStart(made), call.GetBufferSize(made))
        finally:
            call.DisposeMemoryBuffer(made)
