"""Converts HLO attribute values to MLIR attribute text, and MLIR attributes to HLO values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from mlir import ir

from ..formats.text.lexer import Lexer
from ..formats.text.parse_attributes import ATTRIBUTES
from ..formats.text.printer import attribute_to_text
from ..hlo import attributes as hlo_attributes
from ..hlo.attributes import ConvolutionDims, PadDim, Raw, SliceDim, Window, WindowDim
from ..hlo.errors import ParseError, UnsupportedError, VerificationError
from ..hlo.grammar import ALLOWED
from ..hlo.ir import CALLING_ATTRIBUTES, Instruction, Literal
from ..hlo.shapes import Shape, shape_to_text
from .memrefs import shape_from_text
from .table import OPCODE

DROPPED = frozenset(
    {"metadata", "sharding", "origin", "statistics", "control-predecessors", "parameter_number", "literal"}
)
"""Attributes that LHLO drops because no emitter reads them. `literal` is kept in another form: the typed `value`."""

STRUCTURAL = frozenset(
    {
        "name",
        "shape",
        "outputs",
        "computations",
        "parameters",
        "exact",
        "value",
        "first",
        "forward",
        "kernel",
        "offset",
        "scratch",
        "trip_count",
    }
)
"""Attributes of LHLO itself. They are skipped when an op is read back as an HLO instruction."""

_STRING_ESCAPES = {i: f"\\{i:02X}" for i in [*range(32), 34, 92, 127]}


def text_of_string(value: str) -> str:
    """The value as an MLIR string literal. Bytes outside printable ASCII are escaped in hexadecimal."""
    escaped = value.translate(_STRING_ESCAPES)
    if not escaped.isascii():
        escaped = "".join(
            c if c.isascii() else "".join(f"\\{b:02X}" for b in c.encode("utf-8", "surrogatepass")) for c in escaped
        )
    return f'"{escaped}"'


def text_of(value: Any) -> str:
    """One HLO attribute value as MLIR text. Raises UnsupportedError for a type that has no MLIR form."""
    kind = type(value)
    if kind in _TEXT:
        return _TEXT[kind](value)
    if isinstance(value, Enum):
        return text_of(value.value)
    if isinstance(value, Mapping):
        entries = ", ".join(f"{text_of_string(str(k))} = {text_of(v)}" for k, v in sorted(value.items()))
        return f'{{class = "map", entries = {{{entries}}}}}'
    if is_dataclass(value) and hasattr(hlo_attributes, kind.__name__):
        parts = "".join(f", {f.name} = {text_of(getattr(value, f.name))}" for f in fields(value))
        return f'{{class = "{kind.__name__}"{parts}}}'
    raise UnsupportedError("lhlo", f"an attribute value of type {kind.__name__}", remedy="add it to lhlo/attributes.py")


def _float(value: float) -> str:
    if not math.isfinite(value):
        import struct

        return f"0x{int.from_bytes(struct.pack('>d', value)):016X} : f64"
    text = repr(value)
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{mark}{exponent} : f64"


def _tuple(value: tuple[Any, ...]) -> str:
    kinds = set(map(type, value))
    if kinds <= {int}:
        return f"array<i64: {', '.join(map(str, value))}>" if value else "array<i64>"
    if kinds == {bool}:
        return f"array<i1: {', '.join('true' if v else 'false' for v in value)}>"
    return f"[{', '.join(map(text_of, value))}]"


_TEXT: dict[type, Callable[[Any], str]] = {
    bool: lambda v: "true" if v else "false",
    int: lambda v: f"{v} : i64",
    float: _float,
    str: text_of_string,
    tuple: _tuple,
    type(None): lambda _: "unit",
    Shape: lambda v: f'{{class = "Shape", text = {text_of_string(shape_to_text(v))}}}',
}


def _slice(dims: tuple[SliceDim, ...]) -> str:
    return (
        f"start_indices = {_tuple(tuple(d.start for d in dims))}, "
        f"limit_indices = {_tuple(tuple(d.limit for d in dims))}, "
        f"strides = {_tuple(tuple(d.stride for d in dims))}"
    )


def _padding(dims: tuple[PadDim, ...]) -> str:
    return (
        f"edge_padding_low = {_tuple(tuple(d.low for d in dims))}, "
        f"edge_padding_high = {_tuple(tuple(d.high for d in dims))}, "
        f"interior_padding = {_tuple(tuple(d.interior for d in dims))}"
    )


def _window(window: Window) -> str:
    dims = window.dims
    return (
        f"window_dimensions = {_tuple(tuple(d.size for d in dims))}, "
        f"window_strides = {_tuple(tuple(d.stride for d in dims))}, "
        f"padding = {_tuple(tuple(p for d in dims for p in (d.pad_low, d.pad_high)))}, "
        f"base_dilations = {_tuple(tuple(d.lhs_dilate for d in dims))}, "
        f"window_dilations = {_tuple(tuple(d.rhs_dilate for d in dims))}, "
        f"window_reversal = {_tuple(tuple(int(d.reverse) for d in dims))}"
    )


def attributes_text(instruction: Instruction) -> list[str]:
    """`name = value` for each attribute that LHLO keeps. Called computations become regions, so they are not listed."""
    parts = []
    for key, value in instruction.attributes.items():
        if key in DROPPED or key in CALLING_ATTRIBUTES:
            continue
        if key == "slice" and isinstance(value, tuple):
            parts.append(_slice(value))
        elif key == "padding" and isinstance(value, tuple):
            parts.append(_padding(value))
        elif key == "window" and isinstance(value, Window):
            parts.append(_window(value))
        elif isinstance(value, Instruction | Literal):
            raise UnsupportedError("lhlo", f"attribute {key} of {instruction.opcode.value}")
        else:
            parts.append(f"{key if key.isidentifier() else text_of_string(key)} = {text_of(value)}")
    return parts


def value_of(attribute: ir.Attribute) -> Any:
    """The HLO value of one MLIR attribute (the inverse of `text_of`). Raises UnsupportedError for an unknown kind."""
    decode = _VALUE.get(type(attribute))
    if decode is not None:
        return decode(attribute)
    raise UnsupportedError("lhlo", f"the attribute {attribute}", remedy="docs/lhlo.md lists the kinds of attributes")


def _dictionary(attribute: ir.DictAttr) -> Any:
    entries = {attribute[i].name: value_of(attribute[i].attr) for i in range(len(attribute))}
    name = entries.pop("class", None)
    if name in ("Shape", "map"):
        part = entries.get("text" if name == "Shape" else "entries")
        if not isinstance(part, str if name == "Shape" else Mapping):
            raise UnsupportedError(
                "lhlo", f"the attribute {attribute}", remedy="docs/lhlo.md lists the kinds of attributes"
            )
        return shape_from_text(part) if isinstance(part, str) else part
    if name is None:
        return entries
    cls = getattr(hlo_attributes, str(name), None)
    if cls is None or not is_dataclass(cls) or set(entries) - {f.name for f in fields(cls)}:
        raise UnsupportedError(
            "lhlo", f"the attribute {attribute}", remedy=f"'{name}' is no attribute class of HLO, or has other fields"
        )
    make: Any = cls
    return make(**entries)


_VALUE: dict[type, Callable[[Any], Any]] = {
    ir.DenseI64ArrayAttr: tuple,
    ir.StringAttr: lambda a: a.value_bytes.decode("utf-8", "surrogatepass"),
    ir.BoolAttr: lambda a: bool(a.value),
    ir.IntegerAttr: lambda a: int(a.value),
    ir.FloatAttr: lambda a: float(a.value),
    ir.DenseBoolArrayAttr: tuple,
    ir.UnitAttr: lambda _: None,
    ir.ArrayAttr: lambda a: tuple(value_of(v) for v in a),
    ir.DictAttr: _dictionary,
}


def attributes_of(op: ir.Operation) -> dict[str, Any]:
    """An LHLO op's HLO attributes in the form of `Instruction.attributes`, without called computations and literal.

    Raises VerificationError if a structured value lacks a part.
    """
    found = {}
    try:
        for name, attribute in op.attributes.items():
            if name not in STRUCTURAL:
                found[name] = value_of(attribute)
        for key, read in _GROUPS.items():
            if key in found:
                read(found)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise _malformed(op, error) from None
    unknown = sorted(found.keys() - ALLOWED[OPCODE[op.name]]) if op.name in OPCODE else ()
    if unknown:
        raise VerificationError(
            f"{op.name} has no attribute '{unknown[0]}'",
            remedy=f"HLO's attributes of it are {', '.join(sorted(ALLOWED[OPCODE[op.name]]))}",
        )
    return found


def check_attributes(op: ir.Operation) -> None:
    """Raise VerificationError unless an op's HLO attributes can be read, each as what HLO text can say."""
    found = attributes_of(op)
    try:
        for key, value in found.items():
            _check(key, value)
    except (TypeError, KeyError, ValueError, AttributeError, ParseError) as error:
        raise _malformed(op, error) from None


def _malformed(op: ir.Operation, error: Exception) -> VerificationError:
    remedy = "docs/lhlo.md shows the form of each attribute"
    return VerificationError(f"{op.name}: malformed attributes: {error}", remedy=remedy)


class _Value:
    """What readers of attributes need, for a value in which there are no names."""

    def __init__(self, text: str):
        self.lexer = Lexer(text, "<attribute>")


def _check(key: str, value: Any) -> None:
    """Raise unless the value is what HLO text of the attribute is read as: `kind = {}` is none."""
    if key not in ATTRIBUTES or isinstance(value, Raw):
        return
    if isinstance(value, ConvolutionDims):
        _check_positions(value)
    try:
        text = attribute_to_text(key, value).removeprefix(f"{key}=")
    except KeyError:
        raise ValueError(f"{key} is no {type(value).__name__}") from None
    reading: Any = _Value(text)
    if ATTRIBUTES[key](reading, key) != value and value == value:
        raise ValueError(f"{key} = {text} is read as another value")


MOST_DIMENSIONS = 100
"""Of an array, in the labels of a convolution: text has a character for each position up to the last one."""


def _check_positions(dims: ConvolutionDims) -> None:
    for name in dims.__match_args__:
        given = getattr(dims, name)
        for position in given if isinstance(given, tuple) else (given,):
            if not 0 <= position < MOST_DIMENSIONS:
                raise ValueError(f"{name} has no dimension {position}")


def _read_slice(found: dict[str, Any]) -> None:
    bounds = zip(found.pop("start_indices"), found.pop("limit_indices"), found.pop("strides"), strict=True)
    found["slice"] = tuple(SliceDim(*b) for b in bounds)


def _read_padding(found: dict[str, Any]) -> None:
    edges = zip(
        found.pop("edge_padding_low"), found.pop("edge_padding_high"), found.pop("interior_padding"), strict=True
    )
    found["padding"] = tuple(PadDim(*e) for e in edges)


def _read_window(found: dict[str, Any]) -> None:
    """Missing parts get HLO's defaults: stride and dilation 1, no padding, no reversal."""
    sizes = found.pop("window_dimensions")
    ones, zeros = (1,) * len(sizes), (0,) * len(sizes)
    padding = found.pop("padding", zeros + zeros)
    rows = zip(
        sizes,
        found.pop("window_strides", ones),
        padding[::2],
        padding[1::2],
        found.pop("base_dilations", ones),
        found.pop("window_dilations", ones),
        map(bool, found.pop("window_reversal", zeros)),
        strict=True,
    )
    found["window"] = Window(tuple(WindowDim(*row) for row in rows))


_GROUPS: dict[str, Callable[[dict[str, Any]], None]] = {
    "limit_indices": _read_slice,
    "edge_padding_low": _read_padding,
    "window_dimensions": _read_window,
}
"""MLIR attributes that together form one HLO attribute, keyed by the one that is always present."""
