"""Reads shapes: `f32[2,<=3]{1,0:T(8,128)S(1)}`, `(f32[], token[])`, `b(f32[4])`."""

from __future__ import annotations

import re

from ...hlo.dtypes import BY_NAME, DType
from ...hlo.shapes import PROPERTY_ORDER, UNBOUNDED, Layout, Shape
from .lexer import Lexer, near

ARRAY = r"[a-z][a-z0-9]*\[[0-9,]*\](?:\{[0-9,]*\})?"
MAX_DEPTH = 64
"""Limit on the nesting of tuples, literals and computations; deeper text is refused."""

_plain = re.compile(r"([a-z][a-z0-9]*)\[([0-9,]*)\](?:\{([0-9,]*)\})?(?![{:])")
_dtype = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?=\s*\[)")
_dim = re.compile(r"(<=)?(\?|\d+)")
_order = re.compile(r"\d+")
_tile_dim = re.compile(r"-?\d+|\*")
_property = re.compile(r"SC|[DTLESM#*]")
_value = re.compile(r"\([^()]*\)")
_layout_follows = re.compile(r"\{\s*(?:\d|:|\})")

_cache: dict[str, Shape] = {}


def cached_shape(lexer: Lexer, text: str) -> Shape | None:
    """The shape of simple array text (text that ARRAY matches), or None if it needs the full parser and its errors."""
    shape = _cache.get(text)
    if shape is None:
        shape = _simple(text)
        if shape is not None:
            if len(_cache) > 2_000:
                _cache.clear()
            _cache[text] = shape
    return shape


def _simple(text: str) -> Shape | None:
    m = _plain.fullmatch(text)
    if not m or (dtype := BY_NAME.get(m[1])) is None:
        return None
    try:
        dims = tuple(map(int, m[2].split(","))) if m[2] else ()
        order = None if m[3] is None else tuple(map(int, m[3].split(","))) if m[3] else ()
    except ValueError:
        return None
    if (
        (dims and not dtype.is_array)
        or any(d >= 2**63 for d in dims)
        or (order is not None and sorted(order) != list(range(len(dims))))
    ):
        return None
    shape = Shape(dtype, dims, Layout(order) if order else None)
    return shape if shape.is_addressable else None


def starts_shape(lexer: Lexer) -> bool:
    """Whether a shape starts at the position: a tuple, a buffer or a primitive type."""
    if lexer.at("("):
        return True
    word = lexer.word()
    return (
        word in BY_NAME
        or (word == "b" and lexer.text[lexer.pos + 1 : lexer.pos + 2] == "(")
        or (bool(word) and _dtype.match(lexer.text, lexer.pos) is not None)
    )


def parse_shape(lexer: Lexer, depth: int = 0) -> Shape:
    """Consume one shape."""
    m = _plain.match(lexer.text, lexer.pos)
    if m:
        shape = cached_shape(lexer, m[0])
        if shape is not None:
            lexer.seek(m.end())
            return shape
    if depth > MAX_DEPTH:
        lexer.fail(f"tuples nested deeper than {MAX_DEPTH}")
    if lexer.at("("):
        return _tuple(lexer, depth)
    if lexer.word() == "b" and lexer.text[lexer.pos + 1 : lexer.pos + 2] == "(":
        lexer.eat("b(")
        inner = parse_shape(lexer, depth + 1)
        lexer.expect(")", "at the end of a buffer shape")
        return Shape(inner.dtype, inner.dims, inner.layout, inner.dynamic, inner.elements, "b")
    return _array(lexer)


def _tuple(lexer: Lexer, depth: int) -> Shape:
    lexer.eat("(")
    elements = []
    if not lexer.at(")"):
        elements.append(parse_shape(lexer, depth + 1))
        while lexer.eat(","):
            elements.append(parse_shape(lexer, depth + 1))
    lexer.expect(")", "at the end of a tuple shape")
    return Shape(DType.TUPLE, elements=tuple(elements))


def _array(lexer: Lexer) -> Shape:
    start, word = lexer.pos, lexer.word()
    dtype = BY_NAME.get(word)
    if dtype is None:
        if word and _dtype.match(lexer.text, lexer.pos):
            lexer.fail(f"unknown primitive type '{word}'", remedy=near(word, BY_NAME))
        lexer.fail(f"expected a shape, found {lexer.found()}", remedy="a shape reads like f32[2,3]{1,0}")
    lexer.name("a primitive type")
    lexer.expect("[", f"after the primitive type '{word}'", "write f32[] for a scalar")
    dims, dynamic = [], []
    while not lexer.at("]"):
        m = lexer.match(_dim)
        if not m:
            lexer.fail(
                f"expected a dimension size, found {lexer.found()}",
                remedy="a size is a number, <=number (a bound) or ? (unbounded)",
            )
        size = UNBOUNDED if m[2] == "?" else lexer.number(m[2])
        if size >= 2**63:
            lexer.fail(f"dimension size {size} is too large", m.start())
        dims.append(size)
        dynamic.append(bool(m[1]) or m[2] == "?")
        if not lexer.eat(","):
            break
    lexer.expect("]", "at the end of the dimensions")
    layout = None
    if _layout_follows.match(lexer.text, lexer.pos):
        layout = parse_layout(lexer, len(dims))
    if not dtype.is_array and dims:
        lexer.fail(f"{word} has no dimensions", start)
    if layout == Layout(()):
        layout = None  # `f32[]{}` means the same as `f32[]`
    shape = Shape(dtype, tuple(dims), layout, tuple(dynamic) if any(dynamic) else ())
    if not shape.is_addressable:
        lexer.fail(
            f"{shape.without_layout()} has {shape.bytes:.3g} bytes, more than 2^63 - 1", start, "use smaller sizes"
        )
    return shape


def parse_layout(lexer: Lexer, rank: int | None = None) -> Layout:
    """Consume `{minor_to_major:T(..)(..)S(n)…}`. rank: the shape's rank, which the order must match if it is given."""
    start = lexer.pos
    lexer.eat("{")
    order = []
    while m := lexer.match(_order):
        order.append(lexer.number(m[0]))
        if not lexer.eat(","):
            break
    if rank is not None and sorted(order) != list(range(rank)) and not (rank and not order):
        lexer.fail(
            f"layout {{{','.join(map(str, order))}}} is no order of the {rank} dimensions",
            start,
            "list each dimension once, the fastest varying first",
        )
    tiles, space, extras = _layout_tail(lexer) if lexer.eat(":") else ((), 0, "")
    lexer.expect("}", "at the end of a layout")
    if not order and rank:
        order = list(range(rank - 1, -1, -1))
    return Layout(tuple(order), tiles, space, extras)


def _layout_tail(lexer: Lexer) -> tuple[tuple[tuple[int, ...], ...], int, str]:
    """Reads tiles, memory space and all other properties (as text) after the ':' of a layout."""
    tiles: list[tuple[int, ...]] = []
    found: dict[str, str] = {}
    while not lexer.at("}"):
        start, m = lexer.pos, lexer.match(_property)
        if not m or not lexer.at("("):
            lexer.fail(f"expected a layout property, found {lexer.found()}", start, "for instance T(8,128), E(4), S(1)")
        if m[0] in found:
            lexer.fail(f"layout property {m[0]} is given twice", start)
        found[m[0]] = ""
        while lexer.at("("):
            if m[0] == "T":
                tiles.append(_tile(lexer))
            elif value := lexer.match(_value):
                found[m[0]] += re.sub(r"\s", "", value[0])
            else:
                lexer.fail(f"the value of layout property {m[0]} is malformed")
    space = found.pop("S", "(0)")[1:-1]
    if not space.isdecimal() or len(space) > 18:
        lexer.fail(f"a memory space is a number, not '{space}'")
    return tuple(tiles), int(space), "".join(k + found[k] for k in PROPERTY_ORDER if k in found and k != "T")


def _tile(lexer: Lexer) -> tuple[int, ...]:
    lexer.eat("(")
    dims = []
    while m := lexer.match(_tile_dim):
        dims.append(-1 if m[0] == "*" else lexer.number(m[0]))
        if not lexer.eat(","):
            break
    lexer.expect(")", "at the end of a tile")
    return tuple(dims)
