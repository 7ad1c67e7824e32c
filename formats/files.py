"""Finds a file's format (HLO text, StableHLO, one of XLA's protos) by its name or first bytes, and loads its module."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..hlo.errors import InputError
from ..hlo.ir import Module
from ..hlo.records import dataclass
from .stablehlo.magic import is_bytecode
from .text.parser import parse_module

if TYPE_CHECKING:
    from .proto.proto import Snapshot

HLO, STABLEHLO, PROTO, TEXT_PROTO = "HLO text", "StableHLO", "proto", "text proto"

SUFFIXES = {
    ".hlo": HLO,
    ".txt": HLO,
    ".mlir": STABLEHLO,
    ".mlirbc": STABLEHLO,
    ".pb": PROTO,
    ".binpb": PROTO,
    ".pbtxt": TEXT_PROTO,
    ".txtpb": TEXT_PROTO,
    ".textproto": TEXT_PROTO,
    ".prototxt": TEXT_PROTO,
}
"""The end of a file's name → its format."""

FILES = "give an .hlo, .mlir, .mlirbc, .pb or .pbtxt file, a folder with module.hlo or module.stablehlo.mlir, or -"

_MLIR = re.compile(r"^\s*(?:builtin\.)?(?:module\b[^,]*\{|func\.func\b|\"builtin\.module\"|#\w+ ?=|#loc)", re.MULTILINE)
_TEXT_PROTO = re.compile(r'^\s*(?:name\s*:\s*["\']|hlo(?:_module)?\s*:?\s*[{<]|computations\s*:?\s*[{<])')


@dataclass(frozen=True)
class Loaded:
    """A module with its text, and the array leaves of arguments and result if a snapshot had them.

    plan: buffers and kernels, if the file fixes them (migration/programs.py).
    """

    module: Module
    text: str
    inputs: tuple[np.ndarray, ...] | None = None
    expected: tuple[np.ndarray, ...] | None = None
    plan: object | None = None


def format_of(data: bytes, name: str) -> str:
    """The format of `data`: bytecode by its magic number, else by the end of the name, else by the first characters."""
    if is_bytecode(data):
        return STABLEHLO
    known = _kind_of_name(name)
    if known is not None:
        return known
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return PROTO
    if "\0" in text or re.match(r"[\x01-\x08\x0b\x0c\x0e-\x1f]", text):
        return PROTO
    head = "\n".join(line for line in text[:20000].split("\n") if not line.lstrip().startswith("//"))
    if not head.lstrip().startswith("HloModule"):
        if _MLIR.search(head):
            return STABLEHLO
        if _TEXT_PROTO.match(head) or (data.startswith(b"\n") and "\x12" in text):
            return PROTO if data.startswith(b"\n") and "\x12" in text else TEXT_PROTO
    return HLO


def _kind_of_name(name: str) -> str | None:
    return next((kind for end, kind in SUFFIXES.items() if name.endswith(end)), None)


def is_named(data: bytes, name: str) -> bool:
    """Whether the format is certain: by bytecode's magic number or by the end of the name."""
    return is_bytecode(data) or _kind_of_name(name) is not None


def load_module(data: bytes, file: str) -> Loaded:
    """The module in a file's bytes. Raises ParseError or InputError with the location of the mistake."""
    return LOADERS[format_of(data, file)](data, file)


def _load_hlo(data: bytes, file: str) -> Loaded:
    text = _decode(data, file)
    return Loaded(parse_module(text, file), text)


def _load_stablehlo(data: bytes, file: str) -> Loaded:
    from .stablehlo.stablehlo import parse_stablehlo

    return _printed(parse_stablehlo(data, file, isolate=True))


def _load_proto(data: bytes, file: str) -> Loaded:
    from .proto.proto import snapshot_from_proto  # imported here: protobuf is slow to load, and protos are rare

    return _from_snapshot(snapshot_from_proto(data, file))


def _load_text_proto(data: bytes, file: str) -> Loaded:
    from .proto.proto import snapshot_from_text_proto

    return _from_snapshot(snapshot_from_text_proto(_decode(data, file), file))


def _from_snapshot(snapshot: Snapshot) -> Loaded:
    from .proto.proto import leaves

    loaded = _printed(snapshot.module)
    inputs = leaves(snapshot.arguments) if snapshot.arguments else None
    expected = leaves([snapshot.result]) if snapshot.result is not None and inputs is not None else None
    return Loaded(loaded.module, loaded.text, inputs, expected)


def _printed(module: Module) -> Loaded:
    from .text.printer import print_module

    return Loaded(module, print_module(module))


def _decode(data: bytes, file: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{file}: not UTF-8 text at byte {error.start}",
            remedy="give HLO text; the name of a binary proto ends with .pb",
        ) from None


LOADERS: dict[str, Callable[[bytes, str], Loaded]] = {
    HLO: _load_hlo,
    STABLEHLO: _load_stablehlo,
    PROTO: _load_proto,
    TEXT_PROTO: _load_text_proto,
}
