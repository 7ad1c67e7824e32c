"""Regions of results in which each element of a concatenation comes from one operand, and each of a padding from inside
or from outside: a linalg.generic each, without a branch an element, so that LLVM makes vectors of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack

from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.access import Access, Run, Runs, sources, wholes
from ..core.builder import Builder, Index, Loop, Unroll, Value
from ..core.graph import Buffer, Node, reachable, visited
from ..core.index_arithmetic import Axis
from ..loops.elemental import Elemental
from ..loops.form import Answer, fewer, fitting
from ..loops.generic import MOVES, emit_generic
from ..loops.loops import Axes
from ..loops.ranges import Steps, open_steps
from ..loops.view import Subject, View
from ..numerics.elementwise import EMIT

MINIMUM_ELEMENTS = 1 << 14
"""Minimum elements of a result for which regions pay for what they cost to compile: some milliseconds each."""

MAXIMUM_REGIONS = 8
"""Regions of a kernel."""

MINIMUM_RUN_ELEMENTS = 20
"""Elements along the fastest dimension that regions have on average at least."""

Box = tuple[tuple[int, int], ...]
"""For each dimension of the results, the first position and the end."""


@dataclass(frozen=True, slots=True)
class Reads:
    """What a node reads in a box: operands and how they run; cuts that would decide more; whether any cut could."""

    operands: Sequence[tuple[Buffer, Runs]]
    cuts: Sequence[tuple[int, int]] = ()
    open: bool = False


def boxes_of(group: Sequence[Buffer], numbered: Sequence[int] = ()) -> tuple[Box, ...] | str:
    """The regions of results of one shape and layout, the slowest dimension's first; why one nest is better.

    It is if no seam crosses the rows: LLVM takes a branch that depends on the row only out of the loop over the row.
    numbered: the dimensions that steps number; if that is the fastest after others, there are no loops over rows.
    """
    result = group[0]
    nodes = list(reachable(group))
    if not any(node.opcode in _SEAMS for node in nodes):
        return "nothing is concatenated or padded"
    if len(numbered) > 1 and result.shape.minor_to_major[0] in numbered:
        return "steps number places within rows"
    if result.shape.size < MINIMUM_ELEMENTS:
        return fewer(result.shape.size, "elements", MINIMUM_ELEMENTS)
    other = next((n.opcode for n in nodes if not (n.opcode in EMIT or n.opcode in MOVES or n.opcode in _SEAMS)), None)
    if other is not None:
        return f"there is a {other.value}"
    found = [tuple((0, size) for size in result.dims)]
    done: list[Box] = []
    while found:
        box = found.pop()
        seams = _seams(group, box)
        if seams is None:
            return "no cuts decide from where each element comes"
        if len(found) + len(done) >= MAXIMUM_REGIONS:
            return f"more than {MAXIMUM_REGIONS} regions"
        if not seams:
            done.append(box)
            continue
        d, place = seams[0]
        low, high = box[d]
        found += [(*box[:d], part, *box[d + 1 :]) for part in ((place, high), (low, place))]
    fast = result.shape.minor_to_major[0]
    runs = len({box[fast] for box in done})
    if runs < 2:
        return "no seam crosses the rows"
    return (
        tuple(done)
        if runs <= result.dims[fast] // MINIMUM_RUN_ELEMENTS
        else fewer(result.dims[fast] // runs, "elements of a run", MINIMUM_RUN_ELEMENTS)
    )


def fits(view: View, subject: Subject) -> Answer:
    return fitting(boxes_of(subject.results, view.numbered))


def emit(e: Elemental, subject: Subject, boxes: tuple[Box, ...], steps: Steps | None) -> None:
    over_boxes(e.b, subject.first, boxes, lambda index: emit_generic(e, subject.results, index), steps)


def _seams(group: Sequence[Buffer], box: Box) -> list[tuple[int, int]] | None:
    """(A dimension, a position) of all cuts that decide more in a box, the best first; None if no cuts decide all."""
    cuts: set[tuple[int, int]] = set()
    undecided = False

    def read(access: Access) -> list[Access]:
        nonlocal undecided
        node = access.buffer.writer
        found = _reads(node, access.runs, box) if node is not None else Reads(())
        cuts.update(found.cuts)
        undecided = undecided or found.open
        return [Access(*operand) for operand in found.operands]

    for _ in visited(wholes(group), read):
        if undecided:
            return None
    order = list(reversed(group[0].shape.minor_to_major))
    return sorted(cuts, key=lambda cut: (order.index(cut[0]), cut[1]))


def _reads(node: Node, runs: Runs, box: Box) -> Reads:
    if node.opcode in _SEAMS:
        return _SEAMS[node.opcode](node, runs, box)
    if node.opcode is Op.BITCAST_CONVERT:
        source = node.inputs[0]
        return Reads([(source, (*runs, None)[: len(source.dims)])])
    return Reads(sources(node, runs) or ())


def _concatenate(node: Node, runs: Runs, box: Box) -> Reads:
    (c,) = node.attributes["dimensions"]
    run = runs[c]
    if run is None or run.step != 1:
        return Reads((), open=True)
    low, high = _bounds(run, box)
    operands, cuts, start = [], [], 0
    for x in node.inputs:
        end = start + x.dims[c]
        if max(low, start) < min(high, end):
            operands.append((x, (*runs[:c], run.moved(-start), *runs[c + 1 :])))
        if low < end < high:
            cuts.append((run.dimension, end - run.first))
        start = end
    return Reads(operands, cuts)


def _pad(node: Node, runs: Runs, box: Box) -> Reads:
    source, moved, cuts = node.inputs[0], list[Run | None](), []
    for run, size, p in zip(runs, source.dims, node.attributes["padding"], strict=True):
        moved.append(None if run is None else run.moved(-p.low))
        if not (p.low or p.high or p.interior):
            continue
        if run is None or run.step != 1 or p.interior:
            return Reads((), open=True)
        low, high = _bounds(run, box)
        if high <= p.low or low >= p.low + size:
            return Reads(())
        cuts += [(run.dimension, at - run.first) for at in (p.low, p.low + size) if low < at < high]
    return Reads([(source, tuple(moved))], cuts)


def _bounds(run: Run, box: Box) -> tuple[int, int]:
    low, high = box[run.dimension]
    return low + run.first, high + run.first


_SEAMS: dict[Op, Callable[[Node, Runs, Box], Reads]] = {Op.CONCATENATE: _concatenate, Op.PAD: _pad}
"""Ops whose elements come from one operand or another, by their place."""


def over_boxes(
    b: Builder, over: Buffer, boxes: Sequence[Box], body: Callable[[tuple[Index, ...]], None], steps: Steps | None
) -> None:
    """Call body(index) for each region. Regions of the same rows are in one nest, so that rows are written in order."""
    inside = () if steps is None else steps.dimensions
    fast = over.shape.minor_to_major[0]
    rows = {box: [x for x in boxes if _row(x, fast) == _row(box, fast)] for box in boxes}
    groups = list({_row(box, fast): found for box, found in rows.items()}.values())
    if steps is None or len(inside) == 1:
        for group in groups:
            parts = {} if steps is None else {d: _part(b, steps, group[0][d]) for d in inside if d != fast}
            if fast in inside and steps is not None:
                for box in group:
                    _over_boxes(b, over, [box], body, {fast: _part(b, steps, box[fast])})
            else:
                _over_boxes(b, over, group, body, parts)
        return
    loop, places = open_steps(b, steps, [over.dims[d] for d in inside])
    for group in groups:
        with ExitStack() as branches:
            for d, place in zip(inside, places, strict=True):
                for condition in _within(b, place, group[0][d], over.dims[d]):
                    branches.enter_context(b.branch(condition, []).side(0))
            _over_boxes(b, over, group, body, {d: (place, 1) for d, place in zip(inside, places, strict=True)})
    b.close_loop(loop)


def _row(box: Box, fast: int) -> Box:
    """A region without the fastest dimension."""
    return box[:fast] + box[fast + 1 :]


def _part(b: Builder, steps: Steps, bounds: tuple[int, int]) -> tuple[Index, Index]:
    """(The first, the number) of the steps, which number one dimension, in a region; there may be none."""

    def make() -> tuple[Index, Index]:
        first = b.greatest(steps.begin, bounds[0])
        end = b.least(steps.end, bounds[1])
        return first, b.greatest(b.sub(end, first), 0)

    return b.once(("part", bounds), make)


def _within(b: Builder, place: Index, bounds: tuple[int, int], size: int) -> Iterator[Value]:
    """The conditions under which a position is in a region of a dimension of this size."""
    if bounds[0] > 0:
        yield b.compare_integers("sge", b.materialize(place), b.constant(bounds[0], b.types.i64))
    if bounds[1] < size:
        yield b.compare_integers("slt", b.materialize(place), b.constant(bounds[1], b.types.i64))


def _over_boxes(
    b: Builder,
    over: Buffer,
    boxes: Sequence[Box],
    body: Callable[[tuple[Index, ...]], None],
    numbered: Mapping[int, tuple[Index, Index]],
) -> None:
    """One region, or several of the same rows. numbered: (the first position, how many there are) of the dimensions
    that steps number.
    """
    fast = over.shape.minor_to_major[0]
    box = boxes[0]
    index: list[Index] = [low for low, _ in box]
    loops: list[Loop] = []
    axes = Axes(b)
    for d in reversed(over.shape.minor_to_major):
        low, high = box[d]
        if d == fast or (d not in numbered and high - low == 1):
            continue
        start, count = numbered.get(d, (low, high - low))
        if len(boxes) > 1 and count != 1:
            loops.append(
                b.open_loop(start, b.add(start, count), unroll=Unroll.NONE)
            )  # of loops over rows, or of copies
            start, count = loops[-1].index, 1
        index[d] = axes.within(start, count, box[d])
    for box in boxes:
        low, high = box[fast]
        start, count = numbered.get(fast, (low, high - low))
        at = list(index)
        at[fast] = Axis(start, 1, axes.count, count, (low, high))
        b.scopes.append({})
        body(tuple(at))
        b.scopes.pop()
    b.close_loops(loops)
