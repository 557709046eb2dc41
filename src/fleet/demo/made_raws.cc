// SPDX-License-Identifier: Apache-2.0
#include "fleet/demo/made_raws.h"

#include "base/sha256.h"
#include "base/time.h"
#include "model/profile/profile.h"
#include "profile/format/file.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace purlin::fleet {
namespace {

// How a kind of kernel spends its time.
struct MadeBehaviour {
  double memory, compute, occupancy;  // shares of peak
  struct Wait {
    std::string_view reason;
    double samples;
    std::uint32_t line;
  };
  std::vector<Wait> waits;
};

const MadeBehaviour* behaviour_of(std::string_view role) {
  static const MadeBehaviour kStreams{
      0.61,
      0.14,
      0.72,
      {{"long_scoreboard", 5400, 41}, {"barrier", 2100, 57}, {"selected", 800, 48}}};
  static const MadeBehaviour kProducts{
      0.34,
      0.66,
      0.19,
      {{"gmma", 4700, 112}, {"long_scoreboard", 900, 88}, {"selected", 1500, 118}}};
  if (role == "communication" || role == "copy") return nullptr;
  const bool product = role == "matmul" || role == "mlp" || role == "attention";
  return product ? &kProducts : &kStreams;
}

constexpr double kMadeBandwidth = 3350;  // bytes per ns, of an H100

std::vector<Counter> counters_of(const MadeBehaviour& made, double ns) {
  const double bytes = made.memory * kMadeBandwidth * ns;
  constexpr double kCounted = 6;
  return {
      {"dram__bytes_read.sum", 0.55 * bytes, kCounted},
      {"dram__bytes_write.sum", 0.45 * bytes, kCounted},
      {"dram__throughput.avg.pct_of_peak_sustained_elapsed", 100 * made.memory, kCounted},
      {"lts__t_sector_hit_rate.pct", 100 * (1 - made.memory), kCounted},
      {"sm__throughput.avg.pct_of_peak_sustained_elapsed", 100 * made.compute, kCounted},
      {"sm__warps_active.avg.pct_of_peak_sustained_active", 100 * made.occupancy, kCounted},
  };
}

void add_stalls(const MadeBehaviour& made, const KernelRow& row, SampledStalls& stalls) {
  StallFunction function;
  function.name = row.name, function.build = row.build;
  stalls.files.push_back(row.name.substr(0, row.name.find_first_of("<( ")) + ".cu");
  for (const MadeBehaviour::Wait& wait : made.waits) {
    auto reason = std::find(stalls.reasons.begin(), stalls.reasons.end(), wait.reason);
    if (reason == stalls.reasons.end())
      reason = stalls.reasons.insert(stalls.reasons.end(), std::string(wait.reason));
    StallSite site;
    site.offset = 16 * wait.line;
    site.file = static_cast<std::uint32_t>(stalls.files.size() - 1);
    site.line = wait.line;
    site.add(static_cast<std::uint32_t>(reason - stalls.reasons.begin()), wait.samples);
    function.sites.push_back(std::move(site));
  }
  std::sort(function.sites.begin(), function.sites.end(),
            [](const StallSite& a, const StallSite& b) { return a.offset < b.offset; });
  stalls.functions.push_back(std::move(function));
}

DeviceInfo made_device(const store::BatchDevice& device) {
  DeviceInfo info;
  info.id = "cuda:0", info.backend = "cuda", info.kind = "gpu";
  info.name = device.model, info.vendor = "NVIDIA", info.arch = "sm_90";
  info.uuid = device.uuid, info.driver = device.driver, info.toolkit = device.runtime;
  info.compute_units = 132, info.clock_mhz = 1980, info.l2_bytes = 50u << 20;
  info.warp_size = 32, info.max_threads_per_block = 1024, info.max_threads_per_unit = 2048;
  info.registers_per_unit = info.registers_per_block = 65536;
  info.shared_memory_per_unit = 233472, info.shared_memory_per_block = 232448;
  return info;
}

Profile made_profile(const store::Batch& batch, bool with_counters) {
  const store::BatchRun& run = batch.runs.front();
  Profile profile;
  profile.source = "purlin", profile.command = run.command;
  profile.wall_ns = batch.end_ns - batch.begin_ns;
  profile.environment.build = run.build;
  profile.environment.recorded_at = format_rfc3339(batch.begin_ns);
  profile.environment.devices = {made_device(batch.devices.front())};
  for (const store::BatchRow& from : batch.rows) {
    if (from.device != 0) continue;
    KernelRow row;
    row.name = from.kernel, row.op = from.op, row.shape = from.shape, row.dtype = from.dtype;
    row.build = run.build, row.duration = from.duration;
    const MadeBehaviour* const made = behaviour_of(from.role);
    const bool few_warps = made != nullptr && made->occupancy < 0.5;
    row.launch.grid = {few_warps ? 132u : 16384u, 1, 1};
    row.launch.block = {few_warps ? 384u : 256u, 1, 1};
    row.registers = few_warps ? 168 : 40;
    row.first_ns = batch.begin_ns, row.last_ns = batch.end_ns;
    profile.coverage.launches_seen += from.recorded;
    profile.coverage.launches_sampled_out += from.duration.count() - from.recorded;
    if (with_counters && made != nullptr) {
      row.counters = counters_of(*made, row.duration.mean_ns());
      // One kernel of several shapes is one function.
      const auto& known = profile.stalls.functions;
      if (std::none_of(known.begin(), known.end(),
                       [&](const StallFunction& one) { return one.name == row.name; }))
        add_stalls(*made, row, profile.stalls);
    }
    profile.kernels.push_back(std::move(row));
  }
  if (with_counters) profile.stalls.windows = 12, profile.stalls.sampled_ns = 3e9;
  return profile;
}

}  // namespace

std::vector<MadeRaw> add_made_raws(std::vector<store::Batch>& week) {
  std::vector<MadeRaw> raws;
  for (const auto& [node, with_counters] :
       {std::pair<std::string_view, bool>{"h100-02", true}, {"h200-03", false}}) {
    const auto last =
        std::find_if(week.rbegin(), week.rend(),
                     [name = node](const store::Batch& batch) { return batch.node == name; });
    if (last == week.rend()) continue;
    MadeRaw raw;
    raw.bytes = profile::encode_profile(made_profile(*last, with_counters));
    raw.sha256 = sha256_hex(raw.bytes);
    store::RawPointer pointer;
    pointer.sha256 = raw.sha256, pointer.bytes = raw.bytes.size(), pointer.kind = "profile";
    pointer.begin_ns = last->begin_ns, pointer.end_ns = last->end_ns;
    last->raws.push_back(std::move(pointer));
    raws.push_back(std::move(raw));
  }
  return raws;
}

}  // namespace purlin::fleet
