"""HloModuleProto that XLA has optimised → one that its compiler takes again: what a module means stays, how it is to be
computed goes.

XLA's compiler expects the HLO of a front end. A fusion, a bitcast or a chosen layout in its input makes it refuse the
module, or ends its process. Works on the proto that XLA's own parser made, so that none of the testbed's reading of HLO
is between a module's text and XLA's result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from ...formats.proto.schema import enum_number, message

OPTIMISED = frozenset({"fusion", "bitcast", "copy", "copy-start", "copy-done"})
"""Opcodes that XLA's optimiser writes, and no front end."""


NOT_ARRAYS = frozenset(enum_number("PrimitiveType", name) for name in ("TUPLE", "TOKEN", "OPAQUE_TYPE"))


def is_optimised(proto: Any) -> bool:
    """Whether a HloModuleProto is XLA's own output."""
    return bool(proto.schedule.sequences) or any(
        i.opcode in OPTIMISED for computation in proto.computations for i in computation.instructions
    )


def unoptimised(data: bytes) -> bytes:
    """A serialized HloModuleProto as XLA's compiler takes it; the same bytes if nothing in it was optimised."""
    proto = message("HloModuleProto").FromString(data)
    if not is_optimised(proto):
        return data
    for field in ("schedule", "input_output_alias", "buffer_donor", "cross_program_prefetches", "profile_info"):
        proto.ClearField(field)
    _reset_program(proto.host_program_shape)
    shapes = _shapes(proto)
    for computation in proto.computations:
        ids = count(max(i.id for i in computation.instructions) + 1)
        computation.is_fusion_computation = False
        _reset_program(computation.program_shape)
        rewritten = [new for i in computation.instructions for new in _rewritten(i, shapes, ids)]
        del computation.instructions[:]
        computation.instructions.extend(rewritten)
    return proto.SerializeToString()


def _shapes(proto: Any) -> dict[int, Any]:
    """The shapes of all instructions as they were, by their numbers."""
    shapes = {}
    for computation in proto.computations:
        for instruction in computation.instructions:
            shapes[instruction.id] = message("ShapeProto")()
            shapes[instruction.id].CopyFrom(instruction.shape)
    return shapes


def _rewritten(instruction: Any, shapes: Mapping[int, Any], ids: Iterator[int]) -> list[Any]:
    """What stands in place of an instruction; the last one has its number. shapes: of all, as they were."""
    new = message("HloInstructionProto")()
    new.CopyFrom(instruction)
    new.ClearField("metadata")
    new.ClearField("control_predecessor_ids")
    if new.opcode == "custom-call":
        return [new]  # its configuration is a part of what it computes, and so are its layouts
    for field in ("backend_config", "backend_config_payload", "frontend_attributes", "original_value"):
        new.ClearField(field)
    _reset_layouts(new.shape)
    if new.opcode == "fusion":
        new.opcode = "call"
        new.ClearField("fusion_kind")
        new.ClearField("output_operand_aliasing")
    elif new.opcode == "copy":
        new.opcode = "reshape"
    elif new.opcode == "constant":
        return _constant(new, ids)
    elif new.opcode == "bitcast":
        return _bitcast(new, instruction.shape, shapes[instruction.operand_ids[0]], ids)
    return [new]


class _Steps:
    """A chain of steps from an operand to what stands for an instruction; the last one has its number and name."""

    def __init__(self, like: Any, operand: int, ids: Iterator[int]):
        self.like, self.operand, self.ids = like, operand, ids
        self.made: list[Any] = []

    def add(self, opcode: str, dimensions: Sequence[int], permutation: Sequence[int] = ()) -> None:
        number = next(self.ids)
        step = message("HloInstructionProto")(opcode=opcode, id=number, operand_ids=[self.operand])
        step.name = f"{self.like.name}.{opcode}.{number}"
        step.shape.CopyFrom(_array(self.like.shape.element_type, dimensions))
        step.dimensions.extend(permutation)
        self.made.append(step)
        self.operand = number

    def end(self) -> list[Any]:
        self.made[-1].id, self.made[-1].name = self.like.id, self.like.name
        return self.made


def _bitcast(new: Any, to_shape: Any, from_shape: Any, ids: Iterator[int]) -> list[Any]:
    """Transpose to the order in memory, reshape, transpose from the order in memory."""
    steps = _Steps(new, new.operand_ids[0], ids)
    before, after = _major_to_minor(from_shape), _major_to_minor(to_shape)
    if from_shape.element_type != to_shape.element_type:
        steps.add("bitcast-convert", from_shape.dimensions)
    if before != sorted(before):
        steps.add("transpose", [from_shape.dimensions[d] for d in before], before)
    steps.add("reshape", [to_shape.dimensions[d] for d in after])
    if after != sorted(after):
        steps.add("transpose", to_shape.dimensions, [after.index(d) for d in range(len(after))])
    return steps.end()


def _constant(new: Any, ids: Iterator[int]) -> list[Any]:
    """A literal's elements stand in their order in memory: a constant of that order, and a transpose."""
    order = _major_to_minor(new.literal.shape)
    if order == sorted(order):
        _reset_layouts(new.literal.shape)
        return [new]
    physical = message("HloInstructionProto")()
    physical.CopyFrom(new)
    physical.id, physical.name = next(ids), f"{new.name}.in_memory"
    shape = _array(new.shape.element_type, [new.shape.dimensions[d] for d in order])
    physical.shape.CopyFrom(shape)
    physical.literal.shape.CopyFrom(shape)
    steps = _Steps(new, physical.id, ids)
    steps.add("transpose", new.shape.dimensions, [order.index(d) for d in range(len(order))])
    return [physical, *steps.end()]


def _array(element_type: int, dimensions: Sequence[int]) -> Any:
    shape = message("ShapeProto")(element_type=element_type, dimensions=dimensions)
    shape.is_dynamic_dimension.extend([False] * len(dimensions))
    _reset_layouts(shape)
    return shape


def _major_to_minor(shape: Any) -> list[int]:
    order = list(reversed(shape.layout.minor_to_major))
    return order if len(order) == len(shape.dimensions) else list(range(len(shape.dimensions)))


def _reset_layouts(shape: Any) -> None:
    """Give every array of a shape the default layout, with the last dimension minor."""
    if shape.element_type not in NOT_ARRAYS:
        shape.layout.Clear()
        shape.layout.minor_to_major.extend(reversed(range(len(shape.dimensions))))
    for part in shape.tuple_shapes:
        _reset_layouts(part)


def _reset_program(program: Any) -> None:
    for shape in (*program.parameters, program.result):
        _reset_layouts(shape)
