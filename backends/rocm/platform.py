"""The platform `rocm`: AMD GPUs with HIP, of the processors that code is made for."""

from __future__ import annotations

import re
from pathlib import Path

from ..accelerator.targets import DeviceTarget, amdgcn
from ..device import BackendError
from ..gpu.driver import Driver, load_driver
from ..gpu.platform import GpuPlatform
from .dialect import HIP
from .link import linked

KNOWN = ("gfx942", "gfx1100")
"""Processors that code is made for."""

NODES = "/sys/class/kfd/kfd/topology/nodes"
"""Where the kernel tells of its devices: HIP gives a processor's name in a structure of changing layout only."""


def processors(nodes: str | Path = NODES) -> tuple[str, ...]:
    """The processor of each device, in the order of HIP: 90402 is gfx942, 110000 is gfx1100."""
    found = []
    for node in sorted(Path(nodes).glob("*/properties"), key=lambda path: int(path.parent.name)):
        version = re.search(r"^gfx_target_version (\d+)", node.read_text(encoding="ascii"), re.MULTILINE)
        number = int(version[1]) if version else 0
        if number:
            found.append(f"gfx{number // 10000}{number // 100 % 100:x}{number % 100:x}")
    return tuple(found)


def target_of(driver: Driver, device: int) -> DeviceTarget:
    """The code that a device takes. Raises BackendError for another processor."""
    found = processors()
    name = found[device] if device < len(found) else "unknown"
    if name not in KNOWN:
        raise BackendError(f"HIP's device {device} is {name}", remedy=f"use one of {', '.join(KNOWN)}")
    return amdgcn(name)


def rocm() -> GpuPlatform:
    """Unavailable, in one line, where there is no HIP or no device."""
    return GpuPlatform("rocm", lambda: load_driver(HIP), target_of, linked)
