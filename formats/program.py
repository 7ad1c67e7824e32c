"""Loads a MODULE argument: a file (HLO, StableHLO, a proto), a folder with one and `io.npz`, or `-` for stdin."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..hlo.dtypes import FROM_NUMPY
from ..hlo.errors import InputError
from ..hlo.ir import Module
from ..hlo.shapes import Shape
from ..hlo.verify.verifier import verify
from .files import FILES, Loaded, load_module
from .text.names import named_for_xla
from .text.printer import print_module
from .whole_files import write_whole


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


def load_io(
    path: Path,
    parameters: Sequence[Shape],
    results: Sequence[Shape] | None,
) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...] | None]:
    """Read `in0…` and, if `results` is given and the file has them, `out0…` from an .npz.

    Types that .npz cannot name are stored as raw unsigned views. Raises InputError for a missing or wrong array.
    """
    with _open(path) as archive:
        inputs = tuple(_leaf(archive, f"in{i}", s, path) for i, s in enumerate(parameters))
        extra = f"in{len(parameters)}"
        if extra in archive:
            raise InputError(
                f"{path}: holds {extra}, but the module has {len(parameters)} parameter leaves",
                remedy="is this the io.npz of another module?",
            )
        if results is None or (results and "out0" not in archive):  # a result without leaves has no out0
            return inputs, None
        return inputs, tuple(_leaf(archive, f"out{i}", s, path) for i, s in enumerate(results))


def _open(path: Path) -> np.lib.npyio.NpzFile:
    with _readable(path):
        archive = np.load(path, allow_pickle=False)
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise InputError(f"{path}: one array, not an .npz file", remedy="write it with numpy.savez(file, in0=array)")
    return archive


def _leaf(archive: np.lib.npyio.NpzFile, key: str, shape: Shape, path: Path) -> np.ndarray:
    if key not in archive:
        raise InputError(
            f"{path}: {key} is missing; the module wants {shape.without_layout()}", remedy=f"add {key} with numpy.savez"
        )
    with _readable(path, f"{key}: "):
        value = archive[key]
    if not isinstance(value, np.ndarray):
        raise InputError(f"{path}: {key}: not an array", remedy="write it with numpy.savez")
    return as_leaf(value, shape, f"{path}: {key}")


@contextmanager
def _readable(path: Path, member: str = "") -> Iterator[None]:
    """Turns every error of reading an .npz file, or one member of it, into an InputError with the path.

    On damaged bytes numpy, zipfile, zlib and Python's tokenizer raise errors of many unrelated classes.
    """
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{path}: no such file", remedy="give an .npz with in0, in1, …") from None
    except MemoryError:
        raise InputError(f"{path}: {member}too large for the memory", remedy="is it damaged?") from None
    except Exception as error:
        why = str(error).split("\n", 1)[0] or type(error).__name__
        raise InputError(
            f"{path}: {member}not a readable .npz file: {why}", remedy="write it with numpy.savez"
        ) from None


def as_leaf(value: np.ndarray, shape: Shape, what: str) -> np.ndarray:
    """`value`, checked against the dtype and dimensions of `shape`; nothing is converted. Raises InputError.

    A raw unsigned view of a type that .npz cannot name is viewed as that type. what: names the value in errors.
    """
    want = shape.dtype.numpy
    if (
        value.dtype != want
        and value.dtype.kind in "uV"
        and want not in _PLAIN
        and value.dtype.itemsize == want.itemsize
    ):
        value = value.view(want)
        if value.shape == (1,) and shape.dims == ():
            value = value.reshape(())
    if value.dtype != want:
        given = FROM_NUMPY.get(value.dtype)
        raise InputError(
            f"{what}: dtype {given.value if given else value.dtype} does not match {shape.without_layout()}",
            remedy=f"convert it to {want.name}",
        )
    if not shape.holds(value.shape):
        raise InputError(
            f"{what}: shape {list(value.shape)} does not match {shape.without_layout()}",
            remedy=_shape_remedy(value, shape),
        )
    return value


def _shape_remedy(value: np.ndarray, shape: Shape) -> str:
    if shape.is_dynamic:
        return f"give an array that fits {shape.without_layout()}"
    verb = "reshape it to" if value.size == shape.size else "give an array of shape"
    return f"{verb} {list(shape.dims)}"


_PLAIN = frozenset(np.dtype(t) for t in ["?", "b", "B", "h", "H", "i", "I", "q", "Q", "e", "f", "d", "F", "D"])


def save_io(path: Path, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
    """Write `in0…` and `out0…` to an .npz atomically, as `load_io` reads them."""
    leaves = {f"in{i}": raw_view(v) for i, v in enumerate(inputs)} | {
        f"out{i}": raw_view(v) for i, v in enumerate(outputs)
    }
    write_whole(path, lambda file: np.savez(file, allow_pickle=False, **leaves))


def raw_view(value: np.ndarray) -> np.ndarray:
    """The array itself, or its raw unsigned view if .npz cannot name the dtype (bf16, fp8, int4)."""
    if value.dtype in _PLAIN:
        return value
    flat = np.ascontiguousarray(value)
    view = flat.reshape(1) if flat.shape == () else flat
    return view.view(f"u{value.dtype.itemsize}")
