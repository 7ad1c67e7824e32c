"""Attributes → Python values: scalars, strings, arrays, dictionaries, enums, structs, and decodings of users.

A decoding takes a RawAttr and a list for diagnostics, and returns FAILED after saying why, in XLA's words.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from ...hlo.dtypes import NUMPY
from ...hlo.errors import InputError
from ..abi import DATA_TYPES, DTYPES, AttrType
from .errors import Error
from .frames import RawAttr, RawAttrs
from .specs import PointerSpec, SpanSpec

FAILED: Any = type("Failed", (), {"__repr__": lambda self: "FAILED"})()
"""What a decoding returns that said why it failed."""

Diagnostics = list[str]
C = TypeVar("C", bound=type)


def dtype_name(number: int) -> str:
    """A data type as XLA prints it."""
    found = DTYPES.get(number)
    return found.value.upper() if found else ("INVALID" if number == 0 else str(number))


def kind_name(number: int) -> str:
    return AttrType(number).name.lower() if number in set(AttrType) else str(number)


@dataclasses.dataclass(frozen=True, slots=True)
class AttrDecoding:
    """How attributes become values of a type. constant: whether one value may serve many calls."""

    decode: Callable[[RawAttr, Diagnostics], Any]
    isa: Callable[[RawAttr], bool]
    constant: bool = True


def _wrong_kind(attr: RawAttr, expected: AttrType, diagnostics: Diagnostics) -> Any:
    diagnostics.append(f"Wrong attribute type: expected {kind_name(expected)} but got {kind_name(attr.kind)}")
    return FAILED


SCALARS = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}
"""Python's types → those of C++ that Attr[int] and so on mean."""

_NUMBERS: dict[np.dtype, int] = {NUMPY[dtype]: number for dtype, number in DATA_TYPES.items() if dtype in NUMPY}

NATIVE = frozenset("?bhilqBHILQfdFD")
"""numpy's characters of the types that C++ decodes; f16, bf16 and narrow types are none."""


def scalar_dtype(kind: Any) -> np.dtype | None:
    """The dtype of a scalar type of a signature; None for other types."""
    kind = SCALARS.get(kind, kind)
    if isinstance(kind, type) and issubclass(kind, np.generic):
        dtype = np.dtype(kind)
        return dtype if dtype.char in NATIVE and dtype in _NUMBERS else None
    return None


def scalar_number(kind: Any) -> int:
    """XLA_FFI_DataType of a scalar type that has a dtype."""
    dtype = scalar_dtype(kind)
    assert dtype is not None
    return _NUMBERS[dtype]


def _scalar(dtype: np.dtype) -> AttrDecoding:
    number = _NUMBERS[dtype]

    def isa(attr: RawAttr) -> bool:
        return attr.kind == AttrType.SCALAR and attr.dtype == number

    def decode(attr: RawAttr, diagnostics: Diagnostics) -> Any:
        if attr.kind != AttrType.SCALAR:
            return _wrong_kind(attr, AttrType.SCALAR, diagnostics)
        if attr.dtype != number:
            diagnostics.append(
                f"Wrong scalar data type: expected {dtype_name(number)} but got {dtype_name(attr.dtype)}"
            )
            return FAILED
        return np.frombuffer(attr.data, dtype)[0].item()

    return AttrDecoding(decode, isa)


def _span(dtype: np.dtype) -> AttrDecoding:
    number = _NUMBERS[dtype]

    def isa(attr: RawAttr) -> bool:
        return attr.kind == AttrType.ARRAY and attr.dtype == number

    def decode(attr: RawAttr, diagnostics: Diagnostics) -> Any:
        if attr.kind != AttrType.ARRAY:
            return _wrong_kind(attr, AttrType.ARRAY, diagnostics)
        if attr.dtype != number:
            diagnostics.append(f"Wrong array data type: expected {dtype_name(number)} but got {dtype_name(attr.dtype)}")
            return FAILED
        return np.frombuffer(attr.data, dtype)

    return AttrDecoding(decode, isa)


def _string(make: Callable[[bytes], Any]) -> AttrDecoding:
    def decode(attr: RawAttr, diagnostics: Diagnostics) -> Any:
        if attr.kind != AttrType.STRING:
            return _wrong_kind(attr, AttrType.STRING, diagnostics)
        return make(attr.data)

    return AttrDecoding(decode, lambda attr: attr.kind == AttrType.STRING)


def _pointer() -> AttrDecoding:
    number = _NUMBERS[np.dtype(np.int64)]

    def isa(attr: RawAttr) -> bool:
        return attr.kind == AttrType.SCALAR and attr.dtype == number

    def decode(attr: RawAttr, diagnostics: Diagnostics) -> Any:
        if not isa(attr):
            got = kind_name(attr.kind)
            diagnostics.append(f"Wrong attribute type: expected i64 scalar for passing pointer but got {got}")
            return FAILED
        return int.from_bytes(attr.data, "little")

    return AttrDecoding(decode, isa)


class Dictionary(Mapping[str, Any]):
    """Attributes by name, decoded when they are asked for. `d[name]` gives the value in its own type."""

    def __init__(self, raw: RawAttrs):
        self._raw = {_text(name): attr for name, attr in zip(raw.names, raw.attrs)}

    def __len__(self) -> int:
        return len(self._raw)

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __contains__(self, name: object) -> bool:
        return name in self._raw

    def __getitem__(self, name: str) -> Any:
        if name not in self._raw:
            raise Error.internal(f"Unexpected attribute: {name}")
        return _natural(self._raw[name])

    def get(self, name: str, kind: Any = None) -> Any:  # type: ignore[override]
        """The value of an attribute as the given type, or in its own. Raises Error (INTERNAL)."""
        if kind is None:
            return self[name]
        diagnostics: Diagnostics = []
        found = self.decode(name, attr_decoding(kind), diagnostics)
        if found is FAILED:
            raise Error.internal("".join(diagnostics))
        return found

    def isa(self, name: str, kind: Any) -> bool:
        """Whether there is such an attribute, and it has this type."""
        return name in self._raw and attr_decoding(kind).isa(self._raw[name])

    def decode(self, name: str, decoding: AttrDecoding, diagnostics: Diagnostics) -> Any:
        if name not in self._raw:
            diagnostics.append(f"Unexpected attribute: {name}")
            return FAILED
        return decoding.decode(self._raw[name], diagnostics)

    def __repr__(self) -> str:
        return f"Dictionary({', '.join(self._raw)})"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _natural(attr: RawAttr) -> Any:
    """A value in the type that the frame says: a number, str, numpy array or Dictionary."""
    if attr.kind == AttrType.STRING:
        return _text(attr.data)
    if attr.kind == AttrType.DICTIONARY and attr.entries is not None:
        return Dictionary(attr.entries)
    dtype = DTYPES.get(attr.dtype)
    if attr.kind not in (AttrType.SCALAR, AttrType.ARRAY) or dtype not in NUMPY:
        raise Error.internal(f"Unsupported attribute: {kind_name(attr.kind)} of {dtype_name(attr.dtype)}")
    found = np.frombuffer(attr.data, NUMPY[dtype])
    return found if attr.kind == AttrType.ARRAY else found[0].item()


def _dictionary() -> AttrDecoding:
    def decode(attr: RawAttr, diagnostics: Diagnostics) -> Any:
        if attr.kind != AttrType.DICTIONARY or attr.entries is None:
            return _wrong_kind(attr, AttrType.DICTIONARY, diagnostics)
        return Dictionary(attr.entries)

    return AttrDecoding(decode, lambda attr: attr.kind == AttrType.DICTIONARY)


def _variant(kinds: tuple[Any, ...]) -> AttrDecoding:
    decodings = [attr_decoding(kind) for kind in kinds]

    def decode(attr: RawAttr, diagnostics: Diagnostics) -> Any:
        for decoding in decodings:
            if decoding.isa(attr):
                return decoding.decode(attr, diagnostics)
        diagnostics.append("Wrong attribute type: it doesn't match any of the variant types")
        return FAILED

    return AttrDecoding(decode, lambda attr: any(d.isa(attr) for d in decodings), all(d.constant for d in decodings))


_ENUMS: dict[type, np.dtype] = {}
_CUSTOM: dict[Any, AttrDecoding] = {}


def enum_type(underlying: Any) -> Callable[[C], C]:
    """A class decorator: an enum.Enum whose values are attributes of this integer type, as `enum class E : int32_t`."""
    dtype = scalar_dtype(underlying)
    if dtype is None or dtype.kind not in "iu":
        raise InputError(f"enum_type({underlying}): no integer type", remedy="give int8 to int64 or uint8 to uint64")
    limits = np.iinfo(dtype)

    def declare(cls: C) -> C:
        if not issubclass(cls, enum.Enum):
            raise InputError(f"{cls.__name__} is no enum.Enum")
        for member in cls:
            value = member.value
            if type(value) is not int or not limits.min <= value <= limits.max:
                raise InputError(f"{cls.__name__}.{member.name} = {value!r} is no {dtype}")
        _ENUMS[cls] = dtype
        return cls

    return declare


def enum_dtype(kind: Any) -> np.dtype | None:
    """The integer type of a declared enum; None for other types."""
    try:
        return _ENUMS.get(kind)
    except TypeError:
        return None


def _enum(cls: Any) -> AttrDecoding:
    underlying = _scalar(_ENUMS[cls])

    def decode(attr: RawAttr, diagnostics: Diagnostics) -> Any:
        value = underlying.decode(attr, diagnostics)
        if value is FAILED:
            return value
        try:
            return cls(value)
        except ValueError:
            diagnostics.append(f"Wrong enum value: {value} is no {cls.__name__}")
            return FAILED

    return AttrDecoding(decode, underlying.isa)


def _struct(cls: Any) -> AttrDecoding:
    members = struct_members(cls)
    decodings = {name: attr_decoding(kind) for name, kind in members.items()}

    def decode(attr: RawAttr, diagnostics: Diagnostics) -> Any:
        if attr.kind != AttrType.DICTIONARY or attr.entries is None:
            return _wrong_kind(attr, AttrType.DICTIONARY, diagnostics)
        count = len(attr.entries.names)
        if count != len(decodings):
            diagnostics.append(f"Wrong number of attributes: expected {len(decodings)} attributes but got {count}")
            return FAILED
        entries = Dictionary(attr.entries)
        values = {name: entries.decode(name, decoding, diagnostics) for name, decoding in decodings.items()}
        return FAILED if any(value is FAILED for value in values.values()) else cls(**values)

    frozen = bool(cls.__dataclass_params__.frozen) and all(d.constant for d in decodings.values())
    return AttrDecoding(decode, lambda attr: attr.kind == AttrType.DICTIONARY, frozen)


def struct_members(cls: Any) -> dict[str, Any]:
    """The attributes of a dataclass: name → type."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return {f.name: _of_annotated(hints[f.name]) for f in dataclasses.fields(cls) if f.init}


def _of_annotated(hint: Any) -> Any:
    """`Annotated[int, int32]` declares the width of a member that type checkers take for an int."""
    return hint.__metadata__[0] if typing.get_origin(hint) is typing.Annotated else hint


def is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and dataclasses.is_dataclass(kind)


def register_attr_decoding(
    kind: Any, decode: Callable[[Any], Any], of: Any = None, isa: Callable[[Any], bool] | None = None
) -> None:
    """Teach signatures a new type of attribute.

    decode: takes the value in its own type, or as type `of`, and returns what the handler gets; what it raises is the
    diagnostic. isa: whether a value is one, for variants.
    """
    inner = attr_decoding(of) if of is not None else None

    def run(attr: RawAttr, diagnostics: Diagnostics) -> Any:
        try:
            value = _natural(attr) if inner is None else inner.decode(attr, diagnostics)
            return value if value is FAILED else decode(value)
        except Exception as error:
            diagnostics.append(error.message if isinstance(error, Error) else str(error) or type(error).__name__)
            return FAILED

    def matches(attr: RawAttr) -> bool:
        return (inner is None or inner.isa(attr)) and (isa is None or isa(_natural(attr)))

    _CUSTOM[kind] = AttrDecoding(run, matches, constant=False)
    attr_decoding.cache_clear()


@functools.cache
def attr_decoding(kind: Any) -> AttrDecoding:
    """The decoding of a type of a signature. Raises InputError for a type that has none."""
    if kind in _CUSTOM:
        return _CUSTOM[kind]
    dtype = scalar_dtype(kind)
    if dtype is not None:
        return _scalar(dtype)
    if isinstance(kind, SpanSpec):
        element = scalar_dtype(kind.of)
        if element is None or element.kind not in "iuf":
            raise InputError(f"Span[{kind.of}]: no integer or float type of C++", remedy="write, say, Span[int64]")
        return _span(element)
    if isinstance(kind, PointerSpec):
        return _pointer()
    if kind in _ENUMS:
        return _enum(kind)
    if is_struct(kind):
        return _struct(kind)
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return _variant(typing.get_args(kind))
    if kind in _PLAIN:
        return _PLAIN[kind]
    name = getattr(kind, "__name__", kind)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        raise InputError(f"the enum {name} has no integer type", remedy="decorate it with @ffi.enum_type(ffi.int32)")
    raise InputError(f"{name} is no type of an attribute", remedy="register it with ffi.register_attr_decoding")


_PLAIN = {str: _string(_text), bytes: _string(bytes), Dictionary: _dictionary()}
