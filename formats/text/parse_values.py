"""Readers of simple attribute values: numbers, words, lists of them, references, and uninterpreted text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ...hlo.attributes import Raw
from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Literal
from ...hlo.shapes import Shape, ShapeIndex
from .lexer import STRING, Lexer, near
from .parse_literals import parse_literal
from .parse_shapes import MAX_DEPTH, parse_shape
from .reading import Reading

_ints = re.compile(r"\{([\d,\s-]*)\}", re.ASCII)
_flat_list = re.compile(r"\{\s*(?:\d|\})")
_float = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|-?inf|nan")
_bracket = re.compile(rf"{STRING}|[][{{}}()\"']")
_CLOSING = {"{": "}", "[": "]", "(": ")"}
_raw_rest = re.compile(r"[^\s,{}()\[\]\"']*")


def integer(p: Reading, name: str) -> int:
    return p.lexer.integer(f"for '{name}'")


def boolean(p: Reading, name: str) -> bool:
    if p.lexer.eat_word("true"):
        return True
    if p.lexer.eat_word("false"):
        return False
    if p.lexer.at("0") or p.lexer.at("1"):
        return bool(p.lexer.integer(f"for '{name}'"))
    p.lexer.fail(f"expected true or false for '{name}', found {p.lexer.found()}")


def real(p: Reading, name: str) -> float:
    m = p.lexer.match(_float)
    if not m:
        p.lexer.fail(f"expected a number for '{name}', found {p.lexer.found()}")
    return float(m[0])


def string(p: Reading, name: str) -> str:
    return p.lexer.string(f"for '{name}'")


def word(p: Reading, name: str) -> str:
    return p.lexer.name(f"a word for '{name}'")


def one_of(*words: str) -> Callable[[Reading, str], str]:
    """A reader of a word from a fixed list."""
    known = frozenset(words)

    def parse(p: Reading, name: str) -> str:
        found = p.lexer.word()
        if found not in known:
            p.lexer.fail(
                f"expected one of {', '.join(words)} for '{name}', found {p.lexer.found()}", remedy=near(found, words)
            )
        return p.lexer.name(name)

    return parse


def integers(p: Reading, name: str) -> tuple[int, ...]:
    """Reads `{1,2}`."""
    lexer = p.lexer
    m = _ints.match(lexer.text, lexer.pos)
    if m:
        try:
            values = tuple(map(int, m[1].split(","))) if m[1].strip() else ()
        except ValueError:
            values = None
        if values is not None and all(-(2**63) <= v < 2**63 for v in values):
            lexer.seek(m.end())
            return values
    return braced(lexer, f"the integers of '{name}'", lambda: lexer.integer(f"in '{name}'"))


def integer_lists(p: Reading, name: str) -> tuple[Any, ...] | Raw:
    """Reads `{{0,1},{2,3}}`, `{0,1}` or `{}`; other forms (iota `[2,4]<=[8]`, meshes) are kept as text."""
    lexer = p.lexer
    if not lexer.at("{"):
        return device_list(p, name)
    if _flat_list.match(lexer.text, lexer.pos):
        return integers(p, name)
    return braced(lexer, f"the lists of '{name}'", lambda: integers(p, name))


_device_ids = re.compile(r"\s*,\s*device_ids=\((?:[^()]|\([^()]*\))*\)")


def device_list(p: Reading, name: str) -> Raw:
    """Reads `[2,4]<=[8]T(1,0)` or `mesh['a'=2] {'a'}` as text."""
    lexer, start = p.lexer, p.lexer.pos
    if not lexer.at("[") and not lexer.at("mesh") and not lexer.at("@"):
        lexer.fail(
            f"expected device groups for '{name}', found {lexer.found()}",
            remedy="for instance {{0,1},{2,3}} or [2,2]<=[4]",
        )
    end = raw_end(lexer, name)
    if ids := _device_ids.match(lexer.text, end):  # its comma does not end the attribute
        end = ids.end()
    lexer.seek(end)
    while lexer.at("{"):
        end = raw_end(lexer, name)
        lexer.seek(end)
    return Raw(lexer.text[start:end])


def booleans(p: Reading, name: str) -> tuple[bool, ...] | bool:
    """Reads `true` or `{true,false}`."""
    if not p.lexer.at("{"):
        return boolean(p, name)
    return braced(p.lexer, f"the values of '{name}'", lambda: boolean(p, name))


def words(p: Reading, name: str) -> tuple[str, ...]:
    """Reads `{highest,default}`."""
    return braced(p.lexer, f"the words of '{name}'", lambda: p.lexer.name(f"a word in '{name}'"))


def computation(p: Reading, name: str) -> Computation:
    """Reads a computation's name or an inline body."""
    lexer = p.lexer
    if lexer.at("{"):
        return p.inline_computation()
    at = lexer.pos
    return p.find_computation(lexer.name(f"a computation for '{name}'"), at)


def computations(p: Reading, name: str) -> tuple[Computation, ...] | Computation:
    """Reads `{a, b}` as a tuple, or a name without braces as one computation."""
    if not p.lexer.at("{"):
        return computation(p, name)
    return braced(p.lexer, f"the computations of '{name}'", lambda: computation(p, name))


def instruction_names(p: Reading, name: str) -> tuple[str, ...]:
    """Reads `{%a, b}`, the names of earlier instructions of the same computation."""

    def one() -> str:
        at = p.lexer.pos
        return p.find_instruction(p.lexer.name(f"an instruction in '{name}'"), at).name

    return braced(p.lexer, f"the instructions of '{name}'", one)


def shape(p: Reading, name: str) -> Shape:
    return parse_shape(p.lexer)


def shapes(p: Reading, name: str) -> tuple[Shape, ...]:
    """Reads `{f32[2]{0}, (s32[], f32[])}`."""
    return braced(p.lexer, f"the shapes of '{name}'", lambda: parse_shape(p.lexer))


def shape_index(lexer: Lexer, name: str) -> ShapeIndex:
    return braced(lexer, f"a tuple index in '{name}'", lambda: lexer.integer(f"in a tuple index of '{name}'"))


def braced(lexer: Lexer, what: str, item: Callable[[], Any], ends: str = "{}") -> tuple[Any, ...]:
    """Reads `{item, item, …}`. ends: the opening and the closing bracket."""
    lexer.expect(ends[0], f"before {what}")
    out = []
    if not lexer.at(ends[1]):
        out.append(item())
        while lexer.eat(","):
            out.append(item())
    lexer.expect(ends[1], f"after {what}")
    return tuple(out)


def literal(p: Reading, name: str) -> Any:
    """Reads a literal behind its shape. The elements of a tuple have a shape each: `(s32[] 5, f32[2]{0} {1, 2})`."""
    return _shaped_literal(p.lexer)


def _shaped_literal(lexer: Lexer, depth: int = 0) -> Literal:
    if not lexer.at("("):
        return parse_literal(lexer, parse_shape(lexer))
    if depth > MAX_DEPTH:
        lexer.fail(f"tuples nested deeper than {MAX_DEPTH}")
    elements = braced(lexer, "the elements of a literal", lambda: _shaped_literal(lexer, depth + 1), "()")
    return Literal(Shape(DType.TUPLE, elements=tuple(e.shape for e in elements)), elements)


def string_or_dict(p: Reading, name: str) -> str | Raw:
    """Reads a quoted string as str, or a `{…}` without quotes as Raw."""
    return raw(p, name) if p.lexer.at("{") else string(p, name)


def raw(p: Reading, name: str) -> Raw:
    """Reads a value as text: balanced brackets, a string, or everything up to the next ',' or blank."""
    lexer, start = p.lexer, p.lexer.pos
    end = raw_end(lexer, name)
    lexer.seek(end)
    return Raw(lexer.text[start:end])


def raw_end(lexer: Lexer, name: str) -> int:
    """The position after the value that starts here; only brackets and strings are looked at."""
    text, pos, stack = lexer.text, lexer.pos, []
    while True:
        if not stack:
            pos = _raw_rest.match(text, pos).end()  # type: ignore[union-attr]
            if pos >= len(text) or text[pos] not in "{([\"'":
                break
        m = _bracket.search(text, pos)
        if not m:
            lexer.fail(f"'{name}' opens {stack[-1] if stack else text[pos]!r} and never closes it")
        pos, token = m.end(), m[0]
        if token in _CLOSING:
            stack.append(token)
        elif token in "\"'":
            lexer.fail(f"'{name}' holds a string without an end", m.start(), "close it with the same quote")
        elif len(token) == 1 and (not stack or _CLOSING[stack.pop()] != token):
            lexer.fail(f"'{name}' has unbalanced brackets", m.start(), "each bracket needs its partner")
    if pos == lexer.pos:
        lexer.fail(f"expected a value for '{name}', found {lexer.found()}")
    return pos
