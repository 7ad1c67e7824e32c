"""Who is far off: results against an evaluation in double precision, where the module itself has narrower floats.

`Exact` runs the oracle on the widened module (hlo/widen.py). What one rounding of each op amounts to in the results
comes from further such runs, in which each op's result is off by as much as its own type rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..evaluator.evaluator import evaluate
from ..formats.program import parameter_leaves, result_leaves
from ..hlo.dtypes import FROM_NUMPY, DType
from ..hlo.errors import TestbedError
from ..hlo.ir import Instruction, Module
from ..hlo.opcodes import Op
from ..hlo.widen import wide_array, widened
from .bounds import epsilon

FAR = 8.0
"""A result is far off if its error is more than FAR times that of the nearest one, or of XLA's."""

LEAST = 4.0
"""Errors up to LEAST roundings of the result's type are all alike."""

SAMPLES = 4
"""Runs that show what the roundings of single ops amount to."""

Run = Callable[..., Any]


class Exact:
    """The results of a module on inputs in f64 and c128; computed when they are first asked for."""

    def __init__(self, module: Module, inputs: Sequence[np.ndarray]):
        self.module = module
        leaves = parameter_leaves(module)
        self.inputs = [wide_array(np.asarray(x), s.dtype) for x, s in zip(inputs, leaves, strict=True)]
        self.dtypes = [shape.dtype for shape in result_leaves(module)]

    @property
    def says_more(self) -> bool:
        """Whether a result has a type that double precision widens, and no op of the module rounds on purpose."""
        return any(_is_narrow(d) for d in self.dtypes) and not any(map(_rounds, self.module.instructions()))

    @cached_property
    def results(self) -> list[np.ndarray] | None:
        """None if the module cannot be run so."""
        return self._run(None)

    def _run(self, adjust: Callable[[Instruction, Run], Run] | None) -> list[np.ndarray] | None:
        try:
            with np.errstate(all="ignore"):
                return evaluate(widened(self.module), self.inputs, flush_subnormals=False, adjust=adjust)
        except TestbedError:
            return None

    @cached_property
    def noise(self) -> list[float]:
        """For each result leaf, the error (as of `error`) that the roundings of its ops amount to."""
        units = {i.name: _unit(i) for i in self.module.instructions()}
        found = [0.0] * len(self.dtypes)
        for number in range(SAMPLES):
            draw = np.random.default_rng(number)

            def adjust(i: Instruction, run: Run, draw: np.random.Generator = draw) -> Run:
                unit = units.get(i.name, 0.0)
                return (lambda *operands: _off(run(*operands), unit, draw)) if unit else run

            results = self._run(adjust)
            if results is not None:
                found = [max(f, self.error(n, r)) for n, (f, r) in enumerate(zip(found, results, strict=True))]
        return found

    def error(self, leaf: int, value: np.ndarray, where: np.ndarray | None = None) -> float:
        """The largest distance of a value from the exact one, relative to the largest magnitude of the leaf.

        where: the elements that count, each relative to itself. 0 for types that double precision does not widen.
        """
        if self.results is None or not _is_narrow(self.dtypes[leaf]) or not value.size:
            return 0.0
        exact = self.results[leaf]
        wide = value.astype(exact.dtype)
        with np.errstate(all="ignore"):
            rounded = exact.astype(self.dtypes[leaf].numpy).astype(exact.dtype)
            same = (wide == exact) | (wide == rounded) | (np.isnan(wide) & np.isnan(exact))
            distance = np.where(same, 0.0, np.abs(wide - exact))
            distance[np.isnan(distance)] = np.inf
            size = np.abs(exact)
            if where is None:
                most = size[np.isfinite(size)].max(initial=0.0)
                return float(distance.max() / most if most else distance.max())
            return float(np.where(distance == 0, 0.0, distance / np.where(size > 0, size, 1.0))[where].max(initial=0.0))


def _is_narrow(dtype: DType) -> bool:
    return (dtype.is_float or dtype.is_complex) and dtype not in (DType.F64, DType.C128)


def _rounds(i: Instruction) -> bool:
    if i.opcode is Op.CONVERT and all(_is_narrow(d) for d in (i.shape.dtype, i.operands[0].shape.dtype)):
        return epsilon(i.shape.dtype) > epsilon(i.operands[0].shape.dtype)
    return i.opcode in (Op.REDUCE_PRECISION, Op.STOCHASTIC_CONVERT)


def _unit(i: Instruction) -> float:
    """The rounding of an instruction whose result is one array of a float type; else 0."""
    inexact = i.shape.is_array and (i.shape.dtype.is_float or i.shape.dtype.is_complex)
    return epsilon(i.shape.dtype) / 2 if inexact and i.operands else 0.0


def _off(value: Any, unit: float, draw: np.random.Generator) -> Any:
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in "fc":
        return value
    exact = np.asarray(value)
    with np.errstate(all="ignore"):
        return np.asarray(exact * (1 + unit * draw.uniform(-1, 1, exact.shape)), exact.dtype)


def far_off(
    exact: Exact, results: Mapping[str, Sequence[np.ndarray]], places: Mapping[int, np.ndarray]
) -> tuple[str, ...]:
    """The stacks whose results are far off at some of the elements on which the stacks disagree; () if that is not
    known, or all are. places: for each leaf that counts, its elements.
    """
    if exact.results is None:
        return ()
    guilty: set[str] = set()
    for leaf, where in places.items():
        if not _is_narrow(exact.dtypes[leaf]):
            return ()
        errors = {name: exact.error(leaf, leaves[leaf], where) for name, leaves in results.items()}
        least = max(min(errors.values()), LEAST * epsilon(FROM_NUMPY[results[next(iter(results))][leaf].dtype]))
        guilty.update(name for name, error in errors.items() if error > FAR * least)
    return tuple(sorted(guilty)) if len(guilty) < len(results) else ()


def less_accurate(exact: Exact, results: Mapping[str, Sequence[np.ndarray]], than: str) -> dict[str, float]:
    """The stacks whose error is more than FAR times that of the stack `than` → how many times.

    An error counts only beyond FAR times what the roundings of the single ops amount to.
    """
    if than not in results or not exact.says_more or exact.results is None:
        return {}
    found: dict[str, float] = {}
    for leaf, dtype in enumerate(exact.dtypes):
        if not _is_narrow(dtype):
            continue
        floor = max(exact.error(leaf, results[than][leaf]), LEAST * epsilon(dtype))
        for name, leaves in results.items():
            error = exact.error(leaf, leaves[leaf])
            if name != than and error > FAR * floor and error > FAR * exact.noise[leaf]:
                found[name] = max(found.get(name, 0.0), error / floor)
    return found
