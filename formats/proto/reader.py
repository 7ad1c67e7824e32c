"""HloModuleProto → Module. Ids become references; a wrong value raises InputError with the path of its field."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from ...hlo.attributes import Alias, ComputationLayout, Donor, Raw
from ...hlo.dtypes import DType
from ...hlo.errors import InputError
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opcodes import BY_NAME, Op
from ...hlo.opset import OPSET
from ...hlo.shapes import Shape
from .fields import PERMUTES, field_of, split_slice_sizes
from .rows import CALLED, COMMON, ONES, ROWS
from .shapes import read_literal, read_shape
from .text_attributes import frontend_attributes_text, quoted

DAMAGED = "is the proto damaged?"
LOW = (1 << 32) - 1


def read_module(proto: Any) -> Module:
    """The Module of an HloModuleProto. Raises InputError if the proto is damaged or not supported.

    Fields that HLO text cannot express (profile_info, payloads, device_assignment, ids) are dropped.
    """
    reader = _Reader(proto)
    for i, computation in enumerate(proto.computations):
        reader.computation(computation, f"computations[{i}]")
    if not reader.computations:
        raise InputError("computations: the module has none", remedy=DAMAGED)
    entry = reader.by_id.get(proto.entry_computation_id)
    if entry is None:
        raise InputError(
            f"entry_computation_id: no computation has the id {proto.entry_computation_id}", remedy=DAMAGED
        )
    return Module(_name(proto.name, "name"), tuple(reader.computations), entry, _header(proto, entry))


def _name(name: str, where: str) -> str:
    if not name:
        raise InputError(f"{where}: empty", remedy=DAMAGED)
    return name


class _Reader:
    def __init__(self, proto: Any):
        self.by_id: dict[int, Computation] = {}
        self.computations: list[Computation] = []
        self.names: set[str] = set()
        self.sequences = {k: list(v.instruction_ids) for k, v in proto.schedule.sequences.items()}

    def computation(self, proto: Any, where: str) -> None:
        name = _name(proto.name, f"{where}.name")
        if name in self.names or proto.id in self.by_id:
            raise InputError(f"{where}: a second computation {name!r} with id {proto.id}", remedy=DAMAGED)
        made: dict[int, Instruction] = {}
        for i, instruction in enumerate(proto.instructions):
            path = f"{where}.instructions[{i}]"
            if instruction.id in made:
                raise InputError(f"{path}.id: {instruction.id} is used twice", remedy=DAMAGED)
            made[instruction.id] = self.instruction(instruction, made, path)
        if len({i.name for i in made.values()}) != len(made):
            raise InputError(f"{where}.instructions: two have the same name", remedy=DAMAGED)
        made = _with_predecessors(proto, made, where)
        root = _find(made, proto.root_id)
        if root is None:
            raise InputError(f"{where}.root_id: no instruction has the id {proto.root_id}", remedy=DAMAGED)
        order = self.order(proto, made, where)
        _check_parameters(order, where)
        thread = proto.execution_thread
        attributes = {"execution_thread": thread} if thread not in ("", "main") else {}
        computation = Computation(name, order, root, MappingProxyType(attributes))
        self.names.add(name)
        self.by_id[proto.id] = computation
        self.computations.append(computation)

    def order(self, proto: Any, made: dict[int, Instruction], where: str) -> tuple[Instruction, ...]:
        """The instructions in the order of the schedule, if there is one. Operands must come before their users."""
        ids = self.sequences.get(proto.id)
        if ids is None:
            return tuple(made.values())
        order = tuple(i for i in (_find(made, n) for n in ids) if i is not None)
        if len(order) != len(made) or len(set(order)) != len(made):
            raise InputError(f"schedule.sequences[{proto.id}]: not the instructions of {where}", remedy=DAMAGED)
        done: set[Instruction] = set()
        for instruction in order:
            if not done.issuperset(instruction.operands):
                raise InputError(
                    f"schedule.sequences[{proto.id}]: {instruction.name} comes before its operand", remedy=DAMAGED
                )
            done.add(instruction)
        return order

    def instruction(self, proto: Any, made: dict[int, Instruction], where: str) -> Instruction:
        name = _name(proto.name, f"{where}.name")
        opcode = BY_NAME.get(proto.opcode)
        if opcode is None:
            raise InputError(f"{where}.opcode: unknown opcode {proto.opcode!r}", remedy="is it of a newer XLA?")
        operands = []
        for n, number in enumerate(proto.operand_ids):
            operand = _find(made, number)
            if operand is None:
                raise InputError(
                    f"{where}.operand_ids[{n}]: no instruction before it has the id {number}", remedy=DAMAGED
                )
            operands.append(operand)
        row = OPSET[opcode]
        if not row.low <= len(operands) <= row.high:
            raise InputError(
                f"{where}.operand_ids: {opcode.value} takes {row.arity}, not {len(operands)}", remedy=DAMAGED
            )
        if not proto.HasField("shape"):
            raise InputError(f"{where}.shape: missing", remedy=DAMAGED)
        shape = read_shape(proto.shape, f"{where}.shape")
        attributes = self.attributes(opcode, proto, shape, operands, where)
        return Instruction(opcode, name, shape, tuple(operands), MappingProxyType(attributes))

    def attributes(
        self, opcode: Op, proto: Any, shape: Shape, operands: list[Instruction], where: str
    ) -> dict[str, Any]:
        out: dict[str, Any] = {}
        if opcode is Op.PARAMETER:
            out["parameter_number"] = proto.parameter_number
        if opcode is Op.CONSTANT:
            out["literal"] = read_literal(proto.literal, f"{where}.literal", shape)
        self.called(opcode, proto, operands, where, out)
        for row in (*ROWS.get(opcode, ()), *COMMON):
            key = row.removesuffix("!")
            field = field_of(opcode, key)
            assert field is not None, key
            value = field.read(proto, where)
            if value is None:
                continue
            if row.endswith("!") or (value not in (0, "", (), False) and not (key in ONES and value == 1)):
                out[key] = value
        if out.get("async_execution_thread") == "main":
            del out["async_execution_thread"]
        if opcode is Op.COMPARE and proto.comparison_order:
            out["type"] = _type_of_order(proto.comparison_order, operands, where)
        if opcode in PERMUTES and "slice_sizes" in out:
            out["slice_sizes"] = split_slice_sizes(out["slice_sizes"], operands, where)
        if out.get("type") is not None and out["type"] == _default_comparison(operands):
            del out["type"]
        if "operand_layout_constraints" in out:
            out.pop("constrain_layout", None)
        return out

    def called(self, opcode: Op, proto: Any, operands: list[Instruction], where: str, out: dict[str, Any]) -> None:
        found = []
        for n, number in enumerate(proto.called_computation_ids):
            computation = self.by_id.get(number)
            if computation is None:
                raise InputError(
                    f"{where}.called_computation_ids[{n}]: no computation before it has the id {number}", remedy=DAMAGED
                )
            found.append(computation)
        keys = CALLED.get(opcode)
        if opcode is Op.CONDITIONAL and found:
            is_pred = operands[0].shape.dtype is DType.PRED and len(found) == 2
            if is_pred:
                keys = ("true_computation", "false_computation")
            else:
                out["branch_computations"] = tuple(found)
                return
        if opcode is Op.CUSTOM_CALL and found:
            out["called_computations"] = tuple(found)
        elif keys is not None:
            if len(found) != len(keys):
                raise InputError(
                    f"{where}.called_computation_ids: {opcode.value} calls {len(keys)}, not {len(found)}",
                    remedy=DAMAGED,
                )
            out |= dict(zip(keys, found))
        elif opcode is Op.CONDITIONAL:
            raise InputError(f"{where}.called_computation_ids: a conditional without branches", remedy=DAMAGED)


def _find(made: dict[int, Instruction], number: int) -> Instruction | None:
    """The instruction with this id or with its lower 32 bits: versions of XLA write one or the other."""
    found = made.get(number)
    return found if found is not None else made.get(number & LOW)


def _with_predecessors(proto: Any, made: dict[int, Instruction], where: str) -> dict[int, Instruction]:
    """Adds control predecessors, by name. This needs all instructions: a predecessor may be anywhere in the list."""
    rows = [p for p in proto.instructions if p.control_predecessor_ids]
    for row in rows:
        names = []
        for number in row.control_predecessor_ids:
            before = _find(made, number)
            if before is None:
                raise InputError(f"{where}: a control predecessor of {row.name!r} is missing", remedy=DAMAGED)
            names.append(before.name)
        attributes = {**made[row.id].attributes, "control-predecessors": tuple(names)}
        _replace(made, row.id, attributes)
    return made


def _replace(made: dict[int, Instruction], number: int, attributes: dict[str, Any]) -> None:
    old = made[number]
    object.__setattr__(old, "attributes", MappingProxyType(attributes))  # frozen, but not shared with anyone yet


def _check_parameters(instructions: tuple[Instruction, ...], where: str) -> None:
    numbers = sorted(i.parameter_number for i in instructions if i.opcode is Op.PARAMETER)
    if numbers != list(range(len(numbers))):
        raise InputError(f"{where}.instructions: the parameters are numbered {numbers[:20]}", remedy=DAMAGED)


def _type_of_order(order: str, operands: list[Instruction], where: str) -> str:
    """The comparison type of an order, which jaxlib 0.12 writes instead."""
    default = _default_comparison(operands)
    if order == "PARTIAL" or (order == "TOTAL" and default != "FLOAT"):
        return default
    if order == "TOTAL":
        return "TOTALORDER"
    raise InputError(f"{where}.comparison_order: {order!r} is not supported", remedy="choose TOTAL or PARTIAL")


def _default_comparison(operands: list[Instruction]) -> str:
    dtype = operands[0].shape.dtype
    if dtype.is_float or dtype.is_complex:
        return "FLOAT"
    return "SIGNED" if dtype.is_signed else "UNSIGNED"


# -- the header -------------------------------------------------------------------------------------------------------
def _header(proto: Any, entry: Computation) -> MappingProxyType[str, Any]:
    out: dict[str, Any] = {}
    if proto.HasField("schedule") and proto.schedule.sequences:
        out["is_scheduled"] = True
    aliases = proto.input_output_alias.entries
    if aliases:
        out["input_output_alias"] = tuple(
            Alias(
                tuple(a.output_shape_index),
                a.parameter_number,
                tuple(a.parameter_shape_index),
                "must-alias" if a.kind == 2 else "may-alias",
            )
            for a in aliases
        )
    donors = proto.buffer_donor.entries
    if donors:
        out["buffer_donor"] = tuple(Donor(d.parameter_number, tuple(d.parameter_shape_index)) for d in donors)
    if proto.HasField("host_program_shape"):
        out["entry_computation_layout"] = _entry_layout(proto.host_program_shape, entry)
    text = frontend_attributes_text(proto.frontend_attributes)
    if text:
        out["frontend_attributes"] = Raw(text)
    return MappingProxyType(out | _sections(proto.stack_frame_index))


def _entry_layout(proto: Any, entry: Computation) -> ComputationLayout:
    where = "host_program_shape"
    parameters = tuple(read_shape(s, f"{where}.parameters[{i}]") for i, s in enumerate(proto.parameters))
    result = read_shape(proto.result, f"{where}.result")
    if list(map(_kinds, parameters)) != [_kinds(p.shape) for p in entry.parameters]:
        raise InputError(f"{where}.parameters: not those of the entry computation {entry.name!r}", remedy=DAMAGED)
    return ComputationLayout(parameters, result)


def _kinds(shape: Shape) -> list[tuple[DType, int]]:
    """Type and rank of each leaf, without sizes, which may differ where they are dynamic."""
    return [(leaf.dtype, leaf.rank) for _, leaf in shape.leaves()]


def _sections(index: Any) -> dict[str, Raw]:
    """The stack frame tables as they are in text; rows are numbered from 1."""
    places = [
        f"{{file_name_id={f.file_name_id} function_name_id={f.function_name_id} line={f.line} end_line={f.end_line}"
        f" column={f.column} end_column={f.end_column}}}"
        for f in index.file_locations
    ]
    frames = [
        f"{{file_location_id={f.file_location_id} parent_frame_id={f.parent_frame_id + 1}}}"
        for f in index.stack_frames  # text numbers parents from 1, and also writes 1 for "no parent"
    ]
    tables = {
        "FileNames": list(map(quoted, index.file_names)),
        "FunctionNames": list(map(quoted, index.function_names)),
        "FileLocations": places,
        "StackFrames": frames,
    }
    return {key: Raw("\n".join(f"{n} {row}" for n, row in enumerate(rows, 1))) for key, rows in tables.items() if rows}
