"""Helpers for tests of passes: run passes by name on text, and compare results before and after."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...differential.bounds import Bound, bounds_of
from ...differential.comparison import compare_within
from ...differential.permitted import Permitted
from ...evaluator.evaluator import evaluate
from ...formats.program import parameter_leaves
from ...formats.text.parser import parse_module
from ...formats.text.printer import print_module
from ...hlo.dtypes import FROM_NUMPY
from ...hlo.ir import Module
from ...hlo.opcodes import Op
from ...hlo.verify.verifier import verify
from ...passes.pipeline import OPTIMIZE, PipelineOptions, run_pipeline, select
from ...planning.planner import PlanOptions


def opcodes(module: Module) -> set[Op]:
    return {i.opcode for i in module.instructions()}


def run(text: str, *names: str) -> Module:
    """The module after passes. Both the module and its printed text are verified."""
    module = run_pipeline(parse_module(text), select(names))
    verify(module)
    verify(parse_module(print_module(module)))
    return module


def same(text: str, inputs: Sequence[np.ndarray], *names: str, exact: bool = False) -> Module:
    """The module after passes. Its results are compared with those before."""
    before, after = parse_module(text), run(text, *names)
    wanted, given = evaluate(before, inputs), evaluate(after, inputs)
    assert len(wanted) == len(given)
    if exact:
        for w, g in zip(wanted, given, strict=True):
            assert w.dtype == g.dtype and w.shape == g.shape and w.tobytes() == g.tobytes(), (w, g)
    else:
        agree(before, wanted, given)
    return after


def agree(
    module: Module,
    wanted: Sequence[np.ndarray],
    given: Sequence[np.ndarray],
    inputs: Sequence[np.ndarray] | None = None,
) -> None:
    """Two lists of results are the same within the module's bounds (differential/bounds.py), or, on these inputs, both
    permitted (differential/permitted.py).
    """
    wrong = difference(module, wanted, given, permitted=Permitted(module, inputs) if inputs is not None else None)
    assert not wrong, wrong


def difference(
    module: Module,
    wanted: Sequence[np.ndarray],
    given: Sequence[np.ndarray],
    bounds: Sequence[Bound] | None = None,
    permitted: Permitted | None = None,
) -> str:
    """The first result beyond its bound, by default the module's own, that is not permitted either; empty if none."""
    if len(wanted) != len(given):
        return f"{len(given)} results where {len(wanted)} belong"
    for n, (w, g, bound) in enumerate(zip(wanted, given, bounds or bounds_of(module), strict=True)):
        found = compare_within(g, w, FROM_NUMPY[w.dtype], bound)
        if not found.agrees and (w.shape != g.shape or permitted is None or permitted.forbids(n, g, bound).any()):
            return f"result {n}: {found}\n{g}\nwhere belongs\n{w}"
    return ""


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3.5, -2.5, 1e-40, 3e38, 2.0], np.float32)
"""Values that incorrect rewrites often get wrong."""


def fill(module: Module, seed: int, *, special: bool = False, high: int = 8) -> list[np.ndarray]:
    """Random inputs by shape: floats of both signs (if `special`, SPECIAL ones too), integers from -2 to `high`."""
    draw = np.random.default_rng(seed)
    made = []
    for shape in parameter_leaves(module):
        kind = shape.dtype.numpy
        if shape.dtype.is_float or shape.dtype.is_complex:
            values = draw.choice(SPECIAL, shape.dims) if special else draw.uniform(-2, 2, shape.dims)
        elif shape.dtype.is_integer:
            values = draw.integers(-2 if shape.dtype.is_signed else 0, high, shape.dims)
        else:
            values = draw.integers(0, 2, shape.dims)
        made.append(np.asarray(values).astype(kind))
    return made


_CHANGE_LOOPS = frozenset({"loops", "counters", "algebra", "conditionals", "hoist-branches", "fuse-rotations"})

AS_WRITTEN = PlanOptions(PipelineOptions(tuple(n for n in OPTIMIZE if n not in _CHANGE_LOOPS)))
"""Options for plans in which loops and conditionals stay as in the text."""
