"""backends/host: the native entry from Python: what it serves, what it leaves to the Python code, and what it keeps."""

import gc
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import testbed

from ...backends.host import entry, executable
from ...backends.host.entry import MOST_CONTEXTS, probe
from ...backends.host.entry_places import Layout
from ...backends.host.executable import HostExecutable
from ...backends.host.interruptible import SHORT
from ...backends.host.memory import POOL
from ..support.hand_built import F32, X, Y, add_program, compiled
from ..support.heap import bytes_in_use

pytestmark = pytest.mark.skipif(probe(HostExecutable, "_native") is None, reason="needs a Python that the entry knows")


def made(text, emitters="legacy"):
    """An executable that has run once: from then on the native functions serve it."""
    program = testbed.compile(text, emitters)
    program(*(np.zeros(leaf.dims, leaf.dtype) for leaf in program.inputs))
    return program


def served(program):
    return program._contexts.program.calls


ADD = """HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  y = f32[8] parameter(1)
  ROOT z = f32[8] add(x, y)
}"""
PAIR = """HloModule m
ENTRY e {
  x = f32[8] parameter(0)
  n = f32[8] negate(x)
  d = f32[8] add(x, x)
  ROOT t = (f32[8], f32[8]) tuple(n, d)
}"""
A, B = np.arange(8, dtype=np.float32), np.full(8, 2, np.float32)


@pytest.fixture(scope="module")
def add():
    return made(ADD)


@pytest.fixture(scope="module")
def pair():
    return made(PAIR)


# -- what it serves ---------------------------------------------------------------------------------------------------
def test_calls_are_served_and_results_are_right_aligned_and_owned(add):
    before, out = served(add), np.empty_like(add(A, B))
    out = add(A, B)
    recycled = add(B, B, out=out)
    (listed,) = add.execute([A, B])
    (written,) = add.execute((A, A), [recycled])
    assert served(add) - before == 5 and recycled is out and written is out
    np.testing.assert_array_equal(out, A + A)
    np.testing.assert_array_equal(listed, A + B)
    for z in (out, listed):
        assert type(z) is np.ndarray and z.ctypes.data % 64 == 0 and z.flags.carray and z.dtype == np.float32


def test_a_tuple_of_results_with_some_of_the_callers(pair):
    before, mine = served(pair), pair(A)[1]
    negated, doubled = pair(A, out=(None, mine))
    assert doubled is mine and served(pair) - before == 2
    np.testing.assert_array_equal(negated, -A)
    np.testing.assert_array_equal(doubled, A + A)
    listed = pair.execute([B], [None, mine])
    assert type(listed) is list and listed[1] is mine
    np.testing.assert_array_equal(listed[0], -B)


PROGRAMS = {
    "scalars": ("x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT r = f32[] multiply(x, y)", lambda x, y: x * y),
    "empty": ("x = bf16[0,5] parameter(0)\n ROOT r = bf16[0,5] negate(x)", lambda x: -x),
    "layout in": ("x = f32[3,4]{0,1} parameter(0)\n ROOT r = f32[3,4]{1,0} negate(x)", lambda x: -x),
    "layout out": ("x = f32[3,4]{1,0} parameter(0)\n ROOT r = f32[3,4]{0,1} negate(x)", lambda x: -x),
    "forwarded": (
        "x = f32[4] parameter(0)\n n = f32[4] negate(x)\n ROOT t = (f32[4], f32[4], f32[4]) tuple(x, n, x)",
        lambda x: (x, -x, x),
    ),
    "constant": (
        "x = s32[2] parameter(0)\n c = s32[2] constant({5, 6})\n ROOT t = (s32[2], s32[2]) tuple(c, x)",
        lambda x: (np.int32([5, 6]), x),
    ),
    "nested": (
        """x = f32[4] parameter(0)
        n = f32[4] negate(x)
        t = (f32[4]) tuple(n)
        ROOT r = (f32[4], (f32[4])) tuple(x, t)""",
        lambda x: (x, (-x,)),
    ),
    "nothing": ("x = f32[4] parameter(0)\n ROOT t = () tuple()", lambda x: ()),
    "no argument": ("c = f32[2] constant({1, 2})\n ROOT r = f32[2] add(c, c)", lambda: np.float32([2, 4])),
    "branches": (
        """p = pred[] parameter(0)
        x = f32[4] parameter(1)
        ROOT r = f32[4] conditional(p, x, x),
          true_computation={ a = f32[4] parameter(0)\n ROOT n = f32[4] negate(a) },
          false_computation={ a = f32[4] parameter(0)\n ROOT s = f32[4] sine(a) }""",
        lambda p, x: -x if p else np.sin(x),
    ),
}  # fmt: skip


def same(actual, expected):
    assert type(actual) is type(expected) or isinstance(actual, np.ndarray)
    if isinstance(expected, tuple):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected):
            same(a, e)
    else:
        np.testing.assert_allclose(np.float64(actual), np.float64(expected), rtol=1e-6)


@pytest.mark.parametrize("emitters", ["legacy", "mlir"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_many_forms(name, emitters):
    body, reference = PROGRAMS[name]
    program = made(f"HloModule m\nENTRY e {{ {body} }}", emitters)
    before, random = served(program), np.random.default_rng(0)
    for _ in range(3):
        arrays = []
        for leaf in program.inputs:
            array = np.empty(leaf.physical, leaf.dtype)
            array[...] = (
                random.integers(0, 2, leaf.physical) if leaf.dtype == bool else random.integers(1, 9, leaf.physical)
            )
            arrays.append(leaf.logical(array))
        same(program(*arrays), reference(*arrays))
    assert served(program) - before == 3


def test_an_input_with_the_programs_layout_is_served_another_is_copied():
    program = made("HloModule m\nENTRY e { x = f32[3,4]{0,1} parameter(0)\n ROOT r = f32[3,4]{0,1} negate(x) }")
    before, x = served(program), np.asfortranarray(X)
    z = program(x)
    assert z.flags.f_contiguous and served(program) - before == 1
    np.testing.assert_array_equal(z, -X)
    np.testing.assert_array_equal(program(X), -X)
    assert served(program) - before == 1
    (again,) = program.execute([x], [z])
    assert again is z and served(program) - before == 2


# -- what it leaves to the Python code --------------------------------------------------------------------------------
class Sub(np.ndarray):
    pass


def unaligned(x):
    return np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(x.shape)


OTHERS = {
    "strided": lambda x: np.repeat(x, 2)[::2],
    "reversed": lambda x: x[::-1].copy()[::-1],
    "byte order": lambda x: x.astype(">f4"),
    "unaligned": unaligned,
    "subclass": lambda x: x.view(Sub),
    "memoryview": memoryview,
    "named dtype": lambda x: x.view(np.dtype(np.float32, metadata={"a": 1})),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_forms_are_converted(add, name):
    np.testing.assert_array_equal(add(OTHERS[name](A), B), A + B)
    np.testing.assert_array_equal(add(B, y=OTHERS[name](A)), A + B)


def test_a_read_only_input_is_served(add):
    x, before = A.copy(), served(add)
    x.flags.writeable = False
    np.testing.assert_array_equal(add(x, np.frombuffer(A.tobytes(), np.float32)), A + A)
    assert served(add) - before == 1


WRONG = {
    "few": ((A,), {}, "'y' is missing|takes 2 arguments"),
    "many": ((A, B, B), {}, "takes 2 arguments"),
    "shape": ((A[:4], B), {}, r"argument x: expected f32\[8\], given f32\[4\]"),
    "rank": ((A.reshape(2, 4), B), {}, r"given f32\[2,4\]"),
    "dtype": ((A, B.astype(np.float64)), {}, r"argument y: expected f32\[8\], given f64\[8\]"),
    "none": ((A, None), {}, "takes 2 arguments|argument y"),
    "keyword": ((A,), {"z": B}, "no argument 'z' is left"),
    "out's dtype": ((A, B), {"out": np.empty(8)}, r"output 0: expected f32\[8\], given f64\[8\]"),
    "out's kind": ((A, B), {"out": [0.0] * 8}, "output 0: "),
    "out overlaps": ((A, B), {"out": A}, "output 0 overlaps input 0|boundary"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_are_those_of_the_python_code(add, name):
    arguments, named, message = WRONG[name]
    before = len(add._contexts)
    with pytest.raises(testbed.InputError, match=message):
        add(*arguments, **named)
    assert len(add._contexts) == before


def test_arrays_for_results_that_do_not_fit_are_refused(add, pair):
    frozen, x = add(A, B), add(A, B)
    frozen.flags.writeable = False
    block = POOL.allocate(256)
    at_four = block[4 : 4 + 32].view(np.float32)
    for out, message in [(frozen, "writeable"), (at_four, "64-byte boundary"), (x, "overlaps input 0"), (x[:4], "f32")]:
        with pytest.raises(testbed.InputError, match=message):
            add(x, B, out=out)
    for out, message in [((x, x), "output 1 overlaps output 0"), ((x,), "tuple of 2, given 1"), (x, "tuple of 2")]:
        with pytest.raises(testbed.InputError, match=message):
            pair(A, out=out)
    np.testing.assert_array_equal(x, A + B)


@pytest.mark.parametrize("change", ["python", "numpy", "debug", "slot"])
def test_unknown_layouts_have_no_entry(monkeypatch, change):
    if change == "python":
        monkeypatch.setattr(entry, "KNOWN_PYTHONS", ((2, 6), (2, 7)))
    elif change == "numpy":
        monkeypatch.setattr(entry, "KNOWN_MAJORS", ("9",))
    elif change == "debug":
        monkeypatch.setattr(sys, "gettotalrefcount", lambda: 0, raising=False)
    else:
        monkeypatch.setattr(entry, "_offset_of", lambda owner, slot: 0)
    assert probe(HostExecutable, "_native") is None


@pytest.mark.parametrize("field", ["type", "data", "rank", "dims", "strides", "descr", "flags"])
def test_a_field_elsewhere_is_noticed(monkeypatch, field):
    def moved(*offsets):
        layout = Layout(*offsets)
        return replace(layout, **{field: getattr(layout, field) + 8})

    monkeypatch.setattr(entry, "Layout", moved)
    assert probe(HostExecutable, "_native") is None


def test_without_an_entry_calls_take_the_python_code(monkeypatch):
    monkeypatch.setattr(executable, "native_entry", lambda *_: None)
    program = testbed.compile(PAIR)
    mine = program(A)[0]
    for _ in range(2):
        negated, doubled = program(A, out=(mine, None))
        assert negated is mine and program._contexts.native is None
        np.testing.assert_array_equal(doubled, A + A)
    with pytest.raises(testbed.InputError, match="argument x"):
        program(A[:2])


SCALE = """HloModule m
ENTRY e {{
  x = {0}[] parameter(0)
  y = {0}[] parameter(1)
  ROOT r = {0}[] {1}(x, y)
}}"""


@pytest.mark.parametrize(
    "dtype, opcode, numbers, others",
    [
        (
            "f32",
            "maximum",
            [0.1, -0.0, 3.4028234e38, float("inf"), float("-inf")],
            [1e39, True, 2, np.float32(3)],
        ),
        ("f64", "maximum", [0.1, 1e300, float("inf")], [True, 2, np.float64(3)]),
        ("s32", "or", [0, 5, -1, 2**31 - 1, -(2**31)], [True, np.int32(4)]),
        ("s64", "or", [0, 5, -1, 2**63 - 1, -(2**63)], [False, np.int64(4)]),
        ("u8", "or", [], [3, True, np.uint8(9)]),
        ("bf16", "maximum", [], [0.5, 3]),
    ],
)
def test_pythons_numbers_are_served_or_converted(dtype, opcode, numbers, others):
    """Numbers of the parameter's kind are served; all others give the same by the Python code."""
    program = made(SCALE.format(dtype, opcode))
    before = served(program)
    kind = program.inputs[0].dtype
    with np.errstate(over="ignore"):
        for number in numbers:
            z = program(number, number)
            assert z.dtype == kind and z.tobytes() == np.asarray(number).astype(kind).tobytes()
        assert served(program) - before == len(numbers)
        for number in others:
            z = program(number, number)
            assert z.dtype == kind and z.tobytes() == np.asarray(number).astype(kind).tobytes()
    nan = program(float("nan"), 1.0) if dtype in ("f32", "f64") else None
    assert nan is None or np.isnan(nan)


@pytest.mark.parametrize(
    "dtype, number", [("s32", 2**31), ("s32", -(2**31) - 1), ("s64", 2**63), ("s32", 1.0), ("s64", 10**30)]
)
def test_numbers_out_of_range_are_refused(dtype, number):
    program = made(SCALE.format(dtype, "or"))
    with pytest.raises(testbed.InputError, match="argument x: "):
        program(number, 1)


# -- memory and references --------------------------------------------------------------------------------------------
def counts(*values):
    return [sys.getrefcount(v) for v in values]


def test_calls_keep_no_references_and_no_memory(add, pair):
    out, both, scale = add(A, B), pair(A), made(SCALE.format("f32", "maximum"))
    objects = (A, B, A.dtype, None, np.ndarray, tuple, out, both, add, pair)

    def calls(n):
        for _ in range(n):
            add(A, B)
            add(A, B, out=out)
            pair(A)
            pair(A, out=both)
            add.execute([A, B])
            pair.execute([A], [None, None])
            add(A, B[::-1], out=None)
            scale(1.5, 10.0)

    calls(100)
    gc.collect()
    blocks, before, heap = POOL.stats(), counts(*objects), bytes_in_use()
    calls(10_000)
    gc.collect()
    after = counts(*objects)
    assert all(abs(a - b) < 50 for a, b in zip(after, before)), (before, after)
    assert POOL.stats().bytes_in_use == blocks.bytes_in_use
    assert POOL.stats().system_allocations == blocks.system_allocations
    assert bytes_in_use() - heap < 200_000


def test_a_result_keeps_its_block_and_gives_it_back(add):
    in_use = POOL.stats().bytes_in_use
    z = add(A, B)
    view = z[2:]
    assert POOL.stats().bytes_in_use == in_use + 64
    address = z.ctypes.data
    del z
    others = [add(B, B) for _ in range(10)]
    assert all(o.ctypes.data != address for o in others)
    np.testing.assert_array_equal(view, (A + B)[2:])
    del view, others
    assert POOL.stats().bytes_in_use == in_use


def test_no_memory_is_the_named_error_and_leaves_nothing_behind(add):
    before, idle = POOL.stats(), len(add._contexts)
    kept = [add(A, B)]
    POOL.trim()
    POOL.set_limit(POOL.stats().bytes_in_use)
    try:
        with pytest.raises(testbed.TestbedError, match=r"out of memory: output 0, f32\[8\], takes 32 bytes"):
            add(A, B)
        assert add(B, B, out=kept[0]) is kept[0]
    finally:
        POOL.set_limit(before.bytes_limit)
    kept.clear()
    np.testing.assert_array_equal(add(A, B), A + B)
    assert len(add._contexts) == idle and POOL.stats().bytes_in_use == before.bytes_in_use


# -- threads ----------------------------------------------------------------------------------------------------------
LARGE = """HloModule m
ENTRY e {
  x = f32[64,256] parameter(0)
  t = f32[64,256] tanh(x)
  c = f32[64,256] cosine(t)
  ROOT r = f32[64,256] add(t, c)
}"""


@pytest.mark.parametrize("text", [ADD, LARGE], ids=["short", "without the lock"])
def test_threads_call_at_once_and_nothing_grows(text):
    program = made(text)
    assert (
        bool(program._contexts.program.words[entry.W["unlocked"]])
        == (program.image.seconds >= SHORT)
        == (text is LARGE)
    )
    rounds = 10_000 if text is ADD else 300
    arrays = [[np.full(leaf.dims, n / 8, leaf.dtype) for leaf in program.inputs] for n in range(8)]
    alone = [program(*a) for a in arrays]
    start = threading.Barrier(8)

    def one(n):
        out = np.copy(alone[n])
        start.wait()
        good = True
        for i in range(rounds):
            z = program(*arrays[n])
            good = good and (i % 100 or bool((z == alone[n]).all()))
        return good and out is not None

    def once():
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(one, range(8)))
        gc.collect()

    once()
    blocks, heap = POOL.stats(), bytes_in_use()
    once()
    assert POOL.stats().bytes_in_use <= blocks.bytes_in_use + 8 * (64 << 10)
    assert bytes_in_use() - heap < 2_000_000
    assert len(program._contexts) <= MOST_CONTEXTS


def test_more_threads_than_contexts_while_the_lock_is_free():
    program = made(LARGE)
    x = [np.full((64, 256), n, np.float32) for n in range(24)]
    expected = [program(a) for a in x]
    with ThreadPoolExecutor(24) as pool:
        for _ in range(20):
            for z, e in zip(pool.map(program, x), expected):
                np.testing.assert_array_equal(z, e)


def test_a_finalizer_may_call_the_program_during_a_call(pair):
    """Garbage collection runs while results are made, and with it any code."""
    found = []

    class Caller:
        def __init__(self):
            self.itself = self

        def __del__(self):
            found.append(pair(B)[0])

    old = gc.get_threshold()
    gc.set_threshold(20)
    try:
        for _ in range(2000):
            Caller()
            negated, doubled = pair(A)
            assert negated[1] == -1 and doubled[1] == 2
    finally:
        gc.set_threshold(*old)
    gc.collect()
    assert len(found) == 2000 and all((z == -B).all() for z in found)


CHILD = """
import os, sys, threading
import numpy as np
import testbed
f = testbed.compile('''HloModule m
ENTRY e { x = f32[8] parameter(0)
 ROOT y = f32[8] add(x, x) }''')
x = np.arange(8, dtype=np.float32)
kept = [f(x) for _ in range(100)]
"""


def child(code):
    return subprocess.run([sys.executable, "-c", CHILD + code], capture_output=True, text=True, timeout=300)


def test_results_that_are_alive_at_the_end_of_the_process_do_no_harm():
    done = child("sys.modules['kept_by_somebody'] = kept; kept.append(f); print(kept[50][3])")
    assert (done.returncode, done.stdout, done.stderr) == (0, "6.0\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_calls_and_allocates():
    code = """
stop = threading.Event()
def work():
    while not stop.is_set():
        f(x)
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
good = 0
for _ in range(20):
    pid = os.fork()
    if not pid:
        ok = all((f(x) == 2 * x).all() for _ in range(50)) and (f(x[::-1]) == 2 * x[::-1]).all()
        os._exit(0 if ok else 1)
    good += os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
stop.set()
for t in threads: t.join()
print(good)
"""
    done = child("import warnings; warnings.simplefilter('ignore')\n" + code)
    assert done.stdout == "20\n", done.stderr


def test_results_outlive_the_executable_and_its_record():
    program = compiled(add_program(F32))
    results = [program(np.full((3, 4), n, np.float32), Y) for n in range(20)]
    words = program._contexts.program.words
    del program
    gc.collect()
    compiled(add_program(F32))(X, X)
    assert words.size and all((z == n + Y).all() for n, z in enumerate(results))


def test_narrow_types_are_served():
    x = np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3)
    program = made("HloModule m\nENTRY e { x = bf16[2,3] parameter(0)\n ROOT r = bf16[2,3] add(x, x) }")
    before = served(program)
    z = program(x)
    assert z.dtype == ml_dtypes.bfloat16 and served(program) - before == 1
    np.testing.assert_array_equal(z.astype(np.float32), 2 * x.astype(np.float32))


# -- loops ------------------------------------------------------------------------------------------------------------
LOOP = """HloModule m
cond {
  s = (s32[], f32[8], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] get-tuple-element(s), index=2
  ROOT c = pred[] compare(i, n), direction=LT
}
body {
  s = (s32[], f32[8], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[8] get-tuple-element(s), index=1
  y = f32[8] negate(x)
  n = s32[] get-tuple-element(s), index=2
  ROOT t = (s32[], f32[8], s32[]) tuple(j, y, n)
}
ENTRY e {
  x = f32[8] parameter(0)
  n = s32[] parameter(1)
  z = s32[] constant(0)
  t = (s32[], f32[8], s32[]) tuple(z, x, n)
  w = (s32[], f32[8], s32[]) while(t), condition=cond, body=body
  y = f32[8] get-tuple-element(w), index=1
  ROOT r = (f32[8], f32[8]) tuple(y, x)
}"""


@pytest.mark.parametrize("emitters", ["legacy", "mlir"])
def test_loops_are_served_also_where_they_pause(emitters):
    """A run pauses after a number of iterations, which is lowered here; Python then runs it to the end."""
    program = made(LOOP, emitters)
    before, out = served(program), program(A, np.int32(1).reshape(()))
    for rounds in (int(program._contexts.program.words[entry.W["rounds"]]), 7, 1):
        program._contexts.program.words[entry.W["rounds"]] = rounds
        for n in (0, 1, 2, 6, 7, 8, 1001, 100_000):
            count = np.array(n, np.int32)
            for z, x in (program(A, count), program(A, count, out=out)):
                np.testing.assert_array_equal(z, -A if n % 2 else A)
                np.testing.assert_array_equal(x, A)
    assert served(program) - before == 49 and len(program._contexts) == 1


def test_an_exception_during_a_paused_loop_ends_the_call_and_leaves_the_program_usable():
    code = (
        """
import signal
def stop(number, frame):
    raise TimeoutError
signal.signal(signal.SIGALRM, stop)
f = testbed.compile('''"""
        + LOOP
        + """''')
many, few = np.array(2**31 - 1, np.int32), np.array(3, np.int32)
f(x, few)
for _ in range(3):
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        f(x, many)
        print('it ended')
    except TimeoutError:
        print((f(x, few)[0] == -x).all(), len(f._contexts), f._contexts.program.calls)
"""
    )
    done = child(code)
    assert done.stdout == "True 1 1\nTrue 1 2\nTrue 1 3\n", done.stderr
