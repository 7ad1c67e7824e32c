"""Calls of libraries where floats stand for elements of Z_p: each is one function that is known by its name only.

An element of a result is drawn from the call, the element's place, and every element of all operands. So a call on
equal operands is equal, and one wrong element of an operand changes all results.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..hlo.dtypes import DType
from ..hlo.ir import Instruction
from ..hlo.library.calls import lapack_call
from ..hlo.opcodes import Op
from ..hlo.shapes import Shape
from .elements import U64, Array, Elements
from .reference import lapack
from .reference.context import Context, Value
from .reference.control import custom_call
from .reference.custom_calls import TARGETS

GOLDEN, SPREAD = U64(0x9E3779B97F4A7C15), U64(0xBF58476D1CE4E5B9)

CALLS = {
    Op.CHOLESKY: ("lower",),
    Op.CUSTOM_CALL: ("custom_call_target", "backend_config", "opaque"),
    Op.FFT: ("fft_type", "fft_length"),
    Op.TRIANGULAR_SOLVE: ("left_side", "lower", "unit_diagonal", "transpose_a"),
}
"""Opcodes of calls → the attributes that say which function it is."""

INFO = "info"
"""LAPACK's name of the result that tells of success; it is 0 here, so that programs go on with the others."""


def is_library_call(i: Instruction) -> bool:
    """Whether an instruction is one function of its operands here. Other custom calls move elements, or annotate."""
    if i.opcode is not Op.CUSTOM_CALL:
        return i.opcode in CALLS
    target = i.attributes["custom_call_target"]
    return target in lapack.TARGETS or target not in TARGETS


def library_results(e: Elements, i: Instruction, operands: Sequence[Array]) -> list[Array]:
    """The leaves of the result."""
    start = zlib.crc32(repr((i.opcode.value, *(i.attributes.get(name) for name in CALLS[i.opcode]))).encode())
    with np.errstate(over="ignore"):
        state: Array = np.asarray(U64(e.seed) * GOLDEN + U64(start))
        for x in operands:
            state = _mixed(state + _sum_of_places(_words(e, x)))
        call = lapack_call(i)
        names = call.routine.results if call is not None else ()
        leaves = []
        for number, shape in enumerate(s for _, s in i.shape.leaves() if s.is_array):
            words = _mixed(_mixed(state + U64(number + 1)) + np.arange(shape.size, dtype=U64).reshape(shape.dims))
            zero = number < len(names) and names[number] == INFO
            leaves.append(np.zeros(shape.dims, shape.dtype.numpy) if zero else _drawn(e, words, shape.dtype))
    return leaves


def library_rule(e: Elements) -> Callable[..., Value]:
    """The rule of such opcodes; a custom call that is no function of a library keeps its own."""

    def run(i: Instruction, operands: Sequence[Value], context: Context) -> Value:
        if not is_library_call(i):
            return custom_call(i, operands, context)
        arrays = [x for o in operands for x in _leaves(o)]
        return _nested(i.shape, iter(library_results(e, i, arrays)))

    return run


def _leaves(value: Value) -> list[Array]:
    if isinstance(value, tuple):
        return [x for v in value for x in _leaves(v)]
    return [] if value is None else [value]


def _nested(shape: Shape, leaves: Iterator[Array]) -> Value:
    if shape.is_tuple:
        return tuple(_nested(s, leaves) for s in shape.elements)
    return next(leaves) if shape.is_array else None


def _mixed(state: Array | U64) -> Array:
    state = np.asarray(state * GOLDEN, U64)
    state = (state ^ state >> U64(31)) * SPREAD
    return np.asarray(state ^ state >> U64(29))


def _sum_of_places(words: Array) -> Array:
    """One word of many, each of which counts with its place."""
    flat = words.reshape(-1)
    return _mixed(_mixed(flat) + np.arange(flat.size, dtype=U64)).sum(dtype=U64)


def _words(e: Elements, x: Array) -> Array:
    """Words that are equal where elements are; a row of two for a complex number."""
    if x.dtype.kind == "c":
        return np.stack([_words(e, x.real), _words(e, x.imag)], -1)
    if x.dtype.kind in "iub" or "int" in x.dtype.name:
        return (x if x.dtype.kind in "iub" else x.astype(np.int8)).astype(np.int64).view(U64)
    wide = x.astype(np.float64)
    special = np.where(np.isnan(wide), -1, np.where(wide > 0, -2, -3)).astype(np.int64).view(U64)
    return np.where(np.isfinite(wide), e.read(np.where(np.isfinite(wide), x, 0).astype(x.dtype)), special)


def _drawn(e: Elements, words: Array, dtype: DType) -> Array:
    """Elements of words. Integers lie between 1 and the size of their row, as pivots do."""
    if dtype.is_complex:
        real, imaginary = (_drawn(e, _mixed(words + U64(n)), dtype.component) for n in (1, 2))
        return (real + 1j * imaginary).astype(dtype.numpy)
    if dtype.is_float:
        return e.write(words % U64(e.prime), dtype.numpy)
    most = words.shape[-1] if words.ndim else 1
    return (words % U64(max(most, 1)) + U64(1)).astype(np.int64).astype(dtype.numpy)
