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
from ...evaluator.elements import Elements
from ...hlo.dynamic_border import DynamicBorder
from ...hlo.errors import TestbedError, UnsupportedError
from ...hlo.ir import Module
from ...hlo.library.calls import LIBRARY
from ...hlo.verify.verifier import verify
from ...migration.choose import emit_for
from ...migration.flags import Flags
from ...planning.plan import (
    AllocationKind,
    BufferSlice,
    ConditionalStep,
    CopyStep,
    KernelStep,
    Plan,
    Step,
    WhileStep,
)
from .check import HLO, NO_ORDER, STACKS, Row, Status, check_kernel, compared, evaluated, sorts_by_orders
from .draw import Draw, draws_of, float_types
from .library import call_library
from .passes import Passes, same
from .run import JUNK, Built, aligned, call, logical, physical

MOST_TRIPS = 300
"""Trips of a loop; a loop whose end depends on floats may never end over a field."""

PROGRAM = "(program)"
PASSES = "passes"
"""In place of a stack, whom to blame."""


class TooManyTripsError(TestbedError):
    """A loop that may have no end on these elements."""


@dataclass
class Memory:
    """A stack's run of a plan. built: its kernels, by name."""

    plan: Plan
    stack: str
    options: EmitOptions
    elements: Elements
    built: dict[str, Built] = field(default_factory=dict)
    blocks: list[np.ndarray] = field(default_factory=list)

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The results, in order. Raises UnsupportedError, TooManyTripsError."""
        allocations, border = self.plan.assignment.allocations, DynamicBorder.of(self.plan.module)
        inputs = inputs if border is None else border.padded(inputs)
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
        results = [logical(self.blocks[a.index], a.shape) for a in kept if a.shape is not None]
        return results if border is None else border.cut(results)

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
        buffers = [self._bytes(s) for s in step.arguments]
        if request.instruction.opcode in LIBRARY:
            call_library(request, self.elements, buffers, JUNK[self.stack])
            return
        kernel = self.built.get(request.name)
        if kernel is None:
            emit = emit_for(Flags.parse(self.stack))(request).emit
            kernel = self.built[request.name] = Built.of(request, emit, self.options, JUNK[self.stack])
        call(kernel, [b.ctypes.data for b in buffers])

    def _loop(self, step: WhileStep) -> None:
        for _ in range(MOST_TRIPS):
            self._steps(step.condition)
            if not self._bytes(step.predicate)[0]:
                return
            self._steps(step.body)
        raise TooManyTripsError(f"a loop of more than {MOST_TRIPS} trips", remedy="its kernels run alone")

    def _bytes(self, place: BufferSlice) -> np.ndarray:
        return self.blocks[place.allocation][place.offset : place.offset + place.size]


def _is_result(kind: AllocationKind, result: int) -> bool:
    return kind is AllocationKind.RESULT or (kind is AllocationKind.PARAMETER and result >= 0)


def check_program(module: Module, seed: int = 0, plan: Plan | None = None) -> Row:
    """Compare a program on all draws: both stacks with the planned module, and this with the module as it was given.

    plan: of the module; None: the host's. Passes may use what holds for real numbers only, if it is declared
    (declared.py); the reason of an equal row says where they do.
    """
    verify(module)
    plan = plan or HostCompiler().run_hlo_passes(module, CompileOptions())
    if len(plan.emitted) < len(plan.kernels):
        return Row(PROGRAM, "", Status.NOT_RUN, "it does more than compute")
    instructions = [i for m in (module, plan.module) for c in m.computations for i in c.instructions]
    types = frozenset(d for i in instructions for d in float_types(i))
    count, prime, notes, passes = 0, 0, dict[str, None](), Passes(module)
    for draw in draws_of(types, seed):
        prime = draw.field.prime
        inputs = draw.inputs(module)
        try:
            results = _results(plan, inputs, draw)
        except TooManyTripsError as error:  # on these elements
            notes[error.message] = None
            continue
        except (UnsupportedError, CodegenError) as error:
            return Row(PROGRAM, "", Status.NOT_RUN, error.message, count, prime)
        found = compared(results, draw.elements)
        if found is not None and sorts_by_orders(plan.module, inputs, draw.elements):
            return Row(PROGRAM, "", Status.DIFFER, found[1], count, prime, found[0])
        if found is not None:
            notes[NO_ORDER] = None
            continue
        fault, said = _of_passes(passes, inputs, results[HLO], draw)
        if fault:
            return Row(PROGRAM, "", Status.DIFFER, fault, count, prime, (PASSES,))
        notes |= dict.fromkeys(said)
        count += 1
    return Row(PROGRAM, "", Status.EQUAL if count else Status.NOT_RUN, "; ".join(notes), count, prime)


def check_all(module: Module, plan: Plan | None = None, seed: int = 0) -> list[Row]:
    """The row of each kernel that a stack emits, and that of the whole program, up to the first that differs."""
    verify(module)
    plan = plan or HostCompiler().run_hlo_passes(module, CompileOptions())
    rows: list[Row] = []
    for request in plan.emitted:
        rows.append(check_kernel(request, seed))
        if rows[-1].status is Status.DIFFER:
            return rows
    return [*rows, check_program(module, seed, plan)]


def _of_passes(
    passes: Passes, inputs: Sequence[np.ndarray], planned: Sequence[np.ndarray], draw: Draw
) -> tuple[str, list[str]]:
    """(What is wrong with the passes, what else is to say of them)."""
    try:
        if same(planned, evaluated(passes.module, inputs, draw.elements), draw):
            return "", []
        found = passes.changes(inputs, draw)
    except UnsupportedError as error:
        return "", [f"the passes are not compared: {error.message}"]
    if not found:
        if not sorts_by_orders(passes.module, inputs, draw.elements):
            return "", [NO_ORDER]
        return "the planner changes it, after all passes", []
    wrong = [c.sentence for c in found if c.is_fault]
    return (wrong[0] if wrong else ""), [c.sentence for c in found]


def _results(plan: Plan, inputs: Sequence[np.ndarray], draw: Draw) -> dict[str, list[np.ndarray]]:
    options = EmitOptions(Target.host(), ranges=True, exact=draw.field)
    results = {stack: Memory(plan, stack, options, draw.elements).run(inputs) for stack in STACKS}
    results[HLO] = evaluated(plan.module, inputs, draw.elements)
    return results
