// SPDX-License-Identifier: Apache-2.0
// The OpenCL layer that the ICD loader finds in OPENCL_LAYERS. The loader passes the driver's
// dispatch table. The layer returns a second table, in which the commands that do work are wrapped.
//
// The program must not notice: it gets the results, events and queue properties that it would get
// without the layer. A queue is made with profiling on. If the program did not ask for profiling,
// the queue does not show the property and its events report no profiling information.
#include "profile/capture/opencl/collector.h"
#include "profile/capture/opencl/queue_properties.h"
#include "profile/capture/session/per_process.h"

#include <CL/cl_layer.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <new>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace purlin::profile::capture::opencl {
namespace {

using Instance = PerProcess<Collector>;

constexpr char kLayerName[] = "Purlin capture";
// Set once by clInitLayer, before any other call can reach the layer.
const cl_icd_dispatch* driver = nullptr;
cl_icd_dispatch table = {};

// Null when the process is not captured or memory ran out: the layer then only passes the call on.
Collector* collector() noexcept {
  // Decided once: the program's calls must not wait for the decision.
  static std::atomic<bool> unwanted = false;
  if (unwanted.load(std::memory_order_relaxed)) return nullptr;
  return Instance::get([]() -> Collector* {
    try {
      SessionOptions options;
      if (!SessionOptions::from_environment("opencl", options) ||
          !options.sampler.left_out.empty()) {
        unwanted = true;
        return nullptr;
      }
      auto* made = new Collector(*driver, options);
      made->session().start();
      return made;
    } catch (...) {
      return nullptr;
    }
  });
}

void finish_at_exit() {
  try {
    if (Collector* instance = Instance::peek()) instance->session().finish();
  } catch (...) {
  }
}

// ---- commands ----

// The number of bytes of a command, from the arguments of its call. Each number is the position of
// an argument.
template <std::size_t kSize>
struct Size {
  static double of(const auto& arguments) {
    return static_cast<double>(std::get<kSize>(arguments));
  }
};

template <std::size_t kRegion>
struct Region {
  static double of(const auto& arguments) { return region_elements(std::get<kRegion>(arguments)); }
};

template <std::size_t kImage, std::size_t kRegion>
struct ImageRegion {
  static double of(const auto& arguments) {
    return image_bytes(*driver, std::get<kImage>(arguments), std::get<kRegion>(arguments));
  }
};

struct NoBytes {
  static double of(const auto&) { return 0; }
};

constexpr char kToHost[] = "d2h", kToDevice[] = "h2d", kOnDevice[] = "d2d", kFill[] = "fill",
               kMap[] = "map", kUnmap[] = "unmap", kSvm[] = "svm";

// How a command is described: Transfer, Launch or Task.
template <const char* kKind, class Bytes>
struct Transfer {
  static Command describe(Collector&, const auto& arguments) {
    Command command;
    command.kind = kKind;
    command.bytes = Bytes::of(arguments);
    return command;
  }
};

struct Launch {
  static Command describe(Collector& instance, const auto& arguments) {
    const cl_device_id device = instance.device_of(std::get<0>(arguments));
    return describe_launch(*driver, device, std::get<1>(arguments), std::get<2>(arguments),
                           std::get<4>(arguments), std::get<5>(arguments));
  }
};

struct Task {
  static Command describe(Collector& instance, const auto& arguments) {
    const std::size_t one = 1;
    const cl_device_id device = instance.device_of(std::get<0>(arguments));
    return describe_launch(*driver, device, std::get<1>(arguments), 1, &one, &one);
  }
};

// Runs `call` with an event to write to, and tracks that event as the command of `describe`.
template <class Call, class Describe>
void tracked(cl_command_queue queue, cl_event* event, Call call, Describe describe) noexcept {
  Collector* instance = collector();
  if (instance == nullptr) {
    call(event);
    return;
  }
  const std::int64_t began = monotonic_ns();
  cl_event own = nullptr;
  cl_event* out = event != nullptr ? event : &own;
  const std::int64_t enqueued = wall_ns();
  const std::int64_t called = monotonic_ns();
  const cl_int result = call(out);
  const std::int64_t returned = monotonic_ns();
  if (result != CL_SUCCESS) return;
  try {
    Command command = describe(*instance);
    if (event != nullptr && driver->clRetainEvent(*event) != CL_SUCCESS) return;
    instance->track(queue, *out, std::move(command), enqueued);
  } catch (...) {
    if (own != nullptr) driver->clReleaseEvent(own);
  }
  instance->add_overhead(called - began + monotonic_ns() - returned);
}

// The wrapper of the command in `kSlot` of the dispatch table. The queue is the first argument of
// each command and the event is the last one. A command that maps memory returns the address, and
// its last argument, after the event, is the place for the error.
template <auto kSlot, class Description, class Result, class... Arguments>
Result CL_API_CALL command(Arguments... values) noexcept {
  constexpr bool kMaps = std::is_pointer_v<Result>;
  constexpr std::size_t kEvent = sizeof...(Arguments) - (kMaps ? 2 : 1);
  std::tuple<Arguments...> arguments(values...);
  cl_int error = CL_SUCCESS;
  cl_int* asked = nullptr;
  if constexpr (kMaps) asked = std::exchange(std::get<kEvent + 1>(arguments), &error);
  Result result = {};
  tracked(
      std::get<0>(arguments), std::get<kEvent>(arguments),
      [&](cl_event* out) {
        std::get<kEvent>(arguments) = out;
        result = std::apply(driver->*kSlot, arguments);
        if constexpr (kMaps)
          return error;
        else
          return result;
      },
      [&](Collector& instance) { return Description::describe(instance, arguments); });
  if (asked != nullptr) *asked = error;
  return result;
}

// ---- queues ----

void remember_queue(cl_command_queue queue, cl_device_id device, bool profiled,
                    bool asked) noexcept {
  try {
    if (Collector* instance = collector()) instance->add_queue(queue, device, profiled, asked);
  } catch (...) {
  }
}

cl_command_queue CL_API_CALL create_queue(cl_context context, cl_device_id device,
                                          cl_command_queue_properties properties, cl_int* error) {
  const bool asked = (properties & CL_QUEUE_PROFILING_ENABLE) != 0;
  cl_command_queue queue = nullptr;
  if (collector() != nullptr && !asked)
    queue = driver->clCreateCommandQueue(context, device, properties | CL_QUEUE_PROFILING_ENABLE,
                                         error);
  const bool added = queue != nullptr;
  if (!added) queue = driver->clCreateCommandQueue(context, device, properties, error);
  if (queue != nullptr) remember_queue(queue, device, asked || added, asked);
  return queue;
}

cl_command_queue CL_API_CALL create_queue_with_properties(cl_context context, cl_device_id device,
                                                          const cl_queue_properties* properties,
                                                          cl_int* error) {
  const ProfiledProperties profiled(properties);
  const bool asked = profiled.asked();
  cl_command_queue queue = nullptr;
  if (collector() != nullptr && !asked && profiled.can_add())
    queue = driver->clCreateCommandQueueWithProperties(context, device, profiled.list(), error);
  const bool added = queue != nullptr;
  if (!added)
    queue = driver->clCreateCommandQueueWithProperties(context, device, properties, error);
  if (queue != nullptr) remember_queue(queue, device, asked || added, asked);
  return queue;
}

bool hidden(cl_command_queue queue) noexcept {
  try {
    Collector* instance = Instance::peek();
    return instance != nullptr && instance->hides_profiling(queue);
  } catch (...) {
    return false;
  }
}

cl_int CL_API_CALL queue_info(cl_command_queue queue, cl_command_queue_info what, std::size_t size,
                              void* value, std::size_t* returned) {
  const cl_int result = driver->clGetCommandQueueInfo(queue, what, size, value, returned);
  if (result == CL_SUCCESS && hidden(queue)) remove_profiling_bit(what, size, value);
  return result;
}

cl_int CL_API_CALL event_profiling_info(cl_event event, cl_profiling_info what, std::size_t size,
                                        void* value, std::size_t* returned) {
  cl_command_queue queue = nullptr;
  if (driver->clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, sizeof queue, &queue, nullptr) ==
          CL_SUCCESS &&
      queue != nullptr && hidden(queue))
    return CL_PROFILING_INFO_NOT_AVAILABLE;
  return driver->clGetEventProfilingInfo(event, what, size, value, returned);
}

// ---- extensions ----

void* CL_API_CALL extension_address(cl_platform_id platform, const char* name) {
  if (name != nullptr && std::string_view(name) == "clEnqueueCommandBufferKHR") {
    try {
      if (Collector* instance = collector())
        instance->session().recorder().note(
            "command_buffers",
            "the program uses OpenCL command buffers: launches inside them are not seen");
    } catch (...) {
    }
  }
  return driver->clGetExtensionFunctionAddressForPlatform(platform, name);
}

// Only the driver's functions are wrapped: the program must see the same gaps in the table.
template <class Function>
void replace(Function*& slot, std::type_identity_t<Function>* wrapper) {
  if (slot != nullptr) slot = wrapper;
}

template <auto kSlot, class Description, class Result, class... Arguments>
void wrap_slot(Result(CL_API_CALL*& slot)(Arguments...)) {
  replace(slot, command<kSlot, Description, Result, Arguments...>);
}

template <auto kSlot, class Description>
void wrap() {
  wrap_slot<kSlot, Description>(table.*kSlot);
}

void wrap_commands() {
  using Slots = cl_icd_dispatch;
  wrap<&Slots::clEnqueueNDRangeKernel, Launch>();
  wrap<&Slots::clEnqueueTask, Task>();
  wrap<&Slots::clEnqueueReadBuffer, Transfer<kToHost, Size<4>>>();
  wrap<&Slots::clEnqueueWriteBuffer, Transfer<kToDevice, Size<4>>>();
  wrap<&Slots::clEnqueueCopyBuffer, Transfer<kOnDevice, Size<5>>>();
  wrap<&Slots::clEnqueueReadBufferRect, Transfer<kToHost, Region<5>>>();
  wrap<&Slots::clEnqueueWriteBufferRect, Transfer<kToDevice, Region<5>>>();
  wrap<&Slots::clEnqueueCopyBufferRect, Transfer<kOnDevice, Region<5>>>();
  wrap<&Slots::clEnqueueReadImage, Transfer<kToHost, ImageRegion<1, 4>>>();
  wrap<&Slots::clEnqueueWriteImage, Transfer<kToDevice, ImageRegion<1, 4>>>();
  wrap<&Slots::clEnqueueCopyImage, Transfer<kOnDevice, ImageRegion<1, 5>>>();
  wrap<&Slots::clEnqueueCopyImageToBuffer, Transfer<kOnDevice, ImageRegion<1, 4>>>();
  wrap<&Slots::clEnqueueCopyBufferToImage, Transfer<kOnDevice, ImageRegion<2, 5>>>();
  wrap<&Slots::clEnqueueFillBuffer, Transfer<kFill, Size<5>>>();
  wrap<&Slots::clEnqueueFillImage, Transfer<kFill, ImageRegion<1, 4>>>();
  wrap<&Slots::clEnqueueMapBuffer, Transfer<kMap, Size<5>>>();
  wrap<&Slots::clEnqueueMapImage, Transfer<kMap, ImageRegion<1, 5>>>();
  wrap<&Slots::clEnqueueUnmapMemObject, Transfer<kUnmap, NoBytes>>();
  wrap<&Slots::clEnqueueSVMMemcpy, Transfer<kSvm, Size<4>>>();
  wrap<&Slots::clEnqueueSVMMemFill, Transfer<kFill, Size<4>>>();
}

void fill_table(std::size_t entries) {
  std::memset(&table, 0, sizeof table);
  std::memcpy(&table, driver, entries * sizeof(void*));
  wrap_commands();
  replace(table.clCreateCommandQueue, create_queue);
  replace(table.clCreateCommandQueueWithProperties, create_queue_with_properties);
  replace(table.clGetCommandQueueInfo, queue_info);
  replace(table.clGetEventProfilingInfo, event_profiling_info);
  replace(table.clGetExtensionFunctionAddressForPlatform, extension_address);
}

}  // namespace

cl_int layer_info(cl_layer_info what, std::size_t size, void* value, std::size_t* returned) {
  const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
  const void* answer = nullptr;
  std::size_t answer_size = 0;
  if (what == CL_LAYER_API_VERSION) {
    answer = &version, answer_size = sizeof version;
  } else if (what == CL_LAYER_NAME) {
    answer = kLayerName, answer_size = sizeof kLayerName;
  } else {
    return CL_INVALID_VALUE;
  }
  if (value != nullptr && size < answer_size) return CL_INVALID_VALUE;
  if (value != nullptr) std::memcpy(value, answer, answer_size);
  if (returned != nullptr) *returned = answer_size;
  return CL_SUCCESS;
}

cl_int init_layer(cl_uint entries, const cl_icd_dispatch* target, cl_uint* entries_returned,
                  const cl_icd_dispatch** dispatch) {
  if (target == nullptr || entries_returned == nullptr || dispatch == nullptr)
    return CL_INVALID_VALUE;
  if (driver != nullptr) return CL_INVALID_OPERATION;  // named twice: it would call itself
  // A program may close the loader it opened; the session's thread calls into it for good.
  ::dlopen("libOpenCL.so.1", RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  const std::size_t known = std::min<std::size_t>(entries, sizeof table / sizeof(void*));
  driver = target;
  fill_table(known);
  Instance::prepare();
  std::atexit(&finish_at_exit);
  *entries_returned = static_cast<cl_uint>(known);
  *dispatch = &table;
  return CL_SUCCESS;
}

}  // namespace purlin::profile::capture::opencl

extern "C" {

__attribute__((visibility("default"))) cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what,
                                                                         std::size_t size,
                                                                         void* value,
                                                                         std::size_t* returned) {
  return purlin::profile::capture::opencl::layer_info(what, size, value, returned);
}

__attribute__((visibility("default"))) cl_int CL_API_CALL
clInitLayer(cl_uint entries, const cl_icd_dispatch* target, cl_uint* entries_returned,
            const cl_icd_dispatch** dispatch) {
  return purlin::profile::capture::opencl::init_layer(entries, target, entries_returned, dispatch);
}
}
