"""Convolutions whose input features are neighbours in both operands, while the output features are few, or apart in the
kernel: vectors of neighbours along the depth are multiplied, by a function that kernels share. It has a vector of sums
for each position and feature of a tile, and adds up its lanes at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.records import dataclass, replace
from ...planning.partition import Partition
from ..core.builder import Code, IndexValue, Unroll
from ..core.helper import call, declared
from ..core.registers import I32, I64, POINTER, flatten, memory_type, shuffled, splat
from ..core.view import View
from ..loops.form import at_least, needs
from ..loops.ranges import Steps, block_of, blocks, loops_over, pieces
from ..reductions.windows import OUT, Convolution
from .convolution_blocks import FACTORS, TERMS, first_held, inside_of, levels_held, parts_of_tiles
from .convolution_columns import MINIMUM_MULTIPLICATIONS, Blocks, Columns, Part, across_role, is_zero
from .convolution_held import Held, Weights
from .convolution_micro import Dimension, Vectors, define_places, nested
from .dot import accumulator_dtype

MINIMUM_NEIGHBOURS = 8
"""Minimum neighbours in both operands for which vectors of them pay off."""

MAXIMUM_FEATURES = 7
"""Output features of a tile."""

SUMS = 24
"""Vectors of sums of a tile at most, where there are registers for more."""


def must_be_deep(view: View, instruction: Instruction) -> None:
    """Raises Unfit if the function does not compute a convolution's products."""
    c, dtype, operands = Convolution.of(instruction), accumulator_dtype(instruction), instruction.operands[:2]
    needs(not is_zero(c), "sums have no terms")
    needs(not view.strict, "sums are strict")
    needs(not c.by_batch, "groups are of batches")
    floats = dtype in (DType.F32, DType.F64) and instruction.shape.dtype.is_float
    needs(floats, f"sums of {dtype.value}, not of f32 or f64")
    at_least(c.products, MINIMUM_MULTIPLICATIONS, "multiplications")
    stored = all(o in view.leaves and o.shape.dtype in FACTORS for o in operands)
    needs(stored, "an operand is computed, or has no floats")
    left, right = (o.shape.strides for o in operands)
    near = left[c.dims.input_feature] == right[c.dims.kernel_input_feature] == 1 and c.ins > 1
    count = neighbours(instruction) if near else 1
    at_least(count, MINIMUM_NEIGHBOURS, "neighbours in both operands")
    whole = view.processor.masks or c.ins % lanes_of(view, c, dtype) == 0
    needs(whole or all(o.shape.dtype is dtype for o in operands), f"{c.ins} narrow features are no whole vectors")


def neighbours(instruction: Instruction) -> int:
    """Products whose factors are neighbours in both operands: of the features, also at positions of the window along
    the last dimension if these go on where the features end.
    """
    c = Convolution.of(instruction)
    left, right = (o.shape.strides for o in instruction.operands[:2])
    if not c.axes or c.axes[-1].reverse or c.axes[-1].holes > 1:
        return c.ins
    step, row = c.axes[-1].dilation * left[c.dims.input_spatial[-1]], right[c.dims.kernel_spatial[-1]]
    return c.ins * c.axes[-1].window if step == row == c.ins else c.ins


def lanes_of(view: View, c: Convolution, dtype: DType) -> int:
    """Elements of a vector; a few long ones of two registers would not keep more sums busy."""
    most = max(view.vector_bits, 128) // dtype.bits
    while most // 2 >= c.ins * (c.axes[-1].window if c.axes else 1):
        most //= 2
    return most


def features_of_tile(view: View, outs: int) -> int:
    """Output features of a tile: all, or the number that divides them best."""
    most = MAXIMUM_FEATURES if view.processor.vector_registers > 16 else 4
    return min(range(min(most, outs), most // 2 if outs > most else 0, -1), key=lambda n: (-outs % n, -n))


@dataclass(frozen=True, slots=True)
class Depth:
    """held, each: as of Holding. features: of a tile; block: of a block of steps, if the steps number features."""

    lanes: int
    features: int
    held: int
    each: int
    block: int | None


def blocks_deep(view: View, instruction: Instruction, partition: Partition | None) -> Blocks:
    c, across = Convolution.of(instruction), across_role(instruction, OUT)
    lanes, features = lanes_of(view, c, accumulator_dtype(instruction)), features_of_tile(view, c.outs)
    most = TERMS * lanes
    held, pieces = first_held(c, most), -(-c.ins // most)
    each = -(-c.ins // (pieces * lanes)) * lanes if pieces > 1 else c.ins
    place = start, end, apart = inside_of(c, across)
    inside = (end - start) // apart
    room = (view.processor.vector_registers - features - 1) // features
    positions = max(1, min(room, SUMS // features, inside))
    step = min(range(positions, positions // 2, -1), key=lambda n: inside % n)
    parts, levels = tuple(parts_of_tiles(c, across, place, step, True)), levels_held(c, held, each)
    block = None if partition is None else block_of(partition, c.outs, features, 1)
    found = Depth(lanes, features, held, each, block)
    return Blocks(OUT, across, features, parts, levels, adds=held > 0 or each < c.ins, calls=True, form=found)


class Deep(Held):
    """The same sums, by the function. Features may be among the steps' dimensions, as the last one."""

    def __post_init__(self) -> None:
        found: Depth = self.blocks.form
        self.lanes, self.features, self.held, self.each = found.lanes, found.features, found.held, found.each
        Columns.__post_init__(self)
        self.around, self.panel = Unroll.NEVER, None

    def _blocks(
        self, steps: Steps | None, inside: Sequence[int], order: Sequence[int]
    ) -> Iterator[tuple[list[IndexValue], IndexValue, int]]:
        code, sizes, outs = self.code, self.c.sizes, self.c.outs
        if steps is not None and OUT in inside:
            width = self.blocks.form.block
            assert width is not None
            for outer, first, block in blocks(code, steps, [sizes[role] for role in inside], width):
                self._read(block)
                with loops_over(code, None, sizes, [r for r in order if r not in inside], Unroll.NEVER) as places:
                    for role, place in zip(inside, outer, strict=False):
                        places[role] = place
                    yield places, first, block
            return
        for first, block in pieces(code, outs, self.features):
            self._read(block)
            with loops_over(code, steps, sizes, order, Unroll.NEVER, inside) as places:
                yield places, first, block

    def _read(self, block: int) -> None:
        self.weights = Weights(self.code, self.instruction.operands[1], self.dtype, block)

    def call(
        self,
        part: Part,
        weights: Weights,
        input_: ir.Value,
        apart: int,
        row: ir.Value,
        dimensions: Sequence[Dimension],
    ) -> None:
        source, kernel = (o.shape for o in self.instruction.operands[:2])
        read = Vectors(source.dtype, self.dtype, self.lanes)
        masked = self.c.ins % self.lanes != 0
        micro = DepthMicro(
            read, replace(read, source=kernel.dtype), part.step, weights.width, len(dimensions), masked,
            self.blocks.adds, part.rest,
        )  # fmt: skip
        below = kernel.strides[self.c.dims.kernel_output_feature]
        numbers = [
            *([self.positions(part)] if part.rest else []),
            *(apart * p for p in range(1, part.step)),
            *(below * f for f in range(1, weights.width)),
            *(n for d in dimensions[:-1] for n in (d.count, d.input, d.weights)),
            dimensions[-1].count,
        ]
        call(self.code.b, micro, [input_, row, self.sums.innermost(), *map(self.code.value, numbers)])


@dataclass(frozen=True, slots=True)
class DepthMicro:
    """Sums of `features` features at each of `positions` positions. loops: over the products; the last one's factors
    are neighbours.

    inputs, weights: how they are read; masked: the last vector of neighbours may be a part of one; adds: whether the
    sums are added to what their memory holds; rest: whether a call may also ask for one position only.
    """

    inputs: Vectors
    weights: Vectors
    positions: int
    features: int
    loops: int
    masked: bool
    adds: bool
    rest: bool

    @property
    def name(self) -> str:
        dtypes = ".".join(d.value for d in (self.weights.dtype, self.inputs.source, self.weights.source))
        marks = f"{'m' * self.masked}{'a' * self.adds}{'r' * self.rest}"
        return f"legacy.depth.{dtypes}.{self.positions}x{self.features}x{self.weights.width}.{self.loops}{marks}"

    def declare(self, module: ir.Module) -> ir.Function:
        numbers = self.rest + self.positions + self.features - 2 + 3 * self.loops - 2
        return declared(module, self.name, [POINTER] * 3 + [I64] * numbers, (True, True, False))

    def define(self, module: ir.Module) -> None:
        code = Code(module, self.declare(module))
        define_places(code, _Body(self, code, self.positions).emit, _Body(self, code, 1).emit if self.rest else None)


class _Body:
    """Computes the sums at the first positions."""

    def __init__(self, micro: DepthMicro, code: Code, positions: int):
        self.micro, self.code = micro, code
        self.input, self.kernel, self.target = code.function.args[:3]
        given = code.function.args[3 + micro.rest :]
        self.places = [I64(0), *given[: positions - 1]]
        given = given[micro.positions - 1 :]
        self.rows, self.numbers = [I64(0), *given[: micro.features - 1]], given[micro.features - 1 :]

    def emit(self) -> None:
        code, micro = self.code, self.micro
        dtype, zero = micro.weights.dtype, ir.Constant(micro.weights.type, None)
        sums = nested(code, self.numbers[:-1], self._neighbours, [zero] * (len(self.places) * len(self.rows)))
        for n, vector in enumerate(sums):
            place = code.b.gep(self.target, [I64(n)], source_etype=memory_type(dtype))
            total = self._added_up(vector)
            if micro.adds:
                total = code.b.fadd(code.b.load(place, typ=memory_type(dtype), align=dtype.bytes), total)
            code.b.store(total, place, align=dtype.bytes)

    def _neighbours(self, place: ir.Value, row: ir.Value, before: Sequence[ir.Value]) -> list[ir.Value]:
        code, width, count = self.code, self.micro.weights.width, self.numbers[-1]
        rest = code.b.and_(count, I64(width - 1)) if self.micro.masked else I64(0)
        whole = code.b.sub(count, rest) if self.micro.masked else count
        loop = code.range(0, whole, width, carried=before, unroll=Unroll.NEVER)
        index, b = code.value(loop.index), code.b
        sums = [*loop.close(self._products(b.add(place, index), b.add(row, index), loop.carried, None))]
        if not self.micro.masked:
            return sums
        some = code.branch(code.b.icmp_unsigned("!=", rest, I64(0)))
        numbers = ir.Constant(ir.VectorType(I32, width), list(range(width)))
        mask = code.b.icmp_unsigned("<", numbers, splat(code.b, code.b.trunc(rest, I32), width))
        more = self._products(code.b.add(place, whole), code.b.add(row, whole), sums, mask)
        some.otherwise()
        return flatten(some.join(tuple(more), tuple(sums)))

    def _products(
        self, place: ir.Value, row: ir.Value, before: Sequence[ir.Value], mask: ir.Value | None
    ) -> list[ir.Value]:
        b, micro, found = self.code.b, self.micro, list[ir.Value]()
        weights = [self._read(micro.weights, self.kernel, b.add(row, below), mask) for below in self.rows]
        for start in self.places:
            x = self._read(micro.inputs, self.input, b.add(place, start), mask)
            for weight in weights:
                found.append(b.fadd(before[len(found)], b.fmul(x, weight)))
        return found

    def _read(self, vectors: Vectors, memory: ir.Value, place: ir.Value, mask: ir.Value | None) -> ir.Value:
        code, element = self.code, memory_type(vectors.source)
        address = code.b.gep(memory, [place], source_etype=element)
        if mask is None:
            (value,) = vectors.load(code, address)
            return value
        kind = "i" if isinstance(element, ir.IntType) else "f"
        raw = ir.VectorType(element, vectors.width)
        name = f"llvm.masked.load.v{vectors.width}{kind}{vectors.source.bits}.p0"
        given = [address, I32(vectors.source.bytes), mask, ir.Constant(raw, None)]
        return vectors.widened(code.b, code.intrinsic(name, raw, given))

    def _added_up(self, vector: ir.Value) -> ir.Value:
        """The sum of the lanes: neighbours first."""
        b, width = self.code.b, self.micro.weights.width
        while width > 1:
            width //= 2
            vector = b.fadd(*(shuffled(b, vector, range(first, 2 * width, 2), vector) for first in (0, 1)))
        return b.extract_element(vector, I32(0))
