"""A GPU: its memory, streams and kernels, by a driver."""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable

from ...hlo.later import np
from ..accelerator.targets import DeviceTarget
from ..device import (
    AllocatorStatistics,
    BackendError,
    DeviceDescription,
    DeviceMemory,
    Kernel,
    KernelSpec,
    MemorySpace,
    Named,
    StreamExecutor,
    bytes_of,
    check_copy,
)
from .driver import Driver
from .memory import Memory
from .stream import GpuEvent, GpuStream, GpuTimer, check_own


class Program:
    """A module that the driver loaded; unloaded when nobody knows it any more."""

    def __init__(self, driver: Driver, device: int, value: int):
        self.value = value
        weakref.finalize(self, _unloaded, driver, device, value).atexit = False

    def binary(self) -> bytes:
        """None: the driver keeps what it compiled in a cache of its own."""
        return b""


def _unloaded(driver: Driver, device: int, value: int) -> None:
    driver.call("enter", device)
    driver.call("module_unload", value)


class Function:
    """A kernel of a module, which lives as long."""

    def __init__(self, program: Program, value: int):
        self.program, self.value = program, value


class GpuStreamExecutor(StreamExecutor):
    """One device. linked: what LLVM emits → what the driver loads."""

    def __init__(
        self,
        platform: Named,
        driver: Driver,
        code_target: DeviceTarget,
        ordinal: int = 0,
        linked: Callable[[bytes], bytes] = lambda code: code,
    ):
        super().__init__(platform, ordinal)
        self.driver, self.code_target, self._linked = driver, code_target, linked
        self._memory = Memory(driver, ordinal)
        self._copies = self.create_stream()

    @functools.cached_property
    def _description(self) -> DeviceDescription:
        driver, device = self.driver, self.ordinal
        name, memory = ctypes.create_string_buffer(256), ctypes.c_size_t()
        driver.do("say its name", "device_name", name, len(name), device)
        driver.do("say its memory", "total_memory", ctypes.byref(memory), device)
        most = [driver.number(device, f"{what}_{axis}") for what in ("threads", "blocks") for axis in "xyz"]
        return DeviceDescription(
            name.value.decode(errors="replace"),
            driver.dialect.name,
            driver.number(device, "cores"),
            memory.value,
            (most[0], most[1], most[2]),
            (most[3], most[4], most[5]),
            driver.number(device, "shared_memory"),
        )

    def description(self) -> DeviceDescription:
        return self._description

    @property
    def identity(self) -> str:
        return f"{self.driver.dialect.name} | {self._description.name} | {self.code_target.target.cpu}"

    # -- memory --------------------------------------------------------------------------------------------------------
    def allocate(self, size: int, space: MemorySpace = MemorySpace.DEVICE) -> DeviceMemory:
        return self._memory.allocate(size, space)

    def deallocate(self, memory: DeviceMemory) -> None:
        self._memory.deallocate(memory)

    def synchronous_memcpy(self, destination: DeviceMemory, source: DeviceMemory, size: int) -> None:
        check_own(self.ordinal, destination, source)
        check_copy(size, destination.size, source.size)
        self._copy(destination.address, source.address, size)

    def synchronous_memcpy_from_host(self, destination: DeviceMemory, source: np.ndarray) -> None:
        data = bytes_of(source)
        check_copy(data.size, destination.size, data.size)
        self._copy(destination.address, data.ctypes.data, data.size)

    def synchronous_memcpy_to_host(self, destination: np.ndarray, source: DeviceMemory) -> None:
        data = bytes_of(destination)
        check_copy(data.size, data.size, source.size)
        self._copy(data.ctypes.data, source.address, data.size)

    def _copy(self, to: int, source: int, size: int) -> None:
        self._copies.copy(to, source, size)
        self._copies.synchronize()

    def memcpy_from_peer(
        self, destination: DeviceMemory, peer: StreamExecutor, source: DeviceMemory, size: int
    ) -> None:
        check_copy(size, destination.size, source.size)
        if not isinstance(peer, GpuStreamExecutor) or peer.driver is not self.driver:
            raise BackendError(f"no device of {self.platform.name}", remedy="copy through the host")
        if size:
            self.driver.do("use a device", "enter", self.ordinal)
            places = destination.address, self.ordinal, source.address, peer.ordinal
            self.driver.do(f"copy {size} bytes between devices", "copy_peer", *places, size, self._copies.value)
            self._copies.synchronize()

    def host_view(self, memory: DeviceMemory) -> np.ndarray:
        if memory.space is not MemorySpace.HOST:
            raise BackendError("the host cannot reach the device's memory", remedy="allocate it in MemorySpace.HOST")
        return np.ctypeslib.as_array((ctypes.c_uint8 * memory.size).from_address(memory.address))

    def statistics(self) -> AllocatorStatistics:
        return self._memory.statistics()

    def set_memory_limit(self, limit: int | None) -> None:
        self._memory.limit(limit)

    # -- streams -------------------------------------------------------------------------------------------------------
    def create_stream(self) -> GpuStream:
        return GpuStream(self, self.driver)

    def create_event(self) -> GpuEvent:
        return GpuEvent()

    def create_timer(self, stream: GpuStream) -> GpuTimer:  # type: ignore[override]  # its own streams only
        return GpuTimer(stream)

    # -- kernels -------------------------------------------------------------------------------------------------------
    def build(self, code: bytes, flush: bool = False) -> Program:
        """A module from what LLVM emits. flush is a permission, of which no use is made: subnormals are kept.

        Raises BackendError in one line.
        """
        made, image = ctypes.c_void_p(), ctypes.create_string_buffer(self._linked(code))  # with a zero byte behind it
        self.driver.do("use a device", "enter", self.ordinal)
        status = self.driver.call("module_load", ctypes.byref(made), image, 0, None, None)
        if status or not made.value:
            what = f"{self.driver.dialect.name} cannot load a program: {self.driver.describe(status)}"
            raise BackendError(what, remedy=f"give code for {self.code_target.target.cpu}")
        return Program(self.driver, self.ordinal, made.value)

    def kernel(self, program: Program, name: str, arguments: int) -> Kernel:
        """A kernel of a module. Raises BackendError if there is none."""
        made = ctypes.c_void_p()
        self.driver.do(f"find the kernel {name}", "module_function", ctypes.byref(made), program.value, name.encode())
        return Kernel(name, arguments, Function(program, made.value or 0))

    def load_kernel(self, spec: KernelSpec) -> Kernel:
        """spec.code: PTX, or an object file for the device, whose kernel takes pointers."""
        return self.kernel(self.build(spec.code), spec.name, spec.arguments)
