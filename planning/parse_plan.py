"""Reads the text of a Plan (plan_text.py). An error names the line and the column.

The HLO modules are read by HLO's parser. What holds for every plan is checked here, line by line; that each value lies
where it is read is proved by assignment_checker.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar

from ..formats.text.lexer import NAME, Lexer
from ..formats.text.parse_shapes import parse_shape
from ..formats.text.parser import parse_module
from ..hlo.analysis.trip_count import trip_count
from ..hlo.dtypes import DType
from ..hlo.errors import Location, ParseError
from ..hlo.ir import Computation, Instruction, Module
from ..hlo.opcodes import Op
from ..hlo.shapes import ShapeIndex, array, tuple_shape
from ..hlo.verify.verifier import verify
from .allocation import MOST_MARKS, Allocation, AllocationKind, BufferSlice
from .partition import Partition
from .plan import (
    BufferAssignment,
    ConditionalStep,
    CopyStep,
    KernelArgument,
    KernelRequest,
    KernelStep,
    Plan,
    ProfileStep,
    Step,
    WhileStep,
)
from .plan_rules import Interface, allocation_error, request_error, step_error, value_error
from .plan_text import bodies_of, uses_of

T = TypeVar("T")
MOST_NESTED = 64
"""Loops and branches around a step."""

_HLO = re.compile(r"^HloModule\b", re.MULTILINE)
_INSTRUCTION = re.compile(rf"%({NAME})", re.ASCII)


def plan_from_text(text: str, file: str = "<plan>") -> Plan:
    """The plan that `plan_to_text` printed. Raises ParseError or VerificationError with the place."""
    starts = [m.start() for m in _HLO.finditer(text)]
    lexer = Lexer(text[: starts[0]] if starts else text, file)
    if not starts:
        lexer.fail("there is no HLO module behind the plan", len(text), "end the text with: HloModule name …")
    modules: dict[str, Module] = {}
    for begin, end in pairwise([*starts, len(text)]):
        line = text.count("\n", 0, begin)
        module = parse_module("\n" * line + text[begin:end], file)
        if module.name in modules:
            place = Location(line + 1, 1, file)
            raise ParseError(f"a second module '{module.name}'", location=place, remedy="give each its own name")
        verify(module)
        modules[module.name] = module
    first = next(iter(modules.values()))
    return _Reader(lexer, first, modules).plan()


class _Reader:
    def __init__(self, lexer: Lexer, module: Module, modules: dict[str, Module]):
        self.lexer, self.module, self.modules = lexer, module, modules
        self.computations = {c.name: c for c in module.computations}
        self.interface = Interface(module)
        self.allocations: list[Allocation] = []
        self.kernels: dict[str, KernelRequest] = {}
        self.depth = 0

    def plan(self) -> Plan:
        lexer = self.lexer
        self.word("plan", "the text of a plan starts with: plan name {")
        at = lexer.pos
        if lexer.name("the module's name") != self.module.name:
            lexer.fail(f"the first module behind the plan is '{self.module.name}'", at, "put the plan's own first")
        lexer.expect("{", "before the allocations")
        slices: dict[tuple[Instruction, ShapeIndex], BufferSlice] = {}
        scratch: dict[Instruction, BufferSlice] = {}
        while lexer.eat_word("allocation"):
            self.allocations.append(self.allocation())
        self.whole_interface()
        while lexer.eat_word("values"):
            self.values(slices)
        while lexer.eat_word("scratch"):
            at, i = lexer.pos, self.instruction(None)
            if i in scratch:
                lexer.fail(f"the scratch memory of '{i.name}' is given twice", at)
            scratch[i] = self.slice()
        while lexer.eat_word("kernel"):
            self.kernel()
        self.word("steps", "lines are allocation, values, scratch and kernel, in this order, then steps")
        steps = self.block(self.module.entry)
        lexer.expect("}", "after the steps")
        if not lexer.ended:
            lexer.fail(f"expected an HLO module, found {lexer.found()}", remedy="begin it with HloModule in column 1")
        return Plan(
            self.module,
            BufferAssignment(tuple(self.allocations), slices, scratch),
            steps,
            tuple(self.kernels.values()),
        )

    # -- words -----------------------------------------------------------------------------------------------------
    def word(self, word: str, remedy: str | None = None) -> None:
        if not self.lexer.eat_word(word):
            self.lexer.fail(f"expected '{word}', found {self.lexer.found()}", remedy=remedy)

    def one_of(self, *words: str) -> str:
        found = next((w for w in words if self.lexer.eat_word(w)), None)
        if found is None:
            self.lexer.fail(f"expected {' or '.join(words)}, found {self.lexer.found()}")
        return found

    def number(self, what: str) -> int:
        at = self.lexer.pos
        value = self.lexer.integer(what)
        if not 0 <= value < 1 << 63:
            self.lexer.fail(f"expected a number from 0 {what}, found {value}", at)
        return value

    def listed(self, begin: str, end: str, item: Callable[[], T]) -> tuple[T, ...]:
        """Items with commas between them, in brackets."""
        lexer, found = self.lexer, []
        lexer.expect(begin, "before the list")
        while not lexer.eat(end):
            if found:
                lexer.expect(",", f"or '{end}' in the list")
            found.append(item())
        return tuple(found)

    def checked(self, message: str | None, at: int) -> None:
        if message is not None:
            self.lexer.fail(message, at, "print the plan again with plan_to_text")

    def slice(self) -> BufferSlice:
        lexer, at = self.lexer, self.lexer.pos
        number = self.number("of an allocation")
        lexer.expect("[", "after the allocation")
        begin = self.number("where the slice begins")
        lexer.expect(":", "in the slice")
        end = self.number("where the slice ends")
        lexer.expect("]", "after the slice")
        if number >= len(self.allocations):
            lexer.fail(f"there is no allocation {number}", at, f"they are 0 to {len(self.allocations) - 1}")
        if not begin <= end <= self.allocations[number].size:
            size = self.allocations[number].size
            lexer.fail(f"bytes {begin} to {end} are no part of allocation {number}, which has {size}", at)
        return BufferSlice(number, begin, end - begin)

    def instruction(self, scope: Computation | None) -> Instruction:
        """`%name` of `scope`, or `%name in computation`."""
        lexer, at = self.lexer, self.lexer.pos
        found = lexer.match(_INSTRUCTION)
        if found is None:
            lexer.fail(f"expected an instruction of the module, found {lexer.found()}", remedy="write %name")
        name = found[1]
        if lexer.eat_word("in"):
            scope = self.computation()
        if scope is None:
            lexer.fail("the instruction's computation is missing", at, f"write %{name} in COMPUTATION")
        if name not in scope.by_name:
            lexer.fail(f"computation '{scope.name}' has no instruction '{name}'", at)
        return scope.by_name[name]

    def computation(self) -> Computation:
        lexer, at = self.lexer, self.lexer.pos
        name = lexer.name("a computation's name")
        if name not in self.computations:
            lexer.fail(f"the module has no computation '{name}'", at)
        return self.computations[name]

    def held(self) -> Instruction:
        """An instruction of the module or the root of another: `module name`."""
        if not self.lexer.eat_word("module"):
            return self.instruction(None)
        at = self.lexer.pos
        name = self.lexer.name("a module's name")
        if name not in self.modules or self.modules[name] is self.module:
            self.lexer.fail(f"no module '{name}' follows the plan's own", at)
        return self.modules[name].entry.root

    # -- memory ----------------------------------------------------------------------------------------------------
    def allocation(self) -> Allocation:
        lexer, at = self.lexer, self.lexer.pos
        index = self.number("of the allocation")
        lexer.expect("=", "after the allocation's number")
        kind = AllocationKind(self.one_of(*(k.value for k in AllocationKind)))
        number = result = -1
        if kind in (AllocationKind.PARAMETER, AllocationKind.RESULT):
            number = self.number(f"of the {kind.value}")
        if lexer.eat_word("becomes"):
            self.word("result")
            result = self.number("of the result")
        shape = None if lexer.word() == "size" else parse_shape(lexer)
        size, alignment = self.assigned("size"), self.assigned("align")
        literal = None
        if lexer.eat_word("holds"):
            holder_at, holder = lexer.pos, self.held()
            if holder.opcode is not Op.CONSTANT:
                lexer.fail(f"'{holder.name}' is no constant", holder_at)
            literal = holder.literal
        made = Allocation(index, kind, size, alignment, number, shape, literal, result)
        self.checked(allocation_error(made, len(self.allocations), self.interface), at)
        return made

    def whole_interface(self) -> None:
        """Every parameter needs its allocation."""
        kind = AllocationKind.PARAMETER
        numbers = range(len(self.interface.leaves[kind]))
        missing = next((n for n in numbers if (kind, n) not in self.interface.taken), None)
        if missing is not None:
            self.lexer.fail(f"parameter {missing} has no allocation", remedy="add its line above")

    def assigned(self, word: str) -> int:
        self.word(word)
        self.lexer.expect("=", f"after '{word}'")
        return self.number(f"behind {word}=")

    def values(self, slices: dict[tuple[Instruction, ShapeIndex], BufferSlice]) -> None:
        lexer, scope = self.lexer, self.computation()
        lexer.expect("{", "before the values")
        start, given = lexer.pos, []
        while not lexer.eat("}"):
            i = self.instruction(scope)
            arrays = {index for index, shape in i.shape.leaves() if shape.is_array}
            while True:
                at = lexer.pos
                index = self.listed("{", "}", lambda: self.number("in an index")) if lexer.at("{") else ()
                if index not in arrays or (i, index) in slices:
                    lexer.fail(f"'{i.name}' has no array {list(index)}, or it is given twice", at)
                piece = self.slice()
                self.checked(value_error(i, index, piece, self.allocations, self.interface), at)
                slices[i, index] = piece
                given.append((i, index))
                if not lexer.eat(","):
                    break
        self.whole_block(scope, given, start)

    def whole_block(self, scope: Computation, given: list[tuple[Instruction, ShapeIndex]], at: int) -> None:
        """A block lists every array of its computation, except for results that lie elsewhere in a plan from LHLO."""
        if all(i is scope.root for i, _ in given) and len(scope.instructions) > 1:
            return
        listed = set(given)
        arrays = ((i, index) for i in scope.instructions for index, shape in i.shape.leaves() if shape.is_array)
        missing = next((i for i, index in arrays if (i, index) not in listed), None)
        if missing is not None:
            self.lexer.fail(f"an array of '{missing.name}' has no place", at, "add it to the block")

    # -- kernels ---------------------------------------------------------------------------------------------------
    def symbol(self) -> str:
        self.lexer.expect("@", "before the kernel's name")
        quoted = self.lexer.at('"')
        return self.lexer.string("as the kernel's name") if quoted else self.lexer.name("the kernel's name")

    def kernel(self) -> None:
        lexer, at = self.lexer, self.lexer.pos
        name = self.symbol()
        if name in self.kernels:
            lexer.fail(f"a second kernel '{name}'", at, "give each its own name")
        given = self.listed("(", ")", self.argument)
        uses, arguments = tuple(use for use, _ in given), tuple(argument for _, argument in given)
        operands, results = self.numbers("operands"), self.numbers("results")
        split = self.partition() if lexer.eat_word("split") else None
        lexer.expect("=", "before the kernel's instruction")
        instruction = self.held()
        scratch = uses.index("scratch") if "scratch" in uses else -1
        made = KernelRequest(name, instruction, arguments, operands, results, scratch, split)
        self.checked(request_error(made, self.allocations), at)
        if uses_of(made) != uses:
            lexer.fail(f"the arguments are {', '.join(uses_of(made))} by their numbers", at)
        self.kernels[name] = made

    def argument(self) -> tuple[str, KernelArgument]:
        use, piece = self.one_of("inout", "in", "out", "scratch"), self.slice()
        self.word("align")
        return use, KernelArgument(piece, self.number("of bytes"), use != "in")

    def numbers(self, word: str) -> tuple[int, ...]:
        self.word(word)
        self.lexer.expect("=", f"after '{word}'")
        return self.listed("[", "]", lambda: self.lexer.integer("of an argument"))

    def partition(self) -> Partition:
        self.lexer.expect(":", "after 'split'")
        extent = self.number("of steps")
        self.word("steps")
        self.word("over")
        dimensions = self.listed("[", "]", lambda: self.number("of a dimension"))
        self.lexer.expect(",", "after the dimensions")
        least = self.number("of steps")
        self.word("at")
        self.word("least")
        return Partition(dimensions, extent, least)

    # -- steps -----------------------------------------------------------------------------------------------------
    def block(self, scope: Computation | None) -> tuple[Step, ...]:
        lexer, found = self.lexer, []
        lexer.expect("{", "before the steps")
        self.depth += 1
        if self.depth > MOST_NESTED:
            lexer.fail(f"steps nested deeper than {MOST_NESTED}")
        while not lexer.eat("}"):
            at = lexer.pos
            step = _STEPS[self.one_of(*_STEPS)](self, scope)
            self.checked(step_error(step, self.allocations), at)
            found.append(step)
        self.depth -= 1
        return tuple(found)

    def named(self, scope: Computation | None, stand_in: Instruction) -> Instruction:
        """The instruction of a step; `stand_in` with the given name if the module does not hold it."""
        if not self.lexer.at('"'):
            return self.instruction(scope)
        name = self.lexer.string("as the step's name")
        return stand_in if stand_in.name == name else stand_in.replace(name=name)

    def kernel_step(self, scope: Computation | None) -> Step:
        lexer, at = self.lexer, self.lexer.pos
        name = self.symbol()
        if name not in self.kernels:
            lexer.fail(f"there is no kernel '{name}'", at, "list it above the steps")
        kernel = self.kernels[name]
        arguments = self.listed("(", ")", self.slice)
        return KernelStep(self.named(scope, kernel.instruction), kernel, arguments)

    def copy(self, scope: Computation | None) -> Step:
        source = self.slice()
        self.lexer.expect("->", "between the slices")
        target = self.slice()
        return CopyStep(self.named(scope, Instruction(Op.COPY, "", array(DType.U8, source.size))), source, target)

    def loop(self, scope: Computation | None) -> Step:
        predicate = self.slice()
        count = self.assigned("trip_count") if self.lexer.word() == "trip_count" and not self.lexer.at("%") else None
        at, i = self.lexer.pos, self.named(scope, Instruction(Op.WHILE, "", tuple_shape()))
        self.opcode(i, Op.WHILE, at)
        if i.called() and count != trip_count(i):
            self.lexer.fail(f"the trip count of '{i.name}' is {trip_count(i)}, not {count}", at)
        inside, body = bodies_of(i, 2)
        condition = self.block(inside)
        self.word("do")
        return WhileStep(i, condition, self.block(body), predicate, count)

    def conditional(self, scope: Computation | None) -> Step:
        is_pred = self.one_of("pred", "index") == "pred"
        selector = self.slice()
        at, i = self.lexer.pos, self.named(scope, Instruction(Op.CONDITIONAL, "", tuple_shape()))
        self.opcode(i, Op.CONDITIONAL, at)
        scopes = bodies_of(i, 0)
        steps: list[tuple[Step, ...]] = []
        self.lexer.expect("{", "before the branches")
        while not self.lexer.eat("}"):
            self.word("branch")
            at = self.lexer.pos
            if self.number("of the branch") != len(steps) or (scopes and len(steps) == len(scopes)):
                self.lexer.fail(f"expected branch {len(steps)} of {len(scopes) or 'several'}", at)
            steps.append(self.block(scopes[len(steps)] if scopes else None))
        if scopes and len(steps) != len(scopes):
            self.lexer.fail(f"'{i.name}' has {len(scopes)} branches, not {len(steps)}", at)
        return ConditionalStep(i, selector, is_pred, tuple(steps))

    def profile(self, scope: Computation | None) -> Step:
        begin = self.one_of("begin", "end") == "begin"
        at, number = self.lexer.pos, self.number("of the profile step")
        if number >= MOST_MARKS:
            self.lexer.fail(f"the id {number} is not below {MOST_MARKS}", at)
        return ProfileStep(self.lexer.string("as what is measured"), number, begin)

    def opcode(self, i: Instruction, opcode: Op, at: int) -> None:
        if i.opcode is not opcode:
            self.lexer.fail(f"'{i.name}' is no {opcode.value}", at)


_STEPS: dict[str, Callable[[_Reader, Computation | None], Step]] = {
    "kernel": _Reader.kernel_step,
    "copy": _Reader.copy,
    "while": _Reader.loop,
    "conditional": _Reader.conditional,
    "profile": _Reader.profile,
}
