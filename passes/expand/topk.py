"""Expand top-k, both the opcode and XLA:CPU's custom call TopK, into a stable sort with indices and slices."""

from __future__ import annotations

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import array, tuple_shape
from ..building import Builder
from ..expansion import expand_ops


def expand_topk(module: Module) -> Module:
    """Replace every top-k outside kernels by a stable sort with the indices."""
    return expand_ops(module, {Op.TOPK: sort_and_slice, Op.CUSTOM_CALL: _call})


def _call(i: Instruction, b: Builder) -> Instruction | None:
    return sort_and_slice(i, b) if is_topk(i) else None


def is_topk(i: Instruction) -> bool:
    """Whether a custom call is XLA:CPU's TopK."""
    return i.attributes.get("custom_call_target") == "TopK" and i.shape.is_tuple and len(i.operands) == 1


def sort_and_slice(i: Instruction, b: Builder) -> Instruction:
    """(values, indices): the first k elements of the sorted last dimension; equal values keep their order."""
    x = b.plain(i.operands[0])
    k, dims, last = i.shape.elements[0].dims[-1], x.shape.dims, x.shape.rank - 1
    direction = "GT" if i.attributes.get("largest", True) else "LT"
    order = {"type": "TOTALORDER"} if x.shape.dtype.is_float else {}
    scalars = [array(d) for d in (x.shape.dtype, x.shape.dtype, DType.S32, DType.S32)]
    region = b.region("comparator", scalars, lambda b, p: b.compare(p[0], direction, p[1], **order))
    shapes = (array(x.shape.dtype, *dims), array(DType.S32, *dims))
    both = b.op(
        Op.SORT, tuple_shape(*shapes), x, b.iota(DType.S32, dims, last),
        dimensions=(last,), is_stable=True, to_apply=region,
    )  # fmt: skip
    return b.tuple([b.slice_in(part, last, 0, k) for part in b.elements(both)])
