"""backends/host: the native entry from Python: what it serves, with the right results."""

import ml_dtypes
import numpy as np
import pytest

import testbed

from ...backends.host import entry
from ..support.entry_programs import ADD, NEEDS_ENTRY, PAIR, SCALE, A, B, child, made, served
from ..support.hand_built import X

pytestmark = NEEDS_ENTRY


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


def test_narrow_types_are_served():
    x = np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3)
    program = made("HloModule m\nENTRY e { x = bf16[2,3] parameter(0)\n ROOT r = bf16[2,3] add(x, x) }")
    before = served(program)
    z = program(x)
    assert z.dtype == ml_dtypes.bfloat16 and served(program) - before == 1
    np.testing.assert_array_equal(z.astype(np.float32), 2 * x.astype(np.float32))


def test_hundreds_of_arguments_and_results():
    """More than 400 × 200 comparisons of addresses are made; the last result is found to overlap an input."""
    count = 200
    names = [f"n{n}" for n in range(count)]
    body = "\n".join(f"p{n} = f32[4] parameter({n})\n n{n} = f32[4] negate(p{n})" for n in range(count))
    shapes = ", ".join(["f32[4]"] * count)
    program = made(f"HloModule m\nENTRY e {{ {body}\n ROOT t = ({shapes}) tuple({', '.join(names)}) }}")
    given, before = [np.full(4, n, np.float32) for n in range(count)], served(program)
    results = program(*given)
    again = program(*given, out=results)
    assert served(program) - before == 2 and all(a is b for a, b in zip(again, results, strict=True))
    assert all((z == -x).all() for z, x in zip(results, given, strict=True))
    for arguments, out, message in [
        ((*given[:3], results[7], *given[4:]), results, "output 7 overlaps input 3"),
        (given, (*results[:199], results[7]), "output 199 overlaps output 7"),
        (given, (*results[:198], None, results[7]), "output 199 overlaps output 7"),
    ]:
        for _ in range(2):
            assert program(*given, out=results)[5] is results[5]  # known not to overlap, from the second time on
            with pytest.raises(testbed.InputError, match=message):
                program(*arguments, out=out)


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
        for n in (0, 1, 2, 6, 7, 8, 1001, 100_000):
            count = np.array(n, np.int32)
            program._contexts.program.words[entry.W["rounds"]] = rounds  # a run that paused raises it
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
