"""A platform of GPUs behind a driver. CUDA and HIP say which driver, and what code their devices take."""

from __future__ import annotations

import functools
from collections.abc import Callable

from ..accelerator.compiler import DeviceCompiler
from ..accelerator.targets import DeviceTarget
from ..base import Platform, made_once
from ..device import Capability
from ..transfers import GenericTransferManager
from .driver import Driver, NoDevice, device_count
from .executor import GpuStreamExecutor

LACKS = frozenset({Capability.AHEAD_OF_TIME, Capability.FEEDS})


class GpuPlatform(Platform):
    """name: the platform's. load: its driver, or why there is none. target_of: (driver, device) → the code it takes."""

    capabilities = frozenset(Capability) - LACKS
    keeps_subnormals = True
    executor_type = GpuStreamExecutor

    def __init__(
        self,
        name: str,
        load: Callable[[], Driver | NoDevice],
        target_of: Callable[[Driver, int], DeviceTarget],
        linked: Callable[[bytes], bytes] = lambda code: code,
    ):
        self.name, self._load, self._target_of, self._linked = name, load, target_of, linked

    @functools.cached_property
    def _driver(self) -> Driver | NoDevice:
        return self._load()

    def visible_device_count(self) -> int:
        return device_count(self._driver)

    def unavailable(self) -> str | None:
        return self._driver.why if isinstance(self._driver, NoDevice) else None

    def executor(self, ordinal: int = 0) -> GpuStreamExecutor:
        self.check_ordinal(ordinal)
        return self._executors(ordinal)

    @made_once
    def _executors(self, ordinal: int) -> GpuStreamExecutor:
        driver = self._driver
        assert isinstance(driver, Driver)
        return self.executor_type(self, driver, self._target_of(driver, ordinal), ordinal, self._linked)

    def compiler(self) -> DeviceCompiler:
        return DeviceCompiler(self.name, self.executor(0))

    def transfer_manager(self) -> GenericTransferManager:
        return GenericTransferManager(self.name)
