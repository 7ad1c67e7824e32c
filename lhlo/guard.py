"""Checks on external input before it reaches MLIR or its Python bindings, because some inputs abort the process.

Known cases in LLVM 22: deep nesting overflows the parser's stack; reading a dense attribute of complex type or an array
of an odd type throws through a noexcept function; an array of index and damaged bytecode trip assertions, so that a
child process reads files of bytecode (parse.py), and so does an integer of more than 64 bits; names that are no UTF-8
throw. Lone surrogates cannot be encoded for MLIR at all.
"""

from __future__ import annotations

import hashlib
import re

from ..hlo.errors import Location, ParseError
from .memrefs import DTYPE

MAX_NESTING = 200
"""The deepest nesting of brackets that is accepted in text. Generated LHLO stays below 30."""

_QUIET = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*')
_ARRAY = re.compile(r"\barray\s*<\s*([^\s:>]*)")
_TOKENS = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|[(){}<>\[\]]|->')
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_ELEMENTS = re.compile(r"\b(?:tensor|vector)<([^<>]*)(.?)")
_INTEGER = re.compile(r"-?\d+ : ([su]?i(\d+))")
_OPEN, _CLOSE = frozenset("([{<"), frozenset(")]}>")


def check_text(text: str, file: str) -> None:
    """Raise ParseError for text that would crash MLIR's parser."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ParseError("the text is not valid Unicode", location=locate(text, error.start, file)) from None
    if "\0" in text:
        raise ParseError("the text holds a NUL character", location=locate(text, text.index("\0"), file))
    _check_strings(text, file)
    _check_arrays(text, file)
    depth = 0
    for token in _TOKENS.finditer(text):
        if token[0] in _OPEN:
            depth += 1
            if depth > MAX_NESTING:
                raise ParseError(f"brackets nest deeper than {MAX_NESTING}", location=locate(text, token.start(), file))
        elif token[0] in _CLOSE:
            depth = max(depth - 1, 0)


_ESCAPE = re.compile(r"\\([0-9A-Fa-f]{2})")


def _check_strings(text: str, file: str) -> None:
    """Refuse escapes that are no UTF-8: the bindings throw at them. Only a value, after =, may hold lone surrogates."""
    for token in _STRING.finditer(text):
        if "\\" not in token[0]:
            continue
        data = _ESCAPE.sub(lambda m: chr(int(m[1], 16)), token[0].encode().decode("latin-1")).encode("latin-1")
        is_value = text[max(token.start() - 200, 0) : token.start()].rstrip().endswith("=")
        try:
            data.decode("utf-8", "surrogatepass" if is_value else "strict")
        except UnicodeDecodeError:
            raise ParseError("a string is not valid UTF-8", location=locate(text, token.start(), file)) from None


WIDTHS = frozenset({"i1", "i8", "i16", "i32", "i64", "f32", "f64"})
"""The elements of arrays that the bindings know."""


def _check_arrays(text: str, file: str) -> None:
    for match in _ARRAY.finditer(_QUIET.sub(lambda m: " " * len(m[0]), text)):
        if match[1] not in WIDTHS:
            raise ParseError(
                f"array<{match[1]}…> has no place in LHLO",
                location=locate(text, match.start(), file),
                remedy="write array<i64: …>",
            )


MAGIC = b"LHLO\x01"
"""The first bytes of sealed bytecode. The last byte is the header's version; the SHA-256 of the payload follows."""


def seal(payload: bytes) -> bytes:
    """Put the header (MAGIC, SHA-256) in front of bytecode."""
    return MAGIC + hashlib.sha256(payload).digest() + payload


def unseal(data: bytes, file: str) -> bytes:
    """The bytecode after the header. Raises ParseError for anything that `seal` did not write."""
    if not data.startswith(MAGIC):
        raise ParseError(
            "not LHLO bytecode",
            location=Location(1, 1, file),
            remedy="write it with to_bytecode; text goes through parse_text",
        )
    payload = data[len(MAGIC) + 32 :]
    if hashlib.sha256(payload).digest() != data[len(MAGIC) : len(MAGIC) + 32]:
        raise ParseError(
            "the bytecode is damaged: its checksum differs", location=Location(1, 1, file), remedy="write it again"
        )
    return payload


def check_parsed(text: str, file: str) -> None:
    """Refuse a parsed module with attributes that crash the bindings. text: the module's canonical text."""
    _check_arrays(text, file)
    plain = _STRING.sub('""', text)
    for match in _ELEMENTS.finditer(plain):
        element = match[1].rpartition("x")[2] if match[1][:1].isdigit() or "?" in match[1] else match[1]
        if match[2] == "<" or element not in DTYPE:
            raise ParseError(
                f"elements of type {match[0]}… have no place in LHLO",
                location=Location(1, 1, file),
                remedy="complex constants are written as tensors of their components (docs/lhlo.md)",
            )
    for match in _INTEGER.finditer(plain):
        if int(match[2]) > 64:
            raise ParseError(
                f"an integer of type {match[1]} has no place in LHLO",
                location=Location(1, 1, file),
                remedy="write it as i64",
            )


def locate(text: str, position: int, file: str) -> Location:
    """Line and column (from 1) of a character position in a text."""
    return Location(text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position), file)
