"""A whole program over a field: its Plan's steps on each stack, against the planned module and the source module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...backends.base import CompileOptions
from ...backends.host.compiler import HostCompiler
from ...codegen.errors import CodegenError
from ...codegen.field.element import constants, emitting
from ...codegen.options import EmitOptions, Target
from ...evaluator.evaluator import evaluate
from ...evaluator.field import field_rules
from ...hlo.errors import UnsupportedError
from ...hlo.ir import Module
from ...hlo.library.calls import LIBRARY
from ...hlo.verify.verifier import verify
from ...migration.choose import emit_for
from ...migration.flags import Flags
from ...passes.pipeline import PassRecord, optimize
from ...planning.plan import (
    AllocationKind,
    BufferSlice,
    ConditionalStep,
    CopyStep,
    KernelRequest,
    KernelStep,
    Plan,
    Step,
    WhileStep,
)
from .check import HLO, OF_LIBRARY, STACKS, Row, Status, compared, residues
from .draw import Draw, draws_of, float_types
from .integers import Integers
from .run import JUNK, Built, aligned, call, logical, physical

MOST_TRIPS = 300
"""Trips of a loop; a loop whose end depends on floats may never end over a field."""

PROGRAM = "(program)"


@dataclass
class Memory:
    """A stack's run of a plan. built: its kernels, by name."""

    plan: Plan
    stack: str
    options: EmitOptions
    built: dict[str, Built] = field(default_factory=dict)
    blocks: list[np.ndarray] = field(default_factory=list)

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results, in order. Raises UnsupportedError."""
        allocations = self.plan.assignment.allocations
        self.blocks = [aligned(a.size, JUNK[self.stack]) for a in allocations]
        for block, a in zip(self.blocks, allocations, strict=True):
            if a.kind is AllocationKind.PARAMETER:
                assert a.shape is not None
                data = physical(inputs[a.number], a.shape)
            elif a.literal is not None:
                with emitting(self.options.exact):
                    data = physical(constants(a.literal.array, a.literal.shape.dtype), a.literal.shape)
            else:
                continue
            block[: data.size] = data
        self._steps(self.plan.steps)
        found = {a.number if a.kind is AllocationKind.RESULT else a.result: a for a in allocations}
        kept = [a for n, a in sorted(found.items()) if n >= 0 and a.shape is not None and _is_result(a.kind, a.result)]
        return [logical(self.blocks[a.index], a.shape) for a in kept if a.shape is not None]

    def _steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, KernelStep):
                self._kernel(step)
            elif isinstance(step, CopyStep):
                self._bytes(step.destination)[:] = self._bytes(step.source)
            elif isinstance(step, WhileStep):
                self._loop(step)
            elif isinstance(step, ConditionalStep):
                word = self._bytes(step.selector)
                chosen = int(not word[0]) if step.selector_is_pred else int(word.view(np.int32)[0])
                inside = 0 <= chosen < len(step.branches)
                self._steps(step.branches[chosen if inside else -1])

    def _kernel(self, step: KernelStep) -> None:
        request = step.kernel
        kernel = self.built.get(request.name)
        if kernel is None:
            emit = emit_for(Flags.parse(self.stack))(request).emit
            kernel = self.built[request.name] = Built.of(request, emit, self.options, JUNK[self.stack])
        call(kernel, [self._bytes(s).ctypes.data for s in step.arguments])

    def _loop(self, step: WhileStep) -> None:
        for _ in range(MOST_TRIPS):
            self._steps(step.condition)
            if not self._bytes(step.predicate)[0]:
                return
            self._steps(step.body)
        raise UnsupportedError(self.stack, f"a loop of more than {MOST_TRIPS} trips", remedy="its kernels run alone")

    def _bytes(self, place: BufferSlice) -> np.ndarray:
        return self.blocks[place.allocation][place.offset : place.offset + place.size]


def _is_result(kind: AllocationKind, result: int) -> bool:
    return kind is AllocationKind.RESULT or (kind is AllocationKind.PARAMETER and result >= 0)


def check_program(module: Module, seed: int = 0) -> Row:
    """Compare a program on all draws: both stacks with the planned module, and this with the module as it was given.

    Passes may use what holds for real numbers, or up to rounding; the reason of an equal row says where they do.
    """
    verify(module)
    plan = HostCompiler().run_hlo_passes(module, CompileOptions())
    why = _why_not(plan.kernels, len(plan.emitted))
    if why:
        return Row(PROGRAM, "", Status.NOT_RUN, why)
    instructions = [i for m in (module, plan.module) for c in m.computations for i in c.instructions]
    types = frozenset(d for i in instructions for d in float_types(i))
    count, prime, passes = 0, 0, ""
    for draw in draws_of(types, seed):
        prime = draw.field.prime
        try:
            results, source = _results(module, plan, draw)
        except (UnsupportedError, CodegenError) as error:
            return Row(PROGRAM, "", Status.NOT_RUN, error.message, count, prime)
        found = compared(results, draw.elements)
        if found is not None:
            return Row(PROGRAM, "", Status.DIFFER, found[1], count, prime, found[0])
        if not passes and not _same(results[HLO], source, draw):
            passes = (
                f"{_changing_pass(module, draw, source)} changes it, up to rounding or by what holds for real numbers"
            )
        count += 1
    return Row(PROGRAM, "", Status.EQUAL, passes, count, prime)


def _same(left: Sequence[np.ndarray], right: Sequence[np.ndarray], draw: Draw) -> bool:
    """Whether all results are the same elements."""
    pairs = zip(left, right, strict=True)
    return all(np.array_equal(residues(a, draw.elements), residues(b, draw.elements)) for a, b in pairs)


def _changing_pass(module: Module, draw: Draw, source: Sequence[np.ndarray]) -> str:
    """The first pass after which a module has other results; 'the planner' if it is none of them."""
    found: list[str] = []

    inputs = _inputs(module, draw)

    def look(record: PassRecord) -> None:
        if not found and not _same(_evaluated(record.module, inputs, draw), source, draw):
            found.append(record.name)

    optimize(module, observer=look)
    return found[0] if found else "the planner"


def _evaluated(module: Module, inputs: Sequence[np.ndarray], draw: Draw) -> list[np.ndarray]:
    with np.errstate(all="ignore"):
        return evaluate(module, inputs, flush_subnormals=False, rules=field_rules(draw.elements))


def _inputs(module: Module, draw: Draw) -> list[np.ndarray]:
    return Draw(draw.field, draw.crowded, Integers.USUAL, draw.seed).inputs(module)


def _why_not(kernels: Sequence[KernelRequest], emitted: int) -> str:
    if any(k.instruction.opcode in LIBRARY for k in kernels):
        return OF_LIBRARY
    return "" if emitted == len(kernels) else "it does more than compute"


def _results(module: Module, plan: Plan, draw: Draw) -> tuple[dict[str, list[np.ndarray]], list[np.ndarray]]:
    inputs = _inputs(module, draw)
    options = EmitOptions(Target.host(), ranges=True, exact=draw.field)
    results = {stack: Memory(plan, stack, options).run(inputs) for stack in STACKS}
    results[HLO] = _evaluated(plan.module, inputs, draw)
    return results, _evaluated(module, inputs, draw)
