"""Expand map: apply its region to whole arrays, or loop over the elements if the region is not elementwise."""

from __future__ import annotations

from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ..building import Builder, apply_pointwise, is_pointwise
from ..expansion import expand_ops


def expand_map(module: Module) -> Module:
    """Replace every map outside kernels by ops on whole arrays, or by a loop over the elements."""
    return expand_ops(module, {Op.MAP: on_arrays})


def on_arrays(i: Instruction, b: Builder) -> Instruction:
    region, arrays = i.attributes["to_apply"], list(map(b.plain, i.operands))
    if is_pointwise(region) and arrays:
        return apply_pointwise(b, region, arrays)[0]
    size, dims, many = i.shape.size, i.shape.dims, len(arrays)
    zero = b.constant(0, i.shape.dtype, (size,))
    if not size:
        return b.reshape(zero, dims)

    def step(b: Builder, k: Instruction, values: list[Instruction]) -> list[Instruction]:
        scalars = [b.reshape(b.dynamic_slice(x, [k], (1,)), ()) for x in values[:many]]
        result = b.reshape(b.inline(region, scalars), (1,))
        return [*values[:many], b.dynamic_update_slice(values[many], result, [k])]

    return b.reshape(b.counted(size, [*(b.reshape(x, (size,)) for x in arrays), zero], step)[-1], dims)
