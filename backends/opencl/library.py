"""Loads an OpenCL library and finds the devices that take SPIR-V and have unified shared memory (USM).

Intel's CPU runtime (the extra `opencl`) is opened itself: its wheels have no working loader. Elsewhere the system's ICD
loader finds the devices.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable, Iterator
from ctypes import POINTER, byref, c_char_p, c_int32, c_size_t, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ALL_DEVICES = 0xFFFFFFFF
NAME, VENDOR, EXTENSIONS, IL_VERSION, DRIVER = 0x102B, 0x102C, 0x1030, 0x105B, 0x102D
COMPUTE_UNITS, GROUP_SIZE, ITEM_SIZES, MEMORY, LOCAL_MEMORY = 0x1002, 0x1004, 0x1005, 0x101F, 0x1023
LARGEST_BLOCK, UNIFIED, SYSTEM_ACCESS = 0x1010, 0x1035, 0x4194  # the last: CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES
USM = "cl_intel_unified_shared_memory"
NEAR = "cl_intel_exec_by_local_thread"

_HANDLES, _SIZES = POINTER(c_void_p), POINTER(c_size_t)
_WAIT = (c_uint32, _HANDLES, _HANDLES)  # events to wait for, and the new event

FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "clGetPlatformIDs": (c_int32, (c_uint32, _HANDLES, POINTER(c_uint32))),
    "clGetDeviceIDs": (c_int32, (c_void_p, c_uint64, c_uint32, _HANDLES, POINTER(c_uint32))),
    "clGetDeviceInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, _SIZES)),
    "clCreateContext": (c_void_p, (c_void_p, c_uint32, _HANDLES, c_void_p, c_void_p, POINTER(c_int32))),
    "clReleaseContext": (c_int32, (c_void_p,)),
    "clCreateCommandQueueWithProperties": (c_void_p, (c_void_p, c_void_p, POINTER(c_uint64), POINTER(c_int32))),
    "clReleaseCommandQueue": (c_int32, (c_void_p,)),
    "clCreateProgramWithIL": (c_void_p, (c_void_p, c_char_p, c_size_t, POINTER(c_int32))),
    "clCreateProgramWithBinary": (
        c_void_p,
        (c_void_p, c_uint32, _HANDLES, _SIZES, POINTER(c_char_p), POINTER(c_int32), POINTER(c_int32)),
    ),
    "clBuildProgram": (c_int32, (c_void_p, c_uint32, _HANDLES, c_char_p, c_void_p, c_void_p)),
    "clGetProgramBuildInfo": (c_int32, (c_void_p, c_void_p, c_uint32, c_size_t, c_void_p, _SIZES)),
    "clGetProgramInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, _SIZES)),
    "clReleaseProgram": (c_int32, (c_void_p,)),
    "clCreateKernel": (c_void_p, (c_void_p, c_char_p, POINTER(c_int32))),
    "clReleaseKernel": (c_int32, (c_void_p,)),
    "clGetKernelInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, _SIZES)),
    "clEnqueueNDRangeKernel": (c_int32, (c_void_p, c_void_p, c_uint32, _SIZES, _SIZES, _SIZES, *_WAIT)),
    "clEnqueueMarkerWithWaitList": (c_int32, (c_void_p, *_WAIT)),
    "clEnqueueBarrierWithWaitList": (c_int32, (c_void_p, *_WAIT)),
    "clFlush": (c_int32, (c_void_p,)),
    "clFinish": (c_int32, (c_void_p,)),
    "clWaitForEvents": (c_int32, (c_uint32, _HANDLES)),
    "clGetEventInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, _SIZES)),
    "clGetEventProfilingInfo": (c_int32, (c_void_p, c_uint32, c_size_t, c_void_p, _SIZES)),
    "clReleaseEvent": (c_int32, (c_void_p,)),
    "clCreateUserEvent": (c_void_p, (c_void_p, POINTER(c_int32))),
    "clSetUserEventStatus": (c_int32, (c_void_p, c_int32)),
    "clGetExtensionFunctionAddressForPlatform": (c_void_p, (c_void_p, c_char_p)),
}
"""Function of OpenCL → result and parameters."""

EXTENSIONS_OF_USM: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "clDeviceMemAllocINTEL": (
        c_void_p,
        (c_void_p, c_void_p, POINTER(c_uint64), c_size_t, c_uint32, POINTER(c_int32)),
    ),
    "clHostMemAllocINTEL": (c_void_p, (c_void_p, POINTER(c_uint64), c_size_t, c_uint32, POINTER(c_int32))),
    "clMemFreeINTEL": (c_int32, (c_void_p, c_void_p)),
    "clSetKernelArgMemPointerINTEL": (c_int32, (c_void_p, c_uint32, c_void_p)),
    "clEnqueueMemcpyINTEL": (c_int32, (c_void_p, c_uint32, c_void_p, c_void_p, c_size_t, *_WAIT)),
    "clEnqueueMemFillINTEL": (c_int32, (c_void_p, c_void_p, c_void_p, c_size_t, c_size_t, *_WAIT)),
}


@dataclass(frozen=True, eq=False)
class Device:
    """One device. functions: of its library and platform, by name, with their types."""

    handle: int
    platform: int
    functions: dict[str, Callable[..., Any]]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        try:
            return self.functions[name]
        except KeyError:
            raise AttributeError(name) from None

    def text(self, what: int) -> str:
        """A property in words; empty if the device does not know it."""
        size = c_size_t()
        if self.clGetDeviceInfo(self.handle, what, 0, None, byref(size)):
            return ""
        data = ctypes.create_string_buffer(size.value)
        self.clGetDeviceInfo(self.handle, what, size.value, data, None)
        return data.value.decode(errors="replace").strip()

    def numbers(self, what: int, count: int = 1, bytes_each: int = 8) -> tuple[int, ...]:
        """A property that is one or several unsigned numbers; 0 if the device does not know it."""
        data = (c_uint64 * count)() if bytes_each == 8 else (c_uint32 * count)()
        self.clGetDeviceInfo(self.handle, what, ctypes.sizeof(data), data, None)
        return tuple(data)

    @functools.cached_property
    def shares_memory(self) -> bool:
        """Whether the host's memory is the device's own, and kernels take any of its addresses. The device says both: a
        card may reach the host's memory, too, but not as fast as its own.
        """
        (unified,), (access,) = self.numbers(UNIFIED, bytes_each=4), self.numbers(SYSTEM_ACCESS)
        return bool(unified) and bool(access & 1)

    @functools.cached_property
    def runs_near(self) -> bool:
        """Whether the thread that enqueues a kernel may run it."""
        return NEAR in self.text(EXTENSIONS).split()

    @functools.cached_property
    def largest_block(self) -> int:
        """Bytes that it gives at once."""
        return self.numbers(LARGEST_BLOCK)[0]


def candidates() -> Iterator[str]:
    """Names of libraries, the best first. Intel's has its version as its name: under that, handlers that are linked
    with it are given the same one. The files of a wheel are copies, not links.
    """
    folder = Path(sys.prefix, "lib")
    own = [*sorted(folder.glob("libintelocl.so.[0-9]*"), reverse=True), folder / "libintelocl.so"]
    yield from (str(path) for path in own if path.exists())
    yield "libOpenCL.so.1"


@functools.cache
def devices() -> tuple[tuple[Device, ...], str]:
    """The devices of the first library that has some; or none, and why in one line."""
    why = "no device: there is no OpenCL library (./testbed setup --opencl installs one)"
    for name in candidates():
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        found = tuple(_devices(library))
        if found:
            return found, ""
        why = f"no device: {Path(name).name} has none that takes SPIR-V and has {USM}"
    return (), why


def _devices(library: ctypes.CDLL) -> Iterator[Device]:
    functions = {name: _typed(getattr(library, name, None), *types) for name, types in FUNCTIONS.items()}
    if None in functions.values():
        return
    count = c_uint32()
    if functions["clGetPlatformIDs"](0, None, byref(count)) or not count.value:
        return
    platforms = (c_void_p * count.value)()
    functions["clGetPlatformIDs"](count.value, platforms, None)
    for platform in filter(None, platforms):
        if functions["clGetDeviceIDs"](platform, ALL_DEVICES, 0, None, byref(count)) or not count.value:
            continue
        handles = (c_void_p * count.value)()
        functions["clGetDeviceIDs"](platform, ALL_DEVICES, count.value, handles, None)
        usm = _usm(functions, platform)
        for handle in filter(None, handles):
            device = Device(handle, platform, {**functions, **usm})
            if usm and "SPIR-V" in device.text(IL_VERSION) and USM in device.text(EXTENSIONS):
                yield device


def _usm(functions: dict[str, Any], platform: int) -> dict[str, Any]:
    """The functions of the extension; empty if the platform has none of them."""
    found = {}
    for name, (result, arguments) in EXTENSIONS_OF_USM.items():
        address = functions["clGetExtensionFunctionAddressForPlatform"](platform, name.encode())
        if not address:
            return {}
        found[name] = ctypes.CFUNCTYPE(result, *arguments)(address)
    return found


def _typed(function: Any, result: Any, arguments: tuple[Any, ...]) -> Any:
    if function is not None:
        function.restype, function.argtypes = result, arguments
    return function
