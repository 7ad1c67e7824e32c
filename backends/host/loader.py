"""Reads .tbx files: programs that were compiled before, without planner, passes or emitters."""

from __future__ import annotations

import mmap
import os
import stat
import sys
from collections.abc import Callable
from functools import cached_property
from typing import TypeVar

import numpy as np

from ...codegen.cache import DEFAULT_CACHE, ObjectCache
from ...codegen.errors import CodegenError
from ...codegen.features import lacking
from ...codegen.load import LoadedCode, load, missing_symbols, symbols_of
from ...codegen.options import Target
from ...hlo.errors import InputError, TestbedError
from ...thunks.wire.container import Container
from ...thunks.wire.program import Entry, ProgramFile, read_program
from ..calling import Calling
from .executable import HostExecutable
from .files import module_of, trees_of
from .memory import POOL

T = TypeVar("T")


class LoadedExecutable(HostExecutable):
    """A program from a file. `program` has its parameters and its result, but not what it computes."""

    def __init__(self, file: ProgramFile, code: LoadedCode, cache: ObjectCache | None, native_calls: bool):
        needs = file.needs
        target = Target(needs.triple, "", ",".join(f"+{name}" for name in needs.features), 0)
        super().__init__(file.image, module_of(file.entry), code, target, {}, cache=cache)
        self._entry, self._host = file.entry, file.host
        self._may_enter = self._may_enter and native_calls

    @property
    def entry(self) -> Entry:
        return self._entry

    @property
    def host_bytecode(self) -> bytes:
        return self._host

    def _enter(self) -> None:
        """Without JAX in the process, nobody passes its trees: the native entry, which needs them, can wait."""
        if self._entry.trees is None or "jax" in sys.modules:
            super()._enter()

    @cached_property
    def calling(self) -> Calling:
        """How it is called. Raises InputError for a program with trees of JAX where that is not installed."""
        return Calling(self.program, trees_of(self._entry))


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
    block = POOL.allocate(len(data))
    block[:] = np.frombuffer(data, np.uint8)
    return memoryview(block.data).toreadonly()


def _loaded(program: ProgramFile, cache: ObjectCache | None, native_calls: bool) -> LoadedExecutable:
    needs, objects = program.needs, [bytes(data) for data in program.objects]
    why = lacking(needs.triple, needs.features)
    if why:
        raise InputError(f"its code cannot run here: {why}", remedy="compile it with --cpu for this processor")
    _check_symbols(program, objects)
    return LoadedExecutable(program, load(objects), cache, native_calls)


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
            remedy="install the libraries that requirements.txt pins, or compile the module again here",
        )
