// SPDX-License-Identifier: Apache-2.0
// Memory that is taken from the driver and given back in every step: cudaFree waits for the device,
// cudaMalloc takes as long as many launches.
#include "analyze/advise/rules/playbook.h"
#include "analyze/advise/rules/pricing.h"
#include "analyze/text/layout.h"
#include "analyze/timeline/intervals.h"
#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace purlin::analyze {
namespace {

constexpr Remedy kAllocation = {
    "stop_allocating",
    "Keep memory instead of taking it from the driver in each step",
    Pillar::kOverhead,
    Level::kMemory,
    "host",
    "hours",
    "low",
    "api-independent",
    "application",
    "PyTorch: no torch.cuda.empty_cache() in the loop; PYTORCH_CUDA_ALLOC_CONF="
    "expandable_segments:True where sizes vary|"
    "CUDA: allocate once before the loop, or cudaMallocAsync with a pool and a release threshold|"
    "HIP: allocate once before the loop, or hipMallocAsync|"
    "OpenCL: create buffers once before the loop, and reuse them",
    ""};

constexpr double kSomeInEach = 0.5;  // calls a step

// The time in which no kernel or copy ran on any device.
std::vector<Interval> idle_of(const Timeline& timeline) {
  std::vector<Interval> busy;
  for (const Activity& activity : timeline.activities)
    busy.push_back({begin_of(activity), end_of(activity)});
  std::sort(busy.begin(), busy.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  std::vector<Interval> out;
  std::int64_t end = busy.empty() ? 0 : busy.front().begin;
  for (const Interval& one : busy) {
    if (one.begin > end) out.push_back({end, one.begin});
    end = std::max(end, one.end);
  }
  return out;
}

bool from_driver(const std::string& name) {
  return (name.find("Malloc") != std::string::npos || name.find("Free") != std::string::npos ||
          name.find("MemAlloc") != std::string::npos ||
          name.find("MemCreate") != std::string::npos) &&
         name.find("Async") == std::string::npos;
}

void add_allocation(Walk& walk, Advice& advice) {
  const Facts& facts = walk.facts();
  const Timeline& timeline = facts.profile->timeline;
  if (facts.unit.kind != "step" || facts.timeline->steps.empty()) return;
  const std::int64_t begin = facts.timeline->steps.front().start_ns,
                     end = facts.timeline->steps.back().start_ns +
                           facts.timeline->steps.back().duration_ns;
  const std::vector<Interval> idle = idle_of(timeline);
  std::map<std::string, double> count;
  double calls = 0, host_ns = 0, idle_ns = 0;
  edit::RemoveCalls removed;
  for (std::uint32_t i = 0; i < timeline.calls.size(); ++i) {
    const Call& call = timeline.calls[i];
    if (call.kind != CallKind::kAllocation || call.start_ns < begin || call.start_ns >= end)
      continue;
    const std::string name(name_in(timeline, call.name));
    if (!from_driver(name)) continue;
    count[name] += 1;
    removed.calls.push_back(i);
    calls += 1;
    host_ns += static_cast<double>(std::max<std::int64_t>(0, call.duration_ns));
    auto gap = std::partition_point(idle.begin(), idle.end(),
                                    [&](const Interval& one) { return one.end <= begin_of(call); });
    for (; gap != idle.end() && gap->begin < end_of(call); ++gap)
      idle_ns += static_cast<double>(std::min(gap->end, end_of(call)) -
                                     std::max(gap->begin, begin_of(call)));
  }
  if (calls < kSomeInEach * facts.unit.count) return;
  Intervention out = from_remedy(kAllocation);
  const double idle_each = in_one_unit(facts, idle_ns), host_each = in_one_unit(facts, host_ns);
  // The host gets ahead by the whole call; the device by what it idled for it.
  out.saved_ns = bounded({0.6 * idle_each, idle_each, std::max(idle_each, host_each)}, host_each);
  out.change.edits.emplace_back(std::move(removed));
  for (const auto& [name, n] : count)
    out.evidence.push_back({clean(name), counted(n, "call"), "timeline"});
  out.evidence.push_back({"time of the host in these calls",
                          of_total(host_each, facts.unit.baseline_ns.mid), "timeline"});
  out.evidence.push_back(
      {"device idle meanwhile", of_total(idle_each, facts.unit.baseline_ns.mid), "timeline"});
  out.assumptions.emplace_back("the memory that one step frees serves the next");
  out.confidence = "B";
  advice.interventions.push_back(std::move(out));
}

}  // namespace

const Rule kAllocationRule = {{&kAllocation, 1}, add_allocation};

}  // namespace purlin::analyze
