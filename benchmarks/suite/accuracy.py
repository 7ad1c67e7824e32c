"""How far results lie from those in double precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...evaluator.evaluator import evaluate
from ...formats.program import parameter_leaves
from ...hlo.ir import Module
from ...hlo.widen import wide_array, widened


@dataclass(frozen=True)
class Error:
    """norm: ‖a − e‖ / ‖e‖ (2-norms) of the worst result leaf. worst: max |a − e| / max |e| of the worst leaf.

    A leaf of integers or preds counts the share of its elements that differ, in both.
    """

    norm: float
    worst: float


def exact_results(
    module: Module, inputs: Sequence[np.ndarray], function: Callable[..., Any] | None = None
) -> list[np.ndarray]:
    """The results of the module in f64 and c128, by the evaluator, which shares no code with any contestant.

    function: computes the one result from the wide inputs instead, where the evaluator would take too long.
    """
    leaves = parameter_leaves(module)
    wide = [wide_array(np.asarray(x), shape.dtype) for x, shape in zip(inputs, leaves, strict=True)]
    if function is not None:
        return [np.asarray(function(*wide))]
    return evaluate(widened(module), wide, flush_subnormals=False)


def error_of(results: Sequence[np.ndarray], exact: Sequence[np.ndarray]) -> Error:
    """The error of results, leaf by leaf. Raises ValueError if their number or shapes differ from the exact ones."""
    if len(results) != len(exact):
        raise ValueError(f"{len(results)} results for {len(exact)}")
    errors = [_leaf_error(np.asarray(r), np.asarray(e)) for r, e in zip(results, exact, strict=True)]
    return Error(max((e.norm for e in errors), default=0.0), max((e.worst for e in errors), default=0.0))


def _leaf_error(result: np.ndarray, exact: np.ndarray) -> Error:
    if result.shape != exact.shape:
        raise ValueError(f"a result of shape {list(result.shape)} for {list(exact.shape)}")
    if exact.size == 0:
        return Error(0.0, 0.0)
    if exact.dtype.kind not in "fc":
        share = float(np.mean(result != exact))
        return Error(share, share)
    wide = result.astype(np.complex128 if exact.dtype.kind == "c" else np.float64)
    same = (wide == exact) | (np.isnan(wide) & np.isnan(exact))  # infinities too
    with np.errstate(invalid="ignore", over="ignore"):
        distance = np.where(same, 0.0, np.abs(wide - exact))
    distance[np.isnan(distance)] = np.inf  # NaN or an infinity on one side only
    size = np.abs(exact)[np.isfinite(exact)]
    return Error(
        _over(float(np.linalg.norm(distance)), float(np.linalg.norm(size))),
        _over(float(distance.max()), float(size.max(initial=0.0))),
    )


def _over(distance: float, size: float) -> float:
    """distance / size; a distance from nothing but zeros counts as it is."""
    return distance / size if size > 0 else distance
