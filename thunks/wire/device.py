"""The code of a program for a device, as a section of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...hlo.errors import InputError
from ...hlo.records import dataclass
from .memory import Values

if TYPE_CHECKING:
    from ...codegen.options import Grouped

MOST = 1 << 40
"""More steps, items or bytes than any kernel has."""


@dataclass(frozen=True, slots=True)
class DeviceKernel:
    """How a kernel is spread over work items, as in backends/accelerator/text.py. code: what its device loads.

    flush_subnormals: whether the device counts them as zero. nanoseconds: that it keeps one processor busy, roughly; 0
    if the file does not say.
    """

    symbol: str
    arguments: int
    extent: int
    each: int
    private: int
    walks: bool
    group: Grouped | None
    code: bytes
    flush_subnormals: bool
    nanoseconds: int


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """platform: its name. identity: of the device and its driver, which the code depends on. calls: of handlers on the
    device, as bytes that their room reads.
    """

    platform: str
    identity: str
    kernels: tuple[DeviceKernel, ...]
    calls: tuple[bytes, ...] = ()


def device_values(device: DeviceCode) -> Values:
    kernels = [_fields(kernel) | {"group": kernel.group and _fields(kernel.group)} for kernel in device.kernels]
    return {"platform": device.platform, "identity": device.identity, "kernels": kernels, "calls": device.calls}


def device_of(values: Values) -> DeviceCode:
    """Raises InputError for kernels that no device runs."""
    kernels = tuple(_kernel(row) for row in values["kernels"])
    return DeviceCode(values["platform"], values["identity"], kernels, tuple(map(bytes, values["calls"])))


def _kernel(row: Values) -> DeviceKernel:
    from ...codegen.options import Grouped  # which programs of the host do without

    group = None if row["group"] is None else Grouped(*(row["group"][name] for name in _GROUP))
    items = (1, 1, 1) if group is None else (group.steps, group.across, group.down)
    numbers = (*items, row["each"] or 1, row["extent"], row["private"], row["arguments"])
    if min(items) < 1 or max(numbers) > MOST or (row["extent"] and not row["each"]):
        what = f"kernel {row['symbol']} has no work that a device can share"
        raise InputError(what, remedy="compile the module again")
    return DeviceKernel(**{**row, "group": group, "code": bytes(row["code"])})


_GROUP = ("steps", "across", "down", "memory")


def _fields(value: object) -> Values:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}  # type: ignore[attr-defined]
