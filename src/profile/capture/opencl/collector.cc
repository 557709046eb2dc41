// SPDX-License-Identifier: Apache-2.0
#include "profile/capture/opencl/collector.h"

#include "profile/capture/recording/json_text.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace purlin::profile::capture::opencl {
namespace {

template <class T>
T device_fact(const cl_icd_dispatch& driver, cl_device_id device, cl_device_info what) {
  T value = {};
  if (driver.clGetDeviceInfo(device, what, sizeof value, &value, nullptr) != CL_SUCCESS) return {};
  return value;
}

std::string device_text(const cl_icd_dispatch& driver, cl_device_id device, cl_device_info what) {
  char text[1024] = {};
  if (driver.clGetDeviceInfo(device, what, sizeof text - 1, text, nullptr) != CL_SUCCESS) return "";
  return text;
}

bool event_time(const cl_icd_dispatch& driver, cl_event event, cl_profiling_info what,
                std::int64_t& ns) {
  cl_ulong value = 0;
  if (driver.clGetEventProfilingInfo(event, what, sizeof value, &value, nullptr) != CL_SUCCESS)
    return false;
  ns = static_cast<std::int64_t>(value);
  return true;
}

}  // namespace

Collector::Collector(const cl_icd_dispatch& driver, const SessionOptions& options)
    : driver_(driver), session_(options, *this) {}

// The index in "opencl:N": platforms and devices in the loader's order, as gpu/opencl counts them.
void Collector::find_devices() {
  cl_platform_id platforms[64];
  cl_uint platform_count = 0;
  if (driver_.clGetPlatformIDs(64, platforms, &platform_count) != CL_SUCCESS) return;
  for (cl_uint p = 0; p < std::min<cl_uint>(platform_count, 64); ++p) {
    cl_device_id devices[64];
    cl_uint device_count = 0;
    if (driver_.clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 64, devices, &device_count) !=
        CL_SUCCESS)
      continue;
    for (cl_uint d = 0; d < std::min<cl_uint>(device_count, 64); ++d)
      devices_.push_back({devices[d], describe(devices[d], devices_.size()), false, 0});
  }
}

std::string Collector::describe(cl_device_id device, std::size_t index) const {
  const auto type = device_fact<cl_device_type>(driver_, device, CL_DEVICE_TYPE);
  const char* kind = (type & CL_DEVICE_TYPE_CPU) != 0   ? "cpu"
                     : (type & CL_DEVICE_TYPE_GPU) != 0 ? "gpu"
                                                        : "accelerator";
  return JsonText()
      .text("id", "opencl:" + std::to_string(index))
      .text("backend", "opencl")
      .text("kind", kind)
      .text("name", device_text(driver_, device, CL_DEVICE_NAME))
      .text("vendor", device_text(driver_, device, CL_DEVICE_VENDOR))
      .text("driver", device_text(driver_, device, CL_DRIVER_VERSION))
      .integer("compute_units", device_fact<cl_uint>(driver_, device, CL_DEVICE_MAX_COMPUTE_UNITS))
      .integer("clock_mhz", device_fact<cl_uint>(driver_, device, CL_DEVICE_MAX_CLOCK_FREQUENCY))
      .integer("memory_bytes", static_cast<std::int64_t>(device_fact<cl_ulong>(
                                   driver_, device, CL_DEVICE_GLOBAL_MEM_SIZE)))
      .finish();
}

// A sub-device is counted as the device it was cut from.
std::uint32_t Collector::device_index(cl_device_id device) {
  if (devices_.empty()) find_devices();
  for (cl_device_id id = device; id != nullptr;
       id = device_fact<cl_device_id>(driver_, id, CL_DEVICE_PARENT_DEVICE)) {
    const auto known = std::find_if(devices_.begin(), devices_.end(),
                                    [&](const Device& other) { return other.id == id; });
    if (known != devices_.end()) return static_cast<std::uint32_t>(known - devices_.begin());
  }
  devices_.push_back({device, describe(device, devices_.size()), false, 0});
  return static_cast<std::uint32_t>(devices_.size() - 1);
}

void Collector::add_queue(cl_command_queue queue, cl_device_id device, bool profiled, bool asked) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::size_t known = devices_.size();
  const std::uint32_t index = device_index(device);
  queues_[queue] = {device, index, ++queues_seen_, profiled, profiled && !asked};
  if (devices_.size() == known) return;
  std::string json;
  for (const Device& each : devices_) json += (json.empty() ? "[" : ",") + each.json;
  session_.set_devices(json + ']');
}

bool Collector::hides_profiling(cl_command_queue queue) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = queues_.find(queue);
  return known != queues_.end() && known->second.hidden;
}

cl_device_id Collector::device_of(cl_command_queue queue) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto known = queues_.find(queue);
  return known != queues_.end() ? known->second.handle : nullptr;
}

void Collector::track(cl_command_queue queue, cl_event event, Command command,
                      std::int64_t enqueued_ns) {
  const bool launch = command.kind == nullptr;
  if (launch) launches_.fetch_add(1, std::memory_order_relaxed);
  const char* cause = nullptr;
  const char* text = nullptr;
  std::size_t waiting = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto known = queues_.find(queue);
    if (known == queues_.end() || !known->second.profiled) {
      cause = "no_profiling_queue";
      text = "launches on queues that cannot time their commands";
    } else if (pending_.size() >= kMaxPending) {
      cause = "event_backlog";
      text = "launches made while 65,536 earlier ones had not completed";
    } else {
      pending_.push_back(
          {event, std::move(command), known->second.device, known->second.number, enqueued_ns});
      waiting = pending_.size();
    }
  }
  if (cause != nullptr) {
    driver_.clReleaseEvent(event);
    if (launch) session_.recorder().lose_launches(1, cause, text);
  } else if (waiting % kWakeAt == 0) {
    session_.wake();
  }
}

// The profiling clock has a different origin. The moment of the first enqueue ties it to the wall
// clock, once per device.
std::int64_t Collector::clock_offset(const Pending& pending) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Device& device = devices_[pending.device];
  std::int64_t queued = 0;
  if (!device.clock_known &&
      event_time(driver_, pending.event, CL_PROFILING_COMMAND_QUEUED, queued)) {
    device.clock_known = true;
    device.clock_offset_ns = pending.enqueued_ns - queued;
  }
  return device.clock_offset_ns;
}

bool Collector::settle(Pending& pending, double& failed) {
  cl_int status = CL_QUEUED;
  const cl_int result = driver_.clGetEventInfo(pending.event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                               sizeof status, &status, nullptr);
  if (result == CL_SUCCESS && status > CL_COMPLETE) return false;
  const Command& command = pending.command;
  std::int64_t start = 0, end = 0;
  if (result == CL_SUCCESS && status == CL_COMPLETE &&
      event_time(driver_, pending.event, CL_PROFILING_COMMAND_START, start) &&
      event_time(driver_, pending.event, CL_PROFILING_COMMAND_END, end) && end >= start) {
    if (command.kind != nullptr) {
      CopyFacts facts;
      facts.kind = command.kind;
      facts.device = pending.device;
      facts.stream = pending.stream;
      facts.bytes = static_cast<std::uint64_t>(std::max(command.bytes, 0.0));
      facts.start_ns = start + clock_offset(pending);
      facts.duration_ns = end - start;
      facts.requested = is_requested(facts.start_ns);
      Recorder::Batch(session_.recorder()).copy(facts);
    } else {
      LaunchFacts facts;
      facts.name = command.kernel;
      facts.grid = command.grid;
      facts.block = command.block;
      facts.static_shared_bytes = command.local_memory_bytes;
      facts.local_bytes = command.private_memory_bytes;
      facts.device = pending.device;
      facts.stream = pending.stream;
      facts.queued_ns = pending.enqueued_ns;
      facts.start_ns = start + clock_offset(pending);
      facts.duration_ns = end - start;
      facts.requested = is_requested(facts.start_ns);
      Recorder::Batch(session_.recorder()).launch(facts);
    }
  } else if (command.kind == nullptr) {
    failed += 1;
  }
  driver_.clReleaseEvent(pending.event);
  return true;
}

bool Collector::is_requested(std::int64_t start_ns) const {
  return start_ns >= window_begin_ns_ && start_ns < window_end_ns_;
}

std::string Collector::control(const ControlRequest& request) {
  const std::int64_t now = wall_ns();
  if (request.verb == ControlRequest::Verb::kStart || request.verb == ControlRequest::Verb::kStop)
    return JsonText()
        .text("error", "OpenCL is captured from start to end: only status and window are possible")
        .finish();
  if (request.verb == ControlRequest::Verb::kWindow) {
    // One that is open goes on.
    if (window_end_ns_ <= now) window_begin_ns_ = now;
    window_end_ns_ = std::max<std::int64_t>(window_end_ns_, now + request.length_ns);
    ++windows_;
    session_.recorder().note("asked_window",
                             "every launch was recorded for as long as was asked for", 0,
                             static_cast<double>(request.length_ns) * 1e-9);
  }
  return JsonText()
      .text("state", now < window_end_ns_ ? "recording" : "governed")
      .integer("windows", windows_)
      .finish();
}

void Collector::collect(bool final) {
  const std::lock_guard<std::mutex> one_at_a_time(collecting_);
  const std::int64_t began = monotonic_ns();
  std::vector<Pending> pending;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    pending.swap(pending_);
  }
  double failed = 0, unfinished = 0;
  std::vector<Pending> left;
  for (Pending& each : pending) {
    if (settle(each, failed)) continue;
    unfinished += each.command.kind == nullptr ? 1 : 0;
    left.push_back(std::move(each));
  }
  if (!left.empty()) {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::move(pending_.begin(), pending_.end(), std::back_inserter(left));
    pending_.swap(left);
  }
  Recorder& recorder = session_.recorder();
  if (const std::uint64_t launches = launches_.exchange(0); launches > 0)
    recorder.count_launches(static_cast<double>(launches));
  if (failed > 0)
    recorder.lose_launches(failed, "failed_launches",
                           "launches that ended with an error or without times");
  if (final && unfinished > 0)
    recorder.lose_launches(unfinished, "unfinished_at_exit",
                           "launches that had not completed when the program ended");
  recorder.add_overhead_ns(static_cast<double>(overhead_ns_.exchange(0) + monotonic_ns() - began));
}

}  // namespace purlin::profile::capture::opencl
