"""Functions of Fourier transforms on blocks of rows, each a helper that all programs share (codegen/helpers.py).

A block is read from rows of points, or from columns; then each step transforms it in place, and it is written in the
order that the steps left. An inverse transform is a forward one of numbers whose parts are exchanged: `flip` is where
a block holds real parts, 0 or HALF. A transform of 2n real points is one of n complex points and a pass
over the block.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

from llvmlite import ir

from ...hlo.library.transforms import LINE, radices_of
from ..helpers import text_once
from ..lite_text import module_text
from .fft_lines import HALF, REAL, Complex, Lines
from .fft_tables import all_roots, order, root
from .frame import I32, I64, POINTER


def piece(kind: str, letter: str, fused: bool) -> tuple[str, str]:
    """(symbol, LLVM IR) of one of PIECES, for the real type of a letter. fused: products and sums may contract."""
    name = f"testbed_fft_{kind}_{letter}{'' if fused else '_strict'}"
    return name, text_once(name, partial(_piece, name, kind, letter, fused))


def parameters(kind: str, letter: str) -> list[ir.Type]:
    return [REAL[letter] if type_ is None else type_ for type_ in PIECES[kind].parameters]


def _piece(name: str, kind: str, letter: str, fused: bool) -> str:
    module = ir.Module(name, context=ir.Context())
    lines = Lines(module, name, parameters(kind, letter), letter, fused)
    PIECES[kind].define(lines, *lines.function.args)
    lines.b.ret_void()
    return module_text(module)


# --- in and out ------------------------------------------------------------------------------------------------------


def _groups(lines: Lines, points: ir.Value, body: Callable[[ir.Value], None]) -> None:
    """Call `body` for groups of points that one vector holds. The last ones may overlap, with the same results."""
    size = lines.lanes // 2
    last = lines.b.sub(points, I64(size))
    with lines.loop(points, step=size) as index:
        body(lines.b.select(lines.b.icmp_unsigned("<", index, last), index, last))


def _rows(lines: Lines, pointer: ir.Value, step: ir.Value, first: ir.Value) -> list[ir.Value]:
    start = lines.at(pointer, first, 2 * lines.bytes)
    return [start, *(lines.at(start, n, step) for n in range(1, lines.lanes))]


def _rows_in(lines: Lines, source: ir.Value, step: ir.Value, block: ir.Value, points: ir.Value, flip: ir.Value) -> None:
    def group(first: ir.Value) -> None:
        rows = [lines.load(place, lines.bytes) for place in _rows(lines, source, step, first)]
        _fill(lines, lines.transposed(rows), lines.at(block, first, LINE), flip)

    _groups(lines, points, group)


def _rows_out(
    lines: Lines,
    block: ir.Value,
    places: ir.Value,
    target: ir.Value,
    step: ir.Value,
    points: ir.Value,
    flip: ir.Value,
    scale: ir.Value,
) -> None:
    factor = lines.splat(scale)

    def group(first: ir.Value) -> None:
        parts: list[ir.Value] = []
        for n in range(lines.lanes // 2):
            parts += lines.scaled(_taken(lines, block, _place(lines, places, lines.b.add(first, I64(n))), flip), factor)
        for row, place in zip(lines.transposed(parts), _rows(lines, target, step, first), strict=True):
            lines.store(row, place, lines.bytes)

    _groups(lines, points, group)


def _columns_in(
    lines: Lines,
    source: ir.Value,
    step: ir.Value,
    block: ir.Value,
    points: ir.Value,
    flip: ir.Value,
    blocks: ir.Value | None = None,
) -> None:
    """One block, or several, side by side in the source and one behind the other in memory."""
    size = _size(lines, points)
    with lines.loop(points) as index, _each(lines, blocks) as number:
        place = lines.at(lines.at(source, index, step), number, LINE)
        both = lines.load(place, lines.bytes), lines.load(lines.at(place, HALF), lines.bytes)
        parts = [lines.shuffle(*both, range(odd, 2 * lines.lanes, 2)) for odd in (0, 1)]
        _fill(lines, parts, lines.at(lines.at(block, number, size), index, LINE), flip)


def _each(lines: Lines, blocks: ir.Value | None) -> AbstractContextManager[ir.Value]:
    return nullcontext(I64(0)) if blocks is None else lines.loop(blocks)


def _size(lines: Lines, points: ir.Value) -> ir.Value:
    """Bytes from a block to the next one, which begin in different sets of a cache."""
    return lines.b.mul(lines.b.add(points, I64(1)), I64(LINE))


def _columns_out(
    lines: Lines,
    block: ir.Value,
    places: ir.Value,
    target: ir.Value,
    step: ir.Value,
    points: ir.Value,
    flip: ir.Value,
    scale: ir.Value,
    blocks: ir.Value | None = None,
) -> None:
    factor, half, size = lines.splat(scale), lines.lanes // 2, _size(lines, points)
    with lines.loop(points) as index, _each(lines, blocks) as number:
        point = _place(lines, places, index)
        parts = lines.scaled(_taken(lines, lines.at(block, number, size), point, flip), factor)
        place = lines.at(lines.at(target, index, step), number, LINE)
        for n in (0, 1):
            woven = [lane + part for lane in range(n * half, (n + 1) * half) for part in (0, lines.lanes)]
            lines.store(lines.shuffle(*parts, woven), lines.at(place, n * HALF), lines.bytes)


def _fill(lines: Lines, parts: Sequence[ir.Value], block: ir.Value, flip: ir.Value) -> None:
    """Store real and imaginary parts of points in turn."""
    ends = lines.at(block, flip), lines.at(block, lines.b.sub(I64(HALF), flip))
    for n, part in enumerate(parts):
        lines.store(part, lines.at(ends[n % 2], n // 2, LINE))


def _taken(lines: Lines, block: ir.Value, place: ir.Value, flip: ir.Value) -> Complex:
    point = lines.at(block, place, LINE)
    return lines.load(lines.at(point, flip)), lines.load(lines.at(point, lines.b.sub(I64(HALF), flip)))


def _place(lines: Lines, places: ir.Value, index: ir.Value) -> ir.Value:
    """Where result `index` is in the block."""
    return lines.b.zext(lines.b.load(lines.at(places, index, 4), typ=I32, align=4), I64)


# --- steps -----------------------------------------------------------------------------------------------------------


def _step(radix: int, lines: Lines, block: ir.Value, groups: ir.Value, apart: ir.Value, roots: ir.Value) -> None:
    """In each group of radix · `apart` points: transforms of points that far apart, then factors."""
    with lines.loop(groups) as group:
        start = lines.at(block, lines.b.mul(group, apart), radix * LINE)
        with lines.loop(apart) as index:
            first = lines.at(start, index, LINE)
            places = [first, *(lines.at(first, lines.b.mul(apart, I64(n)), LINE) for n in range(1, radix))]
            factors = lines.at(roots, index, 2 * lines.bytes * (radix - 1))
            points = BUTTERFLIES[radix](lines, [lines.get(place) for place in places])
            for n, (value, place) in enumerate(zip(points, places, strict=True)):
                if n:
                    value = lines.times(value, lines.spread_complex(lines.at(factors, n - 1, 2 * lines.bytes)))
                lines.put(value, place)


def _last(radix: int, lines: Lines, block: ir.Value, groups: ir.Value) -> None:
    """Transforms of groups of neighbours."""
    with lines.loop(groups) as group:
        places = [lines.at(lines.at(block, group, radix * LINE), n, LINE) for n in range(radix)]
        for value, place in zip(BUTTERFLIES[radix](lines, [lines.get(p) for p in places]), places, strict=True):
            lines.put(value, place)


def _two(lines: Lines, x: Sequence[Complex]) -> list[Complex]:
    return [lines.plus(x[0], x[1]), lines.minus(x[0], x[1])]


def _three(lines: Lines, x: Sequence[Complex]) -> list[Complex]:
    both, apart = lines.plus(x[1], x[2]), lines.minus(x[1], x[2])
    middle = lines.minus(x[0], lines.scaled(both, lines.constant(0.5)))
    turned = lines.scaled(apart, _constant(lines, math.sqrt(0.75)))
    return [lines.plus(x[0], both), lines.less_turned(middle, turned), lines.plus_turned(middle, turned)]


def _four(lines: Lines, x: Sequence[Complex]) -> list[Complex]:
    even, odd = _two(lines, x[0::2]), _two(lines, x[1::2])
    return [
        lines.plus(even[0], odd[0]),
        lines.less_turned(even[1], odd[1]),
        lines.minus(even[0], odd[0]),
        lines.plus_turned(even[1], odd[1]),
    ]


def _five(lines: Lines, x: Sequence[Complex]) -> list[Complex]:
    outer, inner = _two(lines, (x[1], x[4])), _two(lines, (x[2], x[3]))
    (c1, s1), (c2, s2) = ([_constant(lines, part) for part in root(k, 5)] for k in (1, 2))
    middle = [
        lines.plus(lines.plus(x[0], lines.scaled(outer[0], a)), lines.scaled(inner[0], b))
        for a, b in ((c1, c2), (c2, c1))
    ]
    first = lines.plus(lines.scaled(outer[1], s1), lines.scaled(inner[1], s2))
    second = lines.minus(lines.scaled(outer[1], s2), lines.scaled(inner[1], s1))
    return [
        lines.plus(lines.plus(x[0], outer[0]), inner[0]),
        lines.plus_turned(middle[0], first),
        lines.plus_turned(middle[1], second),
        lines.less_turned(middle[1], second),
        lines.less_turned(middle[0], first),
    ]


BUTTERFLIES = {2: _two, 3: _three, 4: _four, 5: _five}
"""Radix → transforms of that many points, in natural order."""


def _constant(lines: Lines, value: float) -> ir.Value:
    return lines.constant(struct.unpack("f", struct.pack("f", value))[0] if lines.bytes == 4 else value)


# --- real data -------------------------------------------------------------------------------------------------------


def _after(lines: Lines, block: ir.Value, places: ir.Value, roots: ir.Value, points: ir.Value) -> None:
    """From the transform of x[2k] + i · x[2k + 1], `points` points, to the first points + 1 results of that of x."""
    half = lines.constant(0.5)
    re, im = lines.get(block)
    zero = lines.constant(0.0)
    lines.put((lines.add(re, im), zero), block)
    lines.put((lines.sub(re, im), zero), lines.at(block, points, LINE))
    with lines.loop(lines.b.add(lines.b.lshr(points, I64(1)), I64(1)), begin=1) as k:
        ends = [lines.at(block, _place(lines, places, n), LINE) for n in (k, lines.b.sub(points, k))]
        x, y = lines.get(ends[0]), lines.get(ends[1])
        even = lines.add(x[0], y[0]), lines.sub(x[1], y[1])
        odd = lines.add(x[1], y[1]), lines.sub(y[0], x[0])
        odd = lines.times(odd, lines.spread_complex(lines.at(roots, k, 2 * lines.bytes)))
        lines.put(lines.scaled(lines.plus(even, odd), half), ends[0])
        re, im = lines.scaled(lines.minus(even, odd), half)
        lines.put((re, lines.b.fneg(im)), ends[1])


def _before(lines: Lines, block: ir.Value, roots: ir.Value, points: ir.Value) -> None:
    """The inverse of `_after`, twice it, in natural order; the results have their parts exchanged. The imaginary parts
    of the first and the last point count for nothing.
    """
    first, last = lines.load(block), lines.load(lines.at(block, points, LINE))
    lines.put((lines.sub(first, last), lines.add(first, last)), block)
    with lines.loop(lines.b.add(lines.b.lshr(points, I64(1)), I64(1)), begin=1) as k:
        ends = [lines.at(block, n, LINE) for n in (k, lines.b.sub(points, k))]
        x, y = lines.get(ends[0]), lines.get(ends[1])
        even = lines.add(x[0], y[0]), lines.sub(x[1], y[1])
        re, im = lines.spread_complex(lines.at(roots, k, 2 * lines.bytes))
        odd = lines.times((lines.sub(x[0], y[0]), lines.add(x[1], y[1])), (re, lines.b.fneg(im)))
        lines.put(lines.plus_turned(even, odd)[::-1], ends[0])
        re, im = lines.less_turned(even, odd)
        lines.put((lines.b.fneg(im), re), ends[1])


@dataclass(frozen=True, slots=True)
class Piece:
    """parameters: their types, None for the real type. define: writes the body."""

    define: Callable[..., None]
    parameters: tuple[ir.Type | None, ...]


_IN = (POINTER, I64, POINTER, I64, I64)
_OUT = (POINTER, POINTER, POINTER, I64, I64, I64, None)

PIECES = {
    "rows_in": Piece(_rows_in, _IN),
    "rows_out": Piece(_rows_out, _OUT),
    "columns_in": Piece(_columns_in, _IN),
    "columns_out": Piece(_columns_out, _OUT),
    "several_in": Piece(_columns_in, (*_IN, I64)),
    "several_out": Piece(_columns_out, (*_OUT, I64)),
    "after_real": Piece(_after, (POINTER, POINTER, POINTER, I64)),
    "before_real": Piece(_before, (POINTER, POINTER, I64)),
    **{f"step{n}": Piece(partial(_step, n), (POINTER, I64, I64, POINTER)) for n in BUTTERFLIES},
    **{f"last{n}": Piece(partial(_last, n), (POINTER, I64)) for n in BUTTERFLIES},
}


# --- tables ----------------------------------------------------------------------------------------------------------


def table(kind: str, points: int, letter: str) -> tuple[str, str]:
    """(symbol, LLVM IR) of a function that gives the address of a table: order, roots or real, of `points` points."""
    name = f"testbed_fft_{kind}_{points}_{letter}"
    return name, text_once(name, partial(_table, name, kind, points, letter))


def _table(name: str, kind: str, points: int, letter: str) -> str:
    radices = radices_of(points) or ()
    if kind == "order":
        values = [f"i32 {place}" for place in (*order(points, radices), points)]
    else:
        real = (root(k, 2 * points) for k in range(points // 2 + 1))
        values = [
            _text(part, letter) for pair in (real if kind == "real" else all_roots(points, radices)) for part in pair
        ]
    type_ = values[0].partition(" ")[0]
    return (
        f"@numbers = private unnamed_addr constant [{len(values)} x {type_}] [{', '.join(values)}], align 64\n"
        f"define ptr @{name}() nounwind willreturn {{\n  ret ptr @numbers\n}}\n"
    )


def _text(value: float, letter: str) -> str:
    rounded = struct.unpack("f", struct.pack("f", value))[0] if letter == "f" else value
    return f"{REAL[letter]} 0x{struct.unpack('<Q', struct.pack('<d', rounded))[0]:016X}"
