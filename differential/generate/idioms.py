"""Draws what models are made of, in sizes around the limits of the stacks' forms: rows, columns, depthwise
convolutions, joined, padded and transposed arrays.

Ops drawn one by one rarely make these, and hardly ever of such sizes: a form has its own loops for a class of shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...hlo.attributes import ConvolutionDims, PadDim, Window, WindowDim
from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from .folds import fold_ops, folded_known, identity, region_of
from .program import FORM_LIMITS, Body, Limits, near
from .source import Source
from .values import TAME, Value, continuous, summed_known

IDIOM_PERCENT = 20
"""Programs that begin with one."""

TURNED_PERCENT = 30
"""Idioms whose ops have drawn layouts; of the others only parameters have."""

D = DType
ROW_TYPES = (D.F32, D.F32, D.BF16, D.F16)

LIMITED_ELEMENTS = (1 << 12, 1 << 14, 20_000)
"""Fewest elements of an array for which there are forms."""

JOINED_ELEMENTS = (20_000, 1 << 14, 24_000)
"""Fewest elements of an array with regions for which there are forms, and a number that is surely enough."""

TAME_KINDS = ("moderate", "small integers", "halves", "spread")

BATCHES = (17, 16, 33, 65, 130, 400)
"""Rows of a kernel."""

ALONE = (2048, 1536)
"""Minimum rows, of those that are only reduced, that forms take."""

RUNS = (256, 1 << 9)
"""Elements of rows of a few columns together."""


def size(draw: Source, least: int, most: int) -> int:
    """A size around a limit."""
    return draw.choice([n for n in near(FORM_LIMITS) if least <= n <= most])


def elements(draw: Source, row: int, among: tuple[int, ...] = LIMITED_ELEMENTS) -> int:
    """Rows whose elements are together about a limit."""
    return draw.choice(near((-(-draw.choice(among) // row),)))


def _type(body: Body, among: tuple[DType, ...]) -> DType:
    return body.source.choice([d for d in among if d in body.program.limits.dtypes] or [D.F32])


def _tame(body: Body, dtype: DType, dims: tuple[int, ...]) -> Value:
    """An array of small numbers, rather a parameter: forms read what is in memory."""
    if body.room and not body.source.chance(15):
        kinds = TAME_KINDS if continuous(dtype) else ("small integers",)
        return body.parameter(dtype, dims, kinds)
    return body.of(dtype, dims, lambda v: v.most <= TAME)


def _fold(body: Body, v: Value, fold: Op, axis: int) -> Value:
    start = body.scalar(v.dtype, identity(fold, v.dtype))
    left = tuple(n for d, n in enumerate(v.dims) if d != axis)
    known = folded_known(fold, (v, start), v.dims[axis] + 1)
    region = region_of(body, fold, v.dtype)
    return body.add(Op.REDUCE, [v, start], Shape(v.dtype, left), **known, dimensions=(axis,), to_apply=region)


def softmax(body: Body) -> None:
    """Of many short rows or few long ones; sometimes with its logarithm's sum, or without the last division."""
    draw = body.source
    short = not draw.chance(50)
    dtype = _type(body, ROW_TYPES if short else (D.F32,) * 4 + ROW_TYPES)
    rows, length = (draw.choice(BATCHES), size(draw, 3, 65)) if short else (draw.integer(1, 3), size(draw, 200, 2049))
    v = _tame(body, dtype, (rows, length))

    def along(x: Value) -> Value:
        return body.moved(Op.BROADCAST, [x], Shape(dtype, v.dims), dimensions=(0,))

    x = body.add(Op.SUBTRACT, [v, along(_fold(body, v, Op.MAXIMUM, 1))], exact=v.whole, whole=v.whole, most=2 * v.most)
    e = body.add(Op.EXPONENTIAL, [x], exact=False, most=1.0)
    total = _fold(body, e, Op.ADD, 1)
    body.add(Op.DIVIDE, [e, along(total)], exact=False, most=1.0)


def alone(body: Body) -> None:
    """Many short rows that are only reduced."""
    draw = body.source
    dtype = _type(body, ROW_TYPES)
    v = _tame(body, dtype, (draw.choice(near((draw.choice(ALONE),))), size(draw, 8, 17)))
    _fold(body, v, draw.choice((Op.MAXIMUM, Op.ADD, Op.MINIMUM)), 1)


def columns(body: Body) -> None:
    """Rows of a few columns that are added up, several of such runs."""
    draw = body.source
    dtype, count = _type(body, (D.F32, D.S32, D.F64, D.BF16, D.F32)), draw.choice((8, 16, 8, 4, 2, 5, 7, 3))
    rows = max(2, draw.choice(near((draw.choice(RUNS) // count,))))
    v = _tame(body, dtype, (draw.integer(1, 3), rows, count))
    _fold(body, v, draw.choice(fold_ops(dtype, v.most)), 1)


def depthwise(body: Body) -> None:
    """A convolution of each channel by itself, along one dimension."""
    draw = body.source
    dtype, channels = _type(body, (D.F32, D.F64, D.BF16)), draw.choice((64, 16, 32, 8, 15))
    window = draw.choice((16, *near((64,)), 3, 7, 31))
    positions = draw.choice(near((max(4, (1 << 14) // (window * channels)),)))
    sides = (1, positions + window - 1, channels), (window, 1, channels)
    v, w = (_tame(body, dtype, dims) for dims in sides)
    body.add(
        Op.CONVOLUTION,
        [v, w],
        Shape(dtype, (1, positions, channels)),
        **summed_known(v, w, window),
        window=Window((WindowDim(window),)),
        dim_labels=ConvolutionDims(0, 2, (1,), 1, 2, (0,), 0, 2, (1,)),
        feature_group_count=channels,
        batch_group_count=1,
    )


def joined(body: Body) -> None:
    """A concatenation of large arrays along memory, and an op behind it."""
    draw = body.source
    dtype, parts = _type(body, (D.F32, D.BF16, D.S32)), draw.choice((2, 3, 8, 9))
    length = size(draw, 19, 65)
    rows = elements(draw, length * parts, JOINED_ELEMENTS)
    # Two arrays of one shape again and again: a program has few parameters.
    given = [_tame(body, dtype, (rows, length)) for _ in range(2)]
    values = [given[n % 2] for n in range(parts)]
    c = body.moved(Op.CONCATENATE, values, Shape(dtype, (rows, length * parts)), dimensions=(1,))
    body.add(Op.NEGATE, [c], **c.known)


def padded(body: Body) -> None:
    """Rows that become longer, at one end or both."""
    draw = body.source
    dtype, length = _type(body, (D.F32, D.S8, D.F16, D.BF16)), draw.choice((3, 5, 1, 7, 12, 15))
    low, high = draw.choice(((0, 1), (1, 1), (2, 0), (0, 3)))
    made = length + low + high
    rows = elements(draw, made)
    v = _tame(body, dtype, (rows, length))
    padding = (PadDim(0, 0, 0), PadDim(low, high, 0))
    body.moved(Op.PAD, [v, body.scalar(dtype)], Shape(dtype, (rows, made)), padding=padding)


def planes(body: Body) -> None:
    """Pixels whose channels become planes."""
    draw = body.source
    dtype, channels = _type(body, (D.F32, D.S8, D.U8, D.BF16)), draw.choice((3, 4, 2, 5))
    rows = elements(draw, channels)
    v = _tame(body, dtype, (rows, channels))
    body.moved(Op.TRANSPOSE, [v], Shape(dtype, (channels, rows)), dimensions=(1, 0))


def crossed(body: Body) -> None:
    """The sum of an array and of a transposed one."""
    draw = body.source
    dtype = _type(body, (D.F32, D.F64, D.BF16))
    high, wide = draw.choice((*near((64,)), 130)), draw.choice((*near((64,)), 130))
    v, w = _tame(body, dtype, (high, wide)), _tame(body, dtype, (wide, high))
    t = body.moved(Op.TRANSPOSE, [v], Shape(dtype, (wide, high)), dimensions=(1, 0))
    body.moved(Op.MAXIMUM, [t, w], Shape(dtype, (wide, high)))


def batched(body: Body) -> None:
    """Products of many small complex matrices, whose batch is the fastest dimension."""
    draw = body.source
    dtype = _type(body, (D.C64, D.C128))
    if not dtype.is_complex:
        return
    batch, rows, depth, count = draw.choice((8, 7, 9, 16, 33)), *(draw.choice((3, 2, 4, 5)) for _ in range(3))
    sides = (batch, rows, depth), (batch, depth, count)
    v, w = (body.parameter(dtype, dims, TAME_KINDS, (0, 2, 1)) for dims in sides)
    body.add(
        Op.DOT,
        [v, w],
        Shape(dtype, (batch, rows, count)).with_layout((0, 2, 1)),
        **summed_known(v, w, depth),
        lhs_batch_dims=(0,),
        lhs_contracting_dims=(2,),
        rhs_batch_dims=(0,),
        rhs_contracting_dims=(1,),
    )


@dataclass(frozen=True)
class Idiom:
    """add: it, to the entry of a program; ops: that it has besides constants and broadcasts of them."""

    add: Callable[[Body], None]
    ops: frozenset[Op]


IDIOMS: tuple[Idiom, ...] = (
    Idiom(softmax, frozenset({Op.REDUCE, Op.BROADCAST, Op.SUBTRACT, Op.EXPONENTIAL, Op.DIVIDE})),
    Idiom(alone, frozenset({Op.REDUCE})),
    Idiom(columns, frozenset({Op.REDUCE})),
    Idiom(depthwise, frozenset({Op.CONVOLUTION})),
    Idiom(joined, frozenset({Op.CONCATENATE, Op.NEGATE})),
    Idiom(padded, frozenset({Op.PAD})),
    Idiom(planes, frozenset({Op.TRANSPOSE})),
    Idiom(crossed, frozenset({Op.TRANSPOSE, Op.MAXIMUM})),
    Idiom(batched, frozenset({Op.DOT})),
)


def idioms_of(limits: Limits) -> list[Idiom]:
    """Those of the ops that may be drawn, and of the main types of all idioms."""
    if D.F32 not in limits.dtypes:
        return []
    return [idiom for idiom in IDIOMS if limits.ops is None or idiom.ops <= limits.ops]


def grow_idiom(body: Body) -> None:
    """Add an idiom, if there is one."""
    found = idioms_of(body.program.limits)
    if found and body.source.chance(IDIOM_PERCENT):
        with body.source.part():
            body.turns = body.source.chance(TURNED_PERCENT)
            body.source.choice(found).add(body)
            body.turns = True
