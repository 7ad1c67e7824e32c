"""Float arithmetic of one width (f32 or f64) as short methods. The mathematical functions are written with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..core.builder import Code
from ..core.registers import BOOL, DOUBLE, FLOAT, I32, I64, V, real_constant


class Real:
    """bits: 32 or 64. Every method emits code at the current position of `code`."""

    def __init__(self, code: Code, bits: int):
        self.code, self.bits = code, bits
        self.type, self.int_type = (FLOAT, I32) if bits == 32 else (DOUBLE, I64)
        self.mantissa = 23 if bits == 32 else 52
        self.bias = 127 if bits == 32 else 1023
        self.tiny = 2.0 ** (1 - self.bias)  # the smallest normal number
        self.suffix = f"f{bits}"

    # Constants

    def c(self, value: float) -> V:
        return real_constant(self.type, value)

    def i(self, value: int) -> V:
        """An integer constant as wide as the float. Bit patterns may be given as unsigned numbers."""
        return self.int_type(value - (1 << self.bits) if value >= 1 << (self.bits - 1) else value)

    # Arithmetic

    def add(self, a: V, b: V) -> V:
        return self.code.b.fadd(a, b, flags=self.code.flags)

    def sub(self, a: V, b: V) -> V:
        return self.code.b.fsub(a, b, flags=self.code.flags)

    def mul(self, a: V, b: V) -> V:
        return self.code.b.fmul(a, b, flags=self.code.flags)

    def div(self, a: V, b: V) -> V:
        return self.code.b.fdiv(a, b)

    def neg(self, a: V) -> V:
        return self.code.b.fneg(a)

    def mad(self, a: V, b: V, c: V) -> V:
        """a·b + c, fused if the target supports it and contraction is allowed."""
        return self.add(self.mul(a, b), c)

    def fused(self, a: V, b: V, c: V) -> V:
        """a·b + c with exactly this product fused if contraction is allowed, on every target."""
        return self.mad(a, b, c) if self.code.view.strict else self.fma(a, b, c)

    def fused_if_fast(self, a: V, b: V, c: V) -> V:
        """As `fused`, but two operations if the target has no instruction for it."""
        return self.mad(a, b, c) if self.code.view.strict else self.call("fmuladd", a, b, c)

    def fma(self, a: V, b: V, c: V) -> V:
        """a·b + c with one rounding, always. Where the target has no instruction for it, doubles call libm's fma, and
        floats are computed in double: the product is exact, the sum is rounded twice.
        """
        if self.code.view.fma or self.bits == 64:
            return self.call("fma", a, b, c)
        return self.in_double(lambda d, x, y, z: d.mad(x, y, z), a, b, c)

    def product(self, a: V, b: V) -> V:
        """a·b, rounded; it is never contracted into a sum that uses it."""
        return self.fma(a, b, self.c(0.0))

    def poly(self, x: V, coefficients: Sequence[float]) -> V:
        """Σ coefficients[k] · x^k by Horner's rule."""
        return self.horner(x, [self.c(c) for c in coefficients])

    def quads(self, x: V, coefficients: Sequence[float]) -> V:
        """As `poly`, four terms at once: for functions whose operations would wait for each other."""
        square = self.mul(x, x)
        pairs = [self.poly(x, coefficients[k : k + 2]) for k in range(0, len(coefficients), 2)]
        sums = [self.horner(square, pairs[k : k + 2]) for k in range(0, len(pairs), 2)]
        return self.horner(self.mul(square, square), sums)

    def horner(self, x: V, coefficients: Sequence[V]) -> V:
        """As `poly`, of coefficients that are no constants."""
        *rest, total = coefficients
        for c in reversed(rest):
            total = self.mad(total, x, c)
        return total

    def call(self, name: str, *arguments: V) -> V:
        """The intrinsic llvm.NAME of this width."""
        return self.code.intrinsic(f"llvm.{name}.{self.suffix}", self.type, arguments)

    def libm(self, name: str, *arguments: V) -> V:
        """A function of libm. name: that of the double version."""
        return self.code.intrinsic(name if self.bits == 64 else name + "f", self.type, arguments)

    def sqrt(self, a: V) -> V:
        return self.call("sqrt", a)

    def abs(self, a: V) -> V:
        return self.call("fabs", a)

    def copysign(self, magnitude: V, sign: V) -> V:
        return self.call("copysign", magnitude, sign)

    # Comparisons are false if an operand is NaN, except for `unordered_…`

    def compare(self, operator: str, a: V, b: V) -> V:
        return self.code.b.fcmp_ordered(operator, a, b)

    def lt(self, a: V, b: float) -> V:
        return self.compare("<", a, self.c(b))

    def gt(self, a: V, b: float) -> V:
        return self.compare(">", a, self.c(b))

    def eq(self, a: V, b: float) -> V:
        return self.compare("==", a, self.c(b))

    def not_ge(self, a: V, b: float) -> V:
        """a < b, or a is NaN."""
        return self.code.b.fcmp_unordered("<", a, self.c(b))

    def is_nan(self, a: V) -> V:
        return self.code.b.fcmp_unordered("uno", a, a)

    def is_infinite(self, a: V) -> V:
        return self.compare("==", self.abs(a), self.c(float("inf")))

    def select(self, condition: V, a: V, b: V) -> V:
        return self.code.b.select(condition, a, b)

    def both(self, a: V, b: V) -> V:
        return self.code.b.and_(a, b)

    def either(self, a: V, b: V) -> V:
        return self.code.b.or_(a, b)

    def negated(self, a: V) -> V:
        return self.code.b.xor(a, BOOL(1))

    def clip(self, a: V, low: float, high: float) -> V:
        """a limited to [low, high]; NaN is kept."""
        a = self.select(self.lt(a, low), self.c(low), a)
        return self.select(self.gt(a, high), self.c(high), a)

    # Bits

    def to_bits(self, a: V) -> V:
        return self.code.b.bitcast(a, self.int_type)

    def from_bits(self, a: V) -> V:
        return self.code.b.bitcast(a, self.type)

    def power_of_two(self, n: V) -> V:
        """2^n for an integer register n with -bias < n ≤ bias."""
        b = self.code.b
        return self.from_bits(b.shl(b.add(n, self.i(self.bias)), self.i(self.mantissa)))

    def scale(self, a: V, n: V) -> V:
        """a · 2^n for |n| < 2·bias, in two steps, so that neither factor overflows."""
        b = self.code.b
        half = b.ashr(n, self.i(1))
        return self.mul(self.mul(a, self.power_of_two(half)), self.power_of_two(b.sub(n, half)))

    def round_to_integer(self, a: V) -> tuple[V, V]:
        """The nearest integer, as a float and as an integer register, for |a| < 2^(mantissa - 2); else arbitrary."""
        magic = self.c(1.5 * 2.0**self.mantissa)
        shifted = self.add(a, magic)
        return self.sub(shifted, magic), self.code.b.sub(self.to_bits(shifted), self.to_bits(magic))

    # The other width

    def wider(self, a: V) -> V:
        return self.code.b.fpext(a, DOUBLE)

    def in_double(self, function: Callable[..., V], *arguments: V) -> V:
        """Evaluate a function of doubles on floats and round its result to a float."""
        double = Real(self.code, 64)
        return self.code.b.fptrunc(function(double, *(self.wider(a) for a in arguments)), self.type)
