"""backends/host: what the native entry from Python leaves to the Python code, and that both do the same."""

import sys
from dataclasses import replace

import numpy as np
import pytest

import testbed

from ...backends.host import entry
from ...backends.host.entry import probe
from ...backends.host.entry_places import Layout
from ...backends.host.executable import HostExecutable
from ...backends.host.memory import POOL
from ..support.entry_programs import ADD, NEEDS_ENTRY, PAIR, A, B, made, served

pytestmark = NEEDS_ENTRY


@pytest.fixture(scope="module")
def add():
    return made(ADD)


@pytest.fixture(scope="module")
def pair():
    return made(PAIR)


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


FORMS = [
    lambda x, other: x,
    lambda x, other: aligned(x),
    lambda x, other: other,
    lambda x, other: x.reshape(2, -1),
    lambda x, other: x.astype(np.float64),
    lambda x, other: x.astype(">f4"),
    lambda x, other: x[::-1],
    lambda x, other: x[:0],
    lambda x, other: x.view(Sub),
    lambda x, other: unaligned(x),
    lambda x, other: x.tolist(),
    lambda x, other: x[1],
    lambda x, other: 1.5,
    lambda x, other: 3,
    lambda x, other: None,
    lambda x, other: "text",
    lambda x, other: (x, other),
    lambda x, other: [x],
    lambda x, other: frozen(x),
    lambda x, other: np.zeros((1,) * 20, np.float32),
]


def aligned(x):
    """A copy that kernels take in place, also as a result."""
    copied = POOL.allocate(x.nbytes).view(x.dtype)
    copied[:] = x
    return copied


def frozen(x):
    x = aligned(x)
    x.flags.writeable = False
    return x


def outcome(program, arguments, named, out):
    """What a call returns, or the error that it raises."""
    try:
        result = program(*arguments, **named)
    except (testbed.TestbedError, ValueError, TypeError) as error:
        return type(error), str(error)
    leaves = result if isinstance(result, tuple) else (result,)
    given = out if isinstance(out, tuple) else (out,)
    return [z.tolist() for z in leaves], [any(z is o for o in given if o is not None) for z in leaves]


@pytest.mark.parametrize("text", [ADD, PAIR], ids=["add", "pair"])
def test_whatever_is_given_both_ways_do_the_same(monkeypatch, text):
    native = made(text)
    with monkeypatch.context() as patched:
        patched.setattr(entry, "native_entry", lambda *_: None)
        plain = made(text)
    random, before, count, errors = np.random.default_rng(3), served(native), len(native.inputs), 0
    rare = len(FORMS) - 3

    def call(program, kinds, extra, places, more):
        """The outcome with arrays of its own: a call may write into them."""
        x, other = aligned(A), aligned(B)
        values = [FORMS[k](x, other) for k in kinds]
        named, spare = {}, [aligned(A), aligned(A), None, values[-1], x]
        if places is not None:
            out = tuple(spare[n] for n in places)
            named["out"] = out[0] if text is ADD else out
        if more:
            named["more"] = other
        return outcome(program, values[: count + extra], named, named.get("out"))

    for _ in range(1500):
        kinds = random.choice(len(FORMS), 4, p=[0.5, 0.1, 0.1, *[0.3 / rare] * rare])
        extra, more = random.integers(12) == 0, random.integers(12) == 0
        places = random.integers(5, size=3 - count) if random.integers(2) else None
        found = [call(program, kinds, extra, places, more) for program in (native, plain)]
        assert str(found[0]) == str(found[1])
        errors += isinstance(found[0][0], type)
    assert 100 < errors < 1400 and served(native) - before > 300 and plain._contexts.native is None
    assert len(native._contexts) == 1


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
    monkeypatch.setattr(entry, "native_entry", lambda *_: None)
    program = testbed.compile(PAIR)
    mine = program(A)[0]
    for _ in range(2):
        negated, doubled = program(A, out=(mine, None))
        assert negated is mine and program._contexts.native is None
        np.testing.assert_array_equal(doubled, A + A)
    with pytest.raises(testbed.InputError, match="argument x"):
        program(A[:2])
