"""HIP on AMD's driver (hip_runtime_api.h): symbols, properties and errors."""

from __future__ import annotations

from ctypes import c_int, c_size_t, c_void_p
from typing import TYPE_CHECKING

from ..gpu.driver import Dialect

if TYPE_CHECKING:
    from ..gpu.driver import Driver

DEFAULT_COPY = 4
"""hipMemcpyDefault: the driver knows which addresses are the device's."""


def _enter(driver: Driver, device: int) -> int:
    return driver.symbols["hipSetDevice"](device)


def _copy(driver: Driver, to: int, source: int, size: int, stream: int) -> int:
    return driver.symbols["hipMemcpyAsync"](to, source, size, DEFAULT_COPY, stream)


def _copy_peer(driver: Driver, to: int, device: int, source: int, peer: int, size: int, stream: int) -> int:
    return driver.symbols["hipMemcpyPeerAsync"](to, device, source, peer, size, stream)


HIP = Dialect(
    name="HIP",
    libraries=("libamdhip64.so", "libamdhip64.so.6", "libamdhip64.so.7"),
    functions={
        "init": "hipInit",
        "device_count": "hipGetDeviceCount",
        "device": "hipDeviceGet",
        "device_name": "hipDeviceGetName",
        "attribute": "hipDeviceGetAttribute",
        "total_memory": "hipDeviceTotalMem",
        "allocate": "hipMalloc",
        "free": "hipFree",
        "host_allocate": "hipHostMalloc",
        "host_free": "hipHostFree",
        "memset8": "hipMemsetD8Async",
        "memset32": "hipMemsetD32Async",
        "stream_create": "hipStreamCreateWithFlags",
        "stream_destroy": "hipStreamDestroy",
        "stream_synchronize": "hipStreamSynchronize",
        "stream_wait_event": "hipStreamWaitEvent",
        "event_create": "hipEventCreateWithFlags",
        "event_destroy": "hipEventDestroy",
        "event_record": "hipEventRecord",
        "event_synchronize": "hipEventSynchronize",
        "event_query": "hipEventQuery",
        "event_elapsed": "hipEventElapsedTime",
        "module_load": "hipModuleLoadDataEx",
        "module_unload": "hipModuleUnload",
        "module_function": "hipModuleGetFunction",
        "launch": "hipModuleLaunchKernel",
    },
    others={
        "hipSetDevice": (c_int,),
        "hipMemcpyAsync": (c_void_p, c_void_p, c_size_t, c_int, c_void_p),
        "hipMemcpyPeerAsync": (c_void_p, c_int, c_void_p, c_int, c_size_t, c_void_p),
    },
    adapters={"enter": _enter, "copy": _copy, "copy_peer": _copy_peer},
    attributes={
        **{f"threads_{axis}": 26 + n for n, axis in enumerate("xyz")},
        **{f"blocks_{axis}": 29 + n for n, axis in enumerate("xyz")},
        "shared_memory": 74,
        "cores": 63,
        "major": 23,
        "minor": 61,
    },
    errors={
        1: "InvalidValue",
        2: "OutOfMemory",
        3: "NotInitialized",
        100: "NoDevice",
        101: "InvalidDevice",
        200: "InvalidImage",
        201: "InvalidContext",
        209: "NoBinaryForGpu",
        217: "PeerAccessUnsupported",
        400: "InvalidHandle",
        500: "NotFound",
        600: "NotReady",
        700: "IllegalAddress",
        701: "LaunchOutOfResources",
        702: "LaunchTimeOut",
        719: "LaunchFailure",
        801: "NotSupported",
        999: "Unknown",
    },
    memory=frozenset({2, 701}),
    lost=frozenset({201, 700, 702, 719}),
)
