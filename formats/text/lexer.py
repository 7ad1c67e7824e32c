"""Scanner for HLO text: a position in a string, regular expressions matched there, and errors with a location.

The position is always the first character of a token: every step skips the blanks and comments after its token.
Callers on the hot path match one regular expression for a whole construct; the others read token by token.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import NoReturn

from ...hlo.errors import Location, ParseError

BLANK = r"(?>[ \t\r\n]+|/\*(?s:.*?)\*/|//[^\r\n]*)*+"
NAME = r"[A-Za-z_][A-Za-z0-9_.\-]*+"
STRING = r"""(?:"(?>[^"\\]|\\.)*+"|'(?>[^'\\]|\\.)*+')"""

_blank = re.compile(BLANK).match


def _skip(text: str, pos: int) -> int:
    """The position after the blanks and comments at `pos`."""
    return _blank(text, pos).end()  # type: ignore[union-attr]  # never None: the expression matches '' too


_name = re.compile(rf"%?({NAME}){BLANK}").match
_int = re.compile(rf"(-?\d++){BLANK}", re.ASCII).match
_string = re.compile(f"({STRING}){BLANK}").match
_newline = re.compile(r"\n")

# One token, which an error message shows as "found".
_FOUND = re.compile(rf"""{STRING}|->|<=|\.\.\.|%?{NAME}|-?[\d][\w.+\-]*|.""", re.ASCII | re.DOTALL)

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]+)|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL)


class Lexer:
    """A text and a position in it."""

    __slots__ = ("_lines", "file", "pos", "text")

    def __init__(self, text: str, file: str = "<string>"):
        self.text, self.file = text, file
        self._lines: list[int] | None = None
        self.pos = _skip(text, 1 if text.startswith("\ufeff") else 0)

    # -- looking ---------------------------------------------------------------------------------------------------
    def at(self, token: str) -> bool:
        return self.text.startswith(token, self.pos)

    @property
    def ended(self) -> bool:
        return self.pos >= len(self.text)

    def word(self) -> str:
        """The name at the position, without `%`, or ''. It is not consumed."""
        m = _name(self.text, self.pos)
        return m[1] if m else ""

    # -- stepping --------------------------------------------------------------------------------------------------
    def seek(self, pos: int) -> None:
        """Move to the first token at or after `pos`."""
        self.pos = _skip(self.text, pos)

    def eat(self, token: str) -> bool:
        """Consume a punctuation token if it is here."""
        if self.text.startswith(token, self.pos):
            self.pos = _skip(self.text, self.pos + len(token))
            return True
        return False

    def eat_word(self, word: str) -> bool:
        m = _name(self.text, self.pos)
        if m and m[1] == word and self.text[self.pos] != "%":
            self.pos = m.end()
            return True
        return False

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Consume the text that `pattern` matches here, and the blanks after it."""
        m = pattern.match(self.text, self.pos)
        if m:
            self.pos = _skip(self.text, m.end())
        return m

    def expect(self, token: str, what: str, remedy: str | None = None) -> None:
        if not self.eat(token):
            self.fail(f"expected '{token}' {what}, found {self.found()}", remedy=remedy)

    def name(self, what: str) -> str:
        """Consume a name, with or without `%`."""
        m = _name(self.text, self.pos)
        if not m:
            self.fail(f"expected {what}, found {self.found()}")
        self.pos = m.end()
        return m[1]

    def integer(self, what: str) -> int:
        m = _int(self.text, self.pos)
        if not m:
            self.fail(f"expected an integer {what}, found {self.found()}")
        value = self.number(m[1])
        self.pos = m.end()
        return value

    def number(self, digits: str) -> int:
        """The value of decimal digits. Raises ParseError if it does not fit in 64 bits."""
        if len(digits) > 20 or not -(2**63) <= (value := int(digits)) < 2**64:
            self.fail(f"integer {digits[:24]} does not fit in 64 bits")
        return value

    def string(self, what: str) -> str:
        """Consume a quoted string and return it with escapes resolved."""
        m = _string(self.text, self.pos)
        if not m:
            if self.text[self.pos : self.pos + 1] in ('"', "'"):
                self.fail(f"unterminated string {what}", remedy="close it with the same quote")
            self.fail(f"expected a quoted string {what}, found {self.found()}")
        start, self.pos = self.pos, m.end()
        return self.unescape(m[1][1:-1], start)

    def unescape(self, body: str, pos: int) -> str:
        if "\\" not in body:
            return body

        def resolve(m: re.Match[str]) -> str:
            octal, hexadecimal, short, long, char = m.groups()
            if char is not None:
                if char not in _ESCAPES and char not in "\\'\"?/{}[]()<>=,.: #%&@$!*+-;`^|~":
                    self.fail(f"unknown escape \\{char} in a string", pos, "write \\\\ for a backslash")
                return _ESCAPES.get(char, char)
            code = int(octal, 8) if octal else int(hexadecimal or short or long, 16)
            if code > 0x10FFFF:
                self.fail(f"escape {m[0]} is no character", pos)
            return chr(code)

        return _ESCAPE.sub(resolve, body)

    # -- errors ----------------------------------------------------------------------------------------------------
    def found(self) -> str:
        """The token at the position, for messages."""
        if self.ended:
            return "the end of the text"
        if self.at("/*"):
            return "a comment without an end"
        if self.text[self.pos] in "\"'" and not _string(self.text, self.pos):
            return "a string without an end"
        m = _FOUND.match(self.text, self.pos)
        token = m[0] if m else self.text[self.pos]
        return repr(token if len(token) <= 40 else token[:37] + "...")

    def location(self, pos: int | None = None) -> Location:
        """Line and column of a position, both counted from 1. None: the current position."""
        lines = self._lines
        if lines is None:
            lines = self._lines = [0, *(m.end() for m in _newline.finditer(self.text))]
        pos = self.pos if pos is None else pos
        line = bisect_right(lines, pos)
        return Location(line, pos - lines[line - 1] + 1, self.file)

    def fail(self, message: str, pos: int | None = None, remedy: str | None = None) -> NoReturn:
        """Raise a ParseError at `pos`. None: the current position."""
        location = self.location(pos)
        start = (self.pos if pos is None else pos) - location.column + 1
        end = self.text.find("\n", start)
        line = self.text[start : end if end >= 0 else None].rstrip("\r")
        raise ParseError(message, location=location, remedy=remedy, source=line)


def near(word: str, known: Iterable[str]) -> str | None:
    """A remedy that names the closest known words, or None."""
    import difflib  # only for messages

    close = difflib.get_close_matches(word, list(known), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(repr(c) for c in close)}?" if close else None
