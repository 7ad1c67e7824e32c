"""The evaluator as a back end. It is slow, because it generates no code, but simple: a template for new back ends."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from ...evaluator.evaluator import evaluate
from ...hlo.errors import InputError
from ...hlo.ir import Module
from ...hlo.verify.verifier import verify
from ..base import CompileOptions, Compiler, EmitFor, Executable, Platform
from ..host.platform import HostStreamExecutor, HostTransferManager


class InterpreterExecutable(Executable):
    """A module that the evaluator runs."""

    def __init__(self, module: Module):
        self.module = self.program = module

    def execute(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[np.ndarray | None] | None = None,
        *,
        donated: Collection[int] = (),
    ) -> list[np.ndarray]:
        results = evaluate(self.module, [np.asarray(x) for x in inputs])
        if outputs is None:
            return results
        if len(outputs) != len(results):
            raise InputError(f"the program returns {len(results)} outputs, given {len(outputs)} arrays for them")
        bounds = [s.dims for _, s in self.module.result_shape.leaves() if s.is_array]
        given = enumerate(zip(outputs, results, bounds, strict=True))
        return [r if o is None else _written(o, r, bound, n) for n, (o, r, bound) in given]


def _written(output: np.ndarray, result: np.ndarray, bound: tuple[int, ...], number: int) -> np.ndarray:
    """Copy the result into the caller's array. Returns the part of the array that holds it."""
    if output.dtype != result.dtype or output.shape != bound:
        raise InputError(
            f"output {number}: expected {result.dtype}{list(bound)}, given {output.dtype}{list(output.shape)}",
            remedy="give an array of that dtype and shape",
        )
    part = output[tuple(slice(0, n) for n in result.shape)]
    part[...] = result
    return output if part.shape == bound else np.ascontiguousarray(part)


class InterpreterCompiler(Compiler[Module]):
    def run_hlo_passes(self, module: Module, options: CompileOptions) -> Module:
        verify(module)
        return module

    def compile(self, program: Module, emit_for: EmitFor | None, options: CompileOptions) -> InterpreterExecutable:
        """Wrap the module. `emit_for` is not used: the evaluator runs every opcode."""
        return InterpreterExecutable(program)


class InterpreterPlatform(Platform):
    name = "interpreter"

    def visible_device_count(self) -> int:
        return 1

    def executor(self, ordinal: int = 0) -> HostStreamExecutor:
        self.check_ordinal(ordinal)
        return HostStreamExecutor()

    def compiler(self) -> InterpreterCompiler:
        return InterpreterCompiler()

    def transfer_manager(self) -> HostTransferManager:
        return HostTransferManager()
