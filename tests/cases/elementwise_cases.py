"""One-op modules for every elementwise opcode × dtype, generated from the opset, and interesting elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from ...hlo.dtypes import DType
from ...hlo.opclasses import ELEMENTWISE
from ...hlo.opcodes import Op
from ...hlo.opset import OPSET

WHOLE = [DType(n) for n in ("pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64")]
COMPLEX = [DType.C64, DType.C128]
NARROW = [DType(n) for n in ("s2", "u2", "s4", "u4", "f8e5m2", "f8e4m3fn", "f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz")]
"""Types for conversions, comparisons and selects only."""

UNSIGNED = {8: DType.U8, 16: DType.U16, 32: DType.U32, 64: DType.U64}
DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")


@dataclass(frozen=True)
class Case:
    """results: one HLO expression per result leaf, on operands p0, p1, …"""

    op: Op
    dtype: DType
    operands: tuple[DType, ...]
    results: tuple[str, ...]

    @property
    def id(self) -> str:
        return f"{self.op.value}-{self.dtype.value}"

    def text(self, count: int) -> str:
        """A module over vectors of `count` elements."""
        lines = [f"  p{n} = {d.value}[{count}] parameter({n})" for n, d in enumerate(self.operands)]
        lines += [f"  r{n} = {expression.replace('[N]', f'[{count}]')}" for n, expression in enumerate(self.results)]
        names = ", ".join(f"r{n}" for n in range(len(self.results)))
        return "\n".join(["HloModule case", "ENTRY main {", *lines, f"  ROOT out = tuple({names})", "}", ""])


def cases() -> Iterator[Case]:
    """Every elementwise opcode with every dtype of its row that the stacks support."""
    for op, row in OPSET.items():
        if op not in ELEMENTWISE:
            continue
        make = SPECIAL.get(op, _plain)
        for dtype in [*WHOLE, *COMPLEX, *NARROW]:
            if dtype in row.dtypes and (dtype not in NARROW or op in TAKES_NARROW):
                yield from make(op, dtype)


TAKES_NARROW = {Op.CONVERT, Op.COMPARE, Op.SELECT}


def _plain(op: Op, dtype: DType) -> Iterator[Case]:
    count = OPSET[op].low
    names = ", ".join(f"p{n}" for n in range(count))
    yield Case(op, dtype, (dtype,) * count, (f"{op.value}({names})",))


def _compare(op: Op, dtype: DType) -> Iterator[Case]:
    results = [f"compare(p0, p1), direction={d}" for d in DIRECTIONS]
    if dtype.is_float:
        results += [f"compare(p0, p1), direction={d}, type=TOTALORDER" for d in DIRECTIONS]
    yield Case(op, dtype, (dtype, dtype), tuple(results))


def _select(op: Op, dtype: DType) -> Iterator[Case]:
    yield Case(op, dtype, (DType.PRED, dtype, dtype), ("select(p0, p1, p2)",))


def _convert(op: Op, dtype: DType) -> Iterator[Case]:
    targets = COMPLEX if dtype.is_complex else [*WHOLE, *NARROW] if dtype in NARROW else [*WHOLE, *NARROW, *COMPLEX]
    yield Case(op, dtype, (dtype,), tuple(f"{t.value}[N] convert(p0)" for t in targets))


def _bitcast_convert(op: Op, dtype: DType) -> Iterator[Case]:
    if dtype is DType.PRED or dtype.is_complex:
        return
    targets = [t for t in WHOLE if t.bits == dtype.bits and t is not DType.PRED]
    yield Case(op, dtype, (dtype,), tuple(f"{t.value}[N] bitcast-convert(p0)" for t in targets))


def _reduce_precision(op: Op, dtype: DType) -> Iterator[Case]:
    kinds = [(5, 10), (8, 7), (8, 23), (4, 3), (5, 2), (1, 0), (11, 52)]
    yield Case(
        op, dtype, (dtype,), tuple(f"reduce-precision(p0), exponent_bits={e}, mantissa_bits={m}" for e, m in kinds)
    )


def _stochastic_convert(op: Op, dtype: DType) -> Iterator[Case]:
    targets = ("s8", "s16", "s32")
    yield Case(op, dtype, (dtype, UNSIGNED[dtype.bits]), tuple(f"{t}[N] stochastic-convert(p0, p1)" for t in targets))


SPECIAL = {
    Op.COMPARE: _compare,
    Op.SELECT: _select,
    Op.CONVERT: _convert,
    Op.BITCAST_CONVERT: _bitcast_convert,
    Op.REDUCE_PRECISION: _reduce_precision,
    Op.STOCHASTIC_CONVERT: _stochastic_convert,
}


def special_values(dtype: DType) -> np.ndarray:
    """NaN, infinities, zeros, subnormals, extremes, and plain numbers of a dtype."""
    if dtype is DType.PRED:
        return np.array([False, True])
    if dtype.is_complex:
        parts = special_values(dtype.component)[:12]
        real, imag = np.meshgrid(parts, parts)
        out = np.empty(real.size, dtype.numpy)
        out.real, out.imag = real.reshape(-1), imag.reshape(-1)
        return out
    if dtype.is_float:
        return _special_floats(dtype)
    info = ml_dtypes.iinfo(dtype.numpy)
    wanted = [0, 1, -1, 2, 3, -3, 7, dtype.bits - 1, dtype.bits, dtype.bits + 1, 100, info.max, info.min, info.max - 1]
    return np.array([dtype.numpy.type(v) for v in wanted if info.min <= v <= info.max], dtype.numpy)


def _special_floats(dtype: DType) -> np.ndarray:
    info = ml_dtypes.finfo(dtype.numpy)
    tiny, small = float(info.smallest_normal), float(info.smallest_subnormal)
    plain = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -2.0, float(info.max), -float(info.max), tiny]
    more = [
        -tiny,
        small,
        -small,
        tiny - small,
        1.5,
        2.5,
        -0.5,
        3.0,
        np.pi,
        10.0,
        1 + float(info.eps),
        0.1,
        100.0,
        -7.25,
    ]
    with np.errstate(all="ignore"):
        return np.array(plain + more).astype(dtype.numpy)


def random_values(rng: np.random.Generator, dtype: DType, count: int) -> np.ndarray:
    """Half of the values have random bits, half are of moderate size."""
    if dtype is DType.PRED:
        return rng.integers(0, 2, count).astype(np.bool_)
    if dtype.is_complex:
        out = np.empty(count, dtype.numpy)
        out.real, out.imag = (random_values(rng, dtype.component, count) for _ in range(2))
        return out
    if dtype.is_integer:
        info = ml_dtypes.iinfo(dtype.numpy)
        wide = rng.integers(int(info.min), int(info.max), count, np.uint64 if int(info.min) == 0 else np.int64, True)
        near = rng.integers(max(int(info.min), -20), min(int(info.max), 70), count, np.int64, True)
        return np.where(rng.random(count) < 0.5, wide.astype(dtype.numpy), near.astype(dtype.numpy))
    bits = rng.integers(0, 1 << dtype.bits, count, np.uint64).astype(f"u{dtype.bytes}").view(dtype.numpy)
    return np.where(rng.random(count) < 0.5, bits, rng.normal(0, 4, count).astype(dtype.numpy)).astype(dtype.numpy)


def moderate_values(rng: np.random.Generator, dtype: DType, count: int, axes: bool) -> np.ndarray:
    """Complex numbers of moderate size, none near 0 or |z| = 1. axes: some are on the axes, where branch cuts are."""
    parts = rng.normal(0, 2, (2, count))
    axis = rng.random(count) if axes else np.full(count, 0.5)
    parts[0] = np.where(axis < 0.1, 0.0, parts[0])
    parts[1] = np.where(axis > 0.9, 0.0, parts[1])
    values = parts[0] + 1j * parts[1]
    near = (np.abs(np.abs(values) - 1) < 0.05) | (np.abs(values) < 0.05)
    return np.where(near, 2 * values + 0.3, values).astype(dtype.numpy)
