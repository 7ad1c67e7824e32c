"""The public names of testbed.ffi: what handlers written in Python need."""

from ..abi import ErrorCode as ErrorCode
from ..abi import Stage as Stage
from .attributes import Dictionary as Attrs
from .attributes import Dictionary as Dictionary
from .attributes import enum_type as enum_type
from .attributes import register_attr_decoding as register_attr_decoding
from .buffers import RemainingArgs as RemainingArgs
from .buffers import RemainingRets as RemainingRets
from .buffers import register_arg_decoding as register_arg_decoding
from .buffers import register_ret_decoding as register_ret_decoding
from .context import Context as Context
from .context import Context as Ctx
from .context import DeviceOrdinal as DeviceOrdinal
from .context import Initialized as Initialized
from .context import PlatformStream as PlatformStream
from .context import Prepared as Prepared
from .context import RunId as RunId
from .context import ScratchAllocator as ScratchAllocator
from .context import State as State
from .context import ThreadPool as ThreadPool
from .context import UserData as UserData
from .context import register_ctx_decoding as register_ctx_decoding
from .errors import Error as Error
from .export import Binding as Binding
from .export import bind as bind
from .export import capsule as capsule
from .export import handler as handler
from .export import register as register
from .export import register_with_jax as register_with_jax
from .futures import CountDownPromise as CountDownPromise
from .futures import Future as Future
from .futures import Promise as Promise
from .handler import Handler as Handler
from .kernels import Kernel as Kernel
from .native import KernelHandler as KernelHandler
from .states import register_type as register_type
from .vocabulary import BF16 as BF16
from .vocabulary import C64 as C64
from .vocabulary import C128 as C128
from .vocabulary import F4E2M1FN as F4E2M1FN
from .vocabulary import F8E3M4 as F8E3M4
from .vocabulary import F8E4M3 as F8E4M3
from .vocabulary import F8E4M3B11FNUZ as F8E4M3B11FNUZ
from .vocabulary import F8E4M3FN as F8E4M3FN
from .vocabulary import F8E4M3FNUZ as F8E4M3FNUZ
from .vocabulary import F8E5M2 as F8E5M2
from .vocabulary import F8E5M2FNUZ as F8E5M2FNUZ
from .vocabulary import F8E8M0FNU as F8E8M0FNU
from .vocabulary import F16 as F16
from .vocabulary import F32 as F32
from .vocabulary import F64 as F64
from .vocabulary import PRED as PRED
from .vocabulary import S1 as S1
from .vocabulary import S2 as S2
from .vocabulary import S4 as S4
from .vocabulary import S8 as S8
from .vocabulary import S16 as S16
from .vocabulary import S32 as S32
from .vocabulary import S64 as S64
from .vocabulary import TOKEN as TOKEN
from .vocabulary import U1 as U1
from .vocabulary import U2 as U2
from .vocabulary import U4 as U4
from .vocabulary import U8 as U8
from .vocabulary import U16 as U16
from .vocabulary import U32 as U32
from .vocabulary import U64 as U64
from .vocabulary import AnyBuffer as AnyBuffer
from .vocabulary import Attr as Attr
from .vocabulary import Buffer as Buffer
from .vocabulary import BufferR0 as BufferR0
from .vocabulary import BufferR1 as BufferR1
from .vocabulary import BufferR2 as BufferR2
from .vocabulary import BufferR3 as BufferR3
from .vocabulary import BufferR4 as BufferR4
from .vocabulary import OptionalArg as OptionalArg
from .vocabulary import OptionalRet as OptionalRet
from .vocabulary import Pointer as Pointer
from .vocabulary import Result as Result
from .vocabulary import Ret as Ret
from .vocabulary import Span as Span
from .vocabulary import Token as Token
from .vocabulary import bool_ as bool_
from .vocabulary import complex64 as complex64
from .vocabulary import complex128 as complex128
from .vocabulary import float32 as float32
from .vocabulary import float64 as float64
from .vocabulary import int8 as int8
from .vocabulary import int16 as int16
from .vocabulary import int32 as int32
from .vocabulary import int64 as int64
from .vocabulary import uint8 as uint8
from .vocabulary import uint16 as uint16
from .vocabulary import uint32 as uint32
from .vocabulary import uint64 as uint64

__all__ = [
    "BF16",
    "C64",
    "C128",
    "F4E2M1FN",
    "F8E3M4",
    "F8E4M3",
    "F8E4M3B11FNUZ",
    "F8E4M3FN",
    "F8E4M3FNUZ",
    "F8E5M2",
    "F8E5M2FNUZ",
    "F8E8M0FNU",
    "F16",
    "F32",
    "F64",
    "PRED",
    "S1",
    "S2",
    "S4",
    "S8",
    "S16",
    "S32",
    "S64",
    "TOKEN",
    "U1",
    "U2",
    "U4",
    "U8",
    "U16",
    "U32",
    "U64",
    "AnyBuffer",
    "Attr",
    "Attrs",
    "Binding",
    "Buffer",
    "BufferR0",
    "BufferR1",
    "BufferR2",
    "BufferR3",
    "BufferR4",
    "Context",
    "CountDownPromise",
    "Ctx",
    "DeviceOrdinal",
    "Dictionary",
    "Error",
    "ErrorCode",
    "Future",
    "Handler",
    "Initialized",
    "Kernel",
    "KernelHandler",
    "OptionalArg",
    "OptionalRet",
    "PlatformStream",
    "Pointer",
    "Prepared",
    "Promise",
    "RemainingArgs",
    "RemainingRets",
    "Result",
    "Ret",
    "RunId",
    "ScratchAllocator",
    "Span",
    "Stage",
    "State",
    "ThreadPool",
    "Token",
    "UserData",
    "bind",
    "bool_",
    "capsule",
    "complex64",
    "complex128",
    "enum_type",
    "float32",
    "float64",
    "handler",
    "int8",
    "int16",
    "int32",
    "int64",
    "register",
    "register_arg_decoding",
    "register_attr_decoding",
    "register_ctx_decoding",
    "register_ret_decoding",
    "register_type",
    "register_with_jax",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]
