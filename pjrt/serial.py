"""Executables as bytes, for JAX's persistent compilation cache: a header in JSON, the module, the .tbx file."""

from __future__ import annotations

import json
from typing import Any

from .. import __version__
from ..backends.host.loader import deserialize_and_load
from ..formats.proto.proto import module_from_proto
from . import api
from .compile import Compiled, donated_of, requested, slots_of
from .errors import PjrtError

MAGIC = b"TBPJRT01"

loaded = 0
"""Executables that this process has loaded from bytes."""


def to_bytes(compiled: Compiled) -> bytes:
    """Raises PjrtError for a program that calls functions of this process."""
    if compiled.calls_python:
        what = f"{compiled.name} calls a Python function of this process, which no file can hold"
        raise PjrtError(api.ErrorCode.UNIMPLEMENTED, what)
    code = compiled.executable.serialize()
    header: dict[str, Any] = {"version": __version__, "sizes": [len(compiled.proto), len(compiled.options), len(code)]}
    text = json.dumps(header).encode()
    return b"".join((MAGIC, len(text).to_bytes(8, "little"), text, compiled.proto, compiled.options, code))


def from_bytes(data: bytes, overriding: bytes) -> Compiled:
    """overriding: compile options in place of those in the data, if not empty. Raises PjrtError for other data."""
    proto, options, code = _parts(data)
    options = overriding or options
    module = module_from_proto(proto)
    global loaded
    loaded += 1
    parameters, results = slots_of(module)
    return Compiled(
        module.name,
        deserialize_and_load(code),
        parameters,
        results,
        donated_of(module),
        proto,
        options,
        requested(options).device,
    )


def _parts(data: bytes) -> tuple[bytes, bytes, bytes]:
    head = len(MAGIC) + 8
    size = int.from_bytes(data[len(MAGIC) : head], "little")
    try:
        if data[: len(MAGIC)] != MAGIC:
            raise ValueError
        header = json.loads(data[head : head + size])
        sizes = [int(n) for n in header["sizes"]]
        if header["version"] != __version__ or len(data) != head + size + sum(sizes):
            raise ValueError
    except (ValueError, KeyError, TypeError):
        what = f"these {len(data)} bytes are no executable of testbed {__version__}"
        raise PjrtError(api.ErrorCode.INVALID_ARGUMENT, what) from None
    at, found = head + size, []
    for n in sizes:
        found.append(data[at : at + n])
        at += n
    proto, options, code = found
    return proto, options, code
