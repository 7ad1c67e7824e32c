"""A module in the LLVM of llvmlite, for architectures that libLLVM.so has no code generator for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .llvm import Compiler, compiler, parse
from .options import Target
from .unlocked import emit_object, freed, run_passes


@contextmanager
def lite_module(llvm_ir: str, target: Target, optimized: bool) -> Iterator[LiteModule]:
    """Parse and verify a module for one thread. Raises CodegenError."""
    with compiler(target, optimized) as lent:
        yield LiteModule(llvm_ir, target, lent)


class LiteModule:
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
