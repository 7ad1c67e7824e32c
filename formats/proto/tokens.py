"""A tokenizer for the text of attributes such as sharding, metadata and origin."""

from __future__ import annotations

import re
from typing import Any

from ...hlo.errors import InputError
from ..text.lexer import Lexer

_TOKEN = re.compile(
    r'/\*.*?\*/|"(?:[^"\\]|\\.)*"|[A-Za-z_][\w.\-/]*|-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|-?inf|<=|[^\s]', re.DOTALL
)


class Tokens:
    """Tokens of an attribute's text, read one by one. Raises InputError with the attribute's name at a wrong token."""

    def __init__(self, text: str, what: str):
        self.what, self.text, self.at = what, text, 0
        found = [m for m in _TOKEN.finditer(text) if not m[0].startswith("/*")]
        self.tokens, self.spans = [m[0] for m in found], [m.span() for m in found]

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def eat(self, token: str) -> bool:
        if self.peek() == token:
            self.at += 1
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.eat(token):
            self.fail(f"expected {token!r}, found {self.peek()!r}")

    def fail(self, why: str) -> Any:
        raise InputError(f"{self.what} cannot be written to a proto: {why}", remedy=f"it reads {self.text[:80]}")

    def integer(self) -> int:
        token = self.next()
        if not re.fullmatch(r"-?\d{1,19}", token):
            self.fail(f"expected an integer, found {token!r}")
        return int(token)

    def real(self) -> float:
        token = self.next()
        try:
            return float(token)
        except ValueError:
            return self.fail(f"expected a number, found {token!r}")

    def string(self) -> str:
        token = self.next()
        if not token.startswith('"'):
            return token
        return Lexer("").unescape(token[1:-1], 0)

    def integers(self, ends: str = "[]") -> list[int]:
        """Reads a list such as `[1,2]`. ends: the opening and the closing bracket."""
        self.expect(ends[0])
        out: list[int] = []
        while not self.eat(ends[1]):
            out.append(self.integer())
            self.eat(",")
        return out

    def dictionary(self) -> str:
        """Reads a `{…}` without quotes and returns its text."""
        start, depth = self.spans[self.at][0], 0
        while self.at < len(self.tokens):
            token = self.next()
            depth += (token in "{[(") - (token in "}])") if len(token) == 1 else 0
            if depth == 0:
                return self.text[start : self.spans[self.at - 1][1]]
        return self.fail("a dictionary without an end")

    def end(self) -> None:
        if self.at < len(self.tokens):
            self.fail(f"{self.peek()!r} follows its end")
