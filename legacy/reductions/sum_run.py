"""Sums of neighbours in memory, or of what is made of them, as functions that the kernels of all programs call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import Enum

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import Code, IndexValue, Unroll
from ..core.helper import call, declared
from ..core.registers import I64, POINTER, memory_type, real_constant
from ..core.stack import alloca
from ..core.view import View
from ..loops.along import Along, Reduced
from ..loops.elemental import Elemental
from ..loops.fetch import AHEAD
from ..loops.linear import source_of, through
from ..loops.memory import Pointer, address, prefetch
from ..numerics.real import Real
from .long_sums import BALANCED, LINE_BYTES, LINES, OUTSIDE, PartialSums, nothing

MINIMUM_LENGTH = 256
"""Elements of each of many rows at least, for a function to be called."""

MINIMUM_LENGTH_ALONE = 64
"""As above, for a single row."""

MAXIMUM_LENGTH = 1 << 17
"""Elements of one call, at most: each partial sum then has as many terms as those inside it, and no level more."""


def is_run(view: View, count: int, alone: bool = False) -> bool:
    """Whether functions add up a run of this length. alone: there are no other rows."""
    return (MINIMUM_LENGTH_ALONE if alone else MINIMUM_LENGTH) <= count <= MAXIMUM_LENGTH and not (
        view.strict or view.by_element
    )


class Term(Enum):
    """What is added up: x, x², x·y, x²·y, (x − n)²; n is a number, the others arrays."""

    ELEMENT = "x"
    SQUARE = "xx"
    PRODUCT = "xy"
    WEIGHTED = "xxy"
    DEVIATION = "deviation"

    @property
    def arrays(self) -> int:
        return 2 if self in (Term.PRODUCT, Term.WEIGHTED) else 1

    @property
    def numbers(self) -> int:
        return int(self is Term.DEVIATION)


_MADE: dict[Term, Callable[[Real, Sequence[ir.Value], Sequence[ir.Value]], ir.Value]] = {
    Term.ELEMENT: lambda r, x, n: x[0],
    Term.SQUARE: lambda r, x, n: r.mul(x[0], x[0]),
    Term.PRODUCT: lambda r, x, n: r.mul(x[0], x[1]),
    Term.WEIGHTED: lambda r, x, n: r.mul(r.mul(x[0], x[0]), x[1]),
    Term.DEVIATION: lambda r, x, n: _square(r, r.sub(x[0], n[0])),
}


def _square(r: Real, x: ir.Value) -> ir.Value:
    return r.mul(x, x)


@dataclass(frozen=True, slots=True)
class SumRun:
    """ahead: what follows is fetched. width: the number of sums, a power of two: term k belongs to sum k mod width."""

    term: Term
    dtype: DType
    ahead: bool = False
    width: int = 1

    @property
    def name(self) -> str:
        return f"legacy.sum.{self.term.value}.{self.dtype.value}.{self.width}{'a' * self.ahead}"

    def call(
        self,
        code: Code,
        arrays: Sequence[ir.Value],
        count: int,
        numbers: Sequence[ir.Value] = (),
    ) -> ir.Value:
        """The sum of `count` terms, from MINIMUM_LENGTH_ALONE to MAXIMUM_LENGTH."""
        result = self.call_into(code, arrays, count, numbers)
        return code.b.load(result, typ=memory_type(self.dtype), align=self.dtype.bytes)

    def call_into(
        self, code: Code, arrays: Sequence[ir.Value], count: int, numbers: Sequence[ir.Value] = ()
    ) -> ir.Value:
        """Where the sums are."""
        result = alloca(code, memory_type(self.dtype), self.width)
        call(code.b, self, [*arrays, result, I64(count), *numbers])
        return result

    def declare(self, module: ir.Module) -> ir.Function:
        arrays, numbers = self.term.arrays, [memory_type(self.dtype)] * self.term.numbers
        types = [*[POINTER] * (arrays + 1), I64, *numbers]
        return declared(module, self.name, types, [True] * arrays + [False], (arrays,))

    def define(self, module: ir.Module) -> None:
        function = self.declare(module)
        code, given, bytes_ = Code(module, function), list(function.args), self.dtype.bytes
        sources, (result, count, *numbers) = given[: self.term.arrays], given[self.term.arrays :]
        lanes = LINE_BYTES // bytes_
        lines = LINES if lanes >= BALANCED // 2 * self.width else OUTSIDE  # errors of few lanes balance each other less
        real = Real(code, self.dtype.bits)

        def term(at: ir.Value) -> ir.Value:
            places = [code.b.gep(s, [at], inbounds=True, source_etype=real.type) for s in sources]
            return _MADE[self.term](real, [code.b.load(p, typ=real.type, align=bytes_) for p in places], numbers)

        def fetch(first: IndexValue) -> None:
            for source in sources if self.ahead else ():
                for k in range(0, lanes * bytes_, code.view.processor.line_bytes):
                    prefetch(code, Pointer(source), self.dtype, code.add(first, (AHEAD + k) // bytes_))

        def add(first: IndexValue, lane: IndexValue) -> None:
            (total,) = sums.read(lane)
            sums.write(lane, [code.b.fadd(total, term(code.value(code.add(first, lane))))])

        whole = code.b.and_(count, I64(-lanes))
        sums = PartialSums(code, [nothing(real_constant(real.type, 0.0))], [4 * lanes])
        assert sums.width == lanes
        sums.start()
        begin: IndexValue = 0
        end: IndexValue = whole
        group = code.range(0, whole, lanes * lines * OUTSIDE, unroll=Unroll.NEVER) if self.width > 1 else None
        if group is not None:  # columns have few lanes, and one level more
            sums.enter()
            begin, end = group.index, code.minimum(code.add(group.index, lanes * lines * OUTSIDE), whole)
        sums.add_lines(begin, end, lines, add, fetch)
        if group is not None:
            sums.leave()
            group.close()
        with code.range(0, code.subtract(count, whole)) as rest:
            add(whole, rest)
        place = 0
        for total in sums.of_columns(self.width):
            code.b.store(total, code.b.gep(result, [I64(place)], source_etype=real.type), align=bytes_)
            place += total.type.count if isinstance(total.type, ir.VectorType) else 1
        code.b.ret_void()


def run_along(view: View, operand: Instruction, reduced: Reduced) -> Made | None:
    """What the sum of all elements is made of, if a function computes it."""
    if not reduced.is_row or not is_run(view, reduced.sizes[0], operand.shape.size == reduced.sizes[0]):
        return None
    return made_of(operand, view.leaves)


def sum_along(e: Elemental, operand: Instruction, made: Made, along: Along) -> ir.Value:
    """The sum of all elements."""
    offset = along.place([0]).offset(operand.shape)
    arrays = [address(e.code, e.leaves[x], x.shape.dtype, offset) for x in made.arrays]
    helper = SumRun(made.term, operand.shape.dtype, bool(along.reduced.streams))
    return helper.call(e.code, arrays, along.sizes[0])


@dataclass(frozen=True, slots=True)
class Made:
    """How a sum's operand is made of arrays in memory and of numbers."""

    term: Term
    arrays: tuple[Instruction, ...]
    numbers: tuple[Instruction, ...] = ()


def made_of(operand: Instruction, leaves: Collection[Instruction], in_rows: bool = False) -> Made | None:
    """How a function makes the addends. in_rows: broadcast operands may be numbers of a row."""
    if operand.shape.dtype not in (DType.F32, DType.F64):
        return None
    leaf = source_of(operand, leaves)
    if leaf is not None:
        return Made(Term.ELEMENT, (leaf,))
    inner = through(operand)
    if inner.opcode is Op.MULTIPLY:
        return _product(inner, leaves, in_rows)
    return None


def _product(product: Instruction, leaves: Collection[Instruction], in_rows: bool) -> Made | None:
    left, right = product.operands
    found = first, second = source_of(left, leaves), source_of(right, leaves)
    if first is not None and second is not None:
        return Made(Term.SQUARE, (first,)) if first is second else Made(Term.PRODUCT, (first, second))
    if left is right and in_rows and left.opcode is Op.SUBTRACT and left.operands[1].opcode is Op.BROADCAST:
        leaf = source_of(left.operands[0], leaves)
        return None if leaf is None else Made(Term.DEVIATION, (leaf,), (left.operands[1],))
    for square, other in ((left, found[1]), (right, found[0])):
        inner = through(square)
        if other is not None and inner.opcode is Op.MULTIPLY and inner.operands[0] is inner.operands[1]:
            leaf = source_of(inner.operands[0], leaves)
            return None if leaf is None else Made(Term.WEIGHTED, (leaf, other))
    return None


def scaled_source(
    operand: Instruction, leaves: Collection[Instruction]
) -> tuple[Instruction, Instruction | None] | None:
    """(the array, the broadcast number) whose product is an operand; without a product no number."""
    leaf = source_of(operand, leaves)
    if leaf is not None:
        return leaf, None
    product = through(operand)
    if product.opcode is not Op.MULTIPLY:
        return None
    for side, other in (product.operands, product.operands[::-1]):
        leaf = source_of(side, leaves)
        if leaf is not None and other.opcode is Op.BROADCAST and other.operands[0].shape.size == 1:
            return leaf, other
    return None
