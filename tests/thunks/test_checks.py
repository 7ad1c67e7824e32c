"""Thunks that check memory: what they note, on every type, interpreted and compiled."""

import itertools

import numpy as np
import pytest

from ...codegen.load import load
from ...codegen.options import EmitOptions
from ...hlo.dtypes import COMPLEX, FLOAT, DType
from ...planning.plan import BufferSlice
from ...thunks import SequentialThunk
from ...thunks.check_log import log_of
from ...thunks.checks import format_of
from ...thunks.executor import Executor
from ...thunks.host_build import build_host, module_of
from ...thunks.host_program import host_program_of
from ...thunks.kinds import ChecksumThunk, CompareThunk, FillThunk, NanThunk, ZoneThunk

KINDS = ("interpreted", "compiled")


def run(kind, arrays, *thunks):
    """What the thunks note: (id, number, second) each."""
    root = SequentialThunk(thunks)
    program = None
    if kind == "compiled":
        options = EmitOptions.host()
        code = load([build_host(module_of(root, options), options, None).data])
        program = host_program_of(root, code, None)
        assert program is not None
    executor = Executor(root, {}.__getitem__, (), program=program)
    frame = executor.frame(np.array([a.ctypes.data for a in arrays], np.uint64))
    frame.run()
    log, events = log_of(root), frame.events.taken()
    log.add(events.marks, events.times, events.lost)
    return [(f.thunk.id, f.number, f.second) for f in log.findings().found]


def whole(number, array):
    return BufferSlice(number, 0, array.nbytes)


def floats():
    return sorted((d for d in FLOAT if format_of(d).last), key=lambda d: d.value)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", floats(), ids=lambda d: d.value)
def test_the_first_nan_and_the_first_infinity_of_each_type(dtype, kind):
    width = dtype.numpy.itemsize
    given = (
        np.arange(256, dtype=np.uint8) if width == 1 else np.float32([1, -2, 0, -np.inf, 3, np.inf, np.nan, 4, np.nan])
    )
    array = given.view(dtype.numpy) if width == 1 else given.astype(dtype.numpy)
    values = array.astype(np.float64)
    nan, special = np.flatnonzero(np.isnan(values)), np.flatnonzero(~np.isfinite(values))
    thunks = [NanThunk("x", n, whole(0, array), dtype.value, bool(n)) for n in (0, 1)]
    bits = array.view(f"u{width}")
    wanted = [(0, nan[0], bits[nan[0]]), (1, special[0], bits[special[0]])]
    assert run(kind, [array], *thunks) == wanted
    clean = array[: special[0]].copy()
    thunks = [NanThunk("x", n, whole(0, clean), dtype.value, bool(n)) for n in (0, 1)]
    assert run(kind, [clean], *thunks) == []


@pytest.mark.parametrize("dtype", sorted(COMPLEX, key=lambda d: d.value), ids=lambda d: d.value)
def test_a_nan_in_either_part_of_a_complex_number(dtype):
    array = np.array([1, 2 + 1j, complex(3, np.nan)], dtype.numpy)
    ((_, place, _),) = run("compiled", [array], NanThunk("x", 0, whole(0, array), dtype.value, False))
    assert place // format_of(dtype).parts == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_checksum_tells_order_length_and_each_bit(kind):
    base = np.arange(37, dtype=np.uint8)
    others = [base[:36], base[::-1], np.append(base, np.uint8(0)), np.roll(base, 8)]
    others += [base ^ (np.arange(37) == n).astype(np.uint8) << np.uint8(b) for n in range(37) for b in (0, 7)]
    arrays = [np.ascontiguousarray(a) for a in (base, base.copy(), *others)]
    sums = [n for _, n, _ in run(kind, arrays, *(ChecksumThunk("x", n, whole(n, a)) for n, a in enumerate(arrays)))]
    assert sums[0] == sums[1] and len(set(sums)) == len(sums) - 1


@pytest.mark.parametrize("kind", KINDS)
def test_guard_bytes_are_found_again_unless_one_changed(kind):
    for place in (None, 0, 99, 199):
        zone, patch = np.zeros(200, np.uint8), np.zeros(1, np.uint8)
        thunks = [FillThunk("f", whole(0, zone), 5), ZoneThunk("z", 0, whole(0, zone), 5)]
        assert run(kind, [zone], *thunks) == []
        if place is not None:
            zone[place] ^= 0x10
            assert run(kind, [zone, patch], thunks[1]) == [(0, place, 0)]


def compared(kind, a, b, dtype, steps, scaled):
    flag = np.full(1, 9, np.uint8)
    thunk = CompareThunk("x", 0, whole(0, a), whole(1, b), dtype.value, steps, scaled, BufferSlice(2, 0, 1))
    found = run(kind, [a, b, flag], thunk)
    assert flag[0] == bool(found)
    return found[0][1:] if found else None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.F16, DType.BF16, DType.F8E5M2], ids=lambda d: d.value)
def test_floats_differ_by_steps_or_by_a_part_of_the_largest(dtype, kind):
    width = dtype.numpy.itemsize
    b = np.array([1, 2, -4, np.nan, np.inf], np.float32).astype(dtype.numpy)
    near = (b.view(f"u{width}") + np.array([0, 2, 2, 0, 0], f"u{width}")).view(dtype.numpy)
    assert compared(kind, near, b, dtype, 2, 0) is None
    assert compared(kind, near, b, dtype, 1, 0) == (1, 2)
    assert compared(kind, near, b, dtype, 0, 0) == (1, 2)
    if format_of(dtype).code:
        assert compared(kind, near, b, dtype, 0, 4) is None  # the largest is 4, where a step is 4 of those at 1
        assert compared(kind, near, b, dtype, 0, 1) == (2, 1)
    for wrong in ([1, 2, -4, np.nan, -np.inf], [1, 2, -4, 0, np.inf], [np.nan, 2, -4, np.nan, np.inf]):
        a = np.array(wrong, np.float32).astype(dtype.numpy)
        place = int(np.flatnonzero(a.view(f"u{width}") != b.view(f"u{width}"))[0])
        assert compared(kind, a, b, dtype, 1000, 1000) == (place, 1)


@pytest.mark.parametrize("dtype", [DType.S8, DType.U16, DType.S32, DType.U64, DType.PRED], ids=lambda d: d.value)
def test_what_is_no_float_must_be_equal(dtype):
    b = np.array([1, 0, 1, 1], dtype.numpy)
    for place in range(4):
        a = b.copy()
        a[place] = 1 - a[place]
        assert compared("compiled", a, b, dtype, 9, 9) == (place, 1)
    assert compared("compiled", b.copy(), b, dtype, 0, 0) is None


def test_a_nan_of_any_bits_is_any_other():
    a, b = np.uint32([0x7FC00000, 0x7F800001]), np.uint32([0xFFC00001, 0xFFFFFFFF])
    assert compared("interpreted", a, b, DType.F32, 0, 0) is None


def test_across_zero_steps_add_up():
    tiny = np.float32(1e-45)
    for steps, (left, right) in itertools.product((1, 2, 3), [(tiny, -tiny), (-tiny, tiny)]):
        found = compared("interpreted", np.array([left]), np.array([right]), DType.F32, steps, 0)
        assert (found is None) == (steps >= 2)
