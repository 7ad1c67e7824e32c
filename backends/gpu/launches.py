"""Launches that follow each other, given to the driver by one call of native code."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..accelerator.launches import Bases, Launch
from .driver import Driver
from .launch_words import words_of


@dataclass(frozen=True, eq=False, slots=True)
class Launches:
    """rows: what is launched. words: the same for native code (launch_words.py). most: arguments of one of them."""

    driver: Driver
    rows: Sequence[Launch]
    words: ctypes.Array[ctypes.c_uint64]
    most: int
    function: int

    def enqueue(self, stream: int, bases: Bases) -> None:
        """Give them to a stream of the driver. Raises BackendError with the launch that the driver refuses."""
        given = ctypes.addressof(self.words), len(self.rows), ctypes.addressof(bases)
        stopped = _code()(*given, stream, self.function, self.most)
        if stopped:
            number, code = divmod(stopped, 1 << 32)
            self.driver.fail(code, f"run {self.rows[number].kernel.name}")


def launches(rows: Sequence[Launch], driver: Driver) -> Launches:
    """Launches for native code."""
    function: Any = driver.symbols[driver.dialect.functions["launch"]]
    address = ctypes.cast(function, ctypes.c_void_p).value or 0
    return Launches(driver, tuple(rows), words_of(rows), max(len(row.places) for row in rows), address)


@functools.cache
def _code() -> Callable[..., int]:
    from ...codegen.load import load
    from ...codegen.runtime import runtime_object

    loaded = load([runtime_object("gpu launches 1", _text)])
    word, address = ctypes.c_uint64, ctypes.c_void_p
    types = (word, address, word, address, address, address, word)
    function: Any = ctypes.CFUNCTYPE(*types)(loaded.address("testbed_gpu_launches"))
    function.loaded = loaded
    return function


def _text() -> str:
    from .launches_code import launches_ir

    return launches_ir()
