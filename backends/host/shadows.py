"""Shadow kernels of a program: which requests have one, and what is known of the first pair of results that differ."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...hlo.shapes import Shape
from ...planning.allocation import BufferSlice
from ...planning.plan import KernelRequest
from ...thunks.check_log import Findings
from ...thunks.insert_checks import Memory
from ...thunks.kinds import SequentialThunk
from ...thunks.lowering import split_of
from ...thunks.shadow import Kept, Result, Shadow, shadowed
from ..base import EmitFor, Emitter
from .addresses import view

SUFFIX = "_shadow"
"""Behind the name of a kernel: that of its shadow."""


@dataclass(frozen=True, eq=False)
class Mismatch:
    """A kernel whose results differ from its shadow's. operands, ours, theirs: arrays of the instruction, in order; an
    operand that is not read is zeros.

    element: the first that differs, in the order of memory; count: how many do, in the first result that has one.
    """

    kernel: KernelRequest
    operands: tuple[np.ndarray, ...]
    ours: tuple[np.ndarray, ...]
    theirs: tuple[np.ndarray, ...]
    element: int
    count: int


@dataclass(frozen=True, eq=False)
class Report:
    """Of the last run. shadowed: kernels that ran on both stacks. alone: the others, with the reason. pairs: how many
    comparisons found a difference, in all. first: what the first one found. bytes: of memory beyond the program's.
    """

    shadowed: tuple[str, ...]
    alone: Mapping[str, str]
    pairs: int
    first: Mismatch | None
    bytes: int


@dataclass(eq=False)
class Shadows:
    """requests: of shadow kernels, by the name of the kernel. alone: kernels without one, with the reason."""

    emitter: Emitter | None
    kernels: Mapping[str, KernelRequest]
    requests: Mapping[str, KernelRequest]
    alone: Mapping[str, str]
    kept: Mapping[int, Kept] = field(default_factory=dict)
    bytes: int = 0
    pairs: int = 0
    first: Mismatch | None = None

    def rewrite(
        self, thunks: SequentialThunk, ranged: frozenset[str], tolerances: Tolerances, memory: Memory
    ) -> SequentialThunk:
        """The thunks with shadow kernels. ranged: names of kernels that take ranges."""
        shadows = {}
        for name, request in self.requests.items():
            split = split_of(request) if request.name in ranged else None
            updated = frozenset(request.results) & frozenset(request.operands) - {-1}
            shadows[name] = Shadow(request.name, tuple(_results(request, tolerances)), updated, split)
        before = sum(memory.sizes)
        made, self.kept = shadowed(thunks, shadows, memory)
        self.bytes = sum(memory.sizes) - before
        return made

    def take(self, findings: Findings, address: Callable[[int], int]) -> None:
        """Note what a run found. address: of an allocation."""
        self.pairs, self.first = len(findings.found), None
        if not findings.found:
            return
        found = findings.found[0]
        kept = self.kept[found.thunk.id]
        kernel = self.kernels[kept.symbol]

        def array(part: BufferSlice, shape: Shape) -> np.ndarray:
            return _array(view(address(part.allocation) + part.offset, part.size), shape)

        operands = zip(kernel.operands, kernel.instruction.operands, strict=True)
        results = list(zip(kernel.results, kernel.result_shapes, strict=True))
        self.first = Mismatch(
            kernel,
            tuple(
                array(kept.before[n], o.shape) if n >= 0 else np.zeros(o.shape.dims, o.shape.dtype.numpy)
                for n, o in operands
            ),
            tuple(array(kept.ours[n], shape) for n, shape in results if n >= 0),
            tuple(array(kept.theirs[n], shape) for n, shape in results if n >= 0),
            found.number,
            found.second,
        )

    def report(self) -> Report:
        return Report(tuple(self.requests), self.alone, self.pairs, self.first, self.bytes)


Tolerances = Callable[[KernelRequest], Sequence[tuple[int, int]]]
"""A kernel → steps and scaled (CompareThunk) of each result."""


def exactly(kernel: KernelRequest) -> list[tuple[int, int]]:
    """No tolerance."""
    return [(0, 0)] * len(kernel.results)


def shadows_of(kernels: Sequence[KernelRequest], emit_for: EmitFor) -> Shadows | None:
    """Shadow kernels for what the other stack supports; None if the flags ask for none."""
    requests, alone, emitter = {}, {}, None
    taken = {kernel.name for kernel in kernels}
    for kernel in kernels:
        stack = emit_for(kernel)
        other = stack.shadow
        if other is None:
            alone[kernel.name] = f"it is a kernel of {stack.name} by the flags"
        elif errors := other.unsupported([kernel]):
            alone[kernel.name] = errors[0].message
        else:
            emitter = other
            requests[kernel.name] = replace(kernel, name=_free(kernel.name + SUFFIX, taken))
    return Shadows(emitter, {k.name: k for k in kernels}, requests, alone) if emitter is not None else None


def _free(name: str, taken: Container[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _results(request: KernelRequest, tolerances: Tolerances) -> list[Result]:
    allowed = tolerances(request)
    rows = zip(request.results, request.result_shapes, allowed, strict=True)
    return [Result(n, shape.dtype.value, steps, scaled) for n, shape, (steps, scaled) in rows if n >= 0]


def _array(data: np.ndarray, shape: Shape) -> np.ndarray:
    """A copy of the logical array of bytes in the shape's layout."""
    order = shape.minor_to_major[::-1]
    physical = data.copy().view(shape.dtype.numpy).reshape([shape.dims[d] for d in order])
    return np.ascontiguousarray(np.transpose(physical, np.argsort(order)) if order else physical.reshape(()))
