"""Convolutions of few features, or of features that are far apart in the kernel: where input features are neighbours in
both operands, vectors hold elements along the depth. A function that kernels share has one sum in a vector for each
place and feature of a tile, and adds up its lanes at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mlir import ir

from ...hlo.dtypes import DType
from ...hlo.records import dataclass
from ...planning.partition import Partition
from ..core.builder import Builder, Index, Pointer, Unroll, Value
from ..core.elements import raw_type
from ..core.facts import Facts
from ..core.graph import Node
from ..loops.form import fewer
from ..loops.helper import call_helper, memory_types
from ..loops.ranges import Steps, grouped, outer_loops, width_of
from ..reductions.windows import Geometry, Site
from .convolution_blocks import CHAIN_PRODUCTS, FEATURE, MINIMUM_WORK, Blocks, in_chains, inside_of, reuse_axis
from .convolution_vectors import Kernel, VectorTiles
from .convolution_window import Loop
from .dot import accumulator_of
from .dot_dtypes import is_read_in_vectors, read_vector

MAXIMUM_FEATURES = 7
"""Output features of a tile."""

MINIMUM_RUN_ELEMENTS = 8
"""Elements that are neighbours in both operands, at least: sums of fewer are sooner made of scalars."""

MAXIMUM_SUM_VECTORS = 25
"""Vectors of sums of a tile."""


def why_not_deep(facts: Facts, node: Node) -> str | None:
    """Why the function does not compute a convolution; None if it does."""
    geometry, wide, (source, kernel) = Geometry.of(node), accumulator_of(node), node.inputs[:2]
    labels, inputs = geometry.labels, geometry.inputs
    if facts.strict or geometry.is_empty or geometry.group_of_batch:
        return "sums are in order, or of nothing, or groups divide the batch"
    if wide not in (DType.F32, DType.F64) or not all(is_read_in_vectors(buffer, wide) for buffer in (source, kernel)):
        return f"an operand is not in memory, or not read in vectors of {wide.value}"
    near = source.strides[labels.input_feature] == kernel.strides[labels.kernel_input_feature] == 1
    if not near or inputs == 1:
        return "one input feature" if near else "input features are not neighbours in both operands"
    if geometry.work < MINIMUM_WORK:
        return fewer(geometry.work, "multiplications", MINIMUM_WORK)
    if _run(node) < MINIMUM_RUN_ELEMENTS:
        return fewer(_run(node), "neighbours in both operands", MINIMUM_RUN_ELEMENTS)
    narrow = any(buffer.dtype is not wide for buffer in (source, kernel))
    if narrow and not facts.processor.masks and inputs % lanes_of(facts, node):
        return f"{inputs} narrow input features fill no vectors of {lanes_of(facts, node)}, and there are no masks"
    return None


def _run(node: Node) -> int:
    """The products whose factors are neighbours in both operands: those of input features, and of the positions of a
    dimension of the window where these go on where the features end.
    """
    geometry, (source, kernel) = Geometry.of(node), node.inputs[:2]
    labels, inputs = geometry.labels, geometry.inputs
    if not geometry.slides:
        return inputs
    n, slide = len(geometry.slides) - 1, geometry.slides[-1]
    along = slide.spread // slide.gap * source.strides[labels.input_spatial[n]] if slide.gap == 1 else 0
    goes_on = not slide.reverse and along == kernel.strides[labels.kernel_spatial[n]] == inputs
    return inputs * slide.window if goes_on else inputs


def lanes_of(facts: Facts, node: Node) -> int:
    """Elements of a vector: of the machine's, or of a shorter one that holds a whole run."""
    most = max(facts.vector_bits, 128) // (8 * accumulator_of(node).bytes)
    return min(most, 1 << (_run(node) - 1).bit_length())


def tile_of(facts: Facts, features: int, positions: int) -> tuple[int, int]:
    """(Features, positions) of the tile with the fewest loads a product that registers hold, for as many of both."""
    registers, tiles = facts.processor.vector_registers, []
    for n in range(1, min(features, MAXIMUM_FEATURES) + 1):
        most = min((registers - n - 1) // n, MAXIMUM_SUM_VECTORS // n, positions)
        for p in range(max(1, most), most // 2, -1):
            used = features / (-(-features // n) * n) * (positions - positions % p) / positions
            tiles.append((used * n * p / (n + p), n, p))
    _, n, p = max(tiles)
    return n, p


def width_in_steps(facts: Facts, node: Node, partition: Partition) -> int | None:
    """The features of a tile where the steps number features, last; None if a tile of them crosses chunks."""
    geometry = Geometry.of(node)
    if geometry.axis_of(partition.dimensions[-1]) != FEATURE:
        return None
    return width_of(partition, geometry.features, tile_of(facts, geometry.features, 1)[0], least=1)


def depth_blocks(facts: Facts, node: Node) -> Blocks:
    """Of sums in vectors along the depth."""
    geometry, reuse, lanes = Geometry.of(node), reuse_axis(node, FEATURE, holes=True), lanes_of(facts, node)
    inside, apart = inside_of(geometry, reuse, holes=True)
    width, tile = tile_of(facts, geometry.features, max(1, len(inside) // apart))
    blocks = Blocks(FEATURE, reuse, width, tile, apart, 1, lanes, calls=True)
    return in_chains(facts, node, blocks, CHAIN_PRODUCTS * lanes)


class DepthTiles(VectorTiles):
    """Loops: runs of features, the other axes, positions; the rest is in the function."""

    def emit(self, steps: Steps | None = None) -> None:
        axes = [] if steps is None else [self.geometry.axis_of(d) for d in steps.dimensions]
        if steps is None or FEATURE not in axes:
            super().emit(steps)
            return
        width = width_in_steps(self.b.facts, self.node, steps.partition)
        assert width is not None
        geometry, extents = self.geometry, self.geometry.extents
        inside = [axis for axis in axes if axis is not None]
        others = [axis for axis in range(len(extents)) if axis not in (*inside, self.reuse)]
        strides = geometry.steps(self.node)
        others.sort(key=lambda axis: strides[axis][0], reverse=True)
        for outer, start, count in grouped(self.b, steps, [extents[axis] for axis in inside], width):
            site = Site(0, 0, 0, (0,) * len(geometry.slides))
            for axis, place in zip(inside[:-1], outer, strict=True):
                site = site.moved(axis, place)
            with self._others(site, others) as here:
                self._run(here, start, count)

    @contextmanager
    def _others(self, site: Site, order: Sequence[int]) -> Iterator[Site]:
        with outer_loops(self.b, None, [], self.geometry.extents, order, Unroll.NONE) as places:
            for axis, place in places.items():
                site = site.moved(axis, place)
            yield site

    def call(self, kernel: Kernel, places: Sequence[Pointer], loops: Sequence[Loop], count: int) -> None:
        source, weights = self.node.inputs[:2]
        masked = self.geometry.inputs % self.vector_lanes != 0
        function = Depth(
            self.wide, source.dtype, weights.dtype, count, kernel.width, self.vector_lanes, len(loops), masked,
            self.adds, self.some is not None, self.b.fma_hardware,
        )  # fmt: skip
        row = weights.strides[self.geometry.labels.kernel_output_feature]
        numbers = [
            *([self.positions(count)] if function.rest else []),
            *(self.step * p for p in range(1, count)),
            *(row * f for f in range(1, kernel.width)),
            *(n for loop in loops[:-1] for n in (loop.count, loop.input, loop.kernel)),
            loops[-1].count,
        ]
        call_helper(self.b, function, places, numbers, offsets=2)


@dataclass(frozen=True, slots=True)
class Depth:
    """Sums of `features` features at each of `positions` places, in vectors along the depth.

    input, kernel: dtypes in memory, converted to `wide`. lanes: elements of a vector; loops: the depth of the loop nest
    over the products, whose last loop is over neighbours; masked: these may be no multiple of the lanes; adds: whether
    sums are added to what their memory holds; rest: whether a call may also ask for one place only; fma: whether the
    target has fused multiply-adds.
    """

    wide: DType
    input: DType
    kernel: DType
    positions: int
    features: int
    lanes: int
    loops: int
    masked: bool
    adds: bool
    rest: bool
    fma: bool

    @property
    def name(self) -> str:
        dtypes = ".".join(d.value for d in (self.wide, self.input, self.kernel))
        marks = f"{'m' * self.masked}{'s' * self.adds}{'r' * self.rest}"
        return f"mlir.depth.{dtypes}.{self.positions}x{self.features}x{self.lanes}.{self.loops}{marks}"

    def types(self, b: Builder) -> list[ir.Type]:
        """Of the parameters: memory of the input, the kernel and the sums; the offsets of the first two; the number of
        places if it may be 1; the distances of other places in the input and of other features in the kernel; the
        count and the strides of each loop, of the last one its count.
        """
        memory = memory_types(b, [raw_type(b.types, d) for d in (self.input, self.kernel, self.wide)])
        return [*memory, *[b.types.i64] * (self.rest + self.positions + self.features + 3 * self.loops - 2)]

    def emit(self, b: Builder, parameters: Sequence[Value]) -> None:
        """The function's body."""
        if not self.rest:
            _Sums(self, b, parameters, self.positions).emit()
            return
        others = [*parameters[:5], *parameters[6:]]
        many = b.branch(b.compare_integers("ne", parameters[5], b.constant(1, b.types.i64)), [])
        for side, positions in ((0, self.positions), (1, 1)):
            with many.side(side):
                _Sums(self, b, others, positions).emit()


class _Sums:
    """The sums at the first places."""

    def __init__(self, function: Depth, b: Builder, parameters: Sequence[Value], positions: int):
        self.function, self.b = function, b
        self.input, self.kernel, self.sums, self.input_at, self.kernel_at, *numbers = parameters
        self.places: list[Index] = [0, *numbers[: positions - 1]]
        del numbers[: function.positions - 1]
        self.rows: list[Index] = [0, *numbers[: function.features - 1]]
        self.numbers = numbers[function.features - 1 :]
        self.element = raw_type(b.types, function.wide)
        self.vector = b.vector(function.lanes, self.element)

    def emit(self) -> None:
        b, function = self.b, self.function
        zero = b.filled(0, self.vector)
        count = len(self.places) * len(self.rows)
        for n, total in enumerate(self._nest(0, self.input_at, self.kernel_at, [zero] * count)):
            place = b.pointer(self.sums, n, self.element)
            value = self._added_up(total)
            if function.adds:
                value = b.op("arith.addf", b.load(place, self.element, function.wide.bytes), value)
            b.store(value, place, function.wide.bytes)

    def _nest(self, level: int, place: Index, row: Index, before: Sequence[Value]) -> list[Value]:
        """`before` plus the products in the loops from `level` on. place, row: of the first factors."""
        b = self.b
        if level == self.function.loops - 1:
            return self._along(place, row, before)
        count, step, below = self.numbers[3 * level : 3 * level + 3]
        with b.loop(0, count, 1, before, Unroll.NONE) as loop:
            along = b.add(place, b.mul(loop.index, step))
            loop.next = self._nest(level + 1, along, b.add(row, b.mul(loop.index, below)), loop.carried)
        return loop.values

    def _along(self, place: Index, row: Index, before: Sequence[Value]) -> list[Value]:
        """`before` plus the products of neighbours."""
        b, lanes, count = self.b, self.function.lanes, self.numbers[-1]
        left: Value | None = b.materialize(b.rem(count, lanes)) if self.function.masked else None
        whole = count if left is None else b.sub(count, left)
        with b.loop(0, whole, lanes, before, Unroll.NONE) as loop:
            loop.next = self._products(b.add(place, loop.index), b.add(row, loop.index), loop.carried, None)
        if left is None:
            return loop.values
        some = b.branch(b.compare_integers("ne", left, b.constant(0, b.types.i64)), [self.vector] * len(before))
        with some.side(0) as results:
            mask = b.op("vector.create_mask", b.at(left), type=b.vector(lanes, b.types.i1))
            results += self._products(b.add(place, whole), b.add(row, whole), loop.values, mask)
        with some.side(1) as results:
            results += loop.values
        return some.values

    def _products(self, place: Index, row: Index, before: Sequence[Value], mask: Value | None) -> list[Value]:
        b, function, found = self.b, self.function, []
        weights = [self._read(self.kernel, function.kernel, b.add(row, start), mask) for start in self.rows]
        for start in self.places:
            x = self._read(self.input, function.input, b.add(place, start), mask)
            found += [b.fma(x, w, before[len(found) + f]) for f, w in enumerate(weights)]
        return found

    def _read(self, memory: Value, dtype: DType, place: Index, mask: Value | None) -> Value:
        where = self.b.pointer(memory, place, raw_type(self.b.types, dtype))
        return read_vector(self.b, where, dtype, self.function.wide, self.function.lanes, mask)

    def _added_up(self, vector: Value) -> Value:
        """The sum of the lanes: of the first half and the second, and so on."""
        while vector.type.shape[0] > 1:
            vector = self.b.op("arith.addf", *self.b.halves(vector))
        return self.b.lane(vector, 0)
