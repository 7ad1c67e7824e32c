"""Depthwise convolutions: the products of a few positions × all channels of a block are in a function that the kernels
of all of them call, compiled once a process.

The sums of some neighbouring channels are vectors in registers over the loops of the window. A kernel has the loops
around the call, and one over the finished sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.records import dataclass, replace
from ..core.builder import Code, IndexValue, Unroll
from ..core.helper import call, declared
from ..core.registers import I64, POINTER, memory_type
from ..core.view import View
from ..loops.elemental import Index
from ..loops.form import at_least, needs
from ..loops.ranges import Steps, column_blocks
from ..reductions.columns import BLOCK
from ..reductions.windows import GROUP, SPATIAL, Convolution
from .convolution_blocks import FACTORS, inside_of, parts_of_tiles
from .convolution_columns import MINIMUM_MULTIPLICATIONS, Blocks, Columns, Part, across_role
from .convolution_held import Held, Weights
from .convolution_micro import Dimension, Vectors, define_places, nested
from .dot import COLUMN_TERMS, accumulator_dtype

SHORT, LONG = 3, 8
"""Taps of a window up to which its weights stay in registers, besides the sums of tiles of (positions, vectors)."""

TILES = {SHORT: (4, 2), LONG: (6, 1)}
"""Most taps → positions and vectors of channels of a tile, whose positions share what they read."""

TILE = (4, 2)
"""Those of others. This many sums keep two units busy for the four cycles of an addition."""

ALONE = 4
"""The most vectors of channels at a place alone."""

MINIMUM_TILE_PRODUCTS = 200
"""Minimum multiply-adds of vectors in a block's whole tile for which a call, some 30 cycles, pays off."""


@dataclass(frozen=True, slots=True)
class ChannelMicro:
    """Sums of channels at each of `positions` places, or of one. loops: the dimensions of the window.

    inputs, weights: how the factors are read, `width` channels at a time; alone: the channels at a time at one place.
    taps: of the last dimension, if places and taps are equally far apart in the input, so that places share what they
    read; 0 otherwise.
    """

    inputs: Vectors
    weights: Vectors
    positions: int
    alone: int
    loops: int
    taps: int

    @property
    def name(self) -> str:
        dtypes = ".".join(d.value for d in (self.weights.dtype, self.inputs.source, self.weights.source))
        tile = f"{self.positions}x{self.weights.width}.{self.alone}"
        return f"legacy.channels.{dtypes}.{tile}.{self.loops}.{self.taps}"

    def call(
        self,
        code: Code,
        pointers: Sequence[ir.Value],
        count: IndexValue,
        channels: int,
        apart: int,
        dimensions: Sequence[Dimension],
    ) -> None:
        """Emit a call. pointers: to the first factors, of the input and of the weights, and to the sums; count: of
        places; channels: of the block, as many as sums of a place; apart: of neighbouring places, in elements of the
        input; dimensions: of the window.
        """
        numbers = [count, channels, apart, *(n for d in dimensions for n in (d.count, d.input, d.weights))]
        call(code.b, self, [*pointers, *map(code.value, numbers)])

    def declare(self, module: ir.Module) -> ir.Function:
        return declared(module, self.name, [POINTER] * 3 + [I64] * (3 + 3 * self.loops), (True, True, False))

    def define(self, module: ir.Module) -> None:
        code = Code(module, self.declare(module))
        several, one = _Body(self, code, self.positions, self.weights.width), _Body(self, code, 1, self.alone)
        define_places(code, *((several.emit, one.emit) if self.positions > 1 else (one.emit, None)))


class _Body:
    """Computes the sums at the first `positions` places, `width` channels at a time."""

    def __init__(self, micro: ChannelMicro, code: Code, positions: int, width: int):
        self.code, self.given, self.positions, self.width = code, code.function.args, positions, width
        self.loops, self.taps = micro.loops, micro.taps if positions > 1 else 0
        self.inputs, self.weights = replace(micro.inputs, width=width), replace(micro.weights, width=width)

    def emit(self) -> None:
        code, (target, _, channels) = self.code, self.given[2:5]
        element, lanes = memory_type(self.weights.dtype), self.weights.lanes
        with code.range(0, channels, self.width, unroll=Unroll.NEVER) as block:
            first = code.value(block)
            zeros = [ir.Constant(self.weights.type, None)] * (self.positions * self.width // lanes)
            numbers, inner = (self.given[6:-3], self._sliding) if self.taps else (self.given[6:], self._products)
            for n, total in enumerate(nested(code, numbers, inner, zeros, first, first)):
                b, (p, channel) = code.b, divmod(n * lanes, self.width)
                place = b.add(b.add(first, b.mul(channels, I64(p))), I64(channel))
                b.store(total, b.gep(target, [place], source_etype=element), align=self.weights.dtype.bytes)

    def _products(self, place: ir.Value, row: ir.Value, before: Sequence[ir.Value]) -> list[ir.Value]:
        b, found, weights = self.code.b, list(before), self._weights(row)
        for p in range(self.positions):
            for v, factor in enumerate(self._inputs(b.add(place, b.mul(self.given[5], I64(p))))):
                n = p * len(weights) + v
                found[n] = b.fadd(found[n], b.fmul(factor, weights[v]))
        return found

    def _sliding(self, place: ir.Value, row: ir.Value, before: Sequence[ir.Value]) -> list[ir.Value]:
        """The products along the last dimension: the input is read once for all places that meet it."""
        b, found = self.code.b, list(before)
        _, step, row_step = self.given[3 + 3 * self.loops :]
        weights = [self._weights(b.add(row, b.mul(row_step, I64(k)))) for k in range(self.taps)]
        for m in range(self.positions + self.taps - 1):
            factors = self._inputs(b.add(place, b.mul(step, I64(m))))
            for p in range(max(0, m - self.taps + 1), min(m, self.positions - 1) + 1):
                for v, factor in enumerate(factors):
                    n = p * len(factors) + v
                    found[n] = b.fadd(found[n], b.fmul(factor, weights[m - p][v]))
        return found

    def _inputs(self, place: ir.Value) -> list[ir.Value]:
        element = memory_type(self.inputs.source)
        return self.inputs.load(self.code, self.code.b.gep(self.given[0], [place], source_etype=element))

    def _weights(self, place: ir.Value) -> list[ir.Value]:
        element = memory_type(self.weights.source)
        return self.weights.load(self.code, self.code.b.gep(self.given[1], [place], source_etype=element))


def tile_of(c: Convolution, across: int | None) -> tuple[int, int, int]:
    """(positions, vectors of channels, taps of the last dimension that positions share or 0) of a tile."""
    last = c.axes[-1] if across is not None and across == SPATIAL + len(c.axes) - 1 else None
    if last is None or last.holes > 1 or last.stride != last.dilation or last.window > LONG:
        return *TILE, 0
    return *TILES[SHORT if last.window <= SHORT else LONG], last.window


def width_of(view: View, instruction: Instruction, column: int) -> int:
    """The channels whose sums are in registers together. Raises Unfit if the function does not compute a convolution's
    sums.
    """
    c, dtype = Convolution.of(instruction), accumulator_dtype(instruction)
    _, left, right = c.strides(instruction)
    near = column == GROUP and not c.by_batch and c.ins == c.outs == left[GROUP] == right[GROUP] == 1
    needs(near, "neighbours are no groups of one feature")
    floats = dtype in (DType.F32, DType.F64) and instruction.shape.dtype.is_float
    needs(floats, f"sums of {dtype.value}, not of f32 or f64")
    stored = all(o in view.leaves and o.shape.dtype in FACTORS for o in instruction.operands[:2])
    needs(stored, "an operand is computed, or has no floats")
    lanes = max(view.vector_bits, 128) // dtype.bits
    positions, vectors, _ = tile_of(c, across_role(instruction, column))
    width = vectors * lanes if c.groups % (vectors * lanes) == 0 else lanes
    products = min(c.groups, BLOCK) // lanes * positions * math.prod(-(-axis.window // axis.holes) for axis in c.axes)
    needs(c.groups % width == 0 and BLOCK % width == 0, f"{c.groups} channels are no multiple of {width}")
    at_least(c.products, MINIMUM_MULTIPLICATIONS, "multiplications")
    at_least(products, MINIMUM_TILE_PRODUCTS, "multiply-adds of vectors in a tile")
    needs(view.strict or c.terms <= COLUMN_TERMS, f"{c.terms} terms of a sum, more than {COLUMN_TERMS}")
    return width


def blocks_of_channels(view: View, instruction: Instruction, column: int) -> Blocks:
    """Raises Unfit. Tiles have no positions of an input with holes: neighbours meet other window positions."""
    c, across, dtype = Convolution.of(instruction), across_role(instruction, column), accumulator_dtype(instruction)
    width, (tile, _, taps) = width_of(view, instruction, column), tile_of(c, across)
    holes = across is not None and across >= SPATIAL and c.axes[across - SPATIAL].holes > 1
    start, end, apart = (0, 0, 1) if holes else inside_of(c, across)
    most = max(1, min(tile, end - start))
    step = min(range(most, most // 2, -1), key=lambda n: (end - start) % n)
    parts = tuple(parts_of_tiles(c, across, (start, end, apart), step, True))
    inputs, weights = (Vectors(o.shape.dtype, dtype, width) for o in instruction.operands[:2])
    positions, lanes = max(part.step for part in parts), max(view.vector_bits, 128) // dtype.bits
    alone = next(n * lanes for n in (ALONE, 2, 1) if c.groups % (n * lanes) == 0)
    micro = ChannelMicro(inputs, weights, positions, alone, len(c.axes), taps if positions > 1 else 0)
    return Blocks(column, across, min(BLOCK, c.groups), parts, (), adds=False, calls=True, form=micro)


class Channels(Held):
    """The same sums, by the function. No channel is among the steps' dimensions."""

    def __post_init__(self) -> None:
        Columns.__post_init__(self)
        self.micro: ChannelMicro = self.blocks.form

    def _blocks(self, steps: Steps | None, inside: Sequence[int], order: Sequence[int]):
        return column_blocks(self.code, steps, self.c.sizes, order, self.column, BLOCK, inside=inside)

    def _taps(self, part: Part, taps: list[IndexValue], start: IndexValue, width: int) -> None:
        code, c, place, (source, operand) = self.code, self.c, list(self.place), self.instruction.operands[:2]
        place[self.column] = start
        dimensions, taps = self.dimensions(part, taps, source.shape.strides, operand.shape.strides)
        input_at, row_at = c.operands(code, place, taps, 0)
        offset = code.value(Index.at(code, source.shape, input_at).offset(source.shape))
        pointers = [
            code.b.gep(self.e.leaves[source].value, [offset], source_etype=memory_type(source.shape.dtype)),
            Weights(code, operand, self.dtype, self.micro.weights.width).at(self.e, row_at),
            self.sums.innermost(),
        ]
        apart = 0 if self.across is None else c.strides(self.instruction)[1][self.across]
        self.micro.call(code, pointers, self.positions(part), width, apart, dimensions)
