"""The bytes of a .tbx file → a program of a device (stored.py writes them)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...codegen.errors import CodegenError
from ...codegen.features import lacking
from ...codegen.load import LoadedCode, load, missing_symbols, symbols_of
from ...hlo.errors import InputError
from ...thunks.wire.device import DeviceCode, DeviceKernel
from ...thunks.wire.program import Entry as ProgramEntry
from ...thunks.wire.program import ProgramFile, read_program
from ..host.files import module_of, trees_of
from .calls import DeviceCall
from .device import Device
from .executable import DeviceExecutable
from .steps import Entry
from .text import Work, entry_name

if TYPE_CHECKING:
    from ..calling import Calling


class LoadedProgram(DeviceExecutable):
    """A program from a file. `program` has its parameters and its result, but not what it computes."""

    def __init__(self, entry: ProgramEntry, *given: Any):
        self._entry = entry
        super().__init__(*given)

    @property
    def entry(self) -> ProgramEntry:
        return self._entry

    @cached_property
    def calling(self) -> Calling:
        """How it is called. Raises InputError for a program with trees of JAX where that is not installed."""
        from ..calling import Calling

        return Calling(self.program, trees_of(self.entry))


def load_program(data: bytes, key: bytes | None, platform: str, device: Device) -> LoadedProgram:
    """The program in a file's bytes. Raises InputError, VerificationError or BackendError with the reason, in one line,
    before any of its code runs: damage, another device or driver, a handler that is not there.
    """
    file, _ = read_program(data, key)
    of_device = file.device
    if of_device is None:
        raise InputError(f"it is a program for the host, not for {platform}", remedy="testbed.load_executable(file)")
    if of_device.platform != platform:
        what = f"it is a program for the platform {of_device.platform}, not for {platform}"
        raise InputError(what, remedy=f"testbed.platform({of_device.platform!r}).compiler().load_executable(data)")
    if of_device.identity != device.identity:
        what = f"it is a program for {of_device.identity}, and this device is {device.identity}"
        raise InputError(what, remedy="compile the module again for this device")
    calls = tuple(DeviceCall.of_bytes(call) for call in of_device.calls)
    code = _host_code(file)
    _check(file, of_device, calls, code)
    entries = {kernel.symbol: _loaded(kernel, device) for kernel in of_device.kernels}
    given = (platform, device, file.image, module_of(file.entry), entries, code, calls, {})
    return LoadedProgram(file.entry, *given)


def _host_code(file: ProgramFile) -> LoadedCode | None:
    """What the program computes on the host."""
    if not file.objects:
        return None
    why = lacking(file.needs.triple, file.needs.features)
    if why:
        raise InputError(f"its code of the host cannot run here: {why}", remedy="compile the module again here")
    objects = [bytes(data) for data in file.objects]
    missing = missing_symbols(symbols_of(objects).undefined)
    if missing:
        what = f"its code needs symbols that this process does not have: {', '.join(missing)}"
        raise CodegenError(what, remedy="install the libraries that locks/requirements.txt pins")
    return load(objects)


def _check(file: ProgramFile, device: DeviceCode, calls: tuple[DeviceCall, ...], code: LoadedCode | None) -> None:
    """Each kernel of the program is one of the device, of a call on it, or of the host, with as many arguments."""
    arguments = {k.symbol: k.arguments for k in device.kernels}
    on_host = symbols_of(code.objects).defined if code is not None else frozenset()
    made = {call.symbol: call for call in calls}
    for kernel in file.image.kernels:
        count = len(kernel.arguments)
        if kernel.symbol in made:
            numbers = (*made[kernel.symbol].buffers, *(n for pair in made[kernel.symbol].copied for n in pair))
            fits = all(-1 <= n < count for n in numbers)
        else:
            fits = arguments.get(kernel.symbol) == count or (
                kernel.symbol not in arguments and kernel.symbol in on_host
            )
        if not fits:
            what = f"its code does not define the kernel {kernel.symbol} as the program calls it"
            raise InputError(what, remedy="compile the module again")


def _loaded(kernel: DeviceKernel, device: Device) -> Entry:
    rest = (kernel.arguments, kernel.extent, kernel.each, kernel.private, kernel.walks, kernel.group)
    work = Work(kernel.symbol, *rest)
    program = device.build(kernel.code, kernel.flush_subnormals)
    loaded = device.kernel(program, entry_name(kernel.symbol), kernel.arguments)
    return Entry(loaded, work, kernel.flush_subnormals, kernel.nanoseconds)
