"""CUDA's driver (cuda.h): symbols, properties and errors."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_int, c_size_t, c_uint64, c_void_p
from typing import TYPE_CHECKING

from ..gpu.driver import Dialect

if TYPE_CHECKING:
    from ..gpu.driver import Driver


def _enter(driver: Driver, device: int) -> int:
    """Make a device's primary context that of this thread."""
    if device not in driver.contexts:
        made = ctypes.c_void_p()
        code = driver.symbols["cuDevicePrimaryCtxRetain"](ctypes.byref(made), device)
        if code:
            return code
        driver.contexts[device] = made.value or 0
    return driver.symbols["cuCtxSetCurrent"](driver.contexts[device])


def _copy(driver: Driver, to: int, source: int, size: int, stream: int) -> int:
    """Addresses are unified: the driver knows which are the device's."""
    return driver.symbols["cuMemcpyAsync"](to, source, size, stream)


def _copy_peer(driver: Driver, to: int, device: int, source: int, peer: int, size: int, stream: int) -> int:
    code = _enter(driver, peer) or _enter(driver, device)
    contexts = driver.contexts
    return code or driver.symbols["cuMemcpyPeerAsync"](to, contexts[device], source, contexts[peer], size, stream)


CUDA = Dialect(
    name="CUDA",
    libraries=("libcuda.so.1",),
    functions={
        "init": "cuInit",
        "device_count": "cuDeviceGetCount",
        "device": "cuDeviceGet",
        "device_name": "cuDeviceGetName",
        "attribute": "cuDeviceGetAttribute",
        "total_memory": "cuDeviceTotalMem_v2",
        "allocate": "cuMemAlloc_v2",
        "free": "cuMemFree_v2",
        "host_allocate": "cuMemHostAlloc",
        "host_free": "cuMemFreeHost",
        "memset8": "cuMemsetD8Async",
        "memset32": "cuMemsetD32Async",
        "stream_create": "cuStreamCreate",
        "stream_destroy": "cuStreamDestroy_v2",
        "stream_synchronize": "cuStreamSynchronize",
        "stream_wait_event": "cuStreamWaitEvent",
        "event_create": "cuEventCreate",
        "event_destroy": "cuEventDestroy_v2",
        "event_record": "cuEventRecord",
        "event_synchronize": "cuEventSynchronize",
        "event_query": "cuEventQuery",
        "event_elapsed": "cuEventElapsedTime",
        "module_load": "cuModuleLoadDataEx",
        "module_unload": "cuModuleUnload",
        "module_function": "cuModuleGetFunction",
        "launch": "cuLaunchKernel",
    },
    others={
        "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
        "cuCtxSetCurrent": (c_void_p,),
        "cuMemcpyAsync": (c_uint64, c_uint64, c_size_t, c_void_p),
        "cuMemcpyPeerAsync": (c_uint64, c_void_p, c_uint64, c_void_p, c_size_t, c_void_p),
    },
    adapters={"enter": _enter, "copy": _copy, "copy_peer": _copy_peer},
    attributes={
        **{f"threads_{axis}": 2 + n for n, axis in enumerate("xyz")},
        **{f"blocks_{axis}": 5 + n for n, axis in enumerate("xyz")},
        "shared_memory": 8,
        "cores": 16,
        "major": 75,
        "minor": 76,
    },
    errors={
        1: "INVALID_VALUE",
        2: "OUT_OF_MEMORY",
        3: "NOT_INITIALIZED",
        4: "DEINITIALIZED",
        34: "STUB_LIBRARY",
        46: "DEVICE_UNAVAILABLE",
        100: "NO_DEVICE",
        101: "INVALID_DEVICE",
        200: "INVALID_IMAGE",
        201: "INVALID_CONTEXT",
        209: "NO_BINARY_FOR_GPU",
        214: "ECC_UNCORRECTABLE",
        217: "PEER_ACCESS_UNSUPPORTED",
        218: "INVALID_PTX",
        221: "JIT_COMPILER_NOT_FOUND",
        222: "UNSUPPORTED_PTX_VERSION",
        400: "INVALID_HANDLE",
        500: "NOT_FOUND",
        600: "NOT_READY",
        700: "ILLEGAL_ADDRESS",
        701: "LAUNCH_OUT_OF_RESOURCES",
        702: "LAUNCH_TIMEOUT",
        716: "MISALIGNED_ADDRESS",
        719: "LAUNCH_FAILED",
        801: "NOT_SUPPORTED",
        803: "SYSTEM_DRIVER_MISMATCH",
        999: "UNKNOWN",
    },
    memory=frozenset({2, 701}),
    lost=frozenset({46, 201, 214, 700, 702, 716, 719}),
)
