"""Reads .tbx files: programs that were compiled before, without planner, passes or emitters."""

from __future__ import annotations

import mmap
import os
import stat
import sys
import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from ...codegen.cache import DEFAULT_CACHE, ObjectCache
from ...codegen.errors import CodegenError
from ...codegen.features import lacking
from ...codegen.load import LoadedCode, load, missing_symbols, symbols_of
from ...hlo.errors import InputError, TestbedError
from ...hlo.later import np
from ...thunks.wire.container import Container
from ...thunks.wire.program import Entry, ProgramFile, read_program
from .executable import HostExecutable

if TYPE_CHECKING:
    from ..calling import Calling

T = TypeVar("T")


class LoadedExecutable(HostExecutable):
    """A program from a file. `program` has its parameters and its result, but not what it computes.

    What only a run needs, NumPy among it, is imported and made when something of it is first used.
    """

    def __init__(self, file: ProgramFile, code: LoadedCode, cache: ObjectCache | None, native_calls: bool):
        self._file, self._linked, self._wanted = file, code, (cache, native_calls)
        self.kernels = tuple((kernel.symbol, kernel.emitter) for kernel in file.image.kernels)  # the class has one, too
        self._native, self._lock, self._is_made, self._is_being_made = None, threading.RLock(), False, False

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Called for what an executable has and this one has not yet."""
            if not (name.startswith("__") or "_is_being_made" not in self.__dict__ or self._is_made):
                with self._lock:
                    if not (self._is_made or self._is_being_made):
                        self._make()
            return object.__getattribute__(self, name)

    def prepare(self) -> None:
        """Make what a run needs, if that is not done."""
        with self._lock:
            if not self._is_made:
                self._make()

    def _make(self) -> None:
        from ...codegen.options import Target
        from .files import module_of

        needs, (cache, native_calls) = self._file.needs, self._wanted
        target = Target(needs.triple, "", ",".join(f"+{name}" for name in needs.features), 0)
        self._is_being_made = True
        try:
            super().__init__(self._file.image, module_of(self._file.entry), self._linked, target, {}, cache=cache)
            self._enters = self._enters and native_calls
            self._may_enter = self._may_enter and native_calls
            self._is_made = True
        finally:
            self._is_being_made = False

    @property
    def entry(self) -> Entry:
        return self._file.entry

    @property
    def host_bytecode(self) -> bytes:
        return self._file.host

    def _enter(self) -> None:
        """Without JAX in the process, nobody passes its trees: the native entry, which needs them, can wait."""
        if self.entry.trees is None or "jax" in sys.modules:
            super()._enter()

    @cached_property
    def calling(self) -> Calling:
        """How it is called. Raises InputError for a program with trees of JAX where that is not installed."""
        from ..calling import Calling
        from .files import trees_of

        return Calling(self.program, trees_of(self.entry))


def load_executable(
    path: str | os.PathLike[str],
    key: bytes | None = None,
    cache: ObjectCache | None = DEFAULT_CACHE,
    native_calls: bool = True,
) -> LoadedExecutable:
    """The program in a .tbx file, ready to run. key: refuse a file that is not signed with it.

    native_calls: let the first run prepare calls without Python, which pays from thousands of calls on.

    Raises InputError, VerificationError or CodegenError with the reason, before any of its code runs: damage, another
    processor, a missing symbol, a structure that would read or write what it must not.
    """
    name = os.fspath(path)
    return _named(lambda: _loaded(read_program(file_bytes(name), key)[0], cache, native_calls), name)


def deserialize_and_load(data: bytes, key: bytes | None = None) -> LoadedExecutable:
    """As `load_executable`, from the bytes of the file (`executable.serialize()`)."""
    return _named(lambda: _loaded(read_program(_aligned(data), key)[0], DEFAULT_CACHE, True), "the program")


def inspect_file(path: str | os.PathLike[str], key: bytes | None = None) -> tuple[ProgramFile, Container]:
    """What a .tbx file holds, checked but for processor and symbols. Raises as `load_executable` does."""
    name = os.fspath(path)
    return _named(lambda: read_program(file_bytes(name), key), name)


def file_bytes(name: str) -> memoryview:
    """A file, mapped for reading; the bytes of a pipe, or of standard input for `-`. Raises InputError."""
    try:
        with open(0 if name == "-" else name, "rb", closefd=name != "-") as file:
            status = os.fstat(file.fileno())
            if stat.S_ISCHR(status.st_mode) and name != "-":
                raise InputError("a device, not a file", remedy="give a .tbx file, from testbed compile")
            if stat.S_ISREG(status.st_mode) and status.st_size:
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            return _aligned(file.read())
    except OSError as error:
        raise InputError(f"{error.strerror or error}", remedy="give a .tbx file, from testbed compile") from None


def _named(read: Callable[[], T], name: str) -> T:
    """What `read` returns. Its errors begin with the name."""
    try:
        return read()
    except TestbedError as error:
        raise type(error)(f"{name}: {error.message}", remedy=error.remedy) from None


def _aligned(data: bytes) -> memoryview:
    from .memory import POOL

    block = POOL.allocate(len(data))
    block[:] = np.frombuffer(data, np.uint8)
    return memoryview(block.data).toreadonly()


def _loaded(program: ProgramFile, cache: ObjectCache | None, native_calls: bool) -> LoadedExecutable:
    if program.device is not None:
        name = program.device.platform
        remedy = f"testbed.platform({name!r}).compiler().load_executable(data)"
        raise InputError(f"it is a program for the platform {name}, not for the host", remedy=remedy)
    needs, objects = program.needs, [bytes(data) for data in program.objects]
    why = lacking(needs.triple, needs.features)
    if why:
        raise InputError(f"its code cannot run here: {why}", remedy="compile it with --cpu for this processor")
    _check_symbols(program, objects)
    executable = LoadedExecutable(program, load(objects), cache, native_calls)
    if any(kernel.emitter == "ffi" for kernel in program.image.kernels):
        executable.prepare()  # its handlers must be known now, and are instantiated
    return executable


def _check_symbols(program: ProgramFile, objects: list[bytes]) -> None:
    symbols = symbols_of(objects)
    if symbols.undefined != set(program.needs.symbols):
        raise InputError("its list of symbols is not that of its code")
    undefined = [k.symbol for k in program.image.kernels if k.symbol not in symbols.defined]
    if undefined:
        raise InputError(f"its code does not define the kernel {undefined[0]}")
    missing = missing_symbols(symbols.undefined)
    if missing:
        raise CodegenError(
            f"its code needs symbols that this process does not have: {', '.join(missing)}",
            remedy="install the libraries that locks/requirements.txt pins, or compile the module again here",
        )
