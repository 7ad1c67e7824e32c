"""C++ handlers that register themselves while their library is loaded, with stages and states; and older versions."""

SOURCE = r"""
#include <atomic>
#include "xla/ffi/api/ffi.h"
namespace xla::ffi { const XLA_FFI_Api* GetXlaFfiApi(); }
using namespace xla::ffi;

struct Counter { static TypeId id; std::atomic<int> n{0}; ~Counter(); };
struct Notes { static TypeId id; int64_t run = 0; ~Notes(); };
struct Data { static TypeId id; float value; };
TypeId Counter::id = {}, Notes::id = {}, Data::id = {};
static std::atomic<int> deleted{0}, ended{0};
Counter::~Counter() { ++deleted; }
Notes::~Notes() { ++ended; }
static TypeInfo counter_info = MakeTypeInfo<Counter>(), notes_info = MakeTypeInfo<Notes>(), data_info = {};
XLA_FFI_REGISTER_TYPE(GetXlaFfiApi(), "test.counter", &Counter::id, &counter_info);
XLA_FFI_REGISTER_TYPE(GetXlaFfiApi(), "test.notes", &Notes::id, &notes_info);
XLA_FFI_REGISTER_TYPE(GetXlaFfiApi(), "test.data", &Data::id, &data_info);
extern "C" int deleted_counters() { return deleted; }
extern "C" int ended_notes() { return ended; }
extern "C" int64_t data_id() { return Data::id.type_id; }

static ErrorOr<std::unique_ptr<Counter>> Make(int32_t start) {
  if (start < 0) return Unexpected(Error(ErrorCode::kOutOfRange, "start is negative"));
  auto made = std::make_unique<Counter>();
  made->n = start;
  return made;
}
XLA_FFI_DEFINE_HANDLER(kMake, Make, Ffi::BindInstantiate().Attr<int32_t>("start"));
static Error Count(Counter* counter, Buffer<F32> x, ResultBuffer<F32> r, int32_t start) {
  r->typed_data()[0] = x.typed_data()[0] + counter->n++;
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER(kCount, Count, Ffi::Bind().Ctx<State<Counter>>().Arg<Buffer<F32>>().Ret<Buffer<F32>>()
    .Attr<int32_t>("start"), {Traits::kCmdBufferCompatible});
XLA_FFI_REGISTER_HANDLER(GetXlaFfiApi(), "test.count", "Host", {kMake, nullptr, nullptr, kCount});

static ErrorOr<std::unique_ptr<Notes>> Begin(RunId id) {
  auto made = std::make_unique<Notes>();
  made->run = id.run_id;
  return made;
}
XLA_FFI_DEFINE_HANDLER(kBegin, Begin, Ffi::BindInitialize().Ctx<RunId>());
static Error Compare(Notes* notes, RunId id, Buffer<F32> x, ResultBuffer<F32> r) {
  r->typed_data()[0] = notes->run == id.run_id ? x.typed_data()[0] : -1.0f;
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER(kCompare, Compare,
    Ffi::Bind().Ctx<Initialized<Notes>>().Ctx<RunId>().Arg<Buffer<F32>>().Ret<Buffer<F32>>());
XLA_FFI_REGISTER_HANDLER(GetXlaFfiApi(), "test.notes", "Host", {nullptr, nullptr, kBegin, kCompare});

static Error Use(Data* data, Buffer<F32> x, ResultBuffer<F32> r) {
  r->typed_data()[0] = x.typed_data()[0] * data->value;
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER(kUse, Use, Ffi::Bind().Ctx<UserData<Data>>().Arg<Buffer<F32>>().Ret<Buffer<F32>>());
XLA_FFI_REGISTER_HANDLER(GetXlaFfiApi(), "test.use", "Host", kUse);

static Error AddOne(Buffer<F32> x, ResultBuffer<F32> r) {
  // Writes the first element only: the rest must be the operand's, where they are the same memory.
  r->typed_data()[0] = x.typed_data()[0] + 1;
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(add_one, AddOne, Ffi::Bind().Arg<Buffer<F32>>().Ret<Buffer<F32>>());

static std::atomic<int> calls{0};
extern "C" int tick_count() { return calls; }
static Error Tick(RemainingRets) { ++calls; return Error::Success(); }
XLA_FFI_DEFINE_HANDLER_SYMBOL(tick, Tick, Ffi::Bind().RemainingRets());

static Error Weighted(Buffer<F32> x, ResultBuffer<F32> r) {
  // Sees memory as it lies: element k is multiplied by k + 1.
  for (size_t k = 0; k < x.element_count(); ++k) r->typed_data()[k] = (k + 1) * x.typed_data()[k];
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(weighted, Weighted, Ffi::Bind().Arg<Buffer<F32>>().Ret<Buffer<F32>>());

static Error Overrun(Buffer<F32> x, ResultBuffer<F32> r) {
  r->typed_data()[x.element_count()] = 3;
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(overrun, Overrun, Ffi::Bind().Arg<Buffer<F32>>().Ret<Buffer<F32>>());

static Error Hang(Buffer<F32> x, ResultBuffer<F32> r) {
  volatile bool on = true;
  while (on) {}
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(hang, Hang, Ffi::Bind().Arg<Buffer<F32>>().Ret<Buffer<F32>>());
static Error Crash(Buffer<F32> x, ResultBuffer<F32> r) {
  *reinterpret_cast<volatile int*>(8) = 1;
  return Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(crash, Crash, Ffi::Bind().Arg<Buffer<F32>>().Ret<Buffer<F32>>());

// The older versions.
extern "C" void XlaCustomCallStatusSetFailure(void* status, const char* message, size_t size);
extern "C" void original(void* out, const void** in) {
  static_cast<float*>(out)[0] = static_cast<const float*>(in[0])[0] + static_cast<const float*>(in[1])[0];
}
extern "C" void original_tuple(void* out, const void** in) {
  void** outs = static_cast<void**>(out);
  static_cast<float*>(outs[0])[0] = 2 * static_cast<const float*>(in[0])[0];
  static_cast<float*>(outs[1])[0] = 3 * static_cast<const float*>(in[1])[0];
}
extern "C" void returning(void* out, const void** in, void* status) {
  float value = static_cast<const float*>(in[0])[0];
  static_cast<float*>(out)[0] = value + 5;
  if (value < 0) XlaCustomCallStatusSetFailure(status, "a negative number, and more", 17);
}
extern "C" void unified(void* out, const void** in, const char* opaque, size_t size, void* status) {
  static_cast<float*>(out)[0] = static_cast<const float*>(in[0])[0] + size + opaque[0];
  if (size == 0) XlaCustomCallStatusSetFailure(status, "no opaque", 9);
}
"""
