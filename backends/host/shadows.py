"""Shadow kernels of a program: which requests have one, and what is known of pairs of results that differ."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence

import numpy as np

from ...hlo.records import dataclass, field, replace
from ...hlo.shapes import Shape
from ...planning.allocation import BufferSlice
from ...planning.plan import KernelRequest
from ...thunks.check_log import Findings, Found
from ...thunks.insert_checks import Memory
from ...thunks.kinds import SequentialThunk
from ...thunks.lowering import split_of
from ...thunks.shadow import MOST_PAIRS, Comparison, Kept, Result, Shadow, shadowed
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
    comparisons found a difference, in all. calls: of kernels with a difference, by kernel, in the order of the first.
    mismatches: what is kept of these: the first `limit` of each kernel. bytes: of memory beyond the program's.
    """

    shadowed: tuple[str, ...]
    alone: Mapping[str, str]
    pairs: int
    calls: Mapping[str, int]
    mismatches: tuple[Mismatch, ...]
    bytes: int
    limit: int = MOST_PAIRS

    @property
    def first(self) -> Mismatch | None:
        return self.mismatches[0] if self.mismatches else None


@dataclass(eq=False)
class Shadows:
    """requests: of shadow kernels, by the name of the kernel. alone: kernels without one, with the reason."""

    emitter: Emitter | None
    kernels: Mapping[str, KernelRequest]
    requests: Mapping[str, KernelRequest]
    alone: Mapping[str, str]
    comparisons: Mapping[int, Comparison] = field(default_factory=dict)
    bytes: int = 0
    pairs: int = 0
    calls: Mapping[str, int] = field(default_factory=dict)
    mismatches: tuple[Mismatch, ...] = ()

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
        made, self.comparisons = shadowed(thunks, shadows, memory)
        self.bytes = sum(memory.sizes) - before
        return made

    def take(self, findings: Findings, address: Callable[[int], int]) -> None:
        """Note what a run found. address: of an allocation."""
        self.pairs, counts = len(findings.found), dict[str, int]()
        kept: list[Mismatch] = []
        is_shared_taken = False
        for found in self._calls(findings.found):
            comparison = self.comparisons[found.thunk.id]
            number = counts.get(comparison.symbol, 0)
            counts[comparison.symbol] = number + 1
            free = not is_shared_taken if comparison.shared else number < len(comparison.places)
            if free:
                place = comparison.places[0 if comparison.shared else number]
                kept.append(self._mismatch(comparison.symbol, place, found, address))
                is_shared_taken |= comparison.shared
        self.calls, self.mismatches = counts, tuple(kept)

    def _calls(self, found: Sequence[Found]) -> Iterator[Found]:
        """The first difference of each call of a kernel; ids grow from one result of a call to the next."""
        last: Found | None = None
        for one in found:
            sites = [self.comparisons[f.thunk.id].site for f in (one, last) if f is not None]
            if last is None or len(set(sites)) == 2 or one.thunk.id <= last.thunk.id:
                yield one
            last = one

    def _mismatch(self, symbol: str, kept: Kept, found: Found, address: Callable[[int], int]) -> Mismatch:
        kernel = self.kernels[symbol]

        def array(part: BufferSlice, shape: Shape) -> np.ndarray:
            return _array(view(address(part.allocation) + part.offset, part.size), shape)

        operands = zip(kernel.operands, kernel.instruction.operands, strict=True)
        results = list(zip(kernel.results, kernel.result_shapes, strict=True))
        return Mismatch(
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
        calls = dict(self.calls)
        return Report(tuple(self.requests), self.alone, self.pairs, calls, self.mismatches, self.bytes)


Tolerances = Callable[[KernelRequest], Sequence[tuple[int, int]]]
"""A kernel → steps and scaled (CompareThunk) of each result."""


def exactly(kernel: KernelRequest) -> list[tuple[int, int]]:
    """No tolerance."""
    return [(0, 0)] * len(kernel.results)


def shadows_of(kernels: Sequence[KernelRequest], emit_for: EmitFor) -> Shadows | None:
    """Shadow kernels for what the other stack supports, if anything; None if the flags ask for none."""
    requests, alone, emitter, asked = {}, {}, None, False
    taken = {kernel.name for kernel in kernels}
    for kernel in kernels:
        stack = emit_for(kernel)
        other = stack.shadow
        asked |= other is not None
        if other is None:
            alone[kernel.name] = f"it is a kernel of {stack.name} by the flags"
        elif errors := other.unsupported([kernel]):
            alone[kernel.name] = errors[0].message
        else:
            emitter = other
            requests[kernel.name] = replace(kernel, name=_free(kernel.name + SUFFIX, taken))
    return Shadows(emitter, {k.name: k for k in kernels}, requests, alone) if asked else None


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
