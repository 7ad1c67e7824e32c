"""Fourier transforms on blocks of rows: the calls of pieces (fft_pieces.py) that transform one block.

Rows are transformed side by side, in the lanes of vectors. Which rows form a block never depends on the number of
threads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from llvmlite import ir

from ...hlo.library.calls import whole_bytes
from ...hlo.library.transforms import LINE, block_bytes, blocks_together, lanes_of, points_of, radices_of
from ..helpers import text_once
from ..lite_text import module_text
from .fft_lines import HALF, REAL, Lines
from .fft_pieces import parameters, piece, table
from .frame import I64, POINTER, VOID, Frame, Number, Part

NEAR = 1 << 14
"""Bytes of a block's part that one step after the other transforms, as it stays in the nearest cache. A longer part is
transformed once, and then its parts one after the other.
"""


@dataclass(frozen=True, eq=False, slots=True)
class Block:
    """A transform that blocks compute. read, written: points of a row; steps: from a row, or point, to the next one, in
    bytes, in the source and the target; kind: rows; columns, of which a block's points are neighbours in memory; or
    several, blocks of columns that are read, and written, together.
    """

    loop: str
    letter: str
    points: int
    kind: str
    steps: tuple[int, int]
    read: int
    written: int
    scale: float

    @property
    def together(self) -> int:
        return blocks_together(self.points, max(self.steps)) if self.kind == "several" else 1


def block_of(loop: str, axis: int, source: Part, target: Part, rows: tuple[int, int], scale: float) -> Block | None:
    """The transform along an axis of rows that are a number of bytes apart; None if blocks do not compute it."""
    real = loop not in ("fft", "ifft")
    length = target.dims[axis] if loop != "rfft_n_even" else source.dims[axis]
    points = 0 if loop == "rfft_n_odd" else points_of(real, length)
    if not points:
        return None
    ends = [part.strides[axis] * part.dtype.bytes for part in (source, target)]
    steps = (rows[0], rows[1])
    kind = "rows"
    if any(part.strides[axis] != 1 for part in (source, target)):
        if real or steps != (source.dtype.bytes, target.dtype.bytes):
            return None
        kind, steps = "several" if blocks_together(points, max(ends)) > 1 else "columns", (ends[0], ends[1])
    letter = "f" if target.dtype.component.bytes == 4 else "d"
    read, written = points + (loop == "irfft"), points + (loop == "rfft_n_even")
    return Block(loop, letter, points, kind, steps, read, written, scale)


def rows_of(part: Part) -> int:
    """Rows of a block."""
    return lanes_of(part.dtype.component)


def block_memory(frame: Frame) -> ir.Value:
    """The memory of a block."""
    i = frame.request.instruction
    whole = whole_bytes(i)
    return frame.offset(frame.work_space(whole + block_bytes(i)), whole, 1)


def emit_blocks(frame: Frame, block: Block, memory: ir.Value, first: tuple[ir.Value, ir.Value], rows: Number) -> None:
    """Transform a number of rows, a multiple of a block's, from places in the source and the target on. A helper for
    this length does it: what compiles with each program is one call.
    """
    kinds, tables = _pieces(block), _tables(block)
    kind = f"{block.kind}_{block.letter}{block.together}{'' if frame.fused else '_strict'}"
    name = f"testbed_fft_{block.loop}_{block.points}_{kind}"
    frame.helpers[name] = text_once(name, partial(_text, name, block, frame.fused))
    frame.helpers |= dict(piece(kind, block.letter, frame.fused) for kind in kinds)
    frame.helpers |= dict(table(kind, block.points, block.letter) for kind in tables)
    function = frame.declare(name, VOID, _parameters(block))
    scale = ir.Constant(REAL[block.letter], block.scale)
    steps = [I64(step) for step in block.steps]
    frame.b.call(function, [first[0], steps[0], first[1], steps[1], memory, frame.value(rows), scale])


def _parameters(block: Block) -> list[ir.Type]:
    return [POINTER, I64, POINTER, I64, POINTER, I64, REAL[block.letter]]


def _pieces(block: Block) -> list[str]:
    """The kinds of pieces that transform a block."""
    *radices, last = radices_of(block.points) or ()
    real = {"rfft_n_even": ["after_real"], "irfft": ["before_real"]}.get(block.loop, [])
    steps = [f"step{radix}" for radix in sorted(set(radices))]
    return [f"{block.kind}_in", *real, *steps, f"last{last}", f"{block.kind}_out"]


def _tables(block: Block) -> list[str]:
    several = len(radices_of(block.points) or ()) > 1
    return ["order", *["roots"] * several, *["real"] * (block.loop in ("rfft_n_even", "irfft"))]


def _text(name: str, block: Block, fused: bool) -> str:
    """LLVM IR of the function that transforms a block."""
    module = ir.Module(name, context=ir.Context())
    lines = Lines(module, name, _parameters(block), block.letter, fused)
    pieces = {kind: _callee(module, *piece(kind, block.letter, fused), kind, block.letter) for kind in _pieces(block)}
    tables = {kind: _numbers(lines, table(kind, block.points, block.letter)[0]) for kind in _tables(block)}
    _Writer(lines, block, pieces, tables).write()
    lines.b.ret_void()
    return module_text(module)


def _callee(module: ir.Module, name: str, _: str, kind: str, letter: str) -> ir.Function:
    function = ir.Function(module, ir.FunctionType(VOID, parameters(kind, letter)), name)
    for attribute in ("nounwind", "willreturn", "noduplicate"):  # O3 would copy calls for loops of few rounds
        set.add(function.attributes, attribute)
    return function


def _numbers(lines: Lines, name: str) -> ir.Value:
    return lines.b.call(ir.Function(lines.b.module, ir.FunctionType(POINTER, []), name), [])


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes the calls of one block. pieces, tables: functions and tables by kind."""

    lines: Lines
    block: Block
    pieces: Mapping[str, ir.Function]
    tables: Mapping[str, ir.Value]

    def write(self) -> None:
        """A loop over the blocks."""
        source, source_step, target, target_step, memory, rows, scale = self.lines.function.args
        b, lanes, together = self.lines.b, self.lines.lanes, self.block.together
        with b.if_then(b.icmp_unsigned(">", rows, I64(0))), self.lines.loop(rows, step=lanes * together) as row:
            steps = (source_step, target_step) if self.block.kind == "rows" else (I64(LINE // lanes),) * 2
            ends = self.lines.at(source, row, steps[0]), self.lines.at(target, row, steps[1])
            left = b.udiv(b.sub(rows, row), I64(lanes))
            blocks = b.select(b.icmp_unsigned("<", left, I64(together)), left, I64(together))
            self._blocks((ends[0], source_step), (ends[1], target_step), memory, blocks, scale)

    def _blocks(
        self,
        source: tuple[ir.Value, ir.Value],
        target: tuple[ir.Value, ir.Value],
        memory: ir.Value,
        blocks: ir.Value,
        scale: ir.Value,
    ) -> None:
        """The calls for blocks that are read together. source, target: the places of the first, with their steps."""
        block, tables, radices = self.block, self.tables, radices_of(self.block.points) or ()
        inverse, points = block.loop == "ifft", I64(block.points)
        before = I64(HALF if inverse else 0)
        after = I64(HALF if inverse or block.loop == "irfft" else 0)
        several = [blocks] if block.kind == "several" else []
        self._call(f"{block.kind}_in", *source, memory, I64(block.read), before, *several)
        if block.loop == "irfft":
            self._call("before_real", memory, tables["real"], points)
        if block.kind == "several":
            with self.lines.loop(blocks) as number:
                place = self.lines.at(memory, number, LINE * (block.points + 1))
                self._steps(place, tables.get("roots", memory), radices)
        else:
            self._steps(memory, tables.get("roots", memory), radices)
        if block.loop == "rfft_n_even":
            self._call("after_real", memory, tables["order"], tables["real"], points)
        self._call(f"{block.kind}_out", memory, tables["order"], *target, I64(block.written), after, scale, *several)

    def _steps(self, memory: ir.Value, roots: ir.Value, radices: Sequence[int]) -> None:
        """The steps of a part of a block. roots: those of its first step, and then of the others."""
        points = math.prod(radices)
        if points * LINE > NEAR and len(radices) > 1:
            size = points // radices[0]
            self._call(f"step{radices[0]}", memory, I64(1), I64(size), roots)
            rest = self._behind(roots, points, radices[0])
            with self.lines.loop(radices[0]) as part:
                self._steps(self.lines.at(memory, part, size * LINE), rest, radices[1:])
            return
        groups = 1
        for radix in radices[:-1]:
            size = points // (groups * radix)
            self._call(f"step{radix}", memory, I64(groups), I64(size), roots)
            roots = self._behind(roots, size * radix, radix)
            groups *= radix
        self._call(f"last{radices[-1]}", memory, I64(groups))

    def _behind(self, roots: ir.Value, points: int, radix: int) -> ir.Value:
        """The roots of the step that follows one of this many points."""
        return self.lines.at(roots, points // radix * (radix - 1), 2 * self.lines.bytes)

    def _call(self, kind: str, *values: ir.Value) -> None:
        self.lines.b.call(self.pieces[kind], values)
