"""Reads a value as HLO text writes a constant's, with its shape or without: `f32[4] {1,2,3,4}`, `{1,2}`, `3`."""

from __future__ import annotations

import re

from ...hlo.errors import ParseError
from ...hlo.ir import Literal
from ...hlo.shapes import Shape, shape_to_text
from .lexer import Lexer
from .parse_literals import parse_literal
from .parse_shapes import parse_layout, parse_shape

_array = re.compile(r"[a-z][a-z0-9]*\s*\[[^\]]*\]")
_layout = re.compile(r"\{[0-9,\s]*\}(?=\s*[^\s])")
"""Braces after an array's shape are its layout only if a value follows them; else they are the value."""


def parse_value(text: str, shape: Shape, file: str = "<value>") -> Literal:
    """The literal in `text` for a parameter of `shape`. A shape in the text must fit; its layout is ignored.

    Raises ParseError with the place in the text.
    """
    lexer = Lexer(text, file)
    start, given = lexer.pos, _given_shape(lexer)
    if given is not None:
        if not _fits(given, shape):
            mine, theirs = (shape_to_text(s, layouts=False) for s in (given, shape))
            lexer.fail(f"{mine} does not match {theirs}", start, f"give a value of {theirs}")
        shape = given
    value = parse_literal(lexer, shape)
    if not lexer.ended:
        lexer.fail(f"expected the end of the value, found {lexer.found()}", remedy="give one value")
    if any(leaf.is_elided for leaf in array_leaves(value)):
        lexer.fail("the value is elided as {...}", start, "write its elements")
    return value


def _given_shape(lexer: Lexer) -> Shape | None:
    """Consume the shape before a value, if there is one."""
    if (m := _array.match(lexer.text, lexer.pos)) is not None:
        inner = Lexer(lexer.text[: m.end()], lexer.file)
        shape = parse_shape(inner)
        lexer.seek(m.end())
        if _layout.match(lexer.text, lexer.pos):
            parse_layout(lexer, shape.rank)
        return shape
    if lexer.at("("):
        start = lexer.pos
        try:
            shape = parse_shape(lexer)
        except ParseError:  # the elements of a tuple's value
            lexer.seek(start)
            return None
        if lexer.at("("):
            return shape
        lexer.seek(start)
    return None


def _fits(given: Shape, wanted: Shape) -> bool:
    if wanted.is_tuple or given.is_tuple:
        pairs = zip(given.elements, wanted.elements)
        return (
            given.is_tuple
            and wanted.is_tuple
            and len(given.elements) == len(wanted.elements)
            and all(_fits(g, w) for g, w in pairs)
        )
    return given.dtype is wanted.dtype and wanted.holds(given.dims)


def array_leaves(literal: Literal) -> list[Literal]:
    """The array literals in a literal, with tuples flattened in order; a token has none."""
    if isinstance(literal.value, tuple):
        return [leaf for element in literal.value for leaf in array_leaves(element)]
    return [literal] if literal.shape.is_array else []
