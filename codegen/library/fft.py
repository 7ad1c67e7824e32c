"""fft as a kernel: one call of numpy's FFT loops per axis. The loops take strides, so no layout needs a transpose."""

from __future__ import annotations

from dataclasses import dataclass, replace

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.library.lapack import LETTERS
from ...hlo.shapes import Shape
from .frame import I64, POINTER, VOID, Frame, Number, Part
from .pocketfft import DATA, WITH_DATA, symbol

LETTER = {DType.F32: "f", DType.F64: "d"}


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
    i = frame.request.instruction
    if not i.shape.size:
        return
    for step in _transforms(frame, i):
        _emit_transform(frame, step)


def _transforms(frame: Frame, i: Instruction) -> list[Transform]:
    """The transforms in order. RFFT's real-to-complex transform is the first, IRFFT's complex-to-real one the last."""
    kind, lengths = i.attributes["fft_type"], tuple(i.attributes["fft_length"])
    axes = range(i.shape.rank - len(lengths), i.shape.rank)
    scales = {axis: 1 / n if kind in ("IFFT", "IRFFT") else 1.0 for axis, n in zip(axes, lengths)}
    request = frame.request
    source = _buffer(frame.argument(request.operands[0]), i.operands[0].shape)
    target = _buffer(frame.argument(request.results[0]), i.shape)
    last = axes[-1]
    if kind != "IRFFT":
        rest = "ifft" if kind == "IFFT" else "fft"
        first = rest if kind != "RFFT" else "rfft_n_odd" if lengths[-1] % 2 else "rfft_n_even"
        others = [Transform(rest, axis, target, target, scales[axis]) for axis in axes[:-1]]
        return [Transform(first, last, source, target, scales[last]), *others]
    transforms = []
    if len(axes) > 1:
        work = replace(source, pointer=frame.work_space(i.operands[0].shape.bytes))
        for axis in axes[:-1]:
            transforms.append(Transform("ifft", axis, source, work, scales[axis]))
            source = work
    return [*transforms, Transform("irfft", last, source, target, scales[last])]


def _buffer(pointer: ir.Value, shape: Shape) -> Part:
    return Part(pointer, -1, shape.dtype, shape.dims, shape.strides)


def _emit_transform(frame: Frame, step: Transform) -> None:
    """Emit loops around one call, which transforms as many equally spaced rows as possible."""
    source, target, axis = step.source, step.target, step.axis
    rows = _rows(step)
    inner = max(rows, key=lambda r: r.count, default=Rows(1, 0, 0))
    outer = [r for r in rows if r is not inner]
    dims = _numbers(frame, [inner.count, source.dims[axis], target.dims[axis]])
    # One point has no stride. In place, the loops want equal strides, where layouts may differ in dimensions of size 1.
    ends = [part.strides[axis] * part.dtype.bytes if part.dims[axis] > 1 else 0 for part in (source, target)]
    steps = _numbers(frame, [inner.source, 0, inner.target, *ends])
    real = target.dtype.component
    factor = frame.real(real, step.scale)
    name = symbol(step.loop, LETTER[real])
    function = frame.declare(name, VOID, [POINTER] * 4)
    data = frame.outside(name + DATA) if step.loop in WITH_DATA else ir.Constant(POINTER, None)
    arguments = frame.stack(3 * 8)

    def call(index: list[Number]) -> None:
        places: list[Number] = [0, 0]
        for position, row in zip(index, outer, strict=True):
            places[0] = frame.add(places[0], frame.times(position, row.source))
            places[1] = frame.add(places[1], frame.times(position, row.target))
        pointers = [frame.offset(source.pointer, places[0], 1), factor, frame.offset(target.pointer, places[1], 1)]
        for number, pointer in enumerate(pointers):
            frame.b.store(pointer, frame.offset(arguments, number, 8), align=8)
        frame.b.call(function, [arguments, dims, steps, data])

    frame.nest([r.count for r in outer], call)


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
