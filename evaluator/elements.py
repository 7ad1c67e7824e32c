"""Elements of Z_p as floats, and their arithmetic: it shares nothing with the arithmetic that kernels are linked with.

The balanced residues of twist · v are counted through the numbers of one format, from its smallest normal number
upwards, and 0 is +0.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np

from ..hlo.records import dataclass

Array = np.ndarray
U64 = np.uint64


@dataclass(frozen=True, slots=True)
class Elements:
    """Z_p as floats. lowest, mantissa: the exponent of the smallest number that stands for an element, and the bits of
    its mantissa. seed: of the functions whose values are drawn.
    """

    prime: int
    twist: int
    seed: int
    lowest: int
    mantissa: int

    # Elements and floats

    def read(self, x: Array) -> Array:
        """The elements of finite floats, as integers below p; what is smaller than each of them is 0."""
        p = U64(self.prime)
        with np.errstate(invalid="ignore"):
            size, exponent = np.frexp(np.abs(x.astype(np.float64)))
            count = (exponent - 1 - self.lowest).astype(np.int64) << self.mantissa
            count += ((2 * size - 1) * 2.0**self.mantissa).astype(np.int64) + 1
            usual = np.isfinite(size) & (size != 0) & (exponent > self.lowest)
        m = np.where(usual, count, 0).astype(U64) % p
        m = np.where(np.signbit(x), p - m, m) % p
        return m * U64(pow(self.twist, -1, self.prime)) % p

    def write(self, v: Array, dtype: np.dtype) -> Array:
        """The floats of a type that stand for elements."""
        m = (v * U64(self.twist) % U64(self.prime)).astype(np.int64)
        m = np.where(m > (self.prime - 1) // 2, m - self.prime, m)
        above = np.abs(m) - 1
        fraction = 1 + (above & ((1 << self.mantissa) - 1)) * 0.5**self.mantissa
        x = np.where(m == 0, 0.0, np.copysign(np.ldexp(fraction, (above >> self.mantissa) + self.lowest), m))
        return x.astype(dtype)

    def embed(self, x: Array) -> Array:
        """The floats that stand for the numbers of a constant. Infinities, NaN and zeros stand for themselves."""
        wide = x.astype(np.float64)
        usual = np.isfinite(wide) & (wide != 0)
        size, exponent = np.frexp(np.where(usual, wide, 1.0))
        top, exponents = (size * 2.0**53).astype(np.int64), exponent - 53
        different, places = np.unique(exponents, return_inverse=True)
        powers = np.array([pow(2, int(e), self.prime) for e in different], U64)[places].reshape(x.shape)
        v = self.integers(top) * powers % U64(self.prime)
        return np.where(usual, self.write(v, x.dtype), x)

    def integers(self, n: Array) -> Array:
        """The elements of integers."""
        if n.dtype.kind == "u":
            return n.astype(U64) % U64(self.prime)
        return np.mod(n.astype(np.int64), self.prime).astype(U64)

    def balanced(self, x: Array) -> Array:
        """The integers nearest to 0 that elements stand for; 0 of infinities and NaN."""
        v = np.where(np.isfinite(x.astype(np.float64)), self.read(x), U64(0)).astype(np.int64)
        return np.where(v > (self.prime - 1) // 2, v - self.prime, v)

    # Arithmetic of floats

    def add(self, x: Array, y: Array) -> Array:
        return self._combined(np.add, lambda a, b: a + b, x, y)

    def subtract(self, x: Array, y: Array) -> Array:
        return self._combined(np.subtract, lambda a, b: a + (U64(self.prime) - b), x, y)

    def multiply(self, x: Array, y: Array) -> Array:
        return self._combined(np.multiply, lambda a, b: a * b, x, y)

    def divide(self, x: Array, y: Array) -> Array:
        return self._combined(np.divide, lambda a, b: a * self._inverse(b), x, y, y == 0)

    def _inverse(self, v: Array) -> Array:
        """By Fermat's theorem; 0 of 0."""
        p, result, square, left = U64(self.prime), np.ones_like(v), v, self.prime - 2
        while left:
            result = result * square % p if left & 1 else result
            square, left = square * square % p, left >> 1
        return result

    def _combined(
        self, floats: np.ufunc, elements: Callable[[Array, Array], Array], x: Array, y: Array, also: Array | None = None
    ) -> Array:
        """An operation on elements; where an operand is no element, of signs by the rules of floats."""
        a, b = self.read(x), self.read(y)
        result = self.write(elements(a, b) % U64(self.prime), np.result_type(x, y))
        unusual = special(x) | special(y) | (False if also is None else also)
        if not unusual.any():
            return result
        with np.errstate(all="ignore"):
            found = floats(signs(x), signs(y))
        return np.where(unusual, np.where(np.isfinite(found), 0, found), result).astype(result.dtype)

    def drawn(self, name: str, *operands: Array, limits: tuple[float, float] = (np.nan, np.nan)) -> Array:
        """The value of a function that is known by its name only."""
        golden, spread = U64(0x9E3779B97F4A7C15), U64(0xBF58476D1CE4E5B9)
        with np.errstate(over="ignore"):
            state: Array = np.asarray(U64(self.seed) * golden + U64(zlib.crc32(name.encode())))
            for x in operands:
                state = (self.read(x) + state + U64(1)) * golden
                state = (state ^ state >> U64(31)) * spread
                state = state ^ state >> U64(29)
        dtype = operands[0].dtype
        result = self.write(state % U64(self.prime), dtype)
        unusual = np.logical_or.reduce([np.broadcast_to(special(x), result.shape) for x in operands])
        if not unusual.any():
            return result
        ends = self.embed(np.array(limits, np.float64)).astype(dtype)
        first = np.broadcast_to(operands[0], result.shape)
        end = np.where(np.isnan(first), dtype.type(np.nan), np.where(first > 0, *ends))
        return np.where(unusual, end, result).astype(dtype)

    # Products of matrices

    def matmul(self, x: Array, y: Array) -> Array:
        """x @ y of elements: by halves of 16 bits, whose products f64 sums exactly."""
        p = U64(self.prime)
        if self.prime < 1 << 16:
            return np.matmul(x.astype(np.float64), y.astype(np.float64)).astype(U64) % p
        a, b = ((v >> U64(16)).astype(np.float64) for v in (x, y))
        c, d = ((v & U64(0xFFFF)).astype(np.float64) for v in (x, y))
        top, bottom = (np.matmul(*pair).astype(U64) % p for pair in ((a, b), (c, d)))
        middle = (np.matmul(a, d) + np.matmul(c, b)).astype(U64) % p
        return ((top * U64(1 << 16) % p + middle) * U64(1 << 16) + bottom) % p


def special(x: Array) -> Array:
    return ~np.isfinite(x)


def signs(x: Array) -> Array:
    """-1, 0 and 1 in place of elements."""
    wide = x.astype(np.float64)
    return np.where(np.isfinite(wide), np.sign(wide), wide)
