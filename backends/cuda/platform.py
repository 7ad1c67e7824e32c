"""The platform `cuda`: NVIDIA GPUs of compute capability 8.0 and later."""

from __future__ import annotations

from ..accelerator.targets import DeviceTarget, nvptx
from ..device import BackendError
from ..gpu.driver import Driver, load_driver
from ..gpu.platform import GpuPlatform
from .dialect import CUDA

KNOWN = ((8, 0), (9, 0), (10, 0))
"""Compute capabilities that code is made for, least first: a device takes that of the last one which it has."""


def target_of(driver: Driver, device: int) -> DeviceTarget:
    """The code that a device takes. Raises BackendError for one that is too old."""
    have = driver.number(device, "major"), driver.number(device, "minor")
    least = [known for known in KNOWN if known <= have]
    if not least:
        what = f"CUDA's device {device} has compute capability {have[0]}.{have[1]}"
        raise BackendError(what, remedy=f"use one of {KNOWN[0][0]}.{KNOWN[0][1]} or later")
    major, minor = least[-1]
    return nvptx(f"sm_{major}{minor}")


def cuda() -> GpuPlatform:
    """Unavailable, in one line, where there is no driver or no device."""
    return GpuPlatform("cuda", lambda: load_driver(CUDA), target_of)
