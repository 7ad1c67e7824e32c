"""A plan as one LHLO program: allocations are arguments, constants globals, kernels inline in schedule order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..hlo.dynamic_border import DynamicBorder
from ..hlo.errors import UnsupportedError
from ..hlo.ir import Instruction, Literal
from ..hlo.records import dataclass, field
from ..hlo.shapes import Shape, array, shape_to_text
from ..planning.kernels import NO_ARGUMENT
from ..planning.plan import (
    Allocation,
    AllocationKind,
    BufferSlice,
    ConditionalStep,
    CopyStep,
    KernelStep,
    Plan,
    ProfileStep,
    Step,
    WhileStep,
)
from .attributes import text_of_string
from .from_hlo import Memref, Writer, exact_operands, write_op
from .literals import components, elements_text
from .memrefs import memref
from .module import LhloModule
from .parse import trusted
from .program import PROFILER


def from_plan(plan: Plan) -> LhloModule:
    """Write `func.func @main` with lhlo.program. Its arguments are the non-constant allocations, in order."""
    program = _Program(plan)
    program.steps(plan.steps)
    profiler = [f"%profiler: {PROFILER}"] if any(isinstance(s, ProfileStep) for s in plan.walk()) else []
    arguments = ", ".join([*program.arguments, *profiler])
    body = "\n".join([*program.views.lines, *program.writer.lines])
    about = ", ".join(_about(plan))
    return trusted(
        "\n".join(program.globals) + f"\nfunc.func @main({arguments}) attributes {{{about}}} {{\n{body}\nreturn\n}}"
    )


def _about(plan: Plan) -> Iterator[str]:
    """The attributes of the function: the interface, so far as its arguments do not say it."""
    module, assignment = plan.module, plan.assignment
    yield f"lhlo.program = {text_of_string(module.name)}"
    parameters = ", ".join(text_of_string(shape_to_text(s)) for s in module.parameter_shapes)
    yield f"lhlo.parameters = [{parameters}], lhlo.result = {text_of_string(shape_to_text(module.result_shape))}"
    held = {a.number for a in assignment.allocations if a.kind is AllocationKind.RESULT}
    held |= {a.result for a in assignment.allocations}
    arrays = [(index, shape) for index, shape in module.result_shape.leaves() if shape.is_array]
    places = [
        (n, assignment.slices[module.entry.root, index])
        for n, (index, shape) in enumerate(arrays)
        if shape.bytes and n not in held
    ]
    if places:
        rows = ", ".join(f"array<i64: {n}, {s.allocation}, {s.offset}, {s.size}>" for n, s in places)
        yield f"lhlo.elsewhere = [{rows}]"
    border = DynamicBorder.of(module)
    if border is not None:
        yield f"lhlo.dynamic = {text_of_string(module.attributes['frontend_attributes'].text)}"


@dataclass(slots=True)
class _Program:
    """The program being written. `views` are emitted first in the function, so that every region can use them."""

    plan: Plan
    views: Writer = field(default_factory=Writer)
    writer: Writer = field(default_factory=Writer)
    globals: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    bases: list[Memref] = field(default_factory=list)
    seen: dict[tuple[int, int, str], Memref] = field(default_factory=dict)
    owners: dict[str, Instruction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for allocation in self.plan.assignment.allocations:
            self.bases.append(
                self._constant(allocation) if allocation.kind is AllocationKind.CONSTANT else self._argument(allocation)
            )
        self.writer.count = self.views.count = 0

    def _argument(self, a: Allocation) -> Memref:
        base = Memref(f"%arg{len(self.arguments)}", memref(a.shape) if a.shape is not None else f"memref<{a.size}xi8>")
        number = f", lhlo.number = {a.number} : i64" if a.number >= 0 else ""
        number += f", lhlo.result = {a.result} : i64" if a.result >= 0 else ""
        self.arguments.append(
            f'{base.name}: {base.type} {{lhlo.allocation = {a.index} : i64, lhlo.kind = "{a.kind.value}"{number}, '
            f"lhlo.alignment = {a.alignment} : i64}}"
        )
        return base

    def _constant(self, a: Allocation) -> Memref:
        """Write a global in memory order: dimensions ordered by the layout, complex numbers split into components."""
        assert a.literal is not None
        literal = in_memory_order(a.literal)
        dtype, elements = components(literal.shape.dtype, literal.array)
        type_ = memref(array(dtype, *elements.shape))
        self.globals.append(
            f'memref.global "private" constant @constant_{a.index} : {type_} = '
            f"{elements_text(literal).partition(' : tensor')[0]} {{alignment = {a.alignment} : i64}}"
        )
        base = Memref(f"%constant_{a.index}", type_)
        self.views.lines.append(f"{base.name} = memref.get_global @constant_{a.index} : {type_}")
        return base

    def at(self, place: BufferSlice, type_: str) -> Memref:
        """A memref of type `type_` at the slice `place`."""
        base = self.bases[place.allocation]
        if place.offset == 0 and base.type == type_:
            return base
        key = (place.allocation, place.offset, type_)
        if key not in self.seen:
            self.seen[key] = self.view(base, type_, place.offset)
        return self.seen[key]

    def operand(self, instruction: Instruction, place: BufferSlice) -> Memref:
        """The memref of an operand of the current step. HLO values that share a slice get distinct views."""
        found = self.at(place, memref(instruction.shape))
        if self.owners.setdefault(found.name, instruction) is not instruction:
            found = self.view(self.bases[place.allocation], found.type, place.offset)
            self.owners[found.name] = instruction
        return found

    def view(self, base: Memref, type_: str, offset: int) -> Memref:
        new = Memref(f"%v{len(self.views.lines)}", type_)
        attributes = f" {{offset = {offset} : i64}}" if offset else ""
        self.views.lines.append(f'{new.name} = "lhlo.view"({base.name}){attributes} : ({base.type}) -> {type_}')
        return new

    def steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            WRITE[type(step)](self, step)


def write_kernel(program: _Program, step: KernelStep) -> None:
    """Write an op on views of the step's slices. Its `kernel` attribute names the kernel that runs it."""
    request, instruction = step.kernel, step.instruction
    if NO_ARGUMENT in (*request.operands, *request.results):
        raise UnsupportedError(
            "lhlo",
            f"{instruction.opcode.value} with a token",
            location=instruction.location,
            remedy="programs with an infeed or an outfeed have no LHLO; testbed stages shows their thunks",
        )
    pairs = zip(request.operands, instruction.operands, strict=True)
    program.owners.clear()
    operands = [program.operand(o, step.arguments[a]) for a, o in pairs]
    shapes = [shape for _, shape in instruction.shape.leaves()]
    results = tuple(program.at(step.arguments[a], memref(s)) for a, s in zip(request.results, shapes, strict=True))
    extra = [f"kernel = {text_of_string(request.name)}"]
    if request.scratch >= 0:
        place = step.arguments[request.scratch]
        extra.append(f"scratch = array<i64: {place.allocation}, {place.offset}, {place.size}>")
    write_op(program.writer, instruction, operands, results, extra, exact_operands(instruction))


def write_copy(program: _Program, step: CopyStep) -> None:
    type_ = f"memref<{step.source.size}xi8>"
    source, target = program.at(step.source, type_), program.at(step.destination, type_)
    program.writer.lines.append(
        f"memref.copy {source.name}, {target.name} {{name = {text_of_string(step.instruction.name)}}} "
        f": {type_} to {type_}"
    )


def write_while(program: _Program, step: WhileStep) -> None:
    predicate, lines = program.at(step.predicate, "memref<i1>"), program.writer.lines
    lines.append(f'"lhlo.while"({predicate.name}) ({{')
    program.steps(step.condition)
    lines.append("vector.yield\n}, {")
    program.steps(step.body)
    count = f", trip_count = {step.trip_count} : i64" if step.trip_count is not None else ""
    lines.append(f"vector.yield\n}}) {{name = {text_of_string(step.instruction.name)}{count}}} : (memref<i1>) -> ()")


def write_conditional(program: _Program, step: ConditionalStep) -> None:
    type_ = "memref<i1>" if step.selector_is_pred else "memref<i32>"
    selector, lines = program.at(step.selector, type_), program.writer.lines
    lines.append(f'"lhlo.case"({selector.name}) ({{')
    for branch in step.branches:
        lines.append('"lhlo.branch"() ({')
        program.steps(branch)
        lines.append("vector.yield\n}) : () -> ()")
    lines.append(f"vector.yield\n}}) {{name = {text_of_string(step.instruction.name)}}} : ({type_}) -> ()")


def write_profile(program: _Program, step: ProfileStep) -> None:
    program.writer.lines.append(
        f'"lhlo.profile_{"start" if step.begin else "end"}"(%profiler) '
        f"{{name = {text_of_string(step.name)}, id = {step.id} : i64}} : ({PROFILER}) -> ()"
    )


WRITE: dict[type, Callable[[_Program, Any], None]] = {
    KernelStep: write_kernel,
    CopyStep: write_copy,
    WhileStep: write_while,
    ConditionalStep: write_conditional,
    ProfileStep: write_profile,
}


def in_memory_order(literal: Literal) -> Literal:
    """The literal as a row-major array whose bytes are in the order that its layout demands."""
    shape: Shape = literal.shape
    if shape.is_row_major:
        return Literal(array(shape.dtype, *shape.dims), literal.array)
    value = np.ascontiguousarray(literal.array.transpose(tuple(reversed(shape.minor_to_major))))
    return Literal(array(shape.dtype, *value.shape), value)
