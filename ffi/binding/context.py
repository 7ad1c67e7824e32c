"""What a handler may ask of the execution context: stream, scratch memory, threads, states, user data, ids."""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import numpy as np

from ...hlo.errors import InputError
from .. import abi
from .api import Api, ApiError, api_at
from .attributes import FAILED, Diagnostics
from .errors import Error, error_of
from .states import get_state, object_of, type_id

Stage = abi.Stage


@dataclass(frozen=True, slots=True)
class Call:
    """Where a call came from: the addresses of the API and of the execution context."""

    api_address: int
    ctx: int

    @property
    def api(self) -> Api:
        return api_at(self.api_address)


class Context:
    """Everything of the execution context, on request: `context.get(ffi.ThreadPool)`."""

    def __init__(self, call: Call):
        self._call = call
        self._given: list[Any] = []

    def get(self, kind: Any) -> Any:
        """Raises Error (INTERNAL) if the runtime does not have it."""
        diagnostics: Diagnostics = []
        found = decode_context(kind, self._call, diagnostics)
        if found is FAILED:
            raise Error.internal("".join(diagnostics))
        self._given.append(found)
        return found

    def close(self) -> None:
        for found in self._given:
            close(found)


class PlatformStream(int):
    """The address of the platform's stream, say a CUstream."""


class RunId(int):
    """The number of the logical execution."""


class DeviceOrdinal(int):
    """The number of the device."""


class ScratchAllocator:
    """Memory of the device for the time of one call."""

    def __init__(self, call: Call):
        self._call = call
        self._blocks: list[tuple[int, int]] = []

    def allocate(self, size: int, alignment: int = 1) -> int:
        """The address of new memory. Raises Error (INTERNAL) with the runtime's reason."""
        args = abi.DeviceMemoryAllocateArgs(0, None, self._call.ctx, size, alignment, None)
        try:
            self._call.api.call("DeviceMemory_Allocate", args)
        except ApiError as error:
            raise Error.internal(f"Failed to allocate scratch memory: {error}") from None
        self._blocks.append((size, args.data or 0))
        return args.data or 0

    def array(self, shape: int | tuple[int, ...], dtype: Any) -> np.ndarray:
        """New memory of the host as an array. Raises Error (INTERNAL)."""
        dtype, shape = np.dtype(dtype), (shape,) if isinstance(shape, int) else shape
        size = math.prod(shape) * dtype.itemsize
        address = self.allocate(max(size, 1), max(dtype.alignment, 1))
        memory: Any = (ctypes.c_uint8 * size).from_address(address)
        return np.ndarray(shape, dtype, memory)

    def close(self) -> None:
        while self._blocks:
            size, data = self._blocks.pop()
            args = abi.DeviceMemoryFreeArgs(0, None, self._call.ctx, size, data)
            self._call.api.call("DeviceMemory_Free", args)


_TASKS: dict[int, Callable[[], object]] = {}
_TASK_NUMBERS = itertools.count(1)


def _run_task(number: int) -> None:
    _TASKS.pop(number)()


_TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_run_task)


class ThreadPool:
    """The runtime's threads."""

    def __init__(self, call: Call):
        self._call = call

    def schedule(self, task: Callable[[], object]) -> None:
        """Run a function without arguments on a thread of the pool, or here where there is no pool."""
        number = next(_TASK_NUMBERS)
        _TASKS[number] = task
        run = ctypes.cast(_TASK, ctypes.c_void_p).value
        args = abi.ThreadPoolScheduleArgs(0, None, self._call.ctx, run, number)
        try:
            self._call.api.call("ThreadPool_Schedule", args)
        except ApiError:
            _run_task(number)

    def num_threads(self) -> int:
        """How many threads there are; 0 if the runtime does not say."""
        count = ctypes.c_int64(0)
        args = abi.ThreadPoolNumThreadsArgs(0, None, self._call.ctx, ctypes.pointer(count))
        try:
            self._call.api.call("ThreadPool_NumThreads", args)
        except ApiError:
            return 0
        return count.value


@dataclass(frozen=True, slots=True)
class StateSpec:
    """The state that a stage made. cls: its class, as the handler of that stage declares it."""

    cls: type
    stage: Stage


@dataclass(frozen=True, slots=True)
class UserDataSpec:
    """User data of the execution context, of a registered class."""

    cls: type


def _stream(call: Call) -> Any:
    args = abi.StreamGetArgs(0, None, call.ctx, None)
    call.api.call("Stream_Get", args)
    return PlatformStream(args.stream or 0)


def _run_id(call: Call) -> Any:
    args = abi.RunIdGetArgs(0, None, call.ctx, 0)
    call.api.call("RunId_Get", args)
    return RunId(args.run_id)


def _device_ordinal(call: Call) -> Any:
    args = abi.DeviceOrdinalGetArgs(0, None, call.ctx, 0)
    call.api.call("DeviceOrdinal_Get", args)
    return DeviceOrdinal(args.device_ordinal)


def _state(spec: StateSpec, call: Call) -> Any:
    return get_state(call.api, call.api_address, call.ctx, spec.stage, spec.cls)


def _user_data(spec: UserDataSpec, call: Call) -> Any:
    kind = ctypes.pointer(type_id(call.api, call.api_address, spec.cls))
    args = abi.ExecutionContextGetArgs(0, None, call.ctx, kind, None)
    call.api.call("ExecutionContext_Get", args)
    return object_of(args.data)


KINDS: dict[Any, tuple[str, Callable[[Call], Any]]] = {
    Context: ("", Context),
    PlatformStream: ("Failed to get platform stream: ", _stream),
    ScratchAllocator: ("", ScratchAllocator),
    ThreadPool: ("", ThreadPool),
    RunId: ("Failed to get run id from execution context: ", _run_id),
    DeviceOrdinal: ("Failed to get device ordinal from execution context: ", _device_ordinal),
}
"""What a context has → what XLA says before the reason why it has not, and the function that gets it."""

_SPECS: dict[type, tuple[str, Callable[[Any, Call], Any]]] = {
    StateSpec: ("Failed to get state from execution context: ", _state),
    UserDataSpec: ("Failed to get user data from execution context: ", _user_data),
}


def is_context(kind: Any) -> bool:
    return type(kind) in _SPECS or (isinstance(kind, type) and kind in KINDS)


def register_ctx_decoding(kind: type, decode: Callable[[Context], Any]) -> None:
    """Teach signatures a new type of context. What `decode` raises is the diagnostic."""

    def run(call: Call) -> Any:
        try:
            return decode(Context(call))
        except Exception as error:
            raise ApiError(error_of(error).message) from None

    KINDS[kind] = "", run


def decode_context(kind: Any, call: Call, diagnostics: Diagnostics) -> Any:
    """The value of a CtxSpec's type, or FAILED."""
    prefix, get = KINDS[kind] if type(kind) not in _SPECS else _SPECS[type(kind)]
    try:
        return get(call) if type(kind) not in _SPECS else get(kind, call)  # type: ignore[call-arg,arg-type]
    except ApiError as error:
        diagnostics.append(f"{prefix}{error}")
        return FAILED


def close(value: Any) -> None:
    """Give back what a value of the context took."""
    if isinstance(value, (ScratchAllocator, Context)):
        value.close()


if TYPE_CHECKING:
    T = TypeVar("T")
    State: TypeAlias = Annotated[T, "state"]
    Prepared: TypeAlias = Annotated[T, "state"]
    Initialized: TypeAlias = Annotated[T, "state"]
    UserData: TypeAlias = Annotated[T, "user data"]
else:

    class _Of:
        """A word that is subscripted with a class."""

        def __init__(self, name: str, make: Callable[[type], Any]):
            self.name, self.make = name, make

        def __getitem__(self, cls: Any) -> Any:
            if not isinstance(cls, type):
                raise InputError(f"{self.name}[{cls}]: no class", remedy="give the class of the object")
            return self.make(cls)

    State = _Of("State", lambda cls: StateSpec(cls, Stage.INSTANTIATE))
    Prepared = _Of("Prepared", lambda cls: StateSpec(cls, Stage.PREPARE))
    Initialized = _Of("Initialized", lambda cls: StateSpec(cls, Stage.INITIALIZE))
    UserData = _Of("UserData", UserDataSpec)
