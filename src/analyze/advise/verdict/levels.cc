// SPDX-License-Identifier: Apache-2.0
#include "analyze/advise/verdict/levels.h"

#include "analyze/advise/facts.h"
#include "analyze/advise/rules/pricing.h"

#include <algorithm>
#include <set>

namespace purlin::analyze {
namespace {

// Above this part of its roof tuning pays little; from that part of its target a kernel is there.
constexpr double kTuningPays = 0.60, kThere = 0.95;
constexpr double kMostOfTheWay = 0.5;  // what replaces tuning saves this part of it at least

// What tuning a kernel to its target would save, ns of all its launches.
double way_to_target(const Facts& facts, const KernelStat& kernel) {
  if (kernel.roof.utilization >= kTuningPays || is_short_launch(kernel)) return 0;
  const Target target = target_of(kernel.roof, facts.targets);
  return kernel.duration.total_ns() * std::min(target.saved_share, most_by_tuning(kernel));
}

// The same of all kernels that a change names, as a share of the unit.
double way_of_its_kernels(const Facts& facts, const Intervention& one) {
  const double baseline = facts.unit.baseline_ns.mid;
  double way = 0;
  for (const KernelStat& kernel : facts.rows.kernels)
    if (std::find(one.kernels.begin(), one.kernels.end(), kernel.label) != one.kernels.end())
      way += way_to_target(facts, kernel);
  return baseline > 0 ? in_one_unit(facts, way) / baseline : 0;
}

bool only_moves_data(const KernelStat& kernel) {
  return kernel.name.op_class == "copy" || kernel.name.op_class == "layout";
}

std::size_t place(LossLevel level) { return static_cast<std::size_t>(level); }

// What the kernels themselves take, split by what could make it less.
LevelShares shares_of_kernels(const Facts& facts, const Advice& advice) {
  std::set<std::string_view> restructured;
  for (const Intervention& one : advice.interventions)
    if (loss_level(one) == LossLevel::kRestructure)
      restructured.insert(one.kernels.begin(), one.kernels.end());
  LevelShares out = {};
  double all = 0;
  for (const KernelStat& kernel : facts.rows.kernels) {
    if (kernel.name.op_class == "communication") continue;
    const double ns = kernel.duration.total_ns();
    all += ns;
    const double u = kernel.roof.utilization;
    const bool less = restructured.contains(kernel.label);
    if (u <= 0) {
      out[place(less ? LossLevel::kRestructure : LossLevel::kUnknown)] += ns;
      continue;
    }
    const Target target = target_of(kernel.roof, facts.targets);
    const double gap = way_to_target(facts, kernel);
    const bool instead = less && instead_of_tuning(facts, advice, kernel) != nullptr;
    const bool there = target.fraction <= 0 || u >= kThere * target.fraction;
    out[place(instead ? LossLevel::kRestructure : LossLevel::kTune)] += gap;
    const bool other = u >= kTuningPays || is_short_launch(kernel);
    out[place(less || (other && !there) ? LossLevel::kRestructure : LossLevel::kHardware)] +=
        ns - gap;
  }
  for (double& share : out) share = all > 0 ? share / all : 0;
  return out;
}

}  // namespace

std::string_view to_text(LossLevel level) {
  switch (level) {
    case LossLevel::kScheduling:
      return "scheduling";
    case LossLevel::kDataMovement:
      return "data_movement";
    case LossLevel::kCommunication:
      return "communication";
    case LossLevel::kRestructure:
      return "restructure";
    case LossLevel::kTune:
      return "tune";
    case LossLevel::kHardware:
      return "hardware";
    case LossLevel::kUnknown:
      return "unknown";
  }
  return "";
}

// Precision, layout and algorithm are restructuring; tiling, loads and occupancy are tuning.
LossLevel loss_level(const Intervention& one) {
  const auto has = [&](std::string_view part) { return one.id.find(part) != std::string::npos; };
  if (has("communication")) return LossLevel::kCommunication;
  if (has("overlap_copies") || has("remove_fills") || has("pin_memory") || has("map_buffers") ||
      has("keep_on_device"))
    return LossLevel::kDataMovement;
  if (one.pillar == Pillar::kOverhead) return LossLevel::kScheduling;
  if (one.id == "reuse_data") return LossLevel::kTune;
  if (one.id == "channels_last" || one.level == Level::kAlgorithm ||
      one.pillar == Pillar::kArithmeticIntensity)
    return LossLevel::kRestructure;
  return LossLevel::kTune;
}

const Intervention* instead_of_tuning(const Facts& facts, const Advice& advice,
                                      const KernelStat& kernel) {
  for (const Intervention& one : advice.interventions) {  // as ranked
    if (std::find(one.kernels.begin(), one.kernels.end(), kernel.label) == one.kernels.end())
      continue;
    const LossLevel level = loss_level(one);
    if (level == LossLevel::kRestructure && one.saved_share.mid >= kWorthIt &&
        (only_moves_data(kernel) ||
         one.saved_share.mid >= kMostOfTheWay * way_of_its_kernels(facts, one)))
      return &one;
    if (level == LossLevel::kTune && !only_moves_data(kernel)) return nullptr;
  }
  return nullptr;
}

LevelShares measure_levels(const Facts& facts, const Advice& advice) {
  const Unit& unit = facts.unit;
  LevelShares out = shares_of_kernels(facts, advice);
  if (unit.kind == "kernel_time" || unit.baseline_ns.mid <= 0) return out;
  double copies = 0, communication = 0;
  for (const DeviceTime& device : facts.timeline->devices) {
    copies += static_cast<double>(device.exposed_copy_ns);
    communication += static_cast<double>(device.exposed_communication_ns);
  }
  // In a collective a rank waits for the last one before anything is transferred.
  const Graph* graph = facts.replayer != nullptr ? &facts.replayer->graph() : nullptr;
  const double waits = graph != nullptr && graph->collective_ns > 0
                           ? graph->collective_wait_ns / graph->collective_ns
                           : 0;
  const double share = 1 / (unit.count * unit.devices * unit.baseline_ns.mid);
  LevelShares outside = {};
  outside[place(LossLevel::kScheduling)] = advice.idle_share + waits * communication * share;
  outside[place(LossLevel::kDataMovement)] = copies * share;
  outside[place(LossLevel::kCommunication)] = (1 - waits) * communication * share;
  double taken = 0;
  for (const double one : outside) taken += one;
  // The steps differ, so the parts may come to more than the whole.
  const double kernels = std::max(0.0, 1 - taken);
  for (std::size_t i = 0; i < kLossLevels; ++i)
    out[i] = outside[i] / std::max(1.0, taken) + kernels * out[i];
  return out;
}

}  // namespace purlin::analyze
