"""A fake of the C interface of a GPU's driver, CUDA's or HIP's: it checks each argument and gives the driver's codes.

Its functions are C functions with the types of backends/gpu/driver.py, so that calls go through ctypes as real ones do.
The device's memory is the host's, a stream is a thread, and a module is an object file for the host: its kernels read
the number of their work item from a variable (host_items.py). PTX is loaded, too, and its launches are recorded.

The garbage collector may run within any call of the driver, here as in a real process, and a finalizer then calls the
driver again on the same thread: it may find a call half done, or free memory and wait for all streams. So nothing here
is locked while Python code runs, a thread waits without a lock, and tables are read and changed by single operations of
a dict.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import re
import threading
import time
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from ...backends.gpu.driver import ERROR_LOG, ERROR_LOG_BYTES, FUNCTIONS, NOT_READY, Dialect
from ...codegen.load import LoadedCode, load
from .host_items import ITEM, PLACE, WORKER, run_groups

INVALID_VALUE, OUT_OF_MEMORY, NO_DEVICE, INVALID_DEVICE, INVALID_IMAGE = 1, 2, 100, 101, 200
INVALID_CONTEXT, INVALID_HANDLE, NOT_FOUND, LAUNCH_FAILED = 201, 400, 500, 719


PAUSE = 2e-5
"""Seconds after which a thread that waits looks again."""


def _at(address: int | None, type_: Any, count: int) -> list[int]:
    return list((type_ * count).from_address(address)) if address else []


def _work(queue: SimpleQueue[Callable[[], None] | None]) -> None:
    while (job := queue.get()) is not None:
        job()
        del job  # it keeps the stream


class _Done:
    """That work has ended. A Future of the standard library is locked while a thread begins to wait for it."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.reached = False

    def result(self) -> None:
        """Wait for it. Raises what it raised."""
        while not self.reached:
            time.sleep(PAUSE)
        if self.error is not None:
            raise self.error


class _Stream:
    """Work in order on a thread, which ends with the stream."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self.failure = 0
        threading.Thread(target=_work, args=(self._jobs,), name=WORKER, daemon=True).start()
        weakref.finalize(self, self._jobs.put, None).atexit = False

    def submit(self, work: Callable[[], object]) -> _Done:
        done = _Done()

        def run() -> None:
            try:
                if not self.failure:
                    self.failure = work() or 0  # type: ignore[assignment]  # a code
            except BaseException as error:
                done.error = error
            done.reached = True

        self._jobs.put(run)
        return done


class _Event:
    def __init__(self) -> None:
        self.done: _Done | None = None
        self.at = 0.0


class _Module:
    def __init__(self, code: LoadedCode | None, text: str, grouped: bool = False):
        self.code, self.text, self.lock, self.grouped = code, text, threading.Lock(), grouped


class _Function:
    def __init__(self, module: _Module, name: str, count: int):
        self.module, self.name, self.count = module, name, count


class RecordingDriver:
    """The library: an attribute for each symbol of a dialect. calls: (name of a function, its arguments) in order.

    devices: how many. fail: name → the code that the next call of it returns. memory: bytes of each device.
    arguments: kernel of an object file → how many it takes, which the file does not say.
    """

    def __init__(self, dialect: Dialect, devices: int = 2, memory: int = 8 << 30, capability: tuple[int, int] = (9, 0)):
        self.dialect, self.devices, self.memory = dialect, devices, memory
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.fail: dict[str, int] = {}
        self.arguments: dict[str, int] = {}
        self.live: dict[int, Any] = {}
        self.blocks: dict[int, tuple[str, Any, int]] = {}
        self._handles, self._local = itertools.count(0x1000, 16), threading.local()
        self._capability = capability
        types = {symbol: (name, FUNCTIONS[name]) for name, symbol in dialect.functions.items()}
        types |= {symbol: (symbol, parameters) for symbol, parameters in dialect.others.items()}
        for symbol, (name, parameters) in types.items():
            function = ctypes.CFUNCTYPE(ctypes.c_int, *parameters)(self._checked(name))
            setattr(self, symbol, function)

    def _checked(self, name: str) -> Callable[..., int]:
        body = getattr(self, f"_{name}")

        def called(*arguments: Any) -> int:
            self.calls.append((name, arguments))
            return self.fail.pop(name, 0) or body(*arguments)

        return called

    # -- handles -------------------------------------------------------------------------------------------------------
    def _new(self, place: Any, made: Any) -> int:
        if not place:
            return INVALID_VALUE
        handle = next(self._handles)
        self.live[handle] = made
        place[0] = handle
        return 0

    def _is(self, handle: int | None, kind: type) -> Any:
        found = self.live.get(handle or 0)
        return found if isinstance(found, kind) and getattr(self._local, "device", None) is not None else None

    def _drop(self, handle: int | None, kind: type) -> int:
        return 0 if isinstance(self.live.pop(handle or 0, None), kind) else INVALID_HANDLE

    def of(self, kind: str) -> int:
        """How many handles of a kind are alive: 'Stream', 'Event', 'Module'."""
        return sum(type(made).__name__ == f"_{kind}" for made in self.live.copy().values())

    def entered(self) -> int | None:
        """The device of this thread."""
        return getattr(self._local, "device", None)

    # -- devices -------------------------------------------------------------------------------------------------------
    def _init(self, flags: int) -> int:
        return INVALID_VALUE if flags else (0 if self.devices else NO_DEVICE)

    def _device_count(self, place: Any) -> int:
        place[0] = self.devices
        return 0

    def _device(self, place: Any, ordinal: int) -> int:
        place[0] = ordinal
        return 0 if 0 <= ordinal < self.devices else INVALID_DEVICE

    def _device_name(self, text: Any, size: int, device: int) -> int:
        name = f"recording {self.dialect.name}".encode() + b"\0"
        if not 0 <= device < self.devices or size < len(name):
            return INVALID_VALUE
        ctypes.memmove(text, name, len(name))
        return 0

    def _attribute(self, place: Any, number: int, device: int) -> int:
        name = next((n for n, value in self.dialect.attributes.items() if value == number), None)
        if name is None or not 0 <= device < self.devices:
            return INVALID_VALUE
        known = {"threads_z": 64, "blocks_x": (1 << 31) - 1, "cores": 2, "shared_memory": 48 << 10}
        known |= {"major": self._capability[0], "minor": self._capability[1]}
        place[0] = known.get(name, 1024 if name.startswith("threads") else 65535)
        return 0

    def _total_memory(self, place: Any, device: int) -> int:
        place[0] = self.memory
        return 0 if 0 <= device < self.devices else INVALID_DEVICE

    def _cuDevicePrimaryCtxRetain(self, place: Any, device: int) -> int:
        return self._new(place, f"context {device}") if 0 <= device < self.devices else INVALID_DEVICE

    def _cuCtxSetCurrent(self, context: int | None) -> int:
        found = self.live.get(context or 0)
        if not isinstance(found, str):
            return INVALID_CONTEXT
        self._local.device = int(found.split()[1])
        return 0

    def _hipSetDevice(self, device: int) -> int:
        self._local.device = device
        return 0 if 0 <= device < self.devices else INVALID_DEVICE

    # -- memory --------------------------------------------------------------------------------------------------------
    def _take(self, kind: str, size: int) -> int:
        """The address of a block, aligned as drivers align them; 0 if memory is short."""
        if sum(s for _, _, s in self.blocks.copy().values()) + size > self.memory:
            return 0
        data = (ctypes.c_char * (size + 256))()
        address = -(-ctypes.addressof(data) // 256) * 256
        self.blocks[address] = kind, data, size
        return address

    def _allocate(self, place: Any, size: int) -> int:
        if getattr(self._local, "device", None) is None:
            return INVALID_CONTEXT
        if not place or not size:
            return INVALID_VALUE
        place[0] = self._take("device", size)
        return 0 if place[0] else OUT_OF_MEMORY

    def _host_allocate(self, place: Any, size: int, flags: int) -> int:
        if not place or not size or flags:
            return INVALID_VALUE
        place[0] = self._take("host", size) or None
        return 0 if place[0] else OUT_OF_MEMORY

    def _give(self, kind: str, address: int | None) -> int:
        if self.blocks.get(address or 0, ("",))[0] != kind:
            return INVALID_VALUE
        return INVALID_VALUE if self.blocks.pop(address or 0, None) is None else 0

    def _settle(self) -> None:
        """Wait for all streams, as the driver does where it takes memory or code away from the device."""
        if not threading.current_thread().name.startswith(WORKER):  # a finalizer may run on a stream's own thread
            for made in self.live.copy().values():
                if isinstance(made, _Stream):
                    made.submit(lambda: 0).result()

    def _free(self, address: int) -> int:
        self._settle()
        return self._give("device", address)

    def _host_free(self, address: int | None) -> int:
        self._settle()
        return self._give("host", address)

    def _inside(self, address: int, size: int) -> bool:
        blocks = self.blocks.copy().items()
        return any(first <= address and address + size <= first + s for first, (_, _, s) in blocks)

    def _copied(self, to: int | None, source: int | None, size: int, stream: int | None) -> int:
        queue = self._is(stream, _Stream)
        if queue is None:
            return INVALID_HANDLE
        if not to or not source or not (self._inside(to, size) or self._inside(source, size)):
            return INVALID_VALUE  # neither end is the device's
        done = queue.submit(lambda: ctypes.memmove(to, source, size) and 0)
        if not (self._inside(to, size) and self._inside(source, size)):
            done.result()  # memory that is not pinned is copied when the stream has come so far
        return 0

    def _cuMemcpyAsync(self, to: int, source: int, size: int, stream: int | None) -> int:
        return self._copied(to, source, size, stream)

    def _hipMemcpyAsync(self, to: int | None, source: int | None, size: int, kind: int, stream: int | None) -> int:
        return self._copied(to, source, size, stream) if kind == 4 else INVALID_VALUE

    def _cuMemcpyPeerAsync(self, to: int, c: int, source: int, peer: int, size: int, stream: int) -> int:
        known = all(isinstance(self.live.get(context or 0), str) for context in (c, peer))
        return self._copied(to, source, size, stream) if known else INVALID_CONTEXT

    def _hipMemcpyPeerAsync(self, to: int, d: int, source: int, peer: int, size: int, stream: int) -> int:
        return self._copied(to, source, size, stream) if max(d, peer) < self.devices else INVALID_DEVICE

    def _fill(self, address: int, value: bytes, count: int, stream: int | None) -> int:
        queue = self._is(stream, _Stream)
        if queue is None:
            return INVALID_HANDLE
        if not self._inside(address, count * len(value)):
            return INVALID_VALUE
        queue.submit(lambda: ctypes.memmove(address, value * count, count * len(value)) and 0)
        return 0

    def _memset8(self, address: int, value: int, count: int, stream: int | None) -> int:
        return self._fill(address, bytes([value]), count, stream)

    def _memset32(self, address: int, value: int, count: int, stream: int | None) -> int:
        return self._fill(address, value.to_bytes(4, "little"), count, stream) if not address % 4 else INVALID_VALUE

    # -- streams and events --------------------------------------------------------------------------------------------
    def _stream_create(self, place: Any, flags: int) -> int:
        return self._new(place, _Stream()) if flags in (0, 1) else INVALID_VALUE

    def _stream_destroy(self, stream: int | None) -> int:
        return self._drop(stream, _Stream)

    def _stream_synchronize(self, stream: int | None) -> int:
        found = self._is(stream, _Stream)
        if found is None:
            return INVALID_HANDLE
        found.submit(lambda: 0).result()
        return int(found.failure)

    def _stream_wait_event(self, stream: int | None, event: int | None, flags: int) -> int:
        queue, found = self._is(stream, _Stream), self._is(event, _Event)
        if queue is None or found is None or flags:
            return INVALID_HANDLE
        done = found.done
        if done is not None:
            queue.submit(lambda: done.result() or 0)
        return 0

    def _event_create(self, place: Any, flags: int) -> int:
        return self._new(place, _Event()) if not flags else INVALID_VALUE

    def _event_destroy(self, event: int | None) -> int:
        return self._drop(event, _Event)

    def _event_record(self, event: int | None, stream: int | None) -> int:
        queue, found = self._is(stream, _Stream), self._is(event, _Event)
        if queue is None or found is None:
            return INVALID_HANDLE

        def reached() -> int:
            found.at = time.perf_counter()
            return 0

        found.done = queue.submit(reached)
        return 0

    def _event_synchronize(self, event: int | None) -> int:
        found = self._is(event, _Event)
        if found is None:
            return INVALID_HANDLE
        if found.done is not None:
            found.done.result()
        return 0

    def _event_query(self, event: int | None) -> int:
        found = self.live.get(event or 0)
        if not isinstance(found, _Event):
            return INVALID_HANDLE
        return 0 if found.done is None or found.done.reached else NOT_READY

    def _event_elapsed(self, place: Any, began: int | None, ended: int | None) -> int:
        a, b = self.live.get(began or 0), self.live.get(ended or 0)
        if not isinstance(a, _Event) or not isinstance(b, _Event) or a.done is None or b.done is None:
            return INVALID_HANDLE
        place[0] = (b.at - a.at) * 1e3
        return 0

    # -- kernels -------------------------------------------------------------------------------------------------------
    def _module_load(self, place: Any, image: Any, count: int, names: Any, values: Any) -> int:
        if getattr(self._local, "device", None) is None:
            return INVALID_VALUE
        options = {} if not count else dict(zip(_at(names, ctypes.c_int, count), _at(values, ctypes.c_uint64, count)))
        if options.keys() != {ERROR_LOG, ERROR_LOG_BYTES}:
            return INVALID_VALUE
        text = ctypes.string_at(image)
        if not text.startswith(b"\x7fELF"):
            known = b".entry" in text
            if known:
                return self._new(place, _Module(None, text.decode("ascii", "replace")))
            line = b"ptxas fatal   : no entry\nptxas fatal   : Ptx assembly aborted\n\0"
            ctypes.memmove(options[ERROR_LOG], line, min(len(line), options[ERROR_LOG_BYTES]))
            return INVALID_IMAGE
        table = ctypes.c_uint64.from_address(image + 40).value  # an object file ends with its table of sections
        each, number = (ctypes.c_uint16.from_address(image + at).value for at in (58, 60))
        try:
            data = ctypes.string_at(image, table + each * number)
            return self._new(place, _Module(load([data]), "", PLACE.encode() in data))
        except Exception:
            return INVALID_IMAGE

    def _module_unload(self, module: int | None) -> int:
        self._settle()
        return self._drop(module, _Module)

    def _module_function(self, place: Any, module: int | None, name: bytes) -> int:
        found, text = self._is(module, _Module), name.decode()
        if found is None:
            return INVALID_HANDLE
        if found.code is None:
            entry = re.search(rf"\.entry {re.escape(text)}\(([^)]*)\)", found.text)
            return NOT_FOUND if entry is None else self._new(place, _Function(found, text, entry[1].count(".param")))
        if text not in self.arguments:
            return NOT_FOUND
        return self._new(place, _Function(found, text, self.arguments[text]))

    def _launch(self, function: int | None, *rest: Any) -> int:
        bx, by, bz, tx, ty, tz, shared, stream, parameters, extra = rest
        found, queue = self._is(function, _Function), self._is(stream, _Stream)
        if found is None or queue is None:
            return INVALID_HANDLE
        if min(bx, by, bz, tx, ty, tz) < 1 or tx * ty * tz > 1024 or shared or extra or not parameters:
            return INVALID_VALUE
        places, values = (ctypes.c_void_p * 64).from_address(parameters), []
        for number in range(found.count):  # the driver reads them now
            address = ctypes.c_uint64.from_address(places[number]).value
            if not self._inside(address, 0):
                return INVALID_VALUE
            values.append(address)
        queue.submit(lambda: self._run(found, (bx * by * bz, tx, ty * tz), values))
        return 0

    def _run(self, function: _Function, sizes: tuple[int, int, int], values: list[int]) -> int:
        code = function.module.code
        if code is None:
            return 0
        try:
            body = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(values))(code.address(function.name))
            with function.module.lock:
                if function.module.grouped:
                    run_groups(code, lambda: body(*values), *sizes)
                    return 0
                item = ctypes.c_int64.from_address(code.address(ITEM))
                for number in range(math.prod(sizes)):
                    item.value = number
                    body(*values)
            return 0
        except Exception:
            return LAUNCH_FAILED
