"""gather as a value, and scatter as a kernel's root.

gather clamps its start indices; scatter skips windows that are not inside the operand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from ..hlo.dtypes import DType
from ..hlo.errors import UnsupportedError
from ..hlo.opcodes import Op
from ..planning.partition import Partition
from .builder import Builder, Index, Unroll, Value
from .convert import convert_to
from .elemental import Elemental, ElementRule, Indices, Reads
from .elements import Scalar, decode, encode, flatten, raw_type, unflatten
from .graph import Buffer, Node
from .ranges import Steps

LEAST_ROW = 8
"""Elements of a window's row from which on it is for vectors. LLVM would unroll short rows, and gather across them."""


def index_vector(e: Elemental, node: Node, batch: Indices) -> Any:
    """The index vector of a batch position as i64; unsigned elements are at most 2⁶³ − 1 (a generator of reads)."""
    indices, b = node.inputs[len(node.inputs) // 2], e.b
    d = node.attributes["index_vector_dim"]
    count = indices.dims[d] if d < len(indices.dims) else 1
    numbers = []
    for k in range(count):
        index = (*batch[:d], k, *batch[d:]) if d < len(indices.dims) else batch
        value = flatten((yield indices, index, False))[0]
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
        most = source.dims[d] - max(a["slice_sizes"][d], 1)
        starts[d] = b.binary("minsi", b.binary("maxsi", value, 0), most) if most else 0
    pairs = zip(a.get("operand_batching_dims", ()), a.get("start_indices_batching_dims", ()), strict=True)
    for d, partner in pairs:
        starts[d] = batch[partner - (partner > a["index_vector_dim"])]
    alone = {*a["collapsed_slice_dims"], *a.get("operand_batching_dims", ())}
    window = iter(a["offset_dims"])
    place = tuple(
        starts.get(d, 0) if d in alone else b.add(starts.get(d, 0), index[next(window)])
        for d in range(len(source.dims))
    )
    return (yield source, place, raw)


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


def takes_steps(node: Node, partition: Partition) -> bool:
    """Whether each window lies at one position along the dimensions of the steps."""
    a = node.attributes
    alone = [*a["inserted_window_dims"], *a.get("input_batching_dims", ())]
    return all(d in alone for d in partition.dimensions)


class ScatterLoops:
    """Loops: batch dimensions in order, so that updates of one element happen in order, then the window in memory
    order. With steps, a window whose position is not among them is left out.
    """

    def __init__(self, e: Elemental, node: Node, results: Sequence[Buffer], steps: Steps | None = None):
        self.e, self.b, self.node, self.results, self.steps = e, e.b, node, results, steps
        a, count = node.attributes, len(results)
        self.indices, self.updates = node.inputs[count], node.inputs[count + 1 :]
        pairs = zip(a.get("input_batching_dims", ()), a.get("scatter_indices_batching_dims", ()), strict=True)
        self.batching = {d: partner - (partner > a["index_vector_dim"]) for d, partner in pairs}
        gone = {*a["inserted_window_dims"], *self.batching}
        kept = [d for d in range(len(results[0].dims)) if d not in gone]
        self.window = dict(zip(kept, a["update_window_dims"], strict=True))  # operand's dimension → update's

    def emit(self) -> None:
        b, a = self.b, self.node.attributes
        if not self.updates[0].shape.size:
            return
        sizes = [n for d, n in enumerate(self.indices.dims) if d != a["index_vector_dim"]]
        with self.nest(range(len(sizes)), sizes) as batch:
            found = tuple(batch[k] for k in range(len(sizes)))
            numbers = self.e.run(index_vector(self.e, self.node, found))
            starts: dict[int, Index] = dict(zip(a["scatter_dims_to_operand_dims"], numbers, strict=True))
            inside = [self.fits(d, number) for d, number in starts.items()]
            starts |= {d: found[k] for d, k in self.batching.items()}
            if self.steps is not None:
                inside.append(self.among(self.steps, starts))
            if not inside:
                self.combine(found, starts)
                return
            together = inside[0]
            for condition in inside[1:]:
                together = b.binary("andi", together, condition)
            branch = b.branch(together, [])
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
        for loop in reversed(loops):
            self.b.close_loop(loop)

    def combine(self, batch: Indices, starts: dict[int, Index]) -> None:
        """Combine one window into the results."""
        e, b, update = self.e, self.b, self.updates[0]
        order = [d for d in reversed(self.results[0].shape.minor_to_major) if d in self.window]
        sizes = [update.dims[self.window[d]] for d in order]
        rows = Unroll.VECTORIZED if sizes and sizes[-1] >= LEAST_ROW else Unroll.ANY
        with self.nest(order, sizes, rows) as within:
            place = tuple(b.add(starts.get(d, 0), within.get(d, 0)) for d in range(len(self.results[0].dims)))
            offsets, remaining = {self.window[d]: i for d, i in within.items()}, iter(batch)
            source = tuple(offsets[d] if d in offsets else next(remaining) for d in range(len(update.dims)))
            new = [e.value(x, source) for x in self.updates]
            old = [decode(b, x.dtype, e.load_raw(x, e.offset(x, place))) for x in self.results]
            for x, value in zip(self.results, e.apply(self.node.bodies[0], [*old, *new]), strict=True):
                e.store(x, place, encode(b, x.dtype, value))
