"""FFT → dots: factors up to 32 by their DFT matrix, longer ones split (Cooley-Tukey) with twiddle factors between.

Values are pairs of real arrays (real part, imaginary part).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..dtypes import DType
from ..ir import Instruction, Module
from ..opcodes import Op
from ..shapes import array
from .building import Builder
from .expansion import expand_ops

Pair = tuple[Instruction, Instruction]

RADIX = 32
LONGEST = 1 << 18
LONGEST_PRIME = 1 << 11


def expand_fft(module: Module) -> Module:
    """Replace every fft outside kernels whose lengths are in bounds."""
    return expand_ops(module, {Op.FFT: fft_dots})


def fft_dots(i: Instruction, b: Builder) -> Instruction | None:
    lengths, kind = tuple(i.attributes["fft_length"]), i.attributes["fft_type"]
    if not i.shape.size or not i.operands[0].shape.size:
        return b.constant(0, i.shape.dtype, i.shape.dims)
    if any(n > LONGEST or _factors(n)[-1] > LONGEST_PRIME for n in lengths):
        return None
    x = b.plain(i.operands[0])
    real = i.shape.dtype.component
    value = _parts(b, x, real)
    axes = [x.shape.rank - len(lengths) + k for k in range(len(lengths))]
    inverse = kind in ("IFFT", "IRFFT")
    steps = list(zip(axes, lengths, strict=True))
    if kind == "RFFT":
        value = _along(b, value, *steps.pop(), inverse=False)
        half = i.shape.dims[-1]
        value = _both(value, lambda v: b.slice_in(v, axes[-1], 0, half))
    last = steps.pop() if kind == "IRFFT" else None
    for axis, length in steps:
        value = _along(b, value, axis, length, inverse=inverse)
    if last is not None:
        return _along(b, _mirrored(b, value, *last), *last, inverse=True)[0]
    return b.op(Op.COMPLEX, array(i.shape.dtype, *value[0].shape.dims), *value)


def _both(value: Pair, change: Callable[[Instruction], Instruction]) -> Pair:
    """The same done to both parts."""
    return change(value[0]), change(value[1])


def _parts(b: Builder, x: Instruction, real: DType) -> Pair:
    if x.shape.dtype.is_complex:
        return b.unary(Op.REAL, x, real), b.unary(Op.IMAG, x, real)
    return x, b.constant(0, real, x.shape.dims)


def _mirrored(b: Builder, value: Pair, axis: int, length: int) -> Pair:
    """The whole spectrum of a real signal from its first half: X[n - k] is the conjugate of X[k]."""
    rest = length - value[0].shape.dims[axis]
    if rest <= 0:
        return _both(value, lambda v: b.slice_in(v, axis, 0, length))
    tails = []
    for v in value:
        tail = b.slice_in(v, axis, 1, rest + 1)
        tails.append(b.op(Op.REVERSE, tail.shape, tail, dimensions=(axis,)))
    tails[1] = b.unary(Op.NEGATE, tails[1])
    real, imaginary = (b.concatenate([v, t], axis) for v, t in zip(value, tails, strict=True))
    return real, imaginary


def _along(b: Builder, value: Pair, axis: int, length: int, *, inverse: bool) -> Pair:
    """The transform along one axis."""
    rank = value[0].shape.rank
    order = [d for d in range(rank) if d != axis] + [axis]
    back = [order.index(d) for d in range(rank)]
    moved = _both(value, lambda v: b.transpose(v, order))
    dims = moved[0].shape.dims
    rows = _both(moved, lambda v: b.reshape(v, (math.prod(dims[:-1]), length)))
    done = _transform(b, rows, 1 if inverse else -1)
    if inverse:
        done = _both(done, lambda v: b.binary(Op.MULTIPLY, v, 1 / length))
    return _both(done, lambda v: b.transpose(b.reshape(v, dims), back))


def _transform(b: Builder, value: Pair, sign: int) -> Pair:
    """Rows [m, n] transformed, not scaled. With j = j1·n2 + j2 and k = k1 + n1·k2."""
    rows, length = value[0].shape.dims
    first = _first_factor(length)
    if first == length:
        return _by_matrix(b, value, sign)
    rest = length // first
    split = _both(value, lambda v: b.transpose(b.reshape(v, (rows, first, rest)), (0, 2, 1)))
    inner = _both(split, lambda v: b.reshape(v, (rows * rest, first)))
    inner = _by_matrix(b, inner, sign)
    turned = _times(b, [b.reshape(v, (rows, rest, first)) for v in inner], _roots(length, rest, first, sign))
    outer = _both(turned, lambda v: b.reshape(b.transpose(v, (0, 2, 1)), (rows * first, rest)))
    outer = _transform(b, outer, sign)
    return _both(outer, lambda v: b.reshape(b.transpose(b.reshape(v, (rows, first, rest)), (0, 2, 1)), (rows, length)))


def _by_matrix(b: Builder, value: Pair, sign: int) -> Pair:
    length, dtype = value[0].shape.dims[1], value[0].shape.dtype
    if length == 1:
        return value
    roots = _roots(length, length, length, sign)
    cosine, sine = (b.constant(part, dtype) for part in (roots.real, roots.imag))

    def dot(x: Instruction, y: Instruction) -> Instruction:
        return b.op(Op.DOT, x.shape, x, y, lhs_contracting_dims=(1,), rhs_contracting_dims=(0,))

    real = b.binary(Op.SUBTRACT, dot(value[0], cosine), dot(value[1], sine))
    return real, b.binary(Op.ADD, dot(value[0], sine), dot(value[1], cosine))


def _times(b: Builder, value: Sequence[Instruction], factors: np.ndarray) -> Pair:
    dims, dtype = value[0].shape.dims, value[0].shape.dtype
    cosine, sine = (b.broadcast(b.constant(p, dtype), dims, (1, 2)) for p in (factors.real, factors.imag))
    real, imag = value
    return (
        b.binary(Op.SUBTRACT, b.binary(Op.MULTIPLY, real, cosine), b.binary(Op.MULTIPLY, imag, sine)),
        b.binary(Op.ADD, b.binary(Op.MULTIPLY, real, sine), b.binary(Op.MULTIPLY, imag, cosine)),
    )


def _roots(length: int, rows: int, columns: int, sign: int) -> np.ndarray:
    """exp(sign · 2πi · r · c / length), its angle reduced before it is rounded."""
    power = np.outer(np.arange(rows), np.arange(columns)) % length
    return np.exp(sign * 2j * np.pi * power / length)


def _factors(n: int) -> list[int]:
    """Prime factors, ascending."""
    found, p = [], 2
    while p * p <= n:
        while n % p == 0:
            found.append(p)
            n //= p
        p += 1
    return [*found, n] if n > 1 or not found else found


def _first_factor(n: int) -> int:
    """The largest divisor that one matrix may do; n itself if it is prime or small."""
    if n <= RADIX:
        return n
    small = [d for d in range(RADIX, 1, -1) if n % d == 0]
    return small[0] if small else _factors(n)[0]
