"""Text of a Plan, which parse_plan.py reads back: allocations, values, kernels and steps, then the HLO module.

A kernel or constant that the module does not hold (plans from LHLO) follows as a module of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType

from ..formats.text.names import with_legal_names
from ..formats.text.printer import print_module, quote
from ..hlo.ir import Computation, Instruction, Module
from ..hlo.opclasses import branches
from ..hlo.opcodes import Op
from ..hlo.shapes import ShapeIndex, shape_to_text
from .plan import (
    Allocation,
    BufferSlice,
    ConditionalStep,
    CopyStep,
    KernelRequest,
    KernelStep,
    Plan,
    ProfileStep,
    Step,
    WhileStep,
)


def plan_to_text(plan: Plan) -> str:
    """The whole plan, one line per allocation, value, kernel and step; nested steps are indented.

    Names that no HLO text can hold are replaced, as in the text of modules.
    """
    return _Writer(plan).text()


def uses_of(kernel: KernelRequest) -> tuple[str, ...]:
    """What the kernel does with each argument, in a word."""
    return tuple(_use(kernel, n) for n in range(len(kernel.arguments)))


def _use(k: KernelRequest, n: int) -> str:
    if n == k.scratch:
        return "scratch"
    if not k.arguments[n].written:
        return "in"
    return "inout" if n in k.operands else "out"


def standalone(instruction: Instruction, name: str) -> Module:
    """A module of an instruction and of what it calls; its operands become parameters."""
    called: dict[Computation, None] = {}

    def collect(i: Instruction) -> None:
        for computation in i.called():
            if computation in called:
                continue
            for inner in computation.calling:
                collect(inner)
            called[computation] = None

    collect(instruction)
    stubs: dict[Instruction, Instruction] = {}
    for operand in instruction.operands:
        if operand not in stubs:
            n = len(stubs)
            number = MappingProxyType({"parameter_number": n})
            stubs[operand] = Instruction(Op.PARAMETER, f"{instruction.name}.operand{n}", operand.shape, (), number)
    root = instruction.replace(operands=tuple(stubs[o] for o in instruction.operands))
    title = "entry"
    while title in {c.name for c in called}:
        title += "_"
    entry = Computation(title, (*stubs.values(), root), root)
    return Module(name, (*called, entry), entry)


class _Writer:
    def __init__(self, plan: Plan):
        self.plan, self.module = plan, with_legal_names(plan.module)
        self.others: list[Module] = []
        self.places: dict[Instruction, tuple[str, Computation]] = {}
        for computation, legal in zip(plan.module.computations, self.module.computations, strict=True):
            for i, named in zip(computation.instructions, legal.instructions, strict=True):
                self.places[i] = named.name, computation
        self.titles = {
            c: legal.name for c, legal in zip(plan.module.computations, self.module.computations, strict=True)
        }

    def text(self) -> str:
        assignment = self.plan.assignment
        constants = {i.literal: i for i in reversed(self.places) if i.opcode is Op.CONSTANT}
        lines = [f"plan {self.module.name} {{"]
        lines += [f"  {self.allocation(a, constants)}" for a in assignment.allocations]
        lines += self.values()
        lines += [f"  scratch {self.place(i)} {_slice(s)}" for i, s in assignment.scratch.items()]
        lines += [f"  {self.kernel(k, n)}" for n, k in enumerate(self.plan.kernels)]
        lines += ["  steps {", *self.steps(self.plan.steps, 2, self.plan.module.entry), "  }", "}"]
        return "\n".join([*lines, "", *map(print_module, (self.module, *self.others))])

    def place(self, i: Instruction, scope: Computation | None = None) -> str:
        """The name of an instruction of the module, with its computation if that is not `scope`."""
        name, computation = self.places[i]
        return f"%{name}" + (f" in {self.titles[computation]}" if computation is not scope else "")

    def named(self, i: Instruction, scope: Computation | None) -> str:
        """The instruction of a step; in quotes if the module does not hold it."""
        return self.place(i, scope) if i in self.places else quote(i.name)

    def allocation(self, a: Allocation, constants: dict) -> str:
        number = f" {a.number}" if a.number >= 0 else ""
        shape = f" {shape_to_text(a.shape)}" if a.shape is not None else ""
        given = f" becomes result {a.result}" if a.result >= 0 else ""
        held = ""
        if a.literal in constants:
            held = f" holds {self.place(constants[a.literal])}"
        elif a.literal is not None:
            constant = Instruction(Op.CONSTANT, "constant", a.literal.shape, (), {"literal": a.literal})
            held = f" holds {self.other(constant, f'constant.{a.index}')}"
        line = f"allocation {a.index} = {a.kind.value}{number}{given}{shape} size={a.size} align={a.alignment}"
        return line + held

    def other(self, instruction: Instruction, name: str) -> str:
        """Adds a module that holds the instruction; returns the words that name it."""
        while name == self.module.name:
            name += "_"
        self.others.append(standalone(instruction, name))
        return f"module {name}"

    def values(self) -> Iterator[str]:
        """One line per value, in blocks by computation."""
        found: dict[Instruction, list[tuple[ShapeIndex, BufferSlice]]] = {}
        for (i, index), piece in self.plan.assignment.slices.items():
            found.setdefault(i, []).append((index, piece))
        for computation, title in self.titles.items():
            lines = [
                f"    %{self.places[i][0]} {', '.join(_leaf(*leaf) for leaf in found[i])}"
                for i in computation.instructions
                if i in found
            ]
            if lines:
                yield from (f"  values {title} {{", *lines, "  }")

    def kernel(self, k: KernelRequest, index: int) -> str:
        given = zip(uses_of(k), k.arguments, strict=True)
        arguments = ", ".join(f"{use} {_slice(a.slice)} align {a.alignment}" for use, a in given)
        split = f" split: {k.partition}" if k.partition is not None else ""
        held = (
            self.place(k.instruction) if k.instruction in self.places else self.other(k.instruction, f"kernel.{index}")
        )
        numbers = f"operands={list(k.operands)} results={list(k.results)}"
        return f"kernel @{_symbol(k.name)}({arguments}) {numbers}{split} = {held}  // {_head(k.instruction)}"

    def steps(self, steps: Sequence[Step], depth: int, scope: Computation | None) -> Iterator[str]:
        pad = "  " * depth
        for step in steps:
            if isinstance(step, ProfileStep):
                yield f"{pad}profile {'begin' if step.begin else 'end'} {step.id} {quote(step.name)}"
                continue
            name = self.named(step.instruction, scope)
            if isinstance(step, KernelStep):
                yield f"{pad}kernel @{_symbol(step.kernel.name)}({', '.join(map(_slice, step.arguments))}) {name}"
            elif isinstance(step, CopyStep):
                yield f"{pad}copy {_slice(step.source)} -> {_slice(step.destination)} {name}"
            elif isinstance(step, WhileStep):
                yield from self.loop(step, name, depth)
            else:
                yield from self.conditional(step, name, depth)

    def loop(self, step: WhileStep, name: str, depth: int) -> Iterator[str]:
        pad, condition, body = "  " * depth, *bodies_of(step.instruction, 2)
        count = f" trip_count={step.trip_count}" if step.trip_count is not None else ""
        yield f"{pad}while {_slice(step.predicate)}{count} {name} {{"
        yield from self.steps(step.condition, depth + 1, condition)
        yield f"{pad}}} do {{"
        yield from self.steps(step.body, depth + 1, body)
        yield f"{pad}}}"

    def conditional(self, step: ConditionalStep, name: str, depth: int) -> Iterator[str]:
        pad, kind = "  " * depth, "pred" if step.selector_is_pred else "index"
        yield f"{pad}conditional {kind} {_slice(step.selector)} {name} {{"
        scopes = bodies_of(step.instruction, len(step.branches))
        for n, (branch, scope) in enumerate(zip(step.branches, scopes, strict=True)):
            yield f"{pad}  branch {n} {{"
            yield from self.steps(branch, depth + 2, scope)
            yield f"{pad}  }}"
        yield f"{pad}}}"


def bodies_of(i: Instruction, count: int) -> tuple[Computation | None, ...]:
    """The computations of a loop (condition, body) or conditional; `count` times None if it only stands for one."""
    if not i.called():
        return (None,) * count
    return (i.attributes["condition"], i.attributes["body"]) if i.opcode is Op.WHILE else tuple(branches(i))


def _symbol(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else quote(name)


def _head(i: Instruction) -> str:
    operands = ", ".join(shape_to_text(o.shape) for o in i.operands)
    body = (
        f" of {len(i.called()[0].instructions)} at {i.called()[0].root.opcode.value}"
        if i.opcode.value == "fusion"
        else ""
    )
    return f"{i.opcode.value}({operands}) -> {shape_to_text(i.shape)}{body}"


def _slice(s: BufferSlice) -> str:
    return f"{s.allocation}[{s.offset}:{s.offset + s.size}]"


def _leaf(index: ShapeIndex, piece: BufferSlice) -> str:
    return f"{{{','.join(map(str, index))}}} {_slice(piece)}" if index else _slice(piece)
