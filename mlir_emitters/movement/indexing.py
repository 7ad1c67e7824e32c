"""gather as a value, and scatter as a kernel's root.

gather clamps its start indices; scatter skips windows that are not inside the operand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from ...hlo.dtypes import DType
from ...hlo.errors import UnsupportedError
from ...hlo.opcodes import Op
from ..core.builder import Builder, Index, Unroll, Value
from ..core.elements import Scalar, decode, encode, flatten, raw_type, unflatten
from ..core.graph import Buffer, Node, reachable
from ..core.slots import Slots
from ..loops.elemental import Elemental, ElementRule, Indices, Reads
from ..loops.ranges import Steps
from ..numerics.convert import convert_to
from ..numerics.elementwise import EMIT
from .pieces import is_small_stack, picked

INDICES_TOGETHER = 512
"""Indices of a scatter that are found together, in a loop of which LLVM makes vectors, before the loop that uses them:
that one stores anywhere, so each of its turns would find one, with the many instructions of a division by a constant.
"""

MINIMUM_ROW_INDICES = 65
"""Minimum indices of a row, the last dimension of the batch for which it is worth these loops."""

MINIMUM_ROW_ELEMENTS = 8
"""Minimum elements of a window's row that is for vectors. LLVM would unroll short rows, and gather across them."""


def index_places(node: Node, batch: Indices) -> list[Indices]:
    """The places of the elements of the index vector of a batch position."""
    indices, d = node.inputs[len(node.inputs) // 2], node.attributes["index_vector_dim"]
    return [(*batch[:d], k, *batch[d:]) for k in range(indices.dims[d])] if d < len(indices.dims) else [batch]


def index_vector(e: Elemental, node: Node, batch: Indices) -> Any:
    """The index vector of a batch position as i64; unsigned elements are at most 2⁶³ − 1 (a generator of reads)."""
    indices, b = node.inputs[len(node.inputs) // 2], e.b
    numbers = []
    for index in index_places(node, batch):
        value = flatten((yield indices, index, False))[0]
        counted = b.recall(("position", value))
        if counted is not None:  # an iota's
            numbers.append(counted[0])
            b.remember(("below", counted[0]), counted[1])
            continue
        wide = flatten(convert_to(b, indices.dtype, DType.S64, value))[0]
        numbers.append(b.binary("minui", wide, 2**63 - 1) if indices.dtype is DType.U64 else wide)
    return numbers


def gather(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    b, source, a = e.b, node.inputs[0], node.attributes
    if not source.shape.size:  # nothing to read
        return _nothing(b, source.dtype, raw)
    batch = tuple(i for d, i in enumerate(index) if d not in a["offset_dims"])
    starts: dict[int, Index] = {}
    for d, value in zip(a["start_index_map"], (yield from index_vector(e, node, batch)), strict=True):
        most, below = source.dims[d] - max(a["slice_sizes"][d], 1), b.recall(("below", value))
        if below is not None and below <= most + 1:
            starts[d] = value
        else:
            starts[d] = b.least(b.greatest(value, 0), most) if most else 0
    pairs = zip(a.get("operand_batching_dims", ()), a.get("start_indices_batching_dims", ()), strict=True)
    for d, partner in pairs:
        starts[d] = batch[partner - (partner > a["index_vector_dim"])]
    alone = {*a["collapsed_slice_dims"], *a.get("operand_batching_dims", ())}
    window = iter(a["offset_dims"])
    place = tuple(
        starts.get(d, 0) if d in alone else b.add(starts.get(d, 0), index[next(window)])
        for d in range(len(source.dims))
    )
    writer = source.writer
    if writer is not None and writer.opcode is Op.CONCATENATE and _is_stack(writer, starts):
        return (yield from picked(e, writer, place, raw))
    return (yield source, place, raw)


def _is_stack(node: Node, starts: dict[int, Index]) -> bool:
    """Whether a gather picks one of the arrays that a concatenation stacks, and each of them is little code."""
    (d,) = node.attributes["dimensions"]
    return d in starts and is_small_stack(node)


def _nothing(b: Builder, dtype: DType, raw: bool) -> Scalar:
    type = raw_type(b.types, dtype)
    zero = b.constant(0.0 if b.is_float(type) else 0, type)
    value = unflatten([zero, zero], dtype)
    return value if raw else decode(b, dtype, value)


def scatter(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    refuse(node)
    yield


class Misplaced(UnsupportedError):
    """An op that is supported only as the root of a kernel. instruction: its name, from which its location follows."""

    def __init__(self, node: Node):
        opcode = node.opcode.value
        remedy = f"let the results of the {opcode} be the fusion's results, each once"
        super().__init__("mlir_emitters", f"{opcode} inside a fusion", remedy=remedy)
        self.instruction = node.name


def refuse(node: Node) -> NoReturn:
    """Raise Misplaced for an op that is supported only as the root of a kernel."""
    raise Misplaced(node)


RULES: dict[Op, ElementRule] = {Op.GATHER: gather, Op.SCATTER: scatter}


# A kernel whose root is a scatter -----------------------------------------------------------------------------------


def window_of(node: Node) -> dict[int, int]:
    """Dimension of the operand → that of an update, of those along which a window lies."""
    a = node.attributes
    gone = {*a["inserted_window_dims"], *a.get("input_batching_dims", ())}
    kept = [d for d in range(len(node.inputs[0].dims)) if d not in gone]
    return dict(zip(kept, a["update_window_dims"], strict=True))


def batch_sizes(node: Node) -> list[int]:
    """Of the batch, the dimensions of the indices but for that of a vector of them."""
    indices = node.inputs[len(node.inputs) // 2]
    return [n for d, n in enumerate(indices.dims) if d != node.attributes["index_vector_dim"]]


def prepared_of(node: Node) -> tuple[Buffer, ...]:
    """Operands of which one element is read at a batch position, and is computed: the indices and updates; none if rows
    of the batch are short.
    """
    sizes, count = batch_sizes(node), len(node.inputs) // 2
    if not sizes or sizes[-1] < MINIMUM_ROW_INDICES:
        return ()
    indices, updates = node.inputs[count], node.inputs[count + 1 :]
    alone = all(updates[0].dims[d] == 1 for d in window_of(node).values())
    read = dict.fromkeys([indices, *(updates if alone else [])])
    return tuple(x for x in read if any(made.opcode in EMIT for made in reachable([x])))


class ScatterLoops:
    """Loops: batch dimensions in order, so that updates of one element happen in order, then the window in memory
    order. With steps, a window whose position is not among them is left out.
    """

    def __init__(
        self, e: Elemental, node: Node, results: Sequence[Buffer], prepared: Sequence[Buffer], steps: Steps | None
    ):
        """prepared: operands whose elements are computed in blocks, before the windows."""
        self.e, self.b, self.node, self.results, self.prepared, self.steps = e, e.b, node, results, prepared, steps
        a, count = node.attributes, len(results)
        self.indices, self.updates = node.inputs[count], node.inputs[count + 1 :]
        pairs = zip(a.get("input_batching_dims", ()), a.get("scatter_indices_batching_dims", ()), strict=True)
        self.batching = {d: partner - (partner > a["index_vector_dim"]) for d, partner in pairs}
        self.window = window_of(node)

    def emit(self) -> None:
        if not self.updates[0].shape.size:
            return
        sizes = batch_sizes(self.node)
        looped = sizes[:-1] if self.prepared else sizes
        with self.nest(range(len(looped)), looped) as batch:
            found = tuple(batch[k] for k in range(len(looped)))
            if self.prepared:
                self.in_blocks(found, sizes[-1], self.prepared)
            else:
                self.visit(found)

    def in_blocks(self, outer: Indices, size: int, prepared: Sequence[Buffer]) -> None:
        """Visit the batch positions of a row block by block, after a loop that computes what they read."""
        b = self.b
        with b.loop(0, size, INDICES_TOGETHER, unroll=Unroll.NONE) as block:
            count: Index = min(size, INDICES_TOGETHER)
            if size > INDICES_TOGETHER and size % INDICES_TOGETHER:
                count = b.least(b.sub(size, block.index), INDICES_TOGETHER)
            spaces: list[Slots] = []
            with b.loop(0, count) as first:
                for buffer, place in self.reads(prepared, (*outer, b.add(block.index, first.index))):
                    values = flatten(self.e.value(buffer, place))
                    spaces.append(Slots.for_values(b, values, min(size, INDICES_TOGETHER)))
                    spaces[-1].write(first.index, values)
            with b.loop(0, count) as second:
                batch = (*outer, b.add(block.index, second.index))
                for (buffer, place), kept in zip(self.reads(prepared, batch), spaces, strict=True):
                    b.remember((buffer, place, False), unflatten(kept.read(second.index), buffer.dtype))
                self.visit(batch)

    def reads(self, prepared: Sequence[Buffer], batch: Indices) -> Iterator[tuple[Buffer, Indices]]:
        """The elements of these operands that a batch position reads."""
        for buffer in prepared:
            if buffer is self.indices:
                yield from ((buffer, place) for place in index_places(self.node, batch))
            if buffer in self.updates:
                yield buffer, self.source(batch, {})

    def visit(self, found: Indices) -> None:
        """Combine the window of a batch position, if it is inside and among the steps."""
        b, a = self.b, self.node.attributes
        numbers = self.e.run(index_vector(self.e, self.node, found))
        starts: dict[int, Index] = dict(zip(a["scatter_dims_to_operand_dims"], numbers, strict=True))
        inside = [self.fits(d, number) for d, number in starts.items()]
        starts |= {d: found[k] for d, k in self.batching.items()}
        if self.steps is not None:
            inside.append(self.among(self.steps, starts))
        if not inside:
            self.combine(found, starts)
            return
        branch = b.branch(b.all_of(inside), [])
        with branch.side(0):
            self.combine(found, starts)
        with branch.side(1):
            pass

    def fits(self, d: int, start: Value) -> Value:
        """Whether a window with this start is inside. The comparison is unsigned, so negative starts are too large."""
        length = self.updates[0].dims[self.window[d]] if d in self.window else 1
        b, most = self.b, self.results[0].dims[d] - length
        return b.compare_integers("ule", start, b.constant(most, b.types.i64))

    def among(self, steps: Steps, starts: dict[int, Index]) -> Value:
        """Whether the position of a window is that of a step; any answer will do for a window that does not fit."""
        b, dims = self.b, self.results[0].dims
        number: Index = 0
        for d in steps.dimensions:
            number = b.add(b.mul(number, dims[d]), starts.get(d, 0))
        from_begin, count = b.sub(number, steps.begin), b.sub(steps.end, steps.begin)
        return b.compare_integers("ult", b.materialize(from_begin), b.materialize(count))

    @contextmanager
    def nest(
        self, dimensions: Sequence[int], sizes: Sequence[int], inner: Unroll = Unroll.ANY
    ) -> Iterator[dict[int, Index]]:
        """One loop per dimension, the last one innermost, as `inner` says; no loop for size 1."""
        index: dict[int, Index] = {}
        loops = []
        for n, (d, size) in enumerate(zip(dimensions, sizes, strict=True)):
            index[d] = 0
            if size != 1:
                loops.append(self.b.open_loop(0, size, unroll=Unroll.ANY if n < len(sizes) - 1 else inner))
                index[d] = loops[-1].index
        yield index
        self.b.close_loops(loops)

    def combine(self, batch: Indices, starts: dict[int, Index]) -> None:
        """Combine one window into the results."""
        e, b, update = self.e, self.b, self.updates[0]
        order = [d for d in reversed(self.results[0].shape.minor_to_major) if d in self.window]
        sizes = [update.dims[self.window[d]] for d in order]
        rows = Unroll.VECTORIZED if sizes and sizes[-1] >= MINIMUM_ROW_ELEMENTS else Unroll.ANY
        with self.nest(order, sizes, rows) as within:
            place = tuple(b.add(starts.get(d, 0), within.get(d, 0)) for d in range(len(self.results[0].dims)))
            source = self.source(batch, within)
            new = [e.value(x, source) for x in self.updates]
            old = [decode(b, x.dtype, e.load_raw(x, e.offset(x, place))) for x in self.results]
            for x, value in zip(self.results, e.apply(self.node.bodies[0], [*old, *new]), strict=True):
                e.store(x, place, encode(b, x.dtype, value))

    def source(self, batch: Indices, within: dict[int, Index]) -> Indices:
        """The place of an element in an update. within: operand's dimension → the offset in the window, or 0."""
        offsets, remaining = {w: within.get(d, 0) for d, w in self.window.items()}, iter(batch)
        return tuple(offsets[d] if d in offsets else next(remaining) for d in range(len(self.updates[0].dims)))
