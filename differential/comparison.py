"""When do two arrays agree? Two rules, vectorised: `compare` of the conformance corpus, and `compare_within` a bound.

The corpus: an element fails only if its absolute error exceeds atol and its relative error exceeds rtol. NaN equals
NaN, infinities match in sign, integers and pred are exact, complex compares by part, and a subnormal agrees with zero.

Within a bound that bounds.py derives from the module: ulp of the element, and ulp of the array's largest magnitude.
With none of both, the bits are the same: signs of zeros count, any NaN is any other, and a subnormal agrees with a zero
of its sign only where the bound says that arithmetic may have flushed it. Complex numbers with a bound compare in the
plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np

from ..hlo.dtypes import DType
from .bounds import POWER_ULP, Bound, Tolerance, epsilon

ONE_OP_ULP = {DType.F16: 5, DType.BF16: 2}
"""The corpus' bounds of one-op cases in ulp where the type has its own; otherwise CASE_ULP or USUAL_ULP."""
CASE_ULP, USUAL_ULP = {"cbrt": 70, "tan": 16}, 20

MODULE_BOUND = {DType.F32: 1e-4, DType.C64: 1e-4, DType.F64: 1e-9, DType.C128: 1e-9, DType.F16: 1e-2, DType.BF16: 4e-2}
"""atol and rtol of whole modules; every narrower float has NARROW_BOUND."""
NARROW_BOUND = 1e-1


@dataclass(frozen=True, slots=True)
class Difference:
    """The largest errors between two arrays, and whether they agree. Errors of integers are absolute and relative too.

    max_ulp counts representable values between the two; elements that match as NaN or infinity count 0, elements of
    which only one is NaN or infinite count as infinite errors. first_bad_index: the first element that fails, or None.
    """

    max_abs: float
    max_rel: float
    max_ulp: float
    agrees: bool
    failures: int = 0
    first_bad_index: tuple[int, ...] | None = None
    message: str = ""


def compare(
    actual: np.ndarray,
    expected: np.ndarray,
    dtype: DType,
    *,
    atol: float | None = None,
    rtol: float | None = None,
    ulp: float = 0.0,
    one_op: str | None = None,
) -> Difference:
    """Compare by the corpus rule. one_op: the opcode's name in HLO text, for one-op cases (other bounds apply then).

    ulp: distance in representable values that is allowed whatever atol and rtol say.
    """
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return Difference(
            np.inf,
            np.inf,
            np.inf,
            False,
            expected.size,
            None,
            f"{actual.dtype}{list(actual.shape)} where {expected.dtype}{list(expected.shape)} belongs",
        )
    if dtype.is_complex:
        return _merge(
            compare(actual.real, expected.real, dtype.component, atol=atol, rtol=rtol, ulp=ulp, one_op=one_op),
            compare(actual.imag, expected.imag, dtype.component, atol=atol, rtol=rtol, ulp=ulp, one_op=one_op),
        )
    if not dtype.is_float:
        return _compare_exact(actual, expected)
    return _compare_floats(actual, expected, dtype, *bounds(dtype, atol, rtol, one_op), ulp)


def compare_within(actual: np.ndarray, expected: np.ndarray, dtype: DType, bound: Bound | Tolerance) -> Difference:
    """Compare by a bound of the module's own, or by one that a user gave."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    if isinstance(bound, Tolerance):
        usual = compare(actual, expected, dtype, atol=bound.atol, rtol=bound.rtol, ulp=bound.ulp)
        return usual if usual.message else replace(usual, message=f"allowed: {bound}")
    if actual.shape != expected.shape or actual.dtype != expected.dtype or not (dtype.is_float or dtype.is_complex):
        return compare(actual, expected, dtype)
    if actual.tobytes() == expected.tobytes():  # most results: this is what a fuzzer does all day
        return Difference(0.0, 0.0, 0.0, True, message=f"allowed: {bound}")
    usual = compare(actual, expected, dtype, atol=0.0, rtol=0.0)
    bad = _beyond(actual, expected, dtype, bound) if actual.size else np.zeros(actual.shape, bool)
    return replace(
        usual,
        agrees=not bad.any(),
        failures=int(bad.sum()),
        first_bad_index=_first(bad) if bad.any() else None,
        message=f"allowed: {bound}",
    )


def disagreeing(actual: np.ndarray, expected: np.ndarray, dtype: DType, bound: Bound | Tolerance) -> np.ndarray:
    """Which elements of two arrays of one shape and type `compare_within` finds too far apart."""
    if not (dtype.is_float or dtype.is_complex):
        return np.asarray(actual != expected)
    if isinstance(bound, Bound):
        return _beyond(actual, expected, dtype, bound)
    if dtype.is_complex:
        parts = ((actual.real, expected.real), (actual.imag, expected.imag))
        return np.logical_or(*(disagreeing(a, e, dtype.component, bound) for a, e in parts))
    return _too_far(errors_of(actual, expected, dtype), bound.atol, bound.rtol, bound.ulp)


def _beyond(actual: np.ndarray, expected: np.ndarray, dtype: DType, bound: Bound) -> np.ndarray:
    """Which elements lie outside a bound."""
    if dtype.is_complex:
        parts = [(actual.real, expected.real), (actual.imag, expected.imag)]
        bad = np.logical_or(*(_beyond(a, e, dtype.component, bound) for a, e in parts))
        return bad & ~_near_in_plane(parts, dtype, bound) if bound.ulp or bound.scaled else bad
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    distance = ulp_distance(actual, expected)
    finite = np.isfinite(a) & np.isfinite(e)
    with np.errstate(all="ignore"):
        near = (distance <= bound.ulp) & ~(np.isnan(a) | np.isnan(e))
        if bound.scaled or bound.absolute:
            near |= finite & (np.abs(a - e) <= _allowed(e, finite, dtype, bound))
        else:
            near &= (a != 0) | (e != 0) | (np.signbit(a) == np.signbit(e))
        if bound.flush:
            near |= _flushed(a, e, dtype, bound)
        near |= _out_of_range(a, e, dtype, bound)
    return ~near & ~(np.isnan(a) & np.isnan(e))


def _allowed(e: np.ndarray, finite: np.ndarray, dtype: DType, bound: Bound) -> np.ndarray:
    largest = np.abs(e).max(initial=0.0, where=finite)
    unit = epsilon(dtype)  # first, so that nothing overflows
    return unit * bound.ulp * np.abs(e) + unit * bound.scaled * largest + bound.absolute


def _flushed(a: np.ndarray, e: np.ndarray, dtype: DType, bound: Bound) -> np.ndarray:
    """One is zero, the other is subnormal or within the bound of it; their signs agree."""
    tiny = float(ml_dtypes.finfo(dtype.numpy).smallest_normal) * (1 + bound.ulp * epsilon(dtype))
    least, most = np.minimum(np.abs(a), np.abs(e)), np.maximum(np.abs(a), np.abs(e))
    below = (most <= tiny) if bound.ulp else (most < tiny)
    return (least == 0) & below & (np.signbit(a) == np.signbit(e))


def _out_of_range(a: np.ndarray, e: np.ndarray, dtype: DType, bound: Bound) -> np.ndarray:
    """One lies just inside the range of a narrower format, the other was rounded to infinity (or NaN) or to zero."""
    least, most = np.minimum(np.abs(a), np.abs(e)), np.maximum(np.abs(a), np.abs(e))
    same_sign = np.signbit(a) == np.signbit(e)
    over = np.isfinite(least) & np.isinf(most) & (least >= bound.overflow) & same_sign
    if not np.isinf(np.float32(np.inf).astype(dtype.numpy)):
        for x, y in ((a, e), (e, a)):
            over |= np.isnan(x) & np.isfinite(y) & (np.abs(y) >= bound.overflow)
    return over | (least == 0) & (most <= bound.underflow) & same_sign


def _near_in_plane(parts: list[tuple[np.ndarray, np.ndarray]], dtype: DType, bound: Bound) -> np.ndarray:
    (ar, er), (ai, ei) = [(a.astype(np.float64), e.astype(np.float64)) for a, e in parts]
    finite = np.isfinite(ar) & np.isfinite(er) & np.isfinite(ai) & np.isfinite(ei)
    with np.errstate(all="ignore"):
        size = np.hypot(er, ei)
        near = finite & (np.hypot(ar - er, ai - ei) <= _allowed(size, finite, dtype, bound))
    if bound.ulp >= POWER_ULP:
        # A power that overflows may have been turned by any angle before, and one of an infinite number by none that
        # is known: x² may be x·x, which is infinite where exp(2·log x) is NaN.
        endless = [np.isinf(r) | np.isinf(i) for r, i in ((ar, ai), (er, ei))]
        nothing = [np.isnan(r) & np.isnan(i) for r, i in ((ar, ai), (er, ei))]
        near |= (endless[0] | nothing[0]) & (endless[1] | nothing[1]) & (endless[0] | endless[1])
    return np.asarray(near)


def nearest_of(value: np.ndarray, expected: Sequence[np.ndarray]) -> np.ndarray:
    """Of several expected arrays, element by element the one that is nearest to a value; each part of a complex number
    for itself, NaN nearest to NaN.
    """
    if value.dtype.kind == "c":
        out = np.empty_like(expected[0])
        out.real = nearest_of(value.real, [e.real for e in expected])
        out.imag = nearest_of(value.imag, [e.imag for e in expected])
        return out
    with np.errstate(all="ignore"):
        wide = [e.astype(np.float64) for e in expected]
        apart = np.stack([np.abs(value.astype(np.float64) - e) for e in wide])
    same = np.stack([(value == e) | (value != value) & (e != e) for e in expected])
    apart = np.where(same, -1.0, np.where(np.isnan(apart), np.inf, apart))
    nearest, out = apart.argmin(0), expected[0]
    for number, other in enumerate(expected):
        out = np.where(nearest == number, other, out)
    return out


def bounds(
    dtype: DType, atol: float | None = None, rtol: float | None = None, one_op: str | None = None
) -> tuple[float, float]:
    """(atol, rtol): as given, where one missing counts as 0; else those of a one-op case or of a whole module."""
    if atol is not None or rtol is not None:
        return atol or 0.0, rtol or 0.0
    if one_op is not None:
        return 0.0, one_op_ulp(dtype, one_op) * epsilon(dtype)
    bound = MODULE_BOUND.get(dtype, NARROW_BOUND)
    return bound, bound


def one_op_ulp(dtype: DType, one_op: str) -> int:
    """The corpus' bound of a one-op case, in ulp: the opcode's own where it has one, else the type's."""
    return CASE_ULP.get(one_op, ONE_OP_ULP.get(dtype, USUAL_ULP))


def ulp_distance(actual: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Steps between neighbouring finite values from one array to the other, as f64; +0 and -0 are 0 apart."""
    (sign_a, a), (sign_e, e) = _sign_and_ordinal(actual), _sign_and_ordinal(expected)
    # exact where the signs agree; across zero the sum may exceed 64 bits
    return np.where(sign_a == sign_e, np.abs(a - e).astype(np.float64), a.astype(np.float64) + e.astype(np.float64))


def _sign_and_ordinal(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sign bit, and how many values lie between zero and |x|."""
    bits = np.ascontiguousarray(x).reshape(x.shape).view(np.dtype(f"u{x.dtype.itemsize}")).astype(np.uint64)
    width = np.uint64(4 if x.dtype == DType.F4E2M1FN.numpy else x.dtype.itemsize * 8)
    if x.dtype == DType.F8E8M0FNU.numpy:  # has no sign bit
        return np.zeros(x.shape, np.uint64), bits.astype(np.int64)
    sign = bits >> (width - np.uint64(1)) & np.uint64(1)
    return sign, (bits & ((np.uint64(1) << (width - np.uint64(1))) - np.uint64(1))).astype(np.int64)


def _compare_exact(actual: np.ndarray, expected: np.ndarray) -> Difference:
    a, e = actual.astype(object if actual.dtype.itemsize == 8 else np.int64), expected
    wrong = actual != expected
    if not wrong.any():
        return Difference(0.0, 0.0, 0.0, True)
    a, e = a[wrong], e[wrong].astype(a.dtype)
    distance = np.abs(a - e).astype(np.float64)
    size = np.abs(e).astype(np.float64)
    relative = np.divide(distance, size, out=np.full(distance.shape, np.inf), where=size > 0)
    return Difference(
        float(distance.max()), float(relative.max()), float(distance.max()), False, int(wrong.sum()), _first(wrong)
    )


@dataclass(frozen=True)
class Errors:
    """Errors of floats, element by element. same: equal, both NaN, or a subnormal against zero; their errors are 0.

    special: one of the two is NaN or infinite; if they are not the same, their errors are infinite.
    """

    absolute: np.ndarray
    relative: np.ndarray
    ulps: np.ndarray
    same: np.ndarray
    special: np.ndarray


def errors_of(actual: np.ndarray, expected: np.ndarray, dtype: DType) -> Errors:
    """Errors of two arrays of one float type; relative ones refer to the expected value."""
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    equal = (a == e) | (np.isnan(a) & np.isnan(e))
    special = ~(np.isfinite(a) & np.isfinite(e))
    tiny = float(ml_dtypes.finfo(dtype.numpy).smallest_normal)
    same = equal | ((a == 0) & (np.abs(e) < tiny)) | ((e == 0) & (np.abs(a) < tiny))
    with np.errstate(all="ignore"):
        absolute = np.where(equal, 0.0, np.where(special, np.inf, np.abs(a - e)))
        relative = np.where(same, 0.0, np.where(special, np.inf, absolute / np.abs(e)))
        ulps = np.where(same, 0.0, np.where(special, np.inf, ulp_distance(actual, expected)))
    return Errors(absolute, relative, ulps, same, special)


def _too_far(errors: Errors, atol: float, rtol: float, ulp: float) -> np.ndarray:
    far = (errors.absolute > atol) & (errors.relative > rtol) & (errors.ulps > ulp)
    return np.asarray(~errors.same & (far | errors.special))


def _compare_floats(
    actual: np.ndarray, expected: np.ndarray, dtype: DType, atol: float, rtol: float, ulp: float
) -> Difference:
    if actual.size == 0:
        return Difference(0.0, 0.0, 0.0, True)
    errors = errors_of(actual, expected, dtype)
    bad = _too_far(errors, atol, rtol, ulp)
    return Difference(
        float(errors.absolute.max()),
        float(errors.relative.max()),
        float(errors.ulps.max()),
        not bad.any(),
        int(bad.sum()),
        _first(bad) if bad.any() else None,
    )


def _first(bad: np.ndarray) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(bad.reshape(-1))), bad.shape))


def _merge(real: Difference, imag: Difference) -> Difference:
    indices = [d.first_bad_index for d in (real, imag) if d.first_bad_index is not None]
    return Difference(
        max(real.max_abs, imag.max_abs),
        max(real.max_rel, imag.max_rel),
        max(real.max_ulp, imag.max_ulp),
        real.agrees and imag.agrees,
        max(real.failures, imag.failures),
        min(indices, default=None),
        real.message or imag.message,
    )
