"""The plugin's function table, PJRT_Api: native functions, and callbacks into Python for the others."""

from __future__ import annotations

import atexit
import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..backends.host.addresses import address_of
from . import api, api_rows, errors, repro
from . import client as clients
from .buffers import Buffers
from .errors import PjrtError
from .executables import Executables
from .names import PLATFORM
from .native import CALLBACK, Native
from .report import REPORT_VARIABLE, Report

CAPSULE_NAME = b"pjrt_c_api"

ABSENT = ("Device_GetAttributes",)
"""Functions that are null: the framework asks whether they are there, and ends the process if they fail."""


class Table:
    """PJRT_Api and all that it points to, for as long as the process lives."""

    def __init__(self) -> None:
        self._native: Native | None = None
        self.executables = executables = Executables(lambda: self.native)
        buffers = Buffers(lambda: self.native)
        python: dict[str, Callable[[Any], Any]] = {
            **errors.FUNCTIONS,
            **clients.FUNCTIONS,
            "Plugin_Attributes": _attributes,
            **executables.functions(),
            **buffers.functions(),
        }
        known = (*api.functions(), *api.layout_functions())
        self.callbacks = {name: _callback(name, python.get(name) or _unsupported(name)) for name in known}
        self._native = Native(self.callbacks)
        addresses = {name: ctypes.cast(call, ctypes.c_void_p).value or 0 for name, call in self.callbacks.items()}
        addresses |= self._native.addresses | dict.fromkeys(ABSENT, 0)
        self.layouts = np.zeros(3 + len(api.layout_functions()), np.uint64)
        self.layouts[:3] = self.layouts.nbytes, api_rows.EXTENSION_LAYOUTS, 0
        self.layouts[3:] = [addresses[name] for name in api.layout_functions()]
        self.words = np.zeros(api.table_size() // 8, np.uint64)
        self.words[:4] = self.words.nbytes, address_of(self.layouts), 24, 0
        self.words[4] = api_rows.MAJOR | api_rows.MINOR << 32
        self.words[5:] = [addresses[name] for name in api.functions()]

    @property
    def native(self) -> Native:
        assert self._native is not None
        return self._native

    def capsule(self) -> Any:
        make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return make(("PyCapsule_New", ctypes.pythonapi))(address_of(self.words), CAPSULE_NAME, None)

    def close(self) -> None:
        """Let no thread of the framework enter Python any more: what destroys becomes native and does nothing."""
        for table, names in ((self.words[5:], api.functions()), (self.layouts[3:], api.layout_functions())):
            for number, name in enumerate(names):
                if name not in self.native.addresses and name.endswith(("_Destroy", "_Delete")):
                    table[number] = self.native.none


def _callback(name: str, function: Callable[[Any], Any]) -> Any:
    """A C function that calls a Python function with its arguments. An exception becomes an error's handle."""
    kind = api.arguments(name)

    def call(address: int) -> int | None:
        try:
            return function(kind.from_address(address))
        except BaseException as error:  # whatever leaves a ctypes callback counts as success
            return errors.hold(error)

    return CALLBACK(call)


def _unsupported(name: str) -> Callable[[Any], None]:
    def refuse(args: Any) -> None:
        raise PjrtError(api.ErrorCode.UNIMPLEMENTED, f"PJRT_{name} is not supported by the platform {PLATFORM}")

    return refuse


def _attributes(args: Any) -> None:
    args.attributes, args.num_attributes = None, 0


_table: Table | None = None


def _report(executables: Executables) -> None:
    """Write a report when the process ends, if `testbed jax` asks for it."""
    path = os.environ.get(REPORT_VARIABLE)
    if path:
        executables.report = report = Report(Path(path))
        report.shadows = repro.SHADOWS
        atexit.register(lambda: report.write(loaded.compiled for loaded in executables.held()))


def table() -> Table:
    """The function table, made once a process."""
    global _table
    if _table is None:
        _table = Table()
        atexit.register(_table.close)
        _report(_table.executables)
    return _table
