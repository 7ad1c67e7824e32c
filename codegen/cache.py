"""An on-disk cache of object files: keyed by everything that affects the code, checksummed, atomic, limited in size."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING, Any

from .private import is_private, make_private

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 1
"""Version of the entry format: MAGIC, the SHA-256 of the payload, the payload."""

MAGIC = b"TBOBJ%03d" % FORMAT
HEADER = len(MAGIC) + 32
SUFFIX = ".o"
LIMIT_BYTES = 512 << 20
"""Default limit of a cache: the code of some 20,000 kernels."""

STALE_SECONDS = 3600.0
"""Age in seconds from which a temporary file counts as left behind by a process that died."""


def cache_key(*parts: str) -> str:
    """The name of an entry. Distinct lists of parts get distinct names (SHA-256 over the parts with their lengths)."""
    digest = _sha256(b"format %d" % FORMAT)
    for part in parts:
        data = part.encode()
        digest.update(b"\0%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()


def _sha256(data: bytes) -> Any:
    import hashlib  # loads OpenSSL: nothing for a process that loads a program and does not run it

    return hashlib.sha256(data)


def user_cache_directory() -> Path:
    """The user's cache directory, by the conventions of the platform."""
    from pathlib import Path

    import platformdirs

    return Path(platformdirs.user_cache_dir("testbed", appauthor=False)) / "objects"


class ObjectCache:
    """A directory of object files; None for the user's cache directory. Threads and processes of a user may share it.

    It is for this user alone: what another user owns or may write, a folder or an entry, is not read (private.py).

    Reads and writes never raise: an entry that cannot be read or written counts as not cached. When the directory
    exceeds limit_bytes, the entries that were not read or written for the longest time are removed. Each process looks
    at its first write and after every limit_bytes / 8 that it wrote: several may exceed the limit by as much each.
    """

    def __init__(self, directory: Path | None = None, limit_bytes: int = LIMIT_BYTES):
        self.directory, self.limit_bytes = directory, limit_bytes
        self._lock = threading.Lock()
        self._unmeasured: int | None = None  # bytes written since the last measurement

    def path(self, key: str) -> Path:
        """The path of an entry, whether or not it exists."""
        from pathlib import Path

        return Path(self._name(key))

    def _name(self, key: str) -> str:
        if self.directory is None:
            self.directory = user_cache_directory()
        return os.path.join(self.directory, key[:2], key[2:] + SUFFIX)

    def read(self, key: str) -> bytes | None:
        """The payload of an entry; None if it is absent or damaged. A damaged entry is removed."""
        path = self._name(key)
        try:
            if not self._is_private(path):
                return None
            with open(path, "rb") as file:
                if not is_private(path, os.fstat(file.fileno())):
                    return None
                data = file.read()
        except OSError:
            return None
        payload = data[HEADER:]
        if data[:HEADER] != MAGIC + _sha256(payload).digest():
            with contextlib.suppress(OSError):
                os.unlink(path)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return payload

    def _is_private(self, path: str) -> bool:
        """Whether the folders of an entry are; raises OSError if there are none."""
        folder = os.path.dirname(path)
        return is_private(os.path.dirname(folder)) and is_private(folder)

    def write(self, key: str, payload: bytes) -> None:
        """Write a payload to a temporary file, then rename it, so that readers see the whole entry or none."""
        from uuid import uuid4

        from ..formats.whole_files import unfinished

        path = self.path(key)
        temporary = path.with_name(f"{uuid4().hex}.tmp")
        try:
            make_private(path.parent)
            if not self._is_private(str(path)):
                return
            with unfinished(temporary):
                handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(handle, "wb") as file:
                    file.write(MAGIC + _sha256(payload).digest() + payload)
                os.replace(temporary, path)
        except OSError:
            return
        self._bound(len(payload) + HEADER)

    def _bound(self, written: int) -> None:
        """Measure the directory at the first write and after every limit_bytes / 8 written, and shrink it."""
        with self._lock:
            if self._unmeasured is not None and self._unmeasured + written < self.limit_bytes // 8:
                self._unmeasured += written
            else:
                self._unmeasured = 0
                self.shrink()

    def shrink(self) -> None:
        """Remove stale temporary files, and the least recently used entries until the directory is within its limit."""
        assert self.directory is not None
        entries = sorted((e for e in map(_measure, self.directory.glob("??/*")) if e is not None), reverse=True)
        newest, total = entries[0][0] if entries else 0.0, 0
        for used, size, path in entries:
            total += size
            stale = path.suffix != SUFFIX and newest - used > STALE_SECONDS
            if stale or (total > self.limit_bytes and path.suffix == SUFFIX):
                with contextlib.suppress(OSError):
                    path.unlink()
                    total -= size


def _measure(path: Path) -> tuple[float, int, Path] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime, status.st_size, path


class MemoryCache(ObjectCache):
    """Objects that this value holds, and no disk: for several compilations of one program that share some of them."""

    def __init__(self) -> None:
        super().__init__()
        self._held: dict[str, bytes] = {}

    def read(self, key: str) -> bytes | None:
        return self._held.get(key)

    def write(self, key: str, payload: bytes) -> None:
        self._held[key] = payload


DEFAULT_CACHE = ObjectCache()
"""The cache in the user's cache directory."""
