"""Handlers with a state, scratch memory and futures, called from eight threads at once: right results, no growth."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from ...benchmarks.memory import resident_bytes
from ...ffi import registry
from ...ffi.static_library import load_library
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module
from ..support.cpp import compile_cpp

SOURCE = r"""
#include <atomic>
#include <cstring>
#include <memory>
#include "xla/ffi/api/ffi.h"
namespace xla::ffi { const XLA_FFI_Api* GetXlaFfiApi(); }
using namespace xla::ffi;

struct Calls { static TypeId id; std::atomic<int> n{0}; };
TypeId Calls::id = {};
static TypeInfo info = MakeTypeInfo<Calls>();
XLA_FFI_REGISTER_TYPE(GetXlaFfiApi(), "test.calls", &Calls::id, &info);
static ErrorOr<std::unique_ptr<Calls>> Make() { return std::make_unique<Calls>(); }
XLA_FFI_DEFINE_HANDLER(kMake, Make, Ffi::BindInstantiate());
static Error Count(Calls* calls, Buffer<F32> x, ResultBuffer<S32> r) {
  *r->typed_data() = calls->n++;
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER(kCount, Count, Ffi::Bind().Ctx<State<Calls>>().Arg<Buffer<F32>>().Ret<Buffer<S32>>());
XLA_FFI_REGISTER_HANDLER(GetXlaFfiApi(), "test.calls", "Host", {kMake, nullptr, nullptr, kCount});

static Error Scratch(ScratchAllocator scratch, Buffer<F32> x, ResultBuffer<F32> r) {
  auto memory = scratch.Allocate(x.size_bytes());
  if (!memory.has_value()) return Error(ErrorCode::kResourceExhausted, "no scratch memory");
  std::memcpy(*memory, x.typed_data(), x.size_bytes());
  std::memcpy(r->typed_data(), *memory, x.size_bytes());
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER(kScratch, Scratch,
    Ffi::Bind().Ctx<ScratchAllocator>().Arg<Buffer<F32>>().Ret<Buffer<F32>>());
XLA_FFI_REGISTER_HANDLER(GetXlaFfiApi(), "test.copies", "Host", kScratch);

static Future Later(ThreadPool pool, Buffer<F32> x, ResultBuffer<F32> r) {
  auto promise = std::make_shared<Promise>();
  Future future(*promise);
  pool.Schedule([=]() mutable {
    for (size_t i = 0; i < x.element_count(); ++i) r->typed_data()[i] = -x.typed_data()[i];
    promise->SetAvailable();
  });
  return future;
}
XLA_FFI_DEFINE_HANDLER(kLater, Later, Ffi::Bind().Ctx<ThreadPool>().Arg<Buffer<F32>>().Ret<Buffer<F32>>());
XLA_FFI_REGISTER_HANDLER(GetXlaFfiApi(), "test.later", "Host", kLater);

static Error Six(Buffer<F32> a, Buffer<F32> b, Buffer<F32> c, ResultBuffer<F32> d, ResultBuffer<F32> e,
                 ResultBuffer<F32> f) {
  for (size_t i = 0; i < a.element_count(); ++i) {
    d->typed_data()[i] = a.typed_data()[i];
    e->typed_data()[i] = b.typed_data()[i] - c.typed_data()[i];
    f->typed_data()[i] = c.typed_data()[i];
  }
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER(kSix, Six, Ffi::Bind().Arg<Buffer<F32>>().Arg<Buffer<F32>>().Arg<Buffer<F32>>()
    .Ret<Buffer<F32>>().Ret<Buffer<F32>>().Ret<Buffer<F32>>());
XLA_FFI_REGISTER_HANDLER(GetXlaFfiApi(), "test.six", "Host", kSix);
"""

TEXT = """HloModule m

ENTRY e {
  x = f32[1024]{0} parameter(0)
  y = f32[1024]{0} custom-call(x), custom_call_target="test.copies", api_version=API_VERSION_TYPED_FFI
  z = f32[1024]{0} custom-call(y), custom_call_target="test.later", api_version=API_VERSION_TYPED_FFI
  n = s32[] custom-call(z), custom_call_target="test.calls", api_version=API_VERSION_TYPED_FFI
  s = (f32[1024]{0}, f32[1024]{0}, f32[1024]{0}) custom-call(z, y, z), custom_call_target="test.six",
    api_version=API_VERSION_TYPED_FFI
  d = f32[1024]{0} get-tuple-element(s), index=0
  e = f32[1024]{0} get-tuple-element(s), index=1
  f = f32[1024]{0} get-tuple-element(s), index=2
  ROOT r = (f32[1024]{0}, s32[], f32[1024]{0}, f32[1024]{0}) tuple(d, n, e, f)
}
"""
THREADS = 8
MOST = 8 << 20
"""Bytes by which a process may grow: caches of the allocator for each thread. A leak of 64 bytes a call is more."""


@pytest.fixture(scope="module")
def handlers():
    """They register themselves once a process, when their library is loaded."""
    names = load_library(compile_cpp(SOURCE))
    yield names
    for name in names:
        registry.unregister(name)


@pytest.mark.parametrize("calls", [100, pytest.param(10_000, marks=pytest.mark.deep)])
def test_threads_call_handlers_at_once(calls: int, handlers):
    executable = compile_module(parse_module(TEXT), Flags.parse("legacy"))
    wrong: list[float] = []
    numbers = [0] * THREADS

    def work(thread: int) -> None:
        for call in range(calls):
            value = float(thread * calls + call)
            z, n, e, f = executable.execute([np.full(1024, value, np.float32)])
            numbers[thread] += int(n)
            if not ((z == -value) & (e == 2 * value) & (f == -value)).all():
                wrong.append(value)

    def all_threads() -> None:
        threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gc.collect()

    all_threads()
    before = resident_bytes()
    all_threads()
    total = 2 * THREADS * calls
    assert wrong == [] and sum(numbers) == total * (total - 1) // 2
    assert resident_bytes() - before < MOST
