"""Loads a MODULE argument: a file (HLO, StableHLO, a proto), a folder with one and `io.npz`, or `-` for stdin."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..hlo.errors import InputError
from ..hlo.ir import Module
from ..hlo.records import dataclass, replace
from ..hlo.shapes import Shape
from ..hlo.verify.verifier import verify
from .arrays import as_leaf as as_leaf
from .arrays import load_io as load_io
from .arrays import raw_view as raw_view
from .arrays import save_io as save_io
from .files import FILES, Loaded, load_module
from .text.names import named_for_xla
from .text.printer import print_module


@dataclass(frozen=True)
class Program:
    """A module with the inputs and expected results that came with it (None if none did), as array leaves in order.

    plan: buffers and kernels, if the file fixes them (migration/programs.py).
    """

    name: str
    text: str
    module: Module
    inputs: tuple[np.ndarray, ...] | None = None
    expected: tuple[np.ndarray, ...] | None = None
    plan: object | None = None

    @property
    def text_for_xla(self) -> str:
        """The text as it was given; as this package prints it if a name in it is none for XLA's parser (s1, f32)."""
        return self.text if named_for_xla(self.module) else print_module(self.module)


def load_program(spec: str, load: Callable[[bytes, str], Loaded] = load_module) -> Program:
    """Read a MODULE. Raises InputError if it cannot be read, ParseError if its text is malformed, and
    VerificationError if it breaks a rule of HLO. load: reads the module in a file's bytes, given the file's name.

    Inputs and expected results come from the snapshot, or from the io.npz of a folder.
    """
    if spec == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed", remedy="give a file, or write the module into a pipe")
        stdin = getattr(sys.stdin, "buffer", None)
        data = stdin.read() if stdin is not None else sys.stdin.read().encode()
        return _program("stdin", load(data, "<stdin>"))
    path = Path(spec)
    source = source_file(path)
    program = _program(path.name if path.is_dir() else path.stem, load(read_bytes(source), str(source)))
    if not path.is_dir() or not (path / "io.npz").exists():
        return program
    module = program.module
    inputs, expected = load_io(path / "io.npz", parameter_leaves(module), result_leaves(module))
    return replace(program, inputs=inputs, expected=expected)


def source_file(path: Path) -> Path:
    """The file itself, or the module's file in a folder."""
    if not path.is_dir():
        return path
    return next((p for p in map(path.joinpath, IN_FOLDER) if p.exists()), path / IN_FOLDER[0])


IN_FOLDER = ("module.hlo", "module.stablehlo.mlir", "module.pb", "module.lhlo.mlir")
"""Names that a module's file in a folder can have; the first that exists is taken."""


def _program(name: str, loaded: Loaded) -> Program:
    module, inputs, expected = loaded.module, loaded.inputs, loaded.expected
    verify(module)
    for values, shapes, what in (
        (inputs, parameter_leaves(module), "argument"),
        (expected, result_leaves(module), "result"),
    ):
        if values is None:
            continue
        if len(values) != len(shapes):
            raise InputError(f"{name}: {len(values)} {what} leaves for {len(shapes)}", remedy="is the snapshot whole?")
        for i, (value, shape) in enumerate(zip(values, shapes)):
            as_leaf(value, shape, f"{name}: {what} {i}")
    return Program(name, loaded.text, module, inputs, expected, loaded.plan)


def read_bytes(path: Path) -> bytes:
    """A file's content. Raises InputError with the path, whatever fails."""
    try:
        if stat.S_ISCHR(path.stat().st_mode) and path != Path(os.devnull):
            raise InputError(f"{path}: a device, not a file", remedy=FILES)
        return path.read_bytes()
    except FileNotFoundError:
        near = "a folder must hold module.hlo or module.stablehlo.mlir" if path.name == IN_FOLDER[0] else FILES
        raise InputError(f"{path}: no such file", remedy=near) from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", remedy="give a readable file") from None


def read_text(path: Path) -> str:
    """A text file's content. Raises InputError with the path, whatever fails."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text at byte {error.start}", remedy="give a text file") from None


def parameter_leaves(module: Module) -> tuple[Shape, ...]:
    """Shapes of the array leaves of all entry parameters, flattened in order."""
    return tuple(leaf for shape in module.parameter_shapes for _, leaf in shape.leaves() if leaf.is_array)


def result_leaves(module: Module) -> tuple[Shape, ...]:
    """Shapes of the array leaves of the entry's result, flattened in order."""
    return tuple(leaf for _, leaf in module.result_shape.leaves() if leaf.is_array)
