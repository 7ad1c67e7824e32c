"""The C ABI of XLA's FFI, versions 0.1 to 0.5, as ctypes: structures, enums, and the order of the API's functions.

The layouts are those of xla/ffi/api/c_api.h; tests/ffi/test_abi.py compares them with the header that jaxlib ships. A
structure's `SIZE` is what its users must write to `struct_size` (up to the last field, without padding behind it).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import POINTER, Structure, c_char_p, c_int32, c_int64, c_size_t, c_uint32, c_void_p
from enum import IntEnum
from typing import Any, ClassVar

from ..hlo.dtypes import DType

OLDEST, NEWEST = (0, 1), (0, 5)
"""Versions of handlers that can be called, as (major, minor)."""

HOST_VERSION = (0, 3)
"""The version that our API states: handlers of later versions are called by what they know of it."""


class Stage(IntEnum):
    """XLA_FFI_ExecutionStage. RECORD is of version 0.5."""

    INSTANTIATE = 0
    PREPARE = 1
    INITIALIZE = 2
    EXECUTE = 3
    RECORD = 4


class AttrType(IntEnum):
    """XLA_FFI_AttrType."""

    ARRAY = 1
    DICTIONARY = 2
    SCALAR = 3
    STRING = 4


BUFFER = 1
"""XLA_FFI_ArgType_BUFFER and XLA_FFI_RetType_BUFFER."""

METADATA = 1
"""XLA_FFI_Extension_Metadata."""

COMMAND_BUFFER_COMPATIBLE = 1
"""XLA_FFI_HANDLER_TRAITS_COMMAND_BUFFER_COMPATIBLE."""


class ErrorCode(IntEnum):
    """XLA_FFI_Error_Code: absl's status codes."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16


DATA_TYPES: dict[DType, int] = {
    DType.PRED: 1,
    DType.S1: 30,
    DType.S2: 26,
    DType.S4: 21,
    DType.S8: 2,
    DType.S16: 3,
    DType.S32: 4,
    DType.S64: 5,
    DType.U1: 31,
    DType.U2: 27,
    DType.U4: 22,
    DType.U8: 6,
    DType.U16: 7,
    DType.U32: 8,
    DType.U64: 9,
    DType.F16: 10,
    DType.F32: 11,
    DType.F64: 12,
    DType.BF16: 16,
    DType.C64: 15,
    DType.C128: 18,
    DType.TOKEN: 17,
    DType.F8E5M2: 19,
    DType.F8E3M4: 29,
    DType.F8E4M3: 28,
    DType.F8E4M3FN: 20,
    DType.F8E4M3B11FNUZ: 23,
    DType.F8E5M2FNUZ: 24,
    DType.F8E4M3FNUZ: 25,
    DType.F4E2M1FN: 32,
    DType.F8E8M0FNU: 33,
}
"""XLA_FFI_DataType of each primitive type that a buffer may have."""

DTYPES: dict[int, DType] = {number: dtype for dtype, number in DATA_TYPES.items()}


class _Sized(Structure):
    """A structure that begins with its own size and a chain of extensions."""

    _fields_: ClassVar[Sequence[Any]] = (("struct_size", c_size_t), ("extension_start", c_void_p))


def size_of(kind: type[Structure]) -> int:
    """What XLA_FFI_STRUCT_SIZE gives: up to the end of the last field."""
    name = str(kind._fields_[-1][0])
    field = getattr(kind, name)
    return field.offset + field.size


class ExtensionBase(Structure):
    _fields_ = (("struct_size", c_size_t), ("type", c_int32), ("next", c_void_p))


class ApiVersion(_Sized):
    _fields_ = (("major_version", c_int32), ("minor_version", c_int32))


class ByteSpan(Structure):
    _fields_ = (("ptr", c_void_p), ("len", c_size_t))


class Scalar(Structure):
    _fields_ = (("dtype", c_int32), ("value", c_void_p))


class Array(Structure):
    _fields_ = (("dtype", c_int32), ("size", c_size_t), ("data", c_void_p))


class Buffer(_Sized):
    _fields_ = (("dtype", c_int32), ("data", c_void_p), ("rank", c_int64), ("dims", POINTER(c_int64)))


class Args(_Sized):
    """Also XLA_FFI_Rets: `args` is called `rets` there."""

    _fields_ = (("size", c_int64), ("types", POINTER(c_int32)), ("args", POINTER(c_void_p)))


class Attrs(_Sized):
    _fields_ = (
        ("size", c_int64),
        ("types", POINTER(c_int32)),
        ("names", POINTER(POINTER(ByteSpan))),
        ("attrs", POINTER(c_void_p)),
    )


class CallFrame(_Sized):
    _fields_ = (
        ("api", c_void_p),
        ("ctx", c_void_p),
        ("stage", c_int32),
        ("args", Args),
        ("rets", Args),
        ("attrs", Attrs),
        ("future", c_void_p),  # out
    )


CALL_FRAME_SIZE = CallFrame.future.offset
"""What handlers want in a call frame's `struct_size`, exactly: up to `attrs`, for the sake of the first version."""


class TypeId(Structure):
    _fields_ = (("type_id", c_int64),)


class TypeInfo(_Sized):
    """The lifetime of a state. A registration of version 0.1 has none behind it, and the same size."""

    _fields_ = (("deleter", c_void_p),)


class Metadata(Structure):
    """`state_type_id` is written whatever `struct_size` says."""

    _fields_ = (
        ("struct_size", c_size_t),
        ("api_version", ApiVersion),
        ("traits", c_uint32),
        ("state_type_id", TypeId),
    )


METADATA_SIZE = Metadata.traits.offset + Metadata.traits.size


class MetadataExtension(Structure):
    _fields_ = (("extension_base", ExtensionBase), ("metadata", POINTER(Metadata)))


class HandlerBundle(Structure):
    """`record` is of version 0.5; an older registration ends before it."""

    _fields_ = (
        ("instantiate", c_void_p),
        ("prepare", c_void_p),
        ("initialize", c_void_p),
        ("execute", c_void_p),
        ("record", c_void_p),
    )


class ErrorCreateArgs(_Sized):
    _fields_ = (("message", c_char_p), ("errc", c_int32))


class ErrorGetMessageArgs(_Sized):
    """Version 0.5 calls the slot Error_GetDetails, and has `errc`, too."""

    _fields_ = (("error", c_void_p), ("message", c_char_p), ("errc", c_int32))


class ErrorDestroyArgs(_Sized):
    _fields_ = (("error", c_void_p),)


class FutureCreateArgs(_Sized):
    """`struct_size` is 16: up to before `future`."""

    _fields_ = (("future", c_void_p),)


class FutureSetAvailableArgs(_Sized):
    _fields_ = (("future", c_void_p),)


class FutureSetErrorArgs(_Sized):
    _fields_ = (("future", c_void_p), ("error", c_void_p))


class _Bundle4(Structure):
    _fields_ = HandlerBundle._fields_[:4]


class HandlerRegisterArgs(_Sized):
    _fields_ = (("name", ByteSpan), ("platform", ByteSpan), ("bundle", _Bundle4), ("traits", c_uint32))


class HandlerRegisterArgs5(_Sized):
    """Of version 0.5: told apart by `struct_size`."""

    _fields_ = (("name", ByteSpan), ("platform", ByteSpan), ("bundle", HandlerBundle), ("traits", c_uint32))


class TypeRegisterArgs(_Sized):
    """`struct_size` is 40 in all versions: up to `type_id`. Before version 0.2 there is no `type_info`."""

    _fields_ = (("name", ByteSpan), ("type_id", POINTER(TypeId)), ("type_info", POINTER(TypeInfo)))


class ExecutionContextGetArgs(_Sized):
    _fields_ = (("ctx", c_void_p), ("type_id", POINTER(TypeId)), ("data", c_void_p))


class FindExtensionArgs(_Sized):
    """Of version 0.5."""

    _fields_ = (("ctx", c_void_p), ("extension_type", c_int64), ("extension", c_void_p))


class CustomOptionsGetArgs(_Sized):
    """Of version 0.5."""

    _fields_ = (("ctx", c_void_p), ("attrs", POINTER(Attrs)))


class StateArgs(_Sized):
    """XLA_FFI_State_Set_Args and XLA_FFI_State_Get_Args."""

    _fields_ = (("ctx", c_void_p), ("stage", c_int32), ("type_id", POINTER(TypeId)), ("state", c_void_p))


class OldStateArgs(_Sized):
    """Of version 0.2, and of State_Get in 0.1."""

    _fields_ = (("ctx", c_void_p), ("type_id", POINTER(TypeId)), ("state", c_void_p))


class OldestStateSetArgs(_Sized):
    """Of State_Set in version 0.1: as long as StateArgs, so that only the handler's version tells them apart."""

    _fields_ = (("ctx", c_void_p), ("type_id", POINTER(TypeId)), ("state", c_void_p), ("deleter", c_void_p))


class StreamGetArgs(_Sized):
    _fields_ = (("ctx", c_void_p), ("stream", c_void_p))


class DeviceMemoryAllocateArgs(_Sized):
    _fields_ = (("ctx", c_void_p), ("size", c_size_t), ("alignment", c_size_t), ("data", c_void_p))


class DeviceMemoryFreeArgs(_Sized):
    _fields_ = (("ctx", c_void_p), ("size", c_size_t), ("data", c_void_p))


class ThreadPoolScheduleArgs(_Sized):
    _fields_ = (("ctx", c_void_p), ("task", c_void_p), ("data", c_void_p))


class ThreadPoolNumThreadsArgs(_Sized):
    _fields_ = (("ctx", c_void_p), ("num_threads", POINTER(c_int64)))


class RunIdGetArgs(_Sized):
    _fields_ = (("ctx", c_void_p), ("run_id", c_int64))


class DeviceOrdinalGetArgs(_Sized):
    _fields_ = (("ctx", c_void_p), ("device_ordinal", c_int32))


FUNCTIONS = (
    "Error_Create",
    "Error_GetMessage",
    "Error_Destroy",
    "Handler_Register",
    "Stream_Get",
    "Type_Register",
    "ExecutionContext_Get",
    "State_Set",
    "State_Get",
    "DeviceMemory_Allocate",
    "DeviceMemory_Free",
    "ThreadPool_Schedule",
    "ThreadPool_NumThreads",
    "Future_Create",
    "Future_SetAvailable",
    "Future_SetError",
    "RunId_Get",
    "DeviceOrdinal_Get",
)
"""The functions of XLA_FFI_Api, in order. Version 0.5 has two more behind them."""

APPENDED = ("InvokeContext_FindExtension", "CustomOptions_Get")
"""The functions behind those, in version 0.5."""


class Api(_Sized):
    _fields_ = (
        ("api_version", ApiVersion),
        ("internal_api", c_void_p),
        *((name, c_void_p) for name in FUNCTIONS),
    )


class Api5(Api):
    """With the functions of version 0.5, which a handler of an older one does not see."""

    _fields_ = tuple((name, c_void_p) for name in APPENDED)


HANDLER = ctypes.CFUNCTYPE(c_void_p, c_void_p)
"""XLA_FFI_Handler: takes the address of a call frame, and returns an error or NULL."""

CAPSULE = b"xla._CUSTOM_CALL_TARGET"
"""The name of a capsule that holds a handler, as JAX's `register_ffi_target` takes it. Some have none."""
