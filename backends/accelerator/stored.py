"""A program of a device → the bytes of a .tbx file: the device's own code of its kernels, and what the host does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module

from ...codegen.features import needed_features
from ...codegen.load import LoadedCode, symbols_of
from ...codegen.options import Target
from ...hlo.display import PACKAGE
from ...thunks.image import Image
from ...thunks.wire.device import DeviceCode, DeviceKernel
from ...thunks.wire.program import Entry as ProgramEntry
from ...thunks.wire.program import Needs, ProgramFile, write_program
from ..host.files import PRODUCER
from .calls import DeviceCall
from .steps import Entry


def device_code(platform: str, identity: str, entries: Mapping[str, Entry], calls: Sequence[DeviceCall]) -> DeviceCode:
    """What only the device runs. identity: of the device and its driver."""
    kernels = tuple(_kernel(symbol, entry) for symbol, entry in entries.items())
    return DeviceCode(platform, identity, kernels, tuple(call.to_bytes() for call in calls))


def program_bytes(
    entry: ProgramEntry, image: Image, code: LoadedCode | None, device: DeviceCode, key: bytes | None
) -> bytes:
    """The file. code: what the program computes on the host. key: signs it."""
    objects = () if code is None else code.objects
    target, version = Target.host(), import_module(PACKAGE).__version__
    symbols = tuple(sorted(symbols_of(objects).undefined))
    needs = Needs(PRODUCER, version, target.triple, needed_features(target) if objects else (), symbols)
    return b"".join(write_program(ProgramFile(needs, entry, image, objects, b"", device), key))


def _kernel(symbol: str, entry: Entry) -> DeviceKernel:
    work, code = entry.work, entry.kernel.handle.program.stored()
    rest = (work.arguments, work.extent, work.each, work.private, work.walks, work.group)
    return DeviceKernel(symbol, *rest, code, entry.flush, entry.nanoseconds)
