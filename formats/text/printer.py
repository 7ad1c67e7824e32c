"""Module → HLO text that the parser, and XLA, read back as the same module."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...hlo.attributes import (
    Alias,
    ComputationLayout,
    ConvolutionDims,
    Donor,
    OutputAlias,
    PadDim,
    Raw,
    SliceDim,
    Window,
)
from ...hlo.ir import Computation, Instruction, Literal, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape, ShapeIndex, shape_to_text
from .names import RESERVED, with_legal_names
from .print_literals import literal_to_text

SECTIONS = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
QUOTED = frozenset(
    {
        "custom_call_target",
        "infeed_config",
        "outfeed_config",
        "backend_config",
        "execution_thread",
        "async_execution_thread",
    }
)
UNNAMED = frozenset({"literal", "parameter_number"})


def print_module(module: Module, *, long: bool = False) -> str:
    """The text of a whole module. Names that XLA refuses are replaced (names.py).

    long: XLA's long form, with `%` before names, signatures of computations, and shapes before operands.
    """
    module = with_legal_names(module)
    header = f"HloModule {name_to_text(module.name)}"
    for key, value in module.attributes.items():
        if key not in SECTIONS:
            header += f", {attribute_to_text(key, value, long)}"
    parts = [header]
    parts += [f"{key}\n{module.attributes[key].text}" for key in SECTIONS if key in module.attributes]
    parts += [print_computation(c, is_entry=c is module.entry, long=long) for c in module.computations]
    return "\n\n".join(parts) + "\n"


def print_computation(computation: Computation, *, is_entry: bool = False, long: bool = False) -> str:
    """The text of a computation, without a newline at the end. long: see print_module."""
    head = ("ENTRY " if is_entry else "") + name_to_text(computation.name, long)
    if long:
        names = ", ".join(f"{p.name}: {shape_to_text(p.shape, layouts=False)}" for p in computation.parameters)
        head += f" ({names}) -> {shape_to_text(computation.root.shape, layouts=False)}"
    lines = [f"{head} {{"]
    root = computation.root
    for instruction in computation.instructions:
        lines.append(("  ROOT " if instruction is root else "  ") + print_instruction(instruction, long=long))
    tail = "".join(f", {attribute_to_text(k, v, long)}" for k, v in computation.attributes.items())
    lines.append("}" + tail)
    return "\n".join(lines)


def print_instruction(instruction: Instruction, *, long: bool = False) -> str:
    """One line: `name = shape opcode(operands), attributes`."""
    attributes = instruction.attributes
    if instruction.opcode is Op.PARAMETER:
        inside = str(attributes["parameter_number"])
    elif instruction.opcode is Op.CONSTANT:
        inside = literal_to_text(attributes["literal"])
    else:
        inside = _operands(instruction, long)
    name, opcode = name_to_text(instruction.name, long), instruction.opcode
    text = f"{name} = {shape_to_text(instruction.shape)} {opcode.value}({inside})"
    for key, value in attributes.items():
        if key not in UNNAMED or (key == "literal" and opcode is not Op.CONSTANT):
            text += f", {attribute_to_text(key, value, long)}"
    return text


def name_to_text(name: str, long: bool = False) -> str:
    """A name, with `%` in the long form or if it is a reserved word."""
    return f"%{name}" if long or name in RESERVED else name


def _operands(instruction: Instruction, long: bool) -> str:
    if not long:
        names: Iterable[str] = (name_to_text(o.name) for o in instruction.operands)
    else:
        names = (f"{shape_to_text(o.shape)} %{o.name}" for o in instruction.operands)
    if len(instruction.operands) <= 5:
        return ", ".join(names)
    return ", ".join(f"/*index={i}*/{n}" if i and i % 5 == 0 else n for i, n in enumerate(names))


def _shaped_literal(literal: Literal) -> str:
    """With a shape for each element of a tuple. XLA needs the layout: it would read elements in braces as one."""
    if isinstance(literal.value, tuple):
        return f"( {', '.join(map(_shaped_literal, literal.value))} )"
    shape = literal.shape
    if shape.layout is None and shape.rank:
        shape = shape.with_layout(shape.minor_to_major)
    return f"{shape_to_text(shape)} {literal_to_text(literal)}"


def attribute_to_text(key: str, value: Any, long: bool = False) -> str:
    """An attribute as `key=value`."""
    if isinstance(value, str) and key in QUOTED:
        return f"{key}={quote(value)}"
    if key == "padding" and value == ():
        return 'padding=""'
    if isinstance(value, Literal):
        return f"literal={_shaped_literal(value)}"
    if isinstance(value, Computation):
        return f"{key}={name_to_text(value.name, long)}"
    if isinstance(value, tuple) and value and isinstance(value[0], Computation):
        return f"{key}={{{', '.join(name_to_text(c.name, long) for c in value)}}}"
    if key == "control-predecessors":
        return f"{key}={{{', '.join(name_to_text(name, long) for name in value)}}}"
    return f"{key}={VALUES[type(value)](value)}"


_QUOTES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def quote(text: str) -> str:
    """A double-quoted string with escapes."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_QUOTES.get(c) or (c if c.isprintable() else _escape(ord(c))) for c in text) + '"'


def _escape(code: int) -> str:
    return f"\\{code:03o}" if code < 0x80 else f"\\U{code:08x}"


def _index(index: ShapeIndex) -> str:
    return "{" + ",".join(map(str, index)) + "}"


def _pad(dim: PadDim) -> str:
    return f"{dim.low}_{dim.high}" + (f"_{dim.interior}" if dim.interior else "")


def _slice(dim: SliceDim) -> str:
    return f"[{dim.start}:{dim.limit}" + (f":{dim.stride}" if dim.stride != 1 else "") + "]"


def _tuple(value: tuple[Any, ...]) -> str:
    if value and isinstance(value[0], PadDim):
        return "x".join(map(_pad, value))
    if value and isinstance(value[0], (SliceDim, Shape)):
        return "{" + ", ".join(VALUES[type(v)](v) for v in value) + "}"
    if value and isinstance(value[0], (Alias, Donor)):
        return "{ " + ", ".join(VALUES[type(v)](v) for v in value) + " }"
    return "{" + ",".join(VALUES[type(v)](v) for v in value) + "}"


def _window(window: Window) -> str:
    dims = window.dims

    def joined(items: Iterable[Any]) -> str:
        return "x".join(map(str, items))

    fields = []
    if dims:
        fields.append("size=" + joined(d.size for d in dims))
    if any(d.stride != 1 for d in dims):
        fields.append("stride=" + joined(d.stride for d in dims))
    if any(d.pad_low or d.pad_high for d in dims):
        fields.append("pad=" + joined(f"{d.pad_low}_{d.pad_high}" for d in dims))
    if any(d.lhs_dilate != 1 for d in dims):
        fields.append("lhs_dilate=" + joined(d.lhs_dilate for d in dims))
    if any(d.rhs_dilate != 1 for d in dims):
        fields.append("rhs_dilate=" + joined(d.rhs_dilate for d in dims))
    if any(d.reverse for d in dims):
        fields.append("rhs_reversal=" + joined(int(d.reverse) for d in dims))
    return "{" + " ".join(fields) + "}"


def _labels(roles: Mapping[str, int]) -> str:
    by_position = {position: label for label, position in roles.items()}
    return "".join(by_position.get(i, "?") for i in range(max(by_position) + 1))


def _dim_labels(d: ConvolutionDims) -> str:
    def side(first: str, a: int, second: str, b: int, spatial: tuple[int, ...]) -> str:
        return _labels({first: a, second: b} | {str(i): position for i, position in enumerate(spatial)})

    return (
        side("b", d.input_batch, "f", d.input_feature, d.input_spatial)
        + "_"
        + side("i", d.kernel_input_feature, "o", d.kernel_output_feature, d.kernel_spatial)
        + "->"
        + side("b", d.output_batch, "f", d.output_feature, d.output_spatial)
    )


def _entry_layout(layout: ComputationLayout) -> str:
    parameters = []
    for i, shape in enumerate(layout.parameters):
        parameters.append((f"/*index={i}*/" if i and i % 5 == 0 else "") + shape_to_text(shape))
    return "{(" + ", ".join(parameters) + ")->" + shape_to_text(layout.result) + "}"


VALUES: dict[type, Callable[[Any], str]] = {
    bool: lambda v: "true" if v else "false",
    int: str,
    float: repr,
    str: str,
    Raw: lambda v: v.text,
    Shape: shape_to_text,
    Literal: literal_to_text,
    PadDim: _pad,
    SliceDim: _slice,
    Window: _window,
    ConvolutionDims: _dim_labels,
    ComputationLayout: _entry_layout,
    Alias: lambda a: f"{_index(a.output)}: ({a.parameter}, {_index(a.parameter_index)}, {a.kind})",
    Donor: lambda d: f"({d.parameter}, {_index(d.index)})",
    OutputAlias: lambda a: f"{_index(a.output)}: ({a.operand}, {_index(a.operand_index)})",
    tuple: _tuple,
}
