"""Thunks that look at memory, as calls of native functions: kind → function, arguments. Both executors make the calls.

What a check finds goes where events of a profile go (events.py): twice its id and a number; for a second number the
mark is one more. Nothing is noted where nothing is found.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..hlo.dtypes import BY_NAME, DType
from ..hlo.later import np
from ..hlo.records import dataclass
from ..planning.allocation import BufferSlice
from .kinds import Check, ChecksumThunk, CompareThunk, FillThunk, NanThunk, ZoneThunk

if TYPE_CHECKING:
    from ..codegen.load import LoadedCode

EVENTS = object()
"""Stands for the address of the buffer of events among a call's arguments."""

Argument = int | BufferSlice | object


@dataclass(frozen=True, slots=True)
class Call:
    """A native function and its arguments, which it gets as pointers: numbers, addresses of slices, EVENTS."""

    function: str
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class Format:
    """How to read a type's elements. width: bytes of a part. parts: 2 for complex numbers, else 1.

    mask: what is left of a part's bits without the sign; 0 for types that are no floats. infinity: the bits of
    infinity, or of the first NaN; first, last: those of NaN (after the mask). 0 and 0: there is none.
    code: the row of CODES, for those that become f64; 0 for others. step: the relative distance of two values, as f64.
    """

    width: int
    parts: int
    mask: int
    infinity: int
    first: int
    last: int
    code: int
    step: float


CODES = {DType.F32: 1, DType.F64: 2, DType.BF16: 3, DType.F16: 4}
"""Types that check_code.py converts to f64."""


@functools.cache
def format_of(dtype: DType) -> Format:
    """The format of an array's type."""
    part = dtype.component if dtype.is_complex else dtype
    width, parts = part.numpy.itemsize, 2 if dtype.is_complex else 1
    if not part.is_float:
        return Format(width, parts, 0, 0, 0, 0, 0, 0.0)
    if width == 1:
        return _narrow(part)
    mask = (1 << (8 * width - 1)) - 1
    infinity = int(np.array(np.inf, part.numpy).view(f"u{width}"))
    step = float(np.nextafter(np.array(1, part.numpy), np.array(2, part.numpy)).astype(np.float64)) - 1
    return Format(width, parts, mask, infinity, infinity + 1, mask, CODES[part], step)


def _narrow(dtype: DType) -> Format:
    """By a look at all 256 bit patterns: some types have no infinities, one NaN, or no sign."""
    values = np.arange(256, dtype=np.uint8).view(dtype.numpy).astype(np.float32)
    nans, infinities = np.flatnonzero(np.isnan(values)), np.flatnonzero(np.isinf(values))
    signless = dtype is DType.F8E8M0FNU or list(nans) == [0x80]
    mask = 0xFF if signless else 0x7F
    kept = [n for n in nans.tolist() if n <= mask]
    first, last = (kept[0], kept[-1]) if kept else (0, 0)
    return Format(1, 1, mask, int(infinities.min(initial=first)) if len(infinities) else first, first, last, 0, 0.0)


def _checksum(t: ChecksumThunk) -> Call:
    return Call("testbed_checksum", (EVENTS, 2 * t.id, t.slice, t.slice.size))


def _nan(t: NanThunk) -> Call:
    f = format_of(BY_NAME[t.dtype])
    first = f.infinity if t.infinities else f.first
    return Call("testbed_find", (EVENTS, 2 * t.id, t.slice, t.slice.size // f.width, f.width, f.mask, first, f.last))


def _fill(t: FillThunk) -> Call:
    return Call("testbed_fill", (t.slice, t.slice.size, t.seed))


def _zone(t: ZoneThunk) -> Call:
    return Call("testbed_zone", (EVENTS, 2 * t.id, t.slice, t.slice.size, t.seed))


def _compare(t: CompareThunk) -> Call:
    f = format_of(BY_NAME[t.dtype])
    allowed = int(np.float64(t.scaled * f.step).view(np.uint64))
    mask = 0 if f.mask == 0xFF else f.mask  # steps are counted from zero on, in types with a sign bit
    rules = (f.width, mask, f.infinity, f.first, f.last, t.steps, f.code, allowed)
    places = (t.left, t.right, t.left.size // f.width)
    return Call("testbed_compare", (EVENTS, 2 * t.id, *places, *rules, t.flag))


CALLS: dict[type, Callable[[Any], Call]] = {
    ChecksumThunk: _checksum,
    NanThunk: _nan,
    FillThunk: _fill,
    ZoneThunk: _zone,
    CompareThunk: _compare,
}
"""Kind → its call. CHECK_IR defines the functions."""

FUNCTIONS = ("testbed_checksum", "testbed_find", "testbed_fill", "testbed_zone", "testbed_compare")


_LOCK = threading.Lock()
_loaded: LoadedCode | None = None


def call_of(thunk: Check) -> Call:
    return CALLS[type(thunk)](thunk)


def address_of(function: str) -> int:
    """The address of one of FUNCTIONS in this process."""
    from ..codegen.load import load
    from ..codegen.runtime import runtime_object
    from .check_code import CHECK_IR

    global _loaded
    with _LOCK:
        if _loaded is None:
            _loaded = load([runtime_object(CHECK_IR, lambda: CHECK_IR)])
        return _loaded.address(function)
