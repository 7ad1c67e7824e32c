"""Edits of shapes: a dimension size or an element type becomes another one throughout a module, with its inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from ...hlo.attributes import SliceDim, Window
from ...hlo.dtypes import DType
from ...hlo.errors import TestbedError
from ...hlo.ir import Computation, Instruction, Literal, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from ...hlo.verify.infer import INFER, NEEDS_SHAPE, UNSTATED
from ...passes.rewriting import relink_computation
from .case import BOUND_TO_SIGNATURE, Edit, Small, edit, tidy


def size_edits(case: Small) -> Iterator[Edit]:
    """Each dimension size smaller, the largest first."""
    found = {n for i in case.module.instructions() for _, s in i.shape.leaves() for n in s.dims if n > 1}
    for old in sorted(found, reverse=True):
        for new in dict.fromkeys((1, 2, 3, 4, 8, old // 4, old // 2, old - 1)):
            if 0 < new < old:
                yield edit(resized, old, new)


def resized(case: Small, old: int, new: int) -> Small | None:
    """Dimensions of the size `old` have the size `new`; what depends on them is inferred."""

    def small(shape: Shape) -> Shape:
        dims = tuple(new if n == old else n for n in shape.dims)
        return replace(shape, dims=dims, elements=tuple(map(small, shape.elements)))

    def array(x: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(x[tuple(slice(0, new if n == old else n) for n in x.shape)]).reshape(
            [new if n == old else n for n in x.shape]
        )

    return _reshaped(case, small, array, lambda i: _sized_attributes(i, old, new))


def _sized_attributes(i: Instruction, old: int, new: int) -> Instruction:
    """The instruction with sizes in its attributes changed, and within its operands (which are changed already)."""
    changed: dict[str, Any] = {}
    for key, value in i.attributes.items():
        if key in ("slice_sizes", "dynamic_slice_sizes"):
            limits = i.operands[0].shape.dims
            changed[key] = tuple(min(new if n == old else n, most) for n, most in zip(value, limits, strict=True))
        elif key == "slice":
            changed[key] = tuple(_clipped(d, most) for d, most in zip(value, i.operands[0].shape.dims, strict=True))
        elif isinstance(value, Window):
            changed[key] = Window(tuple(replace(d, size=new) if d.size == old else d for d in value.dims))
    return i.replace(attributes=MappingProxyType({**i.attributes, **changed})) if changed else i


def _clipped(d: SliceDim, most: int) -> SliceDim:
    limit = min(d.limit, most)
    return SliceDim(max(0, min(d.start, limit - 1)), limit, d.stride)


def _reshaped(
    case: Small,
    small: Callable[[Shape], Shape],
    array: Callable[[np.ndarray], np.ndarray],
    attributes: Callable[[Instruction], Instruction] = lambda i: i,
) -> Small | None:
    table: dict[Computation, Computation] = {}
    try:
        for old in case.module.computations:
            linked = relink_computation(old, table)
            new: dict[Instruction, Instruction] = {}
            for i in linked.instructions:
                made = i.replace(operands=tuple(new[o] for o in i.operands), shape=small(i.shape))
                new[i] = _inferred(_with_literal(attributes(made), array))
            table[old] = Computation(old.name, tuple(new.values()), new[linked.root], old.attributes)
    except (TestbedError, KeyError, IndexError, ValueError, AssertionError):
        return None  # a shape that does not fit the others
    inputs = {name: tuple(map(array, arrays)) for name, arrays in case.inputs.items()}
    header = {k: v for k, v in case.module.attributes.items() if k not in BOUND_TO_SIGNATURE}
    module = Module(case.module.name, tuple(table.values()), table[case.module.entry], header)
    return tidy(module, inputs)


def _with_literal(i: Instruction, array: Callable[[np.ndarray], np.ndarray]) -> Instruction:
    if i.opcode is not Op.CONSTANT or not i.shape.is_array or i.literal.is_elided:
        return i
    value = np.array(array(np.asarray(i.literal.array)))
    value.setflags(write=False)
    return i.replace(attributes=MappingProxyType({**i.attributes, "literal": Literal(i.shape, value)}))


def _inferred(i: Instruction) -> Instruction:
    if i.opcode in NEEDS_SHAPE or i.opcode in UNSTATED or i.opcode not in INFER:
        return i
    shape = INFER[i.opcode](i)
    return i if shape.compatible(i.shape) else i.replace(shape=replace(shape, layout=i.shape.layout))


SIMPLER = {
    **dict.fromkeys((DType.F64, DType.BF16, DType.F16), (DType.F32,)),
    **dict.fromkeys((DType.S64, DType.U64, DType.S8, DType.U8, DType.S16, DType.U16, DType.U32), (DType.S32,)),
    DType.C128: (DType.C64,),
    DType.C64: (DType.F32,),
}


def dtype_edits(case: Small) -> Iterator[Edit]:
    """Each element type a plainer one."""
    found = {s.dtype for i in case.module.instructions() for _, s in i.shape.leaves()}
    for old in sorted(found, key=lambda d: d.value):
        plainer = SIMPLER.get(old, (DType.F32,) if old.is_float and old is not DType.F32 else ())
        for new in plainer:
            yield edit(retyped, old, new)


def retyped(case: Small, old: DType, new: DType) -> Small | None:
    """Arrays of one type have another one."""

    def plain(shape: Shape) -> Shape:
        dtype = new if shape.dtype is old else shape.dtype
        return replace(shape, dtype=dtype, elements=tuple(map(plain, shape.elements)))

    def array(x: np.ndarray) -> np.ndarray:
        if x.dtype != old.numpy:
            return x
        with np.errstate(all="ignore"):
            return (x.real if old.is_complex and not new.is_complex else x).astype(new.numpy)

    return _reshaped(case, plain, array)
