"""Atomic writing of files: a file is written under a temporary name in the same folder, then renamed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

from ..hlo.errors import InputError

T = TypeVar("T")


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Let `write` fill the file at `path`, atomically.

    A device or pipe is written to, never replaced; a link stays a link. Raises InputError if the file cannot be
    written; an existing file is then unchanged.
    """
    try:
        target = path.resolve() if path.is_symlink() else path
        if target.exists() and not target.is_file():
            with open(target, "wb") as file:
                write(file)
            return
        _replace(target, write)
    except OSError as error:
        raise InputError(f"{path}: cannot write: {error.strerror or error}", remedy="give a writable path") from None


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 text file with `write_whole`. Bytes of file names that are no text appear as escapes."""
    write_whole(path, lambda file: file.write(text.encode("utf-8", "backslashreplace")))


def _replace(target: Path, write: Callable[[BinaryIO], object]) -> None:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".tmp")
    with unfinished(Path(name)):
        with os.fdopen(handle, "wb") as file:
            write(file)
        os.chmod(name, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        os.replace(name, target)


def write_folder(
    target: Path, fill: Callable[[Path], T], replaces: Callable[[Path], bool] = lambda _: False, mode: int = 0o777
) -> T:
    """Let `fill` write files into a folder, which appears complete or not at all. Returns what `fill` returns.

    replaces: whether a folder that is there and not empty may be replaced, as a whole; a link stays a link. mode: of
    the folder, less the umask. Raises InputError if something else is there, or if it cannot be written; what was there
    is then unchanged.
    """
    try:
        target = target.resolve() if target.is_symlink() else target
        former = target.exists() and not (target.is_dir() and not any(target.iterdir()))
        if former and not (target.is_dir() and replaces(target)):
            raise InputError(f"{target}: exists and is not an empty folder", remedy="give a new folder")
        target.parent.mkdir(parents=True, exist_ok=True)
        work = _beside(target)
    except OSError as error:
        raise InputError(f"{target}: cannot write: {error.strerror}", remedy="give a writable folder") from None
    with unfinished(work):
        result = fill(work)
        work.chmod(mode & ~_umask())
        try:
            if former:
                _exchange(target, work)
            else:
                if target.exists():
                    target.rmdir()
                work.rename(target)
        except OSError as error:  # filled or made by another process meanwhile, or the current folder
            raise InputError(f"{target}: cannot write: {error.strerror}", remedy="give a new folder") from None
    return result


def _beside(target: Path) -> Path:
    """A new folder with a name of its own beside another one."""
    return Path(tempfile.mkdtemp(prefix=f".{target.name[:100]}.", dir=target.parent))


def _exchange(target: Path, work: Path) -> None:
    """Put `work` in the place of a folder, which is removed; it is put back if that fails."""
    aside = _beside(target)
    with unfinished(aside):
        former = target.rename(aside / "former")
        try:
            work.rename(target)
        except BaseException:  # Ctrl-C too
            former.rename(target)
            raise


_UNFINISHED: set[Path] = set()


@contextmanager
def unfinished(path: Path) -> Iterator[None]:
    """Remove a temporary file or folder at the end, also after Ctrl-C, so that nothing partial is left behind."""
    _UNFINISHED.add(path)
    try:
        yield
    finally:
        _remove(path)
        _UNFINISHED.discard(path)


def remove_unfinished() -> None:
    """Remove what is being written now. For a process that is about to end without unwinding."""
    for path in [*_UNFINISHED]:
        _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
