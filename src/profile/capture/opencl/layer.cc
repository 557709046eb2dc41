// SPDX-License-Identifier: Apache-2.0
// The OpenCL layer: what the ICD loader finds in OPENCL_LAYERS. It is given the driver's dispatch
// table and returns its own, in which the commands that do work are wrapped.
//
// The program must not notice: results, events and the queue properties it sees are those it would
// get without the layer. A queue is made with profiling on; where the program did not ask for that,
// the queue says so and its events have no profiling information, as they would have.
#include "profile/capture/opencl/collector.h"
#include "profile/capture/session/per_process.h"

#include <CL/cl_layer.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <new>
#include <string_view>
#include <utility>

namespace purlin::profile::capture::opencl {
namespace {

using Instance = PerProcess<Collector>;

constexpr char kLayerName[] = "Purlin capture";
// Set once by clInitLayer, before any other call can reach the layer.
const cl_icd_dispatch* driver = nullptr;
cl_icd_dispatch table = {};

// Null when the process is not captured or memory ran out: the call is then passed on as it is.
Collector* collector() noexcept {
  static std::atomic<bool> unwanted =
      false;  // asked once: the program's calls must not wait for it
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

// Runs `call` with an event to write to and tracks that event as the command `describe` yields.
template <class Call, class Describe>
cl_int tracked(cl_command_queue queue, cl_event* event, Call call, Describe describe) noexcept {
  Collector* instance = collector();
  if (instance == nullptr) return call(event);
  const std::int64_t began = monotonic_ns();
  cl_event own = nullptr;
  cl_event* out = event != nullptr ? event : &own;
  const std::int64_t enqueued = wall_ns();
  const std::int64_t called = monotonic_ns();
  const cl_int result = call(out);
  const std::int64_t returned = monotonic_ns();
  if (result != CL_SUCCESS) return result;
  try {
    Command command = describe(*instance);
    if (event != nullptr && driver->clRetainEvent(*event) != CL_SUCCESS) return result;
    instance->track(queue, *out, std::move(command), enqueued);
  } catch (...) {
    if (own != nullptr) driver->clReleaseEvent(own);
  }
  instance->add_overhead(called - began + monotonic_ns() - returned);
  return result;
}

Command copy(const char* kind, double bytes) {
  Command command;
  command.kind = kind;
  command.bytes = bytes;
  return command;
}

double volume(const std::size_t* region) {
  return region == nullptr ? 0
                           : static_cast<double>(region[0]) * static_cast<double>(region[1]) *
                                 static_cast<double>(region[2]);
}

double image_bytes(cl_mem image, const std::size_t* region) {
  std::size_t element = 0;
  driver->clGetImageInfo(image, CL_IMAGE_ELEMENT_SIZE, sizeof element, &element, nullptr);
  return volume(region) * static_cast<double>(element);
}

// Asked for at each launch: a handle's value may come back as another kernel's.
std::string kernel_name(cl_kernel kernel) {
  char text[256];
  std::size_t size = 0;
  if (driver->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof text, text, &size) ==
      CL_SUCCESS)
    return std::string(text, size > 0 ? size - 1 : 0);
  if (driver->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, 0, nullptr, &size) != CL_SUCCESS ||
      size == 0)
    return "(unnamed kernel)";
  std::string name(size, '\0');
  driver->clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, size, name.data(), nullptr);
  name.pop_back();
  return name;
}

template <class T>
T work_group_fact(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what) {
  T value = {};
  if (driver->clGetKernelWorkGroupInfo(kernel, device, what, sizeof value, &value, nullptr) !=
      CL_SUCCESS)
    return {};
  return value;
}

std::uint32_t clip(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, 0xffffffffu));
}

// Without a local size the driver picks one and does not tell: the block is then 0 and the grid is
// in work-items, unless the kernel's source fixes the size.
Command launch(Collector& instance, cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
               const std::size_t* global, const std::size_t* local) {
  Command command;
  command.kernel = kernel_name(kernel);
  const cl_device_id device = instance.device_of(queue);
  std::array<std::size_t, 3> fixed = {};
  if (local == nullptr)
    fixed = work_group_fact<std::array<std::size_t, 3>>(kernel, device,
                                                        CL_KERNEL_COMPILE_WORK_GROUP_SIZE);
  const std::size_t* block = local != nullptr ? local : fixed[0] != 0 ? fixed.data() : nullptr;
  if (block == nullptr) command.block = {0, 0, 0};
  for (cl_uint i = 0; i < std::min<cl_uint>(dimensions, 3); ++i) {
    const std::size_t items = global != nullptr ? global[i] : 0;
    if (block == nullptr) {
      command.grid[i] = clip(items);
    } else {
      command.block[i] = clip(block[i]);
      command.grid[i] = clip(block[i] > 0 ? (items + block[i] - 1) / block[i] : items);
    }
  }
  command.local_memory_bytes =
      clip(work_group_fact<cl_ulong>(kernel, device, CL_KERNEL_LOCAL_MEM_SIZE));
  command.private_memory_bytes =
      clip(work_group_fact<cl_ulong>(kernel, device, CL_KERNEL_PRIVATE_MEM_SIZE));
  return command;
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
  if (collector() == nullptr || asked) {
    cl_command_queue queue = driver->clCreateCommandQueue(context, device, properties, error);
    if (queue != nullptr) remember_queue(queue, device, asked, asked);
    return queue;
  }
  cl_command_queue queue =
      driver->clCreateCommandQueue(context, device, properties | CL_QUEUE_PROFILING_ENABLE, error);
  const bool profiled = queue != nullptr;
  if (!profiled) queue = driver->clCreateCommandQueue(context, device, properties, error);
  if (queue != nullptr) remember_queue(queue, device, profiled, false);
  return queue;
}

constexpr std::size_t kMaxProperties = 64;

cl_command_queue CL_API_CALL create_queue_with_properties(cl_context context, cl_device_id device,
                                                          const cl_queue_properties* properties,
                                                          cl_int* error) {
  // A copy with the profiling bit added; a list that does not fit is left alone.
  cl_queue_properties changed[kMaxProperties];
  std::size_t size = 0;
  cl_queue_properties bits = 0;
  std::size_t bits_at = kMaxProperties;
  for (; properties != nullptr && properties[size] != 0 && size + 5 < kMaxProperties; size += 2) {
    changed[size] = properties[size];
    changed[size + 1] = properties[size + 1];
    if (properties[size] == CL_QUEUE_PROPERTIES) {
      bits = properties[size + 1];
      bits_at = size + 1;
    }
  }
  const bool whole = properties == nullptr || properties[size] == 0;
  const bool asked = (bits & CL_QUEUE_PROFILING_ENABLE) != 0;
  const bool on_device = (bits & CL_QUEUE_ON_DEVICE) != 0;
  if (collector() == nullptr || asked || on_device || !whole) {
    cl_command_queue queue =
        driver->clCreateCommandQueueWithProperties(context, device, properties, error);
    if (queue != nullptr) remember_queue(queue, device, asked, asked);
    return queue;
  }
  if (bits_at == kMaxProperties) {
    changed[size] = CL_QUEUE_PROPERTIES;
    bits_at = size + 1;
    size += 2;
  }
  changed[bits_at] = bits | CL_QUEUE_PROFILING_ENABLE;
  changed[size] = 0;
  cl_command_queue queue =
      driver->clCreateCommandQueueWithProperties(context, device, changed, error);
  const bool profiled = queue != nullptr;
  if (!profiled)
    queue = driver->clCreateCommandQueueWithProperties(context, device, properties, error);
  if (queue != nullptr) remember_queue(queue, device, profiled, false);
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

// CL_QUEUE_PROPERTIES_ARRAY (OpenCL 3.0) returns what was passed at creation, our bit included.
void mask_properties(cl_command_queue_info what, std::size_t size, void* value) {
  constexpr cl_bitfield kKept = ~cl_bitfield{CL_QUEUE_PROFILING_ENABLE};
  if (value == nullptr) return;
  if (what == CL_QUEUE_PROPERTIES && size >= sizeof(cl_command_queue_properties)) {
    *static_cast<cl_command_queue_properties*>(value) &= kKept;
  } else if (what == CL_QUEUE_PROPERTIES_ARRAY) {
    auto* list = static_cast<cl_queue_properties*>(value);
    for (std::size_t i = 0; i + 1 < size / sizeof *list && list[i] != 0; i += 2)
      if (list[i] == CL_QUEUE_PROPERTIES) list[i + 1] &= kKept;
  }
}

cl_int CL_API_CALL queue_info(cl_command_queue queue, cl_command_queue_info what, std::size_t size,
                              void* value, std::size_t* returned) {
  const cl_int result = driver->clGetCommandQueueInfo(queue, what, size, value, returned);
  if (result == CL_SUCCESS && hidden(queue)) mask_properties(what, size, value);
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

// ---- kernels ----

cl_int CL_API_CALL enqueue_kernel(cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
                                  const std::size_t* offset, const std::size_t* global,
                                  const std::size_t* local, cl_uint waits, const cl_event* wait,
                                  cl_event* event) {
  return tracked(
      queue, event,
      [&](cl_event* out) {
        return driver->clEnqueueNDRangeKernel(queue, kernel, dimensions, offset, global, local,
                                              waits, wait, out);
      },
      [&](Collector& instance) {
        return launch(instance, queue, kernel, dimensions, global, local);
      });
}

cl_int CL_API_CALL enqueue_task(cl_command_queue queue, cl_kernel kernel, cl_uint waits,
                                const cl_event* wait, cl_event* event) {
  return tracked(
      queue, event,
      [&](cl_event* out) { return driver->clEnqueueTask(queue, kernel, waits, wait, out); },
      [&](Collector& instance) {
        const std::size_t one = 1;
        return launch(instance, queue, kernel, 1, &one, &one);
      });
}

// ---- copies and sets ----

cl_int CL_API_CALL read_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                               std::size_t offset, std::size_t size, void* pointer, cl_uint waits,
                               const cl_event* wait, cl_event* event) {
  return tracked(
      queue, event,
      [&](cl_event* out) {
        return driver->clEnqueueReadBuffer(queue, buffer, blocking, offset, size, pointer, waits,
                                           wait, out);
      },
      [&](Collector&) { return copy("d2h", static_cast<double>(size)); });
}

cl_int CL_API_CALL write_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                std::size_t offset, std::size_t size, const void* pointer,
                                cl_uint waits, const cl_event* wait, cl_event* event) {
  return tracked(
      queue, event,
      [&](cl_event* out) {
        return driver->clEnqueueWriteBuffer(queue, buffer, blocking, offset, size, pointer, waits,
                                            wait, out);
      },
      [&](Collector&) { return copy("h2d", static_cast<double>(size)); });
}

cl_int CL_API_CALL copy_buffer(cl_command_queue queue, cl_mem from, cl_mem to,
                               std::size_t from_offset, std::size_t to_offset, std::size_t size,
                               cl_uint waits, const cl_event* wait, cl_event* event) {
  return tracked(
      queue, event,
      [&](cl_event* out) {
        return driver->clEnqueueCopyBuffer(queue, from, to, from_offset, to_offset, size, waits,
                                           wait, out);
      },
      [&](Collector&) { return copy("d2d", static_cast<double>(size)); });
}

cl_int CL_API_CALL read_buffer_rect(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                    const std::size_t* buffer_origin,
                                    const std::size_t* host_origin, const std::size_t* region,
                                    std::size_t buffer_row, std::size_t buffer_slice,
                                    std::size_t host_row, std::size_t host_slice, void* pointer,
                                    cl_uint waits, const cl_event* wait, cl_event* event) {
  return tracked(
      queue, event,
      [&](cl_event* out) {
        return driver->clEnqueueReadBufferRect(queue, buffer, blocking, buffer_origin, host_origin,
                                               region, buffer_row, buffer_slice, host_row,
                                               host_slice, pointer, waits, wait, out);
      },
      [&](Collector&) { return copy("d2h", volume(region)); });
}

cl_int CL_API_CALL write_buffer_rect(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                                     const std::size_t* buffer_origin,
                                     const std::size_t* host_origin, const std::size_t* region,
                                     std::size_t buffer_row, std::size_t buffer_slice,
                                     std::size_t host_row, std::size_t host_slice,
                                     const void* pointer, cl_uint waits, const cl_event* wait,
                                     cl_event* event) {
  return tracked(
      queue, event,
      [&](cl_event* out) {
        return driver->clEnqueueWriteBufferRect(queue, buffer, blocking, buffer_origin, host_origin,
                                                region, buffer_row, buffer_slice, host_row,
                                                host_slice, pointer, waits, wait, out);
      },
      [&](Collector&) { return copy("h2d", volume(region)); });
}

cl_int CL_API_CALL copy_buffer_rect(cl_command_queue queue, cl_mem from, cl_mem to,
                                    const std::size_t* from_origin, const std::size_t* to_origin,
                                    const std::size_t* region, std::size_t from_row,
                                    std::size_t from_slice, std::size_t to_row,
                                    std::size_t to_slice, cl_uint waits, const cl_event* wait,
                                    cl_event* event) {
  return tracked(
      queue, event,
      [&](cl_event* out) {
        return driver->clEnqueueCopyBufferRect(queue, from, to, from_origin, to_origin, region,
                                               from_row, from_slice, to_row, to_slice, waits, wait,
                                               out);
      },
      [&](Collector&) { return copy("d2d", volume(region)); });
}

cl_int CL_API_CALL read_image(cl_command_queue queue, cl_mem image, cl_bool blocking,
                              const std::size_t* origin, const std::size_t* region, std::size_t row,
                              std::size_t slice, void* pointer, cl_uint waits, const cl_event* wait,
                              cl_event* event) {
  return tracked(
      queue, event,
      [&](cl_event* out) {
        return driver->clEnqueueReadImage(queue, image, blocking, origin, region, row, slice,
                                          pointer, waits, wait, out);
      },
      [&](Collector&) { return copy("d2h", image_bytes(image, region)); });
}

cl_int CL_API_CALL write_image(cl_command_queue queue, cl_mem image, cl_bool blocking,
                               const std::size_t* origin, const std::size_t* region,
                               std::size_t row, std::size_t slice, const void* pointer,
                               cl_uint waits, const cl_event* wait, cl_event* event) {
  return tracked(
      queue, event,
      [&](cl_event* out) {
        return driver->clEnqueueWriteImage(queue, image, blocking, origin, region, row, slice,
                                           pointer, waits, wait, out);
      },
      [&](Collector&) { return copy("h2d", image_bytes(image, region)); });
}

cl_int CL_API_CALL copy_image(cl_command_queue queue, cl_mem from, cl_mem to,
                              const std::size_t* from_origin, const std::size_t* to_origin,
                              const std::size_t* region, cl_uint waits, const cl_event* wait,
                              cl_event* event) {
  return tracked(
      queue, event,
      [&](cl_event* out) {
        return driver->clEnqueueCopyImage(queue, from, to, from_origin, to_origin, region, waits,
                                          wait, out);
      },
      [&](Collector&) { return copy("d2d", image_bytes(from, region)); });
}

cl_int CL_API_CALL copy_image_to_buffer(cl_command_queue queue, cl_mem from, cl_mem to,
                                        const std::size_t* origin, const std::size_t* region,
                                        std::size_t offset, cl_uint waits, const cl_event* wait,
                                        cl_event* event) {
  return tracked(
      queue, event,
      [&](cl_event* out) {
        return driver->clEnqueueCopyImageToBuffer(queue, from, to, origin, region, offset, waits,
                                                  wait, out);
      },
      [&](Collector&) { return copy("d2d", image_bytes(from, region)); });
}

cl_int CL_API_CALL copy_buffer_to_image(cl_command_queue queue, cl_mem from, cl_mem to,
                                        std::size_t offset, const std::size_t* origin,
                                        const std::size_t* region, cl_uint waits,
                                        const cl_event* wait, cl_event* event) {
  return tracked(
      queue, event,
      [&](cl_event* out) {
        return driver->clEnqueueCopyBufferToImage(queue, from, to, offset, origin, region, waits,
                                                  wait, out);
      },
      [&](Collector&) { return copy("d2d", image_bytes(to, region)); });
}

cl_int CL_API_CALL fill_buffer(cl_command_queue queue, cl_mem buffer, const void* pattern,
                               std::size_t pattern_size, std::size_t offset, std::size_t size,
                               cl_uint waits, const cl_event* wait, cl_event* event) {
  return tracked(
      queue, event,
      [&](cl_event* out) {
        return driver->clEnqueueFillBuffer(queue, buffer, pattern, pattern_size, offset, size,
                                           waits, wait, out);
      },
      [&](Collector&) { return copy("fill", static_cast<double>(size)); });
}

cl_int CL_API_CALL fill_image(cl_command_queue queue, cl_mem image, const void* color,
                              const std::size_t* origin, const std::size_t* region, cl_uint waits,
                              const cl_event* wait, cl_event* event) {
  return tracked(
      queue, event,
      [&](cl_event* out) {
        return driver->clEnqueueFillImage(queue, image, color, origin, region, waits, wait, out);
      },
      [&](Collector&) { return copy("fill", image_bytes(image, region)); });
}

void* CL_API_CALL map_buffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
                             cl_map_flags flags, std::size_t offset, std::size_t size,
                             cl_uint waits, const cl_event* wait, cl_event* event, cl_int* error) {
  void* mapped = nullptr;
  cl_int result = CL_SUCCESS;
  tracked(
      queue, event,
      [&](cl_event* out) {
        mapped = driver->clEnqueueMapBuffer(queue, buffer, blocking, flags, offset, size, waits,
                                            wait, out, &result);
        return result;
      },
      [&](Collector&) { return copy("map", static_cast<double>(size)); });
  if (error != nullptr) *error = result;
  return mapped;
}

void* CL_API_CALL map_image(cl_command_queue queue, cl_mem image, cl_bool blocking,
                            cl_map_flags flags, const std::size_t* origin,
                            const std::size_t* region, std::size_t* row, std::size_t* slice,
                            cl_uint waits, const cl_event* wait, cl_event* event, cl_int* error) {
  void* mapped = nullptr;
  cl_int result = CL_SUCCESS;
  tracked(
      queue, event,
      [&](cl_event* out) {
        mapped = driver->clEnqueueMapImage(queue, image, blocking, flags, origin, region, row,
                                           slice, waits, wait, out, &result);
        return result;
      },
      [&](Collector&) { return copy("map", image_bytes(image, region)); });
  if (error != nullptr) *error = result;
  return mapped;
}

cl_int CL_API_CALL unmap(cl_command_queue queue, cl_mem memory, void* pointer, cl_uint waits,
                         const cl_event* wait, cl_event* event) {
  return tracked(
      queue, event,
      [&](cl_event* out) {
        return driver->clEnqueueUnmapMemObject(queue, memory, pointer, waits, wait, out);
      },
      [&](Collector&) { return copy("unmap", 0); });
}

cl_int CL_API_CALL svm_copy(cl_command_queue queue, cl_bool blocking, void* to, const void* from,
                            std::size_t size, cl_uint waits, const cl_event* wait,
                            cl_event* event) {
  return tracked(
      queue, event,
      [&](cl_event* out) {
        return driver->clEnqueueSVMMemcpy(queue, blocking, to, from, size, waits, wait, out);
      },
      [&](Collector&) { return copy("svm", static_cast<double>(size)); });
}

cl_int CL_API_CALL svm_fill(cl_command_queue queue, void* pointer, const void* pattern,
                            std::size_t pattern_size, std::size_t size, cl_uint waits,
                            const cl_event* wait, cl_event* event) {
  return tracked(
      queue, event,
      [&](cl_event* out) {
        return driver->clEnqueueSVMMemFill(queue, pointer, pattern, pattern_size, size, waits, wait,
                                           out);
      },
      [&](Collector&) { return copy("fill", static_cast<double>(size)); });
}

// ---- what a layer cannot see ----

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

void fill_table(std::size_t entries) {
  std::memset(&table, 0, sizeof table);
  std::memcpy(&table, driver, entries * sizeof(void*));
  // Only what the driver has is wrapped: the program must see the same gaps.
  const auto wrap = [](auto& slot, auto* wrapper) {
    if (slot != nullptr) slot = wrapper;
  };
  wrap(table.clCreateCommandQueue, create_queue);
  wrap(table.clCreateCommandQueueWithProperties, create_queue_with_properties);
  wrap(table.clGetCommandQueueInfo, queue_info);
  wrap(table.clGetEventProfilingInfo, event_profiling_info);
  wrap(table.clEnqueueNDRangeKernel, enqueue_kernel);
  wrap(table.clEnqueueTask, enqueue_task);
  wrap(table.clEnqueueReadBuffer, read_buffer);
  wrap(table.clEnqueueWriteBuffer, write_buffer);
  wrap(table.clEnqueueCopyBuffer, copy_buffer);
  wrap(table.clEnqueueReadBufferRect, read_buffer_rect);
  wrap(table.clEnqueueWriteBufferRect, write_buffer_rect);
  wrap(table.clEnqueueCopyBufferRect, copy_buffer_rect);
  wrap(table.clEnqueueReadImage, read_image);
  wrap(table.clEnqueueWriteImage, write_image);
  wrap(table.clEnqueueCopyImage, copy_image);
  wrap(table.clEnqueueCopyImageToBuffer, copy_image_to_buffer);
  wrap(table.clEnqueueCopyBufferToImage, copy_buffer_to_image);
  wrap(table.clEnqueueFillBuffer, fill_buffer);
  wrap(table.clEnqueueFillImage, fill_image);
  wrap(table.clEnqueueMapBuffer, map_buffer);
  wrap(table.clEnqueueMapImage, map_image);
  wrap(table.clEnqueueUnmapMemObject, unmap);
  wrap(table.clEnqueueSVMMemcpy, svm_copy);
  wrap(table.clEnqueueSVMMemFill, svm_fill);
  wrap(table.clGetExtensionFunctionAddressForPlatform, extension_address);
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
