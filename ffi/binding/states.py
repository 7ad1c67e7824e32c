"""States and user data: Python classes as types of XLA's FFI, and the native owner of an object.

An API numbers the types, so that a class has an id for each runtime that called a handler of it.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
from typing import Any, NamedTuple

from ...codegen.load import load
from ...codegen.runtime import runtime_object
from .. import abi
from .api import Api
from .native_ir import DELETER_IR


class _Native(NamedTuple):
    new: Any
    bury: Any
    deleter: int
    info: abi.TypeInfo


@functools.cache
def native() -> _Native:
    """The compiled owner of states. It is never unloaded: a runtime may delete a state after Python's end."""
    code = load([runtime_object(DELETER_IR, lambda: DELETER_IR)])
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
    deleter = code.address("testbed_ffi_delete_state")
    info = abi.TypeInfo(abi.size_of(abi.TypeInfo), None, deleter)
    new = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(code.address("testbed_ffi_new_state"))
    bury = ctypes.PYFUNCTYPE(None)(code.address("testbed_ffi_bury_states"))
    return _Native(new, bury, deleter, info)


_LOCK = threading.Lock()
_NAMES: dict[type, str] = {}
_IDS: dict[tuple[int, type], abi.TypeId] = {}
_NUMBERS = itertools.count()


def register_type(cls: type, name: str | None = None) -> type:
    """Name a class of states or user data, for runtimes; without it, a class has its module's and its own name."""
    with _LOCK:
        _NAMES[cls] = name or f"testbed.{cls.__module__}.{cls.__qualname__}.{next(_NUMBERS)}"
    return cls


def type_id(api: Api, address: int, cls: type) -> abi.TypeId:
    """The id of a class in the API at an address; its registration there, where it has none. Raises ApiError."""
    found = _IDS.get((address, cls))
    if found is not None:
        return found
    if cls not in _NAMES:
        register_type(cls)
    with _LOCK:
        name, made = _NAMES[cls].encode(), abi.TypeId(0)
        if (address, cls) in _IDS:
            return _IDS[address, cls]
        text = ctypes.create_string_buffer(name)
        span = abi.ByteSpan(ctypes.addressof(text), len(name))
        info = native().info
        args = abi.TypeRegisterArgs(0, None, span, ctypes.pointer(made), ctypes.pointer(info))
        api.call("Type_Register", args, abi.TypeRegisterArgs.type_info.offset)
        _IDS[address, cls] = made
    return made


def set_state(api: Api, address: int, ctx: int, stage: abi.Stage, cls: type, state: Any) -> None:
    """Give an object to the runtime as the state of a stage. Raises ApiError."""
    kind = ctypes.pointer(type_id(api, address, cls))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(state))
    node = native().new(id(state))
    args: ctypes.Structure
    if api.version < (0, 2):
        args = abi.OldestStateSetArgs(0, None, ctx, kind, node, native().deleter)
    elif api.version < (0, 3):
        args = abi.OldStateArgs(0, None, ctx, kind, node)
    else:
        args = abi.StateArgs(0, None, ctx, stage, kind, node)
    try:
        api.call("State_Set", args)
    except Exception:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(native().deleter)(node)
        native().bury()
        raise


def get_state(api: Api, address: int, ctx: int, stage: abi.Stage, cls: type) -> Any:
    """The object that `set_state` gave. Raises ApiError."""
    kind = ctypes.pointer(type_id(api, address, cls))
    args: Any
    if api.version < (0, 3):
        args = abi.OldStateArgs(0, None, ctx, kind, None)
    else:
        args = abi.StateArgs(0, None, ctx, stage, kind, None)
    api.call("State_Get", args)
    return object_of(args.state)


def object_of(node: int | None) -> Any:
    """The object of a node (native_ir.py); None for NULL."""
    if not node:
        return None
    return ctypes.py_object.from_address(node + 8).value
