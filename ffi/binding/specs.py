"""What the words of a signature stand for: frozen values, one class for each kind of parameter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...hlo.dtypes import DType


@dataclass(frozen=True, slots=True)
class BufferSpec:
    """An array; None stands for any dtype or rank."""

    dtype: DType | None
    rank: int | None


@dataclass(frozen=True, slots=True)
class ResultSpec:
    """A result, which the handler writes. of: a BufferSpec, or a class with a registered decoding."""

    of: Any


@dataclass(frozen=True, slots=True)
class OptionalSpec:
    """An argument or result (`of` without Result) that may be absent."""

    of: Any
    is_result: bool


@dataclass(frozen=True, slots=True)
class AttrSpec:
    """An attribute. type: a scalar type, str, Span, Pointer, an enum, a struct, …; name: None for the parameter's."""

    type: Any
    name: str | None = None

    def __call__(self, name: str) -> AttrSpec:
        return AttrSpec(self.type, name)


@dataclass(frozen=True, slots=True)
class SpanSpec:
    """An array attribute of elements of a scalar type."""

    of: Any


@dataclass(frozen=True, slots=True)
class PointerSpec:
    """An i64 attribute that is an address. of: what it points to, for the reader."""

    of: Any


@dataclass(frozen=True, slots=True)
class RemainingSpec:
    """All further arguments or results."""

    is_result: bool


@dataclass(frozen=True, slots=True)
class AttrsSpec:
    """All attributes together. type: Dictionary, or a struct."""

    type: Any


@dataclass(frozen=True, slots=True)
class CtxSpec:
    """Something of the execution context: context.py."""

    type: Any


@dataclass(frozen=True, slots=True)
class ArgSpec:
    """An argument. of: a BufferSpec, or a class with a registered decoding."""

    of: Any


Spec = ArgSpec | ResultSpec | OptionalSpec | RemainingSpec | AttrSpec | AttrsSpec | CtxSpec
