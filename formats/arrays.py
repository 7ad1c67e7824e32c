"""Arrays of a program in .npz files: in0, in1, …, out0, out1, …; and the check that an array fits a shape."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ..hlo.dtypes import FROM_NUMPY
from ..hlo.errors import InputError
from ..hlo.shapes import Shape
from .whole_files import write_whole


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
        archive = np.load(path, allow_pickle=False, mmap_mode="r")  # a single array, which is refused, is not read
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise InputError(f"{path}: one array, not an .npz file", remedy="write it with numpy.savez(file, in0=array)")
    return archive


def _leaf(archive: np.lib.npyio.NpzFile, key: str, shape: Shape, path: Path) -> np.ndarray:
    if key not in archive:
        raise InputError(
            f"{path}: {key} is missing; the module wants {shape.without_layout()}", remedy=f"add {key} with numpy.savez"
        )
    as_leaf(_stand_in(archive, key, path), shape, f"{path}: {key}")
    return as_leaf(_array(archive, key, path), shape, f"{path}: {key}")


def _stand_in(archive: np.lib.npyio.NpzFile, key: str, path: Path) -> np.ndarray:
    """An array of the type and dimensions that a member's header says, in the memory of one element: a small file may
    hold what unpacks to more than there is memory.
    """
    with _readable(path, f"{key}: "):
        assert archive.zip is not None
        names = archive.zip.namelist()
        with archive.zip.open(f"{key}.npy" if f"{key}.npy" in names else key) as member:
            try:
                version = np.lib.format.read_magic(member)
            except ValueError:
                raise ValueError("not an array") from None
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            dims, _, dtype = read(member)
        return np.broadcast_to(np.zeros((), dtype), dims)


def _array(archive: np.lib.npyio.NpzFile, key: str, path: Path) -> np.ndarray:
    with _readable(path, f"{key}: "):
        value = archive[key]
    if not isinstance(value, np.ndarray):
        raise InputError(f"{path}: {key}: not an array", remedy="write it with numpy.savez")
    return value


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


_FED = re.compile(r"(?:device(\d+)_)?value(\d+)(?:_(\d+))?")

Feed = list[list[np.ndarray]]
"""The values of an infeed in their order, each as its leaves."""


def load_infeed(path: Path, forms: Sequence[Sequence[Shape]], devices: int) -> list[Feed]:
    """The values for each device in an .npz: `value0`, `value1`, …, `value0_1` for a further leaf (`value0_0` or
    `value0` is the first), and `device1_value0` for one device only.

    forms: the leaves of the values that a module reads. Raises InputError for a value that is none of them.
    """
    with _open(path) as archive:
        _feeds(path, archive.files, lambda key: _stand_in(archive, key, path), forms, devices)
        return _feeds(path, archive.files, lambda key: _array(archive, key, path), forms, devices)


def _feeds(
    path: Path, keys: Sequence[str], read: Callable[[str], np.ndarray], forms: Sequence[Sequence[Shape]], devices: int
) -> list[Feed]:
    found: dict[tuple[int, int], dict[int, np.ndarray]] = {}
    for key in keys:
        match = _FED.fullmatch(key)
        if match is None or int(match[1] or 0) >= devices:
            raise InputError(f"{path}: {key} is no value of an infeed", remedy="name them value0, value1, …")
        array = read(key)
        for device in range(devices) if match[1] is None else [int(match[1])]:
            found.setdefault((device, int(match[2])), {})[int(match[3] or 0)] = array
    feeds: list[Feed] = [[] for _ in range(devices)]
    for (device, number), leaves in sorted(found.items()):
        if number != len(feeds[device]) or sorted(leaves) != list(range(len(leaves))):
            raise InputError(f"{path}: value{len(feeds[device])} is missing, or a leaf of it", remedy="count from 0")
        value = [leaves[n] for n in range(len(leaves))]
        feeds[device].append(_fed(value, forms, f"{path}: value{number}"))
    return feeds


def _fed(value: list[np.ndarray], forms: Sequence[Sequence[Shape]], what: str) -> list[np.ndarray]:
    errors = []
    for form in forms:
        if len(form) != len(value):
            errors.append(InputError(f"{what}: {len(value)} leaves, where the module reads {len(form)}"))
            continue
        try:
            return [as_leaf(leaf, shape, what) for leaf, shape in zip(value, form)]
        except InputError as error:
            errors.append(error)
    raise errors[0] if errors else InputError(f"{what}: the module reads no infeed", remedy="leave out --infeed")


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
