"""Plan → what is known of each step: opcode, source, work, and how the instructions of a fusion share its time."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ..hlo.analysis.cost_analysis import Cost, CostAnalysis
from ..hlo.ir import Computation, Instruction
from ..hlo.metadata import Sources, metadata_of
from ..hlo.opcodes import Op
from ..hlo.opset import OPSET
from ..planning.plan import CopyStep, KernelStep, Plan, ProfileStep, Step

TRANSCENDENTAL = 10.0
"""Operations that a transcendental function counts as, in shares of a fusion's time."""

BYTES = 4.0
"""Bytes read or written outside of a fusion that count as one operation."""

MOVED = 0.1
"""Operations that an element counts as which an instruction only moves: inside a fusion that is a matter of indices."""

PARTIAL = frozenset({Op.SLICE, Op.DYNAMIC_SLICE, Op.GATHER})
"""Instructions that read as much of an operand as they return."""

NO_WORK = frozenset({Op.PARAMETER, Op.CONSTANT, Op.TUPLE, Op.GET_TUPLE_ELEMENT, Op.BITCAST})


NO_COST = Cost()


@dataclass(frozen=True, slots=True)
class Facts:
    """An instruction: its opcode (with the target of a custom call), family, op_name and place in the source, or ""."""

    name: str
    opcode: str = ""
    family: str = ""
    op_name: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """An instruction of a fusion. share: of the fusion's time, estimated by its work."""

    facts: Facts
    share: float


@dataclass(frozen=True, slots=True)
class StepFacts:
    """What a step does. kind: kernel, copy, while or conditional. shape: of its result, or "". stack: what made its
    kernel; form: how that emits it, or "". work: of one call.

    parts: the instructions of a fusion; empty for a single op. split: whether threads may share the kernel.
    """

    facts: Facts
    kind: str
    shape: str = ""
    stack: str = ""
    work: Cost = NO_COST
    parts: tuple[Part, ...] = ()
    split: bool = False
    form: str = ""


def facts_of(
    plan: Plan, stacks: Mapping[str, str], attributes: Mapping[str, object], forms: Mapping[str, str] | None = None
) -> list[StepFacts]:
    """The facts of a plan's steps, in the order of `walk`, without profile steps.

    stacks: name of a kernel → what made it. attributes: those of the module that was compiled. forms: name of a kernel
    → how it is emitted.
    """
    reader = _Reader(stacks, Sources(attributes), CostAnalysis(), forms or {})
    return [reader.step(step) for step in plan.walk() if not isinstance(step, ProfileStep)]


PLANNED = frozenset({"kernel", "copy", "while", "conditional"})
"""Kinds of the plan's steps. A program has others, too: an exchange with other devices is one kernel of the plan."""


class Known:
    """The facts of a plan's steps, for the steps of the program that was made of it."""

    def __init__(self, steps: Iterable[StepFacts]):
        self._steps: dict[tuple[str, str], deque[StepFacts]] = {}
        for facts in steps:
            self._steps.setdefault((facts.facts.name, facts.kind), deque()).append(facts)

    def take(self, name: str, kind: str) -> StepFacts | None:
        """The facts of the next step of that name and kind; None if the plan has no such step (left)."""
        found = self._steps.get((name, kind if kind in PLANNED else "kernel"))
        if not found:
            return None
        return found.popleft() if kind in PLANNED else replace(found[0], kind=kind, stack="", form="")


@dataclass(frozen=True, eq=False)
class _Reader:
    stacks: Mapping[str, str]
    sources: Sources
    costs: CostAnalysis
    forms: Mapping[str, str]

    def facts(self, i: Instruction) -> Facts:
        target = i.attributes.get("custom_call_target")
        opcode = i.opcode.value if target is None else f"{i.opcode.value} {target}"
        op_name = metadata_of(i).get("op_name", "")
        return Facts(i.name, opcode, OPSET[i.opcode].family.value, op_name, self.sources.place_of(i))

    def step(self, step: Step) -> StepFacts:
        assert not isinstance(step, ProfileStep)
        i = step.instruction
        facts, kind = self.facts(i), type(step).__name__.removesuffix("Step").lower()
        if isinstance(step, CopyStep):
            copied = Facts(i.name, Op.COPY.value, OPSET[Op.COPY].family.value, facts.op_name, facts.source)
            return StepFacts(copied, kind, f"u8[{step.source.size}]", work=Cost(bytes=2.0 * step.source.size))
        shape = str(i.shape.without_layout())
        if not isinstance(step, KernelStep):
            return StepFacts(facts, kind, shape)
        body = step.kernel.body
        work = self.costs.of(i)
        if not work.bytes:  # of a custom call, whose cost nobody knows
            work = Cost(work.flops, work.transcendentals, float(sum(a.slice.size for a in step.kernel.arguments)))
        parts = () if body is None else self.parts(body)
        name = step.kernel.name
        stack, form = self.stacks.get(name, ""), self.forms.get(name, "")
        return StepFacts(facts, kind, shape, stack, work, parts, step.kernel.partition is not None, form)

    def parts(self, body: Computation) -> tuple[Part, ...]:
        members = [i for i in body.instructions if i.opcode not in NO_WORK]
        weights = [self.weight(i, body) for i in members]
        whole = sum(weights)
        if not whole:
            weights, whole = [1.0] * len(members), float(len(members))
        return tuple(Part(self.facts(i), w / whole) for i, w in zip(members, weights, strict=True))

    def weight(self, i: Instruction, body: Computation) -> float:
        """Operations of an instruction, and its memory traffic outside of the fusion in the same unit."""
        work = self.costs.of(i)
        operations = work.flops + TRANSCENDENTAL * work.transcendentals
        if not operations:
            operations = MOVED * sum(leaf.size for _, leaf in i.shape.leaves() if leaf.is_array)
        roots = body.root.operands if body.root.opcode is Op.TUPLE else (body.root,)
        read = [i.shape if i.opcode in PARTIAL else o.shape for o in i.operands if o.opcode is Op.PARAMETER]
        moved = read + ([i.shape] if i in roots else [])
        return operations + sum(leaf.bytes for shape in moved for _, leaf in shape.leaves() if leaf.is_array) / BYTES
