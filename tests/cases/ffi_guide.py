"""C++ handlers as XLA's guide on custom calls writes them, each with a program that calls it.

Edits against the guide, which is older than the header: `dimensions()` and `typed_data()` for fields of these names,
`return Error::Success()` where a return was missing, `element_count()`, and names of handlers of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

HEAD = """
#include <atomic>
#include <complex>
#include <cstring>
#include <stdexcept>
#include <thread>
#include "xla/ffi/api/ffi.h"
using namespace xla::ffi;
"""


@dataclass(frozen=True)
class Snippet:
    """code: C++ that defines the handler symbol `name`. body: the lines of an entry; $T is target and version.

    error: the end of the message where the handler refuses. xla: XLA:CPU can run it.
    """

    name: str
    code: str
    body: str
    error: str = ""
    xla: bool = True


_X = "  x = f32[4]{0} parameter(0)\n"
_ONE = _X + "  ROOT r = f32[4]{0} custom-call(x), $T"


def _sum(name: str, bind: str, parameters: str, value: str, config: str, before: str = "") -> Snippet:
    """A handler that adds a number, which depends on attributes, to each element."""
    code = f"""{before}
static Error Run_{name}(Buffer<F32> x, ResultBuffer<F32> r{parameters}) {{
  {value}
  for (size_t i = 0; i < x.element_count(); ++i) r->typed_data()[i] = x.typed_data()[i] + static_cast<float>(v);
  return Error::Success();
}}
XLA_FFI_DEFINE_HANDLER_SYMBOL({name}, Run_{name}, Ffi::Bind().Arg<Buffer<F32>>().Ret<Buffer<F32>>(){bind});
"""
    return Snippet(name, code, f"{_ONE}, backend_config={{{config}}}")


SNIPPETS = (
    Snippet(
        "do_custom_call",
        """
using BufferF32 = BufferR1<DataType::F32>;
Error DoCustomCall(BufferF32 in0, BufferF32 in1, Result<BufferF32> out) {
  size_t d0 = in0.dimensions()[0];
  size_t d1 = in1.dimensions()[0];
  if (out->dimensions()[0] != in1.dimensions()[0]) return Error(ErrorCode::kInternal, "unexpected dimensions");
  for (size_t i = 0; i < d1; ++i) out->typed_data()[i] = in0.typed_data()[i % d0] + in1.typed_data()[i];
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(do_custom_call, DoCustomCall,
                              Ffi::Bind().Arg<BufferF32>().Arg<BufferF32>().Ret<BufferF32>());
""",
        "  x = f32[128]{0} parameter(0)\n  y = f32[2048]{0} parameter(1)\n"
        "  ROOT r = f32[2048]{0} custom-call(x, y), $T",
    ),
    Snippet(
        "automatic",
        """
Error Automatic(BufferR1<F32> a, BufferR1<F32> b, Result<BufferR1<F32>> out) {
  for (size_t i = 0; i < b.element_count(); ++i)
    out->typed_data()[i] = a.typed_data()[i % a.element_count()] * b.typed_data()[i];
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(automatic, Automatic);
""",
        "  x = f32[8]{0} parameter(0)\n  y = f32[64]{0} parameter(1)\n  ROOT r = f32[64]{0} custom-call(x, y), $T",
    ),
    Snippet(
        "any_buffer",
        """
static Error AnyBufferHandler(AnyBuffer a, Result<AnyBuffer> r) {
  if (a.element_type() != r->element_type()) return Error::InvalidArgument("types differ");
  std::memcpy(r->untyped_data(), a.untyped_data(), a.size_bytes());
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(any_buffer, AnyBufferHandler, Ffi::Bind().Arg<AnyBuffer>().Ret<AnyBuffer>());
""",
        "  x = bf16[3,5]{1,0} parameter(0)\n  ROOT r = bf16[3,5]{1,0} custom-call(x), $T",
    ),
    Snippet(
        "rank_two",
        """
static Error RankTwo(BufferR2<F32> a, ResultBufferR0<F32> r) {
  float sum = 0;
  for (int64_t i = 0; i < a.dimensions()[0]; ++i)
    for (int64_t j = 0; j < a.dimensions()[1]; ++j) sum += (i + 10 * j) * a.typed_data()[i * a.dimensions()[1] + j];
  *r->typed_data() = sum;
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(rank_two, RankTwo, Ffi::Bind().Arg<BufferR2<F32>>().Ret<BufferR0<F32>>());
""",
        "  x = f32[3,5]{1,0} parameter(0)\n  ROOT r = f32[] custom-call(x), $T",
    ),
    Snippet(
        "remaining",
        """
static Error Remaining(Buffer<F32> first, RemainingArgs rest, ResultBuffer<F32> r, RemainingRets more) {
  float sum = *first.typed_data();
  for (size_t i = 0; i < rest.size(); ++i) {
    auto next = rest.get<Buffer<F32>>(i);
    if (!next.has_value()) return next.error();
    sum += (i + 2) * *next->typed_data();
  }
  *r->typed_data() = sum;
  for (size_t i = 0; i < more.size(); ++i) *(*more.get<Buffer<S32>>(i))->typed_data() = static_cast<int32_t>(i + 7);
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(remaining, Remaining,
    Ffi::Bind().Arg<Buffer<F32>>().RemainingArgs().Ret<Buffer<F32>>().RemainingRets());
""",
        "  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  z = f32[] parameter(2)\n"
        "  ROOT r = (f32[], s32[], s32[]) custom-call(x, y, z), $T",
    ),
    Snippet(
        "optional",
        """
static Error Optional(Buffer<F32> a, std::optional<Buffer<F32>> b, ResultBuffer<F32> r) {
  *r->typed_data() = *a.typed_data() + (b.has_value() ? *b->typed_data() : 100.0f);
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(optional, Optional,
    Ffi::Bind().Arg<Buffer<F32>>().OptionalArg<Buffer<F32>>().Ret<Buffer<F32>>());
""",
        "  x = f32[] parameter(0)\n  ROOT r = f32[] custom-call(x), $T",
    ),
    Snippet(
        "temporary",
        """
static Error Temporary(Buffer<F32> a, ResultBuffer<F32> r, ResultBuffer<F32> temp) {
  for (size_t i = 0; i < a.element_count(); ++i) temp->typed_data()[i] = 2 * a.typed_data()[i];
  for (size_t i = 0; i < a.element_count(); ++i) r->typed_data()[i] = temp->typed_data()[a.element_count() - 1 - i];
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(temporary, Temporary,
    Ffi::Bind().Arg<Buffer<F32>>().Ret<Buffer<F32>>().Ret<Buffer<F32>>());
""",
        "  x = f32[8]{0} parameter(0)\n  t = (f32[8]{0}, f32[8]{0}) custom-call(x), $T\n"
        "  ROOT r = f32[8]{0} get-tuple-element(t), index=0",
    ),
    Snippet(
        "tuples",
        """
static Error Tuples(Buffer<F32> a, BufferR0<F32> b, Buffer<S32> c, ResultBuffer<F32> r, ResultBufferR0<F32> s,
                    ResultBuffer<S32> t) {
  for (size_t i = 0; i < a.element_count(); ++i) r->typed_data()[i] = a.typed_data()[i] + *b.typed_data();
  *s->typed_data() = *b.typed_data() * 2;
  for (size_t i = 0; i < c.element_count(); ++i) t->typed_data()[i] = c.typed_data()[i] + 1;
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(tuples, Tuples, Ffi::Bind().Arg<Buffer<F32>>().Arg<BufferR0<F32>>().Arg<Buffer<S32>>()
    .Ret<Buffer<F32>>().Ret<BufferR0<F32>>().Ret<Buffer<S32>>());
""",
        "  x = f32[4]{0} parameter(0)\n  y = f32[] parameter(1)\n  z = s32[3]{0} parameter(2)\n"
        "  i = (f32[], s32[3]{0}) tuple(y, z)\n"
        "  ROOT r = ((f32[4]{0}, f32[]), s32[3]{0}) custom-call(x, i), $T",
    ),
    _sum(
        "scalars",
        '.Attr<int32_t>("i32").Attr<float>("f32").Attr<bool>("b").Attr<uint8_t>("u8").Attr<double>("f64")',
        ", int32_t i, float f, bool b, uint8_t u, double d",
        "double v = i + f + (b ? 1000 : 0) + u + d;",
        "i32 = 42 : i32, f32 = 1.5 : f32, b = true, u8 = 76 : ui8, f64 = -0.25 : f64",
    ),
    _sum(
        "text",
        '.Attr<std::string_view>("str")',
        ", std::string_view s",
        "double v = 0; for (char c : s) v = 3 * v + static_cast<unsigned char>(c);",
        'str = "a\\22b\\0A"',
    ),
    _sum(
        "spans",
        '.Attr<Span<const int64_t>>("a").Attr<Span<const float>>("d")',
        ", Span<const int64_t> a, Span<const float> d",
        "double v = 0; for (int64_t x : a) v = 2 * v + x; for (float x : d) v += x;",
        "a = array<i64: 1, 2, -3>, d = dense<[[1.5, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>",
    ),
    _sum("pointer", '.Attr<Pointer<int32_t>>("p")', ", int32_t* p", "double v = p == nullptr ? 3 : 4;", "p = 0 : i64"),
    _sum(
        "enumeration",
        '.Attr<Command>("command")',
        ", Command c",
        "int v = c == Command::kMul ? 11 : 5;",
        "command = 1 : i32",
        "enum class Command : int32_t { kAdd = 0, kMul = 1 };\nXLA_FFI_REGISTER_ENUM_ATTR_DECODING(Command);",
    ),
    _sum(
        "structure",
        '.Attr<Range>("range")',
        ", Range g",
        "int64_t v = 10 * g.lo + g.hi;",
        "range = {lo = 2 : i64, hi = 5 : i64}",
        "struct Range { int64_t lo; int64_t hi; };\nXLA_FFI_REGISTER_STRUCT_ATTR_DECODING(Range, "
        'StructMember<int64_t>("lo"), StructMember<int64_t>("hi"));',
    ),
    _sum(
        "all_attributes",
        ".Attrs<Inner>()",
        ", Inner g",
        "int64_t v = 10 * g.lo + g.hi;",
        "hi = 5 : i64, lo = 2 : i64",
        "struct Inner { int64_t lo; int64_t hi; };\nXLA_FFI_REGISTER_STRUCT_ATTR_DECODING(Inner, "
        'StructMember<int64_t>("lo"), StructMember<int64_t>("hi"));',
    ),
    _sum(
        "dictionary",
        ".Attrs()",
        ", Dictionary d",
        'auto i = d.get<int32_t>("i32"); if (!i.has_value()) return i.error(); double v = *i + (double)d.size();',
        "f32 = 1.0 : f32, i32 = 9 : i32",
    ),
    _sum(
        "nested",
        '.Attr<Dictionary>("outer")',
        ", Dictionary d",
        'auto i = d.get<Dictionary>("inner"); if (!i.has_value()) return i.error(); int64_t v = *i->get<int64_t>("n");',
        "outer = {inner = {n = 31}}",
    ),
    _sum(
        "run_id",
        ".Ctx<RunId>().Ctx<DeviceOrdinal>()",
        ", RunId id, int32_t ordinal",
        "double v = ordinal + (id.run_id != -12345 ? 1 : 0);",
        "",
    ),
    _sum(
        "pool",
        ".Ctx<ThreadPool>()",
        ", ThreadPool pool",
        "std::atomic<int> v{0}; std::atomic<int> left{16};"
        "for (int k = 0; k < 16; ++k) pool.Schedule([&, k] { v += k; --left; });"
        "while (left > 0) std::this_thread::yield(); if (pool.num_threads() < 1) v = -1;",
        "",
    ),
    Snippet(
        "future",
        """
static Future Later(Buffer<F32> x, ResultBuffer<F32> r) {
  Promise promise;
  Future future(promise);
  std::thread([=, p = std::move(promise)]() mutable {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    for (size_t i = 0; i < x.element_count(); ++i) r->typed_data()[i] = -x.typed_data()[i];
    p.SetAvailable();
  }).detach();
  return future;
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(future, Later, Ffi::Bind().Arg<Buffer<F32>>().Ret<Buffer<F32>>());
""",
        f"{_ONE}\n".replace("ROOT r", "q") + "  ROOT r = f32[4]{0} add(q, q)",
    ),
)
"""Snippets that compute something."""

_SCRATCH = _sum(
    "scratch",
    ".Ctx<ScratchAllocator>()",
    ", ScratchAllocator scratch",
    'auto m = scratch.Allocate(64, 256); if (!m.has_value()) return Error(ErrorCode::kInternal, "none");'
    "double v = reinterpret_cast<uintptr_t>(*m) % 256 == 0 ? 6 : 7; std::memset(*m, 1, 64);",
    "",
)

OURS = (Snippet(_SCRATCH.name, _SCRATCH.code, _SCRATCH.body, xla=False),)
"""Snippets that XLA:CPU cannot run: it has no scratch memory for handlers."""


def _refuses(
    name: str, error: str, bind: str, parameters: str, body: str, run: str = "return Error::Success();"
) -> Snippet:
    code = f"static Error Run_{name}({parameters}) {{ {run or 'return Error::Success();'} }}\n"
    code += f"XLA_FFI_DEFINE_HANDLER_SYMBOL({name}, Run_{name}, Ffi::Bind(){bind});\n"
    return Snippet(name, code, body, error)


_AB, _AR = ".Arg<Buffer<F32>>().Ret<Buffer<F32>>()", "Buffer<F32> x, ResultBuffer<F32> r"
REFUSALS = (
    _refuses(
        "always_error",
        "INTERNAL: Uh oh",
        ".Ret<AnyBuffer>()",
        "Result<AnyBuffer> r",
        "  ROOT r = f32[4]{0} custom-call(), $T",
        'return Error(ErrorCode::kInternal, "Uh oh");',
    ),
    _refuses("other_code", "DATA_LOSS: gone", _AB, _AR, _ONE, 'return Error(ErrorCode::kDataLoss, "gone");'),
    _refuses(
        "wrong_type",
        "Wrong buffer dtype: expected F64 but got F32",
        ".Arg<Buffer<F64>>().Ret<Buffer<F32>>()",
        "Buffer<F64> x, ResultBuffer<F32> r",
        _ONE,
    ),
    _refuses(
        "wrong_rank",
        "Wrong buffer rank: expected 2 but got 1",
        ".Arg<BufferR2<F32>>().Ret<Buffer<F32>>()",
        "BufferR2<F32> x, ResultBuffer<F32> r",
        _ONE,
    ),
    _refuses(
        "wrong_count",
        "[execute] Wrong number of arguments: expected 2 but got 1",
        ".Arg<AnyBuffer>().Arg<AnyBuffer>().Ret<AnyBuffer>()",
        "AnyBuffer x, AnyBuffer y, Result<AnyBuffer> r",
        _ONE,
    ),
    _refuses(
        "wrong_results",
        "[execute] Wrong number of results: expected 2 but got 1",
        ".Arg<AnyBuffer>().Ret<AnyBuffer>().Ret<AnyBuffer>()",
        "AnyBuffer x, Result<AnyBuffer> r, Result<AnyBuffer> s",
        _ONE,
    ),
    _refuses(
        "wrong_attributes",
        "[execute] Wrong number of attributes: expected 2 but got 1 with name(s): str",
        _AB + '.Attr<int32_t>("i32").Attr<float>("f32")',
        _AR + ", int32_t i, float f",
        _ONE + ', backend_config={str = "x"}',
    ),
    _refuses(
        "wrong_name",
        "i33 vs i32",
        _AB + '.Attr<int32_t>("i32")',
        _AR + ", int32_t i",
        _ONE + ", backend_config={i33 = 1 : i32}",
    ),
    _refuses(
        "wrong_width",
        "Wrong scalar data type: expected S32 but got S64",
        _AB + '.Attr<int32_t>("i32")',
        _AR + ", int32_t i",
        _ONE + ", backend_config={i32 = 1}",
    ),
    _refuses(
        "wrong_kind",
        "expected scalar but got string",
        _AB + '.Attr<int32_t>("i32")',
        _AR + ", int32_t i",
        _ONE + ', backend_config={i32 = "x"}',
    ),
    _refuses(
        "absent",
        "Unexpected attribute: range",
        _AB + ".Attrs()",
        _AR + ", Dictionary d",
        _ONE + ", backend_config={i = 1}",
        'auto v = d.get<int64_t>("range"); return v.error();',
    ),
    _refuses(
        "out_of_range",
        "INVALID_ARGUMENT: Index out of range",
        ".RemainingArgs().Ret<AnyBuffer>()",
        "RemainingArgs x, Result<AnyBuffer> r",
        _ONE,
        "return x.get<AnyBuffer>(3).error();",
    ),
    _refuses(
        "stream",
        "Failed to get platform stream: XLA FFI GPU context is not available",
        _AB + ".Ctx<PlatformStream<void*>>()",
        _AR + ", void* s",
        _ONE,
    ),
    _refuses(
        "throws",
        "UNKNOWN: XLA FFI call failed: thrown by a test",
        _AB,
        _AR,
        _ONE,
        'throw std::runtime_error("thrown by a test");',
    ),
)
"""Snippets that end in an error, here and in XLA."""


def source() -> str:
    """All handlers as one file of C++."""
    return HEAD + "".join(s.code for s in (*SNIPPETS, *OURS, *REFUSALS))


def program(snippet: Snippet, prefix: str = "guide.") -> str:
    call = f'custom_call_target="{prefix}{snippet.name}", api_version=API_VERSION_TYPED_FFI'
    return f"HloModule m\n\nENTRY e {{\n{snippet.body.replace('$T', call)}\n}}\n"
