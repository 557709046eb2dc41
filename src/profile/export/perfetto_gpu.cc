// SPDX-License-Identifier: Apache-2.0
#include "profile/export/perfetto_gpu.h"

#include "base/text.h"
#include "profile/export/events.h"

#include <fmt/format.h>

#include <set>
#include <string_view>

namespace purlin::profile {
namespace {

// Field numbers, by message (protos/perfetto in google/perfetto).
namespace gpu_field {
constexpr int kTimestamp = 8, kSequenceId = 10, kInternedData = 12, kSequenceFlags = 13,
              kCounterEvent = 52, kStageEvent = 53;  // TracePacket
constexpr int kContexts = 23, kSpecifications = 24;  // InternedData
constexpr int kIid = 1, kPid = 2, kApi = 3;          // InternedGraphicsContext
constexpr int kSpecName = 2, kCategory = 4;          // InternedGpuRenderStageSpecification
constexpr int kEventId = 1, kDuration = 2, kContext = 5, kExtraData = 6, kStageGpu = 11,
              kQueueIid = 13, kStageIid = 14;                   // GpuRenderStageEvent
constexpr int kExtraName = 1, kExtraValue = 2;                  // ExtraData
constexpr int kDescriptor = 1, kCounters = 2, kCounterGpu = 3;  // GpuCounterEvent
constexpr int kSpecs = 1;                                       // GpuCounterDescriptor
constexpr int kCounterId = 1, kCounterName = 2, kGroups = 10;   // GpuCounterSpec
constexpr int kIntValue = 2, kDoubleValue = 3;                  // GpuCounter
}  // namespace gpu_field
constexpr std::uint64_t kGpuSequence = 2, kCleared = 1, kNeeds = 2;
constexpr std::uint64_t kCompute = 2;       // RenderStageCategory
constexpr std::uint64_t kComputeGroup = 6;  // GpuCounterGroup
constexpr std::uint64_t kKernelStage = 1, kFirstQueue = 16;
constexpr std::uint32_t kLaunchesOfARow = 100;
constexpr std::string_view kDurationCounter = "gpu__time_duration.sum";

// InternedGraphicsContext::Api: whose words Perfetto's page uses. 0: not known, or more than one.
std::uint64_t api_of(const Profile& profile) {
  std::set<std::uint64_t> found;
  for (const DeviceInfo& device : profile.environment.devices)
    found.insert(device.backend == "opencl" ? 3
                 : device.backend == "cuda" ? 4
                 : device.backend == "hip"  ? 5
                                            : 0);
  return found.size() == 1 ? *found.begin() : 0;
}

std::uint64_t queue_key(const Activity& activity) {
  return std::uint64_t{activity.device} << 32 | activity.stream;
}

Message gpu_packet(std::uint64_t time, std::uint64_t flags) {
  Message packet;
  packet.number(gpu_field::kTimestamp, time)
      .number(gpu_field::kSequenceId, kGpuSequence)
      .number(gpu_field::kSequenceFlags, flags);
  return packet;
}

}  // namespace

PerfettoGpu::PerfettoGpu(const Profile& profile)
    : profile_(profile), launches_(profile.kernels.size()) {
  counter_ids_.emplace(kDurationCounter, 0);
  for (const KernelRow& row : profile.kernels)
    for (const Counter& counter : row.counters)
      counter_ids_.try_emplace(counter.name, static_cast<std::uint32_t>(counter_ids_.size()));
  for (const Activity& activity : profile.timeline.activities)
    if (activity.kind == ActivityKind::kKernel)
      queues_.try_emplace(queue_key(activity), kFirstQueue + queues_.size());
}

// Perfetto's reader keeps one table of counters for all GPUs: the ids of two GPUs differ.
std::uint64_t PerfettoGpu::id_on(std::uint64_t device, std::uint32_t counter) const {
  return device * counter_ids_.size() + counter;
}

std::vector<Message> PerfettoGpu::begin(std::uint64_t time) const {
  std::vector<Message> out;
  if (queues_.empty()) return out;
  Message interned, packet = gpu_packet(time, kCleared);
  const auto specify = [&interned](std::uint64_t iid, std::string_view name) {
    Message specification;
    specification.number(gpu_field::kIid, iid)
        .bytes(gpu_field::kSpecName, name)
        .number(gpu_field::kCategory, kCompute);
    interned.message(gpu_field::kSpecifications, specification);
  };
  const std::uint64_t api = api_of(profile_);
  for (std::size_t i = 0; i < profile_.processes.size(); ++i) {
    Message context;
    context.number(gpu_field::kIid, i + 1)
        .number(gpu_field::kPid, static_cast<std::uint64_t>(profile_.processes[i].pid));
    if (api != 0) context.number(gpu_field::kApi, api);
    interned.message(gpu_field::kContexts, context);
  }
  specify(kKernelStage, "Kernel");
  std::set<std::uint64_t> devices;
  for (const auto& [key, iid] : queues_) {
    specify(iid, fmt::format("stream {}", key & 0xFFFFFFFF));
    devices.insert(key >> 32);
  }
  packet.message(gpu_field::kInternedData, interned);
  out.push_back(packet);
  for (const std::uint64_t device : devices) {
    Message descriptor, event, of_device = gpu_packet(time, kNeeds);
    for (const auto& [name, id] : counter_ids_) {
      Message spec;
      spec.number(gpu_field::kCounterId, id_on(device, id))
          .bytes(gpu_field::kCounterName, name)
          .number(gpu_field::kGroups, kComputeGroup);
      descriptor.message(gpu_field::kSpecs, spec);
    }
    event.message(gpu_field::kDescriptor, descriptor).number(gpu_field::kCounterGpu, device);
    of_device.message(gpu_field::kCounterEvent, event);
    out.push_back(of_device);
  }
  return out;
}

// Perfetto gives a value to the time before its event: nothing until the begin, and the launch's
// own at its end.
Message PerfettoGpu::counters(const Activity& activity, std::uint64_t time, bool of_end,
                              std::uint64_t duration) const {
  Message event, packet = gpu_packet(time, kNeeds);
  const auto put = [&](std::string_view name, double value) {
    Message counter;
    counter.number(gpu_field::kCounterId,
                   id_on(activity.device, counter_ids_.at(std::string(name))));
    if (of_end)
      counter.real(gpu_field::kDoubleValue, value);
    else
      counter.number(gpu_field::kIntValue, 0);
    event.message(gpu_field::kCounters, counter);
  };
  put(kDurationCounter, static_cast<double>(duration));
  for (const Counter& counter : profile_.kernels[activity.row].counters)
    if (counter.name != kDurationCounter) put(counter.name, counter.value);
  event.number(gpu_field::kCounterGpu, activity.device);
  packet.message(gpu_field::kCounterEvent, event);
  return packet;
}

Message PerfettoGpu::stage(const Activity& activity, const std::string& name, std::uint64_t begin,
                           std::uint64_t duration) {
  const KernelRow& row = profile_.kernels[activity.row];
  Message event, packet = gpu_packet(begin, kNeeds);
  event.number(gpu_field::kEventId, ++events_)
      .number(gpu_field::kDuration, duration)
      .number(gpu_field::kContext, std::uint64_t{activity.process} + 1)
      .number(gpu_field::kStageGpu, activity.device)
      .number(gpu_field::kQueueIid, queues_.at(queue_key(activity)))
      .number(gpu_field::kStageIid, kKernelStage);
  const auto say = [&event](std::string_view key, std::string_view value) {
    Message extra;
    extra.bytes(gpu_field::kExtraName, key).bytes(gpu_field::kExtraValue, value);
    event.message(gpu_field::kExtraData, extra);
  };
  // The page's names, those of before and those of now.
  const auto number = [&say](std::string_view before, std::string_view now, std::uint64_t value) {
    const std::string text = std::to_string(value);
    say(before, text);
    if (!now.empty()) say(now, text);
  };
  say("kernel_name", row.name);
  say("kernel_demangled_name", name);
  say("kernel_type", "Compute");
  if (activity.process < profile_.processes.size()) {
    number("process_id", "", static_cast<std::uint64_t>(profile_.processes[activity.process].pid));
    say("process_name", process_title(profile_, activity.process));
  }
  number("device_id", "device", activity.device);
  number("stream_id", "stream", activity.stream);
  std::uint64_t blocks = 1, threads = 1;
  constexpr std::string_view kAxes = "xyz";
  for (std::size_t i = 0; i < 3; ++i) {
    blocks *= row.launch.grid[i];
    threads *= row.launch.block[i];
    number(fmt::format("launch__grid_size_{}", kAxes[i]), "", row.launch.grid[i]);
    number(fmt::format("launch__block_size_{}", kAxes[i]), "", row.launch.block[i]);
  }
  number("launch__grid_size", "grid_size", blocks);
  number("launch__block_size", "workgroup_size", threads);
  number("launch__thread_count", "thread_count", blocks * threads);
  if (row.registers != 0)
    number("launch__registers_per_thread", "registers_per_thread", row.registers);
  number("launch__shared_mem_per_block_dynamic", "shared_mem_dynamic",
         row.launch.dynamic_shared_bytes);
  number("launch__shared_mem_per_block_static", "shared_mem_static", row.static_shared_bytes);
  packet.message(gpu_field::kStageEvent, event);
  return packet;
}

std::vector<Message> PerfettoGpu::launch(const Activity& activity, const std::string& name,
                                         std::uint64_t begin, std::uint64_t end) {
  if (activity.row >= launches_.size() || launches_[activity.row] == kLaunchesOfARow) return {};
  ++launches_[activity.row];
  const std::uint64_t duration = end - begin;
  return {counters(activity, begin, false, duration), stage(activity, name, begin, duration),
          counters(activity, end, true, duration)};
}

}  // namespace purlin::profile
