// SPDX-License-Identifier: Apache-2.0
#include "profile/import/rocm/run_builder.h"

#include "base/text.h"
#include "profile/import/rocm/tables.h"
#include "profile/ops/api_calls.h"
#include "profile/ops/host_links.h"
#include "profile/ops/range_ops.h"

#include <algorithm>
#include <cmath>

namespace purlin::profile {
namespace {

constexpr std::size_t kMostAgents = 1024;
constexpr std::int64_t kMostTime = std::int64_t{1} << 61;

std::uint32_t blocks_of(std::uint32_t items, std::uint32_t group) {
  items = std::max(items, 1u);
  group = std::max(group, 1u);
  return items / group + (items % group != 0 ? 1 : 0);
}

std::uint32_t small_stream(std::int64_t stream) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(stream, 0, 0xFFFF));
}

}  // namespace

RocmRun::RocmRun(const ImportOptions& options) : options_(options), assembly_(profile_, options_) {
  profile_.source = "rocprof";
}

void RocmRun::add_agent(RocmAgent agent) {
  if (agents_.size() < kMostAgents) agents_.push_back(std::move(agent));
}

std::uint32_t RocmRun::process(std::uint64_t key, std::int64_t pid, std::string_view command) {
  const std::uint32_t index = assembly_.process(key, pid);
  if (!command.empty()) profile_.processes[index].command = command.substr(0, 4096);
  return index;
}

std::optional<std::pair<std::int64_t, std::int64_t>> RocmRun::times(RocmSpan span) {
  const bool untimed = span.start_ns == 0 && span.end_ns == 0;  // the driver gave none
  if (untimed || span.start_ns < 0 || span.end_ns < span.start_ns || span.end_ns > kMostTime) {
    ++bad_times_;
    return std::nullopt;
  }
  return std::pair(span.start_ns, span.end_ns - span.start_ns);
}

int RocmRun::device(std::int64_t agent) {
  if (const auto at = devices_.find(agent); at != devices_.end()) return at->second;
  std::vector<DeviceInfo>& devices = profile_.environment.devices;
  if (devices.size() >= kMostAgents) return 0;
  const RocmAgent* found = nullptr;
  std::int64_t order = -1, gpus = 0;
  const auto look_up = [&](auto number_of) {
    gpus = 0;
    for (const RocmAgent& known : agents_) {
      if (found == nullptr && number_of(known) == agent && known.gpu) found = &known, order = gpus;
      gpus += known.gpu ? 1 : 0;
    }
  };
  look_up([](const RocmAgent& known) { return known.id; });
  if (found == nullptr) look_up([](const RocmAgent& known) { return known.node; });
  DeviceInfo info = found == nullptr ? DeviceInfo{} : found->info;
  const std::int64_t number = found == nullptr      ? std::max<std::int64_t>(agent, 0)
                              : found->ordinal >= 0 ? found->ordinal
                                                    : order;
  info.id = fmt::format("hip:{}", number);
  info.backend = "hip";
  info.kind = "gpu";
  info.vendor = "AMD";
  devices.push_back(std::move(info));
  return devices_[agent] = static_cast<int>(devices.size()) - 1;
}

void RocmRun::add_call(std::string_view name, RocmSpan span, std::uint32_t process,
                       std::uint32_t thread, std::int64_t correlation) {
  if (starts_with(name, "hsa_") || starts_with(name, "HSA_")) return;
  const auto when = times(span);
  if (!when) return;
  const auto fill = [&](auto& event) {
    event.start_ns = when->first;
    event.duration_ns = when->second;
    event.process = process;
    event.thread = thread;
  };
  const std::size_t reserve = options_.max_timeline_events / 2;  // for the devices
  if (!starts_with(name, "hip") && !starts_with(name, "__hip") && !starts_with(name, "nccl")) {
    if (const std::optional<RangeOp> found = op_of_range(name)) {
      Op op;
      fill(op);
      op.name = assembly_.text(found->name);
      op.shape = assembly_.text(found->shape);
      op.dtype = assembly_.text(found->dtype);
      assembly_.add(op, reserve);
      return;
    }
    Range range;
    fill(range);
    range.name = assembly_.text(name);
    range.kind = kind_of_range(name, "");
    assembly_.add(range, reserve);
    return;
  }
  Call call;
  fill(call);
  call.name = assembly_.text(name);
  call.kind = classify_call(name);
  const std::uint32_t index = assembly_.add(call, reserve);
  if (index != kNone && correlation > 0) launched_.push_back({{process, correlation}, index});
}

void RocmRun::link_calls() {
  link_host(profile_.timeline);
  std::sort(launched_.begin(), launched_.end());
}

std::uint32_t RocmRun::call_of(std::uint32_t process, std::int64_t correlation) const {
  if (correlation <= 0) return kNone;
  const std::pair<std::pair<std::uint32_t, std::int64_t>, std::uint32_t> wanted{
      {process, correlation}, 0};
  const auto at = std::lower_bound(launched_.begin(), launched_.end(), wanted);
  return at != launched_.end() && at->first == wanted.first ? at->second : kNone;
}

std::optional<std::uint32_t> RocmRun::add(const RocmDispatch& dispatch) {
  const auto when = times(dispatch.span);
  if (!when) return std::nullopt;
  LaunchIdentity identity;
  identity.name = without_clone_marks(dispatch.name);
  if (identity.name.empty()) identity.name = "(unnamed kernel)";
  for (std::size_t i = 0; i < 3; ++i) {
    identity.launch.block[i] = std::max(dispatch.group[i], 1u);
    identity.launch.grid[i] = blocks_of(dispatch.items[i], dispatch.group[i]);
  }
  identity.registers = dispatch.registers;
  identity.static_shared_bytes = dispatch.shared_bytes;
  identity.local_bytes = dispatch.scratch_bytes;
  identity.device = device(dispatch.agent);
  Activity activity;
  activity.call = call_of(dispatch.process, dispatch.correlation);
  const Timeline& timeline = profile_.timeline;
  if (activity.call != kNone && timeline.calls[activity.call].op != kNone) {
    const Op& op = timeline.ops[timeline.calls[activity.call].op];
    identity.op = timeline.names[op.name];
    identity.shape = timeline.names[op.shape];
    identity.dtype = timeline.names[op.dtype];
  }
  activity.start_ns = when->first;
  activity.duration_ns = when->second;
  activity.process = dispatch.process;
  activity.device = static_cast<std::uint16_t>(identity.device);
  activity.stream = small_stream(dispatch.stream);
  activity.row = assembly_.kernel_row(identity);
  const std::uint32_t row = activity.row;
  assembly_.add(activity);
  return row;
}

void RocmRun::add(const RocmCopy& copy) {
  const auto when = times(copy.span);
  if (!when) return;
  const std::string kind = copy_kind(copy.direction);
  Activity activity;
  activity.kind = ActivityKind::kCopy;
  activity.start_ns = when->first;
  activity.duration_ns = when->second;
  activity.process = copy.process;
  activity.bytes = copy.bytes;
  activity.device = static_cast<std::uint16_t>(
      device(starts_with(kind, "h2d") ? copy.target_agent : copy.source_agent));
  activity.stream = small_stream(copy.stream);
  activity.call = call_of(copy.process, copy.correlation);
  activity.row = assembly_.copy_row(kind, activity.device);
  assembly_.add(activity);
}

void RocmRun::add_counter(std::uint32_t row, std::string_view name, double value) {
  if (!name.empty() && std::isfinite(value))
    assembly_.add_counter(row, name, value, 1, counters_at_[row]);
}

void RocmRun::damaged(const Status& why) {
  profile_.partial = true;
  assembly_.note("damaged", why.message());
}

Result<Profile> RocmRun::finish(const std::string& name) {
  if (profile_.kernels.empty() && profile_.copies.empty() && profile_.timeline.calls.empty())
    return error(Code::kInvalid,
                 "{}: no kernels, memcpys or calls in it; record with rocprofv3 --kernel-trace",
                 name);
  if (profile_.timeline.calls.empty() && !profile_.timeline.empty())
    assembly_.note("no_calls",
                   "no calls of the runtime: the causes of idle time are not known. Record with "
                   "--hip-trace");
  if (agents_.empty()) assembly_.note("no_device_info", "the file does not say which GPU it was");
  if (bad_times_ > 0)
    assembly_.note("bad_times",
                   "records without times, or with impossible ones, were left out of all sums",
                   bad_times_);
  for (ProcessInfo& process : profile_.processes) {
    process.layer = "hip";
    process.complete = !profile_.partial;
    if (profile_.command.empty()) profile_.command = process.command;
  }
  assembly_.finish();
  return std::move(profile_);
}

}  // namespace purlin::profile
