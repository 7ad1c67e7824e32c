"""Random damage to LHLO, as text and as bytecode: characters, tokens, attributes, types, operands, ops, bits."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from ...lhlo import parse_text
from ...lhlo.guard import MAGIC, seal
from ...lhlo.memrefs import ELEMENT
from ...lhlo.table import OPCODE

HEADER = len(MAGIC) + 32
"""Bytes of sealed bytecode before its payload."""

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|[%^@#!]?[A-Za-z_][\w.$]*|%\d+|-?\d[\w.]*|->|\s+|.')
_NUMBER = re.compile(r"(?<![\w%])-?\d+(?![\w.])")
_TYPE = re.compile(r"memref<[^>]*>")
_ATTRIBUTE = re.compile(
    r"([\w.]+) = (array<[^>]*>|dense<[^>]*> : tensor<[^>]*>|-?\d+ : i64|true|false|\"[^\"]*\"|\[[^\]]*\])"
)
NUMBERS = (-(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 7, 8, 63, 64, 65, 255, 2**31 - 1, 2**31, 2**62, 2**63 - 1, 2**64)
VALUES = (
    *("0 : i64", "-1 : i64", "1 : i32", "1.5 : f32", "0x7FF8000000000000 : f64", '"LT"', '"x"', '""', "unit", "true"),
    *("array<i64>", "array<i64: 0>", "array<i64: 1, 0>", "array<i64: 0, 0>", "array<i32: 1>", "array<i1: true>"),
    *("[]", "[1 : i64]", '["a"]', '[["a"]]', "{}", "{a = 1 : i64}", '{class = "Shape"}', "i32", "memref<4xf32>"),
    *("dense<1> : tensor<4xi32>", "dense<0.0> : tensor<f32>", "@main", '{class = "WindowDim", size = 1 : i64}'),
    *(
        "dense<> : tensor<0xf32>",
        "dense<(1.0,2.0)> : tensor<2xcomplex<f32>>",
        "array<f32: 1.0>",
        "affine_map<(d0) -> (d0)>",
    ),
)


def _span(text: str, start: int, end: int, new: str) -> str:
    return text[:start] + new + text[end:]


def _match(pattern: re.Pattern[str], text: str, draw: random.Random) -> re.Match[str]:
    return draw.choice(list(pattern.finditer(text)))


def characters(text: str, draw: random.Random) -> str:
    at = draw.randrange(len(text))
    new = draw.choice(["", text[at] * 2, chr(draw.choice([draw.randrange(32, 127), 0x20AC, 9, 0, 0xD800]))])
    return _span(text, at, at + draw.choice([0, 1, 1, 4]), new)


def tokens(text: str, draw: random.Random) -> str:
    """Erase, double, exchange or replace a token."""
    found = list(_TOKEN.finditer(text))
    n = draw.randrange(len(found) - 1)
    one, other = found[n], draw.choice(found)
    new = draw.choice(["", one[0] + " " + one[0], other[0]])
    return _span(text, *one.span(), new)


def number(text: str, draw: random.Random) -> str:
    one = _match(_NUMBER, text, draw)
    return _span(text, *one.span(), str(draw.choice([*NUMBERS, int(one[0]) + 1, int(one[0]) - 1])))


def type_(text: str, draw: random.Random) -> str:
    """Another element type, another size or layout, or another type of the text, here or everywhere."""
    one = _match(_TYPE, text, draw)
    new = draw.choice([_match(_TYPE, text, draw)[0], _other_element(one[0], draw), _other_size(one[0], draw)])
    return text.replace(one[0], new) if draw.random() < 0.6 else _span(text, *one.span(), new)


def _other_element(text: str, draw: random.Random) -> str:
    element = draw.choice([*ELEMENT.values(), "index", "tf32", "i128", "none", "vector<4xf32>"])
    return re.sub(r"(memref<(?:\d+x)*)[\w<]+", lambda m: m[1] + element, text, count=1).replace(">>>", ">>")


def _other_size(text: str, draw: random.Random) -> str:
    size = draw.choice(["?", "0", "1", "5", "16", "4294967296", "9223372036854775807", "1x1", ""])
    return re.sub(r"\d+x", f"{size}x" if size else "", text, count=1)


def attribute(text: str, draw: random.Random) -> str:
    """Erase an attribute, give it another value, or the value of another one."""
    one = _match(_ATTRIBUTE, text, draw)
    choice = draw.randrange(3)
    if choice == 0:
        return _span(text, *one.span(), "").replace(", ,", ",").replace("{, ", "{").replace(", }", "}")
    value = draw.choice(VALUES) if choice == 1 else _match(_ATTRIBUTE, text, draw)[2]
    return _span(text, *one.span(), one[1] if value == "unit" else f"{one[1]} = {value}")


def operand(text: str, draw: random.Random) -> str:
    """Exchange two operands of a line, or use another memref."""
    pattern = re.compile(r"%\w+")
    one, other = _match(pattern, text, draw), _match(pattern, text, draw)
    if one.start() < other.start() and draw.random() < 0.5:
        return text[: one.start()] + other[0] + text[one.end() : other.start()] + one[0] + text[other.end() :]
    return _span(text, *one.span(), other[0])


def opcode(text: str, draw: random.Random) -> str:
    one = _match(re.compile(r'"lhlo\.\w+"'), text, draw)
    return _span(
        text, *one.span(), f'"{draw.choice([*OPCODE, "lhlo.while", "lhlo.case", "lhlo.branch", "lhlo.view"])}"'
    )


def lines(text: str, draw: random.Random) -> str:
    """Erase, double or move a line."""
    rows = text.split("\n")
    at = draw.randrange(len(rows))
    row = rows[at] if draw.random() < 0.4 else rows.pop(at)
    if draw.random() < 0.6:
        rows.insert(draw.randrange(len(rows) + 1), row)
    return "\n".join(rows)


EDITS: tuple[Callable[[str, random.Random], str], ...] = (
    *(characters, tokens, number, number, type_, type_, attribute, attribute, operand, operand, opcode, lines),
)


def edited(text: str, draw: random.Random) -> str:
    """The text after one edit; as it was where it holds nothing of the kind."""
    try:
        return draw.choice(EDITS)(text, draw)
    except IndexError:
        return text


def damaged_text(text: str, draw: random.Random) -> bytes:
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        text = edited(text, draw)
    return text.encode("utf-8", "surrogatepass")


def damaged_bytecode(text: str, draw: random.Random) -> bytes:
    """Cut, changed or exchanged bytes of bytecode; sometimes only of its payload, under a checksum that fits."""
    data = parse_text(text).to_bytecode()
    sealed = draw.random() < 0.5
    part = bytearray(data[HEADER:] if sealed else data)
    for _ in range(draw.choice([1, 1, 2, 5])):
        if not part:
            break
        at, kind = draw.randrange(len(part)), draw.randrange(5)
        if kind == 0:
            del part[at:]
        elif kind == 1:
            del part[at : at + draw.randint(1, 8)]
        elif kind == 2:
            part[at:at] = draw.randbytes(draw.randint(1, 4))
        elif kind == 3:
            part[at] = draw.choice([0, 1, 127, 128, 255])
        else:
            part[at] ^= 1 << draw.randrange(8)
    return seal(bytes(part)) if sealed else bytes(part)
