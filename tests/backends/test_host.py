"""backends/host: conversion of inputs and results, and memory that is never shared by mistake."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest

from ...backends.host import addresses
from ...backends.host.addresses import address_of, by_interface, by_layout, layout_is_known, reader
from ...backends.host.memory import BlockPool
from ...hlo.dtypes import DType
from ...hlo.errors import InputError
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import array
from ...planning.plan import AllocationKind, CopyStep
from ..support.hand_built import F32, Programs, X, Y, add_program, compiled


@pytest.fixture(scope="module")
def add():
    return compiled(add_program(F32))


def test_results_are_aligned_owned_and_right(add):
    (z,) = add.execute([X, Y])
    np.testing.assert_array_equal(z, X + Y)
    assert z.ctypes.data % 64 == 0 and z.flags.writeable and z.dtype == np.float32


def test_results_outlive_the_executable_and_are_not_reused_while_alive():
    executable = compiled(add_program(F32))
    kept = [executable.execute([X + i, Y])[0] for i in range(20)]
    views = [k[1:, ::2] for k in kept]
    addresses = {k.ctypes.data for k in kept}
    del executable, kept
    gc.collect()
    more = [np.full((3, 4), -1, np.float32) for _ in range(50)]
    assert len(addresses) == 20 and len(more) == 50
    for i, view in enumerate(views):
        np.testing.assert_array_equal(view, (X + i + Y)[1:, ::2])


def test_a_dead_result_is_recycled(add):
    (first,) = add.execute([X, Y])
    address = first.ctypes.data
    del first
    assert add.execute([X, Y])[0].ctypes.data == address


@pytest.mark.parametrize(
    "make",
    [
        lambda x: np.asfortranarray(x),
        lambda x: np.repeat(x, 2, axis=1)[:, ::2],
        lambda x: x[::-1][::-1],
        lambda x: x.astype(">f4"),
        lambda x: np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape),
        lambda x: np.broadcast_to(x, (2, 3, 4))[1],
        lambda x: x.tolist() and memoryview(np.ascontiguousarray(x)),
    ],
    ids=["fortran", "strided", "negative strides", "big-endian", "unaligned", "read-only", "buffer"],
)
def test_inputs_in_any_form_are_taken(add, make):
    (z,) = add.execute([make(X), Y])
    np.testing.assert_array_equal(z, X + Y)


def test_a_fitting_input_is_not_copied(add):
    address, kept = add.inputs[0].address(X)
    assert kept is X and address == X.ctypes.data


@pytest.mark.parametrize(
    "inputs, message",
    [
        ([X], "the program takes 2 inputs, given 1 (it wants f32[3,4], f32[3,4])"),
        ([X, Y, Y], "the program takes 2 inputs, given 3 (it wants f32[3,4], f32[3,4])"),
        ([X, Y.astype(np.float64)], "input 1: expected f32[3,4], given f64[3,4] (convert it with .astype('float32'))"),
        ([X.reshape(4, 3), Y], "input 0: expected f32[3,4], given f32[4,3] (give an array of that shape)"),
        ([X, 1.5], "input 1: expected f32[3,4], given f64[] (give an array of that shape)"),
        ([X, np.array(["a"])], "input 1: expected f32[3,4], given <U1[1] (give an array of that shape)"),
    ],
)
def test_wrong_inputs_are_named(add, inputs, message):
    with pytest.raises(InputError) as caught:
        add.execute(inputs)
    assert str(caught.value) == message


def test_outputs_are_written_where_the_caller_says(add):
    (old,) = add.execute([X, Y])
    (new,) = add.execute([Y, Y], outputs=[old])
    assert new is old
    np.testing.assert_array_equal(old, Y + Y)


def test_wrong_outputs_are_refused(add):
    (out,) = add.execute([X, Y])
    (inside,) = add.execute([X, Y])
    frozen = add.execute([X, Y])[0]
    frozen.flags.writeable = False
    cases = [
        ([], "returns 1 outputs, given 0 arrays"),
        ([out.astype(np.float64)], "output 0: expected f32[3,4], given f64[3,4]"),
        ([out.T], "output 0: expected f32[3,4], given f32[4,3]"),
        ([frozen], "not a writeable contiguous array"),
        ([np.empty(13, np.float32)[1:].reshape(3, 4)], "64-byte boundary"),
    ]
    for outputs, words in cases:
        with pytest.raises(InputError, match=words.replace("[", r"\[")):
            add.execute([X, Y], outputs=outputs)
    with pytest.raises(InputError, match="output 0 overlaps input 1"):
        add.execute([X, inside], outputs=[inside])


def test_overlaps_are_refused_however_many_arrays_there_are():
    size = F32.bytes
    p = Programs(F32, [F32, F32])
    outs = [p.add(AllocationKind.RESULT, n, F32) for n in range(2)]
    steps = [p.kernel("add", Op.ADD, [0, 1], [outs[0]]), p.kernel("multiply", Op.MULTIPLY, [0, 1], [outs[1]])]
    executable = compiled(p.plan(steps, 2))
    block = BlockPool().allocate(8 * 64)
    a, b, c, d = (block[n : n + size].view(np.float32).reshape(3, 4) for n in (0, 64, 128, 192))
    a[...], b[...] = X, Y
    executable.execute([a, b], outputs=[c, d])
    np.testing.assert_array_equal(d, X * Y)
    executable.execute([a, a], outputs=[c, d])  # two inputs may be the same array
    np.testing.assert_array_equal(c, X + X)
    half = block[32 : 32 + size].view(np.float32).reshape(3, 4)
    for inputs, outputs, message in [
        ([a, b], [c, c], "output 1 overlaps output 0"),
        ([c, b], [c, d], "output 0 overlaps input 0"),
        ([a, half], [d, a], "output 1 overlaps input 0"),
        ([half, b], [b, d], "output 0 overlaps input"),
        ([half, d], [a, c], "output 0 overlaps input 0"),
    ]:
        for _ in range(2):
            with pytest.raises(InputError, match=message):
                executable.execute(inputs, outputs=outputs)
    executable.execute([a, b], outputs=[c, d])
    np.testing.assert_array_equal(c, X + Y)


def test_arrays_that_move_between_runs_are_found_again(add):
    x = np.array(X)
    (out,) = add.execute([x, Y])
    for n in range(6):
        x = np.array(X) * n if n % 2 else x
        x += 1
        for outputs in (None, [out]):
            (z,) = add.execute([x, Y], outputs)
            np.testing.assert_array_equal(z, x + Y)
    x.resize((6, 4), refcheck=False)
    x.resize((3, 4), refcheck=False)
    np.testing.assert_array_equal(add.execute([x, Y], [out])[0], x + Y)


def test_addresses_are_read_from_the_object_of_the_pinned_numpy_only():
    assert reader() is by_layout
    assert not layout_is_known("pypy", np.__version__)
    assert not layout_is_known("cpython", "3.0.0")


def test_another_layout_is_noticed(monkeypatch):
    monkeypatch.setattr(addresses, "_HEAD", addresses._HEAD + 8)
    assert not layout_is_known("cpython", np.__version__)


def test_the_address_of_any_array_is_numpys_own():
    base = np.arange(60, dtype=np.int16)
    frozen = base.copy()
    frozen.setflags(write=False)
    half = np.zeros((2, 3), ml_dtypes.bfloat16)
    for a in (base, base[7:], base[::-3], base.reshape(5, 12).T[2:, 1:], frozen, half, half[1:], np.zeros((0, 3)),
              np.array(1.5), np.frombuffer(b"12345678", np.int32)):  # fmt: skip
        assert address_of(a) == by_interface(a) == a.ctypes.data


@pytest.mark.parametrize("value", [[[0.0] * 4] * 3, np.zeros((3, 4), ">f4")], ids=["list", "byte order"])
def test_an_output_that_only_looks_right_is_refused(add, value):
    with pytest.raises(InputError, match="output 0: "):
        add.execute([X, Y], outputs=[value])


def test_an_exception_in_a_run_gives_the_context_back(add):
    def fails(thunk, run):
        raise ZeroDivisionError("observer")

    add.execute([X, Y])
    kept = len(add._contexts)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            add.execute([Y, Y], observer=fails)
    assert len(add._contexts) == kept
    np.testing.assert_array_equal(add.execute([X, Y])[0], X + Y)


def test_results_outlive_the_executable_and_its_contexts():
    executable = compiled(add_program(F32))
    results = [executable.execute([np.full((3, 4), n, np.float32), Y])[0] for n in range(20)]
    rows = [r[1] for r in results]
    del executable, results
    gc.collect()
    compiled(add_program(F32)).execute([X, X])
    for n, row in enumerate(rows):
        np.testing.assert_array_equal(row, n + Y[1])


def test_threads_share_few_contexts_and_many_arrive_at_once(add):
    """More threads than kept contexts, so that contexts are taken and returned all the time."""
    start = threading.Barrier(16)

    def one(n):
        start.wait()
        return all((add.execute([np.full((3, 4), n, np.float32), Y])[0] == n + Y).all() for _ in range(200))

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(one, range(16)))
    assert len(add._contexts) <= 16


def test_one_executable_dropped_while_another_thread_runs_it():
    shape = array(DType.F32, 200_000)
    x = np.ones(200_000, np.float32)
    for _ in range(5):
        executable = compiled(add_program(shape))
        with ThreadPoolExecutor(2) as pool:
            futures = [pool.submit(lambda run: [run([x, x])[0] for _ in range(5)], executable.execute) for _ in "ab"]
            del executable
            assert all((z == 2).all() for f in futures for z in f.result())


def test_layouts_of_parameters_and_results_are_honoured():
    columns = F32.with_layout((0, 1))
    p = Programs(F32, [columns, columns])
    out = p.add(AllocationKind.RESULT, 0, columns)
    executable = compiled(p.plan([p.kernel("add", Op.ADD, [0, 1], [out])], 1))
    (z,) = executable.execute([X, Y])
    np.testing.assert_array_equal(z, X + Y)
    assert z.flags.f_contiguous and not z.flags.c_contiguous
    address, kept = executable.inputs[0].address(z)
    assert address == z.ctypes.data and np.shares_memory(kept, z)  # back in without a copy
    (again,) = executable.execute([X, X], outputs=[z])
    assert again is z
    np.testing.assert_array_equal(z, X + X)


def test_constants_temporaries_and_forwarded_results():
    p = Programs(F32, [F32], constants=[Y])
    temporary, out = p.add(AllocationKind.TEMPORARY), p.add(AllocationKind.RESULT, 0, F32)
    copied = p.add(AllocationKind.RESULT, 3, F32)
    root = Instruction(Op.COPY, "copy", F32)
    steps = [
        p.kernel("add", Op.ADD, [0, 1], [temporary]),
        p.kernel("multiply", Op.MULTIPLY, [temporary, 1], [out]),
        CopyStep(root, p.whole(0), p.whole(copied)),
    ]
    executable = compiled(p.plan(steps, 4, elsewhere=[(1, 0), (2, 1)]))
    z, x, y, x2 = executable.execute([X])
    for actual, expected in [(z, (X + Y) * Y), (x, X), (y, Y), (x2, X)]:
        np.testing.assert_array_equal(actual, expected)
    x[...] = 0
    y[...] = 0
    assert not np.shares_memory(x, X)
    np.testing.assert_array_equal(executable.execute([X])[0], (X + Y) * Y)


def test_empty_arrays_and_scalars():
    for shape in (array(DType.F32), array(DType.F32, 1, 1)):
        (z,) = compiled(add_program(shape)).execute(
            [np.full(shape.dims, 1, np.float32), np.full(shape.dims, 2, np.float32)]
        )
        assert z.shape == shape.dims and z == 3 and isinstance(z, np.ndarray)
    empty = array(DType.BF16, 0, 5)
    p = Programs(empty, [empty])
    p.add(AllocationKind.RESULT, 0, empty)
    (z,) = compiled(p.plan([], 1)).execute([np.zeros((0, 5), ml_dtypes.bfloat16)])
    assert z.shape == (0, 5) and z.dtype == ml_dtypes.bfloat16


def test_threads_execute_at_once_each_in_its_own_arena():
    shape = array(DType.F32, 50_000)
    p = Programs(shape, [shape])
    a, b, out = p.add(AllocationKind.TEMPORARY), p.add(AllocationKind.TEMPORARY), p.add(AllocationKind.RESULT, 0, shape)
    steps = [p.kernel("k0", Op.ADD, [0, 0], [a])]
    for i in range(10):
        steps += [p.kernel(f"k{2 * i + 1}", Op.ADD, [a, 0], [b]), p.kernel(f"k{2 * i + 2}", Op.ADD, [b, 0], [a])]
    executable = compiled(p.plan([*steps, p.kernel("last", Op.ADD, [a, 0], [out])], 1))
    start = threading.Barrier(4)

    def one(n):
        start.wait()
        return all(
            (executable.execute([np.full(50_000, n + i, np.float32)])[0] == 23 * (n + i)).all() for i in range(30)
        )

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(one, range(4)))
