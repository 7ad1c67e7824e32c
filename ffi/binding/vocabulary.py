"""The words of a handler's signature: `Buffer[F32]`, `BufferR2[F32]`, `AnyBuffer`, `Result[…]`, `Attr[int32]("i32")`, …

At run time an annotation is a value of one of the classes in specs.py; a type checker sees numpy arrays and numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Generic, Optional, TypeAlias, TypeVar

import numpy as np

from ...hlo.dtypes import DType
from ...hlo.errors import InputError
from ..abi import DATA_TYPES

bool_ = np.bool_
int8 = np.int8
int16 = np.int16
int32 = np.int32
int64 = np.int64
uint8 = np.uint8
uint16 = np.uint16
uint32 = np.uint32
uint64 = np.uint64
float32 = np.float32
float64 = np.float64
complex64 = np.complex64
complex128 = np.complex128

if TYPE_CHECKING:

    class Element:
        """A primitive type."""

    class PRED(Element): ...

    class S1(Element): ...

    class S2(Element): ...

    class S4(Element): ...

    class S8(Element): ...

    class S16(Element): ...

    class S32(Element): ...

    class S64(Element): ...

    class U1(Element): ...

    class U2(Element): ...

    class U4(Element): ...

    class U8(Element): ...

    class U16(Element): ...

    class U32(Element): ...

    class U64(Element): ...

    class F16(Element): ...

    class F32(Element): ...

    class F64(Element): ...

    class BF16(Element): ...

    class C64(Element): ...

    class C128(Element): ...

    class TOKEN(Element): ...

    class F8E5M2(Element): ...

    class F8E4M3(Element): ...

    class F8E4M3FN(Element): ...

    class F8E4M3B11FNUZ(Element): ...

    class F8E5M2FNUZ(Element): ...

    class F8E4M3FNUZ(Element): ...

    class F8E3M4(Element): ...

    class F4E2M1FN(Element): ...

    class F8E8M0FNU(Element): ...

    E = TypeVar("E", bound=Element)
    T = TypeVar("T")

    class AnyBuffer(np.ndarray[Any, np.dtype[Any]]):
        """An array of any dtype and rank."""

    class Buffer(AnyBuffer, Generic[E]):
        """An array of one dtype."""

    class BufferR0(Buffer[E]): ...

    class BufferR1(Buffer[E]): ...

    class BufferR2(Buffer[E]): ...

    class BufferR3(Buffer[E]): ...

    class BufferR4(Buffer[E]): ...

    Token: TypeAlias = BufferR0[TOKEN]
    Result: TypeAlias = Annotated[T, "result"]
    Ret: TypeAlias = Annotated[T, "result"]
    OptionalArg: TypeAlias = Optional[T]  # noqa: UP045  # an alias with a type variable
    OptionalRet: TypeAlias = Optional[T]  # noqa: UP045

    class Attr(Generic[T]):
        """An attribute by name: `Annotated[int, Attr[int32]("i32")]`."""

        def __init__(self, name: str): ...

    class Span(np.ndarray[Any, np.dtype[Any]], Generic[T]):
        """An array attribute."""

    class Pointer(int, Generic[T]):
        """An address, passed as an i64 attribute."""

else:
    from .specs import AttrSpec, BufferSpec, OptionalSpec, PointerSpec, ResultSpec, SpanSpec

    globals().update({dtype.name: dtype for dtype in DATA_TYPES})

    class _Buffers:
        """Buffer and BufferR0 to BufferR4: subscripted with a dtype, and Buffer with a rank, too."""

        def __init__(self, name: str, rank: int | None):
            self.name, self.rank = name, rank

        def __getitem__(self, item: Any) -> BufferSpec:
            dtype, rank = item if isinstance(item, tuple) and self.rank is None else (item, self.rank)
            if dtype not in DATA_TYPES or not (rank is None or (isinstance(rank, int) and rank >= 0)):
                raise InputError(f"{self.name}[{item}]: no dtype of a buffer", remedy="write, say, Buffer[F32]")
            return BufferSpec(dtype, rank)

        def __repr__(self) -> str:
            return self.name

    class _Wrapping:
        """A word that is subscripted with another, as Result and OptionalArg."""

        def __init__(self, name: str, make: Any):
            self.name, self.make = name, make

        def __getitem__(self, item: Any) -> Any:
            return self.make(item)

        def __repr__(self) -> str:
            return self.name

    AnyBuffer = BufferSpec(None, None)
    Buffer = _Buffers("Buffer", None)
    BufferR0, BufferR1, BufferR2, BufferR3, BufferR4 = (_Buffers(f"BufferR{rank}", rank) for rank in range(5))
    Token = BufferSpec(DType.TOKEN, 0)
    Result = Ret = _Wrapping("Result", ResultSpec)
    OptionalArg = _Wrapping("OptionalArg", lambda item: OptionalSpec(item, False))
    OptionalRet = _Wrapping("OptionalRet", lambda item: OptionalSpec(item, True))
    Attr = _Wrapping("Attr", AttrSpec)
    Span = _Wrapping("Span", SpanSpec)
    Pointer = _Wrapping("Pointer", PointerSpec)
