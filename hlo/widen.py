"""A module in double precision: what its results would be without the rounding of its own types.

Every float type becomes f64 and c64 becomes c128, in all shapes and constants. Ops whose meaning depends on the bits of
a float keep their types, between converts: bitcast-convert, and random bits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from .dtypes import FLOAT, DType
from .errors import UnsupportedError
from .ir import Computation, Instruction, Literal, Module, expand
from .opcodes import Op
from .shapes import Shape

BITWISE = frozenset({Op.BITCAST_CONVERT, Op.RNG_BIT_GENERATOR})
"""Ops that read or make the bits of their type."""

LAPACK = {"lapack_s": "lapack_d", "lapack_c": "lapack_z"}
"""How the targets of LAPACK's calls begin, by type: single → double precision."""

Add = Callable[[Instruction], Instruction]


def widened(module: Module) -> Module:
    """The module with f64 and c128 in place of every narrower float and complex type."""
    made: dict[Computation, Computation] = {}
    for computation in module.computations:
        former = {i.name: i for i in computation.instructions}
        made[computation] = expand(computation, partial(_widen, former, made))
    attributes = {k: v for k, v in module.attributes.items() if k != "entry_computation_layout"}
    computations = tuple(made[c] for c in module.computations)
    return Module(module.name, computations, made[module.entry], MappingProxyType(attributes))


def wide_type(dtype: DType) -> DType:
    if dtype is DType.C64:
        return DType.C128
    return DType.F64 if dtype in FLOAT else dtype


def wide_array(value: np.ndarray, dtype: DType) -> np.ndarray:
    """An input or constant of this type as the widened module takes it."""
    return value.astype(wide_type(dtype).numpy, copy=False)


def _wide_shape(shape: Shape) -> Shape:
    if shape.is_tuple:
        return replace(shape, elements=tuple(map(_wide_shape, shape.elements)))
    return replace(shape, dtype=wide_type(shape.dtype))


def _wide_literal(literal: Literal) -> Literal:
    if isinstance(literal.value, tuple):
        return Literal(_wide_shape(literal.shape), tuple(map(_wide_literal, literal.value)))
    if literal.value is None or wide_type(literal.shape.dtype) is literal.shape.dtype:
        return literal
    if literal.is_splat:
        one = literal.array[(0,) * literal.array.ndim]
        value = np.broadcast_to(wide_array(np.asarray(one), literal.shape.dtype), literal.array.shape)
    else:
        value = wide_array(literal.array, literal.shape.dtype)
        value.flags.writeable = False
    return Literal(_wide_shape(literal.shape), value)


def _widen(
    former: Mapping[str, Instruction], made: Mapping[Computation, Computation], i: Instruction, add: Add
) -> Instruction:
    """The instruction in double precision; its operands are widened already. former: instructions before that."""
    if i.opcode in BITWISE:
        return _bits(i, former[i.name], add)
    attributes = {k: _wide_attribute(k, v, made) for k, v in i.attributes.items()}
    return i.replace(shape=_wide_shape(i.shape), attributes=MappingProxyType(attributes))


def _wide_attribute(key: str, value: Any, made: Mapping[Computation, Computation]) -> Any:
    if isinstance(value, Computation):
        return made[value]
    if isinstance(value, Literal):
        return _wide_literal(value)
    if isinstance(value, tuple) and any(isinstance(v, Computation) for v in value):
        return tuple(made[v] if isinstance(v, Computation) else v for v in value)
    if key == "custom_call_target":
        return next((to + value[len(start) :] for start, to in LAPACK.items() if value.startswith(start)), value)
    if key == "operand_layout_constraints":
        return tuple(map(_wide_shape, value))
    return value


def _bits(i: Instruction, former: Instruction, add: Add) -> Instruction:
    """The op on its own types, between converts. former: the same instruction before anything was widened."""
    if i.shape.is_tuple and _wide_shape(i.shape) != i.shape:
        raise UnsupportedError("double precision", f"{i.name}: {i.opcode.value} of floats in a tuple")
    operands = []
    for n, (now, then) in enumerate(zip(i.operands, former.operands, strict=True)):
        same = now.shape.dtype is then.shape.dtype
        operands.append(now if same else add(_convert(now, then.shape.dtype, f"{i.name}.narrow{n}")))
    kept = i.replace(name=f"{i.name}.bits", operands=tuple(operands))
    wide = wide_type(i.shape.dtype)
    return kept if wide is i.shape.dtype else _convert(add(kept), wide, f"{i.name}.wide")


def _convert(i: Instruction, dtype: DType, name: str) -> Instruction:
    return Instruction(Op.CONVERT, name, replace(i.shape, dtype=dtype), (i,))
