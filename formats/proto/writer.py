"""Module → HloModuleProto, as XLA writes and reads it.

Raises InputError for an attribute that has no field in the proto; only those of CONFIG are dropped.
"""

from __future__ import annotations

import re
from typing import Any

from ...hlo.attributes import ComputationLayout
from ...hlo.errors import InputError
from ...hlo.ir import Computation, Instruction, Literal, Module
from ...hlo.opcodes import Op
from .fields import ORIGINAL, field_of
from .rows import CALLED
from .schema import message
from .shapes import write_literal, write_shape
from .text_attributes import read_frontend_attributes
from .tokens import Tokens

CONFIG = frozenset(
    {
        "replica_count",
        "num_partitions",
        "alias_passthrough_params",
        "allow_spmd_sharding_propagation_to_parameters",
        "allow_spmd_sharding_propagation_to_output",
    }
)
"""Header attributes that XLA keeps in its HloModuleConfig: HloModuleProto has no fields for them."""


def write_module(module: Module) -> Any:
    """The HloModuleProto of a module. Ids of computations and ids of instructions each count from 0 in the module."""
    proto = message("HloModuleProto")()
    proto.name, proto.entry_computation_name = module.name, module.entry.name
    ids = {c: n for n, c in enumerate(module.computations)}
    numbers = {i: n for n, i in enumerate(module.instructions())}
    names = _unique_names(module)
    fused = {c for i in module.instructions() if i.opcode is Op.FUSION for c in i.called()}
    for computation in module.computations:
        _computation(computation, proto.computations.add(), ids, numbers, names, computation in fused)
    proto.entry_computation_id = ids[module.entry]
    layout = module.attributes.get("entry_computation_layout")
    if layout is None:
        layout = ComputationLayout(module.parameter_shapes, module.result_shape)
    _program_shape(layout, [p.name for p in module.entry.parameters], proto.host_program_shape)
    _header(module, proto)
    if module.attributes.get("is_scheduled"):
        for computation in module.computations:
            if computation not in fused:
                sequence = proto.schedule.sequences[ids[computation]]
                sequence.instruction_ids.extend(numbers[i] for i in computation.instructions)
    return proto


def _unique_names(module: Module) -> dict[Instruction, str]:
    """Names that are unique in the module, as XLA requires: text may repeat a name in another computation.

    Later instructions of the same name become name.1, name.2, …
    """
    taken = {i.name for i in module.instructions()}
    used: set[str] = set()
    counters: dict[str, int] = {}
    out: dict[Instruction, str] = {}
    for instruction in module.instructions():
        name = instruction.name
        while name in used or (name is not instruction.name and name in taken):
            counters[instruction.name] = number = counters.get(instruction.name, 0) + 1
            name = f"{instruction.name}.{number}"
        used.add(name)
        out[instruction] = name
    return out


def _program_shape(layout: ComputationLayout, names: list[str], proto: Any) -> None:
    for shape in layout.parameters:
        write_shape(shape, proto.parameters.add())
    write_shape(layout.result, proto.result)
    proto.parameter_names.extend(names)


def _computation(
    computation: Computation,
    proto: Any,
    ids: dict[Computation, int],
    numbers: dict[Instruction, int],
    names: dict[Instruction, str],
    fused: bool,
) -> None:
    proto.name, proto.id, proto.root_id = computation.name, ids[computation], numbers[computation.root]
    proto.is_fusion_computation = fused
    parameters = computation.parameters
    layout = ComputationLayout(tuple(p.shape for p in parameters), computation.root.shape)
    _program_shape(layout, [p.name for p in parameters], proto.program_shape)
    for key, value in computation.attributes.items():
        if key != "execution_thread":
            raise InputError(f"{key} of computation {computation.name} cannot be written to a proto")
        proto.execution_thread = value
    for instruction in computation.instructions:
        try:
            _instruction(instruction, proto.instructions.add(name=names[instruction]), computation, ids, numbers)
        except InputError as error:
            raise InputError(
                f"{instruction.name}: {error.message}", location=instruction.location, remedy=error.remedy
            ) from None


def _instruction(
    instruction: Instruction,
    proto: Any,
    computation: Computation,
    ids: dict[Computation, int],
    numbers: dict[Instruction, int],
) -> None:
    opcode = instruction.opcode
    proto.opcode, proto.id = opcode.value, numbers[instruction]
    write_shape(instruction.shape, proto.shape)
    proto.operand_ids.extend(numbers[o] for o in instruction.operands)
    proto.called_computation_ids.extend(ids[c] for c in _called(instruction))
    if opcode in (Op.CONVOLUTION, Op.CUSTOM_CALL):
        proto.feature_group_count = proto.batch_group_count = 1
    if opcode in (Op.CONVOLUTION, Op.REDUCE_WINDOW, Op.SELECT_AND_SCATTER):
        proto.window.SetInParent()
    if opcode is Op.CUSTOM_CALL:
        proto.custom_call_api_version = ORIGINAL
    for key, value in instruction.attributes.items():
        if key == "parameter_number":
            proto.parameter_number = value
        elif key == "literal" and isinstance(value, Literal):
            write_literal(value, proto.literal)
        elif key == "control-predecessors":
            by_name = computation.by_name
            proto.control_predecessor_ids.extend(numbers[by_name[name]] for name in value if name in by_name)
        elif not _is_called(value):
            field = field_of(opcode, key)
            if field is None:
                raise InputError(f"the attribute {key} has no field in HloInstructionProto", remedy=f"leave {key} out")
            field.write(proto, value)


def _is_called(value: Any) -> bool:
    return isinstance(value, Computation) or (
        isinstance(value, tuple) and bool(value) and isinstance(value[0], Computation)
    )


def _called(instruction: Instruction) -> tuple[Computation, ...]:
    keys = CALLED.get(instruction.opcode)
    if keys is None or not all(isinstance(instruction.attributes.get(k), Computation) for k in keys):
        return instruction.called()
    return tuple(instruction.attributes[k] for k in keys)


# -- the header -------------------------------------------------------------------------------------------------------
def _header(module: Module, proto: Any) -> None:
    for key, value in module.attributes.items():
        if key in CONFIG or key in ("is_scheduled", "entry_computation_layout"):
            continue
        if key == "input_output_alias":
            for a in value:
                proto.input_output_alias.entries.add(
                    output_shape_index=a.output,
                    parameter_number=a.parameter,
                    parameter_shape_index=a.parameter_index,
                    kind=2 if a.kind == "must-alias" else 1,
                )
        elif key == "buffer_donor":
            for d in value:
                proto.buffer_donor.entries.add(parameter_number=d.parameter, parameter_shape_index=d.index)
        elif key == "frontend_attributes":
            read_frontend_attributes(value.text, proto.frontend_attributes)
        elif key in _TABLES:
            _TABLES[key](_rows(value.text), proto.stack_frame_index)
        else:
            raise InputError(f"the module's {key} cannot be written to a proto", remedy=f"leave {key} out")


_ROW = re.compile(r'\d+\s+("(?:[^"\\]|\\.)*"|\{[^{}]*\})')


def _rows(text: str) -> list[str]:
    return _ROW.findall(text)


def _names(field: str) -> Any:
    def write(rows: list[str], index: Any) -> None:
        getattr(index, field).extend(Tokens(row, field).string() for row in rows)

    return write


def _records(field: str) -> Any:
    def write(rows: list[str], index: Any) -> None:
        for row in rows:
            t, record = Tokens(row, field), getattr(index, field).add()
            t.expect("{")
            while not t.eat("}"):
                key = t.next()
                t.expect("=")
                if key not in record.DESCRIPTOR.fields_by_name:
                    t.fail(f"{key!r} is no field of it")
                value = t.integer()
                setattr(record, key, value - 1 if key == "parent_frame_id" and value > 0 else value)
                t.eat(",")

    return write


_TABLES = {
    "FileNames": _names("file_names"),
    "FunctionNames": _names("function_names"),
    "FileLocations": _records("file_locations"),
    "StackFrames": _records("stack_frames"),
}
