"""What a program is drawn for: one opcode, or several each of which reads the one before, as passes rewrite pairs.

Ops drawn one by one meet as a given pair once in some ten thousand programs, and a group of types that few ops take as
rarely. So two of three programs draw these without weights.
"""

from __future__ import annotations

from functools import cache

from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ...hlo.opset_rows import Family
from .program import Body, Limits
from .source import Source
from .table import drawable, grow_op
from .values import Value

ONE_PERCENT, PAIR_PERCENT = 25, 40
"""Programs drawn for one opcode, and for a pair."""

AGAIN_PERCENT = 70
"""Programs with a pair that have a second one in place of ops that are drawn by weight."""

ALONE_PERCENT = 70
"""Pairs whose first result only the second op reads: many rewrites ask for that."""

LONGER_PERCENT, MOST_LONG = 50, 4
"""Pairs and longer chains to which another op is added, and the most ops of a chain."""

POWER_PERCENT = 60
"""Constants beside an op that are powers of two, which passes make shifts, masks and products of."""

UNFOCUSED = frozenset({Family.RNG, Family.ASYNC, Family.COLLECTIVE})
"""Families whose ops compute nothing of their own, or the same for all types."""

PLACING = (Op.SLICE, Op.REVERSE, Op.PAD, Op.CONCATENATE, Op.TRANSPOSE)
MOVING = (*PLACING, Op.RESHAPE, Op.BROADCAST)
TURNING = (Op.TRANSPOSE, Op.RESHAPE, Op.REVERSE)
PLACED = (Op.DYNAMIC_SLICE, Op.DYNAMIC_UPDATE_SLICE, Op.GATHER, Op.SCATTER, Op.SORT)
FOLDING = (Op.REDUCE, Op.REDUCE_WINDOW, Op.DOT, Op.CONVOLUTION)
WINDOWED = (Op.REDUCE_WINDOW, Op.SELECT_AND_SCATTER)
FEEDING = (Op.GATHER, Op.DOT, Op.CONCATENATE, Op.DYNAMIC_SLICE, Op.PAD, Op.CONVOLUTION, Op.ADD, Op.ABS)
COMPUTING = (Op.NEGATE, Op.ABS, Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.SELECT)
BOUNDING = (Op.SIGN, Op.DIVIDE, Op.REMAINDER, Op.POWER, Op.MAXIMUM, Op.MINIMUM, Op.CLAMP)
DECIDING = (Op.NOT, Op.COMPARE, Op.AND, Op.OR, Op.SELECT, Op.CONVERT)
SPLAT = (Op.CONSTANT,)
BY_NUMBERS = (
    *(Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.DIVIDE, Op.REMAINDER, Op.POWER, Op.MAXIMUM, Op.MINIMUM, Op.COMPARE),
    *(Op.AND, Op.OR, Op.XOR, Op.SHIFT_LEFT, Op.SHIFT_RIGHT_ARITHMETIC, Op.SHIFT_RIGHT_LOGICAL),
)
GIVEN = frozenset({Op.CONSTANT, Op.BROADCAST, Op.IOTA})
"""Opcodes of values that passes know: an op on one and a constant is folded, not rewritten."""
SCALING = (Op.MULTIPLY, Op.DIVIDE, Op.REMAINDER)
COMPLEX = (Op.COMPLEX, Op.REAL, Op.IMAG)
CHOOSING = (Op.CONDITIONAL,)
RUNNING = (Op.CONDITIONAL, Op.WHILE)
"""What the thunks and the host program run; the passes leave few of those that are drawn by weight."""

READ_BY: tuple[tuple[int, tuple[Op, ...], tuple[Op, ...]], ...] = (
    (5, PLACING, PLACING),
    (4, MOVING, MOVING),
    (3, MOVING, (*PLACED, *FOLDING)),
    (2, TURNING, FOLDING),
    (3, FEEDING, WINDOWED),
    (4, COMPUTING, COMPUTING),
    (5, COMPUTING, BOUNDING),
    (3, SPLAT, BY_NUMBERS),
    (3, SPLAT, SCALING),
    (2, DECIDING, (*DECIDING, Op.XOR)),
    (1, COMPLEX, COMPLEX),
    (2, CHOOSING, (*RUNNING, *FOLDING, *PLACED)),
    (2, (*FOLDING, *PLACED, *RUNNING), CHOOSING),
)
"""(Weight, opcodes, those that read their results). Passes rewrite such pairs, or fuse them into one kernel."""

Focus = tuple[Op, ...]
"""Opcodes that a program has at least, of its main type; each reads the one before."""


def draw_focus(source: Source, limits: Limits) -> Focus:
    """What a program is drawn for; empty for one whose ops are all drawn by weight."""
    kind = source.integer(0, 99)
    single = _single(limits)
    if _pairs(limits) and kind >= 100 - PAIR_PERCENT:
        return draw_pair(source, limits)
    if limits.focus is not None and single:
        return (source.choice(single),)
    return (source.choice(single),) if single and kind >= 100 - PAIR_PERCENT - ONE_PERCENT else ()


def draw_pair(source: Source, limits: Limits) -> Focus:
    """A focus of two ops or more; there is one."""
    found: Focus = source.choice(source.choice(_pairs(limits)))
    while len(found) < MOST_LONG and (next_ := _readers(limits, found[-1])) and source.chance(LONGER_PERCENT):
        found = (*found, source.choice(source.choice(next_)))
    return found


@cache
def _single(limits: Limits) -> tuple[Op, ...]:
    return tuple(op for op in drawable(limits) if OPSET[op].family not in UNFOCUSED and _is_wanted(limits, op))


def _is_wanted(limits: Limits, *ops: Op) -> bool:
    return limits.focus is None or not limits.focus.isdisjoint(ops)


@cache
def _pairs(limits: Limits) -> tuple[tuple[Focus, ...], ...]:
    """Pairs by their group, each group as often as its weight says."""
    allowed = frozenset((*drawable(limits), *SPLAT))
    groups = [
        [tuple((a, b) for a in first for b in last if {a, b} <= allowed and _is_wanted(limits, a, b))] * weight
        for weight, first, last in READ_BY
    ]
    return tuple(pairs for group in groups for pairs in group if pairs)


@cache
def _readers(limits: Limits, op: Op) -> tuple[tuple[Op, ...], ...]:
    """The opcodes that may read an op, by their group, each group as often as its weight says."""
    allowed = frozenset(drawable(limits))
    groups = [(tuple(b for b in last if b in allowed), weight) for weight, first, last in READ_BY if op in first]
    return tuple(last for last, weight in groups for _ in range(weight) if last)


def grow_focus(body: Body, focus: Focus) -> None:
    """Add the ops of a focus: the first of several once or twice, then on a new value of the same shape."""
    made: list[Value] = []
    for n, op in enumerate(focus):
        if n == 0 and len(focus) > 1:
            made = _splat(body) if op in SPLAT else _read(body, op)
            continue
        read, made = made, []
        body.preferred = read
        with body.source.part():
            if grow_op(body, op):
                made = body.values[-1:]
        body.preferred = []
        if body.source.chance(ALONE_PERCENT):
            seen = {v.instruction for v in read} & body.read
            body.values = [v for v in body.values if v.instruction not in seen]


def _read(body: Body, op: Op) -> list[Value]:
    made: list[Value] = []
    for _ in range(body.source.choice((1, 2, 2))):
        with body.source.part():
            read = made[0].instruction.operands[0].shape if made and made[0].instruction.operands else None
            if read is not None and read.is_array:
                body.preferred = [body.fresh(read.dtype, read.dims)]
            if grow_op(body, op):
                made.append(body.values[-1])
    return made


def _splat(body: Body) -> list[Value]:
    """A value of the main type, rather one that is computed or a parameter, and a constant of its shape."""
    with body.source.part():
        dtype = body.program.types[0]
        v = body.operand(lambda v: v.instruction.opcode not in GIVEN, (dtype,))
        if body.source.chance(POWER_PERCENT) and v.dtype is not DType.PRED:
            return [v, body.repeated(body.scalar(v.dtype, _power_of_two(body.source, v.dtype)), v.dims)]
        return [v, body.splat(v)]


def _power_of_two(source: Source, dtype: DType) -> float:
    """A power of two that the type holds, rarely a negative one."""
    if dtype.is_integer:
        power: float = 1 << source.integer(0, dtype.bits - 1 - dtype.is_signed)
    else:
        power = 2.0 ** source.choice((1, 0, -1, 2) if dtype.bits <= 8 else (1, 0, -1, 2, 3, -2, 6, -7))
    return -power if (dtype.is_signed or dtype.is_float) and source.chance(20) else power
