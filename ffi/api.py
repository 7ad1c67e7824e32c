"""XLA_FFI_Api as our runtime offers it: a table of functions, compiled where speed matters, else in Python.

The compiled part (host_ir.py) is linked by LLVM, because C++ exceptions need its unwind tables.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..codegen.threads import processors
from .abi import (
    APPENDED,
    FUNCTIONS,
    HANDLER,
    HOST_VERSION,
    Api5,
    ApiVersion,
    DeviceMemoryAllocateArgs,
    DeviceMemoryFreeArgs,
    ErrorCode,
    ExecutionContextGetArgs,
    HandlerRegisterArgs,
    HandlerRegisterArgs5,
    OldestStateSetArgs,
    OldStateArgs,
    Stage,
    StateArgs,
    TypeInfo,
    TypeRegisterArgs,
    size_of,
)
from .calls import key
from .host_ir import OLD, PYTHON, host_ir
from .registry import Handler, add, platform_name, register_type, type_info


@dataclass(frozen=True, eq=False, slots=True)
class Native:
    """The compiled part. api: the address of the table. call(handler, frame) returns an error or 0, also for a C++
    exception. error(code, text) makes an error. future_wait(future, nanoseconds) says whether it is completed;
    future_end gives its error and frees it. invoke: name of a version → the function that a call site names.
    """

    api: int
    call: Callable[[int, int], int | None]
    error: Callable[[int, bytes], int]
    future_wait: Callable[[int, int], int]
    future_end: Callable[[int], int | None]
    invoke: dict[str, int]
    addresses: dict[str, int]
    keep: tuple[Any, ...]


def take_error(error: int) -> tuple[int, str]:
    """The code and the text of an error, which is destroyed."""
    code = ctypes.c_int64.from_address(error).value
    text = ctypes.string_at(error + 8).decode("utf-8", "replace")
    _free(error)
    return code, text


_LIBC = ctypes.CDLL(None)
_free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(("free", _LIBC))

FAILED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
SITES: dict[int, Any] = {}
"""Number of a call site → what sites.py knows of it."""


def site_at(address: int | None) -> Any:
    """The call site whose memory is at an address."""
    return SITES[ctypes.c_int64.from_address((address or 0) + 16).value]


@functools.cache
def native() -> Native:
    """The compiled part; made once a process. Raises CodegenError where LLVM cannot make code for this machine."""
    with _LOCK:
        return _make()


_LOCK = threading.Lock()


def _make() -> Native:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    exceptions = True
    try:
        llvm.load_library_permanently("libstdc++.so.6")
    except RuntimeError:  # no library of C++ can be in this process either
        exceptions = False
    module = llvm.parse_assembly(host_ir(exceptions))
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2, jit=True)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    addresses = {f.name: engine.get_function_address(f.name) for f in module.functions if not f.is_declaration}
    table = _table(addresses)
    functions = (ctypes.c_void_p * len(PYTHON)).from_address(engine.get_global_value_address("testbed_ffi_python"))
    in_python = {"failed": FAILED(_failed), "wait": FAILED(wait)}
    in_python |= {name: HANDLER(function) for name, function in _OF_CALLS.items()}
    made = [in_python[name] for name in PYTHON]
    functions[:] = [ctypes.cast(f, ctypes.c_void_p).value for f in made]
    ctypes.c_uint32.from_address(engine.get_global_value_address("testbed_ffi_key")).value = key()
    ctypes.c_int64.from_address(engine.get_global_value_address("testbed_ffi_threads")).value = processors()
    call = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(addresses["testbed_ffi_call"])
    error = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64, ctypes.c_char_p)(addresses["testbed_ffi_error"])
    _MAKE_ERROR.append(error)
    waiting = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    future_wait = waiting(addresses["testbed_ffi_future_wait"])
    future_end = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(addresses["testbed_ffi_future_end"])
    reset = ctypes.CFUNCTYPE(None)(addresses["testbed_ffi_tasks_reset"])
    reset()
    os.register_at_fork(after_in_child=reset)  # a child has none of the threads
    invoke = {name: addresses[f"testbed_ffi_{name}"] for name in ("typed", *OLD)}
    keep = engine, module, table, made, functions
    return Native(ctypes.addressof(table), call, error, future_wait, future_end, invoke, addresses, keep)


def _table(addresses: dict[str, int]) -> Api5:
    """The table of functions."""
    api = Api5()
    api.struct_size = size_of(Api5)
    api.api_version = ApiVersion(ApiVersion.minor_version.offset + 4, None, *HOST_VERSION)
    for name in (*FUNCTIONS, *APPENDED):
        function = addresses.get(name) or ctypes.cast(_callback(name), ctypes.c_void_p).value
        setattr(api, name, function)
    return api


_MAKE_ERROR: list[Callable[[int, bytes], int]] = []


def error_of(code: ErrorCode, text: str) -> int:
    """A new error."""
    return _MAKE_ERROR[0](int(code), text.encode("utf-8", "replace"))


_CALLBACKS: dict[str, Any] = {}


def _callback(name: str) -> Any:
    """A function of the table that is written in Python; it returns an error's address, or None."""
    if name not in _CALLBACKS:
        function = _IN_PYTHON[name]

        def called(args: int | None) -> int | None:
            try:
                return function(args or 0)
            except BaseException as error:  # nothing may pass through native code
                return error_of(ErrorCode.INTERNAL, f"{type(error).__name__}: {error}")

        _CALLBACKS[name] = HANDLER(called)
    return _CALLBACKS[name]


def _failed(site: int | None, error: int) -> None:
    site_at(site).failed(*take_error(error))


# --- futures ---------------------------------------------------------------------------------------------------------

WAITING = 50_000_000
"""Nanoseconds after which a wait lets Python look at signals."""


def wait(site: int | None, future: int) -> None:
    """Wait until a future is completed; its error ends the run."""
    host = native()
    while not host.future_wait(future, WAITING):
        pass
    error = host.future_end(future)
    if error:
        site_at(site).failed(*take_error(error))


# --- what belongs to a call ------------------------------------------------------------------------------------------


def _context_get(args: int | None) -> int | None:
    number = ExecutionContextGetArgs.from_address(args or 0).type_id[0].type_id
    return error_of(ErrorCode.NOT_FOUND, f"User data with type id {number} not found in execution context")


def _state_set(args: int) -> int | None:
    given = StateArgs.from_address(args)
    site = site_at(given.ctx)
    if site.version[1] >= 3:
        return _keep(site, given.stage, given.type_id[0].type_id, given.state, None)
    old = OldestStateSetArgs.from_address(args)
    deleter = old.deleter if site.version[1] < 2 else None
    return _keep(site, int(Stage.INSTANTIATE), old.type_id[0].type_id, old.state, deleter)


def _keep(site: Any, stage: int, type_id: int, state: int, deleter: int | None) -> int | None:
    if deleter is None:
        info = type_info(type_id)
        if info is None:
            return error_of(ErrorCode.INVALID_ARGUMENT, f"Type id {type_id} is not registered with a static registry")
        deleter = info
    return site.set_state(stage, type_id, state, deleter)


def _state_get(args: int | None) -> int | None:
    try:
        given = StateArgs.from_address(args or 0)
        site = site_at(given.ctx)
        if given.struct_size >= size_of(StateArgs):
            found = site.state(given.stage, given.type_id[0].type_id)
            if isinstance(found, str):
                return error_of(ErrorCode.NOT_FOUND, found)
            given.state = found
            return None
        old = OldStateArgs.from_address(args or 0)
        found = site.state(int(Stage.INSTANTIATE), old.type_id[0].type_id)
        if isinstance(found, str):
            return error_of(ErrorCode.NOT_FOUND, found)
        old.state = found
        return None
    except BaseException as error:  # nothing may pass through native code
        return error_of(ErrorCode.INTERNAL, f"{type(error).__name__}: {error}")


def _memory_allocate(args: int | None) -> int | None:
    """Memory of the device for a handler on this thread."""
    given = DeviceMemoryAllocateArgs.from_address(args or 0)
    try:
        given.data = site_at(given.ctx).allocate(given.size, given.alignment)
    except Exception as error:
        return error_of(ErrorCode.RESOURCE_EXHAUSTED, str(error))
    return None


def _memory_free(args: int | None) -> int | None:
    given = DeviceMemoryFreeArgs.from_address(args or 0)
    try:
        site_at(given.ctx).free(given.data or 0)
    except Exception as error:
        return error_of(ErrorCode.INVALID_ARGUMENT, str(error))
    return None


_OF_CALLS: dict[str, Callable[[int | None], int | None]] = {
    "state_get": _state_get,
    "context_get": _context_get,
    "memory_allocate": _memory_allocate,
    "memory_free": _memory_free,
}
"""Functions of PYTHON (host_ir.py) that compiled ones call with what they were called with."""


# --- static registration ---------------------------------------------------------------------------------------------


def _text(span: Any) -> str:
    return ctypes.string_at(span.ptr, span.len).decode("utf-8", "replace") if span.len else ""


def _register_handler(args: int) -> int | None:
    given: Any = HandlerRegisterArgs.from_address(args)
    if given.struct_size >= size_of(HandlerRegisterArgs5):
        given = HandlerRegisterArgs5.from_address(args)
    stages: dict[str, Any] = {name: getattr(given.bundle, name) or 0 for name, _ in given.bundle._fields_}
    try:
        add(Handler(_text(given.name), platform_name(_text(given.platform)), **stages, traits=given.traits))
    except Exception as error:
        return error_of(ErrorCode.ALREADY_EXISTS, str(error))
    return None


def _register_type(args: int) -> int | None:
    given = TypeRegisterArgs.from_address(args)
    deleter = _deleter(ctypes.cast(given.type_info, ctypes.c_void_p).value or 0)
    try:
        given.type_id[0].type_id = register_type(_text(given.name), given.type_id[0].type_id, deleter or 0)
    except Exception as error:
        return error_of(ErrorCode.INVALID_ARGUMENT, str(error))
    return None


def _deleter(type_info: int) -> int | None:
    """The deleter of XLA_FFI_TypeInfo at an address, if one is there: what lies behind a registration of version 0.1
    is any word, and nothing but the structure's size tells.
    """
    read, write = os.pipe()
    try:  # the system copies the bytes, so that an address of nothing is an error and no crash
        if _LIBC.write(write, ctypes.c_void_p(type_info), ctypes.c_size_t(ctypes.sizeof(TypeInfo))) != size_of(
            TypeInfo
        ):
            return None
        found = TypeInfo.from_buffer_copy(os.read(read, ctypes.sizeof(TypeInfo)))
    finally:
        os.close(read)
        os.close(write)
    return found.deleter if found.struct_size == size_of(TypeInfo) and not found.extension_start else None


_IN_PYTHON: dict[str, Callable[[int], int | None]] = {
    "Handler_Register": _register_handler,
    "Type_Register": _register_type,
    "State_Set": _state_set,
}
"""The functions that are not compiled: each is called once a library or once a state."""
