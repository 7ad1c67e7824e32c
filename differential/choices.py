"""The choices of one run of the oracle where XLA's float rules leave one; permitted.py says which they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from ..evaluator.evaluator import flushing_subnormals
from ..hlo.dtypes import FROM_NUMPY, DType
from ..hlo.ir import Instruction
from ..hlo.opcodes import Op
from ..hlo.opset import OPSET
from ..hlo.opset_rows import ALGORITHM_ULP, Family
from .bounds import NONE, Error, fold_region, folded, join, op_ulp, own_error
from .fold_lengths import fold_length, largest_operand
from .sums import CHOICES, FINITE, Sums, is_sum, sum_of

RUNS = 24
"""The first `2 * CHOICES` make the same choice everywhere, the others draw for each element."""

ANGLE_ULP = 4
"""Ulp that the angle of a complex power may be off: of a logarithm, two products and their sum."""

Run = Callable[..., Any]


class Choices:
    """The choices of one run, by its number."""

    def __init__(self, errors: dict[Instruction, Error], number: int, rounding: bool):
        self.errors, self.number, self.rounding = errors, number, rounding
        self.random = np.random.default_rng(number)

    def adjust(self, i: Instruction, run: Run) -> Run:
        """The function of an instruction with the choices of this run."""
        if i.opcode is Op.COMPARE and i.operands[0].shape.dtype in _NARROW:
            return self._compared(i, run)
        folded = i.opcode in _FOLDED and i.operands[0].shape.dtype in _NARROW
        if self.number % (4 if folded else 2) == 1 and _may_keep(i):
            run = _keeping(run)
        elif self.number % 2 and folded:
            run = _flushing(run)
        if is_sum(i):
            return lambda *operands: self._summed(i, run, self._due(i, operands))
        given = join(self.errors.get(o, NONE) for o in i.operands)
        if own := own_error(i, given):
            is_turned = i.opcode is Op.POWER and i.shape.dtype.is_complex

            def inexact(*operands: Any) -> Any:
                value = self._signed(self._off(run(*self._due(i, operands)), own), operands)
                return self._turned(value, operands) if is_turned else value

            return inexact
        if i.opcode in _FOLDS:
            steps = max(0.0, self.errors.get(i, NONE).relative - given.due)
            if not steps:
                return lambda *operands: run(*self._due(i, operands))
            return lambda *operands: self._off(run(*self._due(i, operands)), steps)
        if OPSET[i.opcode].family is Family.LINALG:
            return lambda *operands: self._computed(i, run, self._due(i, operands))
        return run

    def _draw(self, shape: tuple[int, ...]) -> np.ndarray:
        if self.number in _SIGNS:
            return np.full(shape, _SIGNS[self.number])
        return self.random.uniform(-1, 1, shape)

    def _choice(self, among: int, shape: tuple[int, ...]) -> np.ndarray:
        if self.number < 2 * CHOICES:
            return np.full(shape, self.number % among)
        return self.random.integers(0, among, shape)

    def _due(self, i: Instruction, operands: Sequence[Any]) -> list[Any]:
        """Operands with the errors that were deferred to the next arithmetic."""
        due = [self.errors.get(o, NONE).deferred for o in i.operands]
        return [self._off(x, d) if d else x for x, d in zip(operands, due, strict=True)]

    def _off(self, value: Any, relative: float, size: np.ndarray | None = None) -> Any:
        """A value with an error relative to its own magnitude, or to `size`."""
        if isinstance(value, tuple):
            return tuple(self._off(v, relative) for v in value)
        if value is None or FROM_NUMPY[value.dtype].is_integer or value.dtype == bool or not self.rounding:
            return value
        wide = np.complex128 if value.dtype.kind == "c" else np.float64
        exact = value.astype(wide)
        with np.errstate(all="ignore"):
            most = np.abs(exact) if size is None else size
            error = relative * self._draw(value.shape) * most
            if wide is np.complex128:
                error = error + 1j * relative * self._draw(value.shape) * most
            changed = (exact + np.where(np.isfinite(error), error, 0)).astype(value.dtype)
        return np.where(np.isfinite(exact), changed, value)

    def _signed(self, value: Any, operands: Sequence[Any]) -> Any:
        """A complex result of an elementwise op: where a part of an operand is NaN, its own parts have either sign."""
        if value.dtype.kind != "c" or not any(np.isnan(x).any() for x in operands):
            return value
        free = np.logical_or.reduce([np.isnan(x) for x in operands if x.shape == value.shape])
        signs = [np.where(free & (self._choice(2, value.shape) == 1), -1.0, 1.0) for _ in range(2)]
        made = value.copy()
        made.real, made.imag = value.real * signs[0], value.imag * signs[1]
        return made

    def _turned(self, value: np.ndarray, operands: Sequence[np.ndarray]) -> np.ndarray:
        """A complex power in another direction. Runs are spread evenly over the circle where all are possible."""
        x, y = (np.asarray(o, np.complex128) for o in operands)
        with np.errstate(all="ignore"):
            angle = np.abs(y.real * np.angle(x)) + np.abs(y.imag * np.log(np.abs(x)))
            reach = ANGLE_ULP * np.finfo(value.dtype).eps * angle
            turn = np.where(reach < np.pi, reach * self._draw(value.shape), 2 * np.pi * self.number / RUNS)
            turned = (value.astype(np.complex128) * np.exp(1j * turn)).astype(value.dtype)
        return np.where(np.isfinite(turned) & np.isfinite(value), turned, value)

    def _computed(self, i: Instruction, run: Run, operands: list[Any]) -> Any:
        """A result of an algorithm: its operands are off, what cancels inside, and all relative to the largest."""
        dtype = next((s.dtype for _, s in i.shape.leaves() if s.dtype.is_float or s.dtype.is_complex), None)
        if dtype is None:
            return run(*operands)
        steps = folded(largest_operand(i), NONE, OPSET[i.opcode].ulp or ALGORITHM_ULP, dtype).relative
        operands = [self._off(x, steps) for x in operands]
        value = run(*operands)
        if i.opcode is Op.BATCH_NORM_TRAINING:
            value = self._normalised(i, operands, value[1:], steps)
        value = self._scaled(value, steps)
        return self._overflowed(i, operands[0], value) if i.opcode is Op.FFT else value

    def _overflowed(self, i: Instruction, operand: np.ndarray, value: np.ndarray) -> np.ndarray:
        """Results of transforms: of one that is not finite or may overflow, each part as it is, NaN or infinite."""
        rows = tuple(range(-len(i.attributes["fft_length"]), 0))
        wide = operand.astype(np.complex128)
        with np.errstate(all="ignore"):
            together = (np.abs(wide.real) + np.abs(wide.imag)).sum(axis=rows, keepdims=True)
            certain = together <= np.finfo(value.dtype).max
        count = 2 if value.dtype.kind == "c" else 1
        parts = np.ascontiguousarray(value).view(value.real.dtype).reshape(*value.shape, count).copy()
        choice = np.where(certain[..., None], 0, self._choice(4, parts.shape))
        for number, instead in enumerate((np.nan, np.inf, -np.inf), 1):
            parts[choice == number] = instead
        return parts.view(value.dtype).reshape(value.shape)

    def _normalised(self, i: Instruction, operands: list[Any], statistics: Sequence[Any], steps: float) -> Any:
        """The results of batch-norm-training with another variance."""
        x, scale, offset = (o.astype(np.float64) for o in operands)
        feature = i.attributes["feature_index"]
        others = tuple(d for d in range(x.ndim) if d != feature)
        mean, variance = statistics
        with np.errstate(all="ignore"):
            squares = np.square(x).sum(axis=others) / (x.size // max(x.shape[feature], 1) or np.nan)
            variance = self._off(variance, steps, squares)
            spread = 1 / np.sqrt(variance.astype(np.float64) + i.attributes.get("epsilon", 0.0))
            vectors = [np.expand_dims(v, others) for v in (mean.astype(np.float64), spread * scale, offset)]
            out = (x - vectors[0]) * vectors[1] + vectors[2]
        return out.astype(operands[0].dtype), mean, variance

    def _scaled(self, value: Any, steps: float) -> Any:
        """A result whose elements are off relative to the largest one."""
        if isinstance(value, tuple):
            return tuple(self._scaled(v, steps) for v in value)
        dtype = FROM_NUMPY[value.dtype]
        if not (dtype.is_float or dtype.is_complex):
            return value
        size = np.abs(value.astype(np.complex128 if dtype.is_complex else np.float64))
        largest = np.full(size.shape, size.max(initial=0.0, where=np.isfinite(size)))
        return self._off(value, steps, largest)

    def _summed(self, i: Instruction, run: Run, operands: list[Any]) -> Any:
        result = run(*operands)
        leaves = list(result) if isinstance(result, tuple) else [result]
        for leaf, dtype in sum_of(i):
            sums = Sums.of(i, leaf, run, operands)
            steps, size = self._steps(i, dtype), sums.magnitude(dtype)
            if steps:  # each product and each partial sum may be a subnormal, which is flushed
                size = size + 2 * fold_length(i) * _least(dtype) / steps
            value = self._off(leaves[leaf], steps, size)
            changed = sums.within(self._off(sums.finite, steps, size), steps * size, dtype)
            leaves[leaf] = changed.chosen(value, steps, self._choice)
        return tuple(leaves) if isinstance(result, tuple) else leaves[0]

    def _steps(self, i: Instruction, dtype: DType) -> float:
        """The error of a sum, relative to the magnitudes of its terms."""
        products = i.opcode in (Op.DOT, Op.CONVOLUTION, Op.RAGGED_DOT, Op.SCALED_DOT)
        step = (op_ulp(Op.MULTIPLY, dtype) or OPSET[i.opcode].ulp or 1) if products else 1
        return folded(fold_length(i), NONE, step, dtype, wide=products).relative

    def _compared(self, i: Instruction, run: Run) -> Run:
        """Every other run compares subnormals as they are, where it is an order of numbers."""
        direction = _ORDERS.get(i.attributes["direction"])
        if self.number % 2 or direction is None or i.attributes.get("type", "FLOAT") != "FLOAT":
            return _flushing(run)

        def exactly(*operands: np.ndarray) -> np.ndarray:
            a, b = (_ordinal(x) for x in operands)
            unordered = np.isnan(operands[0]) | np.isnan(operands[1])
            return np.where(unordered, i.attributes["direction"] == "NE", direction(a, b))

        return exactly


_SIGNS = {0: 1.0, 1: -1.0, FINITE: 1.0, CHOICES + FINITE: -1.0}
"""Runs that take every error upwards, or downwards: of sums as they are, and of those of all finite terms."""
_NARROW = (DType.F16, DType.BF16)
_FOLDED = frozenset({Op.ADD, Op.SUBTRACT, Op.MULTIPLY, Op.DIVIDE, Op.REMAINDER, Op.SIGN, Op.FLOOR, Op.CEIL})
"""Ops that LLVM computes in the narrow type itself where operands are constants."""

_FOLDS = (Op.REDUCE, Op.REDUCE_WINDOW, Op.SCAN, Op.SCATTER, Op.SELECT_AND_SCATTER)
_EXTREMA = (Op.MAXIMUM, Op.MINIMUM, Op.CLAMP)
_ORDERS = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def _least(dtype: DType) -> float:
    """The least normal number of the type in which terms of a type are added up."""
    wide = dtype.component if dtype.component is DType.F64 else DType.F32
    return float(ml_dtypes.finfo(wide.numpy).smallest_normal)


def _may_keep(i: Instruction) -> bool:
    """Whether an op on floats may take subnormals for themselves: an extremum, also of many elements, or remainder."""
    if i.opcode in _FOLDS:
        return fold_region(i).root.opcode in _EXTREMA
    return i.opcode in (*_EXTREMA, Op.REMAINDER) and i.shape.dtype.is_float


def _keeping(run: Run) -> Run:
    def kept(*operands: Any) -> Any:
        with flushing_subnormals(False):
            return run(*operands)

    return kept


def _flushing(run: Run) -> Run:
    return lambda *operands: run(*map(_without_subnormals, operands))


def _ordinal(x: np.ndarray) -> np.ndarray:
    """Integers in the order of the numbers; both zeros are 0. Arithmetic would flush subnormals."""
    bits = np.ascontiguousarray(x).reshape(x.shape).view(np.int16).astype(np.int32)
    return np.where(bits < 0, -(bits & 0x7FFF), bits)


def _without_subnormals(x: np.ndarray) -> np.ndarray:
    tiny = ml_dtypes.finfo(x.dtype).smallest_normal
    least = _ordinal(np.asarray(tiny))
    return np.where(np.abs(_ordinal(x)) < least, np.copysign(np.zeros_like(x), x), x)
