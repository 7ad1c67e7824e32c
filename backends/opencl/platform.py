"""The platform `opencl`: devices that take SPIR-V and have USM."""

from __future__ import annotations

from ..accelerator.compiler import DeviceCompiler
from ..accelerator.targets import SPIRV
from ..base import Platform, made_once
from ..device import Capability
from ..transfers import GenericTransferManager
from .executor import OpenClStreamExecutor
from .library import devices

LACKS = frozenset({Capability.PEER_COPIES, Capability.AHEAD_OF_TIME, Capability.FEEDS})


class OpenClPlatform(Platform):
    """Unavailable, in one line, where there is no library or no such device."""

    name = "opencl"
    capabilities = frozenset(Capability) - LACKS

    def visible_device_count(self) -> int:
        return len(devices()[0])

    def unavailable(self) -> str | None:
        found, why = devices()
        return None if found else why

    def executor(self, ordinal: int = 0) -> OpenClStreamExecutor:
        self.check_ordinal(ordinal)
        return self._executors(ordinal)

    @made_once
    def _executors(self, ordinal: int) -> OpenClStreamExecutor:
        return OpenClStreamExecutor(self, devices()[0][ordinal], SPIRV, ordinal)

    def compiler(self) -> DeviceCompiler:
        return DeviceCompiler(self.name, self.executor(0))

    def transfer_manager(self) -> GenericTransferManager:
        return GenericTransferManager(self.name)
