"""Client, devices, memory spaces and topology: one process, devices simulated on the host."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import __version__
from ..backends.host.addresses import address_of
from ..backends.host.memory import memory_stats
from ..hlo.devices import MOST_DEVICES
from ..hlo.errors import InputError
from . import api
from .errors import PjrtError
from .names import PLATFORM
from .native import text_record

DEVICES_VARIABLE = "TESTBED_DEVICES"
MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")
"""As XLA:CPU has them; all are plain memory of the host."""

HANDLE = 64
"""The handle of the client and of its topology. There is one of each; nothing is read at this address."""


class Pointers:
    """An array of addresses in C's form."""

    def __init__(self, values: list[int]):
        self._words = np.array(values, np.uint64)
        self.address, self.count = address_of(self._words), len(values)


class Text:
    """A text in C's form."""

    def __init__(self, text: str):
        self.address, self.size, self._kept = text_record(text.encode())


class Memory:
    """A memory space of one device. handle: the address of the record that native code reads."""

    def __init__(self, number: int, kind: int, device: Device):
        self.number, self.kind_number, self.device = number, kind, device
        self.kind: Text = Text(MEMORY_KINDS[kind])
        self._words = np.array([self.kind.address, self.kind.size, device.handle], np.uint64)
        self.handle: int = address_of(self._words)
        self.text: Text = Text(f"{PLATFORM}:{device.number} {MEMORY_KINDS[kind]}")
        self.devices: Pointers = Pointers([device.handle])


class Device:
    """A simulated device. Its handle is that of its description, too."""

    def __init__(self, number: int):
        self.number = number
        self._words = np.zeros(1, np.uint64)
        self.handle: int = address_of(self._words)
        self.kind: Text = Text(PLATFORM)
        self.text: Text = Text(f"TestbedDevice(id={number})")
        count = len(MEMORY_KINDS)
        self.memories = [Memory(number * count + kind, kind, self) for kind in range(count)]
        self._words[0] = self.memories[0].handle
        self.memory_list: Pointers = Pointers([memory.handle for memory in self.memories])


class Client:
    """All devices of the process. They live as long as it does, because buffers name them."""

    def __init__(self, count: int):
        self.devices = [Device(number) for number in range(count)]
        self.device_list: Pointers = Pointers([device.handle for device in self.devices])
        self.memories = {m.handle: m for device in self.devices for m in device.memories}
        self.memory_list: Pointers = Pointers(list(self.memories))
        self.by_handle = {device.handle: device for device in self.devices}
        self.name: Text = Text(PLATFORM)
        self.version: Text = Text(f"{PLATFORM} {__version__}")


def device_count() -> int:
    """The number of devices that the environment asks for. Raises InputError."""
    text = os.environ.get(DEVICES_VARIABLE, "1")
    if not text.isdigit() or not 0 < int(text) <= MOST_DEVICES:
        raise InputError(f"{DEVICES_VARIABLE}={text!r} is no number of devices", remedy=f"give 1 to {MOST_DEVICES}")
    return int(text)


_client: Client | None = None


def client() -> Client:
    """The devices, made when they are first asked for."""
    global _client
    if _client is None:
        _client = Client(device_count())
    return _client


def _device(args: Any) -> Device:
    return client().by_handle[args.device]


def _described(args: Any) -> Device:
    return client().by_handle[args.device_description]


def _memory(args: Any) -> Memory:
    return client().memories[args.memory]


def memory_of(memory: int | None, device: int | None) -> Memory:
    """The memory space that a function is given, or the default one of the device that it is given."""
    if memory:
        return client().memories[memory]
    return client().by_handle[device].memories[0] if device else client().devices[0].memories[0]


# -- functions ---------------------------------------------------------------------------------------------------------
def _create(args: Any) -> None:
    client()
    args.client = HANDLE


def _device_at(number: int) -> int:
    if not 0 <= number < len(client().devices):
        raise PjrtError(api.ErrorCode.INVALID_ARGUMENT, f"no device {number}; there are {len(client().devices)}")
    return client().devices[number].handle


def _lookup(args: Any) -> None:
    args.device = _device_at(args.id)


def _lookup_addressable(args: Any) -> None:
    args.addressable_device = _device_at(args.local_hardware_id)


def _assignment(args: Any) -> None:
    count = args.num_replicas * args.num_partitions
    if count > len(client().devices) or args.default_assignment_size < count:
        raise PjrtError(
            api.ErrorCode.INVALID_ARGUMENT,
            f"{count} devices wanted, there are {len(client().devices)} (set {DEVICES_VARIABLE}={count})",
        )
    (ctypes.c_int * count).from_address(args.default_assignment)[:] = list(range(count))


def _memory_stats(args: Any) -> None:
    stats = memory_stats()
    args.bytes_in_use = stats.bytes_in_use
    given: dict[str, int | None] = {
        "peak_bytes_in_use": stats.peak_bytes_in_use,
        "num_allocs": stats.allocations,
        "bytes_limit": stats.bytes_limit,
        "pool_bytes": stats.bytes_in_use + stats.cached_bytes,
    }
    for name, _ in args._fields_[4::2]:
        value = given.get(name)
        setattr(args, f"{name}_is_set", value is not None)
        if value is not None:
            setattr(args, name, value)


def _fingerprint(args: Any) -> None:
    args.fingerprint = 1


def _no_attributes(args: Any) -> None:
    args.attributes, args.num_attributes = None, 0


def _texts(field: str, text: Callable[[Any], Text]) -> Callable[[Any], None]:
    """A function that answers with a text."""

    def answer(args: Any) -> None:
        found = text(args)
        setattr(args, field, found.address)
        setattr(args, f"{field}_size", found.size)

    return answer


def _lists(field: str, count: str, pointers: Callable[[Any], Pointers]) -> Callable[[Any], None]:
    """A function that answers with an array of handles."""

    def answer(args: Any) -> None:
        found = pointers(args)
        setattr(args, field, found.address)
        setattr(args, count, found.count)

    return answer


def _values(field: str, value: Callable[[Any], Any]) -> Callable[[Any], None]:
    """A function that answers with one value."""
    return lambda args: setattr(args, field, value(args))


def _nothing(args: Any) -> None:
    """What needs no action."""


def _no_topology(args: Any) -> None:
    args.topology = HANDLE


FUNCTIONS: dict[str, Callable[[Any], None]] = {
    "Plugin_Initialize": _nothing,
    "Client_Create": _create,
    "Client_Destroy": _nothing,
    "Client_PlatformName": _texts("platform_name", lambda args: client().name),
    "Client_PlatformVersion": _texts("platform_version", lambda args: client().version),
    "Client_ProcessIndex": _values("process_index", lambda args: 0),
    "Client_TopologyDescription": _no_topology,
    "Client_Devices": _lists("devices", "num_devices", lambda args: client().device_list),
    "Client_AddressableDevices": _lists(
        "addressable_devices", "num_addressable_devices", lambda args: client().device_list
    ),
    "Client_AddressableMemories": _lists(
        "addressable_memories", "num_addressable_memories", lambda args: client().memory_list
    ),
    "Client_LookupDevice": _lookup,
    "Client_LookupAddressableDevice": _lookup_addressable,
    "Client_DefaultDeviceAssignment": _assignment,
    "Client_UpdateGlobalProcessInfo": _nothing,
    "Client_DmaMap": _nothing,
    "Client_DmaUnmap": _nothing,
    "DeviceDescription_Id": _values("id", lambda args: _described(args).number),
    "DeviceDescription_ProcessIndex": _values("process_index", lambda args: 0),
    "DeviceDescription_Attributes": _no_attributes,
    "DeviceDescription_Kind": _texts("device_kind", lambda args: _described(args).kind),
    "DeviceDescription_DebugString": _texts("debug_string", lambda args: _described(args).text),
    "DeviceDescription_ToString": _texts("to_string", lambda args: _described(args).text),
    "Device_GetDescription": _values("device_description", lambda args: args.device),
    "Device_IsAddressable": _values("is_addressable", lambda args: True),
    "Device_LocalHardwareId": _values("local_hardware_id", lambda args: _device(args).number),
    "Device_AddressableMemories": _lists("memories", "num_memories", lambda args: _device(args).memory_list),
    "Device_DefaultMemory": _values("memory", lambda args: _device(args).memories[0].handle),
    "Device_MemoryStats": _memory_stats,
    "Memory_Id": _values("id", lambda args: _memory(args).number),
    "Memory_Kind_Id": _values("kind_id", lambda args: _memory(args).kind_number),
    "Memory_DebugString": _texts("debug_string", lambda args: _memory(args).text),
    "Memory_ToString": _texts("to_string", lambda args: _memory(args).text),
    "Memory_AddressableByDevices": _lists("devices", "num_devices", lambda args: _memory(args).devices),
    "TopologyDescription_Create": _no_topology,
    "TopologyDescription_Destroy": _nothing,
    "TopologyDescription_PlatformName": _texts("platform_name", lambda args: client().name),
    "TopologyDescription_PlatformVersion": _texts("platform_version", lambda args: client().version),
    "TopologyDescription_GetDeviceDescriptions": _lists(
        "descriptions", "num_descriptions", lambda args: client().device_list
    ),
    "TopologyDescription_Attributes": _no_attributes,
    "TopologyDescription_Fingerprint": _fingerprint,
}
