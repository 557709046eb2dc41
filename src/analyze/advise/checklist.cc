// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/checklist.h"

#include "analyze/advise/rules/pricing.h"
#include "analyze/advise/rules/touch.h"
#include "analyze/advise/unknown_roofs.h"
#include "analyze/text/layout.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace purlin::analyze {
namespace {

constexpr double kEnoughSteps = 10, kMostJudged = 0.5;
constexpr double kManyOnVectors = 0.1;  // of the kernel time: from here on there is an alert
constexpr double kLargeKernel = 0.05;   // of the kernel time
constexpr double kSlowKernel = 0.60;    // of a roof: from there on it pays little
constexpr double kMuchIdle = 0.15;      // of the time: from here on it may be the verdict

enum class Needs { kKernels, kTimeline, kRoofs, kCounters };

struct Check {
  const char *id, *area, *text;
  Needs needs;
  std::string_view remedies;  // separated by '|': one of them is a finding
};
constexpr Check kChecks[] = {
    {"coalescing", "memory", "accesses to global memory are coalesced", Needs::kCounters,
     "coalesce|local_gathers"},
    {"bandwidth", "memory", "memory-bound kernels reach the bandwidth", Needs::kRoofs,
     "stream_wider|more_loads_in_flight|hide_latency|local_gathers|coalesce"},
    {"cache", "memory", "data is used while it is in the cache", Needs::kCounters,
     "raise_cache_hits|reuse_data"},
    {"shared_memory", "memory", "shared memory has no bank conflicts", Needs::kCounters,
     "avoid_bank_conflicts|shared_memory_conflicts"},
    {"transfers", "memory", "host and device exchange no more than needed", Needs::kTimeline,
     "keep_on_device|pin_memory|map_buffers|overlap_copies|remove_fills"},
    {"tensor_cores", "compute", "products run on the tensor cores", Needs::kKernels,
     "tensor_cores|leave_float64"},
    {"alignment", "compute", "extents are multiples of 16 bytes", Needs::kRoofs,
     "align_dimensions"},
    {"divergence", "compute", "the threads of a warp take one branch", Needs::kCounters,
     "unify_branches"},
    {"precision", "compute", "the element type is as short as it may be", Needs::kRoofs,
     "quantize|cast_weights_once|shorten_tensors|tensor_cores"},
    {"occupancy", "occupancy", "enough warps fit on an SM", Needs::kKernels,
     "raise_occupancy|fewer_registers|remove_spills|even_blocks"},
    {"grid", "occupancy", "launches fill the device", Needs::kKernels,
     "fill_the_device|whole_waves|batch_products"},
    {"fusion", "advanced", "chains of kernels are fused", Needs::kTimeline,
     "fuse_pointwise|fuse_norm|fuse_epilogue|flash_attention|fused_optimizer|compile_model"},
    {"launches", "advanced", "the host launches in time", Needs::kTimeline,
     "cuda_graphs|cut_host_work|slow_op|remove_syncs|remove_stalls|stop_allocating|"
     "persistent_kernel"},
    {"input", "advanced", "the device does not wait for input", Needs::kTimeline,
     "feed_the_device"},
    {"communication", "advanced", "communication is hidden", Needs::kTimeline,
     "overlap_communication"},
};

bool has(const Facts& facts, const Advice& advice, Needs needs) {
  switch (needs) {
    case Needs::kKernels:
      return facts.rows.kernel_ns > 0;
    case Needs::kTimeline:
      return !facts.timeline->devices.empty();
    case Needs::kRoofs:
      return advice.judged_share >= kMostJudged;
    case Needs::kCounters:
      return std::any_of(facts.rows.kernels.begin(), facts.rows.kernels.end(),
                         has_hardware_counters);
  }
  return false;
}

const char* lacks(Needs needs) {
  switch (needs) {
    case Needs::kKernels:
      return "no kernels were recorded";
    case Needs::kTimeline:
      return "record a timeline (--full, or import a trace)";
    case Needs::kRoofs:
      return "record shapes, and name the GPU (--gpu)";
    case Needs::kCounters:
      return "record counters (ncu, --counters)";
  }
  return "";
}

// A product with an extent that is no multiple of 16 bytes; M alone only costs the last tile.
std::string odd_product(const Facts& facts) {
  for (std::size_t row = 0; row < facts.rows.kernels.size(); ++row) {
    const KernelStat& kernel = facts.rows.kernels[row];
    if (kernel.share < kLargeKernel) continue;
    const auto& of_profile = facts.profile->kernels[facts.profile_rows[row].front()];
    const std::string odd = misaligned_extent(touch_of(of_profile, kernel), 16);
    if (!odd.empty() && !starts_with(odd, "M=")) return short_label(kernel) + ": " + odd;
  }
  return "";
}

// The heaviest memory-bound kernel below the part of its roof from where tuning pays little.
std::string slow_memory(const Facts& facts) {
  for (const KernelStat& kernel : facts.rows.kernels)
    if (kernel.share >= kLargeKernel && kernel.roof.bound == Bound::kMemory &&
        kernel.roof.utilization > 0 && kernel.roof.utilization < kSlowKernel &&
        !is_short_launch(kernel))
      return fmt::format("{} is at {:.0f}% of its roof", short_label(kernel),
                         100 * kernel.roof.utilization);
  return "";
}

// What was found, though no change answers it; "" for nothing.
std::string unanswered(const Facts& facts, const Advice& advice, std::string_view check) {
  const auto at = [&](LossLevel level) { return advice.levels[static_cast<std::size_t>(level)]; };
  if (check == "alignment") return odd_product(facts);
  if (check == "bandwidth") return slow_memory(facts);
  const bool scheduled = std::any_of(
      advice.interventions.begin(), advice.interventions.end(),
      [](const Intervention& one) { return loss_level(one) == LossLevel::kScheduling; });
  if (check == "launches" && advice.idle_share >= kMuchIdle && !scheduled)
    return fmt::format("the device idles {:.0f}% of the time", 100 * advice.idle_share);
  if (check == "communication" && at(LossLevel::kCommunication) >= kMuchIdle)
    return fmt::format("collectives that no computation hides take {:.0f}% of the time",
                       100 * at(LossLevel::kCommunication));
  if (check == "tensor_cores" && advice.tensor.idle >= kManyOnVectors)
    return fmt::format("products on the vector units take {:.0f}% of the kernel time",
                       100 * advice.tensor.idle);
  return "";
}

CheckItem tick(const Facts& facts, const Advice& advice, const Check& check) {
  CheckItem out{check.id, check.area, check.text, "done", "nothing found"};
  const auto ids = split(check.remedies, '|');
  for (const auto* list : {&advice.interventions, &advice.trades})
    for (const Intervention& one : *list)
      if (std::find(ids.begin(), ids.end(), one.id) != ids.end()) {
        out.state = "found";
        out.why = fmt::format("{} saves {:.0f}%", one.id, 100 * one.saved_share.mid);
        return out;
      }
  if (std::string why = unanswered(facts, advice, out.id); !why.empty()) {
    out.state = "open";
    out.why = std::move(why);
    return out;
  }
  if (has(facts, advice, check.needs)) return out;
  out.state = "unknown";
  out.why = lacks(check.needs);
  return out;
}

// Profile, baseline, target: what comes before any change.
void add_preparation(const Facts& facts, Advice& advice) {
  const Unit& unit = facts.unit;
  advice.checklist.push_back(
      {"profile", "measure", "a profile of the kernels", facts.rows.kernel_ns > 0 ? "done" : "open",
       facts.rows.kernel_ns > 0 ? counted(static_cast<double>(facts.rows.kernels.size()), "row")
                                : std::string("no durations were recorded")});
  const bool steps = unit.kind == "step" && unit.count >= kEnoughSteps;
  advice.checklist.push_back(
      {"baseline", "measure", "a baseline of ten steps or more", steps ? "done" : "open",
       unit.kind == "step" ? counted(unit.count, "step") : std::string("no steps are known")});
  const bool roofs = advice.judged_share >= kMostJudged;
  advice.checklist.push_back(
      {"target", "measure", "a target for the kernels", roofs ? "done" : "open",
       fmt::format("the roof of {:.0f}% of the kernel time is known", 100 * advice.judged_share)});
}

}  // namespace

void add_checklist(const Facts& facts, Advice& advice) {
  add_preparation(facts, advice);
  for (const Check& check : kChecks) advice.checklist.push_back(tick(facts, advice, check));
}

}  // namespace purlin::analyze
