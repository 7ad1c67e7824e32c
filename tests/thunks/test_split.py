"""Kernels that take ranges: records, bodies and text; scratch memory, control flow, observers and stops."""

from dataclasses import replace

import numpy as np
import pytest

from ...codegen.load import load
from ...codegen.optimize import compile_object
from ...codegen.options import EmitOptions
from ...codegen.threads import set_threads, threads
from ...hlo.errors import ParseError, VerificationError
from ...planning.plan import Allocation, AllocationKind, BufferSlice
from ...thunks import CopyThunk, KernelThunk, SequentialThunk, Split, WhileThunk, read, to_text, write
from ...thunks.executor import Executor
from ...thunks.image import Kernel, KernelArgument
from ...thunks.kinds import CHUNKS
from ...thunks.parse import from_text
from ...thunks.verify import verify_thunks
from ..support.thunk_kernels import KINDS, executor_of

KERNELS = """
define void @rows(ptr %in, ptr %out, ptr %scratch, i64 %begin, i64 %end) { ; out[i] += in[i], through scratch
entry:
  br label %head
head:
  %i = phi i64 [ %begin, %entry ], [ %next, %body ]
  %more = icmp ult i64 %i, %end
  br i1 %more, label %body, label %done
body:
  %from = getelementptr i32, ptr %in, i64 %i
  %x = load i32, ptr %from
  store volatile i32 %x, ptr %scratch
  %to = getelementptr i32, ptr %out, i64 %i
  %y = load i32, ptr %to
  %kept = load volatile i32, ptr %scratch
  %z = add i32 %kept, %y
  store i32 %z, ptr %to
  %next = add i64 %i, 1
  br label %head
done:
  ret void
}
define void @count(ptr %counter, ptr %predicate) { ; five rounds
  %x = load i32, ptr %counter
  %y = add i32 %x, 1
  store i32 %y, ptr %counter
  %z = icmp sle i32 %y, 5
  %w = zext i1 %z to i8
  store i8 %w, ptr %predicate
  ret void
}
"""


@pytest.fixture(autouse=True)
def number_of_threads():
    before = threads()
    yield
    set_threads(before)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def code():
    return load([compile_object(KERNELS, EmitOptions.host(), cache=None)])


def part(allocation, array):
    return BufferSlice(allocation, 0, array.nbytes)


def program(split, *arrays):
    source, out, scratch, counter, predicate = (part(n, a) for n, a in enumerate(arrays))
    rows = KernelThunk("rows", "rows", (read(source), write(out), write(scratch)), split)
    count = KernelThunk("count", "count", (write(counter), write(predicate)))
    loop = WhileThunk("loop", SequentialThunk((count,)), SequentialThunk((rows,)), predicate)
    return SequentialThunk((rows, loop, CopyThunk("copy", BufferSlice(1, 0, 4), BufferSlice(0, 0, 4)), rows))


def made(extent):
    source = np.arange(extent, dtype=np.int32) + 1
    return [source, np.zeros(extent, np.int32), np.zeros(16, np.int32), np.zeros(1, np.int32), np.zeros(1, np.uint8)]


@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("least", [1, 7, 100, 1000])
def test_all_steps_are_computed_once(kind, code, least, count, observed):
    set_threads(count)
    arrays = made(1000)
    root = program(Split(1000, least, private=64), *arrays)
    seen = []

    def observer(thunk, run):
        seen.append(thunk.name)
        run()

    executor = executor_of(kind, code, root, variable=range(5))
    bases = np.array([a.ctypes.data for a in arrays], np.uint64)
    executor.frame(bases, observer if observed else None).run()
    first = np.arange(1000) + 1
    expected = first * 7
    expected[0] = 6 + 6
    assert arrays[1].tolist() == expected.tolist()
    assert seen.count("rows") == (7 if observed else 0)


def test_a_stopped_run_ends_between_chunks(code):
    set_threads(2)
    arrays = made(1000)
    executor = Executor(program(Split(1000, 1, private=64), *arrays), code.address, variable=range(5))
    frame = executor.frame(np.array([a.ctypes.data for a in arrays], np.uint64))
    frame.stop()
    frame.run()
    assert not arrays[1].any()
    frame.stop(False)
    frame.run()
    assert arrays[1][5] == 7 * 6


@pytest.mark.parametrize(
    ("extent", "least", "chunk"), [(10, 3, 3), (64, 1, 1), (65, 1, 2), (1000, 64, 64), (9999, 64, 192)]
)
def test_chunks_are_multiples_of_the_least_and_not_too_many(extent, least, chunk):
    split = Split(extent, least)
    assert split.chunk == chunk and split.chunk % least == 0
    assert -(-extent // split.chunk) <= CHUNKS


def test_a_split_needs_steps():
    with pytest.raises(ValueError, match="a chunk has 0 steps"):
        Split(10, 0)
    with pytest.raises(ValueError, match="all have 4"):
        Split(4, 5)


def test_the_text_shows_the_split():
    kernel = KernelThunk("k", "f", (read(BufferSlice(0, 0, 8)),), Split(9999, 64))
    assert to_text(kernel) == "kernel k @f(read 0[0:8]) split 9999 by 64\n"
    whole = SequentialThunk((kernel, replace(kernel, split=Split(10, 1, 4096))))
    assert to_text(whole).splitlines()[2].endswith(" split 10 by 1 private 4096")
    assert from_text(to_text(whole)) == whole
    with pytest.raises(ParseError, match="a chunk has 0 steps or more"):
        from_text("sequence { kernel k @f() split 10 by 0 }")


@pytest.mark.parametrize(
    ("split", "taken", "complaint"),
    [
        (None, Split(9, 1), "f takes a range of steps"),
        (Split(9, 1), None, "f does not take a range of steps"),
        (Split(10, 1), Split(9, 1), "f is not split as its function is"),
        (Split(9, 1), Split(9, 3), "f is not split as its function is"),
        (Split(2**62, 1), Split(2**62, 1), f"{2**62} steps"),
        (Split(9, 1, 4096), Split(9, 1, 4096), "its last argument is no scratch memory of 4096 bytes"),
    ],
)
def test_what_a_run_relies_on_is_verified(split, taken, complaint):
    allocations = [Allocation(0, AllocationKind.RESULT, 8, 64, number=0)]
    thunk = KernelThunk("k", "f", (write(BufferSlice(0, 0, 8)),), split)
    kernel = Kernel("f", "legacy", (KernelArgument(8, 8, True),), taken)
    with pytest.raises(VerificationError, match=complaint):
        verify_thunks(SequentialThunk((thunk,)), allocations, [kernel])
    right = Split(9, 1, 8) if taken else None
    verify_thunks(SequentialThunk((replace(thunk, split=right),)), allocations, [replace(kernel, split=right)])
