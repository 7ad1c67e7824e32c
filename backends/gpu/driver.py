"""A driver for GPUs: its functions under one set of names, with their C types, and its errors in words.

CUDA's driver and HIP have the same functions but for names and a few arguments; a Dialect is the table of one of them.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping
from ctypes import POINTER, c_char, c_char_p, c_float, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from dataclasses import dataclass, field
from typing import Any

from ..device import BackendError

_OUT = POINTER(c_void_p)

FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "init": (c_uint,),
    "device_count": (POINTER(c_int),),
    "device": (POINTER(c_int), c_int),
    "device_name": (POINTER(c_char), c_int, c_int),
    "attribute": (POINTER(c_int), c_int, c_int),
    "total_memory": (POINTER(c_size_t), c_int),
    "allocate": (POINTER(c_uint64), c_size_t),
    "free": (c_uint64,),
    "host_allocate": (_OUT, c_size_t, c_uint),
    "host_free": (c_void_p,),
    "memset8": (c_uint64, c_ubyte, c_size_t, c_void_p),
    "memset32": (c_uint64, c_uint, c_size_t, c_void_p),
    "stream_create": (_OUT, c_uint),
    "stream_destroy": (c_void_p,),
    "stream_synchronize": (c_void_p,),
    "stream_wait_event": (c_void_p, c_void_p, c_uint),
    "event_create": (_OUT, c_uint),
    "event_destroy": (c_void_p,),
    "event_record": (c_void_p, c_void_p),
    "event_synchronize": (c_void_p,),
    "event_query": (c_void_p,),
    "event_elapsed": (POINTER(c_float), c_void_p, c_void_p),
    "module_load": (_OUT, c_void_p, c_uint, c_void_p, c_void_p),
    "module_unload": (c_void_p,),
    "module_function": (_OUT, c_void_p, c_char_p),
    "launch": (c_void_p, *[c_uint] * 7, c_void_p, c_void_p, c_void_p),
}
"""Name → parameters of the functions that both have; each returns a code, 0 for success."""

NON_BLOCKING = 1
"""A stream that does not wait for the default one."""

NOT_READY = 600
"""What event_query returns for an event that is not reached yet."""

ERROR_LOG, ERROR_LOG_BYTES = 5, 6
"""Options of module_load: where the driver's compiler writes what is wrong with the code, and how much has room."""

LOG_BYTES = 4096


@dataclass(frozen=True)
class Dialect:
    """What a driver calls things. functions: names of FUNCTIONS → symbols; others: symbols with types of their own.

    adapters: name → a function of Python on the symbols, for calls whose arguments differ: `enter(device)`,
    `copy(to, source, size, stream)`, `copy_peer(to, its device, source, its device, size, stream)`. attributes: numbers
    of properties. errors: code → name. memory, lost: codes that mean that memory is short, that the device does not
    answer.
    """

    name: str
    libraries: tuple[str, ...]
    functions: Mapping[str, str]
    others: Mapping[str, tuple[Any, ...]]
    adapters: Mapping[str, Callable[..., int]]
    attributes: Mapping[str, int]
    errors: Mapping[int, str]
    memory: frozenset[int]
    lost: frozenset[int]


@dataclass(frozen=True, eq=False)
class Driver:
    """A loaded driver. calls: its functions by their names here; symbols: by their own."""

    dialect: Dialect
    symbols: Mapping[str, Callable[..., int]]
    contexts: dict[int, int] = field(default_factory=dict)
    _entered: threading.local = field(default_factory=threading.local)

    @property
    def device(self) -> int | None:
        """The device that this thread entered last."""
        return getattr(self._entered, "device", None)

    def call(self, name: str, *arguments: Any) -> int:
        """The code that a function returns."""
        adapter = self.dialect.adapters.get(name)
        if adapter is not None:
            code = adapter(self, *arguments)
            if name == "enter" and not code:
                self._entered.device = arguments[0]
            return code
        return self.symbols[self.dialect.functions[name]](*arguments)

    def do(self, what: str, name: str, *arguments: Any) -> None:
        """Call a function. Raises BackendError that says what failed and how."""
        code = self.call(name, *arguments)
        if code:
            self.fail(code, what)

    def fail(self, code: int, what: str) -> None:
        remedy = f"testbed platforms shows the limits of {self.dialect.name}"
        if code in self.dialect.memory:
            remedy = "use less memory at once: smaller arrays, fewer programs"
        if code in self.dialect.lost:
            remedy = "the device is lost: start the process again"
        raise BackendError(f"{self.dialect.name} cannot {what}: {self.describe(code)}", remedy=remedy)

    def describe(self, code: int) -> str:
        """A code in words: 'OUT_OF_MEMORY (2)'."""
        return f"{self.dialect.errors.get(code, 'error')} ({code})"

    def load(self, image: bytes) -> tuple[int, int, str]:
        """Load a module: (code, handle, what the driver's compiler says is wrong, in one line)."""
        made, log = ctypes.c_void_p(), ctypes.create_string_buffer(LOG_BYTES)
        names = (c_int * 2)(ERROR_LOG, ERROR_LOG_BYTES)
        values = (c_void_p * 2)(ctypes.addressof(log), LOG_BYTES)
        code = self.call("module_load", ctypes.byref(made), ctypes.create_string_buffer(image), 2, names, values)
        return code, made.value or 0, " ".join(log.value.decode(errors="replace").split())

    def number(self, device: int, attribute: str) -> int:
        """A property of a device."""
        value = c_int()
        self.do(f"say its {attribute}", "attribute", ctypes.byref(value), self.dialect.attributes[attribute], device)
        return value.value


@dataclass(frozen=True, slots=True)
class NoDevice:
    """Why there is no driver, or no device: one line."""

    why: str


def load_driver(dialect: Dialect) -> Driver | NoDevice:
    """The driver of this machine, initialised."""
    for name in dialect.libraries:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        return started(dialect, library)
    return NoDevice(f"no device: {dialect.libraries[0]} is not installed (it comes with the driver of {dialect.name})")


def started(dialect: Dialect, library: Any) -> Driver | NoDevice:
    """The driver of a library (anything with its symbols as attributes)."""
    types = {symbol: FUNCTIONS[name] for name, symbol in dialect.functions.items()} | dict(dialect.others)
    symbols = {}
    for symbol, parameters in types.items():
        function = getattr(library, symbol, None)
        if function is None:
            return NoDevice(f"no device: the driver of {dialect.name} is too old, it has no {symbol}")
        function.restype, function.argtypes = c_int, parameters
        symbols[symbol] = function
    driver = Driver(dialect, symbols)
    count = c_int()
    code = driver.call("init", 0) or driver.call("device_count", ctypes.byref(count))
    if code:
        return NoDevice(f"no device: {dialect.name} says {driver.describe(code)}")
    return driver if count.value else NoDevice(f"no device: {dialect.name} finds none")


def device_count(driver: Driver | NoDevice) -> int:
    """How many devices a driver has."""
    if isinstance(driver, NoDevice):
        return 0
    count = c_int()
    driver.do("count its devices", "device_count", ctypes.byref(count))
    return count.value
