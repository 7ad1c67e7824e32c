"""Liveness: put a module's instructions on one time line, its array values into variables, and find when each is alive.

Time is counted in positions. At a position p, operands are read and results written in the tick [2p, 2p+1); two
variables that are both used in a tick conflict unless a copy or an in-place operation at that tick joins them.

Loops: each carried leaf is one variable (a slot) that init and body copy into; a leaf that the body forwards unchanged
is the init value itself. Branches read the operand's variables and copy their results into the slots of the
conditional. Most of these copies are removed later (coalesce.py). A value that no longer counts after a conditional is
dead in each branch after the branch's own last read, so that each branch may overwrite it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ..hlo.analysis.leaves import NO_BUFFER, Leaves, forward, leaf_count, moves_no_bytes
from ..hlo.analysis.updates import updated_operands
from ..hlo.dtypes import DType
from ..hlo.errors import UnsupportedError
from ..hlo.ir import Computation, Instruction, Literal, Module
from ..hlo.layouts import same_bytes
from ..hlo.opclasses import branches, control_computations
from ..hlo.opcodes import Op
from ..hlo.records import dataclass, field
from ..hlo.shapes import Shape, ShapeIndex, array
from .inplace import reuses
from .plan import AllocationKind
from .scratch import scratch_bytes


@dataclass(slots=True)
class Variable:
    """One array value, or one slot.

    segments: half-open intervals of ticks in which it holds a value, ascending. number: of the parameter or result
    leaf. result: for a parameter that becomes a result, the number of that result. Constants and all other parameters
    are read-only.
    """

    index: int
    kind: AllocationKind
    size: int
    segments: list[tuple[int, int]] = field(default_factory=list)
    number: int = -1
    shape: Shape | None = None
    literal: Literal | None = None
    used: bool = False
    result: int = -1

    @property
    def read_only(self) -> bool:
        return self.kind is AllocationKind.CONSTANT or (self.kind is AllocationKind.PARAMETER and self.result < 0)


@dataclass(frozen=True, slots=True)
class Copy:
    """`target` gets the bytes of `source` at `position`; copies of one group happen simultaneously."""

    position: int
    source: int
    target: int
    instruction: Instruction
    depth: int


@dataclass(frozen=True, slots=True)
class Reuse:
    """The kernel at `position` may write `target` over `source`. must: this saves copying the whole array."""

    position: int
    source: int
    target: int
    must: bool


@dataclass
class Timeline:
    """A module on one time line.

    variables: by number. leaves: variable numbers of an instruction's leaves. groups: copies by the place where they
    happen. length: number of positions. scratch: the variable of a kernel's scratch memory.
    """

    module: Module
    variables: list[Variable]
    leaves: dict[Instruction, Leaves]
    groups: dict[Hashable, list[Copy]]
    reuses: list[Reuse]
    length: int
    scratch: dict[Instruction, int]


def loop_entry(loop: Instruction) -> Hashable:
    """The group of the copies before a loop."""
    return ("entry", loop)


def loop_end(loop: Instruction) -> Hashable:
    """The group of the copies at the end of a loop's body."""
    return ("end", loop)


def branch_end(conditional: Instruction, branch: int) -> Hashable:
    """The group of the copies at the end of a branch."""
    return ("branch", conditional, branch)


def single_copy(instruction: Instruction) -> Hashable:
    """The group of a `copy` instruction."""
    return ("copy", instruction)


RESULTS: Hashable = "results"
"""The group of the copies into the program's results."""


@dataclass(slots=True)
class Branch:
    """A branch that was walked: its first tick, and the tick after the last read of each variable that it reads."""

    start: int
    reads: dict[int, int] = field(default_factory=dict)


def build_timeline(module: Module) -> Timeline:
    """Walk the entry and everything it runs, in schedule order. The module must be flat with agreed layouts."""
    walker = _Walker(module)
    walker.run()
    return Timeline(
        module, walker.variables, walker.leaves, walker.groups, walker.reuses, walker.position, walker.scratch
    )


def aliased_parameters(module: Module) -> dict[int, int]:
    """{result leaf: parameter leaf whose memory it gets} from the header's input_output_alias; arrays only.

    A may-alias between two layouts is ignored. Raises UnsupportedError for a must-alias between two layouts.
    """
    found: dict[int, int] = {}
    places = _array_leaves(module.entry.parameters)
    results = {index: (n, shape) for (_, index), (n, shape) in _array_leaves([module.entry.root]).items()}
    for alias in module.attributes.get("input_output_alias", ()):
        source, target = places.get((alias.parameter, alias.parameter_index)), results.get(alias.output)
        if source is None or target is None or source[0] in found.values():
            continue
        if same_bytes(source[1], target[1]):
            found[target[0]] = source[0]
        elif alias.kind == "must-alias":
            raise UnsupportedError(
                "plan",
                f"must-alias of parameter {alias.parameter} {source[1]} and output {target[1]}",
                location=module.entry.root.location,
                remedy="give both one layout",
            )
    return found


def _array_leaves(instructions: Sequence[Instruction]) -> dict[tuple[int, ShapeIndex], tuple[int, Shape]]:
    """{(number of the instruction, index): (number among all array leaves, shape)}."""
    arrays = [
        ((n, index), shape) for n, i in enumerate(instructions) for index, shape in i.shape.leaves() if shape.is_array
    ]
    return {key: (number, shape) for number, (key, shape) in enumerate(arrays)}


def is_plain_copy(i: Instruction) -> bool:
    """Whether an op is a `copy` that keeps the memory order, for which copying bytes suffices."""
    return i.opcode is Op.COPY and i.shape.is_array and same_bytes(i.shape, i.operands[0].shape)


def passed_through(module: Module) -> dict[Computation, tuple[bool, ...]]:
    """For each computation, whether each leaf of its root is the same leaf of its parameter."""
    sources: dict[Computation, Leaves] = {}  # root leaf → number of the parameter leaf, or -1
    result: dict[Computation, tuple[bool, ...]] = {}
    for computation in control_computations(module):
        leaves: dict[Instruction, Leaves] = {}
        for i in computation.instructions:
            if i.opcode is Op.PARAMETER:
                single = len(computation.parameters) == 1
                leaves[i] = tuple(range(leaf_count(i.shape))) if single else (-1,) * leaf_count(i.shape)
            elif moves_no_bytes(i):
                leaves[i] = forward(i, [leaves[o] for o in i.operands])
            elif i.opcode is Op.WHILE:
                kept = result[i.attributes["body"]]
                leaves[i] = tuple(v if k else -1 for v, k in zip(leaves[i.operands[0]], kept))
            else:
                leaves[i] = (-1,) * leaf_count(i.shape)
        sources[computation] = leaves[computation.root]
        result[computation] = tuple(v == n for n, v in enumerate(sources[computation]))
    return result


class _Walker:
    """Assigns positions and variables in one walk over the program."""

    def __init__(self, module: Module):
        self.module = module
        self.variables: list[Variable] = []
        self.leaves: dict[Instruction, Leaves] = {}
        self.groups: dict[Hashable, list[Copy]] = {}
        self.reuses: list[Reuse] = []
        self.scratch: dict[Instruction, int] = {}
        self.constants: dict[tuple[Shape, Literal], int] = {}
        self.choices: list[tuple[list[Branch], int]] = []  # of each conditional, outer ones first: (branches, end)
        self.inside: list[Branch] = []  # the branches around the present position
        self.kept = passed_through(module)
        self.position = 0
        self.depth = 0

    def run(self) -> None:
        entry = self.module.entry
        parameters, number = [], 0
        for p in entry.parameters:
            leaves = []
            for _, shape in p.shape.leaves():
                leaves.append(self.variable(shape, AllocationKind.PARAMETER, number))
                number += shape.is_array
            parameters.append(tuple(leaves))
        owned = aliased_parameters(self.module)
        for number, parameter in owned.items():
            self.variables[parameter].result = number
        results = self.walk(entry, parameters)
        position = self.step()
        arrays = [(source, shape) for source, (_, shape) in zip(results, entry.root.shape.leaves()) if shape.is_array]
        for source, _ in arrays:
            self.touch((source,))
        for number, (source, shape) in enumerate(arrays):
            target = owned.get(number)
            if target is None:
                target = self.variable(shape, AllocationKind.RESULT, number)
            self.copy(RESULTS, position, source, target, entry.root)
        for choice in self.choices:
            self.part(*choice)

    def step(self) -> int:
        self.position += 1
        return self.position

    def variable(
        self,
        shape: Shape,
        kind: AllocationKind = AllocationKind.TEMPORARY,
        number: int = -1,
        literal: Literal | None = None,
    ) -> int:
        """A new variable that is alive from the present tick; NO_BUFFER for a token."""
        if not shape.is_array:
            return NO_BUFFER
        index = len(self.variables)
        now = 2 * self.position
        self.variables.append(Variable(index, kind, shape.bytes, [(now, now + 1)], number, shape, literal))
        return index

    def define(self, variable: int) -> None:
        """Record that a slot gets a new value at the present position."""
        if variable != NO_BUFFER:
            now = 2 * self.position
            self.extend(self.variables[variable].segments, now, now + 1)

    def touch(self, variables: Leaves) -> None:
        """Record a read: the variables are alive up to the end of the present tick."""
        end = 2 * self.position + 1
        for v in variables:
            if v != NO_BUFFER:
                variable = self.variables[v]
                variable.used = True
                for branch in self.inside:
                    branch.reads[v] = end
                start, stop = variable.segments[-1]
                if stop < end:
                    variable.segments[-1] = (start, end)

    @staticmethod
    def extend(segments: list[tuple[int, int]], start: int, stop: int) -> None:
        if segments and segments[-1][1] >= start:
            segments[-1] = (segments[-1][0], max(stop, segments[-1][1]))
        else:
            segments.append((start, stop))

    def copy(self, group: Hashable, position: int, source: int, target: int, instruction: Instruction) -> None:
        """Record a copy at the present position into a variable that is defined here."""
        self.touch((source,))
        self.define(target)
        self.groups.setdefault(group, []).append(Copy(position, source, target, instruction, self.depth))

    def walk(self, computation: Computation, parameters: Sequence[Leaves]) -> Leaves:
        """The leaves of the root, given those of the parameters."""
        for i in computation.instructions:
            if i.opcode is Op.PARAMETER:
                self.leaves[i] = parameters[i.parameter_number]
            elif i.opcode is Op.CONSTANT:
                self.leaves[i] = self.constant(i.literal, i.shape)
            elif moves_no_bytes(i):
                self.leaves[i] = forward(i, [self.leaves[o] for o in i.operands])
            elif i.opcode is Op.WHILE:
                self.leaves[i] = self.loop(i)
            elif i.opcode is Op.CONDITIONAL:
                self.leaves[i] = self.conditional(i)
            else:
                self.leaves[i] = self.operation(i)
        return self.leaves[computation.root]

    def constant(self, literal: Literal, shape: Shape) -> Leaves:
        if shape.is_tuple:
            assert isinstance(literal.value, tuple)
            return tuple(v for part, s in zip(literal.value, shape.elements) for v in self.constant(part, s))
        if not shape.is_array:
            return (NO_BUFFER,)
        key = (shape, literal)
        if key not in self.constants:
            self.constants[key] = self.variable(shape, AllocationKind.CONSTANT, literal=literal)
        return (self.constants[key],)

    def operation(self, i: Instruction) -> Leaves:
        """A kernel or a plain copy."""
        position = self.step()
        for o in i.operands:
            self.touch(self.leaves[o])
        results = tuple(self.variable(shape) for _, shape in i.shape.leaves())
        if is_plain_copy(i):
            self.copy(single_copy(i), position, self.leaves[i.operands[0]][0], results[0], i)
            return results
        needed = scratch_bytes(i)
        if needed:
            self.scratch[i] = self.variable(array(DType.U8, needed))
        must = updated_operands(i)
        reusable = set(reuses(i))
        for n, leaf in sorted(reusable):
            source = self.leaves[i.operands[n]][0]
            if all((m, leaf) in reusable for m, o in enumerate(i.operands) if source in self.leaves[o]):
                self.reuses.append(Reuse(position, source, results[leaf], (n, leaf) in must))
        return results

    def loop(self, i: Instruction) -> Leaves:
        condition, body = i.attributes["condition"], i.attributes["body"]
        kept, init = self.kept[body], self.leaves[i.operands[0]]
        position = self.step()
        slots = []
        for source, (_, shape), keep in zip(init, i.shape.leaves(), kept):
            if keep or source == NO_BUFFER:
                self.touch((source,))
                slots.append(source)
            else:
                slots.append(self.variable(shape))
                self.copy(loop_entry(i), position, source, slots[-1], i)
        carried = tuple(slots)
        self.depth += 1
        predicate = self.walk(condition, [carried])
        self.step()
        self.touch(predicate)
        self.touch(carried)
        roots = self.walk(body, [carried])
        position = self.step()
        for source, slot, keep in zip(roots, carried, kept):
            if not keep and slot != NO_BUFFER:
                self.touch((source,))
        for source, slot, keep in zip(roots, carried, kept):
            if not keep and slot != NO_BUFFER:
                self.copy(loop_end(i), position, source, slot, i)
        self.depth -= 1
        self.step()
        self.touch(carried)
        return carried

    def conditional(self, i: Instruction) -> Leaves:
        self.step()
        self.touch(self.leaves[i.operands[0]])
        slots = [self.slot(shape) for _, shape in i.shape.leaves()]
        walked: list[Branch] = []
        number = len(self.choices)
        self.choices.append((walked, 0))
        for n, branch in enumerate(branches(i)):
            walked.append(Branch(2 * self.position + 1))
            self.inside.append(walked[-1])
            roots = self.walk(branch, [self.leaves[i.operands[n + 1]]])
            position = self.step()
            for source, slot in zip(roots, slots):
                if slot != NO_BUFFER:
                    self.copy(branch_end(i, n), position, source, slot, i)
            self.inside.pop()
        self.choices[number] = walked, 2 * self.position + 1
        self.step()
        self.touch(tuple(slots))
        return tuple(slots)

    def part(self, walked: Sequence[Branch], end: int) -> None:
        """End the lives of what is read in branches for the last time: in each branch with the branch's last read."""
        start = walked[0].start
        for v in {v for branch in walked for v in branch.reads}:
            found: list[tuple[int, int]] = []
            for first, last in self.variables[v].segments:
                if first < start < last <= end:
                    found.append((first, start))
                    for branch in walked:
                        if v in branch.reads:
                            self.extend(found, branch.start, branch.reads[v])
                else:
                    found.append((first, last))
            self.variables[v].segments = found

    def slot(self, shape: Shape) -> int:
        """A variable that holds no value yet."""
        index = self.variable(shape)
        if index != NO_BUFFER:
            self.variables[index].segments.clear()
        return index
