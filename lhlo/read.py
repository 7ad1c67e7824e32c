"""Accessors of LHLO ops: what an op reads, writes and means, independent of the form of its operands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mlir import ir

from ..hlo.errors import Location, VerificationError
from ..hlo.ir import Literal
from ..hlo.opcodes import Op
from ..hlo.records import dataclass
from ..hlo.shapes import Shape
from .attributes import attributes_of, value_of
from .literals import literal_of
from .memrefs import shape_of_memref
from .module import LhloModule
from .table import OP_FORMS, OPCODE


@dataclass(frozen=True, eq=False, slots=True)
class Kernel:
    """One kernel function: its symbol, its arguments, its views and its one op."""

    name: str
    function: ir.Operation
    arguments: tuple[ir.Value, ...]
    argument_attributes: tuple[dict[str, ir.Attribute], ...]
    views: tuple[ir.Operation, ...]
    op: ir.Operation

    def argument_of(self, value: ir.Value) -> int:
        """The number of the argument that contains a memref; views are followed."""
        while not isinstance(value, ir.BlockArgument):
            value = value.owner.operands[0]
        return value.arg_number


def opcode(op: ir.Operation) -> Op | None:
    """The HLO opcode of an op; None for views, allocas, yields and forwarding copies, which are no HLO instructions."""
    found = OPCODE.get(op.name)
    return None if found is Op.COPY and "forward" in op.attributes else found


def is_mixed(op: ir.Operation) -> bool:
    return op.name in OPCODE and OP_FORMS[OPCODE[op.name]].mixed


def operands(op: ir.Operation) -> Sequence[ir.Value]:
    """All memrefs of an op, inputs before outputs."""
    if not is_mixed(op):
        return list(op.operands)
    return list(_last(op.regions[len(op.regions) - 1].blocks[0]).operands)


def output_count(op: ir.Operation) -> int:
    """The number of memrefs that an op writes. They are its last ones."""
    if "outputs" in op.attributes:
        return int(op.attributes["outputs"].value)
    return OP_FORMS[OPCODE[op.name]].outputs


def inputs(op: ir.Operation) -> Sequence[ir.Value]:
    values = operands(op)
    return values[: len(values) - output_count(op)]


def outputs(op: ir.Operation) -> Sequence[ir.Value]:
    values = operands(op)
    return values[len(values) - output_count(op) :]


def bodies(op: ir.Operation) -> list[ir.Block]:
    """The blocks of an op's body regions; the operands region is left out."""
    if op.name not in OPCODE:
        return []
    return [op.regions[i].blocks[0] for i in range(len(OP_FORMS[OPCODE[op.name]].bodies))]


def shape_of(value: ir.Value) -> Shape:
    """The HLO shape of a memref. Its layout is explicit unless it is a scalar."""
    return shape_of_memref(str(value.type))


def attributes(op: ir.Operation) -> dict[str, Any]:
    """The HLO attributes in the form of `Instruction.attributes`, without called computations and `literal`."""
    return attributes_of(op)


def literal(op: ir.Operation) -> Literal:
    """The value of an `lhlo.constant`."""
    return literal_of(op.attributes["value"], shape_of(op.operands[0]))


def writers(block: ir.Block) -> dict[ir.Value, ir.Operation]:
    """Memref → the op of the block that writes it."""
    found = {}
    for op in block.operations:
        operation = op.operation
        if operation.name in OPCODE:
            for value in outputs(operation):
                found[value] = operation
    return found


def kernels(lhlo: LhloModule) -> Iterator[Kernel]:
    """The kernel functions of a module, in order."""
    for op in lhlo.module.body.operations:
        function = op.operation
        if function.name == "func.func" and "lhlo.kernel" in function.attributes:
            yield _kernel(function)


def _kernel(function: ir.Operation) -> Kernel:
    name = function.attributes["sym_name"].value
    if not name.isprintable():
        raise VerificationError(
            f"the kernel's name {name!r} has characters that no symbol can have",
            location=location_of(function),
            remedy="use letters, digits, '_' and '.'",
        )
    blocks = function.regions[0].blocks
    if len(blocks) != 1:
        raise VerificationError(f"kernel '{name}' needs one block, has {len(blocks)}", location=location_of(function))
    operations = [op.operation for op in blocks[0].operations]
    views = tuple(op for op in operations if op.name == "lhlo.view")
    rest = [op for op in operations if op.name not in ("lhlo.view", "func.return")]
    if len(rest) != 1 or rest[0].name not in OPCODE:
        raise VerificationError(
            f"kernel '{name}' needs one LHLO op besides views, has {', '.join(op.name for op in rest) or 'none'}",
            location=location_of(function),
            remedy="put several ops into one lhlo.fusion",
        )
    arguments = tuple(blocks[0].arguments)
    return Kernel(name, function, arguments, argument_attributes(function, len(arguments)), views, rest[0])


def argument_attributes(function: ir.Operation, count: int) -> tuple[dict[str, ir.Attribute], ...]:
    """The attributes of each of the `count` arguments of a function."""
    if "arg_attrs" not in function.attributes:
        return tuple({} for _ in range(count))
    return tuple(
        dict(a.items()) if hasattr(a, "items") else {a[i].name: a[i].attr for i in range(len(a))}
        for a in function.attributes["arg_attrs"]
    )


def exact_of(op: ir.Operation) -> Mapping[str, Any]:
    """The `exact` attribute: shapes and parameter positions that memref types cannot express."""
    return value_of(op.attributes["exact"]) if "exact" in op.attributes else {}


def location_of(op: ir.Operation, file: str = "<lhlo>") -> Location | None:
    """The location of an op in the text that it was parsed from; None if unknown."""
    place = op.location
    if not place.is_a_file() or place.start_line < 1:
        return None
    return Location(place.start_line, max(place.start_col, 1), file)


def _last(block: ir.Block) -> ir.Operation:
    return block.operations[len(block.operations) - 1].operation
