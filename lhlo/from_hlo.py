"""HLO → LHLO: writes kernel requests as functions in text and parses the text once.

Text is faster than building one op at a time through the Python bindings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlir import ir

from ..hlo.errors import UnsupportedError
from ..hlo.ir import Computation, Instruction
from ..hlo.opcodes import Op
from ..hlo.records import dataclass, field
from ..hlo.shapes import Shape, shape_to_text
from ..planning.plan import KernelRequest
from .attributes import attributes_text, text_of_string
from .literals import elements_text
from .memrefs import canonical, memref
from .module import LhloModule
from .parse import trusted
from .table import MNEMONIC, OP_FORMS, OpForm


@dataclass(frozen=True, slots=True)
class Memref:
    """A memref value of the function being written: its SSA name and its type."""

    name: str
    type: str


Leaves = tuple[Memref, ...]
"""The memrefs of one HLO value: one for an array, one per leaf for a tuple."""


@dataclass(slots=True)
class Writer:
    """The lines of one function, and a counter for its SSA names."""

    lines: list[str] = field(default_factory=list)
    count: int = 0

    def fresh(self, type: str) -> Memref:
        self.count += 1
        return Memref(f"%{self.count}", type)

    def view(self, source: Memref, type: str, offset: int = 0) -> Memref:
        """Write a view of `type` on the bytes of `source`, starting `offset` bytes into it."""
        new = self.fresh(type)
        attributes = f" {{offset = {offset} : i64}}" if offset else ""
        self.lines.append(f'{new.name} = "lhlo.view"({source.name}){attributes} : ({source.type}) -> {type}')
        return new


def from_kernels(requests: Sequence[KernelRequest], context: ir.Context | None = None) -> LhloModule:
    """One `func.func` per request. The arguments correspond 1:1 to the request's arguments.

    context: an MLIR context with LHLO loaded; None makes a new one.
    """
    return trusted("\n".join(_kernel(request) for request in requests), context)


def _kernel(request: KernelRequest) -> str:
    writer = Writer()
    shapes = list(zip(request.operands, (o.shape for o in request.instruction.operands), strict=True))
    shapes += zip(request.results, request.result_shapes, strict=True)
    types = [""] * len(request.arguments)
    for number, shape in shapes:
        types[number] = types[number] or memref(shape)
    arguments = []
    for i, argument in enumerate(request.arguments):
        types[i] = types[i] or f"memref<{argument.slice.size}xi8>"
        place = argument.slice
        written = ", lhlo.written" if argument.written else ""
        written += ", lhlo.scratch" if i == request.scratch else ""
        arguments.append(
            f"%arg{i}: {types[i]} {{lhlo.alignment = {argument.alignment} : i64, "
            f"lhlo.slice = array<i64: {place.allocation}, {place.offset}, {place.size}>{written}}}"
        )
    operands, results = kernel_values(writer, request, [Memref(f"%arg{i}", t) for i, t in enumerate(types)])
    write_op(writer, request.instruction, operands, results, exact=exact_operands(request.instruction))
    body = "\n".join(writer.lines)
    head = f"func.func @{text_of_string(request.name)}({', '.join(arguments)}) attributes {{lhlo.kernel}}"
    return f"{head} {{\n{body}\nreturn\n}}"


def kernel_values(writer: Writer, request: KernelRequest, arguments: Sequence[Memref]) -> tuple[list[Memref], Leaves]:
    """The memrefs of a request's operands and results. Every HLO value gets a memref of its own."""
    values: dict[tuple[int, Instruction], Memref] = {}
    taken: set[int] = set()
    operands = []
    for argument, operand in zip(request.operands, request.instruction.operands, strict=True):
        key = (argument, operand)
        if key not in values:
            wanted, source = memref(operand.shape), arguments[argument]
            plain = argument not in taken and source.type == wanted
            values[key] = source if plain else writer.view(source, wanted)
            taken.add(argument)
        operands.append(values[key])
    results = []
    for argument, shape in zip(request.results, request.result_shapes, strict=True):
        source = arguments[argument]
        results.append(source if source.type == memref(shape) else writer.view(source, memref(shape)))
    return operands, tuple(results)


def write_op(
    writer: Writer,
    instruction: Instruction,
    operands: Sequence[Memref],
    results: Leaves,
    extra: Sequence[str] = (),
    exact: Sequence[str] = (),
) -> None:
    """Write the LHLO op of one instruction. It reads `operands` (leaves, in order) and writes `results`.

    extra: further attributes. exact: entries of the `exact` attribute, which holds what memref types cannot express.
    Raises UnsupportedError for an opcode without an LHLO op.
    """
    op = instruction.opcode
    form = OP_FORMS.get(op)
    if form is None:
        raise UnsupportedError(
            "lhlo",
            f"{op.value} inside a kernel",
            location=instruction.location,
            remedy="only the plan's steps hold while and conditional",
        )
    attributes = [f"name = {text_of_string(instruction.name)}", *extra]
    if not is_canonical(instruction.shape):
        attributes.append(f"shape = {text_of_string(shape_to_text(instruction.shape))}")
    attributes += attributes_text(instruction)
    values = [*operands, *results]
    if form.mixed:
        _write_mixed(writer, instruction, form, values, len(results), attributes, exact)
        return
    if op is Op.CONSTANT:
        attributes.append(f"value = {elements_text(instruction.literal)}")
    attributes += _exact(exact)
    names, types = ", ".join([v.name for v in values]), ", ".join([v.type for v in values])
    writer.lines.append(f'"lhlo.{MNEMONIC[op]}"({names}) {{{", ".join(attributes)}}} : ({types}) -> ()')


def _write_mixed(
    writer: Writer,
    instruction: Instruction,
    form: OpForm,
    values: Sequence[Memref],
    outputs: int,
    attributes: list[str],
    exact: Sequence[str],
) -> None:
    bodies = instruction.called()
    if tuple(instruction.attributes.get(key) for key in form.bodies) != bodies:
        raise UnsupportedError(
            "lhlo",
            f"{instruction.opcode.value} that calls {', '.join(b.name for b in bodies) or 'nothing'}",
            location=instruction.location,
        )
    if outputs != 1:
        attributes.append(f"outputs = {outputs} : i64")
    if instruction.opcode is Op.GET_TUPLE_ELEMENT:
        elements = instruction.operands[0].shape.elements[: instruction.attributes["index"]]
        attributes.append(f"first = {sum(1 for e in elements for _ in e.leaves())} : i64")
    writer.lines.append(f'"lhlo.{MNEMONIC[instruction.opcode]}"() ({{')
    for body in bodies:
        write_body(writer, body)
        writer.lines.append("}, {")
    _write_operands(writer, values)
    attributes += _about_bodies(bodies) + _exact([*exact, *_exact_bodies(bodies)])
    writer.lines.append(f"}}) {{{', '.join(attributes)}}} : () -> ()")


def _write_operands(writer: Writer, values: Sequence[Memref]) -> None:
    if values:
        writer.lines.append(
            f"vector.yield {', '.join([v.name for v in values])} : {', '.join([v.type for v in values])}"
        )
    else:
        writer.lines.append("vector.yield")


def write_body(writer: Writer, computation: Computation) -> None:
    """Write a body region: block arguments for parameters and results, the ops, and the closing yield."""
    values: dict[Instruction, Leaves] = {}
    for parameter in computation.parameters:
        values[parameter] = tuple(writer.fresh(memref(leaf)) for _, leaf in parameter.shape.leaves())
    outputs = tuple(writer.fresh(memref(leaf)) for _, leaf in computation.root.shape.leaves())
    arguments = [m for leaves in values.values() for m in leaves] + list(outputs)
    if arguments:
        writer.lines.append(f"^bb0({', '.join([f'{m.name}: {m.type}' for m in arguments])}):")
    for instruction in computation.instructions:
        if instruction.opcode is Op.PARAMETER:
            if instruction is computation.root:
                _forward(writer, values[instruction], outputs)
            continue
        results = outputs if instruction is computation.root else tuple(_temporaries(writer, instruction.shape))
        values[instruction] = results
        write_op(writer, instruction, [m for o in instruction.operands for m in values[o]], results)
    writer.lines.append("vector.yield")


def _temporaries(writer: Writer, shape: Shape) -> Iterator[Memref]:
    for _, leaf in shape.leaves():
        new = writer.fresh(memref(leaf))
        writer.lines.append(f"{new.name} = memref.alloca() : {new.type}")
        yield new


def _forward(writer: Writer, sources: Leaves, targets: Leaves) -> None:
    for source, target in zip(sources, targets, strict=True):
        writer.lines.append(
            f'"lhlo.copy"({source.name}, {target.name}) {{forward}} : ({source.type}, {target.type}) -> ()'
        )


def is_canonical(shape: Shape) -> bool:
    """Whether a value's memrefs determine its shape: plain explicit layouts, no nested tuple, no tuple of 0 or 1."""
    return canonical(shape) == shape and not (shape.is_tuple and len(shape.elements) < 2)


def _about_bodies(bodies: Sequence[Computation]) -> list[str]:
    """The attributes that keep HLO's names of computations and parameters."""
    if not bodies:
        return []
    names = [f"[{', '.join(text_of_string(p.name) for p in b.parameters)}]" for b in bodies]
    return [
        f"computations = [{', '.join(text_of_string(b.name) for b in bodies)}]",
        f"parameters = {names[0] if len(bodies) == 1 else '[' + ', '.join(names) + ']'}",
    ]


def exact_operands(instruction: Instruction) -> list[str]:
    """Entries of `exact` for operands of a kernel whose shape differs from the one that their memrefs stand for."""
    return [
        f"operand{i} = {text_of_string(shape_to_text(o.shape))}"
        for i, o in enumerate(instruction.operands)
        if not is_canonical(o.shape)
    ]


def _exact_bodies(bodies: Sequence[Computation]) -> list[str]:
    """Entries of `exact` for parameters whose shape differs from their memrefs', or that are not first in the body."""
    entries = []
    for b, body in enumerate(bodies):
        for parameter in body.parameters:
            if parameter.shape.is_tuple or not is_canonical(parameter.shape):
                entries.append(
                    f"body{b}_parameter{parameter.parameter_number} = {text_of_string(shape_to_text(parameter.shape))}"
                )
        places = [body.instructions.index(p) for p in body.parameters]
        if places != list(range(len(places))):
            entries.append(f"body{b}_places = array<i64: {', '.join(map(str, places))}>")
    return entries


def _exact(entries: Sequence[str]) -> list[str]:
    return [f"exact = {{{', '.join(entries)}}}"] if entries else []
