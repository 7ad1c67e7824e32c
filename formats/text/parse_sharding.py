"""Checks the text of a sharding as XLA's parser does. The value stays text: nothing here partitions a module."""

from __future__ import annotations

import math
import re

from ...hlo.attributes import Raw
from .lexer import Lexer, near
from .parse_values import raw, raw_end
from .reading import Reading

KINDS = ("replicated", "manual", "unknown", "unreduced", "maximal")
WORDS = (*KINDS, "device=", "devices=[", "last_tile_dim_replicate", "last_tile_dims={", "shard_as", "shard_like")
MESHES = ("mesh", "maximal_mesh")

_axis = re.compile(r"'([^'\n]*)'")
_size = re.compile(r"'([^'\n]*)'\s*=\s*-?\d")


def sharding(p: Reading, name: str) -> Raw:
    """Reads `{replicated}`, `{devices=[2,2]<=[4] last_tile_dim_replicate}`, `{mesh['x'=2] [{'x'}]}`, or a tuple."""
    lexer, start = p.lexer, p.lexer.pos
    value = raw(p, name)
    end = lexer.pos
    lexer.seek(start)
    _sharding(lexer, name)
    if lexer.pos != end:
        lexer.fail(f"expected the end of '{name}', found {lexer.found()}")
    lexer.seek(end)
    return value


def _sharding(lexer: Lexer, name: str) -> None:
    start = lexer.pos
    lexer.expect("{", f"before the words of '{name}'")
    if lexer.at("{") or lexer.at("}"):
        while not lexer.eat("}"):
            lexer.seek(_one(lexer, name))
            if not lexer.at("}"):
                lexer.expect(",", f"between the shardings of '{name}'")
                if lexer.at("}"):
                    lexer.fail(f"expected another sharding in '{name}', found {lexer.found()}")
        return
    lexer.seek(start)
    lexer.seek(_one(lexer, name))


def _one(lexer: Lexer, name: str) -> int:
    """Check one sharding; the position behind it."""
    start = lexer.pos
    lexer.expect("{", f"before the words of '{name}'")
    if lexer.word() in MESHES:
        lexer.seek(start)
        end = raw_end(lexer, name)
        _check_mesh(lexer, name, end)
        return end
    kinds: list[str] = []
    dims: list[int] = []
    devices = None
    while not lexer.eat("}"):
        at, word = lexer.pos, lexer.word()
        if word in KINDS:
            lexer.eat_word(word)
            kinds.append(word)
        elif word == "device":
            lexer.eat_word(word)
            lexer.expect("=", "after 'device'")
            devices = [lexer.integer(f"for the device of '{name}'")]
        elif word == "devices":
            lexer.eat_word(word)
            lexer.expect("=", "after 'devices'")
            dims, devices = _tiles(lexer, name)
        elif word in ("shard_as", "shard_like"):
            lexer.eat_word(word)
            lexer.integer(f"for the group of '{word}'")
        elif word == "last_tile_dim_replicate":
            lexer.eat_word(word)
        elif word == "last_tile_dims":
            lexer.eat_word(word)
            lexer.expect("=", f"after '{word}'")
            _kinds_of_dims(lexer, name)
        elif word == "metadata":
            lexer.eat_word(word)
            lexer.expect("=", "after 'metadata'")
            lexer.seek(raw_end(lexer, "metadata"))
        else:
            lexer.fail(
                f"expected a word of '{name}', found {lexer.found()}",
                at,
                near(word, WORDS) or f"the words are {', '.join(WORDS)}",
            )
    _check(lexer, name, start, kinds, dims, devices)
    return lexer.pos


def _tiles(lexer: Lexer, name: str) -> tuple[list[int], list[int]]:
    """`[2,2]0,1,2,3`, or `[2,2]<=[4]` with `T(…)` for a permutation of these dimensions."""
    at = lexer.pos
    dims = _numbers(lexer, "[", "]", f"the tile dimensions of '{name}'")
    if min(dims) <= 0:
        lexer.fail(f"the tile dimensions of '{name}' are {dims}", at, "each is 1 or more")
    if not lexer.eat("<="):
        devices = [lexer.integer(f"for a device of '{name}'")]
        while lexer.eat(","):
            devices.append(lexer.integer(f"for a device of '{name}'"))
        return dims, devices
    at = lexer.pos
    shape = _numbers(lexer, "[", "]", f"the sizes behind <= of '{name}'")
    if lexer.eat("T"):
        order = _numbers(lexer, "(", ")", f"the permutation of '{name}'")
        if len(order) != len(shape) or not all(0 <= n < len(shape) for n in order):
            lexer.fail(f"T({', '.join(map(str, order))}) does not order {len(shape)} dimensions", at)
    return dims, [0] * math.prod(shape)


def _numbers(lexer: Lexer, opening: str, closing: str, what: str) -> list[int]:
    lexer.expect(opening, f"before {what}")
    found = [lexer.integer(f"for {what}")]
    while lexer.eat(","):
        found.append(lexer.integer(f"for {what}"))
    lexer.expect(closing, f"after {what}")
    return found


def _kinds_of_dims(lexer: Lexer, name: str) -> None:
    lexer.expect("{", "after 'last_tile_dims='")
    while not lexer.eat("}"):
        at, word = lexer.pos, lexer.word()
        if word not in KINDS:
            lexer.fail(f"expected a kind of dimension in '{name}', found {lexer.found()}", at, ", ".join(KINDS))
        lexer.eat_word(word)
        lexer.eat(",")


def _check(lexer: Lexer, name: str, start: int, kinds: list[str], dims: list[int], devices: list[int] | None) -> None:
    """What the words of one sharding must be together."""
    if "maximal" in kinds:
        if devices is None or dims:
            lexer.fail(f"a maximal sharding in '{name}' needs one device", start, "write {maximal device=0}")
    elif kinds:
        if devices is not None:
            lexer.fail(f"a {kinds[0]} sharding in '{name}' has no devices", start, f"write {{{kinds[0]}}}")
    elif not dims:
        lexer.fail(f"'{name}' says neither a kind nor devices", start, "write {replicated} or {devices=[2]0,1}")
    elif devices is not None and len(devices) < math.prod(dims):
        lexer.fail(f"'{name}' has {math.prod(dims)} tiles and {len(devices)} devices", start, "name a device for each")


def _check_mesh(lexer: Lexer, name: str, end: int) -> None:
    """The axes that a sharding names are those of its mesh. (XLA's parser aborts otherwise.)"""
    text = lexer.text[lexer.pos : end]
    axes = set(_size.findall(text.partition("]")[0]))
    for match in _axis.finditer(text):
        if match[1] not in axes and not match[1].isdigit():
            remedy = near(match[1], axes) or f"its axes are {', '.join(sorted(axes)) or 'none'}"
            lexer.fail(f"the mesh of '{name}' has no axis '{match[1]}'", lexer.pos + match.start(), remedy)
