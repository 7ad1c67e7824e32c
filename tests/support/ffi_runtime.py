"""A small runtime for FFI handlers, in ctypes: an API of any version, and call frames over numpy arrays.

It is written from the header, and shares nothing but ffi/abi.py with the runtime of the project.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ...ffi import abi
from ...hlo.dtypes import NUMPY

NUMBERS = {NUMPY[dtype]: number for dtype, number in abi.DATA_TYPES.items() if dtype in NUMPY}
FUNCTION = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Runtime:
    """An API table. version: what it says of itself. Errors are numbers, which `call` makes texts of.

    It lives as long as the process, as the API of a runtime does.
    """

    _alive: ClassVar[list[Runtime]] = []

    def __init__(self, version: tuple[int, int] = (0, 3), streams: bool = False):
        self.version, self.streams = version, streams
        self.errors: dict[int, tuple[int, str]] = {}
        self.types: dict[str, int] = {}
        self.deleters: dict[int, int] = {}
        self.states: dict[tuple[int, int], tuple[int, int]] = {}
        self.user_data: dict[int, int] = {}
        self.scratch: dict[int, Any] = {}
        self.futures: dict[int, threading.Event] = {}
        self.outcomes: dict[int, tuple[int, str] | None] = {}
        self.tasks: list[threading.Thread] = []
        self._number = 1000
        self._alive.append(self)
        methods = [getattr(self, f"_{name.lower()}", None) for name in abi.FUNCTIONS]
        self._functions = [FUNCTION(method) if method else None for method in methods]
        kind = abi.Api5 if version >= (0, 5) else abi.Api
        self.api = kind(ctypes.sizeof(kind), None, abi.ApiVersion(24, None, *version), None)
        for name, function in zip(abi.FUNCTIONS, self._functions):
            setattr(self.api, name, ctypes.cast(function, ctypes.c_void_p).value if function else None)

    def number(self) -> int:
        self._number += 8
        return self._number

    def fail(self, code: int, text: str) -> int:
        number = self.number()
        self.errors[number] = code, text
        return number

    # -- the functions of the API -------------------------------------------------------------------------------------
    def _error_create(self, address):
        args = abi.ErrorCreateArgs.from_address(address)
        return self.fail(args.errc, args.message.decode())

    def _error_getmessage(self, address):
        args = abi.ErrorGetMessageArgs.from_address(address)
        self._text = ctypes.create_string_buffer(self.errors[args.error][1].encode())
        ctypes.c_void_p.from_address(address + abi.ErrorGetMessageArgs.message.offset).value = ctypes.addressof(
            self._text
        )
        if args.struct_size >= 36:
            args.errc = self.errors[args.error][0]
        return 0

    def _error_destroy(self, address):
        del self.errors[abi.ErrorDestroyArgs.from_address(address).error]
        return 0

    def _type_register(self, address):
        args = abi.TypeRegisterArgs.from_address(address)
        name = ctypes.string_at(args.name.ptr, args.name.len).decode()
        if name in self.types:
            return self.fail(6, f"type {name} is registered")
        number = args.type_id.contents.type_id = self.types[name] = len(self.types) + 1
        if self.version >= (0, 2):
            self.deleters[number] = args.type_info.contents.deleter
        return 0

    def _state_set(self, address):
        kinds = {(0, 1): abi.OldestStateSetArgs, (0, 2): abi.OldStateArgs}
        args = kinds.get(self.version, abi.StateArgs).from_address(address)
        number = args.type_id.contents.type_id
        if self.version == (0, 1):
            self.deleters[number] = args.deleter
        self.states[args.ctx or 0, getattr(args, "stage", 0)] = number, args.state
        return 0

    def _state_get(self, address):
        args = (abi.OldStateArgs if self.version < (0, 3) else abi.StateArgs).from_address(address)
        found = self.states.get((args.ctx or 0, getattr(args, "stage", 0)))
        if found is None or found[0] != args.type_id.contents.type_id:
            return self.fail(5, "State is not set")
        args.state = found[1]
        return 0

    def delete_states(self):
        for number, state in self.states.values():
            ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(self.deleters[number])(state)
        self.states.clear()

    def _executioncontext_get(self, address):
        args = abi.ExecutionContextGetArgs.from_address(address)
        number = args.type_id.contents.type_id
        if number not in self.user_data:
            return self.fail(5, f"no user data of type {number}")
        args.data = self.user_data[number]
        return 0

    def _stream_get(self, address):
        if not self.streams:
            return self.fail(12, "there are no streams")
        abi.StreamGetArgs.from_address(address).stream = 0x5EA
        return 0

    def _devicememory_allocate(self, address):
        args = abi.DeviceMemoryAllocateArgs.from_address(address)
        if args.size > 1 << 30:
            return self.fail(8, "too much")
        block = (ctypes.c_uint8 * (args.size + args.alignment))()
        start = ctypes.addressof(block)
        args.data = start + -start % args.alignment
        self.scratch[args.data] = block
        return 0

    def _devicememory_free(self, address):
        del self.scratch[abi.DeviceMemoryFreeArgs.from_address(address).data]
        return 0

    def _threadpool_schedule(self, address):
        args = abi.ThreadPoolScheduleArgs.from_address(address)
        task, data = DELETER(args.task), args.data
        self.tasks.append(threading.Thread(target=lambda: task(data)))
        self.tasks[-1].start()
        return 0

    def _threadpool_numthreads(self, address):
        abi.ThreadPoolNumThreadsArgs.from_address(address).num_threads.contents.value = 3
        return 0

    def _future_create(self, address):
        number = self.number()
        self.futures[number] = threading.Event()
        abi.FutureCreateArgs.from_address(address).future = number
        return 0

    def _future_setavailable(self, address):
        number = abi.FutureSetAvailableArgs.from_address(address).future
        self.outcomes[number] = None
        self.futures[number].set()
        return 0

    def _future_seterror(self, address):
        args = abi.FutureSetErrorArgs.from_address(address)
        self.outcomes[args.future] = self.errors.pop(args.error)
        self.futures[args.future].set()
        return 0

    def _runid_get(self, address):
        abi.RunIdGetArgs.from_address(address).run_id = 77
        return 0

    def _deviceordinal_get(self, address):
        abi.DeviceOrdinalGetArgs.from_address(address).device_ordinal = 5
        return 0

    # -- calls --------------------------------------------------------------------------------------------------------
    def metadata(self, address: int, size: int = abi.METADATA_SIZE) -> abi.Metadata | str:
        """What a handler says of itself, or its error."""
        metadata = abi.Metadata(size)
        base = abi.ExtensionBase(abi.size_of(abi.MetadataExtension), abi.METADATA, None)
        extension = abi.MetadataExtension(base, ctypes.pointer(metadata))
        frame = Frame(self, [], [], {})
        frame.frame.extension_start = ctypes.addressof(extension)
        return frame.call(address) or metadata


class Frame:
    """A call frame. args, rets: numpy arrays; attrs: by name, as `attribute` takes them."""

    def __init__(
        self,
        runtime: Runtime,
        args: Sequence[np.ndarray],
        rets: Sequence[np.ndarray],
        attrs: Mapping[str, Any],
        stage: int = abi.Stage.EXECUTE,
        ctx: int = 0,
    ):
        self.runtime = runtime
        self.keep: list[Any] = []
        self.buffers: dict[bool, list[abi.Buffer]] = {}
        frame = self.frame = abi.CallFrame(abi.CALL_FRAME_SIZE, None, ctypes.addressof(runtime.api), ctx, stage)
        frame.args, frame.rets = self._operands(args, False), self._operands(rets, True)
        frame.attrs = self.dictionary(attrs)

    def hold(self, value):
        self.keep.append(value)
        return value

    def address(self, value) -> int:
        return ctypes.addressof(self.hold(value))

    def _operands(self, arrays, is_result) -> abi.Args:
        found = self.buffers[is_result] = [self.hold(self.buffer(a)) for a in arrays]
        kinds = self.hold((ctypes.c_int32 * len(found))(*[abi.BUFFER] * len(found)))
        places = self.hold((ctypes.c_void_p * len(found))(*map(ctypes.addressof, found)))
        return abi.Args(40, None, len(found), kinds, places)

    def buffer(self, array: np.ndarray) -> abi.Buffer:
        dims = self.hold((ctypes.c_int64 * max(array.ndim, 1))(*array.shape))
        self.keep.append(array)
        return abi.Buffer(48, None, NUMBERS[array.dtype], array.ctypes.data, array.ndim, dims)

    def dictionary(self, attrs: Mapping[str, Any]) -> abi.Attrs:
        rows = sorted((name.encode(), self.attribute(value)) for name, value in attrs.items())
        kinds = self.hold((ctypes.c_int32 * len(rows))(*[kind for _, (kind, _) in rows]))
        spans = [self.hold(self.span(name)) for name, _ in rows]
        names = self.hold((ctypes.POINTER(abi.ByteSpan) * len(rows))(*map(ctypes.pointer, spans)))
        values = self.hold((ctypes.c_void_p * len(rows))(*[value for _, (_, value) in rows]))
        return abi.Attrs(48, None, len(rows), kinds, names, values)

    def span(self, text: bytes) -> abi.ByteSpan:
        return abi.ByteSpan(self.address(ctypes.create_string_buffer(text)), len(text))

    def attribute(self, value: Any) -> tuple[int, int]:
        """str, dict, numpy array or numpy scalar → kind and address."""
        if isinstance(value, str):
            return abi.AttrType.STRING, self.address(self.span(value.encode()))
        if isinstance(value, Mapping):
            return abi.AttrType.DICTIONARY, self.address(self.dictionary(value))
        array = self.hold(np.array(value))
        number = NUMBERS[array.dtype]
        if array.ndim:
            return abi.AttrType.ARRAY, self.address(abi.Array(number, array.size, array.ctypes.data))
        return abi.AttrType.SCALAR, self.address(abi.Scalar(number, array.ctypes.data))

    def point(self, number: int, array: np.ndarray, is_result: bool = False) -> None:
        """Let a buffer lie elsewhere."""
        self.buffers[is_result][number].data = self.hold(array).ctypes.data

    def call(self, address: int) -> str | None:
        """Call a handler: None, or "CODE: text". All errors are destroyed."""
        error = FUNCTION(address)(ctypes.addressof(self.frame))
        if not error:
            return None
        code, text = self.runtime.errors.pop(error)
        assert not self.runtime.errors
        return f"{abi.ErrorCode(code).name}: {text}"


RUNTIME = Runtime(streams=True)


def call(handler, args=(), rets=(), attrs=None, runtime=RUNTIME, times=3, **where):
    """Call several times: decoded in Python first, and by native code then. All must answer alike."""
    frame = Frame(runtime, args, rets, attrs or {}, handler.binding.stage, **where)
    answers = {frame.call(handler.ffi_address) for _ in range(times)}
    assert len(answers) == 1
    return answers.pop()
