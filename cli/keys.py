"""Files of keys that programs are signed with (--sign, --verify)."""

from __future__ import annotations

from pathlib import Path

from ..hlo.errors import InputError

SHORTEST, LONGEST = 16, 4096
"""Bytes of a key. A shorter one is soon guessed; a longer file is no key."""


def read_key(name: str | None) -> bytes | None:
    """The bytes of a key's file; None without a name. Raises InputError."""
    if name is None:
        return None
    try:
        with open(Path(name), "rb") as file:
            key = file.read(LONGEST + 1)
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}", remedy="give the file of a key") from None
    if not SHORTEST <= len(key) <= LONGEST:
        amount = f"{len(key)} bytes" if len(key) <= LONGEST else f"more than {LONGEST} bytes"
        raise InputError(
            f"{name}: a key of {amount}; it must have {SHORTEST} to {LONGEST}",
            remedy=f"make one: head -c 32 /dev/urandom > {name}",
        )
    return key
