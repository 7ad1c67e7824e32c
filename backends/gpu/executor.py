"""A GPU: its memory, streams and kernels, by a driver."""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable, Sequence

from ..accelerator.device import Queue
from ..accelerator.executor import DriverExecutor
from ..accelerator.launches import Bases, Launch, Step
from ..accelerator.targets import DeviceTarget
from ..device import BackendError, DeviceDescription, DeviceMemory, Kernel, Named, StreamExecutor, check_copy
from .driver import Driver
from .launches import launches
from .memory import GpuMemory, destroyed
from .stream import GpuStream


class Program:
    """A module that the driver loaded from code; unloaded when nobody knows it any more."""

    def __init__(self, driver: Driver, device: int, value: int, code: bytes):
        self.value, self._code = value, code
        weakref.finalize(self, destroyed, driver, device, "module_unload", value).atexit = False

    def binary(self) -> bytes:
        """None: the driver keeps what it compiled in a cache of its own."""
        return b""

    def stored(self) -> bytes:
        """What `build` makes it of again."""
        return self._code


class Function:
    """A kernel of a module, which lives as long."""

    def __init__(self, program: Program, value: int):
        self.program, self.value = program, value


class GpuStreamExecutor(DriverExecutor):
    """One device. linked: what LLVM emits → what the driver loads."""

    def __init__(
        self,
        platform: Named,
        driver: Driver,
        code_target: DeviceTarget,
        ordinal: int = 0,
        linked: Callable[[bytes], bytes] = lambda code: code,
    ):
        super().__init__(platform, code_target, ordinal)
        self.driver, self._linked = driver, linked
        self._start(GpuMemory(driver, ordinal))

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

    @property
    def identity(self) -> str:
        return f"{self.driver.dialect.name} | {self._description.name} | {self.code_target.target.cpu}"

    # -- memory and streams --------------------------------------------------------------------------------------------
    def memcpy_from_peer(
        self, destination: DeviceMemory, peer: StreamExecutor, source: DeviceMemory, size: int
    ) -> None:
        check_copy(size, destination.size, source.size)
        if not isinstance(peer, GpuStreamExecutor) or peer.driver is not self.driver:
            raise BackendError(f"no device of {self.platform.name}", remedy="copy through the host")
        copies = self._copies
        assert isinstance(copies, GpuStream)
        if size:
            self.driver.do("use a device", "enter", self.ordinal)
            places = destination.address, self.ordinal, source.address, peer.ordinal
            self.driver.do(f"copy {size} bytes between devices", "copy_peer", *places, size, copies.value)
            copies.synchronize()

    def create_stream(self) -> GpuStream:
        return GpuStream(self, self.driver)

    # -- kernels -------------------------------------------------------------------------------------------------------
    def build(self, code: bytes, flush: bool = False) -> Program:
        """A module from what LLVM emits. flush is a permission, of which no use is made: subnormals are kept.

        Raises BackendError in one line.
        """
        self.driver.do("use a device", "enter", self.ordinal)
        status, module, said = self.driver.load(self._linked(code))
        if status or not module:
            what = f"{self.driver.dialect.name} cannot load a program: {self.driver.describe(status)}"
            what += f": {said}" if said else ""
            raise BackendError(what, remedy=f"give code for {self.code_target.target.cpu}")
        return Program(self.driver, self.ordinal, module, code)

    def kernel(self, program: Program, name: str, arguments: int) -> Kernel:
        """A kernel of a module. Raises BackendError if there is none."""
        made = ctypes.c_void_p()
        self.driver.do(f"find the kernel {name}", "module_function", ctypes.byref(made), program.value, name.encode())
        return Kernel(name, arguments, Function(program, made.value or 0))

    def launches(self, rows: Sequence[Launch]) -> Step:
        made = launches(rows, self.driver)

        def enqueue(stream: Queue, bases: Bases) -> None:
            assert isinstance(stream, GpuStream)
            if stream.is_watched:
                for row in rows:
                    row.enqueue(stream, bases)
            else:
                stream.launch_all(made, bases)

        return enqueue
