"""Folders and files that hold code to be run: made for this user alone, and read only if nobody else could write them.

Who may write into a cache may run code as its owner. The folders above are the user's to choose: another user who may
rename a folder there can only put one of his own in its place, which is not read.
"""

from __future__ import annotations

import os
import stat
import warnings

OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class UntrustedCache(UserWarning):
    """A cache is there that is not read, as others may have written it."""


def make_private(folder: str | os.PathLike[str]) -> None:
    """Make a folder and what is missing above it, for this user alone. Raises OSError."""
    path = os.path.abspath(folder)
    missing = []
    while not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path)
    for new in reversed(missing):
        try:
            os.mkdir(new, 0o700)
        except FileExistsError:  # another process of this user was faster
            if not os.path.isdir(new):
                raise


def why_untrusted(status: os.stat_result) -> str:
    """Why what has this status is not to be trusted; '' if it is this user's, and nobody else may write it."""
    if not hasattr(os, "geteuid"):
        return ""
    if status.st_uid != os.geteuid():
        return f"belongs to user {status.st_uid}, not to {os.geteuid()}"
    if status.st_mode & OTHERS_WRITE:
        return f"may be written by others (mode {stat.S_IMODE(status.st_mode):04o})"
    return ""


def is_private(path: str | os.PathLike[str], status: os.stat_result | None = None) -> bool:
    """Whether a folder or file of a cache may be read; if not, a warning says why. status: of an open file."""
    why = why_untrusted(os.stat(path) if status is None else status)
    if why:
        remedy = "remove it, or set XDG_CACHE_HOME to a folder of your own"
        warnings.warn(f"the cache {os.fspath(path)} is not read: it {why} ({remedy})", UntrustedCache, stacklevel=2)
    return not why
