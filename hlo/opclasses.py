"""Classes of opcodes that passes, schedule and buffer plan reason with. Facts of single ops are in opset.py."""

from __future__ import annotations

from . import opset
from .ir import CONTROL_PREDECESSORS as CONTROL_PREDECESSORS
from .ir import Computation, Instruction, Module
from .library_calls import lapack_call
from .opcodes import Op
from .shapes import Shape

ELEMENTWISE = frozenset(op for op, row in opset.OPSET.items() if row.elementwise)
"""Element i of the result depends on element i of each operand (or on a scalar operand, for select and clamp)."""

EXPENSIVE = frozenset(
    {
        Op.ACOS,
        Op.ACOSH,
        Op.ASIN,
        Op.ASINH,
        Op.ATAN2,
        Op.ATANH,
        Op.CBRT,
        Op.COSINE,
        Op.COSH,
        Op.DIVIDE,
        Op.ERF,
        Op.EXPONENTIAL,
        Op.EXPONENTIAL_MINUS_ONE,
        Op.LOG,
        Op.LOG_PLUS_ONE,
        Op.LOGISTIC,
        Op.POWER,
        Op.REMAINDER,
        Op.RSQRT,
        Op.SINE,
        Op.SINH,
        Op.SQRT,
        Op.STOCHASTIC_CONVERT,
        Op.TAN,
        Op.TANH,
    }
)
"""Elementwise ops that are worth storing rather than computing twice."""

FORWARDING = frozenset({Op.TUPLE, Op.GET_TUPLE_ELEMENT, Op.OPT_BARRIER, Op.ADD_DEPENDENCY, Op.DOMAIN, Op.AFTER_ALL})
"""Ops that move no bytes: each leaf of the result is a leaf of an operand, or a token."""

SIDE_EFFECTS = (
    frozenset(opset.opcodes([opset.Family.IO, opset.Family.COLLECTIVE])) - {Op.PARTITION_ID, Op.REPLICA_ID}
) | {Op.RNG, Op.RNG_GET_AND_UPDATE_STATE}
"""Ops that are never removed, duplicated or reordered among each other (custom-call decides by its attribute)."""

IMPURE = SIDE_EFFECTS | {Op.STOCHASTIC_CONVERT, Op.CUSTOM_CALL, Op.PARAMETER}
"""Ops of which two equal ones must not become one (of custom calls, `is_impure` knows more)."""

_MAY_ACT = SIDE_EFFECTS | {Op.CUSTOM_CALL}

CONTROL = frozenset({Op.WHILE, Op.CONDITIONAL, Op.CALL})
"""Ops whose computations run as part of the host program, not inside a kernel."""

COSMETIC_ATTRIBUTES = frozenset(
    {"metadata", "sharding", "frontend_attributes", "origin", "original_value", "statistics", "parameter_replication"}
)
"""Attributes that never change a value."""


def branches(instruction: Instruction) -> tuple[Computation, ...]:
    """The branch computations of a conditional, branch 0 first (the true branch, for a pred)."""
    listed = instruction.attributes.get("branch_computations")
    if listed is not None:
        return listed
    return instruction.attributes["true_computation"], instruction.attributes["false_computation"]


def has_side_effect(instruction: Instruction) -> bool:
    """Whether the instruction itself acts on the world (not what it calls)."""
    if instruction.opcode is Op.CUSTOM_CALL:
        flag = instruction.attributes.get("custom_call_has_side_effect", False)
        return flag is True or getattr(flag, "text", flag) == "true"
    return instruction.opcode in SIDE_EFFECTS


def is_impure(instruction: Instruction) -> bool:
    """Whether two equal ones must not become one. LAPACK's routines depend on nothing but their operands."""
    if instruction.opcode is Op.CUSTOM_CALL:
        return has_side_effect(instruction) or lapack_call(instruction) is None
    return instruction.opcode in IMPURE


def effectful_computations(module: Module) -> set[Computation]:
    """Computations that, themselves or by what they call, act on the world."""
    found: set[Computation] = set()
    for computation in module.computations:
        acts = not computation.opcodes.isdisjoint(_MAY_ACT) and any(map(has_side_effect, computation.instructions))
        if acts or any(c in found for i in computation.calling for c in i.called()):
            found.add(computation)
    return found


def control_computations(module: Module) -> tuple[Computation, ...]:
    """Entry and the bodies, conditions and branches below it, callees first: what the host program runs."""
    found: set[Computation] = {module.entry}
    for computation in reversed(module.computations):  # callers first
        if computation in found:
            found.update(c for i in computation.calling if i.opcode in CONTROL for c in i.called())
    return tuple(c for c in module.computations if c in found)


def same_bytes(a: Shape, b: Shape) -> bool:
    """Arrays of these shapes have the same elements at the same places: same type, dimensions and memory order."""
    if a.dtype is not b.dtype or a.dims != b.dims or a.dynamic != b.dynamic:
        return False
    if (a.layout is None or b.layout is None or a.layout == b.layout) and a.minor_to_major == b.minor_to_major:
        return _tiles(a) == _tiles(b)
    return _tiles(a) == _tiles(b) and all(s == t for s, t, d in zip(a.strides, b.strides, a.dims) if d != 1)


def _tiles(shape: Shape) -> tuple[tuple[int, ...], ...]:
    return shape.layout.tiles if shape.layout is not None else ()


def reshape_moves_bytes(source: Shape, target: Shape) -> bool:
    """Whether a reshape (logical row-major order kept) must reorder memory, given both layouts."""
    if source.size == 0 or target.size <= 1:
        return False
    if source.is_row_major and target.is_row_major:
        return False
    return _stride_runs(source) != _stride_runs(target)


def _stride_runs(shape: Shape) -> list[tuple[int, int]]:
    """(elements, stride) of each maximal run of dimensions, major first, that walks memory evenly."""
    runs: list[tuple[int, int]] = []
    for size, stride in zip(shape.dims, shape.strides):
        if size == 1:
            continue
        if runs and runs[-1][1] == size * stride:
            runs[-1] = (runs[-1][0] * size, stride)
        else:
            runs.append((size, stride))
    return runs


def changes_elements(instruction: Instruction) -> bool:
    """Whether a bitcast of an array sees the bits as more or fewer elements."""
    source, target = instruction.operands[0].shape, instruction.shape
    return source.is_array and target.is_array and source.size != target.size


def is_alias(instruction: Instruction) -> bool:
    """An array op whose result is its operand's bytes: bitcast, and a reshape or transpose that moves nothing.

    Elements narrower than a byte take a byte each, so one that makes other elements of them moves bytes.
    """
    if instruction.opcode is Op.BITCAST:
        source, target = instruction.operands[0].shape, instruction.shape
        narrow = changes_elements(instruction) and min(source.dtype.bits, target.dtype.bits) < 8
        return target.is_array and source.bytes == target.bytes and not narrow
    if instruction.opcode is Op.TRANSPOSE:
        return _transpose_moves_nothing(instruction)
    return (
        instruction.opcode is Op.RESHAPE
        and not instruction.shape.is_dynamic
        and not reshape_moves_bytes(instruction.operands[0].shape, instruction.shape)
    )


def _transpose_moves_nothing(instruction: Instruction) -> bool:
    """Whether the layout of the result is that of the operand, transposed as the dimensions are."""
    source, target = instruction.operands[0].shape, instruction.shape
    strides = source.strides
    return (
        not target.is_dynamic
        and _tiles(source) == _tiles(target)
        and all(s == strides[d] for s, d, n in zip(target.strides, instruction.dimensions, target.dims) if n != 1)
    )
