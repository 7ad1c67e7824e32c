"""What a handler in Python gets: arrays on the runtime's memory, attributes as values, context; and what it returns."""

import ctypes
import enum
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import pytest

from ... import ffi
from ...ffi import abi
from ...ffi.packing import pack, packed_bytes
from ...hlo.dtypes import NUMPY, DType
from ..support.ffi_runtime import RUNTIME, Frame, call


# -- buffers ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("dtype", [d for d in abi.DATA_TYPES if d in NUMPY], ids=lambda d: d.value)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 1, 3), (1, 2, 1, 2, 1, 2, 1, 2)])
def test_every_dtype_in_every_shape(dtype, shape):
    numpy = NUMPY[dtype]
    given = np.array(np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape) % 2, numpy)
    out = np.zeros(shape, numpy)
    packed = dtype.bits < 8 and dtype is not DType.PRED
    if packed:  # as runtimes have it; the bytes behind stay as they are
        given.reshape(-1).view(np.uint8)[: packed_bytes(given.size, dtype)] = pack(given, dtype)
    seen = []

    def copy(x, y):
        seen.append((x.dtype, x.shape, x.flags.writeable, y.flags.writeable))
        y[...] = x

    kind = ffi.Buffer[dtype, len(shape)]
    assert call(ffi.bind().arg(kind).ret(kind).to(copy), [given], [out]) is None
    size = packed_bytes(out.size, dtype) if packed else out.nbytes
    assert out.tobytes()[:size] == given.tobytes()[:size] and not any(out.tobytes()[size:])
    assert set(seen) == {(numpy, shape, False, True)} and len(seen) == 3


def test_native_code_follows_the_pointers_of_each_call():
    @ffi.handler
    def handler(x: ffi.Buffer[ffi.F32], y: ffi.Result[ffi.Buffer[ffi.F32]]):
        y[...] = x * 2

    frame = Frame(RUNTIME, [np.zeros(4, np.float32)], [np.zeros(4, np.float32)], {})
    slow = []
    handler._slow, plain = lambda address: slow.append(address) or plain(address), handler._slow
    for n in range(20):
        x, y = np.full(4, n, np.float32), np.full(4, -1, np.float32)
        frame.point(0, x)
        frame.point(0, y, is_result=True)
        assert frame.call(handler.ffi_address) is None
        assert y.tolist() == [2 * n] * 4
    assert len(slow) == 1


def change_dims(frame):
    frame.buffers[False][0].dims[0] = 2


def change_rank(frame):
    frame.buffers[False][0].rank = 0


def change_dtype(frame):
    frame.buffers[False][0].dtype = 4


def change_scalar(frame):
    place = frame.frame.attrs.attrs[1]
    ctypes.c_int32.from_address(abi.Scalar.from_address(place).value).value = 9


def change_text(frame):
    span = abi.ByteSpan.from_address(frame.frame.attrs.attrs[0])
    ctypes.memmove(span.ptr, b"XY", 2)


def change_name(frame):
    ctypes.memmove(frame.frame.attrs.names[0].contents.ptr, b"A", 1)


@pytest.mark.parametrize(
    "change, expected",
    [
        (change_dims, ((2,), np.float32, {"a": "ab", "n": 7})),
        (change_rank, ((), np.float32, {"a": "ab", "n": 7})),
        (change_dtype, ((4,), np.int32, {"a": "ab", "n": 7})),
        (change_scalar, ((4,), np.float32, {"a": "ab", "n": 9})),
        (change_text, ((4,), np.float32, {"a": "XY", "n": 7})),
        (change_name, ((4,), np.float32, {"A": "ab", "n": 7})),
    ],
)
def test_another_frame_at_the_same_place_is_decoded_again(change, expected):
    """As if an executable had gone, and the frame of another one had come to lie at its addresses."""
    seen = []
    handler = ffi.bind().arg(ffi.AnyBuffer).attrs().to(lambda x, d: seen.append((x.shape, x.dtype, dict(d))))
    frame = Frame(RUNTIME, [np.zeros(4, np.float32)], [], {"a": "ab", "n": np.int32(7)})
    for _ in range(3):
        assert frame.call(handler.ffi_address) is None
    assert seen == [((4,), np.float32, {"a": "ab", "n": 7})] * 3
    change(frame)
    for _ in range(3):
        assert frame.call(handler.ffi_address) is None
    assert seen[3:] == [expected] * 3


def test_many_call_sites_of_one_handler():
    handler = ffi.bind().arg(ffi.Buffer[ffi.S32]).ret(ffi.Buffer[ffi.S32]).attr(int, "n").to(
        lambda x, y, n: y.__setitem__(..., x + n)
    )  # fmt: skip
    frames = [
        Frame(RUNTIME, [np.full(n % 7 + 1, n, np.int32)], [np.zeros(n % 7 + 1, np.int32)], {"n": np.int64(n)})
        for n in range(300)
    ]
    for _ in range(3):
        for n, frame in enumerate(frames):
            y = np.zeros(n % 7 + 1, np.int32)
            frame.point(0, y, is_result=True)
            assert frame.call(handler.ffi_address) is None
            assert y.tolist() == [2 * n] * (n % 7 + 1)


@pytest.mark.parametrize("times", [1, 2, 5])
def test_a_view_that_is_kept_keeps_its_elements(times):
    kept = []
    handler = ffi.bind().arg(ffi.Buffer[ffi.F32]).to(lambda x: kept.append(x))
    frame = Frame(RUNTIME, [np.zeros(1000, np.float32)], [], {})
    for n in range(times):
        x = np.full(1000, n, np.float32)
        frame.point(0, x)
        assert frame.call(handler.ffi_address) is None
        x[...] = -1
    assert [(v.min(), v.max()) for v in kept] == [(n, n) for n in range(times)]


@pytest.mark.parametrize(
    "change",
    [
        lambda x: setattr(x, "shape", (6,)),
        lambda x: setattr(x, "shape", (3, 2)),
        lambda x: setattr(x, "dtype", np.int32),
        lambda x: setattr(x.flags, "writeable", True),
    ],
)
def test_a_handler_that_changes_an_array_in_place_gets_a_new_one(change):
    seen = []

    def look(x):
        seen.append((x.shape, x.dtype, x.flags.writeable, float(x.flat[5])))
        change(x)

    handler = ffi.bind().arg(ffi.Buffer[ffi.F32]).to(look)
    frame = Frame(RUNTIME, [np.zeros((2, 3), np.float32)], [], {})
    for n in range(5):
        frame.point(0, np.full((2, 3), n, np.float32))
        assert frame.call(handler.ffi_address) is None
    assert seen == [((2, 3), np.float32, False, n) for n in range(5)]


def test_an_argument_is_read_only_and_a_result_is_zero_copy():
    def write(x):
        x[0] = 1

    text = call(ffi.bind().arg(ffi.Buffer[ffi.F32]).to(write), [np.zeros(3, np.float32)])
    assert text == "INTERNAL: ValueError: assignment destination is read-only"


@pytest.mark.parametrize(
    "field_, value, reason",
    [
        ("rank", -1, "rank -1, which is not from 0 to 64"),
        ("rank", 65, "rank 65, which is not from 0 to 64"),
        ("dims", None, "a pointer of the call frame is NULL"),
        ("dtype", 0, "Unsupported buffer: INVALID [3]"),
        ("dtype", 99, "Unsupported buffer: 99 [3]"),
    ],
)
def test_damaged_buffers_are_errors(field_, value, reason):
    handler = ffi.bind().arg(ffi.AnyBuffer).to(lambda x: None)
    frame = Frame(RUNTIME, [np.zeros(3, np.float32)], [], {})
    assert frame.call(handler.ffi_address) is None
    setattr(frame.buffers[False][0], field_, value)
    text = frame.call(handler.ffi_address)
    assert text.startswith("INVALID_ARGUMENT: [execute] ") and reason in text


def test_huge_and_negative_dimensions_are_errors():
    handler = ffi.bind().arg(ffi.AnyBuffer).to(lambda x: None)
    for dims, reason in (((1 << 62, 1 << 62), "Unsupported buffer"), ((-1, 2), "dimensions [-1, 2]")):
        frame = Frame(RUNTIME, [np.zeros((2, 2), np.float32)], [], {})
        frame.buffers[False][0].dims[0], frame.buffers[False][0].dims[1] = dims
        assert reason in frame.call(handler.ffi_address)


def test_before_execution_buffers_need_no_memory():
    seen = []
    handler = ffi.bind("prepare").arg(ffi.Buffer[ffi.F32]).to(lambda x: seen.append((x.shape, float(x.sum()))))
    frame = Frame(RUNTIME, [np.ones((2, 3), np.float32)], [], {}, abi.Stage.PREPARE)
    frame.buffers[False][0].data = None
    assert frame.call(handler.ffi_address) is None and seen == [((2, 3), 0.0)]


def test_remaining_and_optional():
    seen = []

    def take(first, rest, out, more):
        assert len(rest) == 2 and len(more) == 1 and rest.isa(ffi.Buffer[ffi.F64], 1)
        seen.append([float(first[0]), *(float(x[0]) for x in rest)])
        rest.get(ffi.BufferR1[ffi.F64], 1)
        more.get(ffi.Buffer[ffi.S32], 0)[...] = 5
        out[...] = 4

    handler = ffi.bind().arg(ffi.AnyBuffer).remaining_args().ret(ffi.AnyBuffer).remaining_rets().to(take)
    args = [np.full(2, n, np.float64) for n in range(3)]
    rets = [np.zeros(2, np.float32), np.zeros(2, np.int32)]
    assert call(handler, args, rets) is None
    assert seen == [[0, 1, 2]] * 3 and [r.tolist() for r in rets] == [[4, 4], [5, 5]]
    for index, kind, text in (
        (2, ffi.AnyBuffer, "INVALID_ARGUMENT: Index out of range"),
        (0, ffi.Buffer[ffi.S8], "INTERNAL: Wrong buffer dtype: expected S8 but got F64"),
        (0, ffi.BufferR0[ffi.F64], "INTERNAL: Wrong buffer rank: expected 0 but got 1"),
    ):
        ask = (
            ffi.bind().arg(ffi.AnyBuffer).remaining_args().to(lambda x, rest, i=index, k=kind: rest.get(k, i) and None)
        )
        assert call(ask, args) == text
    optional = ffi.bind().optional_arg(ffi.AnyBuffer).optional_ret(ffi.AnyBuffer).to(lambda x, y: seen.append((x, y)))
    assert call(optional) is None and seen[-1] == (None, None)


# -- attributes -------------------------------------------------------------------------------------------------------
SCALARS = [
    (ffi.bool_, True), (ffi.int8, -128), (ffi.int16, -5), (ffi.int32, 1 << 30), (ffi.int64, -(1 << 63)),
    (ffi.uint8, 255), (ffi.uint16, 65535), (ffi.uint32, (1 << 32) - 1), (ffi.uint64, (1 << 64) - 1),
    (ffi.float32, 1.5), (ffi.float64, -0.1), (ffi.complex64, 1 + 2j), (ffi.complex128, 0.1 - 3j),
    (int, 7), (float, 0.1), (bool, False), (complex, 1j),
]  # fmt: skip


@ffi.enum_type(ffi.int32)
class Mode(enum.Enum):
    FAST = 1
    SAFE = 2


@dataclass(frozen=True)
class Pair:
    a: ffi.int32
    b: Annotated[float, ffi.float32]


@dataclass
class Nested:
    name: str
    pair: Pair
    mode: Mode
    hidden: list = field(default_factory=list, init=False)


def attr(kind, value, name="x"):
    """The value that a handler gets for an attribute, in three calls; or the error."""
    seen = []
    text = call(ffi.bind().attr(kind, name).to(seen.append), attrs={name: value})
    return text if text is not None else seen


@pytest.mark.parametrize("kind, value", SCALARS, ids=[f"{k.__name__}" for k, _ in SCALARS])
def test_scalars(kind, value):
    (found,) = {*attr(kind, np.array(value, np.dtype(kind))[()])}
    assert found == value and type(found) is type(value)


def test_strings_arrays_and_structs():
    assert attr(str, "äx\0y") == ["äx\0y"] * 3 and attr(bytes, "ä") == ["ä".encode()] * 3
    (span, *_) = attr(ffi.Span[ffi.float32], np.arange(3, dtype=np.float32))
    assert span.tolist() == [0, 1, 2] and span.dtype == np.float32 and not span.flags.writeable
    assert attr(ffi.Pointer[int], np.int64(-1)) == [(1 << 64) - 1] * 3
    assert attr(Mode, np.int32(2)) == [Mode.SAFE] * 3
    assert attr(Pair, {"a": np.int32(3), "b": np.float32(0.5)}) == [Pair(3, 0.5)] * 3
    nested = {"name": "n", "pair": {"a": np.int32(1), "b": np.float32(2)}, "mode": np.int32(1)}
    found = attr(Nested, nested)
    assert found == [Nested("n", Pair(1, 2.0), Mode.FAST)] * 3
    assert len({id(n.hidden) for n in found}) == 3  # a struct that can be changed is made for each call
    assert list(attr(np.int32 | np.float32, np.float32(2))) == [2.0] * 3


@pytest.mark.parametrize(
    "kind, value, text",
    [
        (Mode, np.int32(7), "Wrong enum value: 7 is no Mode"),
        (Mode, np.int64(1), "Wrong scalar data type: expected S32 but got S64"),
        (Pair, {"a": np.int32(1)}, "Wrong number of attributes: expected 2 attributes but got 1"),
        (Pair, {"a": np.int32(1), "c": np.float32(1)}, "Unexpected attribute: b"),
        (Pair, np.int32(1), "Wrong attribute type: expected dictionary but got scalar"),
        (ffi.Span[ffi.int8], np.int8(1), "Wrong attribute type: expected array but got scalar"),
    ],
)
def test_attributes_that_do_not_fit(kind, value, text):
    assert attr(kind, value).endswith(f"(bad operands at: 0)\nDiagnostics:\n{text}")


def test_a_dictionary_is_decoded_when_asked():
    def look(d):
        assert len(d) == 3 and "a" in d and list(d) == ["a", "b", "c"] and d.isa("a", ffi.int32)
        assert not d.isa("a", ffi.float32) and not d.isa("z", ffi.int32)
        assert (d.get("a", ffi.int32), d["b"].tolist(), d["c"]["x"], d.get("c", ffi.Attrs)["x"]) == (
            3,
            [1, 2],
            "y",
            "y",
        )
        d.get("range")

    attrs = {"a": np.int32(3), "b": np.array([1, 2]), "c": {"x": "y"}}
    assert call(ffi.bind().attrs().to(look), attrs=attrs) == "INTERNAL: Unexpected attribute: range"
    wrong = ffi.bind().attrs().to(lambda d: d.get("a", ffi.float32))
    assert call(wrong, attrs=attrs) == "INTERNAL: Wrong scalar data type: expected F32 but got S32"
    whole = ffi.bind().attrs(Pair).to(lambda p: ffi.Error.internal(str(p)))
    assert call(whole, attrs={"a": np.int32(1), "b": np.float32(2)}) == "INTERNAL: Pair(a=1, b=2.0)"


class Degrees(float):
    pass


class Image:
    def __init__(self, array):
        self.array = array


class Canvas(Image):
    pass


def test_registered_decodings():
    def check(value):
        if value < 0:
            raise ValueError("an angle below zero")
        return Degrees(value)

    ffi.register_attr_decoding(Degrees, check, of=ffi.float32)
    assert attr(Degrees, np.float32(30)) == [Degrees(30)] * 3
    assert attr(Degrees, np.float32(-1)).endswith("Diagnostics:\nan angle below zero")
    assert attr(Degrees, np.int32(1)).endswith("Wrong scalar data type: expected F32 but got S32")
    ffi.register_arg_decoding(Image, Image, of=ffi.BufferR2[ffi.U8])
    ffi.register_ret_decoding(Canvas, Canvas, of=ffi.BufferR2[ffi.U8])

    @ffi.handler
    def draw(image: Image, canvas: ffi.Result[Canvas]):
        assert type(image) is Image and type(canvas) is Canvas
        canvas.array[...] = image.array + 1

    out = np.zeros((2, 2), np.uint8)
    assert call(draw, [np.ones((2, 2), np.uint8)], [out]) is None and out.tolist() == [[2, 2], [2, 2]]
    assert call(draw, [np.ones(2, np.uint8)], [out]).endswith("Wrong buffer rank: expected 2 but got 1")
