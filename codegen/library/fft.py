"""fft as a kernel: for each axis, blocks of rows (fft_blocks.py), and one call of numpy's FFT loops for all other rows.

Both take strides, so no layout needs a transpose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.library.calls import whole_bytes
from ...hlo.library.lapack import LETTERS
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from ...planning.plan import KernelRequest
from .fft_blocks import Block, block_memory, block_of, emit_blocks, rows_of
from .frame import I64, POINTER, VOID, Frame, Number, Part
from .pocketfft import DATA, WITH_DATA, symbol

LETTER = {DType.F32: "f", DType.F64: "d"}

NOWHERE = ir.Constant(POINTER, None)

Ends: TypeAlias = tuple[ir.Value, ir.Value]
"""A place in the source and the one in the target."""

Emission: TypeAlias = Callable[[Ends, Number, Number], None]
"""(where the rows are, begin, end) → None: emits the transforms of the rows [begin, end)."""


@dataclass(frozen=True, eq=False, slots=True)
class Transform:
    """One transform along one axis. scale: the factor that the result is multiplied by."""

    loop: str
    axis: int
    source: Part
    target: Part
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Rows:
    """`count` rows, `source` bytes apart in the source and `target` bytes apart in the target."""

    count: int
    source: int
    target: int


def is_supported(i: Instruction) -> bool:
    return i.shape.dtype in LETTERS and not i.shape.is_dynamic and i.operands[0].shape.dtype in LETTERS


def emit_fft(frame: Frame) -> None:
    i, request = frame.request.instruction, frame.request
    if not i.shape.size:
        return
    whole = frame.work_space(whole_bytes(i)) if whole_bytes(i) else NOWHERE
    for step in _transforms(i, frame.argument(request.operands[0]), frame.argument(request.results[0]), whole):
        _emit_transform(frame, step)


def takes_ranges(request: KernelRequest) -> bool:
    """Whether the kernel computes any of the steps that its request may be split into, in whole blocks of rows."""
    i, partition = request.instruction, request.partition
    if i.opcode is not Op.FFT or partition is None or whole_bytes(i):
        return False
    for step in _transforms(i, NOWHERE, NOWHERE, NOWHERE):
        rows = _rows(step)
        if not rows or rows[0].count % partition.extent:
            return False
        inner, block = _inner(step, rows)
        in_chunk = rows[0].count // partition.extent * partition.least
        if block is not None and inner is rows[0] and in_chunk % rows_of(step.target):
            return False
    return True


def _transforms(i: Instruction, operand: ir.Value, result: ir.Value, whole: ir.Value) -> list[Transform]:
    """The transforms in order. RFFT's real-to-complex transform is the first, IRFFT's complex-to-real one the last.
    whole: memory for an operand of which some dimensions are transformed.
    """
    kind, lengths = i.attributes["fft_type"], tuple(i.attributes["fft_length"])
    axes = range(i.shape.rank - len(lengths), i.shape.rank)
    scales = {axis: 1 / n if kind in ("IFFT", "IRFFT") else 1.0 for axis, n in zip(axes, lengths)}
    source, target = _buffer(operand, i.operands[0].shape), _buffer(result, i.shape)
    last = axes[-1]
    if kind != "IRFFT":
        rest = "ifft" if kind == "IFFT" else "fft"
        first = rest if kind != "RFFT" else "rfft_n_odd" if lengths[-1] % 2 else "rfft_n_even"
        others = [Transform(rest, axis, target, target, scales[axis]) for axis in axes[:-1]]
        return [Transform(first, last, source, target, scales[last]), *others]
    transforms = []
    for axis in axes[:-1]:
        between = replace(source, pointer=whole)
        transforms.append(Transform("ifft", axis, source, between, scales[axis]))
        source = between
    return [*transforms, Transform("irfft", last, source, target, scales[last])]


def _buffer(pointer: ir.Value, shape: Shape) -> Part:
    return Part(pointer, -1, shape.dtype, shape.dims, shape.strides)


def _emit_transform(frame: Frame, step: Transform) -> None:
    """Emit loops around rows that are transformed together: blocks of them, and a call for the others."""
    rows = _rows(step)
    inner, block = _inner(step, rows)
    spans = _spans(frame, rows)
    begin, end = spans.pop(rows.index(inner)) if inner in rows else (0, 1)
    outer = [r for r in rows if r is not inner]
    emit = _calls(frame, step, inner) if block is None else _blocks(frame, step, inner, block)
    _nest(frame, [(r, *span) for r, span in zip(outer, spans, strict=True)], step, lambda ends: emit(ends, begin, end))


def _blocks(frame: Frame, step: Transform, inner: Rows, block: Block) -> Emission:
    memory, lanes = block_memory(frame), rows_of(step.target)
    call = _calls(frame, step, inner) if inner.count % lanes else None

    def emit(ends: Ends, begin: Number, end: Number) -> None:
        whole = end
        if call is not None:  # without it, every range is a number of blocks
            whole = end - end % lanes if isinstance(end, int) else frame.b.and_(end, I64(-lanes))
        emit_blocks(frame, block, memory, _moved(frame, ends, inner, begin), _less(frame, whole, begin))
        if call is not None:
            with frame.when(frame.b.icmp_unsigned("<", frame.value(whole), frame.value(end))):
                call(ends, whole, end)

    return emit


def _nest(
    frame: Frame, outer: Sequence[tuple[Rows, Number, Number]], step: Transform, emit: Callable[[Ends], None]
) -> None:
    """Loops over rows of rows; `emit` gets the places of the first row."""

    def nest(level: int, ends: Ends) -> None:
        if level == len(outer):
            emit(ends)
            return
        row, begin, end = outer[level]
        with frame.walk(begin, end) as position:
            nest(level + 1, _moved(frame, ends, row, position))

    nest(0, (step.source.pointer, step.target.pointer))


def _spans(frame: Frame, rows: Sequence[Rows]) -> list[tuple[Number, Number]]:
    """Begin and end of each kind of rows. A range is one of the outermost."""
    spans: list[tuple[Number, Number]] = [(0, row.count) for row in rows]
    partition = frame.request.partition
    if frame.range and partition is not None:
        in_step = rows[0].count // partition.extent
        spans[0] = frame.times(frame.range[0], in_step), frame.times(frame.range[1], in_step)
    return spans


def _inner(step: Transform, rows: Sequence[Rows]) -> tuple[Rows, Block | None]:
    """The rows that are transformed together, and the transform of a block of them; None if there are too few, or
    blocks do not compute it.
    """
    for row in sorted(rows, key=lambda r: -r.count):
        if row.count >= rows_of(step.target):
            block = block_of(step.loop, step.axis, step.source, step.target, (row.source, row.target), step.scale)
            if block is not None:
                return row, block
    return max(rows, key=lambda r: r.count, default=Rows(1, 0, 0)), None


def _moved(frame: Frame, ends: Ends, row: Rows, position: Number) -> Ends:
    return frame.offset(ends[0], position, row.source), frame.offset(ends[1], position, row.target)


def _less(frame: Frame, x: Number, y: Number) -> Number:
    return x - y if isinstance(x, int) and isinstance(y, int) else frame.b.sub(frame.value(x), frame.value(y))


def _calls(frame: Frame, step: Transform, inner: Rows) -> Emission:
    """Emits calls of NumPy's loop."""
    source, target, axis = step.source, step.target, step.axis
    # One point has no stride. In place, the loops want equal strides, where layouts may differ in dimensions of size 1.
    strides = [part.strides[axis] * part.dtype.bytes if part.dims[axis] > 1 else 0 for part in (source, target)]
    steps = _numbers(frame, [inner.source, 0, inner.target, *strides])
    real = target.dtype.component
    factor = frame.real(real, step.scale)
    name = symbol(step.loop, LETTER[real])
    function = frame.declare(name, VOID, [POINTER] * 4)
    data = frame.outside(name + DATA) if step.loop in WITH_DATA else ir.Constant(POINTER, None)
    arguments, dims = frame.stack(3 * 8), frame.stack(3 * 8)

    def call(ends: Ends, begin: Number, end: Number) -> None:
        places = _moved(frame, ends, inner, begin)
        for number, pointer in enumerate((places[0], factor, places[1])):
            frame.b.store(pointer, frame.offset(arguments, number, 8), align=8)
        for number, size in enumerate((_less(frame, end, begin), source.dims[axis], target.dims[axis])):
            frame.b.store(frame.value(size), frame.offset(dims, number, 8), align=8)
        frame.b.call(function, [arguments, dims, steps, data])

    return call


def _rows(step: Transform) -> list[Rows]:
    """The dimensions other than the axis, outermost first. Dimensions that are contiguous in both arrays are merged."""
    source, target = step.source, step.target
    order = sorted((d for d in range(len(target.dims)) if d != step.axis), key=lambda d: -target.strides[d])
    found: list[Rows] = []
    for d in order:
        count = target.dims[d]
        row = Rows(count, source.strides[d] * source.dtype.bytes, target.strides[d] * target.dtype.bytes)
        if count == 1:
            continue
        if found and found[-1].source == row.source * count and found[-1].target == row.target * count:
            row = replace(row, count=found.pop().count * count)
        found.append(row)
    return found


def _numbers(frame: Frame, values: list[int]) -> ir.Value:
    """The address of a constant array of 64-bit integers."""
    text = ", ".join(f"i64 {value}" for value in values)
    return frame.constant(ir.ArrayType(I64, len(values)), f"[{text}]", "i64." + ".".join(map(str, values)))
