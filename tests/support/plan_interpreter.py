"""Runs a Plan on byte buffers, with each kernel run by the evaluator: tests fusion, buffers and aliasing without
emitters.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...evaluator.evaluator import Evaluator
from ...evaluator.reference.float_environment import flushing_subnormals
from ...hlo.analysis.rows import rows_of_body
from ...hlo.ir import Instruction
from ...hlo.library.calls import LIBRARY
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from ...planning.inplace import BY_ELEMENT
from ...planning.plan import AllocationKind, BufferSlice, ConditionalStep, CopyStep, KernelStep, Plan, Step, WhileStep

POISON = 0xA5
"""The content of memory that has not been written."""


def run_plan(plan: Plan, inputs: Sequence[np.ndarray], *, seed: int = 0) -> list[np.ndarray]:
    """The result leaves, in logical order. Raises AssertionError if a kernel works in place but must not."""
    return results_of(Machine(plan, inputs, seed))


def results_of(machine: Machine) -> list[np.ndarray]:
    """Run the machine's plan and return the result leaves."""
    with flushing_subnormals(True), np.errstate(all="ignore"):
        machine.run(machine.plan.steps)
    return loaded_results(machine)


def loaded_results(machine: Machine) -> list[np.ndarray]:
    """The result leaves in the machine's memory."""
    allocations = machine.plan.assignment.allocations
    results = {a.number: a for a in allocations if a.kind is AllocationKind.RESULT}
    results |= {a.result: a for a in allocations if a.result >= 0}
    return [machine.load(BufferSlice(a.index, 0, a.size), a.shape).copy() for _, a in sorted(results.items())]


def to_memory(array: np.ndarray, shape: Shape) -> np.ndarray:
    """The bytes of a logical array in the order of the shape's layout."""
    physical = np.ascontiguousarray(np.transpose(array.reshape(shape.dims), shape.minor_to_major[::-1]))
    return np.frombuffer(physical.tobytes(), np.uint8)


def from_memory(data: np.ndarray, shape: Shape) -> np.ndarray:
    """The logical array of bytes in the order of the shape's layout (a view)."""
    order = shape.minor_to_major[::-1]
    physical = data.view(shape.dtype.numpy).reshape([shape.dims[d] for d in order])
    return np.transpose(physical, np.argsort(order)) if order else physical.reshape(())


class Machine:
    def __init__(self, plan: Plan, inputs: Sequence[np.ndarray], seed: int):
        self.plan, self.evaluator = plan, Evaluator(seed=seed)
        self.random = np.random.default_rng(0)
        self.memory: list[np.ndarray] = []
        self.compiled: dict[Instruction, object] = {}
        arrays = list(inputs)
        for a in plan.assignment.allocations:
            data = np.full(a.size, POISON, np.uint8)
            if a.kind is AllocationKind.PARAMETER:
                data = to_memory(np.asarray(arrays[a.number]), a.shape).copy()
            elif a.kind is AllocationKind.CONSTANT:
                data = to_memory(a.literal.array, a.shape)
            self.memory.append(data)

    def bytes(self, piece: BufferSlice) -> np.ndarray:
        return self.memory[piece.allocation][piece.offset : piece.offset + piece.size]

    def load(self, piece: BufferSlice, shape: Shape) -> np.ndarray:
        return from_memory(self.bytes(piece), shape)

    def run(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, KernelStep):
                self.kernel(step)
            elif isinstance(step, CopyStep):
                self.bytes(step.destination)[:] = self.bytes(step.source)
            elif isinstance(step, WhileStep):
                self.loop(step)
            elif isinstance(step, ConditionalStep):
                self.run(step.branches[self.branch(step)])

    def loop(self, step: WhileStep) -> None:
        count, before = 0, b""
        while True:
            # As in the evaluator: a loop that changes nothing any more is infinite, and ends with what there is.
            if count > 64 and (count - 1).bit_count() == 1 and b"".join(self.memory) == before:
                return
            before = b"".join(self.memory) if count >= 64 and count.bit_count() == 1 else b""
            self.run(step.condition)
            if not self.bytes(step.predicate)[0]:
                break
            self.run(step.body)
            count += 1
        assert step.trip_count in (None, count), f"{step.instruction.name} ran {count} times, not {step.trip_count}"

    def branch(self, step: ConditionalStep) -> int:
        selector = self.bytes(step.selector)
        if step.selector_is_pred:
            return 0 if selector[0] else 1
        number, last = int(selector.view(np.int32)[0]), len(step.branches) - 1
        return number if 0 <= number <= last else last

    def evaluate(self, step: KernelStep) -> list[np.ndarray]:
        """The result leaves of a step's kernel, computed from this step's memory."""
        i = step.kernel.instruction
        operands = [
            self.load(step.arguments[n], o.shape) if n >= 0 else None for n, o in zip(step.kernel.operands, i.operands)
        ]
        if i not in self.compiled:
            self.compiled[i] = self.evaluator.step(i)
        value = self.compiled[i](*operands)
        return [np.array(x) for x in _leaves(value, i.shape)]

    def kernel(self, step: KernelStep) -> None:
        i = step.kernel.instruction
        shapes = [s for _, s in i.shape.leaves()]
        results = self.evaluate(step)
        for leaf, n in enumerate(step.kernel.results):
            if n >= 0 and n in step.kernel.operands and i.opcode not in LIBRARY:
                self.prove_in_place(step, leaf, results, shapes)
        for n, value, shape in zip(step.kernel.results, results, shapes):
            if n >= 0:
                self.bytes(step.arguments[n])[:] = to_memory(value, shape)

    def sorted_rows(self, sort: Instruction, shapes: list[Shape]) -> list[np.ndarray]:
        """Masks of the bytes of a sort's results that count as written already: some rows, the same in all results."""
        dims = [1 if d in sort.dimensions else n for d, n in enumerate(shapes[0].dims)]
        written = np.broadcast_to(self.random.random(dims) < 0.5, shapes[0].dims)
        return [np.repeat(to_memory(written, s) != 0, s.dtype.bytes) for s in shapes]

    def written(self, step: KernelStep, leaf: int, shapes: list[Shape]) -> list[np.ndarray | None]:
        """Masks of the bytes of the results that count as written already: some elements of one leaf, or of all leaves
        if one loop writes them; for a row kernel and a sort, some rows of all leaves.
        """
        body = step.instruction.called()[0] if step.instruction.opcode is Op.FUSION else None
        last = body.root if body is not None else step.instruction
        if last.opcode is Op.SORT:
            return list(self.sorted_rows(last, shapes))
        rows = rows_of_body(body) if body is not None and body.root.opcode is not Op.REDUCE else None
        alike = [(s.dims, s.strides) == (shapes[leaf].dims, shapes[leaf].strides) for s in shapes]
        by_element = all(alike) or (body is not None and body.opcodes <= BY_ELEMENT)
        some = self.random.random(rows.count if rows else shapes[leaf].size) < 0.5
        return [
            np.repeat(some, s.size // max(some.size, 1) * s.dtype.bytes)
            if rows or n == leaf or (by_element and alike[n])
            else None
            for n, s in enumerate(shapes)
        ]

    def prove_in_place(self, step: KernelStep, leaf: int, results: list[np.ndarray], shapes: list[Shape]) -> None:
        """Check that the result is the same if some elements are written before the others are computed."""
        there = self.bytes(step.arguments[step.kernel.results[leaf]])
        expected = [to_memory(value, shape) for value, shape in zip(results, shapes)]
        before, after = there.copy(), expected[leaf]
        masks = self.written(step, leaf, shapes)
        there[masks[leaf]] = after[masks[leaf]]
        again = [to_memory(value, shape).copy() for value, shape in zip(self.evaluate(step), shapes)]
        for a, b, mask in zip(again, expected, masks, strict=True):
            if mask is not None:
                a[mask] = b[mask]
            assert np.array_equal(a, b), f"{step.instruction.name} may not run in place"
        there[:] = before


def _leaves(value: object, shape: Shape):
    if shape.is_tuple:
        for part, s in zip(value, shape.elements):
            yield from _leaves(part, s)
    else:
        yield value
