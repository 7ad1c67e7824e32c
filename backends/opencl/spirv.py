"""The framing of SPIR-V (2.3 of its specification), checked first: some drivers never return from damaged code."""

from __future__ import annotations

import struct

MAGIC = (0x07230203).to_bytes(4, "little")
HEADER_WORDS = 5  # magic, version, generator, bound of ids, schema


def is_framed(code: bytes) -> bool:
    """Whether the bytes are a header and whole instructions, each with the number of words that its first word says."""
    words, rest = divmod(len(code), 4)
    if rest or words < HEADER_WORDS or not code.startswith(MAGIC):
        return False
    at = HEADER_WORDS
    while at < words:
        (first,) = struct.unpack_from("<I", code, 4 * at)
        count = first >> 16
        if count == 0:
            return False
        at += count
    return at == words
