"""LHLO → HLO: reads kernels back as KernelRequests that have the same structure as the original ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from mlir import ir

from ..hlo.errors import VerificationError
from ..hlo.ir import NO_ATTRIBUTES, Computation, Instruction
from ..hlo.opcodes import Op
from ..hlo.shapes import Shape, tuple_shape
from ..planning.plan import BufferSlice, KernelArgument, KernelRequest
from .attributes import value_of
from .literals import literal_of
from .memrefs import shape_from_text, shape_of_memref
from .read import Kernel, attributes, bodies, exact_of, location_of, opcode, operands, output_count
from .table import OP_FORMS


class Reader:
    """The state of one read: shapes by MLIR type, and the current kernel's computations by name.

    file: the name in the locations of errors and instructions; MLIR's locations lack it.
    """

    def __init__(self, file: str = "<lhlo>") -> None:
        self.file = file
        self.types: dict[ir.Type, Shape] = {}
        self.computations: dict[str, list[Computation]] = {}
        self.names: dict[str, int] = {}

    def shape(self, value: ir.Value) -> Shape:
        type_ = value.type
        found = self.types.get(type_)
        if found is None:
            found = self.types[type_] = shape_of_memref(str(type_))
        return found

    def kernel(self, kernel: Kernel) -> KernelRequest:
        instruction = self.step(kernel.op)
        values, count = operands(kernel.op), output_count(kernel.op)
        sources, targets = values[: len(values) - count], values[len(values) - count :]
        written = {kernel.argument_of(v) for v in targets}
        scratch = [n for n, given in enumerate(kernel.argument_attributes) if "lhlo.scratch" in given]
        written.update(scratch)
        return KernelRequest(
            kernel.name,
            instruction,
            tuple(self.argument(kernel, i, i in written) for i in range(len(kernel.arguments))),
            tuple(kernel.argument_of(v) for v in sources),
            tuple(kernel.argument_of(v) for v in targets),
            scratch[0] if scratch else -1,
        )

    def step(self, op: ir.Operation) -> Instruction:
        """The instruction of an op in a function. Its operands become parameters of the same shapes."""
        self.computations, self.names = {}, {}
        values, count = operands(op), output_count(op)
        sources, targets = values[: len(values) - count], values[len(values) - count :]
        exact = exact_of(op)
        stubs: dict[ir.Value, Instruction] = {}
        for i, value in enumerate(sources):
            if value not in stubs:
                text = exact.get(f"operand{i}")
                shape = shape_from_text(text) if text else self.shape(value)
                stubs[value] = Instruction(
                    Op.PARAMETER, f"operand{i}", shape, (), MappingProxyType({"parameter_number": i})
                )
        return self.instruction(op, tuple(stubs[v] for v in sources), targets, exact)

    def argument(self, kernel: Kernel, number: int, written: bool) -> KernelArgument:
        given = kernel.argument_attributes[number]
        shape = self.shape(kernel.arguments[number])
        place = value_of(given["lhlo.slice"]) if "lhlo.slice" in given else (number, 0, shape.bytes)
        alignment = value_of(given["lhlo.alignment"]) if "lhlo.alignment" in given else shape.dtype.bytes
        return KernelArgument(BufferSlice(*place), alignment, written or "lhlo.written" in given)

    def instruction(
        self, op: ir.Operation, inputs: tuple[Instruction, ...], targets: Sequence[ir.Value], exact: Mapping[str, Any]
    ) -> Instruction:
        """The HLO instruction of one LHLO op. inputs: its operands, already read."""
        code = opcode(op)
        if code is None:
            raise VerificationError(f"{op.name} is no HLO instruction", location=location_of(op, self.file))
        named = op.attributes
        shape = shape_from_text(named["shape"].value) if "shape" in named else self.shape_of_all(targets)
        found = attributes(op)
        if code is Op.CONSTANT:
            found["literal"] = literal_of(named["value"], shape)
        if code is Op.FUSION:
            found.setdefault("kind", "kLoop")
        names = [a.value for a in named["computations"]] if "computations" in named else ()
        for b, (key, block) in enumerate(zip(OP_FORMS[code].bodies, bodies(op), strict=True)):
            found[key] = self.computation(op, b, block, names[b] if b < len(names) else f"{key}.{b}", exact)
        name = named["name"].value if "name" in named else self.fresh(code)
        return Instruction(
            *(code, name, shape, inputs, MappingProxyType(found) if found else NO_ATTRIBUTES),
            location_of(op, self.file),
        )

    def fresh(self, code: Op) -> str:
        number = self.names[code.value] = self.names.get(code.value, 0) + 1
        return f"{code.value}.lhlo.{number}"

    def shape_of_all(self, values: Sequence[ir.Value]) -> Shape:
        return self.shape(values[0]) if len(values) == 1 else tuple_shape(*map(self.shape, values))

    def computation(
        self, op: ir.Operation, number: int, block: ir.Block, name: str, exact: Mapping[str, Any]
    ) -> Computation:
        """The computation of a body region. Equal regions of one name in a kernel share a Computation object."""
        new = Body(self, op, number, block, exact).computation(name)
        for old in self.computations.setdefault(name, []):
            if same_computation(old, new):
                return old
        self.computations[name].append(new)
        return new


class Body:
    """Reads one body region."""

    def __init__(self, reader: Reader, op: ir.Operation, number: int, block: ir.Block, exact: Mapping[str, Any]):
        self.reader, self.op, self.block = reader, op, block
        self.exact = {k.removeprefix(f"body{number}_"): v for k, v in exact.items() if k.startswith(f"body{number}_")}
        self.names = _parameter_names(op, number)
        self.owner: dict[ir.Value, tuple[Instruction, int]] = {}

    def computation(self, name: str) -> Computation:
        arguments = list(self.block.arguments)
        written = _written(self.block)
        first_output = next((i for i, a in enumerate(arguments) if a in written), len(arguments))
        outputs = arguments[first_output:]
        parameters = self.parameters(arguments[:first_output])
        steps: list[Instruction] = []
        for op in self.block.operations:
            self.step(op.operation, steps)
        root = self.root(outputs, steps)
        instructions = list(steps)
        for place, parameter in sorted(
            zip(self.exact.get("places", range(len(parameters))), parameters, strict=True), key=lambda pair: pair[0]
        ):
            instructions.insert(place, parameter)
        self.check_names(instructions)
        return Computation(name, tuple(instructions), root)

    def check_names(self, instructions: Sequence[Instruction]) -> None:
        """NAME1: the parameters and ops of a body have different names."""
        seen: set[str] = set()
        for i in instructions:
            if i.name in seen:
                raise VerificationError(
                    f"two values of a body of {self.op.name} have the name '{i.name}' [NAME1]",
                    location=i.location or location_of(self.op, self.reader.file),
                    remedy="rename one",
                )
            seen.add(i.name)

    def parameters(self, arguments: Sequence[ir.Value]) -> list[Instruction]:
        parameters, at = [], 0
        while at < len(arguments):
            number = len(parameters)
            text = self.exact.get(f"parameter{number}")
            shape = shape_from_text(text) if text else self.reader.shape(arguments[at])
            name = self.names[number] if number < len(self.names) else f"parameter.{number}"
            parameter = Instruction(Op.PARAMETER, name, shape, (), MappingProxyType({"parameter_number": number}))
            leaves = sum(1 for _ in shape.leaves())
            for leaf in range(leaves):
                self.owner[arguments[at + leaf]] = parameter, leaf
            parameters.append(parameter)
            at += leaves
        return parameters

    def step(self, op: ir.Operation, steps: list[Instruction]) -> None:
        if op.name in ("memref.alloca", "vector.yield"):
            return
        values, count = operands(op), output_count(op)
        targets = values[len(values) - count :]
        if opcode(op) is None:
            for source, target in zip(values[:count], targets, strict=True):
                self.owner[target] = self.owner[source]
            return
        inputs = self.inputs(op, values[: len(values) - count])
        instruction = self.reader.instruction(op, inputs, targets, exact_of(op))
        for leaf, target in enumerate(targets):
            self.owner[target] = instruction, leaf
        steps.append(instruction)

    def inputs(self, op: ir.Operation, values: Sequence[ir.Value]) -> tuple[Instruction, ...]:
        """The instructions whose leaves, in order, are `values`. Raises VerificationError if a value has no writer."""
        found, at = [], 0
        while at < len(values):
            owner = self.owner.get(values[at])
            if owner is None:
                raise VerificationError(
                    f"{op.name} reads a memref that nothing before it writes",
                    location=location_of(op, self.reader.file),
                )
            instruction = owner[0]
            leaves = sum(1 for _ in instruction.shape.leaves())
            if [self.owner.get(v) for v in values[at : at + leaves]] != [(instruction, leaf) for leaf in range(leaves)]:
                raise VerificationError(
                    f"{op.name} reads a part of the tuple '{instruction.name}'",
                    location=location_of(op, self.reader.file),
                    remedy="read it through lhlo.get_tuple_element, or list all its leaves in order",
                )
            found.append(instruction)
            at += leaves
        return tuple(found)

    def root(self, outputs: Sequence[ir.Value], steps: list[Instruction]) -> Instruction:
        """The instruction that writes the outputs; a new tuple instruction if several do."""
        owners = [self.owner[o] for o in outputs]
        if not owners:
            raise VerificationError(
                f"a body of {self.op.name} writes no output", location=location_of(self.op, self.reader.file)
            )
        root = owners[0][0]
        if owners == [(root, leaf) for leaf in range(sum(1 for _ in root.shape.leaves()))]:
            return root
        if any(owner.shape.is_tuple for owner, _ in owners):
            raise VerificationError(
                f"the outputs of {self.op.name} mix leaves of tuples",
                location=location_of(self.op, self.reader.file),
                remedy="write them by one lhlo.tuple",
            )
        leaves = tuple(owner for owner, _ in owners)
        steps.append(
            Instruction(Op.TUPLE, self.reader.fresh(Op.TUPLE), tuple_shape(*(leaf.shape for leaf in leaves)), leaves)
        )
        return steps[-1]


def _written(block: ir.Block) -> set[ir.Value]:
    found = set()
    for op in block.operations:
        operation = op.operation
        if operation.name.startswith("lhlo."):
            values = operands(operation)
            found.update(values[len(values) - output_count(operation) :])
    return found


def _parameter_names(op: ir.Operation, number: int) -> list[str]:
    if "parameters" not in op.attributes:
        return []
    rows = value_of(op.attributes["parameters"])
    if rows and isinstance(rows[0], tuple):
        rows = rows[number] if number < len(rows) else ()
    return list(rows)


def same_computation(a: Computation, b: Computation) -> bool:
    """Whether two computations have equal structure: names, order, opcodes, shapes, operands, attributes."""
    if a is b:
        return True
    if (a.name, len(a.instructions), a.root.name) != (b.name, len(b.instructions), b.root.name):
        return False
    return all(same_instruction(x, y) for x, y in zip(a.instructions, b.instructions, strict=True))


def same_instruction(a: Instruction, b: Instruction) -> bool:
    """Whether two instructions are equal but for locations, attributes that LHLO drops, and what operands compute."""
    if (a.opcode, a.name, a.shape, [o.name for o in a.operands]) != (
        b.opcode,
        b.name,
        b.shape,
        [o.name for o in b.operands],
    ):
        return False
    return a.attributes.keys() == b.attributes.keys() and all(
        _same(a.attributes[k], b.attributes[k]) for k in a.attributes
    )


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, Computation) and isinstance(b, Computation):
        return same_computation(a, b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b) and a == b
