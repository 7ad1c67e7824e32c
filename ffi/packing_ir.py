"""Packing of elements narrower than a byte in the wrapper of a custom call, as packing.py does it with numpy."""

from __future__ import annotations

from llvmlite import ir

from ..codegen.library.frame import I8, I64, Frame
from ..hlo.shapes import Shape
from .packing import mask


def emit_pack(frame: Frame, pointer: ir.Value, shape: Shape) -> None:
    """Pack the elements at an address where they are: byte n is written after the elements behind it are read."""
    b, bits = frame.b, shape.dtype.bits
    per_byte = 8 // bits

    def packed(index: ir.Value | int, count: int) -> None:
        first = frame.times(index, per_byte)
        made = I8(0)
        for n in range(count):
            value = frame.load(frame.offset(pointer, frame.add(first, n), 1), I8)
            made = b.or_(made, b.shl(b.and_(value, I8(mask(shape.dtype))), I8(bits * n)))
        frame.store(made, frame.offset(pointer, index, 1))

    whole, remainder = divmod(shape.size, per_byte)
    if whole:
        with frame.loop(whole) as index:
            packed(index, per_byte)
    if remainder:
        packed(whole, remainder)


def emit_unpack(frame: Frame, pointer: ir.Value, shape: Shape) -> None:
    """Unpack the elements at an address where they are: from the last byte down, so that none is overwritten unread."""
    b, bits = frame.b, shape.dtype.bits
    per_byte = 8 // bits

    def unpacked(index: ir.Value | int, count: int) -> None:
        data = frame.load(frame.offset(pointer, index, 1), I8)
        first = frame.times(index, per_byte)
        for n in range(count):
            value = b.and_(b.lshr(data, I8(bits * n)), I8(mask(shape.dtype)))
            frame.store(value, frame.offset(pointer, frame.add(first, n), 1))

    whole, remainder = divmod(shape.size, per_byte)
    if remainder:
        unpacked(whole, remainder)
    if whole:
        with frame.loop(whole) as index:
            unpacked(b.sub(I64(whole - 1), frame.value(index)), per_byte)
