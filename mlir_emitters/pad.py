"""pad at a kernel's root: row by row, first what lies before the operand's elements, then these, then what lies behind.

The plain nest asks for each element whether it is the operand's, and reads it only then. LLVM makes vectors of that with
masked loads: without AVX-512, processors have none of narrow elements, and none that gather are quick.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..hlo.attributes import PadDim
from ..hlo.records import dataclass, replace
from .builder import Builder, Index, Unroll, Value
from .elemental import Elemental
from .elements import Scalar
from .graph import Buffer, Node
from .loops import UNMASKED, with_loops
from .ranges import Steps
from .regions import boxes_of

LEAST_ROW = 16
"""Elements of a row from which on it has loops of its own; LLVM makes vectors of several shorter rows."""

LEAST = 1 << 12
"""Elements of a result below which all that counts is what it takes to compile."""

INTERLEAVED = 8
"""Places from an element to the next up to which LLVM interleaves what is stored."""


@dataclass(frozen=True, slots=True)
class Run:
    """Where a row of the operand lies in one of the result: elements `first` … `first + count − 1`, from place `start`
    on, `step` places from each to the next.
    """

    first: int
    count: int
    start: int
    step: int

    @property
    def end(self) -> int:
        """The place behind the last element."""
        return self.start + (self.count - 1) * self.step + 1


def run_of(p: PadDim, size: int, padded: int) -> Run:
    """Of one dimension and its padding; without elements if there are none, or all are cut off."""
    step = p.interior + 1
    first = max(0, -(p.low // step))
    last = min(size - 1, (padded - 1 - p.low) // step)
    return Run(first, max(last - first + 1, 0), p.low + first * step, step)


def _runs_of(node: Node) -> list[Run]:
    """Of each dimension."""
    dims = zip(node.attributes["padding"], node.inputs[0].dims, node.output.dims, strict=True)
    return [run_of(*of) for of in dims]


def has_rows(b: Builder, node: Node, result: Buffer) -> bool:
    """Whether rows have loops of their own: if elements of them, which are no part of a region, come from both sides."""
    if not result.dims or result.shape.size < LEAST:
        return False
    fast = result.shape.minor_to_major[0]
    p = node.attributes["padding"][fast]
    if not (p.low > 0 or p.high > 0 or p.interior) or result.dims[fast] < LEAST_ROW:
        return False
    if not all(run.count for run in _runs_of(node)):
        return False
    narrow = p.interior > 0 or result.dtype.bytes <= 2
    return b.vector_bits <= UNMASKED and narrow and not boxes_of([result])


def emit_pad(e: Elemental, node: Node, targets: Sequence[tuple[Buffer, Buffer]], steps: Steps | None = None) -> bool:
    """Emit the rows. False where the plain nest is right."""
    result = targets[0][1]
    fast = result.shape.minor_to_major[0]
    inside = () if steps is None else steps.dimensions
    b, (source, filler), runs = e.b, node.inputs, _runs_of(node)
    part = result.dims[fast] == result.shape.size and runs[fast].step <= INTERLEAVED
    if len(targets) != 1 or (fast in inside and not part):
        return False
    outside = e.value(filler, (), raw=True)
    if steps is not None and fast in inside:
        _Row(e, result, [0] * len(runs), fast, outside).write_part(node.output, source, runs, steps)
        return True

    def write(index: tuple[Index, ...]) -> None:
        row = _Row(e, result, index, fast, outside)
        conditions = list(_inside(b, index, runs, result.dims, fast))
        if not conditions:
            row.write(source, runs)
        else:
            branch = b.branch(_all(b, conditions), [])
            with branch.side(0):
                row.write(source, runs)
            with branch.side(1):
                row.fill(0, result.dims[fast])

    rows = Buffer(replace(result.shape, dims=(*result.dims[:fast], 1, *result.dims[fast + 1 :])))
    with_loops(b, rows, write, steps, unroll=Unroll.NONE)
    return True


def _inside(b: Builder, index: Sequence[Index], runs: Sequence[Run], dims: Sequence[int], fast: int) -> Iterator[Value]:
    """The conditions under which a row has elements of the operand."""
    for d, (i, run, size) in enumerate(zip(index, runs, dims, strict=True)):
        if d == fast or (run.start == 0 and run.end == size and run.step == 1):
            continue
        at = b.sub(i, run.start)
        yield b.compare_integers("ult", b.materialize(at), b.constant(run.end - run.start, b.types.i64))
        if run.step > 1:
            yield b.compare_integers("eq", b.materialize(b.rem(at, run.step)), b.constant(0, b.types.i64))


def _all(b: Builder, conditions: Sequence[Value]) -> Value:
    together = conditions[0]
    for condition in conditions[1:]:
        together = b.binary("andi", together, condition)
    return together


@dataclass(eq=False, slots=True)
class _Row:
    """A row of the result, whose position along the fastest dimension counts for nothing."""

    e: Elemental
    result: Buffer
    index: Sequence[Index]
    fast: int
    outside: Scalar

    def write(self, source: Buffer, runs: Sequence[Run]) -> None:
        """The row, of which a part is the operand's."""
        run, size = runs[self.fast], self.result.dims[self.fast]
        gaps = range(1, run.step)
        if run.step > INTERLEAVED:
            self.fill(0, size)
            self._move(source, runs, 0, run.count, ())
            return
        self.fill(0, run.start)
        last = run.count - len(gaps[:1])  # no gap follows the last element
        self._move(source, runs, 0, last, gaps)
        self._move(source, runs, last, run.count, ())
        self.fill(run.end, size)

    def _move(self, source: Buffer, runs: Sequence[Run], first: Index, end: Index, gaps: Sequence[int]) -> None:
        """Write these elements of the operand's row, and the padding value to so many places behind each."""
        if first == end:
            return
        b, run = self.e.b, runs[self.fast]
        taken = [b.add(b.div(b.sub(i, r.start), r.step), r.first) for i, r in zip(self.index, runs, strict=True)]
        with b.loop(first, end) as loop:
            at = b.add(b.mul(loop.index, run.step), run.start)
            taken[self.fast] = b.add(loop.index, run.first)
            self._store(at, self.e.value(source, tuple(taken), raw=True))
            for gap in gaps:
                self._store(b.add(at, gap), self.outside)

    def write_part(self, whole: Buffer, source: Buffer, runs: Sequence[Run], steps: Steps) -> None:
        """As `write`, of the steps, which number the places of the only row. What is next to their ends, or is no
        element of the operand with its gap, is written as in a plain nest. whole: the result of the pad.
        """
        b, run = self.e.b, runs[self.fast]
        groups = run.count - 1
        least = b.binary("maxsi", b.materialize(b.sub(steps.begin, run.start)), 0)
        most = b.binary("maxsi", b.materialize(b.sub(steps.end, run.start)), 0)
        first = b.binary("minsi", b.materialize(b.div(b.add(least, run.step - 1), run.step)), groups)
        end = b.binary("maxsi", b.binary("minsi", b.materialize(b.div(most, run.step)), groups), first)
        start, stop = (b.add(b.mul(k, run.step), run.start) for k in (first, end))
        ends = b.binary("minsi", b.materialize(start), steps.end), b.binary("maxsi", b.materialize(stop), steps.begin)
        self._plain(whole, steps.begin, ends[0])
        self._move(source, runs, first, end, range(1, run.step))
        self._plain(whole, ends[1], steps.end)

    def _plain(self, whole: Buffer, first: Index, end: Index) -> None:
        with self.e.b.loop(first, end) as loop:
            place = (*self.index[: self.fast], loop.index, *self.index[self.fast + 1 :])
            self._store(loop.index, self.e.value(whole, place, raw=True))

    def fill(self, first: int, end: int) -> None:
        """Write the padding value to these places."""
        if first < end:
            with self.e.b.loop(first, end) as loop:
                self._store(loop.index, self.outside)

    def _store(self, at: Index, value: Scalar) -> None:
        place = (*self.index[: self.fast], at, *self.index[self.fast + 1 :])
        self.e.store(self.result, place, value)
