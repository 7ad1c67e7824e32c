"""Atomic writing of files: a file is written under a temporary name in the same folder, then renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from ..hlo.errors import InputError


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
    """Write a UTF-8 text file with `write_whole`."""
    write_whole(path, lambda file: file.write(text.encode("utf-8")))


def _replace(target: Path, write: Callable[[BinaryIO], object]) -> None:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:100]}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
        os.chmod(name, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        os.replace(name, target)
    finally:  # also after Ctrl-C: no partial file is left behind
        Path(name).unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
