"""Row kernels (row_graph.py): reductions over rows with elementwise ops between them, as one loop over rows.

Each value of such a kernel is read at the current element of a row, at the current row, at the current column, or
elsewhere, and then does not depend on a reduction. Each level of reductions is one walk over the row. Expensive values
that several walks need are kept on the stack, or read back if they are results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice

from mlir import ir

from ..core.builder import Index, Loop, Unroll, Value
from ..core.elements import Scalar, parts, raw_type, spread
from ..core.graph import Buffer, Node
from ..loops.elemental import Elemental, Indices, Linear, Reads, Request, load_element, store_element
from ..loops.form import Answer, Fits
from ..loops.ranges import Steps, bounds, positions_of
from ..loops.reduced import initials_of, operands_of
from ..loops.row_graph import PASSED, Role
from ..loops.view import Subject, View
from ..reductions.extremum_run import ExtremumRun
from ..reductions.long_sums import Carried
from ..reductions.reduce import Running, finished, long_sums
from ..reductions.sum_run import SumRun
from .row_walks import Call, Rows, Walk, is_reduced, writer_of


def fits(view: View, subject: Subject) -> Answer:
    graph = subject.rows
    if isinstance(graph, str) or graph.single:
        return graph if isinstance(graph, str) else "a reduction is all that is computed"
    rows = Rows.of(graph, subject.results, view.in_place).calling(view.facts)
    return Fits(rows, graph.takes(view.partition), rows.code(view.facts))


def emit(e: Elemental, subject: Subject, rows: Rows, steps: Steps | None) -> None:
    RowKernel(e, rows, subject.results).emit(steps)


class RowKernel(Elemental):
    """Emits one row kernel."""

    def __init__(self, e: Elemental, rows: Rows, results: Sequence[Buffer]):
        super().__init__(e.b, e.pointers, e.rules, e.scratch)
        self.plan, self.graph, self.results = rows, rows.graph, results
        self.stacks: dict[Buffer, Value] = {}
        self.row: list[Index] = []
        self.column: list[Index] = []
        self.row_number: Index = 0
        self.column_number: Index = 0
        graph = self.graph
        first = writer_of(next(x for x in graph.roles if is_reduced(graph, x)))
        live = [d for d in first.inputs[0].dims if d != 1]
        split = graph.outer_dims(first.inputs[0].shape) or 0
        self.outer, self.inner = ([graph.count], [graph.length]) if graph.plain else (live[:split], live[split:])

    def emit(self, steps: Steps | None = None) -> None:
        b = self.b
        if steps is not None:
            loops = self._open_steps(steps)
        else:
            loops = [b.open_loop(0, size) for size in self.outer if size != 1]
            self.row = [loop.index for loop in loops] if loops else [0] * len(self.outer)
            self.row_number = self.joined(self.row, self.outer)
        for step in self.plan.walks:
            self._walk(step)
        self.write_numbers()
        b.close_loops(loops)

    def _open_steps(self, steps: Steps) -> list[Loop]:
        """A loop over the steps and one for each dimension of rows that lies in one step whole, or one over neighbours
        among the rows: LLVM makes no vectors of rows whose positions are remainders. Else a loop over all rows.
        """
        b, extent = self.b, steps.partition.extent
        count = next((k for k in range(1, len(self.outer)) if math.prod(self.outer[:k]) == extent), None)
        if count is not None:
            whole = self.outer[count:]
            loops = [b.open_loop(steps.begin, steps.end), *(b.open_loop(0, size) for size in whole)]
            self.row = [*positions_of(b, loops[0].index, self.outer[:count]), *(loop.index for loop in loops[1:])]
            self.row_number = self.joined([loop.index for loop in loops], [extent, *whole])
            return loops
        run = math.gcd(steps.partition.least, self.outer[-1]) if self.graph.count == extent else 1
        if len(self.outer) > 1 and run > 1:
            loops = [b.open_loop(steps.begin, steps.end, run), b.open_loop(0, run)]
            *others, first = positions_of(b, loops[0].index, self.outer)
            self.row = [*others, b.add(first, loops[1].index)]
            self.row_number = b.add(loops[0].index, loops[1].index)
            return loops
        loop = b.open_loop(*bounds(b, steps, self.graph.count))
        self.row_number, self.row = loop.index, positions_of(b, loop.index, self.outer)
        return [loop]

    def write_numbers(self) -> None:
        """Write the results that have one element a row."""
        numbers = [r for r in self.results if self.graph.roles[r] is Role.ROW]
        values = [self.value(r, self.place(r), raw=True) for r in numbers]
        for result, value in zip(numbers, values, strict=True):
            self.store(result, self.place(result), value)

    def _walk(self, step: Walk) -> None:
        b = self.b
        for number in step.numbers:
            self.value(number, self.place(number))
        if step.call is not None:
            self._call(step.reductions[0], step.call)
            return
        sums = step.sums
        running = [Running(self, node) for node in step.reductions if node not in sums]
        carried: Sequence[Value] = [v for each in running for v in self.opened(each)]

        def visit(column: Sequence[Index], given: Carried) -> tuple[list[Value], Carried]:
            self.column = list(column)
            self.column_number = self.joined(self.column, self.inner)
            self.recall_held(step)
            addends = spread(self.value(x, self.place(x)) for node in sums for x in operands_of(node))
            following = self.combined(running, given)
            self.keep_and_write(step)
            return addends, following

        if sums:
            initials = spread(self.value(x, ()) for node in sums for x in initials_of(node))
            partial = long_sums(b, self.inner, sums, [each.node for each in running])
            results: Carried = partial.add_up(visit, carried)
            found = iter(partial.results(initials))
        else:
            loops: list[Loop] = []
            for size in self.inner:
                kinds = {each.unroll(size) for each in running}
                unroll = kinds.pop() if len(kinds) == 1 else Unroll.SHORT
                loops.append(b.open_loop(0, size, 1, carried, unroll=unroll))
                carried = loops[-1].carried
            _, results = visit([loop.index for loop in loops], carried)
            results = b.close_loops(loops, results)
        remaining = iter(results)
        for each in running:
            self.bind(each.node, each.close(list(islice(remaining, each.count))))
        for node in sums:
            count = sum(parts(x.dtype) for x in node.outputs)
            self.bind(node, finished(self, node, list(islice(found, count))))

    def _call(self, node: Node, call: Call) -> None:
        """A walk that does nothing but add up a row, or find its extremum."""
        b, length, operand = self.b, self.graph.length, operands_of(node)[0]
        self.column, self.column_number = [0], 0
        offset, element = b.mul(self.row_number, length), raw_type(b.types, operand.dtype)
        initials = spread(self.value(x, ()) for x in initials_of(node))
        made = call.addends
        if made is not None:
            arrays = [b.pointer(self.pointers[x.argument], offset, element) for x in made.arrays]
            numbers = spread(self.value(x, self.place(x)) for x in made.numbers)
            total = SumRun(made.form, operand.dtype, call.fetches).call(b, arrays, length, numbers)
            self.bind(node, finished(self, node, [b.op("arith.addf", initials[0], total)]))
            return
        running, source = Running(self, node), call.source
        assert source is not None and running.extremum is not None
        place = b.pointer(self.pointers[source.argument], offset, element)
        most = ExtremumRun(running.extremum, source.dtype, fetches=False).call(b, place, length)
        self.bind(node, running.close(running.advance(running.open(initials), [most])))

    def recall_held(self, step: Walk) -> None:
        """Let values of the current element that are kept be known."""
        for buffer in step.held:
            self.b.remember((buffer, self.place(buffer), True), self._read(buffer))

    def keep_and_write(self, step: Walk) -> None:
        """Keep what later walks need of the current element, and write results."""
        for buffer in step.kept:
            self._keep(buffer, self.value(buffer, self.place(buffer), raw=True))
        written = [self.value(r, self.place(r), raw=True) for r in step.results]
        for result, value in zip(step.results, written, strict=True):
            self.store(result, self.place(result), value)

    def bind(self, node: Node, values: Sequence[Scalar]) -> None:
        """Let the results of a reduction be known at the current row."""
        for x, value in zip(node.outputs, values, strict=True):
            if x in self.graph.roles:
                self.b.remember((x, self.place(x), False), value)

    def opened(self, running: Running) -> list[Value]:
        return running.open(spread(self.value(x, ()) for x in initials_of(running.node)))

    def combined(self, running: Sequence[Running], carried: Sequence[Value]) -> list[Value]:
        """The carried values of all reductions after one more element."""
        remaining, results = iter(carried), []
        for each in running:
            old = list(islice(remaining, each.count))
            results += each.advance(old, [self.value(x, self.place(x)) for x in operands_of(each.node)])
        return results

    # Places ----------------------------------------------------------------------------------------------------------

    def place(self, buffer: Buffer) -> Indices:
        """The index of a buffer's element at the current row and column. The buffer must have a role."""
        role, b, dims = self.graph.roles[buffer], self.b, buffer.dims
        if not dims:
            return ()
        if self.graph.plain:
            if role is Role.FULL:
                return Linear((b.add(b.mul(self.row_number, self.graph.length), self.column_number),))
            return Linear((self.row_number if role is Role.ROW else self.column_number,))
        live = [d for d in dims if d != 1]
        split = {Role.ROW: len(live), Role.COLUMN: 0}.get(role)
        if split is None:
            split = self.graph.outer_dims(buffer.shape) or 0
        known = [
            *self._split(self.row_number, self.row, self.outer, live[:split]),
            *self._split(self.column_number, self.column, self.inner, live[split:]),
        ]
        positions = iter(known)
        return tuple(0 if size == 1 else next(positions) for size in dims)

    def _split(self, number: Index, known: list[Index], sizes: list[int], dims: list[int]) -> list[Index]:
        if dims == sizes or not dims:
            return known if dims else []
        found = []
        for k, size in enumerate(dims):
            part = self.b.div(number, math.prod(dims[k + 1 :]))
            found.append(part if k == 0 else self.b.rem(part, size))
        return found

    def joined(self, index: Sequence[Index], sizes: Sequence[int]) -> Index:
        total: Index = 0
        for i, size in zip(index, sizes, strict=True):
            total = self.b.add(self.b.mul(total, size), i)
        return total

    def _compute(self, request: Request) -> Reads:
        buffer, index, raw = request
        if buffer in self.graph.roles and buffer.writer is not None and buffer.writer.opcode in PASSED:
            source, role = self.graph.sources(buffer)[0]
            known = self.b.recall((buffer, index, not raw)) is not None
            if role is not None and not known and index == self.place(buffer):
                made = yield source, self.place(source), raw
                self.b.remember(request, made)
                return made
        return (yield from super()._compute(request))

    # What is kept between walks --------------------------------------------------------------------------------------

    def _read(self, buffer: Buffer) -> Scalar:
        if buffer not in self.stacks:
            result = self.plan.written[buffer]
            return self.load_raw(result, self.offset(result, self.place(result)))
        return load_element(self.b, self.stacks[buffer], buffer.dtype, self.kept_at())

    def _keep(self, buffer: Buffer, value: Scalar) -> None:
        if buffer not in self.stacks:
            count = parts(buffer.dtype) * self.graph.length
            self.stacks[buffer] = self.row_array(raw_type(self.b.types, buffer.dtype), count)
        store_element(self.b, self.stacks[buffer], buffer.dtype, self.kept_at(), value)

    def kept_at(self) -> Index:
        """Where the current element lies in what is kept."""
        return self.column_number

    def row_array(self, type: ir.Type, count: int) -> Value:
        """Memory for `count` raw scalars of a row."""
        return self.b.alloca(type, count, 64)
