"""A LAPACK routine as a kernel. For each matrix of the batch: copy operands in, call the routine, copy results out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from llvmlite import ir

from ...hlo.library.calls import Array, LapackCall, lapack_call, strides_of
from ...hlo.library.lapack import Address, Argument, Character, Dimension, Fixed, Integer
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from .frame import FLOATS, I32, I64, POINTER, VOID, Frame, Number, Part, dense


class Wrapper:
    """The wrapper of one batch element. index: its position in the batch; work: the address of the work space."""

    def __init__(self, frame: Frame, call: LapackCall, index: list[Number], work: ir.Value):
        self.frame, self.call, self.index, self.work = frame, call, index, work
        self.shapes = [leaf for _, leaf in call.instruction.shape.leaves()]
        self.parts = {name: self._home(array) for name, array in call.arrays.items()}

    def _part(self, array: Array, shape: Shape, argument: int) -> Part:
        """The part of a kernel argument that holds an array for this batch element."""
        batch = len(self.index)
        place: Number = 0
        for position, stride in zip(self.index, shape.strides[:batch], strict=True):
            place = self.frame.add(place, self.frame.times(position, stride))
        pointer = self.frame.offset(self.frame.argument(argument), place, array.dtype.bytes)
        return Part(pointer, argument, array.dtype, array.dims, strides_of(shape, batch, array.turned))

    def operand(self, array: Array) -> Part:
        assert array.operand is not None
        shape = self.call.instruction.operands[array.operand].shape
        return self._part(array, shape, self.frame.request.operands[array.operand])

    def result(self, array: Array) -> Part:
        assert array.leaf is not None
        return self._part(array, self.shapes[array.leaf], self.frame.request.results[array.leaf])

    def _home(self, array: Array) -> Part:
        """The memory that an array is in during the call: the work space, a result or an operand."""
        if array.scratch is not None:
            pointer = self.frame.offset(self.work, array.scratch, 1)
            return Part(pointer, -1, array.dtype, array.dims, dense(array.dims))
        part = self.result(array) if array.leaf is not None else self.operand(array)
        return replace(part, strides=dense(array.dims)) if array.size else part

    # --- the steps ---------------------------------------------------------------------------------------------------

    def fetch(self) -> None:
        """Copy in the operands that the routine overwrites or that it needs in another layout."""
        for name, array in self.call.arrays.items():
            if array.operand is not None and (array.leaf is not None or array.scratch is not None):
                self.frame.copy(self.operand(array), self.parts[name])

    def deliver(self) -> None:
        """Copy results from the work space to the kernel's results."""
        for name, array in self.call.arrays.items():
            if array.leaf is not None and array.scratch is not None:
                self.frame.copy(self.parts[name], self.result(array))

    def run(self) -> None:
        arguments = [self._value(a) for a in self.call.routine.call]
        letters = sum(isinstance(a, Character) for a in self.call.routine.call)
        types = [POINTER] * len(arguments) + [I64] * letters  # Fortran passes the length of each string last
        function = self.frame.declare(self.call.symbol, VOID, types)
        self.frame.b.call(function, [*arguments, *[I64(1)] * letters])

    def _value(self, argument: Argument) -> ir.Value:
        frame, options = self.frame, self.call.options
        match argument:
            case Address(array, skipped):
                part = self.parts[array]
                return frame.offset(part.pointer, skipped, part.dtype.bytes) if skipped else part.pointer
            case Dimension(what, array):
                return frame.integer(_SIZES[what](self.parts[array]))
            case Character(option):
                return frame.character(str(options[option]))
            case Integer(option):
                return frame.integer(int(options[option]))
            case Fixed.ONE:
                return frame.one(self.call.dtype)
            case Fixed.NULL:
                return ir.Constant(POINTER, None)

    @property
    def is_empty(self) -> bool:
        """Whether the matrix has no elements, so that there is nothing to compute."""
        return any(not self.parts[name].size for name in ("A", "X", "C") if name in self.parts)

    def unwritten(self) -> list[str]:
        """Names of result leaves that the routine does not write; they become zero."""
        own = [a.name for a in self.call.arrays.values() if a.leaf is not None and a.operand is None]
        if self.is_empty:
            return own
        options = self.call.options
        return [name for name in own if name in _SWITCH and options.get(_SWITCH[name], "V") == "N"]

    def info(self) -> ir.Value:
        return self.frame.load(self.parts["info"].pointer, I32)

    def fill(self, name: str, value: float) -> None:
        """Set every element of a dense array to a number; imaginary parts become zero."""
        part, real = self.parts[name], FLOATS[self.call.dtype.component]
        step = 2 if part.dtype.is_complex else 1
        with self.frame.loop(part.size) as index:
            for n in range(step):
                place = self.frame.add(self.frame.times(index, step), n)
                number = real(value if n == 0 else 0.0)
                self.frame.store(number, self.frame.offset(part.pointer, place, part.dtype.component.bytes))


_SWITCH = {"U": "mode", "VT": "mode", "VS": "mode", "VL": "compute_left", "VR": "compute_right"}
"""Result → the option that is N if the result is not wanted."""

_SIZES: dict[str, Callable[[Part], int]] = {
    "rows": lambda part: part.dims[0],
    "cols": lambda part: part.dims[-1],
    "size": lambda part: part.size,
    "ld": lambda part: max(part.dims[0], 1),
}


def emit_lapack(frame: Frame) -> None:
    call = lapack_call(frame.request.instruction)
    assert call is not None
    work = frame.work_space(call.scratch)

    def one(index: list[Number]) -> None:
        wrapper = Wrapper(frame, call, index, work)
        wrapper.fetch()
        for array in wrapper.unwritten():
            frame.zero(wrapper.parts[array])
        if not wrapper.is_empty:
            RUN.get(call.routine.name, Wrapper.run)(wrapper)
            FINISH.get(call.instruction.opcode, _nothing)(wrapper)
        wrapper.deliver()

    frame.nest(call.batch, one)


def _nothing(_: Wrapper) -> None:
    pass


# --- what jaxlib does besides ----------------------------------------------------------------------------------------


def _geev(w: Wrapper) -> None:
    """As jaxlib: if the matrix holds an infinity or a NaN, LAPACK is not called, info is -4 and all other results are
    0.
    """
    f = w.frame
    for name in w.call.routine.results:
        f.zero(w.parts[name])
    f.store(I32(-4), w.parts["info"].pointer)
    with f.when(_is_finite(w, "X")):
        w.run()
        if not w.call.dtype.is_complex:
            for vectors, packed, option in (("VL", "L", "compute_left"), ("VR", "R", "compute_right")):
                if w.call.options[option] == "V":
                    _unpack(w, vectors, packed)


def _is_finite(w: Wrapper, name: str) -> ir.Value:
    """Whether a dense array holds no infinity and no NaN: the sum of 0·x is NaN exactly if it does."""
    f, part = w.frame, w.parts[name]
    real, size = FLOATS[part.dtype.component], part.dtype.component.bytes
    total = f.stack(size)
    f.store(real(0.0), total)
    with f.loop(part.size * part.dtype.bytes // size) as index:
        product = f.b.fmul(f.load(f.offset(part.pointer, index, size), real), real(0.0))
        f.store(f.b.fadd(f.load(total, real), product), total)
    found = f.load(total, real)
    return f.b.fcmp_ordered("ord", found, found)


def _unpack(w: Wrapper, vectors: str, packed: str) -> None:
    """Unpack LAPACK's real form of complex eigenvectors.

    A conjugate pair of eigenvalues has two columns: real and imaginary part of the vector whose eigenvalue has im > 0.
    """
    f, source, target = w.frame, w.parts[packed], w.parts[vectors]
    real, size = FLOATS[source.dtype], source.dims[0]
    zero = real(0.0)
    with f.loop(size) as j, f.loop(size) as row:
        im = f.load(f.at(w.parts["wi"], [j]), real)
        column = f.value(j)
        second = f.b.and_(f.b.fcmp_ordered("<", im, zero), f.b.icmp_signed(">", column, I64(0)))
        first = f.b.and_(f.b.fcmp_ordered(">", im, zero), f.b.icmp_signed("<", column, I64(size - 1)))
        left = f.b.select(second, f.b.sub(column, I64(1)), column)
        right = f.b.select(first, f.b.add(column, I64(1)), column)
        x, y = (f.load(f.at(source, [row, c]), real) for c in (left, right))
        y = f.b.select(second, f.b.fneg(y), f.b.select(first, y, zero))
        place = f.at(target, [row, j])
        f.store(x, place)
        f.store(y, f.offset(place, 1, source.dtype.bytes))


RUN: dict[str, Callable[[Wrapper], None]] = {"geev": _geev}
"""Routines that need more than one call."""

# --- what HLO's own ops want besides ---------------------------------------------------------------------------------


def _cholesky(w: Wrapper) -> None:
    """Zero the other triangle. Fill with NaN if the matrix was not positive definite or held a NaN."""
    f, part = w.frame, w.parts["A"]
    size = part.dims[0]
    if not size:
        return
    lower = w.call.options["uplo"] == "L"
    real = FLOATS[w.call.dtype.component]
    zero = ir.VectorType(I64, 2) if part.dtype.bytes == 16 else ir.IntType(8 * part.dtype.bytes)
    with f.loop(size) as column, f.loop(size) as row:
        beside = f.b.icmp_signed("<" if lower else ">", f.value(row), f.value(column))
        with f.when(beside):
            f.store(ir.Constant(zero, None), f.at(part, [row, column]))
    last = f.load(f.at(part, [size - 1, size - 1]), real)
    failed = f.b.or_(f.b.icmp_signed("!=", w.info(), I32(0)), f.b.fcmp_unordered("uno", last, last))
    with f.when(failed):
        w.fill("A", float("nan"))


def _triangular_solve(w: Wrapper) -> None:
    """Fill the result with NaN if the diagonal contains a zero."""
    f, part = w.frame, w.parts["A"]
    if w.call.options["diag"] == "U" or not part.size or not w.parts["C"].size:
        return
    real = FLOATS[w.call.dtype.component]
    found = f.stack(1)
    f.store(ir.IntType(1)(0), found)
    with f.loop(part.dims[0]) as k:
        place = f.at(part, [k, k])
        zero = f.b.fcmp_ordered("==", f.load(place, real), real(0.0))
        if part.dtype.is_complex:
            imaginary = f.load(f.offset(place, 1, part.dtype.component.bytes), real)
            zero = f.b.and_(zero, f.b.fcmp_ordered("==", imaginary, real(0.0)))
        with f.when(zero):
            f.store(ir.IntType(1)(1), found)
    with f.when(f.load(found, ir.IntType(1))):
        w.fill("C", float("nan"))


FINISH: dict[Op, Callable[[Wrapper], None]] = {
    Op.CHOLESKY: _cholesky,
    Op.TRIANGULAR_SOLVE: _triangular_solve,
}
