"""Helpers of all shape rules: raising the error of a broken constraint, and comparing shapes as XLA does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from ..dtypes import DType
from ..errors import VerificationError
from ..ir import Computation, Instruction
from ..shapes import UNBOUNDED, Shape

ShapeRule = Callable[[Instruction], Shape]
"""Computes the shape of an instruction's result. Raises VerificationError if a constraint is broken."""


def broken(i: Instruction, label: str, message: str, remedy: str | None = None) -> NoReturn:
    """Raise the VerificationError of constraint `label` for an instruction."""
    raise VerificationError(f"{i.opcode.value} '{i.name}': {message} [{label}]", location=i.location, remedy=remedy)


def same(a: Shape, b: Shape) -> bool:
    """Whether shapes are equal apart from layouts and from which dimensions are dynamic."""
    if a is b:
        return True
    return (
        a.dtype is b.dtype
        and same_dims(a, b)
        and len(a.elements) == len(b.elements)
        and all(map(same, a.elements, b.elements))
    )


def same_up_to_precision(a: Shape, b: Shape) -> bool:
    """Like `same`, but one floating-point type may stand for another."""
    return a is b or (
        same_dtype(a.dtype, b.dtype)
        and same_dims(a, b)
        and len(a.elements) == len(b.elements)
        and all(map(same_up_to_precision, a.elements, b.elements))
    )


def same_dims(a: Shape, b: Shape) -> bool:
    """Whether sizes are equal in all dimensions; an unbounded size equals any other."""
    return a.dims == b.dims or (len(a.dims) == len(b.dims) and all(map(same_size, a.dims, b.dims)))


def same_size(a: int, b: int) -> bool:
    return a == b or UNBOUNDED in (a, b)


def same_dtype(a: DType, b: DType) -> bool:
    """Whether types are equal, or both floating-point."""
    return a is b or (a.is_float and b.is_float)


def higher(a: DType, b: DType) -> DType:
    """The wider of two types for which `same_dtype` holds."""
    return b if a.is_float and b.is_float and b.bits > a.bits else a


def merged_dynamic(*shapes: Shape) -> tuple[bool, ...]:
    """Which dimensions are dynamic in any of these shapes of one rank; () if none is."""
    flags = [s.dynamic for s in shapes if s.dynamic]
    return tuple(map(any, zip(*flags, strict=True))) if flags else ()


def is_dynamic(shape: Shape, d: int) -> bool:
    return bool(shape.dynamic) and shape.dynamic[d]


def make(dtype: DType, dims: Sequence[int], dynamic: Sequence[bool] = ()) -> Shape:
    return Shape(dtype, tuple(dims), None, tuple(dynamic) if any(dynamic) else ())


def arrays(i: Instruction, label: str) -> tuple[Shape, ...]:
    """The operands' shapes, which must all be arrays."""
    shapes = tuple(o.shape for o in i.operands)
    for operand, shape in zip(i.operands, shapes, strict=True):
        if not shape.is_array:
            broken(i, label, f"operand '{operand.name}' must be an array, not {shape}")
    return shapes


def dims_in_range(i: Instruction, label: str, what: str, dims: Sequence[int], rank: int) -> None:
    """Checks that `dims` are distinct and in [0, rank). what: their name in the message."""
    for d in dims:
        if not 0 <= d < rank:
            broken(i, label, f"{what} names dimension {d}, but there are {rank}")
    if len(set(dims)) != len(dims):
        broken(i, label, f"{what} names a dimension twice: {tuple(dims)}")


def one_dimension(i: Instruction, label: str, rank: int) -> int:
    """The single entry of `dimensions`, which must be in [0, rank)."""
    dims = i.attributes.get("dimensions", ())
    if len(dims) != 1 or not 0 <= dims[0] < rank:
        broken(i, label, f"dimensions must name one of the {rank} dimensions, not {dims}")
    return dims[0]


def parameter_shapes(c: Computation) -> tuple[Shape, ...]:
    return tuple(p.shape for p in c.parameters)


def check_parameters(i: Instruction, label: str, c: Computation, shapes: Sequence[Shape], loose: bool = False) -> None:
    """Checks that computation `c` takes parameters of these shapes. loose: floating-point types may differ."""
    parameters = c.parameters
    if len(parameters) != len(shapes):
        broken(i, label, f"computation '{c.name}' takes {len(parameters)} parameters, but {len(shapes)} are passed")
    for number, (parameter, shape) in enumerate(zip(parameters, shapes, strict=True)):
        if not (same_up_to_precision if loose else same)(parameter.shape, shape):
            broken(i, label, f"parameter {number} of '{c.name}' has shape {parameter.shape}, but {shape} is passed")


def called(i: Instruction, key: str, label: str) -> Computation:
    value = i.attributes.get(key)
    if isinstance(value, tuple) and len(value) == 1:
        value = value[0]
    if not isinstance(value, Computation):
        broken(i, label, f"needs the computation '{key}'")
    return value
