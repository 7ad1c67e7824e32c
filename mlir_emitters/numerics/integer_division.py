"""Quotients and remainders of integers: of vectors, too, where no processor divides them. Nothing traps."""

from __future__ import annotations

from mlir import ir

from ...codegen.field.element import active
from ..core.builder import Builder, Value


def _divisor(b: Builder, x: Value, y: Value, signed: bool) -> tuple[Value, Value]:
    """(whether y is 0, a divisor that cannot trap).

    The divisor is 1 instead of 0, and for MIN / −1, whose quotient then is MIN.
    """
    is_zero = b.compare_integers("eq", y, b.like(0, y))
    unsafe = is_zero
    if signed:
        least = b.like(-(1 << (x.type.width - 1)), x)
        overflow = b.binary("andi", b.compare_integers("eq", x, least), b.compare_integers("eq", y, b.like(-1, y)))
        unsafe = b.binary("ori", is_zero, overflow)
    return is_zero, b.select(unsafe, b.like(1, y), y)


def _quotient(b: Builder, x: Value, y: Value, divisor: Value, signed: bool) -> Value:
    """x by what `_divisor` made of y, towards zero. Up to 32 bits it is one of floats, as processors have for vectors,
    with enough more bits that none is rounded up to an integer.
    """
    if b.by_element or active() is not None or _is_constant(y):
        return b.binary("divsi" if signed else "divui", x, divisor)
    if x.type.width > 32:
        return _long_division(b, x, divisor, signed)[0]
    wide = b.types.f32 if x.type.width <= 16 else b.types.f64
    to, back = ("arith.sitofp", "arith.fptosi") if signed else ("arith.uitofp", "arith.fptoui")
    return b.op(back, b.divf(*(b.op(to, v, type=wide) for v in (x, divisor))), type=x.type)


def _is_constant(x: Value) -> bool:
    """Whether LLVM makes a product of a division by x."""
    owner = x.owner
    return not isinstance(owner, ir.Block) and owner.name == "arith.constant"


def _rest(b: Builder, x: Value, y: Value, divisor: Value, signed: bool) -> Value:
    if b.by_element or active() is not None or _is_constant(y):
        return b.binary("remsi" if signed else "remui", x, divisor)
    if x.type.width > 32:
        return _long_division(b, x, divisor, signed)[1]
    return b.binary("subi", x, b.binary("muli", _quotient(b, x, y, divisor, signed), divisor))


MARGIN = 2.0**-50
"""More than the relative error of a quotient of floats that is a product with a reciprocal: five roundings."""


MINIMUM_LANES = 8
"""Lanes of vectors of 64-bit integers that are divided together, at least: fewer are divided sooner one by one."""


def _long_division(b: Builder, x: Value, divisor: Value, signed: bool) -> tuple[Value, Value]:
    """Quotient and remainder of 64-bit integers: of vectors where a processor has instructions for all of it, and long
    vectors; elsewhere, one element is divided.
    """
    if not b.processor.long_conversions or b.vector_bits < 64 * MINIMUM_LANES:
        names = ("divsi", "remsi") if signed else ("divui", "remui")
        return b.binary(names[0], x, divisor), b.binary(names[1], x, divisor)
    if not signed:
        return _digits(b, x, divisor)
    zero = b.like(0, x)
    negative = [b.compare_integers("slt", v, zero) for v in (x, divisor)]
    sizes = [b.select(n, b.binary("subi", zero, v), v) for n, v in zip(negative, (x, divisor), strict=True)]
    quotient, rest = _digits(b, *sizes)
    turned = b.binary("xori", *negative)
    return (
        b.select(turned, b.binary("subi", zero, quotient), quotient),
        b.select(negative[0], b.binary("subi", zero, rest), rest),
    )


def _digits(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """Quotient and rest of unsigned numbers, as in long division: two digits from above, none too large.

    The first leaves less than y + 2^15. The second then leaves y at most where y < 2^48, else less than 2y. So the
    last digit is 0 or 1.
    """
    f64 = b.types.f64
    reciprocal = b.op("arith.divf", b.f64(1.0), b.op("arith.uitofp", y, type=f64))
    below = b.op("arith.mulf", reciprocal, b.f64(1.0 - MARGIN))

    def digit(rest: Value) -> Value:
        share = b.op("arith.mulf", b.op("arith.uitofp", rest, type=f64), below)
        return b.op("arith.fptoui", share, type=x.type)

    first = digit(x)
    rest = b.binary("subi", x, b.binary("muli", first, y))
    second = digit(rest)
    rest = b.binary("subi", rest, b.binary("muli", second, y))
    last = b.compare_integers("uge", rest, y)
    quotient = b.binary("addi", b.binary("addi", first, second), b.extui(last, x.type))
    return quotient, b.select(last, b.binary("subi", rest, y), rest)


SHORT = {"constant", "index_cast", "index_castui", "extsi", "extui"}
STEPS = {"addi", "subi", "muli", "select", "andi", "ori", "xori", "shli", "shrsi", "shrui"}
STEPS |= {f"{kind}{sign}" for kind in ("div", "rem", "max", "min") for sign in ("si", "ui")}


def _is_read(x: Value) -> bool:
    """Whether a 64-bit x depends on numbers of the same width that are read. Of others LLVM knows the ends: it divides
    32 bits where these do, of which there are vectors.
    """
    found = [x]
    for value in found:
        name = "" if isinstance(value.owner, ir.Block) else value.owner.name.removeprefix("arith.")
        if name not in SHORT | STEPS:
            return True
        if name in STEPS:
            found += [v for v in value.owner.operands if v.type == x.type and v not in found]
    return False


def _wide_constant(b: Builder, x: Value, y: Value) -> int | None:
    """The value of a 64-bit constant by which LLVM divides vectors one element at a time, with a product of 128 bits.

    Of the others, powers of two, it makes shifts of vectors, unless they are negative.
    """
    if y.type.width != 64 or b.vector_bits < 256 or b.by_element or not _is_constant(y) or not _is_read(x):
        return None
    value = ir.IntegerAttr(y.owner.attributes["value"]).value
    return None if (abs(value) & (abs(value) - 1) == 0 and value > -2) or value in (-1, -(1 << 63)) else value


def _share(b: Builder, x: Value, divisor: int) -> Value:
    """x / divisor for an x of at most 2^63 and a positive divisor.

    For 2^(n-1) < divisor < 2^n, 2^(63+n) / divisor has 64 bits, and to round it up adds less than 2^(63+n) / divisor
    to a product with x: not enough for the next integer.
    """
    n = (divisor - 1).bit_length()
    if divisor == 1 << n:
        return b.binary("shrui", x, n)
    return b.binary("shrui", _high(b, x, ((1 << (63 + n)) - 1) // divisor + 1), n - 1)


def _high(b: Builder, x: Value, factor: int) -> Value:
    """The upper half of x · factor, an unsigned product of 64-bit numbers, from four products of their halves."""
    mask = (1 << 32) - 1
    bottom, top = factor & mask, factor >> 32
    x0, x1 = b.binary("andi", x, mask), b.binary("shrui", x, 32)
    middle = b.binary("addi", b.binary("muli", x0, top), b.binary("shrui", b.binary("muli", x0, bottom), 32))
    other = b.binary("addi", b.binary("muli", x1, bottom), b.binary("andi", middle, mask))
    carried = b.binary("addi", b.binary("shrui", middle, 32), b.binary("shrui", other, 32))
    return b.binary("addi", b.binary("muli", x1, top), carried)


def _signed_by(b: Builder, x: Value, divisor: int) -> Value:
    zero = b.like(0, x)
    negative = b.compare_integers("slt", x, zero)
    size = _share(b, b.select(negative, b.binary("subi", zero, x), x), abs(divisor))
    other = b.binary("subi", zero, size)
    return b.select(negative, *((size, other) if divisor < 0 else (other, size)))


def _unsigned_by(b: Builder, x: Value, divisor: int) -> Value:
    zeros = (divisor & -divisor).bit_length() - 1
    if zeros:
        return _share(b, b.binary("shrui", x, zeros), divisor >> zeros)
    n = divisor.bit_length()
    factor = (1 << (63 + n)) // divisor + 1
    if factor * divisor - (1 << (63 + n)) <= 1 << (n - 1):  # rounded up by so little that it does for 64 bits of x
        return b.binary("shrui", _high(b, x, factor), n - 1)
    part = _high(b, x, (1 << (64 + n)) // divisor + 1 - (1 << 64))  # of a factor of 65 bits the first is x itself
    return b.binary("shrui", b.binary("addi", part, b.binary("shrui", b.binary("subi", x, part), 1)), n - 1)


def divide_signed(b: Builder, x: Value, y: Value) -> Value:
    if (value := _wide_constant(b, x, y)) is not None:
        return _signed_by(b, x, value)
    is_zero, divisor = _divisor(b, x, y, True)
    return b.select(is_zero, b.like(-1, x), _quotient(b, x, y, divisor, True))


def divide_unsigned(b: Builder, x: Value, y: Value) -> Value:
    if (value := _wide_constant(b, x, y)) is not None:
        return _unsigned_by(b, x, value % (1 << 64))
    is_zero, divisor = _divisor(b, x, y, False)
    return b.select(is_zero, b.like(-1, x), _quotient(b, x, y, divisor, False))


def remainder_signed(b: Builder, x: Value, y: Value) -> Value:
    if _wide_constant(b, x, y) is not None:
        return b.binary("subi", x, b.binary("muli", divide_signed(b, x, y), y))
    is_zero, divisor = _divisor(b, x, y, True)
    return b.select(is_zero, x, _rest(b, x, y, divisor, True))


def remainder_unsigned(b: Builder, x: Value, y: Value) -> Value:
    if _wide_constant(b, x, y) is not None:
        return b.binary("subi", x, b.binary("muli", divide_unsigned(b, x, y), y))
    is_zero, divisor = _divisor(b, x, y, False)
    return b.select(is_zero, x, _rest(b, x, y, divisor, False))
