"""A device of OpenCL: its context, memory, queues and kernels."""

from __future__ import annotations

import ctypes
import functools
import threading
import weakref
from collections.abc import Sequence
from ctypes import byref, c_char_p, c_int32, c_size_t, c_uint64, c_void_p

from ..accelerator.device import Queue
from ..accelerator.executor import DriverExecutor
from ..accelerator.launches import Bases, Launch, Step
from ..accelerator.targets import DeviceTarget
from ..device import BackendError, DeviceDescription, Kernel, Named
from . import library
from .errors import check, describe
from .launches import Launches
from .library import Device
from .memory import UsmMemory
from .near import are_near
from .spirv import MAGIC, is_framed
from .stream import OpenClStream

QUEUE_PROPERTIES, PROFILING = 0x1093, 2
NEAR = 1 << 31  # CL_QUEUE_THREAD_LOCAL_EXEC_ENABLE_INTEL
BUILD_LOG, BINARY_SIZES, BINARIES, ARGUMENTS = 0x1183, 0x1165, 0x1166, 0x1191
FLUSH = b"-cl-denorms-are-zero"
MOST_BLOCKS = (1 << 31) - 1


class Program:
    """A program that the device built from code; released when nobody knows it any more."""

    def __init__(self, device: Device, value: int, code: bytes):
        self.device, self.value, self._code = device, value, code
        weakref.finalize(self, device.clReleaseProgram, value).atexit = False

    def binary(self) -> bytes:
        """The device's own code, which is loaded faster than SPIR-V; empty if it does not give it."""
        size = c_size_t()
        self.device.clGetProgramInfo(self.value, BINARY_SIZES, 8, ctypes.addressof(size), None)
        data = ctypes.create_string_buffer(size.value)
        places = (c_void_p * 1)(ctypes.addressof(data))
        code = self.device.clGetProgramInfo(self.value, BINARIES, 8, ctypes.addressof(places), None)
        return b"" if code else data.raw

    def stored(self) -> bytes:
        """What `build` makes it of again."""
        return self.binary() or self._code


class KernelHandle:
    """A kernel of a program."""

    def __init__(self, program: Program, name: str):
        code = c_int32()
        self.program, self._name = program, name
        self.value = program.device.clCreateKernel(program.value, name.encode(), byref(code))
        check(code.value, f"find the kernel {name}")
        weakref.finalize(self, program.device.clReleaseKernel, self.value).atexit = False

    def another(self) -> KernelHandle:
        """The same kernel with arguments of its own."""
        return KernelHandle(self.program, self._name)


class OpenClStreamExecutor(DriverExecutor):
    """One device. giving: a lock around giving a kernel its arguments, which are its state, and enqueueing it."""

    def __init__(self, platform: Named, device: Device, code_target: DeviceTarget, ordinal: int = 0):
        super().__init__(platform, code_target, ordinal)
        self.device, self.giving = device, threading.Lock()
        code = c_int32()
        self.context = device.clCreateContext(None, 1, (c_void_p * 1)(device.handle), None, None, byref(code))
        check(code.value, "create a context")
        self._start(UsmMemory(device, self.context, ordinal))

    @functools.cached_property
    def _description(self) -> DeviceDescription:
        d = self.device
        (most,) = d.numbers(library.GROUP_SIZE)
        sizes = d.numbers(library.ITEM_SIZES, 3)
        return DeviceDescription(
            d.text(library.NAME),
            d.text(library.VENDOR),
            d.numbers(library.COMPUTE_UNITS, bytes_each=4)[0],
            d.numbers(library.MEMORY)[0],
            (min(sizes[0], most), min(sizes[1], most), min(sizes[2], most)),
            (MOST_BLOCKS,) * 3,
            d.numbers(library.LOCAL_MEMORY)[0],
        )

    @functools.cached_property
    def identity(self) -> str:
        """What a binary of a kernel depends on: the device, its driver, and how launches number items."""
        names = (library.NAME, library.VENDOR, library.DRIVER, library.IL_VERSION)
        items = f"items in rows of {self.code_target.lanes}"
        return " | ".join([*(self.device.text(name) for name in names), items])

    @property
    def shares_memory(self) -> bool:
        return self.device.shares_memory

    # -- streams -------------------------------------------------------------------------------------------------------
    def create_stream(self) -> OpenClStream:
        return OpenClStream(self, self.create_queue())

    def create_queue(self, near: bool = False) -> int:
        """near: the thread that enqueues a command runs it."""
        code, properties = c_int32(), (c_uint64 * 3)(QUEUE_PROPERTIES, PROFILING | (NEAR if near else 0), 0)
        made = self.device.clCreateCommandQueueWithProperties(self.context, self.device.handle, properties, byref(code))
        check(code.value, "create a queue")
        return int(made)

    # -- kernels -------------------------------------------------------------------------------------------------------
    def build(self, code: bytes, flush: bool = False) -> Program:
        """A program from SPIR-V, or from `Program.binary` of this device. flush: subnormals count as zero.

        Raises BackendError in one line.
        """
        d, status = self.device, c_int32()
        if code.startswith(MAGIC):
            if not is_framed(code):
                raise BackendError("OpenCL cannot load a program: the SPIR-V is damaged or cut", remedy="make it again")
            value = d.clCreateProgramWithIL(self.context, code, len(code), byref(status))
        else:
            sizes, data, each = (c_size_t * 1)(len(code)), (c_char_p * 1)(code), c_int32()
            devices = (c_void_p * 1)(d.handle)
            value = d.clCreateProgramWithBinary(self.context, 1, devices, sizes, data, byref(each), byref(status))
        if status.value or not value:
            what = "the code is neither SPIR-V nor a program of this device"
            raise BackendError(f"OpenCL cannot load a program: {describe(status.value)}; {what}", remedy="give SPIR-V")
        program = Program(d, value, code)
        status.value = d.clBuildProgram(value, 1, (c_void_p * 1)(d.handle), FLUSH if flush else b"", None, None)
        if status.value:
            log = " ".join(self._log(value).split())[:300]
            what = f"OpenCL cannot build a program: {describe(status.value)}"
            raise BackendError(f"{what}: {log}" if log else what, remedy="the device's compiler refuses the SPIR-V")
        return program

    def _log(self, program: int) -> str:
        size = c_size_t()
        self.device.clGetProgramBuildInfo(program, self.device.handle, BUILD_LOG, 0, None, byref(size))
        data = ctypes.create_string_buffer(max(size.value, 1))
        self.device.clGetProgramBuildInfo(program, self.device.handle, BUILD_LOG, size.value, data, None)
        return data.value.decode(errors="replace")

    def kernel(self, program: Program, name: str, arguments: int) -> Kernel:
        """A kernel of a program. Raises BackendError if there is none, or if it takes another number of arguments."""
        handle, count = KernelHandle(program, name), ctypes.c_uint32()
        self.device.clGetKernelInfo(handle.value, ARGUMENTS, 4, ctypes.addressof(count), None)
        if count.value != arguments:
            what = f"kernel {name} takes {count.value} blocks of memory, not {arguments}"
            raise BackendError(what, remedy="give the number that its code has")
        return Kernel(name, arguments, handle)

    def launches(self, rows: Sequence[Launch]) -> Step:
        made, near = Launches(rows, self.device), self.device.runs_near and are_near(rows, self.description().cores)

        def enqueue(stream: Queue, bases: Bases) -> None:
            assert isinstance(stream, OpenClStream)
            queue = stream.near() if near else stream.queue
            try:
                if not stream.is_watched:
                    made.enqueue(queue, bases)
                    return
                for row in rows:
                    stream.start_in(queue, row.kernel, row.dimensions, row.addresses(bases))
            finally:
                if not near:
                    stream.note_use()

        return enqueue
