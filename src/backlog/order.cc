// SPDX-License-Identifier: Apache-2.0
#include "backlog/order.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

namespace purlin::backlog {
namespace {

// What one of several tasks of a kernel knows holds for the others.
struct KernelFacts {
  std::uint64_t launches = 0;
  double launch_ns = 0;
};
using KernelKey = std::tuple<std::string, std::string, std::string>;

KernelKey kernel_of(const TaskKey& key) { return {key.kernel, key.shape, key.device}; }

std::map<KernelKey, KernelFacts> facts_of(const std::vector<Task>& tasks) {
  std::map<KernelKey, KernelFacts> facts;
  for (const Task& task : tasks) {
    KernelFacts& known = facts[kernel_of(task.key)];
    known.launches = std::max(known.launches, task.launches);
    known.launch_ns = std::max(known.launch_ns, task.launch_ns);
  }
  return facts;
}

template <typename Number>
Number first_known(Number own, Number of_others, Number assumed) {
  return own > 0 ? own : of_others > 0 ? of_others : assumed;
}

bool comes_first(const RankedTask& a, const RankedTask& b) {
  if (a.saving_ns() != b.saving_ns()) return a.saving_ns() > b.saving_ns();
  if (a.task.seen != b.task.seen) return a.task.seen > b.task.seen;
  return a.task.key < b.task.key;
}

}  // namespace

std::optional<double> known_headroom(const Task& task) {
  if (task.headroom) return task.headroom;
  if (task.ratio > 1) return 1 - 1 / task.ratio;
  return std::nullopt;
}

std::vector<RankedTask> ranked(std::vector<Task> tasks) {
  const std::map<KernelKey, KernelFacts> facts = facts_of(tasks);
  std::vector<RankedTask> ranked;
  ranked.reserve(tasks.size());
  for (Task& task : tasks) {
    const KernelFacts& known = facts.at(kernel_of(task.key));
    const std::uint64_t launches =
        first_known(task.launches, known.launches, Assumption::kLaunches);
    const double launch_ns = first_known(task.launch_ns, known.launch_ns, Assumption::kLaunchNs);
    const std::optional<double> headroom = known_headroom(task);
    RankedTask one;
    one.gpu_time_ns = static_cast<double>(launches) * launch_ns;
    one.headroom = headroom.value_or(Assumption::kHeadroom);
    one.time_assumed = known.launches == 0 || known.launch_ns <= 0;
    one.headroom_assumed = !headroom.has_value();
    one.task = std::move(task);
    ranked.push_back(std::move(one));
  }
  std::sort(ranked.begin(), ranked.end(), comes_first);
  return ranked;
}

Json to_json(const RankedTask& ranked) {
  Json json = to_json(ranked.task);
  json.set("gpu_time_ns", ranked.gpu_time_ns);
  json.set("gpu_time_assumed", ranked.time_assumed);
  json.set("headroom", ranked.headroom);
  json.set("headroom_assumed", ranked.headroom_assumed);
  json.set("saving_ns", ranked.saving_ns());
  json.set("first_queued_at", ranked.task.first_queued_at);
  return json;
}

RankedTask ranked_from_json(const Json& json) {
  const auto share_or_time = [&](std::string_view key) {
    const double value = json[key].as_double();
    return std::isfinite(value) ? std::max(value, 0.0) : 0;
  };
  RankedTask ranked;
  ranked.task = task_from_json(json);
  if (const std::string& first = json["first_queued_at"].as_string(); !first.empty())
    ranked.task.first_queued_at = first;
  ranked.task.seen = static_cast<int>(std::clamp<std::int64_t>(json["seen"].as_int(1), 1, 1 << 30));
  ranked.gpu_time_ns = share_or_time("gpu_time_ns");
  ranked.headroom = std::min(share_or_time("headroom"), 1.0);
  ranked.time_assumed = json["gpu_time_assumed"].as_bool();
  ranked.headroom_assumed = json["headroom_assumed"].as_bool();
  return ranked;
}

}  // namespace purlin::backlog
