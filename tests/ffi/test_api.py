"""What our runtime answers to handlers of version 0.5: custom options and extensions; tasks, futures and forks."""

from __future__ import annotations

import ctypes
import os
import re

import numpy as np
import pytest

from ...evaluator.evaluator import evaluate
from ...ffi import abi, registry
from ...ffi.api import native
from ...ffi.calls import custom_options
from ...ffi.options import attributes_from
from ...ffi.static_library import register_symbols
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError
from ...migration import Flags, compile_module
from ..support.cpp import compile_cpp, include_dir

HEAD = '#include "xla/ffi/api/ffi.h"\nusing namespace xla::ffi;\n'

RAW = (
    HEAD
    + r"""
struct Ask { size_t struct_size; void* extensions; void* ctx; const XLA_FFI_Attrs* attrs; };
struct Find { size_t struct_size; void* extensions; void* ctx; int64_t type; const void* extension; };
typedef XLA_FFI_Error* Function(void*);

// Returns the number of options, then the value of each that is an i64 or an f64; -1 where an extension is found.
extern "C" XLA_FFI_Error* options(XLA_FFI_CallFrame* frame) {
  if (frame->extension_start) {
    auto* metadata = reinterpret_cast<XLA_FFI_Metadata_Extension*>(frame->extension_start)->metadata;
    metadata->api_version.major_version = 0;
    metadata->api_version.minor_version = 5;
    metadata->traits = 0;
    return nullptr;
  }
  auto functions = reinterpret_cast<Function* const*>(frame->api);
  auto* result = reinterpret_cast<XLA_FFI_Buffer*>(frame->rets.rets[0]);
  auto* values = static_cast<double*>(result->data);
  Find find{sizeof(Find), nullptr, frame->ctx, 7, &find};
  Ask ask{sizeof(Ask), nullptr, frame->ctx, nullptr};
  if (auto* error = functions[24](&find)) return error;
  if (auto* error = functions[25](&ask)) return error;
  values[0] = find.extension ? -1 : ask.attrs->size;
  for (int64_t i = 0; i < ask.attrs->size && i < 3; ++i) {
    if (ask.attrs->types[i] != XLA_FFI_AttrType_SCALAR) continue;
    auto* scalar = static_cast<XLA_FFI_Scalar*>(ask.attrs->attrs[i]);
    if (scalar->dtype == XLA_FFI_DataType_S64) values[i + 1] = *static_cast<int64_t*>(scalar->value);
    if (scalar->dtype == XLA_FFI_DataType_F64) values[i + 1] = *static_cast<double*>(scalar->value);
  }
  return nullptr;
}
"""
)

TEXT = """HloModule m

ENTRY e {
  ROOT r = f64[4]{0} custom-call(), custom_call_target="test.options", api_version=API_VERSION_TYPED_FFI
}
"""


def runs(text: str):
    module = parse_module(text)
    for stack in ("legacy", "mlir"):
        yield lambda stack=stack: compile_module(module, Flags.parse(stack)).execute([])[0]
    yield lambda: evaluate(module, [])[0]


def test_options_of_an_execution_reach_handlers_and_there_are_no_extensions():
    register_symbols(compile_cpp(RAW), {"test.options": "options"})
    try:
        for run in runs(TEXT):
            assert run()[0] == 0
            with custom_options({"b": 2.5, "a": 7, "é": {"n": np.int8(1)}, "c": "text"}):
                assert run()[:3].tolist() == [4, 7, 2.5]
                with custom_options({"z": -1}):
                    assert run()[:2].tolist() == [1, -1]
                assert run()[0] == 4
            assert run()[0] == 0
    finally:
        registry.unregister("test.options")


BOUND = (
    HEAD
    + """
static Error Options(Dictionary options, ResultBuffer<F64> r) {
  auto a = options.get<int64_t>("a");
  r->typed_data()[0] = a.has_value() ? *a : -1;
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(options, Options, Ffi::Bind().Ctx<CustomOptions>().Ret<Buffer<F64>>());
"""
)


def newest_header() -> bool:
    folder = include_dir()
    text = "" if folder is None else (folder / "xla/ffi/api/c_api.h").read_text(encoding="utf-8")
    return bool(re.search(r"#define XLA_FFI_API_MINOR [5-9]", text))


@pytest.mark.skipif(not newest_header(), reason="needs the header of version 0.5 (jaxlib 0.12)")
def test_the_header_decodes_options():
    register_symbols(compile_cpp(BOUND), {"test.options": "options"})
    try:
        for run in runs(TEXT):
            assert run()[0] == -1
            with custom_options({"a": 7}):
                assert run()[0] == 7
    finally:
        registry.unregister("test.options")


def test_options_are_plain_values():
    rows = attributes_from({"b": True, "a": np.arange(3, dtype=np.int16), "c": {"d": "x"}})
    assert rows == (
        ("a", (abi.AttrType.ARRAY, 3, 3, "000001000200")),
        ("b", (abi.AttrType.SCALAR, 1, "01")),
        ("c", (abi.AttrType.DICTIONARY, (("d", (abi.AttrType.STRING, "78")),))),
    )
    for wrong in (None, [1, 2], object(), np.array(["x"]), 1 << 70):
        with pytest.raises(InputError, match=r"custom option 'a': \w+ is no attribute"):
            attributes_from({"a": wrong})
    with pytest.raises(InputError, match="a name is text"):
        attributes_from({1: 2})


def test_a_child_of_a_fork_has_a_pool_of_its_own():
    """The threads of the pool stay in the parent."""
    schedule = abi.HANDLER(native().addresses["ThreadPool_Schedule"])
    task = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    read, write = os.pipe()
    note = task(lambda data: os.write(write, bytes([data or 0])) and None)

    def ask(number: int) -> None:
        args = abi.ThreadPoolScheduleArgs(40, None, None, ctypes.cast(note, ctypes.c_void_p), number)
        assert schedule(ctypes.addressof(args)) is None

    ask(1)
    assert os.read(read, 1) == b"\1"
    child = os.fork()
    if not child:
        ask(2)
        os._exit(0 if os.read(read, 1) == b"\2" else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("text", [b"", b"it failed"])
def test_a_future_keeps_its_error_until_somebody_waits(text):
    host = native()
    call = {name: abi.HANDLER(host.addresses[f"Future_{name}"]) for name in ("Create", "SetAvailable", "SetError")}
    made = abi.FutureCreateArgs(16, None, None)
    assert call["Create"](ctypes.addressof(made)) is None and made.future
    assert host.future_wait(made.future, 1000) == 0
    error = host.error(13, text) if text else None
    done = abi.FutureSetErrorArgs(32, None, made.future, error)
    call["SetError" if text else "SetAvailable"](ctypes.addressof(done))
    assert host.future_wait(made.future, 0) == 1
    assert host.future_end(made.future) == error


def registered(behind: int) -> int | None:
    """Register a type as version 0.1 does: nothing belongs to it behind `type_id`. Returns the deleter that it got."""
    name = f"test.type_{behind:x}".encode()
    text, number = ctypes.create_string_buffer(name), abi.TypeId(0)
    words = (ctypes.c_uint64 * 6)(40, 0, ctypes.addressof(text), len(name), ctypes.addressof(number), behind)
    register = abi.HANDLER(native().addresses.get("Type_Register") or abi.Api.from_address(native().api).Type_Register)
    assert register(ctypes.addressof(words)) is None and number.type_id
    return registry.type_info(number.type_id)


def test_a_registration_of_version_01_has_no_type_info():
    some = (ctypes.c_uint64 * 3)(5, 6, 7)
    info = abi.TypeInfo(24, None, 0x1234)
    assert [registered(b) for b in (0, 8, 0x7FFF_FFFF_F000, ctypes.addressof(some))] == [0, 0, 0, 0]
    assert registered(ctypes.addressof(info)) == 0x1234
