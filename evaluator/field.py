"""The meaning of opcodes where floats stand for elements of Z_p (docs/exact.md): a second table for the evaluator.

An element stays a float (elements.py). Movement, comparisons, extrema and conversions between floats are those of
RULES. What computes is here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from ..hlo.dtypes import DType
from ..hlo.errors import UnsupportedError
from ..hlo.ir import Computation, Instruction
from ..hlo.opcodes import Op
from .elements import U64, Array, Elements, signs, special
from .field_library import CALLS, library_rule
from .reference import convert, convolution, linalg, region, shape
from .reference.complex import make_complex
from .reference.context import Context, Value
from .reference.control import constant, while_
from .reference.lifting import lift
from .reference.shape import crop
from .rules import RULES, Form, Reference, Rules, rule, typed

LIMITS = {
    Op.ASINH: (np.inf, -np.inf),
    Op.ACOSH: (np.inf, np.nan),
    Op.CBRT: (np.inf, -np.inf),
    Op.CEIL: (np.inf, -np.inf),
    Op.COSH: (np.inf, np.inf),
    Op.ERF: (1, -1),
    Op.EXPONENTIAL: (np.inf, 0),
    Op.EXPONENTIAL_MINUS_ONE: (np.inf, -1),
    Op.FLOOR: (np.inf, -np.inf),
    Op.LOG: (np.inf, np.nan),
    Op.LOG_PLUS_ONE: (np.inf, np.nan),
    Op.ROUND_NEAREST_AFZ: (np.inf, -np.inf),
    Op.ROUND_NEAREST_EVEN: (np.inf, -np.inf),
    Op.RSQRT: (0, np.nan),
    Op.SINH: (np.inf, -np.inf),
    Op.SQRT: (np.inf, np.nan),
    Op.TANH: (1, -1),
}
"""Values of functions at +infinity and -infinity; NaN for others."""

NAMES = {Op.ROUND_NEAREST_AFZ: "round", Op.ROUND_NEAREST_EVEN: "roundeven"}
"""Names of functions that are not the opcode's."""

UNARY = (*LIMITS, Op.ACOS, Op.ASIN, Op.ATANH, Op.COSINE, Op.SINE, Op.TAN)
COMPLEX = (*UNARY, Op.ABS, Op.SIGN, Op.LOGISTIC, Op.DIVIDE, Op.POWER, Op.ATAN2)
UNKNOWN = frozenset(
    {
        *(Op.BATCH_NORM_GRAD, Op.BATCH_NORM_INFERENCE, Op.BATCH_NORM_TRAINING, Op.RAGGED_DOT, Op.SCALED_DOT, Op.RNG),
        Op.STOCHASTIC_CONVERT,
    }
)
"""Opcodes without a meaning here: passes expand them."""


# --- instructions ----------------------------------------------------------------------------------------------------


def field_rules(e: Elements) -> Rules:
    """The table over a field."""
    made = {op: reference for op, reference in RULES.items() if op not in UNKNOWN}
    reals: dict[Op, Callable[..., Array]] = {op: _function(e, op) for op in UNARY}
    reals |= {
        Op.ADD: e.add,
        Op.SUBTRACT: e.subtract,
        Op.MULTIPLY: e.multiply,
        Op.DIVIDE: e.divide,
        Op.LOGISTIC: lambda x: _logistic(e, x),
        Op.SIGN: lambda x: _sign(e, x),
        Op.ATAN2: lambda x, y: e.drawn("atan2", x, y),
        Op.POWER: lambda x, y: e.drawn("power", x, y),
        Op.REMAINDER: lambda x, y: e.drawn("remainder", x, y),
    }
    complexes: dict[Op, Callable[..., Array]] = {op: _complex_function(e, op) for op in COMPLEX}
    complexes |= {
        Op.ADD: lambda x, y: make_complex(e.add(x.real, y.real), e.add(x.imag, y.imag)),
        Op.SUBTRACT: lambda x, y: make_complex(e.subtract(x.real, y.real), e.subtract(x.imag, y.imag)),
        Op.MULTIPLY: lambda x, y: _complex_product(e, x, y),
    }
    for op in {*reals, *complexes}:
        made[op] = typed(_by_kind(op, reals.get(op), complexes.get(op)))
    made |= {
        Op.CONSTANT: rule(lambda i, operands, context: _embedded(e, constant(i, operands, context))),
        Op.CONVERT: typed(lambda i, x: _convert(e, i, x)),
        Op.IOTA: rule(lambda i, operands, context: _iota(e, i, operands, context)),
        Op.REDUCE: rule(_reduce),
        Op.WHILE: rule(_while),
        Op.DOT: rule(lambda i, operands, context: _dot(e, i, operands, context)),
        Op.CONVOLUTION: rule(lambda i, operands, context: _convolution(e, i, operands, context)),
        **dict.fromkeys(CALLS, rule(library_rule(e))),
    }
    return made


MAXIMUM_TRIPS = 1000
"""Trips of a loop: what ends on floats, when they overflow, need not end over a field."""


class _Counted:
    """A context that ends a loop of too many trips."""

    def __init__(self, context: Context) -> None:
        self._context, self._calls = context, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def call(self, computation: Computation, arguments: Sequence[Value]) -> Value:
        self._calls += 1  # of the condition and the body
        if self._calls > 2 * MAXIMUM_TRIPS:
            raise UnsupportedError("evaluator", f"a loop of more than {MAXIMUM_TRIPS} trips over a field")
        return self._context.call(computation, arguments)


def _while(instruction: Instruction, operands: Sequence[Value], context: Context) -> Value:
    return while_(instruction, operands, cast(Context, _Counted(context)))


def _by_kind(
    op: Op, real: Callable[..., Array] | None, of_complex: Callable[..., Array] | None
) -> Callable[..., Array]:
    """A function by the type of the first operand; of other types than floats the usual one."""
    usual = RULES[op]

    def run(instruction: Instruction, *operands: Array) -> Array:
        dtype = instruction.operands[0].shape.dtype
        chosen = of_complex if dtype.is_complex else real if dtype.is_float else None
        if chosen is not None:
            return np.asarray(chosen(*operands)).astype(instruction.shape.dtype.numpy)
        return _usual(usual, instruction)(*operands)

    return run


def _usual(reference: Reference, instruction: Instruction) -> Callable[..., Array]:
    if reference.form is Form.NUMPY:
        return lift(reference.function, instruction, precise=reference.precise)
    return lambda *operands: reference.function(instruction, *operands)


def _function(e: Elements, op: Op) -> Callable[..., Array]:
    name, limits = NAMES.get(op, op.value), LIMITS.get(op, (np.nan, np.nan))
    return lambda x: e.drawn(name, x, limits=limits)


def _complex_function(e: Elements, op: Op) -> Callable[..., Array]:
    def run(*operands: Array) -> Array:
        parts = [part for x in operands for part in (x.real, x.imag)]
        real = e.drawn(f"{op.value}.re", *parts)
        return real if op is Op.ABS else make_complex(real, e.drawn(f"{op.value}.im", *parts))

    return run


def _complex_product(e: Elements, x: Array, y: Array) -> Array:
    (a, b), (c, d) = (x.real, x.imag), (y.real, y.imag)
    real = e.subtract(e.multiply(a, c), e.multiply(b, d))
    return make_complex(real, e.add(e.multiply(a, d), e.multiply(b, c)))


def _one(e: Elements, dtype: np.dtype) -> Array:
    return e.embed(np.ones((), np.float64)).astype(dtype)


def _logistic(e: Elements, x: Array) -> Array:
    one = _one(e, x.dtype)
    return e.divide(one, e.add(one, e.drawn("exponential", -x, limits=LIMITS[Op.EXPONENTIAL])))


def _sign(e: Elements, x: Array) -> Array:
    one = np.abs(_one(e, x.dtype))
    wide = x.astype(np.float64)
    return np.where((wide == 0) | np.isnan(wide), x, np.where(wide < 0, -one, one))


def _embedded(e: Elements, value: Value) -> Value:
    if isinstance(value, tuple):
        return tuple(_embedded(e, v) for v in value)
    if value is None or value.dtype.kind in "iub" or "int" in value.dtype.name:
        return value
    if value.dtype.kind == "c":
        return make_complex(e.embed(value.real), e.embed(value.imag))
    return e.embed(value)


def _convert(e: Elements, instruction: Instruction, x: Array) -> Array:
    source, target = instruction.operands[0].shape.dtype, instruction.shape.dtype
    if target.is_integer and (source.is_float or source.is_complex):
        return _narrowed(e.balanced(x.real if source.is_complex else x), target.bits, target.is_signed).astype(
            target.numpy
        )
    if (target.is_float or target.is_complex) and not (source.is_float or source.is_complex):
        part = target.component.numpy
        n = x.astype(np.int8 if source.is_signed else np.uint8) if source.bits <= 8 else x
        real = e.write(e.integers(n), part)
        return make_complex(real, np.zeros_like(real)) if target.is_complex else real
    return convert.convert_to(x, source, target)


def _narrowed(n: Array, bits: int, signed: bool) -> Array:
    """The low bits of 64-bit integers as a signed or an unsigned number."""
    spare = np.int64(64 - bits)
    return n << spare >> spare if signed else (n.astype(U64) << U64(spare)) >> U64(spare)


def _iota(e: Elements, instruction: Instruction, operands: Sequence[Array], context: Context) -> Array:
    dtype = instruction.shape.dtype
    if not (dtype.is_float or dtype.is_complex) or not instruction.shape.rank:
        return shape.iota(instruction, operands, context)
    dim = instruction.attributes.get("iota_dimension", 0)
    line = e.write(e.integers(np.arange(instruction.shape.dims[dim])), dtype.component.numpy).astype(dtype.numpy)
    return np.broadcast_to(
        line.reshape([-1 if d == dim else 1 for d in range(instruction.shape.rank)]), instruction.shape.dims
    )


def _reduce(instruction: Instruction, operands: Sequence[Array], context: Context) -> Value:
    """A reduction by one operation in a tree; others in order."""
    called = instruction.attributes["to_apply"]
    if len(operands) != 2 or not _is_one_operation(called):
        return region.reduce(instruction, operands, context)
    (x,), init, dims = crop(operands[:1]), operands[1], instruction.dimensions
    kept = [d for d in range(x.ndim) if d not in dims]
    rows = x.transpose(*dims, *kept).reshape(math.prod(x.shape[d] for d in dims), *(x.shape[d] for d in kept))
    while len(rows) > 1:
        half = len(rows) // 2
        joined = context.vectorise(called, [rows[:half], rows[half : 2 * half]])
        rows = np.concatenate([np.broadcast_to(joined, rows[:half].shape), rows[2 * half :]])
    if not len(rows):
        return np.broadcast_to(init, rows.shape[1:])
    return np.broadcast_to(context.vectorise(called, [np.broadcast_to(init, rows.shape[1:]), rows[0]]), rows.shape[1:])


ASSOCIATIVE = frozenset({Op.ADD, Op.MULTIPLY, Op.MAXIMUM, Op.MINIMUM, Op.AND, Op.OR, Op.XOR})


def _is_one_operation(computation: Computation) -> bool:
    root = computation.root
    parameters = {o.parameter_number for o in root.operands if o.opcode is Op.PARAMETER}
    return root.opcode in ASSOCIATIVE and len(computation.instructions) == 3 and parameters == {0, 1}


Product = Callable[[Array, Array, Callable[[Array, Array], Array]], Array]


def _dot(e: Elements, instruction: Instruction, operands: Sequence[Array], context: Context) -> Array:
    a = instruction.attributes
    xb, yb, xs, ys = (
        tuple(a.get(f"{side}_{kind}_dims", ())) for kind in ("batch", "contracting") for side in ("lhs", "rhs")
    )
    if _computes_integers(instruction):
        return linalg.dot(instruction, operands, context)
    return _product(e, instruction, operands[:2], lambda x, y, matmul: linalg.general_dot(x, y, xb, yb, xs, ys, matmul))


def _convolution(e: Elements, instruction: Instruction, operands: Sequence[Array], context: Context) -> Array:
    if _computes_integers(instruction):
        return convolution.convolution(instruction, operands, context)
    return _product(e, instruction, operands, lambda x, y, matmul: convolution.convolve(instruction, x, y, matmul))


def _computes_integers(instruction: Instruction) -> bool:
    dtypes = [s.dtype for s in (instruction.shape, *(o.shape for o in instruction.operands[:2]))]
    return not any(d.is_float or d.is_complex for d in dtypes)


def _product(e: Elements, instruction: Instruction, operands: Sequence[Array], product: Product) -> Array:
    """A dot or a convolution of floats. product: of two arrays, by a product of matrices."""
    target = instruction.shape.dtype
    if not any(o.shape.dtype.is_complex for o in instruction.operands[:2]):
        return _converted(e, _real_product(e, operands[0], operands[1], product), target)
    (a, b), (c, d) = ((x.real, x.imag) for x in operands)

    def part(x: Array, y: Array) -> Array:
        return _real_product(e, x, y, product)

    return make_complex(e.subtract(part(a, c), part(b, d)), e.add(part(a, d), part(b, c))).astype(target.numpy)


def _converted(e: Elements, x: Array, target: DType) -> Array:
    if target.is_integer:
        return _narrowed(e.balanced(x), target.bits, target.is_signed).astype(target.numpy)
    return x.astype(target.numpy)


def _real_product(e: Elements, x: Array, y: Array, product: Product) -> Array:
    """As f64. Where an operand is no element, signs decide as in `Elements`."""
    kinds = [v.dtype.kind in "iub" or "int" in v.dtype.name for v in (x, y)]
    x, y = (
        e.write(e.integers(_plain(v)), np.dtype(np.float64)) if k else v.astype(np.float64)
        for v, k in zip((x, y), kinds, strict=True)
    )
    made = e.write(product(e.read(x), e.read(y), e.matmul) % U64(e.prime), np.dtype(np.float64))
    if not (special(x).any() or special(y).any()):
        return made
    with np.errstate(all="ignore"):
        found = product(signs(x), signs(y), np.matmul)
    return np.where(np.isfinite(found), made, found)


def _plain(n: Array) -> Array:
    return n if n.dtype.kind in "iu" else n.astype(np.int16)
