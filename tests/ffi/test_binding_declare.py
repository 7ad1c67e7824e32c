"""Signatures: declared step by step or by annotations, refused where they are declared, and registered by platform."""

import re
import subprocess
import sys
from typing import Annotated

import numpy as np
import pytest

from ... import ffi
from ...ffi import abi, registry
from ...ffi.binding.specs import ArgSpec, AttrSpec, AttrsSpec, BufferSpec, CtxSpec, OptionalSpec, RemainingSpec
from ...ffi.binding.specs import ResultSpec as Ret
from ...hlo.dtypes import DType
from ...hlo.errors import InputError, UnsupportedError

F32 = BufferSpec(DType.F32, None)


class Point:
    pass


def inferred(
    a: ffi.Buffer[ffi.F32],
    b: "ffi.BufferR3[ffi.BF16]",
    c: ffi.AnyBuffer,
    d: ffi.Buffer[ffi.S8, 6],
    r: ffi.Result[ffi.Buffer[ffi.F32]],
    i: ffi.Attr[ffi.int32]("i32"),
    j: ffi.Attr[str],
    k: Annotated[int, ffi.Attr[ffi.uint8]("u8")],
    pool: ffi.ThreadPool,
    optional: ffi.OptionalArg[ffi.Buffer[ffi.F32]],
    rest: ffi.RemainingArgs,
    result: ffi.OptionalRet[ffi.BufferR0[ffi.F32]],
    rests: ffi.RemainingRets,
):
    pass


SPECS = (
    ArgSpec(F32),
    ArgSpec(BufferSpec(DType.BF16, 3)),
    ArgSpec(BufferSpec(None, None)),
    ArgSpec(BufferSpec(DType.S8, 6)),
    Ret(F32),
    AttrSpec(np.int32, "i32"),
    AttrSpec(str, "j"),
    AttrSpec(np.uint8, "u8"),
    CtxSpec(ffi.ThreadPool),
    OptionalSpec(F32, False),
    RemainingSpec(False),
    OptionalSpec(BufferSpec(DType.F32, 0), True),
    RemainingSpec(True),
)


def test_annotations_and_steps_say_the_same():
    steps = (
        ffi.bind()
        .arg(ffi.Buffer[ffi.F32])
        .arg(ffi.BufferR3[ffi.BF16])
        .arg(ffi.AnyBuffer)
        .arg(ffi.Buffer[ffi.S8, 6])
        .ret(ffi.Buffer[ffi.F32])
        .attr(ffi.int32, "i32")
        .attr(str, "j")
        .attr(ffi.uint8, "u8")
        .ctx(ffi.ThreadPool)
        .optional_arg(ffi.Buffer[ffi.F32])
        .remaining_args()
        .optional_ret(ffi.BufferR0[ffi.F32])
        .remaining_rets()
    )
    assert steps.specs == SPECS == ffi.handler(inferred).binding.specs
    assert ffi.bind().attrs().specs == (AttrsSpec(ffi.Dictionary),)
    assert ffi.bind().ret(ffi.Result[ffi.AnyBuffer]).specs == ffi.bind().ret(ffi.AnyBuffer).specs


A, S = ffi.AnyBuffer, ffi.Buffer[ffi.F32]

WRONG = [
    (lambda b: b.optional_arg(A).arg(A), "argument can't be passed after optional argument"),
    (lambda b: b.remaining_args().arg(A), "argument can't be passed after remaining arguments"),
    (lambda b: b.optional_ret(A).ret(A), "result can't be passed after optional result"),
    (lambda b: b.remaining_rets().ret(A), "result can't be passed after remaining results"),
    (lambda b: b.remaining_args().optional_arg(A), "optional argument can't be passed after remaining arguments"),
    (lambda b: b.remaining_rets().optional_ret(A), "optional result can't be passed after remaining results"),
    (lambda b: b.remaining_args().remaining_args(), "remaining arguments can be passed just once"),
    (lambda b: b.remaining_rets().remaining_rets(), "remaining results can be passed just once"),
    (lambda b: b.attr(ffi.int32, "a").attrs(), "dictionary attributes can't be mixed with regular ones"),
    (lambda b: b.attrs().attr(ffi.int32, "a"), "dictionary attributes can't be mixed with regular ones"),
    (lambda b: b.attr(Point, "p"), "Point is no type of an attribute (register it with ffi.register_attr_decoding)"),
    (lambda b: b.attr(np.float16, "h"), "float16 is no type of an attribute"),
    (lambda b: b.attr(ffi.Span[ffi.complex64], "c"), "no integer or float type of C++"),
    (lambda b: b.arg(Point), "is no type of a parameter"),
    (lambda b: b.ret(Point), "is no type of a result"),
    (lambda b: b.ctx(Point), "is nothing of a context"),
    (lambda b: ffi.Buffer[np.float32], "no dtype of a buffer"),
    (lambda b: ffi.Buffer[ffi.F32, -1], "no dtype of a buffer"),
    (lambda b: ffi.State[3], "State[3]: no class"),
    (lambda b: ffi.bind("later"), "no stage 'later' (instantiate, prepare, initialize or execute)"),
    (lambda b: b.arg(A).to(lambda: None), "takes 0 parameters, and its binding has 1"),
    (lambda b: b.to(print, state=Point), "Execute stage doesn't support setting a state"),
    (lambda b: ffi.enum_type(ffi.float32), "no integer type"),
    (lambda b: ffi.enum_type(ffi.int8)(Point), "Point is no enum.Enum"),
]


@pytest.mark.parametrize("declare, text", WRONG, ids=[text for _, text in WRONG])
def test_wrong_declarations_are_refused_at_once(declare, text):
    with pytest.raises(InputError, match=re.escape(text)):
        declare(ffi.bind())


def after_remaining(rest: ffi.RemainingArgs, x: ffi.AnyBuffer):
    pass


def without_annotation(x):
    pass


def of_an_int(x: int):
    pass


def unknown(x: "NoSuchWord"):  # noqa: F821
    pass


def by_keyword(*, x: ffi.AnyBuffer):
    pass


@pytest.mark.parametrize(
    "function, text",
    [
        (after_remaining, "after_remaining, parameter x: argument can't be passed after remaining arguments"),
        (without_annotation, "without_annotation, parameter x: no annotation (write Buffer[F32]"),
        (of_an_int, "of_an_int, parameter x: <class 'int'> is not supported for binding"),
        (unknown, "unknown: an annotation names what does not exist: name 'NoSuchWord' is not defined"),
        (by_keyword, "by_keyword, parameter x: no positional parameter"),
    ],
)
def test_annotations_that_say_nothing(function, text):
    with pytest.raises(InputError, match=re.escape(text)):
        ffi.handler(function)


def test_a_handler_is_still_its_function():
    @ffi.handler
    def double(x: ffi.AnyBuffer, y: ffi.Result[ffi.AnyBuffer]):
        y[...] = 2 * x

    double(np.arange(3), out := np.zeros(3, int))
    assert out.tolist() == [0, 2, 4] and repr(double) == "<handler double, execute>"
    assert 'capsule object "xla._CUSTOM_CALL_TARGET"' in repr(ffi.capsule(double))
    assert registry.address_of(ffi.capsule(double)) == double.ffi_address
    with pytest.raises(AttributeError, match="has no attribute 'nosuch'"):
        ffi.nosuch  # noqa: B018


@pytest.fixture
def name():
    yield "test_declared"
    for platform in ("Host", "CUDA"):
        registry.unregister("test_declared", platform)


def test_handlers_are_registered_by_platform_and_stage(name):
    execute = ffi.handler(stage="execute", traits=[abi.COMMAND_BUFFER_COMPATIBLE])(lambda: None)
    begin = ffi.bind("instantiate").to(lambda: Point(), state=Point)
    ffi.register(name, execute, platform="CUDA")
    with pytest.raises(UnsupportedError, match="registered for CUDA only"):
        registry.lookup(name)
    found = registry.lookup(name, "cuda")
    assert (found.execute, found.traits) == (execute.ffi_address, 1)
    ffi.register(name, {"instantiate": begin, "execute": execute})
    assert registry.lookup(name, "cpu").instantiate == begin.ffi_address
    with pytest.raises(InputError, match="is registered already for Host"):
        ffi.register(name, execute)
    ffi.register(name, execute, replace=True)
    for handlers, text in (
        ({"execute": begin}, "stands under the stage 'execute'"),
        (print, "is no handler (decorate the function with @ffi.handler)"),
        ({"instantiate": begin}, "no handler for the stage 'execute'"),
    ):
        with pytest.raises(InputError, match=re.escape(text)):
            ffi.register(name, handlers, replace=True)


def test_the_package_loads_its_names_when_they_are_used():
    program = "import sys, testbed\ntestbed.ffi\nassert 'numpy' not in sys.modules\nassert testbed.ffi.handler\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
