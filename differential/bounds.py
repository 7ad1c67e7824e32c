"""How far a stack's result may lie from the reference, derived from the module and the opset's table.

Each float value of a program carries an `Error`, found by a walk from the parameters, which have none, to the results:

- An op that only moves, selects, compares or changes signs adds nothing.
- One add, subtract, multiply, divide, remainder or sqrt of exact operands is exact: IEEE 754 fixes its bits. Where
  another follows on the same path, compilers may contract the two (FMA) or reassociate them, and each counts 1 ulp.
- A function adds the ulp of its row. Functions, sums and differences may amplify the error of an operand (sin(x) near
  pi, x - y near 0), but not beyond the largest magnitude of the array: from there on all that came before counts as
  `scaled` too.
- A fold of n elements (reduce, dot, convolution, …) may be made in any order: min(n, 4·sqrt(n)) ulp of its accumulator,
  relative and scaled. Types narrower than f32 are rounded once by a dot (1 ulp), and in each step or once by a
  reduction (1 + sqrt(n)/2 ulp).
- A loop adds what one iteration adds, times its iterations.

A program in which nothing was added gives the same bits on all stacks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple

import ml_dtypes

from ..hlo.analysis.nesting import make_room
from ..hlo.analysis.trip_count import trip_count
from ..hlo.dtypes import DType
from ..hlo.ir import Computation, Instruction, Module
from ..hlo.opclasses import branches
from ..hlo.opcodes import Op
from ..hlo.opset import OPSET
from ..hlo.opset_rows import ALGORITHM_ULP, EXACT, Family
from ..hlo.shapes import Shape
from .fold_lengths import fold_length, largest_operand

COMPLEX_ULP = {
    **dict.fromkeys((Op.ABS, Op.DIVIDE, Op.MULTIPLY, Op.SIGN), 4),
    **dict.fromkeys((Op.LOG, Op.LOG_PLUS_ONE), 128),
    Op.LOGISTIC: 64,
}
"""Bounds of complex ops, as distances in the plane. Products may be contracted, and terms cancel near a zero or a pole
(log near |z| = 1). Other functions have COMPLEX_FUNCTION_ULP."""
COMPLEX_FUNCTION_ULP = 16
POWER_ULP = 32
"""Of complex powers, exp(y·log x), besides an ulp for each unit of |y·log x|: a rounding error of the logarithm turns
the result in the plane by the same number of ulps. |y·log x| counts as twice the logarithm of the type's largest
number.
"""

COMPLEX_ABSOLUTE_ULP = {Op.ATAN2: 16, Op.COSINE: 4, Op.SINE: 4}
"""Ulp of 1 that a complex op may be off, however small its result is. The imaginary part of atan2 is the logarithm of a
rounded magnitude; those of sine and cosine are differences of eʸ/2 and e⁻ʸ/2, of XLA as well. Ops behind them pass the
distance on as it is.
"""

UNKNOWN_TRIPS = 100
"""Iterations of a loop whose number is not plain from the text."""

LIMIT = 0.125
"""No bound is looser than this, relative and scaled (or 2 ulp, in types where those are more)."""


@dataclass(frozen=True, slots=True)
class Bound:
    """ulp: of the element. scaled: ulp of the array's largest finite magnitude. Both 0: the same bits.

    flush: whether a subnormal may have become zero. overflow: from this magnitude on a number may have become infinite,
    or NaN in a type without infinity. underflow: up to this magnitude it may have become a zero of its sign.
    absolute: a distance that is allowed whatever the magnitude.
    """

    ulp: float = 0.0
    scaled: float = 0.0
    flush: bool = False
    overflow: float = math.inf
    underflow: float = 0.0
    absolute: float = 0.0

    def __str__(self) -> str:
        if not self.ulp and not self.scaled:
            return "the same bits" + (", or a subnormal flushed to zero" if self.flush else "")
        return f"{self.ulp:.4g} ulp" + (f" + {self.scaled:.4g} ulp of the largest magnitude" if self.scaled else "")


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A bound that a user gives in place of Bound, for floats and complex parts: an element agrees if it is within one.

    atol, rtol: absolute, and relative to the expected value. ulp: in representable values. 0: none.
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulp: float = 0.0

    def __str__(self) -> str:
        parts = (f"{self.atol:g} absolute", f"{self.rtol:g} relative", f"{self.ulp:g} ulp")
        given = [text for text, size in zip(parts, (self.atol, self.rtol, self.ulp)) if size]
        return " or ".join(given) or "equal numbers"


class Error(NamedTuple):
    """relative, scaled: as in Bound, but numbers instead of ulp; flush and what follows: as there. deferred: relative
    too, due as soon as arithmetic follows.
    """

    relative: float = 0.0
    scaled: float = 0.0
    deferred: float = 0.0
    flush: bool = False
    overflow: float = math.inf
    underflow: float = 0.0
    absolute: float = 0.0

    @property
    def due(self) -> float:
        return self.relative + self.deferred

    @property
    def is_exact(self) -> bool:
        return not (self.relative or self.scaled or self.deferred)


NONE = Error()
Errors = tuple[Error, ...]
"""One a leaf of a value's shape."""


def bounds_of(module: Module) -> tuple[Bound, ...]:
    """The bound of each array leaf of the module's result."""
    make_room(module)
    leaves = [shape for _, shape in module.result_shape.leaves()]
    errors = _apply(module.entry, [_none(p.shape) for p in module.entry.parameters])
    return tuple(_bound(e, s.dtype) for e, s in zip(errors, leaves, strict=True) if s.is_array)


def errors_of_each(module: Module) -> dict[Instruction, Error]:
    """What bounds_of finds for each instruction, its leaves and its calls joined."""
    make_room(module)
    found: dict[Instruction, Error] = {}
    token = _FOUND.set(found)
    try:
        _apply(module.entry, [_none(p.shape) for p in module.entry.parameters])
    finally:
        _FOUND.reset(token)
    return found


_FOUND: ContextVar[dict[Instruction, Error] | None] = ContextVar("found", default=None)
"""Where errors_of_each collects; rules call `_apply` for computations and know nothing of it."""


def _bound(error: Error, dtype: DType) -> Bound:
    if not _is_inexact(dtype):
        return Bound()
    unit = epsilon(dtype)
    most = max(LIMIT / unit, 2.0)
    ulp, scaled = min(error.relative / unit, most), min(error.scaled / unit, most)
    return Bound(ulp, scaled, error.flush, error.overflow, error.underflow, error.absolute)


def epsilon(dtype: DType) -> float:
    """The distance from 1 to the next larger number."""
    return float(ml_dtypes.finfo(dtype.component.numpy).eps)


def op_ulp(op: Op, dtype: DType) -> float:
    """The ulp of one op with a result of a type; 1 at most of narrow floats, which are computed in f32 and rounded."""
    ulp = OPSET[op].ulp
    if dtype.is_complex and op is Op.POWER:
        return POWER_ULP + 2 * math.log(_range(dtype)[1])
    if dtype.is_complex:
        return COMPLEX_ULP.get(op, COMPLEX_FUNCTION_ULP if ulp or op is Op.SQRT else EXACT)
    return min(ulp, 1) if epsilon(dtype) > epsilon(DType.F32) else ulp


def _apply(computation: Computation, arguments: Sequence[Errors]) -> Errors:
    """The errors of a computation's result, given those of its arguments."""
    known: dict[Instruction, Errors] = {}
    for i in computation.instructions:
        if i.opcode is Op.PARAMETER:
            known[i] = tuple(arguments[i.parameter_number])
        else:
            known[i] = _errors(i, [known[o] for o in i.operands])
    if (found := _FOUND.get()) is not None:
        for i, errors in known.items():
            found[i] = join((*errors, found.get(i, NONE)))
    return known[computation.root]


def _errors(i: Instruction, operands: list[Errors]) -> Errors:
    rule = RULES.get(i.opcode)
    if rule is not None:
        return rule(i, operands)
    family = OPSET[i.opcode].family
    error = _FAMILIES.get(family, _moved)(i, join(e for o in operands for e in o))
    return tuple(error if _is_inexact(s.dtype) else NONE for _, s in i.shape.leaves())


def join(errors: Iterable[Error]) -> Error:
    """The error of a value that may be any one of several values."""
    relative = scaled = deferred = 0.0
    flush, overflow, underflow, absolute = False, math.inf, 0.0, 0.0
    for e in errors:
        relative, scaled = max(relative, e.relative), max(scaled, e.scaled)
        deferred, flush = max(deferred, e.deferred), flush or e.flush
        overflow, underflow = min(overflow, e.overflow), max(underflow, e.underflow)
        absolute = max(absolute, e.absolute)
    return Error(relative, scaled, deferred, flush, overflow, underflow, absolute)


def _is_inexact(dtype: DType) -> bool:
    return dtype.is_float or dtype.is_complex


def _none(shape: Shape) -> Errors:
    return tuple(NONE for _ in shape.leaves())


def _moved(i: Instruction, given: Error) -> Error:
    return given


_ARITHMETIC = frozenset({Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.DIVIDE, Op.REMAINDER, Op.SQRT})
_LINEAR = frozenset({Op.MULTIPLY, Op.DIVIDE, Op.SQRT, Op.RSQRT, Op.CBRT, Op.ABS})
"""Ops whose result has no larger relative error than their operands have together."""
_BY_BITS = frozenset({Op.ABS, Op.NEGATE, Op.SELECT, Op.COPY, Op.COMPLEX, Op.REAL, Op.IMAG})
"""Elementwise ops that move bits or change signs, and flush no subnormal."""
_PARTS = frozenset({Op.REAL, Op.IMAG})
"""One part of a complex number may be small beside the other, whose error it shares."""


def own_error(i: Instruction, given: Error) -> float:
    """The relative error that an elementwise op itself adds to that of its operands; 0 if it is exact or deferred."""
    dtype = i.shape.dtype
    if not OPSET[i.opcode].elementwise or not _is_inexact(dtype):
        return 0.0
    kind = max((o.shape.dtype for o in i.operands), key=lambda d: d.is_complex)
    ulp = op_ulp(i.opcode, kind if kind.is_complex else dtype)
    if ulp == EXACT and i.opcode in _ARITHMETIC and not given.is_exact:
        ulp = 1
    return ulp * epsilon(dtype)


def _elementwise(i: Instruction, given: Error) -> Error:
    dtype = i.shape.dtype
    if not _is_inexact(dtype):
        return NONE
    if own := own_error(i, given):
        error = _inexact(i.opcode, given, own)
        absolute = COMPLEX_ABSOLUTE_ULP.get(i.opcode, 0) * epsilon(dtype) if dtype.is_complex else 0.0
        return error._replace(absolute=max(error.absolute, absolute))
    if i.opcode in _ARITHMETIC:
        return Error(deferred=epsilon(dtype), flush=True)
    if i.opcode in _PARTS:
        return given._replace(scaled=max(given.scaled, given.due))
    return given._replace(flush=given.flush or i.opcode not in _BY_BITS or _is_extremum(i))


def _is_extremum(i: Instruction) -> bool:
    """Whether a select takes one of the numbers that its condition compares: LLVM makes x86's maxss and minss of that,
    which flush what they return.
    """
    if i.opcode is not Op.SELECT:
        return False
    left, found = [i.operands[0]], set[Instruction]()
    while left:
        condition = left.pop()
        if condition.opcode is Op.COMPARE:
            found.update(condition.operands)
        elif condition.opcode in (Op.AND, Op.OR, Op.NOT, Op.XOR):
            left += condition.operands
    return not found.isdisjoint(i.operands[1:])


def _inexact(op: Op, given: Error, own: float) -> Error:
    """An op with an error of its own, and what it makes of its operands'."""
    amplified = 0.0 if op in _LINEAR else given.due
    return Error(given.due + own, max(given.scaled, amplified), flush=True, absolute=given.absolute)


def _converted(i: Instruction, given: Error) -> Error:
    """Rounding an exact value is exact; rounding an inexact one may go to the neighbour, or beyond the range."""
    source, target = i.operands[0].shape.dtype, i.shape.dtype
    if not _is_inexact(target) or not _is_inexact(source):
        return NONE
    narrower = i.opcode is Op.REDUCE_PRECISION or epsilon(target) > epsilon(source)
    if given.is_exact or not narrower:
        # A subnormal that was not flushed may be rounded to the least normal number.
        least = _range(source)[0] if narrower and given.flush else 0.0
        return given._replace(flush=True, underflow=max(given.underflow, least))
    kept, (least, most) = epsilon(target), _range(target)
    if i.opcode is Op.REDUCE_PRECISION:
        kept = max(kept, 2.0 ** -i.attributes["mantissa_bits"])
        least, most = _reduced_range(i.attributes["exponent_bits"], i.attributes["mantissa_bits"], least, most)
    due = given.due + kept
    share = min(due, LIMIT)
    overflow, underflow = min(given.overflow, most * (1 - share)), max(given.underflow, least * (1 + share))
    return Error(due, given.scaled, 0.0, True, overflow, underflow, given.absolute)


def _range(dtype: DType) -> tuple[float, float]:
    """The smallest normal and the largest finite magnitude."""
    info = ml_dtypes.finfo(dtype.component.numpy)
    return float(info.smallest_normal), float(info.max)


def _reduced_range(exponent_bits: int, mantissa_bits: int, least: float, most: float) -> tuple[float, float]:
    """As above, of reduce-precision's format inside a type whose range is [least, most]."""
    bias = (1 << (exponent_bits - 1)) - 1
    if bias >= 1023:
        return least, most
    return max(least, 2.0 ** (1 - bias)), min(most, (2 - 2.0 ** -min(mantissa_bits, 52)) * 2.0**bias)


def folded(n: int, given: Error, step: float, dtype: DType, *, wide: bool = True) -> Error:
    """n elements folded into one, in any order. step: the relative error of one step, in ulp.

    wide: whether f16 and narrower types accumulate in f32; where they need not, each step rounds to the type itself. A
    long chain stands still where its elements are below half an ulp of it: then its error is as large as the result.
    """
    if not step:
        return given
    unit = epsilon(dtype)
    if n <= 1 and step <= 1:
        return Error(deferred=unit, flush=True) if given.is_exact else _inexact(Op.ADD, given, unit)
    single = epsilon(DType.F32)
    growth = min(n, 4 * math.sqrt(n)) * step * min(unit, single)
    rounding = 0.0
    if unit > single:
        still = n > 2 / unit
        rounding = unit if wide else (1 + (1 / unit if still else math.sqrt(n) / 2)) * step * unit
    due = given.due + growth
    scaled = max(given.scaled, due if wide else due + rounding)
    return Error(due + rounding, scaled, flush=True, absolute=given.absolute)


def _product(i: Instruction, operands: list[Errors]) -> Errors:
    given, dtype = join(e for o in operands for e in o), i.shape.dtype
    if not _is_inexact(dtype):
        return _none(i.shape)
    step = op_ulp(Op.MULTIPLY, dtype) or OPSET[i.opcode].ulp
    return (folded(fold_length(i), given, step, dtype),)


def fold_region(i: Instruction) -> Computation:
    """The computation of scalars that a fold applies again and again."""
    region: Computation = i.attributes["scatter" if i.opcode is Op.SELECT_AND_SCATTER else "to_apply"]
    return region


def _fold(i: Instruction, operands: list[Errors]) -> Errors:
    """A computation of scalars applied again and again."""
    given = join(e for o in operands for e in o)
    region = fold_region(i)
    return _steps(i, given, _apply(region, [_none(p.shape) for p in region.parameters]))


def _scan(i: Instruction, operands: list[Errors]) -> Errors:
    """As `_fold`; a carry goes into every result of the next step."""
    region = fold_region(i)
    steps = _apply(region, [_none(p.shape) for p in region.parameters])
    return _steps(i, join(e for o in operands for e in o), (join(steps),) * len(steps))


def _steps(i: Instruction, given: Error, steps: Errors) -> Errors:
    """The errors of an op whose region is applied again and again. steps: what one application adds to each result."""
    results = [s for _, s in i.shape.leaves()]
    errors = []
    for shape, step in zip(results, [*steps, *[NONE] * len(results)]):
        if _is_inexact(shape.dtype):
            error = folded(fold_length(i), given, step.due / epsilon(shape.dtype), shape.dtype, wide=False)
            errors.append(error._replace(flush=error.flush or step.flush))
        else:
            errors.append(NONE)
    return tuple(errors)


def _algorithm(i: Instruction, given: Error) -> Error:
    """Transforms, factorisations and solvers: a fold of all elements, with the row's ulp at each step."""
    dtype = next((s.dtype for _, s in i.shape.leaves() if _is_inexact(s.dtype)), None)
    if dtype is None:
        return NONE
    return folded(largest_operand(i), given, OPSET[i.opcode].ulp or ALGORITHM_ULP, dtype)


def _loop(i: Instruction, operands: list[Errors]) -> Errors:
    """Every iteration after the third is assumed to add as much error as the third."""
    trips = trip_count(i)
    body, state = i.attributes["body"], operands[0]
    count = UNKNOWN_TRIPS if trips is None else trips
    before = state
    for _ in range(min(count, 3)):
        before, state = state, tuple(join(pair) for pair in zip(state, _apply(body, [state]), strict=True))
    more = max(0, count - 3)
    return tuple(_grown(a, b, more) for a, b in zip(before, state, strict=True))


def _grown(before: Error, after: Error, times: int) -> Error:
    return after._replace(
        relative=after.relative + times * (after.relative - before.relative),
        scaled=after.scaled + times * (after.scaled - before.scaled),
    )


def _call(i: Instruction, operands: list[Errors]) -> Errors:
    return _apply(i.called()[0], operands)


def _branches(i: Instruction, operands: list[Errors]) -> Errors:
    results = [_apply(branch, [operands[n]]) for n, branch in enumerate(branches(i), 1)]
    return tuple(join(leaf) for leaf in zip(*results, strict=True))


def _started(i: Instruction, operands: list[Errors]) -> Errors:
    """An asynchronous start: the leaves of its result are some of the leaves of the state that it returns."""
    state = join([*(e for o in operands for e in o), *(_apply(i.called()[0], operands) if i.called() else ())])
    return tuple(state if _is_inexact(s.dtype) else NONE for _, s in i.shape.leaves())


def _called_outside(i: Instruction, operands: list[Errors]) -> Errors:
    error = _algorithm(i, join(e for o in operands for e in o))
    return tuple(error if _is_inexact(s.dtype) else NONE for _, s in i.shape.leaves())


def _element(i: Instruction, operands: list[Errors]) -> Errors:
    """Leaf errors of one element of a tuple."""
    shapes, index = i.operands[0].shape.elements, i.attributes["index"]
    start = sum(len(list(s.leaves())) for s in shapes[:index])
    return operands[0][start : start + len(list(i.shape.leaves()))]


def _joined(i: Instruction, operands: list[Errors]) -> Errors:
    return tuple(e for o in operands for e in o)


def _first(i: Instruction, operands: list[Errors]) -> Errors:
    return operands[0]


def _drawn(i: Instruction, given: Error) -> Error:
    """Random bits are exact; what makes a distribution of them is arithmetic and, for normal, a function."""
    dtype = next((s.dtype for _, s in i.shape.leaves() if _is_inexact(s.dtype)), None)
    if dtype is None:
        return NONE
    ulp = 2 if i.attributes.get("distribution") == "rng_uniform" else 20
    return Error((given.due + ulp * epsilon(dtype)), given.scaled + ulp * epsilon(dtype), flush=True)


_FAMILIES: dict[Family, Callable[[Instruction, Error], Error]] = {
    Family.UNARY: _elementwise,
    Family.BINARY: _elementwise,
    Family.TERNARY: _elementwise,
    Family.CONVERT: _converted,
    Family.LINALG: _algorithm,
    Family.RNG: _drawn,
}
"""Families not named here move values."""

RULES: dict[Op, Callable[[Instruction, list[Errors]], Errors]] = {
    Op.DOT: _product,
    Op.RAGGED_DOT: _product,
    Op.SCALED_DOT: _product,
    Op.CONVOLUTION: _product,
    Op.REDUCE: _fold,
    Op.REDUCE_WINDOW: _fold,
    Op.SCAN: _scan,
    Op.SCATTER: _fold,
    Op.SELECT_AND_SCATTER: _fold,
    Op.MAP: _call,
    Op.CALL: _call,
    Op.FUSION: _call,
    Op.WHILE: _loop,
    Op.CONDITIONAL: _branches,
    Op.CUSTOM_CALL: _called_outside,
    Op.ASYNC_START: _started,
    Op.ALL_REDUCE: _fold,
    Op.ALL_REDUCE_START: _fold,
    Op.REDUCE_SCATTER: _fold,
    Op.TUPLE: _joined,
    Op.GET_TUPLE_ELEMENT: _element,
    Op.OPT_BARRIER: _first,
    Op.ADD_DEPENDENCY: _first,
    Op.DOMAIN: _first,
}
