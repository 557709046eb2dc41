// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/rules/pricing.h"

#include "analyze/advise/rules/made.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/host.h"
#include "analyze/timeline/intervals.h"
#include "base/text.h"
#include "model/device/gpu_table.h"
#include "model/problem/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace purlin::analyze {
namespace {

constexpr double kLaunchCost = 8'000;  // ns of the host for a launch, where no call was recorded
// The least share of a recorded call that is the program's own.
constexpr double kLeastOwnCall = 0.2;
constexpr double kHostBound = 0.3;  // idle part of a chain: the host sets its pace
constexpr double kFewBusy = 128;    // threads of a multiprocessor
constexpr std::size_t kMostNamed = 8;

// Where the host sets the pace, each launch less is a call less.
Interval3 saved_calls(const Facts& facts, double launches, double exposed) {
  const double calls = in_one_unit(facts, launches) * (1 - exposed);
  if (facts.timeline->launches.call_p50_ns <= 0) return {};
  const Interval3 cost = launch_cost(facts);
  return {0, calls * cost.mid, calls * cost.high};
}

// What launches save that took `ns` in all, of which `exposed_ns` set the pace.
Interval3 of_launches(const Facts& facts, Interval3 saved, double ns, double exposed_ns) {
  const Interval3 x = facts.without_recorder(ns > 0 ? exposed_ns / ns : 1);
  const double most = in_one_unit(facts, ns);
  const Interval3 one = bounded({in_one_unit(facts, saved.low), in_one_unit(facts, saved.mid),
                                 in_one_unit(facts, saved.high)},
                                most);
  const Interval3 scaled = {one.low * (one.low > 0 ? x.low : 1), one.mid * x.mid,
                            std::min(one.high, most * x.high)};
  return facts.capped(scaled);
}

// The device's idle time within one occurrence, without what the recorder added to the host's part.
Interval3 idle_within(const Facts& facts, const Chain& chain) {
  const auto& activities = facts.profile->timeline.activities;
  double idle = 0;
  for (const Launches& group : chain.groups)
    for (std::size_t i = 1; i < group.size(); ++i)
      idle += std::max(0.0, static_cast<double>(begin_of(activities[group[i]]) -
                                                end_of(activities[group[i - 1]])));
  const double each = chain.groups.empty() ? 0 : idle / chain.count();
  const Unit& unit = facts.unit;
  const auto left = [&](double recorder) {
    return unit.host_ns > 0 ? std::clamp(1 - recorder / unit.host_ns, 0.0, 1.0) : 1.0;
  };
  return {each * left(unit.recorder_ns.high), each * left(unit.recorder_ns.mid),
          each * left(unit.recorder_ns.low)};
}

bool host_sets_pace(const Chain& chain, Interval3 idle) {
  return idle.mid > kHostBound * (idle.mid + chain.each_ns());
}

double exposed_part(const Facts& facts, const Chain& chain) {
  return facts.without_recorder(chain.ns > 0 ? chain.exposed_ns / chain.ns : 1).mid;
}

}  // namespace

Interval3 launch_cost(const Facts& facts) {
  const double call = facts.timeline->launches.call_p50_ns;
  if (call <= 0) return {kLaunchCost, kLaunchCost, kLaunchCost};
  const RecorderOverhead recorder = recorder_overhead(facts.profile->source);
  const auto own = [&](double added) { return std::max(kLeastOwnCall * call, call - added); };
  return {own(recorder.call.high), own(recorder.call.mid), own(recorder.call.low)};
}

double in_one_unit(const Facts& facts, double total) {
  return total / (facts.unit.count * facts.unit.devices);
}

std::string launches_in_words(const Walk& walk, const Launches& work) {
  const Facts& facts = walk.facts();
  return fmt::format(
      "{}{}, {}", counted(in_one_unit(facts, static_cast<double>(work.size())), "launch"),
      a_unit(facts), of_total(in_one_unit(facts, walk.duration(work)), facts.unit.baseline_ns.mid));
}

Peaks peaks_of(const Facts& facts, const KernelStat& kernel, std::string_view dtype) {
  Peaks out;
  const Ceilings* ceilings = facts.ceilings_of(kernel);
  if (ceilings == nullptr) return out;
  if (dtype.empty()) dtype = kernel.name.dtype;  // Nsight Systems records no types
  // On the tensor cores, products of float32 are TF32.
  const bool tf32 = dtype == "f32" && kernel.name.tensor == TensorCores::kYes;
  const Ceiling* peak = tf32 ? tensor_ceiling_for_f32(*ceilings) : nullptr;
  if (peak == nullptr) peak = ceilings->compute_for(dtype, true);
  if (peak != nullptr) out.flops = peak->peak;
  out.bandwidth = facts.bandwidth_of(kernel);
  out.l2_bytes = ceilings->l2_bytes;
  return out;
}

double roof_ns(const Peaks& peaks, double flops, double bytes, double compute, double memory) {
  const double arithmetic = peaks.flops > 0 ? flops / (peaks.flops * compute) * 1e9 : 0;
  const double traffic = peaks.bandwidth > 0 ? bytes / (peaks.bandwidth * memory) * 1e9 : 0;
  return std::max({arithmetic, traffic, kLeastLaunch});
}

void replace_quietly(const Facts& facts, const Chain& chain, Interval3 after_ns, double launches,
                     Intervention& out) {
  const double each = chain.each_ns(), count = chain.count();
  const Interval3 idle = idle_within(facts, chain);
  Interval3 all;
  if (host_sets_pace(chain, idle)) {
    // The host's pace: the whole span goes, and what is left takes its launches at least.
    const Interval3 cost = launch_cost(facts);
    const auto after = [&](double device, double of) { return std::max(device, launches * of); };
    all = Interval3{each + idle.low - after(after_ns.low, cost.high),
                    each + idle.mid - after(after_ns.mid, cost.mid),
                    each + idle.high - after(after_ns.high, cost.low)} *
          count;
    all = {in_one_unit(facts, all.low), in_one_unit(facts, all.mid), in_one_unit(facts, all.high)};
  } else {
    const Interval3 saved = {(each - after_ns.low) * count, (each - after_ns.mid) * count,
                             (each - after_ns.high) * count};
    const Interval3 turns = idle * in_one_unit(facts, count);
    all = of_launches(facts, saved, chain.ns, chain.exposed_ns) +
          Interval3{0, turns.mid * exposed_part(facts, chain), turns.high};
  }
  out.saved_ns = out.saved_ns + bounded(all, all.high);
  out.change.edits.emplace_back(edit::Replace{chain.groups, after_ns});
}

void become(const Facts& facts, const Chain& chain, Interval3 after_ns, double launches,
            Intervention& out) {
  replace_quietly(facts, chain, after_ns, launches, out);
  const double exposed = exposed_part(facts, chain);
  if (facts.timeline->launches.call_p50_ns > 0 &&
      host_sets_pace(chain, idle_within(facts, chain))) {
    const Interval3 cost = launch_cost(facts);
    out.evidence.push_back(
        {"a launch takes the host, without the recorder",
         fmt::format("{} ({} to {})", short_ns(cost.mid), short_ns(cost.low), short_ns(cost.high)),
         "timeline"});
  }
  if (facts.exposure.known && exposed < 0.9)
    out.evidence.push_back(
        {"share of their time that sets the pace", percent(exposed), "timeline"});
}

void put_chain(const Facts& facts, const Chain& chain, Interval3 after_ns, double launches,
               const char* assumes, const char* confidence, Intervention out, Advice& advice) {
  const double each = chain.each_ns();
  after_ns = {std::min(each, after_ns.low), std::min(each, after_ns.mid),
              std::min(each, after_ns.high)};
  become(facts, chain, after_ns, launches, out);
  name_kernels(facts, chain.rows, out);
  out.evidence.push_back(
      {"its time, and after the change",
       fmt::format("{}, {}; {} ({} to {})", counted(chain.count(), "time"), short_ns(each),
                   short_ns(after_ns.mid), short_ns(after_ns.high), short_ns(after_ns.low)),
       "timeline and shape model"});
  out.assumptions.emplace_back(assumes);
  out.confidence = confidence;
  advice.interventions.push_back(std::move(out));
}

void scale_host(const Facts& facts, Interval3 factor, std::span<const Interval> without,
                Change& change) {
  const HostFacts host(*facts.profile);
  const std::vector<Interval> made = times_of_work(long_work(facts, made_by_host(facts)));
  for (std::uint32_t process = 0; process < facts.profile->processes.size(); ++process) {
    std::vector<Interval> out_of(without.begin(), without.end());
    out_of.insert(out_of.end(), made.begin(), made.end());
    for (const NamedInterval& one : host.process(process).loading) out_of.push_back(one.interval);
    std::sort(out_of.begin(), out_of.end(),
              [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    edit::ScaleHost edit{factor, {}, process};
    std::int64_t begin = -kLatest;
    for (const Interval& one : out_of) {
      if (one.begin > begin) edit.when.push_back({begin, one.begin});
      begin = std::max(begin, one.end);
    }
    edit.when.push_back({begin, kLatest});
    change.edits.emplace_back(std::move(edit));
  }
}

void remove_launches(const Walk& walk, const Launches& work, Interval3 gone, Intervention& out) {
  const Facts& facts = walk.facts();
  double ns = 0, exposed_ns = 0, kernels = 0, copies_ns = 0;
  for (const std::uint32_t activity : work) {
    const Activity& one = walk.at(activity);
    const double length = walk.duration(activity);
    if (one.kind != ActivityKind::kKernel) {
      copies_ns += length;
      continue;
    }
    ns += length;
    kernels += 1;
    exposed_ns += length * facts.exposure.share[one.row];
  }
  const double exposed = facts.without_recorder(ns > 0 ? exposed_ns / ns : 1).mid;
  // The host stands still in most copies, so they count in full.
  const Interval3 all = of_launches(facts, gone * ns, ns, exposed_ns) +
                        saved_calls(facts, kernels, exposed) + gone * in_one_unit(facts, copies_ns);
  out.saved_ns = out.saved_ns + bounded(all, all.high);
  out.change.edits.emplace_back(edit::Remove{Affected::of(work), gone});
}

void shrink_launches(const Walk& walk, const Launches& work, Interval3 factor, Intervention& out) {
  const Facts& facts = walk.facts();
  double ns = 0, exposed_ns = 0;
  for (const std::uint32_t activity : work) {
    const Activity& one = walk.at(activity);
    const double length = walk.duration(activity);
    ns += length;
    exposed_ns +=
        length * (one.kind == ActivityKind::kKernel ? facts.exposure.share[one.row] : 1.0);
  }
  const Interval3 saved = {(1 - factor.low) * ns, (1 - factor.mid) * ns, (1 - factor.high) * ns};
  out.saved_ns = out.saved_ns + of_launches(facts, saved, ns, exposed_ns);
  out.change.edits.emplace_back(edit::Scale{Affected::of(work), factor});
}

void scale_row(const Facts& facts, std::size_t row, Interval3 factor, Intervention& out,
               double least) {
  const double t = facts.rows.kernels[row].duration.total_ns();
  const Interval3 saved = {t * (1 - factor.low), t * (1 - factor.mid), t * (1 - factor.high)};
  out.saved_ns = facts.capped(out.saved_ns + facts.end_to_end(row, saved));
  edit::Scale scale = scale_of(facts, row, factor);
  scale.least = least;
  out.change.edits.emplace_back(std::move(scale));
}

edit::Scale scale_of(const Facts& facts, std::size_t row, Interval3 factor) {
  return {Affected::of_rows(facts.profile_rows[row]), factor};
}

void name_kernel(const KernelStat& kernel, Intervention& out) { name_label(kernel.label, out); }

void name_label(const std::string& label, Intervention& out) {
  if (std::find(out.kernels.begin(), out.kernels.end(), label) != out.kernels.end()) return;
  if (out.kernels.size() < kMostNamed) {
    out.kernels.push_back(label);
  } else {
    out.kernels_left_out += 1;
  }
}

void name_kernels(const Facts& facts, const std::vector<std::uint32_t>& rows, Intervention& out) {
  for (const std::uint32_t row : rows) name_kernel(facts.rows.kernels[facts.row_of[row]], out);
}

bool is_short_launch(const KernelStat& kernel) {
  return kernel.roof.launch_share > 0 && kernel.duration.mean_ns() <= kShortLaunch &&
         kernel.name.op_class != "communication";
}
double most_by_tuning(const KernelStat& kernel) { return 1 - kernel.roof.launch_share; }

bool from_library(const KernelStat& kernel) {
  const std::string_view family = kernel.name.family;
  return family == "cublas" || family == "cudnn" || family == "rocblas" || family == "miopen" ||
         (family == "cutlass" && of_framework(kernel));  // of cuBLAS
}

bool of_framework(const KernelStat& kernel) {
  return starts_with(kernel.op, "aten::") && !is_of_program(kernel);
}

bool is_of_program(const KernelStat& kernel) {
  return kernel.name.family == "custom" || kernel.name.family == "triton";
}

double threads_of(const KernelStat& kernel) {
  const auto& block = kernel.launch.block;
  return static_cast<double>(kernel.launch.blocks()) * static_cast<double>(block[0]) *
         static_cast<double>(block[1]) * static_cast<double>(block[2]);
}

double few_threads_of_bags(const Facts& facts, const KernelStat& kernel) {
  if (kernel.op.find("_embedding_bag") == std::string::npos ||
      kernel.op.find("backward") != std::string::npos)
    return 0;
  Problem problem;
  problem.dimensions = dimensions_from_text(kernel.shape);
  const auto threads = static_cast<double>(problem["bags"] * problem["cols"]);
  for (const DeviceInfo& device : facts.profile->environment.devices)
    if (device.name == kernel.device && threads > 0 && threads < kFewBusy * units_of(device))
      return threads;
  return 0;
}

double waves_of(const Facts& facts, const KernelStat& kernel) {
  const auto blocks = static_cast<double>(kernel.launch.blocks());
  for (const DeviceInfo& device : facts.profile->environment.devices) {
    if (device.name != kernel.device || units_of(device) <= 0) continue;
    const double warps = std::ceil(threads_of(kernel) / std::max(1.0, blocks) / 32);
    const double slots = 64 * kernel.roof.occupancy_theoretical;
    if (warps <= 0 || slots <= 0) return 0;
    return blocks / (std::max(1.0, std::floor(slots / warps)) * units_of(device));
  }
  return 0;
}

double sectors_per_load(const KernelStat& kernel) {
  double sectors = 0, requests = 0;
  for (const Counter& one : kernel.counters) {
    if (one.name == "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum") sectors = one.value;
    if (one.name == "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum") requests = one.value;
  }
  return sectors > 0 && requests > 0 ? sectors / requests : 0;
}

int architecture_number(std::string_view arch) {
  if (!starts_with(arch, "sm_")) return 0;
  const auto number = parse_int(arch.substr(3));
  return number ? static_cast<int>(*number) : 0;
}

std::string a_unit(const Facts& facts) { return facts.unit.kind == "step" ? " a step" : ""; }

}  // namespace purlin::analyze
