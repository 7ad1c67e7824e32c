"""Results in the memory of parameters against results in memory of their own: both have the same bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from ...formats.program import parameter_leaves
from ...formats.text.parser import parse_module
from ...hlo.attributes import Alias
from ...hlo.errors import UnsupportedError
from ...hlo.ir import Module
from ...hlo.shapes import Shape
from ...hlo.verify.verifier import verify
from ..execute import execute
from ..filled_inputs import filled_inputs
from ..row_programs import cases_of
from ..setting import Setting

CASES = 16
APART = Setting(reuse=False)
"""Every value has memory of its own."""


def aliased_cases(unit: str, dtypes: str, stacks: Sequence[str], count: int = CASES) -> list[str]:
    """For each of a row's own cases and each stack on which the forms differ: which, and in which result."""
    found = []
    for number, text in enumerate(cases_of(unit, dtypes, count)):
        module = parse_module(text, f"{unit}.{dtypes} case {number}")
        inputs = filled_inputs(module, "random", number)
        for stack in stacks:
            try:
                found += [f"case {number}: {stack} {why}" for why in _differences(module, inputs, stack)]
            except UnsupportedError:
                continue
    return found


def _differences(module: Module, inputs: Sequence[np.ndarray], stack: str) -> Iterator[str]:
    verify(module)
    expected = execute(module, [x.copy() for x in inputs], stack, APART)
    for form, changed in (("in place", module), ("donated", donated(module))):
        actual = execute(changed, [x.copy() for x in inputs], stack, Setting())
        for leaf, (a, e) in enumerate(zip(actual, expected, strict=True)):
            if a.tobytes() != e.tobytes():
                yield f"gives other bits {form} than in memory of its own, in result {leaf}"


def donated(module: Module) -> Module:
    """The module with each result in the memory of a parameter of its shape, as far as there are any."""
    left = [(n, s) for n, s in enumerate(parameter_leaves(module))]
    aliases = []
    for index, shape in ((index, s) for index, s in module.entry.root.shape.leaves() if s.is_array):
        taken = next((pair for pair in left if _same(pair[1], shape)), None)
        if taken is not None:
            left.remove(taken)
            aliases.append(Alias(tuple(index), taken[0], ()))
    attributes = {**module.attributes, "input_output_alias": tuple(aliases)} if aliases else module.attributes
    return replace(module, attributes=MappingProxyType(dict(attributes)))


def _same(a: Shape, b: Shape) -> bool:
    return a.dims == b.dims and a.dtype is b.dtype and a.strides == b.strides
