"""What of the terms of a sum decides which results its orders have: their magnitudes, signs, infinities and NaN.

Each of these is the same sum of other operands, so the oracle's own function of the instruction computes it: that of
the widened instruction for types narrower than f64, whose own sums would overflow or round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import cycle
from typing import Any

import ml_dtypes
import numpy as np

from ..evaluator.evaluator import evaluate
from ..hlo.dtypes import FROM_NUMPY, DType
from ..hlo.ir import Computation, Instruction, Module
from ..hlo.opcodes import Op
from ..hlo.widen import wide_array, widened
from ..passes.rewriting import callees_first
from .bounds import fold_region

PRODUCTS = (Op.DOT, Op.CONVOLUTION, Op.RAGGED_DOT)
FOLDS = (Op.REDUCE, Op.REDUCE_WINDOW, Op.SCATTER)


def sum_of(i: Instruction) -> list[tuple[int, DType]]:
    """Which result leaves are sums of floats, and their types."""
    leaves = [shape for _, shape in i.shape.leaves()]
    return [(n, s.dtype) for n, s in enumerate(leaves) if (s.dtype.is_float or s.dtype.is_complex) and _adds(i, n)]


def is_sum(i: Instruction) -> bool:
    return i.opcode in (*PRODUCTS, *FOLDS) and bool(sum_of(i))


def _adds(i: Instruction, leaf: int) -> bool:
    return i.opcode in PRODUCTS or (i.opcode in FOLDS and _is_sum_of(fold_region(i), leaf))


def _is_sum_of(region: Computation, leaf: int) -> bool:
    """Whether a result of a computation is its accumulator plus its element."""
    root, count = region.root, len(region.parameters) // 2
    value = root.operands[leaf] if root.opcode is Op.TUPLE else root
    numbers = sorted(o.parameter_number for o in value.operands if o.opcode is Op.PARAMETER)
    return value.opcode is Op.ADD and numbers == [leaf, leaf + count]


Change = Callable[[np.ndarray], np.ndarray]
Draw = Callable[[int, tuple[int, ...]], np.ndarray]
"""(number of choices, shape) → one for each element, from 0 on."""

CHOICES = 5
"""Of a sum that may overflow: those of `_others`, or as it is."""
FINITE = 3
"""The choice of all finite terms together."""


@dataclass(frozen=True)
class Sums:
    """Sums of some of the terms of each element of a result, in f64 or c128, part by part.

    positive, negative: of the magnitudes of the finite terms of one sign. endless: of the infinite terms and NaN, with
    small numbers for the others. finite: of all finite terms, without overflow.
    """

    positive: np.ndarray
    negative: np.ndarray
    endless: np.ndarray
    finite: np.ndarray

    def magnitude(self, dtype: DType) -> np.ndarray:
        """Of all finite terms; of complex ones no less than their modulus. Where that exceeds the largest number of the
        type, it is that number: no partial sum of an order whose sum is finite is larger.
        """
        parts = (self.positive.real, self.positive.imag, self.negative.real, self.negative.imag)
        largest = float(ml_dtypes.finfo(dtype.component.numpy).max)
        with np.errstate(over="ignore"):
            size = np.asarray(sum(np.abs(p) for p in parts))
        return np.where(size <= largest, size, largest)

    @staticmethod
    def of(i: Instruction, leaf: int, run: Callable[..., Any], operands: Sequence[Any]) -> Sums:
        """run: the oracle's function of the instruction. It serves f64 and c128; other types have room in these."""
        wide = _in_double(i)
        given = operands if wide is None else [_wide(x, o.shape.dtype) for x, o in zip(operands, i.operands)]

        def total(*changes: Change) -> np.ndarray:
            changed = [_changed(x, change) for x, change in zip(given, cycle(changes))]
            result = (wide or run)(*changed)
            found = result[leaf] if isinstance(result, tuple) else result
            return np.asarray(found).astype(np.complex128 if found.dtype.kind == "c" else np.float64)

        endless, shift = total(_endless), 0 if wide else _SHIFT[i.opcode in PRODUCTS]
        finite = total(lambda x: _scaled(x, -shift))
        for _ in operands[:2] if i.opcode in PRODUCTS else operands[:1]:
            finite = finite * 2.0**shift
        if i.opcode not in PRODUCTS:
            return Sums(total(_positive), total(_negative), endless, finite)
        if i.shape.dtype.is_complex:
            size = total(_size).real * (1 + 1j)
            return Sums(size, size, endless, finite)
        return Sums(
            total(_positive, _positive) + total(_negative, _negative),
            total(_positive, _negative) + total(_negative, _positive),
            endless,
            finite,
        )

    def within(self, finite: np.ndarray, error: np.ndarray, dtype: DType) -> Sums:
        """The same with other sums of all finite terms, which are off by up to `error`: where an order's sum may be
        finite, they go no further than the largest number, so that sums up to it are found.
        """
        if dtype.is_complex:
            whole = np.empty_like(finite)
            for part in ("real", "imag"):
                exact = replace(self, finite=getattr(self.finite, part))
                setattr(whole, part, exact.within(getattr(finite, part), error, dtype.component).finite)
            return replace(self, finite=whole)
        largest = float(ml_dtypes.finfo(dtype.numpy).max)
        near = np.abs(self.finite) - error <= largest
        return replace(self, finite=np.where(near, np.clip(finite, -largest, largest), finite))

    def chosen(self, value: np.ndarray, error: float, draw: Draw) -> np.ndarray:
        """The value, or what another order makes of it. error: relative to the magnitude. draw: makes the choices."""
        if value.dtype.kind == "c":
            out = np.empty_like(value)
            for part in ("real", "imag"):
                sums = (self.positive, self.negative, self.endless, self.finite)
                setattr(out, part, Sums(*(getattr(s, part) for s in sums)).chosen(getattr(value, part), error, draw))
            return out
        minus, choice = draw(2, value.shape) == 1, draw(CHOICES, value.shape)
        found = np.where((value == 0) & (minus != np.signbit(value)), -value, value)
        for number, (allowed, other) in enumerate(self._others(value.dtype, error)):
            with np.errstate(all="ignore"):
                other = np.broadcast_to(np.asarray(other), value.shape).astype(value.dtype)
            found = np.where(allowed & (choice == number), other, found)
        return np.asarray(found, value.dtype)

    def _others(self, dtype: np.dtype, error: float) -> list[tuple[np.ndarray, np.ndarray | float]]:
        """(Where, what) else an element may be whose partial sums overflow: ±inf, NaN, all finite terms together."""
        largest = float(ml_dtypes.finfo(dtype).max)
        up, down = (s >= largest * (1 - min(error, 0.5)) for s in (self.positive, self.negative))
        rises, falls, settled = self.endless == np.inf, self.endless == -np.inf, np.isfinite(self.endless)
        return [
            (rises | (settled & up), np.inf),
            (falls | (settled & down), -np.inf),
            ((rises & down) | (falls & up) | (settled & up & down), np.nan),
            (settled & (up | down), self.finite),
        ]


def _changed(x: Any, change: Change) -> Any:
    if isinstance(x, tuple) or x is None:
        return x
    dtype = FROM_NUMPY[x.dtype]
    if dtype.is_complex and change is not _size:
        out = np.empty_like(x)
        out.real, out.imag = change(x.real), change(x.imag)
        return out
    return change(x).astype(x.dtype) if dtype.is_float or dtype.is_complex else x


def _finite(x: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(x), x, np.zeros_like(x))


def _positive(x: np.ndarray) -> np.ndarray:
    return np.maximum(_finite(x), np.zeros_like(x))


def _negative(x: np.ndarray) -> np.ndarray:
    return _positive(-x)


def _size(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.abs(_finite(x.real)) + np.abs(_finite(x.imag)), x.dtype)


def _endless(x: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(x), np.sign(x), x)


def _scaled(x: np.ndarray, exponent: int) -> np.ndarray:
    return _finite(x) * np.asarray(2.0**exponent, x.dtype)


_SHIFT = (40, 520)
"""The exponents by which each operand of f64 is made smaller, so that no sum overflows: of elements, of products."""


@lru_cache(maxsize=64)
def _in_double(i: Instruction) -> Callable[..., Any] | None:
    """The instruction in double precision, on operands of which none is rounded; None if it has no narrower type."""
    parameters = tuple(
        Instruction(Op.PARAMETER, f"operand.{n}", o.shape, (), {"parameter_number": n})
        for n, o in enumerate(i.operands)
    )
    made = i.replace(operands=parameters)
    entry = Computation("sum", (*parameters, made), made)
    module = widened(Module("sum", callees_first(entry), entry))
    if module.entry.root.shape == i.shape:
        return None

    def run(*operands: Any) -> Any:
        results = evaluate(module, operands, flush_subnormals=False)
        return tuple(results) if i.shape.is_tuple else results[0]

    return run


def _wide(x: Any, dtype: DType) -> Any:
    return x if isinstance(x, tuple) or x is None else wide_array(x, dtype)
