"""Handlers of XLA's FFI as functions of the address of a frame, without testbed.ffi's signatures."""

from __future__ import annotations

import ctypes
from typing import Any

from ...ffi import abi

_KEPT: list[Any] = []


def handler(function: Any) -> int:
    made = abi.HANDLER(function)
    _KEPT.append(made)
    return ctypes.cast(made, ctypes.c_void_p).value or 0


def answers(frame: int, version: tuple[int, int], traits: int = 0, state: int = 0) -> bool:
    """Whether a frame asked for metadata, which it then has."""
    extension = abi.CallFrame.from_address(frame).extension_start
    if not extension:
        return False
    metadata = abi.MetadataExtension.from_address(extension).metadata[0]
    metadata.api_version.major_version, metadata.api_version.minor_version = version
    metadata.traits, metadata.state_type_id.type_id = traits, state
    return True
