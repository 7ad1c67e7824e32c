// The example of XLA's guide for GPUs, as a handler for OpenCL: a kernel in SPIR-V that it enqueues in the run's queue.
// kernel.inc has the bytes of the SPIR-V; opencl_handler.py makes it, and builds this file.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// The few functions of OpenCL that are used here, so that its headers need not be installed.
extern "C" {
typedef struct _cl_platform_id* cl_platform_id;
typedef struct _cl_device_id* cl_device_id;
typedef struct _cl_context* cl_context;
typedef struct _cl_command_queue* cl_command_queue;
typedef struct _cl_program* cl_program;
typedef struct _cl_kernel* cl_kernel;
typedef struct _cl_event* cl_event;

int32_t clGetCommandQueueInfo(cl_command_queue, uint32_t, size_t, void*, size_t*);
int32_t clGetDeviceInfo(cl_device_id, uint32_t, size_t, void*, size_t*);
cl_program clCreateProgramWithIL(cl_context, const void*, size_t, int32_t*);
int32_t clBuildProgram(cl_program, uint32_t, const cl_device_id*, const char*, void (*)(cl_program, void*), void*);
cl_kernel clCreateKernel(cl_program, const char*, int32_t*);
void* clGetExtensionFunctionAddressForPlatform(cl_platform_id, const char*);
int32_t clEnqueueNDRangeKernel(cl_command_queue, cl_kernel, uint32_t, const size_t*, const size_t*, const size_t*,
                               uint32_t, const cl_event*, cl_event*);
}

constexpr uint32_t kQueueContext = 0x1090, kQueueDevice = 0x1091, kDevicePlatform = 0x1031;

static const unsigned char kSpirv[] = {
#include "kernel.inc"
};

// The kernel in one context. Its arguments are its state, so one thread at a time sets them.
struct Kernel {
  cl_kernel kernel = nullptr;
  int32_t (*set_pointer)(cl_kernel, uint32_t, const void*) = nullptr;
  std::mutex mutex;
};

static ffi::Error Failed(const char* what, int32_t code) {
  return ffi::Error(ffi::ErrorCode::kInternal, std::string(what) + ": OpenCL says " + std::to_string(code));
}

// Builds the kernel at the first call in a context.
static ffi::Error Built(cl_command_queue queue, Kernel** made) {
  static std::mutex mutex;
  static auto* kernels = new std::map<cl_context, std::unique_ptr<Kernel>>();
  cl_context context;
  cl_device_id device;
  cl_platform_id platform;
  int32_t code = clGetCommandQueueInfo(queue, kQueueContext, sizeof context, &context, nullptr);
  if (!code) code = clGetCommandQueueInfo(queue, kQueueDevice, sizeof device, &device, nullptr);
  if (!code) code = clGetDeviceInfo(device, kDevicePlatform, sizeof platform, &platform, nullptr);
  if (code) return Failed("ask the queue", code);

  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Kernel>& found = (*kernels)[context];
  if (!found) {
    cl_program program = clCreateProgramWithIL(context, kSpirv, sizeof kSpirv, &code);
    if (!code) code = clBuildProgram(program, 1, &device, "", nullptr, nullptr);
    if (code) return Failed("build the kernel", code);
    auto kernel = std::make_unique<Kernel>();
    kernel->kernel = clCreateKernel(program, "custom_call_kernel", &code);
    if (code) return Failed("find the kernel", code);
    void* function = clGetExtensionFunctionAddressForPlatform(platform, "clSetKernelArgMemPointerINTEL");
    kernel->set_pointer = reinterpret_cast<decltype(kernel->set_pointer)>(function);
    if (!kernel->set_pointer) return ffi::Error(ffi::ErrorCode::kUnimplemented, "the device has no USM");
    found = std::move(kernel);
  }
  *made = found.get();
  return ffi::Error::Success();
}

// A[i] = B[i % 128] + C[i]. It returns at once: the kernel runs behind what is in the queue.
static ffi::Error CustomCall(cl_command_queue queue, ffi::BufferR1<ffi::F32> b, ffi::BufferR1<ffi::F32> c,
                             ffi::Result<ffi::BufferR1<ffi::F32>> a) {
  if (b.element_count() != 128) return ffi::Error::InvalidArgument("the first operand needs 128 elements");
  Kernel* built;
  ffi::Error error = Built(queue, &built);
  if (error.failure()) return error;
  std::lock_guard<std::mutex> lock(built->mutex);
  int32_t code = built->set_pointer(built->kernel, 0, b.untyped_data());
  if (!code) code = built->set_pointer(built->kernel, 1, c.untyped_data());
  if (!code) code = built->set_pointer(built->kernel, 2, a->untyped_data());
  size_t items = c.element_count();
  if (!code && items)
    code = clEnqueueNDRangeKernel(queue, built->kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr);
  return code ? Failed("run the kernel", code) : ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(custom_call, CustomCall,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<cl_command_queue>>()
                                  .Arg<ffi::BufferR1<ffi::F32>>()
                                  .Arg<ffi::BufferR1<ffi::F32>>()
                                  .Ret<ffi::BufferR1<ffi::F32>>());
