"""A compiled program on the host: checks inputs, gives them and the results their places, runs the thunks."""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ...codegen.cache import ObjectCache
from ...codegen.load import LoadedCode
from ...hlo.plan import AllocationKind, Plan
from ...thunks import SequentialThunk
from ...thunks.executor import Executor, Frame, Observer
from ..base import Executable
from .donation import place_aliased
from .leaves import Leaf
from .memory import POOL, address_of
from .signature import Signature

IDLE_CONTEXTS = 8
"""Arenas that an executable keeps for executions at the same time."""


class HostExecutable(Executable):
    """Threads may execute it at once: each run has an arena of its own."""

    def __init__(
        self,
        plan: Plan,
        thunks: SequentialThunk,
        code: LoadedCode,
        kernels: tuple[tuple[str, str], ...],
        timings: Mapping[str, float],
        stages: tuple[tuple[str, str], ...] = (),
        cache: ObjectCache | None = None,
        flush_subnormals: bool = True,
    ):
        self.plan, self.thunks, self.code = plan, thunks, code
        self.kernels, self.timings, self.stages = kernels, timings, stages
        self._signature = Signature.of(plan)
        self._constants = _constant_blocks(plan)
        self._executor = Executor(thunks, code.address, self._signature.variable, cache, flush_subnormals)
        self._contexts: list[_Context] = []

    @property
    def inputs(self) -> tuple[Leaf, ...]:
        return self._signature.inputs

    @property
    def outputs(self) -> tuple[Leaf, ...]:
        return self._signature.outputs

    def execute(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[np.ndarray | None] | None = None,
        observer: Observer | None = None,
        donated: Collection[int] = (),
    ) -> list[np.ndarray]:
        """Run once. outputs: arrays that take the results, None for a new one; they must not overlap anything.

        donated: numbers of inputs that may be overwritten; where the module aliases one to a result, it becomes that.

        New results lie at 64-byte boundaries and own their memory; one whose layout is not row-major is a strided
        view. observer: sees each thunk (slower).
        """
        placed = self._signature.place_inputs(inputs)  # holds the arrays that the kernels read
        results, addresses = self._signature.place_outputs(outputs, placed)
        if self._signature.aliased or donated:
            place_aliased(self._signature, inputs, donated, placed, results, addresses, outputs)
        context = self._contexts.pop() if self._contexts else _Context(self._signature, self._constants, self.plan)
        context.run(self._executor, [address for address, _ in placed] + addresses, observer)
        for number, slice in self._signature.copied:
            ctypes.memmove(addresses[number], context.address(slice.allocation) + slice.offset, slice.size)
        if len(self._contexts) < IDLE_CONTEXTS:
            self._contexts.append(context)
        return results


class _Context:
    """What one run needs for itself: the arena, the allocations' addresses, and the executor's frame on them."""

    def __init__(self, signature: Signature, constants: Mapping[int, np.ndarray], plan: Plan):
        allocations = plan.assignment.allocations
        arena = {a.index: POOL.allocate(a.size) for a in allocations if a.kind is AllocationKind.TEMPORARY}
        self._blocks = {**constants, **arena}
        self._variable = list(signature.variable)
        self._bases = np.zeros(len(allocations) + 1, np.uint64)  # the last for leaves that no kernel touches
        for index, block in self._blocks.items():
            self._bases[index] = address_of(block)
        self._frame: Frame | None = None

    def run(self, executor: Executor, addresses: list[int], observer: Observer | None) -> None:
        self._bases[self._variable] = addresses
        if observer is not None:
            executor.frame(self._bases, observer).run()
            return
        if self._frame is None:
            self._frame = executor.frame(self._bases)
        else:
            self._frame.rebind(self._bases)
        self._frame.run()

    def address(self, allocation: int) -> int:
        return int(self._bases[allocation])


def _constant_blocks(plan: Plan) -> dict[int, np.ndarray]:
    """Memory of the constants, filled in the layout of their shape."""
    blocks = {}
    for a in plan.assignment.allocations:
        if a.kind is AllocationKind.CONSTANT:
            assert a.literal is not None
            leaf = Leaf("constant", a.index, a.shape or a.literal.shape, a.alignment)
            physical = leaf.allocate_physical()
            np.copyto(leaf.logical(physical), a.literal.array)
            blocks[a.index] = physical
    return blocks
