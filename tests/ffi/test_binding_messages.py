"""Mistakes give the texts of XLA's C++ layer: the same binding compiled against jaxlib's header is the judge."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from ... import ffi
from ...ffi import abi
from ..support.cpp import compile_cpp
from ..support.ffi_runtime import Frame, Runtime

F, S, D = np.float32, np.int32, np.float64


def a(*shape, dtype=F):
    return np.ones(shape, dtype)


BINDINGS = {
    "one": ("Arg<Buffer<F32>>().Ret<Buffer<F32>>()", lambda b: b.arg(ffi.Buffer[ffi.F32]).ret(ffi.Buffer[ffi.F32])),
    "ranks": (
        "Arg<BufferR2<F32>>().Arg<AnyBuffer>().Ret<BufferR0<S32>>()",
        lambda b: b.arg(ffi.BufferR2[ffi.F32]).arg(ffi.AnyBuffer).ret(ffi.BufferR0[ffi.S32]),
    ),
    "remaining": (
        "Arg<Buffer<F32>>().Arg<Buffer<F32>>().RemainingArgs().Ret<Buffer<F32>>().RemainingRets()",
        lambda b: (
            b.arg(ffi.Buffer[ffi.F32])
            .arg(ffi.Buffer[ffi.F32])
            .remaining_args()
            .ret(ffi.Buffer[ffi.F32])
            .remaining_rets()
        ),
    ),
    "optional": (
        "Arg<Buffer<F32>>().OptionalArg<Buffer<S32>>().Ret<Buffer<F32>>().OptionalRet<Buffer<F32>>()",
        lambda b: (
            b.arg(ffi.Buffer[ffi.F32])
            .optional_arg(ffi.Buffer[ffi.S32])
            .ret(ffi.Buffer[ffi.F32])
            .optional_ret(ffi.Buffer[ffi.F32])
        ),
    ),
    "attrs": (
        'Attr<int32_t>("i32").Attr<std::string_view>("str")',
        lambda b: b.attr(ffi.int32, "i32").attr(str, "str"),
    ),
    "span": (
        'Attr<Span<const int64_t>>("v").Attr<Pointer<int>>("p")',
        lambda b: b.attr(ffi.Span[ffi.int64], "v").attr(ffi.Pointer[int], "p"),
    ),
    "variant": (
        'Attr<std::variant<int32_t, float>>("v")',
        lambda b: b.attr(np.int32 | np.float32, "v"),
    ),
    "nested": ('Attr<Dictionary>("d")', lambda b: b.attr(ffi.Dictionary, "d")),
    "all": ("Attrs()", lambda b: b.attrs()),
    "stream": (
        "Arg<Buffer<F32>>().Ctx<PlatformStream<void*>>()",
        lambda b: b.arg(ffi.Buffer[ffi.F32]).ctx(ffi.PlatformStream),
    ),
    "nothing": ("", lambda b: b),
}

INT, TEXT = np.int32(1), "x"

CASES = {
    "fits": ("one", [a(3)], [a(3)], {}),
    "dtype": ("one", [a(3, dtype=D)], [a(3)], {}),
    "both": ("one", [a(3, dtype=D)], [a(3, dtype=np.bool_)], {}),
    "no arguments": ("one", [], [a(3)], {}),
    "two arguments": ("one", [a(3), a(3)], [a(3)], {}),
    "no results": ("one", [a(3)], [], {}),
    "attributes are ignored": ("one", [a(3)], [a(3)], {"x": INT}),
    "rank": ("ranks", [a(3), a(1)], [a(dtype=S)], {}),
    "rank and dtype": ("ranks", [a(3), a(1)], [a(1, 1, dtype=S)], {}),
    "rank fits": ("ranks", [a(3, 1), a(1, dtype=np.complex64)], [a(dtype=S)], {}),
    "remaining: too few": ("remaining", [a(3)], [a(3)], {}),
    "remaining: none": ("remaining", [], [], {}),
    "remaining: exact": ("remaining", [a(3), a(3)], [a(3)], {}),
    "remaining: no results": ("remaining", [a(3), a(3)], [], {}),
    "remaining: more": ("remaining", [a(3)] * 5, [a(3)] * 4, {}),
    "optional: absent": ("optional", [a(3)], [a(3)], {}),
    "optional: none": ("optional", [], [a(3)], {}),
    "optional: no results": ("optional", [a(3)], [], {}),
    "optional: present": ("optional", [a(3), a(3, dtype=S)], [a(3), a(3)], {}),
    "one attribute": ("attrs", [], [], {"str": TEXT}),
    "three attributes": ("attrs", [], [], {"str": TEXT, "i32": INT, "more": INT}),
    "no attributes": ("attrs", [], [], {}),
    "names": ("attrs", [], [], {"str": TEXT, "i33": INT}),
    "both names": ("attrs", [], [], {"a": TEXT, "b": INT}),
    "scalar dtype": ("attrs", [], [], {"str": TEXT, "i32": np.int64(1)}),
    "scalar is a string": ("attrs", [], [], {"str": TEXT, "i32": "1"}),
    "string is an array": ("attrs", [], [], {"str": np.ones(3, D), "i32": INT}),
    "span is a dictionary": ("span", [], [], {"v": {"a": INT}, "p": np.int64(1)}),
    "span dtype": ("span", [], [], {"v": np.ones(2, S), "p": np.int64(1)}),
    "pointer": ("span", [], [], {"v": np.ones(2, np.int64), "p": INT}),
    "pointer is a string": ("span", [], [], {"v": np.ones(2, np.int64), "p": "p"}),
    "span fits": ("span", [], [], {"v": np.ones(2, np.int64), "p": np.int64(1)}),
    "variant": ("variant", [], [], {"v": np.float64(1)}),
    "variant fits": ("variant", [], [], {"v": np.float32(1)}),
    "nested": ("nested", [], [], {"d": INT}),
    "nested fits": ("nested", [], [], {"d": {"x": {"y": INT}}}),
    "all": ("all", [a(3)], [a(3)], {"x": INT, "y": TEXT}),
    "nothing": ("nothing", [a(3)], [a(3)], {"x": INT}),
    "stream and argument": ("stream", [a(3, dtype=S)], [], {}),
    "stream": ("stream", [a(3)], [], {}),
}

STAGES = ["instantiate", "prepare", "initialize", "execute"]


def cpp_source() -> str:
    lines = ['#include "xla/ffi/api/ffi.h"', "using namespace xla::ffi;"]
    for name, (binding, _) in BINDINGS.items():
        dots = f".{binding}" if binding else ""
        function = "[](auto...) { return Error::Success(); }"
        lines.append(f"XLA_FFI_DEFINE_HANDLER_SYMBOL({name}_, ({function}), (Ffi::Bind(){dots}));")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def library():
    return ctypes.CDLL(str(compile_cpp(cpp_source())))


def python_handler(name):
    calls = []
    handler = BINDINGS[name][1](ffi.bind()).to(lambda *values: calls.append(values))
    return SimpleNamespace(address=handler.ffi_address, calls=calls, handler=handler)


@pytest.mark.parametrize("stage", [abi.Stage.EXECUTE, abi.Stage.PREPARE])
def test_each_mistake_has_the_text_of_cpp(library, stage):
    runtime, handlers = Runtime(), {name: python_handler(name) for name in BINDINGS}
    found, wanted = {}, {}
    for case, (name, args, rets, attrs) in CASES.items():
        frame = Frame(runtime, args, rets, attrs, stage)
        wanted[case] = frame.call(ctypes.cast(library[f"{name}_"], ctypes.c_void_p).value)
        for round_ in range(2):
            found[case, round_] = frame.call(handlers[name].address)
    assert found == {(case, round_): text for case, text in wanted.items() for round_ in range(2)}
    if stage == abi.Stage.EXECUTE:
        good = sum(text is None for text in wanted.values())
        assert sum(len(h.calls) for h in handlers.values()) == 2 * good > 10


TEXTS = {
    "dtype": "[execute] Failed to decode all FFI handler operands (bad operands at: 0)\n"
    "Diagnostics:\nWrong buffer dtype: expected F32 but got F64",
    "rank": "[execute] Failed to decode all FFI handler operands (bad operands at: 0)\n"
    "Diagnostics:\nWrong buffer rank: expected 2 but got 1",
    "two arguments": "[execute] Wrong number of arguments: expected 1 but got 2",
    "no results": "[execute] Wrong number of results: expected 1 but got 0",
    "one attribute": "[execute] Wrong number of attributes: expected 2 but got 1 with name(s): str",
    "names": "[execute] Failed to decode all FFI handler operands (bad operands at: 0)\n"
    "Diagnostics:\nAttribute name mismatch: i33 vs i32",
}


@pytest.mark.parametrize("case", TEXTS)
def test_texts(case):
    name, args, rets, attrs = CASES[case]
    handler = python_handler(name)
    assert Frame(Runtime(), args, rets, attrs).call(handler.address) == f"INVALID_ARGUMENT: {TEXTS[case]}"
    assert not handler.calls


@pytest.mark.parametrize("field, value, text", [
    ("struct_size", 160, "Unexpected XLA_FFI_CallFrame size: expected 168 got 160. Check installed software versions."),
    ("stage", 0, "Wrong execution stage: expected `execute` but got `instantiate`"),
])  # fmt: skip
def test_frames_of_other_makers(library, field, value, text):
    handler = python_handler("one")
    for warm in range(2):
        frame = Frame(Runtime(), [a(3)], [a(3)], {})
        if warm:
            frame.call(handler.address)
        setattr(frame.frame, field, value)
        assert frame.call(handler.address) == f"INVALID_ARGUMENT: {text}"
        assert frame.call(ctypes.cast(library["one_"], ctypes.c_void_p).value) == f"INVALID_ARGUMENT: {text}"


@pytest.mark.parametrize("size, text", [(35, "expected at least 36 got 35"), (36, None)])
def test_metadata_of_other_sizes(size, text):
    found = Runtime().metadata(python_handler("one").address, size)
    if text is None:
        assert (found.api_version.major_version, found.api_version.minor_version) == (0, 3)
    else:
        assert (
            found == f"INVALID_ARGUMENT: Unexpected XLA_FFI_Metadata size: {text}. Check installed software versions."
        )


@pytest.mark.parametrize("version", [(0, n) for n in range(1, 8)])
def test_the_version_is_the_lesser_of_both(version):
    found = Runtime(version).metadata(python_handler("one").address)
    assert (found.api_version.major_version, found.api_version.minor_version) == min(version, (0, 5))
    assert found.api_version.struct_size == 24 and found.traits == 0


def test_an_optional_argument_of_another_type_is_a_mistake():
    """C++ takes it for absent (its nested std::optional loses the failure), and so would compute something else."""
    handler = python_handler("optional")
    text = Frame(Runtime(), [a(3), a(3)], [a(3), a(3, dtype=S)], {}).call(handler.address)
    first, second = ("Wrong buffer dtype: expected S32 but got F32", "Wrong buffer dtype: expected F32 but got S32")
    assert text.endswith(f"(bad operands at: 1, 3)\nDiagnostics:\n{first}{second}")
    assert not handler.calls
