"""A program under construction: its computations, and for each the instructions and the values that ops may read."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from ...hlo.dtypes import DType
from ...hlo.ir import NO_ATTRIBUTES, Computation, Instruction, Literal
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape, tuple_shape
from ...hlo.verify.infer import infer_missing
from .inputs import FLOAT_KINDS, INTEGER_KINDS, Input, known_of
from .source import Source
from .values import DRAWN, GROUPS, INDICES, Value, capacity, continuous, joined_known, limits

USUAL = (DType.F32, DType.S32, DType.F32, DType.F64, DType.BF16, DType.F16, DType.PRED)
TAILS = (*range(1, 18), 31, 32, 33, 63, 64, 65, 70, 127, 128, 129, 130, 131, 255, 256, 257, 513, 1000, 2049)
"""Sizes of vectors: around the widths of vectors and tiles."""
TILES = (16, 15, 17, 31, 32, 33, 47, 63)
"""Sizes of both dimensions of a matrix that has more than a tile of each."""
SMALL = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 0)
FORM_LIMITS = (
    *(2, 3, 4, 5, 7, 8, 9, 10, 12, 16, 20, 24, 32, 33, 64, 128, 200, 250, 256, 512),
    *(1536, 2048, 4096),
)
"""The limits of the stacks' forms up to MOST_ELEMENTS. They stand here again, so that a blob draws the same program
when a stack's limit moves; a test compares them with the stacks' tables.
"""


def near(limits: Sequence[int]) -> tuple[int, ...]:
    """Sizes at limits and on both of their sides, each once."""
    return tuple(dict.fromkeys(n for limit in limits for n in (limit, limit - 1, limit + 1) if n > 0))


LONG = (100_003, 131_072, 131_073, 200_001)
"""Numbers of elements that a long sum folds: enough for a loss of precision to show."""
MOST_ELEMENTS, MOST_RANK = 4096, 8
MOST_PARAMETERS = 5
LAYOUT_PERCENT = 12
SAME_PERCENT, SPLAT_PERCENT = 12, 10
"""How often a second operand is the first one, and a constant."""


@dataclass(frozen=True)
class Limits:
    """What programs are drawn from. instructions: of the entry, without parameters, constants and the parts of tuples.

    ops: the opcodes that may be drawn; None means all of the generator's table. dtypes: element types, besides those
    that an op needs (pred and s32). starts: whether sums may begin with other numbers than their identity, which XLA
    counts more than once where it cuts a sum into parts. focus: opcodes of which each program has one at least; None:
    programs are drawn for any.
    """

    instructions: int = 10
    depth: int = 2
    ops: frozenset[Op] | None = None
    dtypes: tuple[DType, ...] = DRAWN
    starts: bool = True
    focus: frozenset[Op] | None = None


class Program:
    """The computations of one module so far, the entry's inputs, and the source of all choices."""

    def __init__(self, source: Source, limits: Limits, main: Collection[DType] | None = None) -> None:
        """main: the types of which the main one is drawn, each group as often as another; None: half of the programs
        have a usual one.
        """
        self.source, self.limits, self.number = source, limits, 0
        self.computations: list[Computation] = []
        self.regions: dict[str, Computation] = {}
        self.inputs: list[Input] = []
        kinds = [d for d in limits.dtypes if main is not None and d in main]
        first = self._type(kinds, 0) if kinds else self._type(limits.dtypes, 50)
        self.types = [first, self._type(limits.dtypes, 20), self._type(limits.dtypes, 0)]
        self.shapes = [self.new_dims(), self.new_dims()]

    def _type(self, among: Sequence[DType], usual: int) -> DType:
        """With `usual` percent one of the usual types, else one of any group: of integers twice as often as of another,
        whose rewrites and special cases are the most.
        """
        found = [d for d in USUAL if d in among]
        if found and self.source.integer(0, 99) < usual:
            return self.source.choice(found)
        groups = [[d for d in group if d in among] for group in GROUPS]
        groups += [g for g in groups if DType.S32 in g]
        return self.source.choice(self.source.choice([group for group in groups if group]))

    def name(self, stem: str) -> str:
        self.number += 1
        return f"{stem}.{self.number}"

    def new_dims(self) -> tuple[int, ...]:
        """Dimensions of any rank: vectors of many sizes, small ones of higher rank, sometimes none at all."""
        draw = self.source
        rank = draw.choice((1, 2, 1, 3, 2, 0, 4, 2, 5, 1, 6, 3, 7, 8))
        if rank == 1:
            return (draw.choice(TAILS),)
        if rank == 2 and draw.chance(15):
            return draw.choice(TILES), draw.choice(TILES)
        if rank == 2 and draw.chance(20):
            return self.limited_dims()
        dims = [draw.choice(SMALL if rank < 4 else (1, 2, 3)) for _ in range(rank)]
        if rank in (2, 3) and draw.chance(30):
            dims[draw.integer(0, rank - 1)] = draw.choice(TAILS)
        return tuple(dims) if math.prod(dims) <= MOST_ELEMENTS else tuple(min(n, 4) for n in dims)

    def limited_dims(self) -> tuple[int, int]:
        """Of a matrix, one side of which is at a limit of the stacks' forms, or beside it."""
        draw = self.source
        one = draw.choice(near(FORM_LIMITS))
        other = draw.choice([n for n in near(FORM_LIMITS) if n * one <= max(one, MOST_ELEMENTS)])
        return (other, one) if draw.chance(50) else (one, other)

    def done(self, name: str, instructions: Sequence[Instruction], root: Instruction) -> Computation:
        made = Computation(name, tuple(instructions), root)
        self.computations.append(made)
        return made

    def region(self, name: str, shapes: Sequence[Shape], build: Callable[[Body], Instruction]) -> Computation:
        """The computation of this name; `build` adds its instructions to a body that has the parameters."""
        if name not in self.regions:
            body = Body(self, 0)
            for n, shape in enumerate(shapes):
                body.keep(body.instruction(Op.PARAMETER, (), shape, parameter_number=n))
            root = build(body)
            self.regions[name] = self.done(self.name(name), body.instructions, root)
        return self.regions[name]


class Body:
    """One computation under construction. entry: it may add parameters. depth: how deep control flow may still nest.
    preferred: values that the next op is to read, if they fit. turns: whether results have drawn layouts.
    """

    def __init__(self, program: Program, depth: int, *, entry: bool = False) -> None:
        self.program, self.source, self.depth, self.entry = program, program.source, depth, entry
        self.instructions: list[Instruction] = []
        self.values: list[Value] = []
        self.read: set[Instruction] = set()
        self.preferred: list[Value] = []
        self.turns = True

    # instructions

    @property
    def size(self) -> int:
        """How many instructions compute or move anything."""
        return sum(i.opcode not in UNCOUNTED for i in self.instructions)

    def instruction(
        self, op: Op, operands: Sequence[Instruction] = (), shape: Shape | None = None, **attributes: Any
    ) -> Instruction:
        """Add an instruction. shape: None infers it."""
        given: Mapping[str, Any] = attributes or NO_ATTRIBUTES
        name = self.program.name(op.value)
        made = Instruction(op, name, shape or Shape(DType.F32), tuple(operands), given)
        if shape is None:
            made = Instruction(op, name, infer_missing(made).without_layout(), tuple(operands), given)
        self.instructions.append(made)
        self.read.update(operands)
        return made

    def keep(self, made: Instruction, *, exact: bool = True, whole: bool = False, most: float = math.inf) -> Value:
        """A value that later ops may read. Integers and preds are always exact and whole."""
        if not continuous(made.shape.dtype):
            exact = whole = True
        value = Value(made, exact, whole and exact, most)
        self.values.append(value)
        return value

    def add(
        self,
        op: Op,
        operands: Sequence[Value],
        shape: Shape | None = None,
        *,
        exact: bool = True,
        whole: bool = False,
        most: float = math.inf,
        **attributes: Any,
    ) -> Value:
        """Add an op on values that makes one array, sometimes in another layout."""
        made = self.instruction(op, [v.instruction for v in operands], shape, **attributes)
        if self.turns and made.shape.rank > 1 and op not in PLAIN and self.source.chance(LAYOUT_PERCENT):
            made = self.turned(made)
        return self.keep(made, exact=exact, whole=whole, most=most)

    def turned(self, made: Instruction) -> Instruction:
        """The last instruction with its result in a drawn layout."""
        order = tuple(reversed(self.source.sample(range(made.shape.rank), made.shape.rank)))
        self.instructions[-1] = made.replace(shape=made.shape.with_layout(order))
        return self.instructions[-1]

    def moved(self, op: Op, operands: Sequence[Value], shape: Shape | None = None, **attributes: Any) -> Value:
        """Add an op whose result holds elements of its operands."""
        return self.add(op, operands, shape, **joined_known(operands), **attributes)

    def moved_copy(self, v: Value) -> Value:
        """v in row-major order."""
        made = self.instruction(Op.COPY, [v.instruction], v.instruction.shape.without_layout())
        return self.keep(made, **v.known)

    def parts(self, whole: Instruction, known: Sequence[Value | None]) -> list[Value]:
        """The elements of a tuple; known: what is known of each."""
        found = []
        for n, (shape, of) in enumerate(zip(whole.shape.elements, known, strict=True)):
            part = self.instruction(Op.GET_TUPLE_ELEMENT, [whole], shape, index=n)
            found.append(self.keep(part, exact=False) if of is None else self.keep(part, **of.known))
        return found

    def tupled(self, values: Sequence[Value]) -> Instruction:
        members = [v.instruction for v in values]
        return self.instruction(Op.TUPLE, members, tuple_shape(*(m.shape for m in members)))

    # operands

    @property
    def room(self) -> bool:
        """Whether there may be one more parameter."""
        return self.entry and len(self.program.inputs) < MOST_PARAMETERS

    def any(self) -> Value:
        """One of the values, rather a late one; a new one if there is none."""
        if not self.values:
            return self.fresh(self.source.choice(self.program.types), self.source.choice(self.program.shapes))
        recent = min(len(self.values), 4)
        back = self.source.integer(0, recent - 1 if self.source.chance(70) else len(self.values) - 1)
        return self.values[-1 - back]

    def operand(self, fits: Callable[[Value], bool], dtypes: Sequence[DType]) -> Value:
        """A value that fits, rather a late one, or a new one of one of the types."""
        preferred = [v for v in self.preferred if v.dtype in dtypes and fits(v)]
        if preferred:
            return preferred[0]
        found = [v for v in reversed(self.values) if v.dtype in dtypes and fits(v)]
        if found and not self.source.chance(12):
            return self.source.choice(found[:4] if self.source.chance(60) else found)
        allowed = [d for d in self.program.types if d in dtypes]
        wanted = self.program.limits.dtypes
        allowed = allowed or [d for d in dtypes if d in wanted] or list(dtypes)
        for _ in range(3):
            made = self.fresh(self.source.choice(allowed), self.source.choice(self.program.shapes))
            if fits(made):
                return made
        plain = [self.whole(self.source.choice(allowed), dims) for dims in ((5,), (4, 3), (2, 4, 3))]
        return next((v for v in plain if fits(v)), plain[0])

    def like(self, v: Value, fits: Callable[[Value], bool] = lambda v: True) -> Value:
        """Another value of the type and dimensions of v, often one number for all elements, or rarely v itself."""
        kind = self.source.integer(0, 99)
        if fits(v) and kind >= 100 - SAME_PERCENT:
            return v
        if kind < 100 - SAME_PERCENT - SPLAT_PERCENT or self.preferred:
            return self.of(v.dtype, v.dims, lambda w: w is not v and fits(w))
        made = self.splat(v)
        if fits(made):
            return made
        return self.of(v.dtype, v.dims, lambda w: w is not v and fits(w))

    def of(self, dtype: DType, dims: Sequence[int], fits: Callable[[Value], bool] = lambda v: True) -> Value:
        """A value of a type and of dimensions."""
        dims = tuple(dims)
        preferred = [v for v in self.preferred if v.dtype is dtype and v.dims == dims and fits(v)]
        if preferred and not self.source.chance(25):
            return preferred[-1]
        found = [v for v in self.values if v.dtype is dtype and v.dims == dims and fits(v)]
        if found and not self.source.chance(25):
            return self.source.choice(found[::-1])
        rows = [
            v
            for v in self.values
            if v.dtype is dtype and v.dims and v.dims == dims[len(dims) - len(v.dims) :] != dims and fits(v)
        ]
        if rows and self.source.chance(30):
            row = self.source.choice(rows)
            at = tuple(range(len(dims) - len(row.dims), len(dims)))
            return self.moved(Op.BROADCAST, [row], Shape(dtype, dims), dimensions=at)
        made = self.fresh(dtype, dims)
        return made if fits(made) else self.whole(dtype, dims)

    def fresh(self, dtype: DType, dims: Sequence[int]) -> Value:
        """A new value: a parameter, a constant, an iota or a scalar constant that is broadcast."""
        dims, size = tuple(dims), math.prod(dims)
        kind = self.source.integer(0, 3 if self.room else 2)
        if self.room and kind < 2:
            return self.parameter(dtype, dims)
        if kind == 2 and dims and dtype is not DType.PRED:
            most = max(*dims, 1) - 1
            top = capacity(dtype) if continuous(dtype) else limits(dtype)[1]
            axis = self.source.integer(0, len(dims) - 1)
            return self.add(Op.IOTA, (), Shape(dtype, dims), whole=most <= top, most=most, iota_dimension=axis)
        if size <= 24 and self.source.chance(50):
            return self.constant(dtype, dims, [self.number(dtype) for _ in range(size)])
        return self.repeated(self.scalar(dtype), dims)

    def whole(self, dtype: DType, dims: Sequence[int]) -> Value:
        """A new value of one small integer."""
        return self.repeated(self.scalar(dtype, self.source.choice((1, 0))), dims)

    def splat(self, v: Value) -> Value:
        """A new value of the type and dimensions of v, of one number."""
        return self.repeated(self.scalar(v.dtype), v.dims)

    def repeated(self, scalar: Value, dims: Sequence[int]) -> Value:
        """A scalar as an array of these dimensions."""
        if not dims:
            return scalar
        return self.moved(Op.BROADCAST, [scalar], Shape(scalar.dtype, tuple(dims)), dimensions=())

    def parameter(
        self, dtype: DType, dims: tuple[int, ...], kinds: Sequence[str] = (), layout: tuple[int, ...] | None = None
    ) -> Value:
        """A parameter. kinds: of its numbers, if not those that are usual for the type; layout: if it is not drawn."""
        kinds = kinds or (FLOAT_KINDS if continuous(dtype) else INTEGER_KINDS)
        given = Input(self.source.choice(kinds), self.source.integer(0, 255))
        shape = Shape(dtype, dims)
        if layout is not None:
            shape = shape.with_layout(layout)
        elif len(dims) > 1 and self.source.chance(LAYOUT_PERCENT):
            shape = shape.with_layout(tuple(self.source.sample(range(len(dims)), len(dims))))
        made = self.instruction(Op.PARAMETER, (), shape, parameter_number=len(self.program.inputs))
        self.program.inputs.append(given)
        return self.keep(made, **known_of(given, dtype))

    # constants

    def constant(self, dtype: DType, dims: tuple[int, ...], numbers: Sequence[Any]) -> Value:
        """A literal. Of floats it is whole if they are finite integers that the type holds."""
        with np.errstate(all="ignore"):
            held = np.array(numbers).reshape(dims).astype(dtype.numpy)
        held.flags.writeable = False
        made = self.instruction(Op.CONSTANT, (), Shape(dtype, dims), literal=Literal(Shape(dtype, dims), held))
        parts = held.astype(np.complex128 if dtype.is_complex else np.float64)
        size = np.maximum(np.abs(parts.real), np.abs(parts.imag))
        whole = bool(np.all(np.isfinite(parts)) and np.all(parts == np.round(parts)) and not np.any(_minus_zero(parts)))
        most = float(size.max(initial=0.0)) if np.all(np.isfinite(parts)) else math.inf
        return self.keep(made, whole=whole, most=most)

    def scalar(self, dtype: DType, number: Any = None) -> Value:
        return self.constant(dtype, (), [self.number(dtype) if number is None else number])

    def number(self, dtype: DType) -> Any:
        """A number of a type for a literal, as Python's."""
        if dtype is DType.PRED:
            return self.source.integer(0, 1)
        if dtype.is_integer:
            least, most = limits(dtype)
            found = self.source.choice((0, 1, 2, 3, -1, -2, 5, 4, 8, 64, least, most))
            return max(least, min(most, found))
        if dtype.is_complex:
            return complex(self.source.integer(-2, 2), self.source.integer(-2, 2))
        largest = float(ml_dtypes.finfo(dtype.numpy).max)
        return self.source.choice((0.0, 1.0, 2.0, -1.0, 0.5, -2.0, 3.0, -0.0, math.nan, math.inf, -math.inf, largest))

    def index(self) -> Value:
        """A scalar of an index type, often out of range."""
        dtype = self.source.choice(INDICES)
        found = [v for v in self.values if v.dtype is dtype and not v.dims]
        if found and self.source.chance(40):
            return self.source.choice(found)
        least, most = limits(dtype)
        near = self.source.integer(0, 7) - 2
        far = self.source.choice((near, near, near, near, least, most))
        return self.scalar(dtype, max(least, min(most, far)))


UNCOUNTED = frozenset({Op.PARAMETER, Op.CONSTANT, Op.TUPLE, Op.GET_TUPLE_ELEMENT, Op.AFTER_ALL})

PLAIN = frozenset({Op.BITCAST, Op.SORT, Op.CONSTANT, Op.SCAN, Op.FUSION, Op.CALL})
"""Ops whose results stay in the layout that they have."""


def _minus_zero(parts: np.ndarray) -> np.ndarray:
    return ((parts.real == 0) & np.signbit(parts.real)) | ((parts.imag == 0) & np.signbit(parts.imag))
