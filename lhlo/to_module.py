"""LHLO → HLO on values: a program's steps with memory replaced by values, so that whatever takes HLO can judge it.

The evaluator and XLA run this form, costs and error bounds come from it; the stacks do not see it. Loops and branches
carry the memory that they touch. A loop's condition stands after the loop, too, and before the body where that reads
what the condition wrote.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from types import MappingProxyType
from typing import Any

from mlir import ir

from ..hlo.attributes import Raw
from ..hlo.dtypes import DType
from ..hlo.ir import Computation, Instruction, Module
from ..hlo.opcodes import Op
from ..hlo.shapes import Shape, array
from ..planning.plan import AllocationKind, BufferSlice
from .entry import Entry
from .memory_values import Access, Cell, Code, Memory, Names, cells_of
from .memrefs import shape_of_memref
from .program import Places, steps_of, uses_of
from .read import location_of, operands, output_count
from .table import OPCODE
from .to_hlo import Reader

PRED = array(DType.PRED)


def to_module(entry: Entry) -> Module:
    """The program as an HLO module with the same parameters and results."""
    return _Program(entry).module()


class _Program:
    def __init__(self, entry: Entry):
        self.entry, self.names = entry, Names()
        self.computations: list[Computation] = []
        self.renamed: dict[Computation, Computation] = {}

    def module(self) -> Module:
        entry, code = self.entry, Code(self.names)
        memory = Memory(code)
        given = {a.number: a for a in entry.allocations if a.kind is AllocationKind.PARAMETER}
        leaves: list[Instruction] = []
        for number, shape in enumerate(entry.parameters):
            parameter = code.add(Op.PARAMETER, shape, name=f"parameter.{number}", parameter_number=number)
            leaves += code.elements(parameter)
        tokens = [leaf for leaf in leaves if not leaf.shape.is_array]
        for number, leaf in enumerate(leaf for leaf in leaves if leaf.shape.is_array):
            if number in given:
                memory.write(BufferSlice(given[number].index, 0, given[number].size), leaf)
        for a in entry.allocations:
            if a.kind is AllocationKind.CONSTANT and a.literal is not None:
                value = code.add(Op.CONSTANT, a.literal.shape, literal=a.literal)
                memory.write(BufferSlice(a.index, 0, a.size), value)
        self.steps(entry.function.regions[0].blocks[0], code, memory)
        root = self.result(code, memory, tokens)
        made = code.finish("main", root)
        attributes = {"frontend_attributes": Raw(entry.dynamic)} if entry.dynamic else {}
        return Module(entry.name, (*self.computations, made), made, MappingProxyType(attributes))

    def result(self, code: Code, memory: Memory, tokens: Sequence[Instruction]) -> Instruction:
        taken = {a.number: a for a in self.entry.allocations if a.kind is AllocationKind.RESULT}
        taken |= {a.result: a for a in self.entry.allocations if a.result >= 0}
        values, numbers = [], itertools.count()
        for _, shape in self.entry.result.leaves():
            if not shape.is_array:
                values.append(code.add(Op.AFTER_ALL, shape, *tokens))
                continue
            number = next(numbers)
            if number in taken:
                values.append(memory.read(BufferSlice(taken[number].index, 0, shape.bytes), shape))
            else:
                values.append(memory.read(self.entry.elsewhere.get(number, BufferSlice(0, 0, 0)), shape))
        return self.nested(code, self.entry.result, iter(values))

    def nested(self, code: Code, shape: Shape, leaves: Iterator[Instruction]) -> Instruction:
        if not shape.is_tuple:
            leaf = next(leaves)
            return leaf if leaf.shape == shape else code.add(Op.COPY, shape, leaf)  # the layout may be left out
        return code.tuple([self.nested(code, element, leaves) for element in shape.elements])

    # --- steps ---
    def steps(self, block: ir.Block, code: Code, memory: Memory) -> None:
        for view in block.operations:
            op = view.operation
            write = _WRITE.get(op.name) or (_Program.kernel if op.name in OPCODE else None)
            if write is not None:
                write(self, op, code, memory)

    def kernel(self, op: ir.Operation, code: Code, memory: Memory) -> None:
        instruction = Reader(self.entry.file).step(op)
        values, count = operands(op), output_count(op)
        sources, targets = values[: len(values) - count], values[len(values) - count :]
        inputs = tuple(memory.read(self.place(v), o.shape) for v, o in zip(sources, instruction.operands, strict=True))
        attributes = {k: self.own(v) for k, v in instruction.attributes.items()}
        made = code.put(instruction.replace(operands=inputs, attributes=MappingProxyType(attributes)))
        for leaf, target in zip(code.elements(made), targets, strict=True):
            memory.write(self.place(target), leaf)

    def own(self, value: Any) -> Any:
        """An attribute value whose computations have names of their own in this module."""
        if isinstance(value, tuple):
            return tuple(map(self.own, value))
        if not isinstance(value, Computation):
            return value
        if value not in self.renamed:
            table: dict[Instruction, Instruction] = {}
            for i in value.instructions:
                attributes = {k: self.own(v) for k, v in i.attributes.items()}
                table[i] = i.replace(
                    operands=tuple(table[o] for o in i.operands), attributes=MappingProxyType(attributes)
                )
            made = Computation(self.names.fresh(value.name), tuple(table.values()), table[value.root], value.attributes)
            self.renamed[value] = made
            self.computations.append(made)
        return self.renamed[value]

    def copy(self, op: ir.Operation, code: Code, memory: Memory) -> None:
        shape = shape_of_memref(str(op.operands[0].type))
        source = self.place(op.operands[0])
        pieces = [
            p
            for p in memory.pieces.get(source.allocation, ())
            if (p.start, p.end) == (source.offset, source.offset + source.size)
        ]
        value = pieces[0].value if pieces else memory.read(source, shape)
        memory.write(self.place(op.operands[1]), value)

    def place(self, value: ir.Value) -> BufferSlice:
        return self.entry.places.slice_of(value, shape_of_memref(str(value.type)).bytes)

    def loop(self, op: ir.Operation, code: Code, memory: Memory) -> None:
        condition, body = (region.blocks[0] for region in op.regions)
        predicate = self.place(op.operands[0])
        before = list(accesses(condition, self.entry.places))
        inside = list(accesses(body, self.entry.places))
        cells = cells_of([*before, *inside, Access(predicate, PRED, written=False)])
        again = any(w.written and a.place.overlaps(w.place) for w in before for a in inside if not a.written)
        state = code.tuple([memory.read(c.place, c.shape) for c in cells])

        def run(blocks: Sequence[ir.Block], result: Callable[[Code, Memory], Instruction], stem: str) -> Computation:
            inner, held = self.carried(state.shape, cells)
            for block in blocks:
                self.steps(block, inner, held)
            made = inner.finish(stem, result(inner, held))
            self.computations.append(made)
            return made

        test = run([condition], lambda c, m: m.read(predicate, PRED), "condition")
        step = run(
            [condition, body] if again else [body],
            lambda c, m: c.tuple([m.read(s.place, s.shape) for s in cells]),
            "body",
        )
        name = op.attributes["name"].value if "name" in op.attributes else "while"
        made = code.add(Op.WHILE, state.shape, state, name=name, condition=test, body=step)
        self.restore(code, memory, made, cells)
        self.steps(condition, code, memory)

    def case(self, op: ir.Operation, code: Code, memory: Memory) -> None:
        branches = [o.operation for o in op.regions[0].blocks[0].operations if o.operation.name == "lhlo.branch"]
        blocks = [b.regions[0].blocks[0] for b in branches]
        cells = cells_of([a for block in blocks for a in accesses(block, self.entry.places)])
        by_pred = str(op.operands[0].type) == "memref<i1>"
        selector = memory.read(self.place(op.operands[0]), PRED if by_pred else array(DType.S32))
        state = code.tuple([memory.read(c.place, c.shape) for c in cells])
        called = []
        for block in blocks:
            inner, held = self.carried(state.shape, cells)
            self.steps(block, inner, held)
            root = inner.tuple([held.read(s.place, s.shape) for s in cells])
            called.append(inner.finish("branch", root))
            self.computations.append(called[-1])
        name = op.attributes["name"].value if "name" in op.attributes else "conditional"
        inputs = (selector, *([state] * len(blocks)))
        named: dict[str, Any] = {"branch_computations": tuple(called)}
        if by_pred:
            named = {"true_computation": called[0], "false_computation": called[1]}
        made = code.put(
            Instruction(
                Op.CONDITIONAL, name, state.shape, inputs, MappingProxyType(named), location_of(op, self.entry.file)
            )
        )
        self.restore(code, memory, made, cells)

    def carried(self, shape: Shape, cells: Sequence[Cell]) -> tuple[Code, Memory]:
        """A new computation on the memory that its one parameter carries."""
        code = Code(self.names)
        memory = Memory(code)
        state = code.add(Op.PARAMETER, shape, name="state", parameter_number=0)
        self.restore(code, memory, state, cells)
        return code, memory

    def restore(self, code: Code, memory: Memory, state: Instruction, cells: Sequence[Cell]) -> None:
        for number, cell in enumerate(cells):
            memory.write(cell.place, code.add(Op.GET_TUPLE_ELEMENT, cell.shape, state, index=number))


_WRITE = {"memref.copy": _Program.copy, "lhlo.while": _Program.loop, "lhlo.case": _Program.case}


def accesses(block: ir.Block, places: Places) -> Iterator[Access]:
    """The memory that the steps of a block touch, nested ones included."""
    for op in steps_of(block):
        for value, written in uses_of(op):
            shape = shape_of_memref(str(value.type))
            yield Access(places.slice_of(value, shape.bytes), shape, written)
