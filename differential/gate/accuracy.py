"""Errors against double precision: the new emitters may have twice the old ones, 1e-7, or half of the last bit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import ml_dtypes
import numpy as np

from ...backends.base import CompileOptions
from ...formats.text.parser import parse_module
from ...hlo.dtypes import FROM_NUMPY
from ...hlo.errors import UnsupportedError
from ...hlo.ir import Module
from ...migration.compile import compile_module
from ...migration.flags import Flags
from ..filled_inputs import filled_inputs
from ..precision import Exact
from ..row_programs import cases_of, workloads_of

CASES = 16
"""Of the row's own small programs, besides those that are timed."""

TIMES, FLOOR = 2.0, 1e-7
"""Relative to the largest magnitude of a result."""


def less_accurate_cases(unit: str, dtypes: str, stacks: Sequence[str], count: int = CASES) -> list[str]:
    """For each result of a row's programs in which the new emitters are too far off: by how much."""
    old, new = stacks
    found = []
    for name, module in _programs(unit, dtypes, count):
        inputs = filled_inputs(module, "random", 1)
        exact = Exact(module, inputs)
        if not exact.says_more:
            continue
        try:
            results = {
                stack: compile_module(module, Flags.parse(stack), CompileOptions()).execute(inputs) for stack in stacks
            }
        except UnsupportedError:
            continue
        found += [f"{name}: {why}" for why in _worse(exact, results[old], results[new], new)]
    return found


def _programs(unit: str, dtypes: str, count: int) -> Iterator[tuple[str, Module]]:
    texts = {f"case {n}": text for n, text in enumerate(cases_of(unit, dtypes, count))}
    texts |= {f"workload {n}": text for n, text in enumerate(workloads_of(unit, dtypes))}
    return ((name, parse_module(text, name)) for name, text in texts.items())


def _worse(exact: Exact, old: Sequence[np.ndarray], new: Sequence[np.ndarray], name: str) -> Iterator[str]:
    for leaf, (a, b) in enumerate(zip(old, new, strict=True)):
        before, after = exact.error(leaf, a), exact.error(leaf, b)
        if after > max(TIMES * before, FLOOR, rounding_of(b.dtype)):
            yield f"the error of {name} in result {leaf} is {after:.2g}, of the old emitters {before:.2g}"


def rounding_of(dtype: np.dtype) -> float:
    """What the best result of a type may be off, relative to its magnitude: half of its last bit. 0 for integers."""
    known = FROM_NUMPY[dtype]
    if not (known.is_float or known.is_complex):
        return 0.0
    return float(ml_dtypes.finfo(known.component.numpy).eps) / 2
