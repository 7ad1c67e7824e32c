"""Planning: from a module to a Plan by passes, schedule, buffers, and a partition into kernels and control steps."""

from __future__ import annotations

from collections.abc import Collection

from ..hlo.analysis.effects import has_side_effect
from ..hlo.analysis.leaves import moves_no_bytes
from ..hlo.analysis.trip_count import trip_count
from ..hlo.collector import collector_at_rest
from ..hlo.dtypes import DType
from ..hlo.errors import UnsupportedError
from ..hlo.ir import Computation, Instruction, Module
from ..hlo.opclasses import branches, control_computations
from ..hlo.opcodes import Op
from ..hlo.records import dataclass, field
from ..hlo.verify.precision import mixed_precision
from ..passes.pipeline import Observer, PipelineOptions, optimize
from .allocation import USER_ALIGNMENT
from .buffers import Buffers, assign_buffers
from .kernels import KernelTable, places_of
from .liveness import RESULTS, branch_end, is_plain_copy, loop_end, loop_entry, single_copy
from .plan import ConditionalStep, CopyStep, Plan, Step, WhileStep
from .schedule import schedule


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """pipeline: options of the passes that run before scheduling. reuse: whether values may share memory. alignment:
    bytes to which kernels may assume that parameters are aligned; arrays that are not are copied for each run. taken:
    names that no kernel gets.
    """

    pipeline: PipelineOptions = field(default_factory=PipelineOptions)
    reuse: bool = True
    alignment: int = USER_ALIGNMENT
    taken: Collection[str] = ()


USUAL = PlanOptions()


def plan(module: Module, options: PlanOptions = USUAL, observer: Observer | None = None) -> Plan:
    """Plan a verified module: run the passes, schedule, assign buffers, and request kernels.

    Raises UnsupportedError for a module that needs something the stacks do not support.
    """
    refuse_mixed_precision(module)
    with collector_at_rest():
        scheduled = schedule(optimize(module, options.pipeline, observer))
        return plan_scheduled(scheduled, reuse=options.reuse, alignment=options.alignment, taken=options.taken)


def plan_scheduled(
    module: Module, *, reuse: bool = True, alignment: int = USER_ALIGNMENT, taken: Collection[str] = ()
) -> Plan:
    """Assign buffers and request kernels for a module that is flat, with agreed layouts, in its final order."""
    refuse_dynamic(module)
    buffers = assign_buffers(module, reuse=reuse, alignment=alignment)
    maker = _Steps(buffers, taken)
    steps = maker.computation(module.entry) + maker.copies(RESULTS)
    return Plan(module, buffers.assignment, steps, tuple(maker.kernels.requests.values()))


def refuse_mixed_precision(module: Module) -> None:
    """Raise UnsupportedError for an op whose floats have several element types."""
    for i in module.instructions():
        if (types := mixed_precision(i)) is not None:
            raise UnsupportedError(
                "plan",
                f"{i.opcode.value} of {types}",
                location=i.location,
                remedy="insert a convert: they must be equal",
            )


def refuse_dynamic(module: Module) -> None:
    """Raise UnsupportedError if the size of an array is known only at run time."""
    for computation in control_computations(module):
        for i in computation.instructions:
            if i.shape.is_dynamic:
                raise UnsupportedError(
                    "plan",
                    f"dynamic dimensions ({i.opcode.value})",
                    location=i.location,
                    remedy="give every dimension a fixed size",
                )


class _Steps:
    """Turns instructions into steps."""

    def __init__(self, buffers: Buffers, taken: Collection[str]):
        self.buffers = buffers
        self.kernels = KernelTable(buffers.assignment.allocations, taken)

    def computation(self, computation: Computation) -> tuple[Step, ...]:
        steps: list[Step] = []
        for i in computation.instructions:
            if i.opcode in (Op.PARAMETER, Op.CONSTANT) or moves_no_bytes(i):
                continue
            if i.opcode is Op.WHILE:
                steps += self.copies(loop_entry(i))
                steps.append(self.loop(i))
            elif i.opcode is Op.CONDITIONAL:
                steps.append(self.conditional(i))
            elif is_plain_copy(i):
                steps += self.copies(single_copy(i))
            elif has_side_effect(i) or any(s.is_array and s.size for _, s in i.shape.leaves()):
                steps.append(self.kernels.step(i, places_of(i, self.buffers.assignment)))
        return tuple(steps)

    def copies(self, group) -> tuple[Step, ...]:
        """The remaining copies of a group, in an order that is safe."""
        return tuple(CopyStep(i, source, target) for i, source, target in self.buffers.copies.get(group, ()))

    def loop(self, i: Instruction) -> Step:
        condition, body = i.attributes["condition"], i.attributes["body"]
        test = self.computation(condition)
        steps = self.computation(body) + self.copies(loop_end(i))
        return WhileStep(i, test, steps, self.buffers.assignment.slice_of(condition.root), trip_count(i))

    def conditional(self, i: Instruction) -> Step:
        selector = i.operands[0]
        steps = tuple(self.computation(b) + self.copies(branch_end(i, n)) for n, b in enumerate(branches(i)))
        return ConditionalStep(i, self.buffers.assignment.slice_of(selector), selector.shape.dtype is DType.PRED, steps)
