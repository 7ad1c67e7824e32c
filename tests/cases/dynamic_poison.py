"""Fills padding with garbage: the results of a padded module must not depend on elements beyond the sizes."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import patch

import numpy as np

from ...evaluator.evaluator import evaluate
from ...hlo.dtypes import DType
from ...hlo.dynamic_border import DynamicBorder
from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import ShapeIndex
from ...passes.building import Builder
from ...passes.dynamic import pad
from ...passes.dynamic.values import Sized, masked
from ..support.passes import run


def garbage(dtype: DType):
    """NaN if the type has one, otherwise a number that is invalid as an index or size and visible in a sum."""
    if dtype is DType.PRED:
        return True
    return 113 if dtype.is_integer and dtype.bits >= 8 else 1 if dtype.is_integer else np.nan


def poisoned(text: str) -> Module:
    """The padded module, with garbage written beyond the sizes of each instruction's result."""
    padder = pad._Padder
    add = padder.instruction

    def instruction(self, i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
        x = add(self, i, b, xs)
        return Sized(_spoilt(b, x.value, x, ()), x.sizes) if x.sizes and i.opcode is not Op.TUPLE else x

    with patch.object(padder, "instruction", instruction):
        return run(text, "flatten", "expand-async", "pad-dynamic")


def _spoilt(b: Builder, value: Instruction, x: Sized, path: ShapeIndex) -> Instruction:
    if value.shape.is_tuple:
        return b.tuple([_spoilt(b, v, x, (*path, n)) for n, v in enumerate(b.elements(value))])
    sizes = {((), d): s for (p, d), s in x.sizes.items() if p == path}
    if not sizes:
        return value
    fill = b.constant(garbage(value.shape.dtype), value.shape.dtype)
    return masked(b, Sized(value, sizes), [d for _, d in sizes], fill)


def evaluate_poisoned(module: Module, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of a poisoned module on inputs that are padded with garbage as well."""
    border = DynamicBorder.of(module)
    if border is None:
        return evaluate(module, inputs)
    values = border.padded(inputs)
    for n, (x, given) in enumerate(zip(values, inputs)):
        spoilt = np.full(x.shape, garbage(border.shapes[n].dtype), x.dtype)
        spoilt[tuple(slice(0, size) for size in np.shape(given))] = given
        values[n] = spoilt
    attributes = {k: v for k, v in module.attributes.items() if k != "frontend_attributes"}
    bare = Module(module.name, module.computations, module.entry, attributes)
    return border.cut(evaluate(bare, values))
